"""Two writers of one run: whatever they do at once, nothing is lost, mixed or out of sight."""

from __future__ import annotations

import contextlib
import threading

import pytest
from sqlalchemy import event, text

from demur.descriptions import Description
from demur.errors import StoreError
from demur.records import Path, Problem
from demur.store import PathScore, PlacedPath, Store

ONE, OTHER = Description(sampling={"model": "one"}), Description(sampling={"model": "other"})
PROBLEMS = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),)) for k in range(40)]


def path(number, index, answer="1"):
    return PlacedPath(number, index, Path(answer, f"text {number} {index}", extra={"extraction": "boxed"}))


def at_once(*works):
    """Run works in threads of their own; the errors they end in."""
    errors = []

    def guarded(work):
        try:
            work()
        except StoreError as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    return errors


@pytest.fixture
def run(place):
    with Store(place, create=True) as store:
        run = store.open_run("run", ONE, 2)
        run.add_problems(PROBLEMS)
        yield run


def test_a_pool_that_two_writers_complete_at_the_same_moment_is_whole(place, run):
    """Each commits when the other has written too, so that neither sees the other's path."""
    both = threading.Barrier(2)

    def write(index):
        with Store(place) as store:
            mine = store.run()

            @event.listens_for(store.engine, "commit")
            def meet(_):
                with contextlib.suppress(threading.BrokenBarrierError):  # SQLite lets one write at a time
                    both.wait(2)

            mine.save([path(0, index)])

    assert at_once(lambda: write(0), lambda: write(1)) == []
    assert [pool.problem.id for pool in run.pools()] == ["q0"]
    assert run.summary()["pools"] == 1
    assert list(run.lacking("judge")) == [0]
    assert "q0" not in [pending.problem.id for pending in run.pending()]


def test_writers_of_the_same_paths_in_opposite_order_do_not_stand_in_each_others_way(place, run):
    everything = [path(number, index) for number in range(40) for index in range(2)]
    scores = [PathScore(number, index, 1.0) for number in range(40) for index in range(2)]

    def write(step):
        with Store(place) as store:
            mine = store.run()
            for _ in range(5):
                mine.save(everything[::step])
                mine.save_scores("judge", {"model": "a"}, scores[::step])

    assert at_once(*(lambda step=step: write(step) for step in (1, -1, 1, -1))) == []
    assert run.summary()["paths"] == 80
    assert all("judge" in each.scores for pool in run.pools() for each in pool.paths)


def test_a_run_that_is_made_anew_takes_no_path_of_who_still_samples_it_as_it_was(place, run):
    with Store(place) as store:
        anew = store.open_run("run", OTHER, 2)
        anew.add_problems(PROBLEMS[5:])
        for write in (lambda: run.save([path(0, 0)]), lambda: run.add_problems(PROBLEMS)):
            with pytest.raises(StoreError, match="was made anew by another command"):
                write()
        assert anew.summary()["paths"] == 0
        anew.save([path(0, 0), path(0, 1)])
        assert [pool.problem.id for pool in store.run().pools()] == ["q5"]


def test_a_pool_that_an_earlier_version_lost_sight_of_is_there_again(place, run):
    run.save([path(0, 0), path(0, 1)])
    with run.engine.begin() as connection:  # schema 1 kept whole pools in a table, and this one is not in it
        connection.execute(text("CREATE TABLE demur_pools (run INTEGER, number INTEGER, n_paths INTEGER)"))
        connection.execute(text("UPDATE demur_meta SET value = '1' WHERE name = 'schema'"))
    with Store(place) as store:
        assert [pool.problem.id for pool in store.run().pools()] == ["q0"]
