"""A run that is given more paths: what is there stays, what is added has other seeds, and it goes on when stopped."""

from __future__ import annotations

import asyncio

import pytest

from demur.backends import Completion, Scripted
from demur.engine.sample import wanted_paths
from demur.errors import BackendError, StoreError
from demur.pipeline.pipeline import Pipeline
from demur.records import Problem
from demur.scoring.self_consistency import SelfConsistency
from demur.store import PathScore, PlacedPath, Store

PROBLEMS = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}) for k in range(6)]


def say(prompt, want):
    return Completion(want.path, f"So \\boxed{{{want.seed}}}", "stop", (-0.5, -1.5), want.seed)


def sample(place, n_paths, script=say, problems=PROBLEMS, **options):
    backend = Scripted(script, **options)
    result = Pipeline(backend, n_paths).run(problems, place)
    return result, backend


def pools(place, **how):
    with Store(place) as store:
        return store.run().pools(with_texts=True, **how)


def test_more_paths_are_added_and_those_that_are_there_stay(place):
    sample(place, 4)
    before = pools(place)
    result, backend = sample(place, 8)
    assert (result.progress.wanted, result.progress.saved, result.unscored) == (24, 24, {})
    assert {want.path for _, wanted in backend.asked for want in wanted} == {4, 5, 6, 7}
    after = pools(place)
    assert [pool.paths[:4] for pool in after] == [pool.paths for pool in before]
    assert all(len(pool.paths) == 8 for pool in after)
    with Store(place) as store:
        assert store.run().n_paths == 8


@pytest.mark.parametrize("sizes", [(1, 2, 3, 4), (3, 5, 16, 17), (16, 32), (4, 64), (7, 8)])
def test_no_seed_repeats_however_often_a_run_grows(tmp_path, sizes):
    for n_paths in sizes:
        sample(tmp_path / "run.db", n_paths)
    seeds = [path.extra["seed"] for pool in pools(tmp_path / "run.db") for path in pool.paths]
    assert len(set(seeds)) == len(seeds) == 6 * sizes[-1]
    assert max(seeds) < 2**31


def test_seeds_at_the_end_of_their_range_go_on_at_its_beginning():
    last = 2**31 - 2
    assert [want.seed for want in wanted_paths(0, "q", 4, None, last)] == [last, last + 1, 0, 1]


def test_a_half_extended_run_goes_on_and_its_pools_are_whole_only_then(place):
    sample(place, 4)

    def falters(prompt, want):
        if prompt.problem in ("q2", "q4"):
            raise BackendError("not now")
        return say(prompt, want)

    result, _ = sample(place, 6, falters)
    assert sorted(result.progress.failed) == ["q2", "q4"]
    assert [pool.problem.id for pool in pools(place)] == ["q0", "q1", "q3", "q5"]
    result, _ = sample(place, 6)
    assert result.progress.saved == 4
    assert [len(pool.paths) for pool in pools(place)] == [6] * 6


def test_problems_added_later_get_as_many(place):
    sample(place, 2, problems=PROBLEMS[:3])
    result, _ = sample(place, 4)
    assert result.progress.saved == 3 * 2 + 3 * 4
    assert [len(pool.paths) for pool in pools(place)] == [4] * 6


def test_fewer_than_are_there_are_refused_and_nothing_changes(place):
    sample(place, 4)
    with pytest.raises(StoreError, match="has problems with 4 paths, more than the 3 asked for"):
        sample(place, 3)
    assert [len(pool.paths) for pool in pools(place)] == [4] * 6


def test_an_extension_that_brought_nothing_can_be_taken_back(place):
    def dead(prompt, want):
        raise BackendError("nobody there")

    sample(place, 4)
    with pytest.raises(BackendError):
        sample(place, 8, dead)
    assert pools(place) == []
    result, backend = sample(place, 4)
    assert (result.progress.wanted, backend.asked, result.unscored) == (0, [], {})
    assert [len(pool.paths) for pool in pools(place)] == [4] * 6


def test_another_pipeline_is_refused_before_anything_is_resized(place):
    sample(place, 4)
    with pytest.raises(StoreError, match="'scripted' in the run, 'other' now"):
        sample(place, 8, model="other")
    with Store(place) as store:
        assert store.run().n_paths == 4


def test_scores_of_whole_pools_are_made_anew_and_those_of_paths_stay(place):
    result, _ = sample(place, 4)
    result.add_score(SelfConsistency())
    with Store(place) as store:
        flags = [None, None, None, "empty"]
        judged = [PathScore(number, path, -1.0, flag) for number in range(6) for path, flag in enumerate(flags)]
        store.run().save_scores("judge", {"scorer": "judge", "backend": "server"}, judged)
    result, _ = sample(place, 6)
    with Store(place) as store:
        run = store.run()
        assert set(run.lacking("judge").values()) == {(3, 4, 5)}
        assert set(run.lacking("self-consistency").values()) == {(0, 1, 2, 3, 4, 5)}
        assert run.lacking("perplexity") == {}


def test_a_command_that_still_thinks_of_fewer_marks_no_pool_as_whole(place):
    """Two commands at once: the one that began first saves its last path after the other asked for more."""
    sample(place, 2, problems=PROBLEMS[:1])
    with Store(place) as one, Store(place) as two:
        early = one.run()
        early.add_problems(PROBLEMS[:2])
        later = two.open_run("run", early.description, 4)
        fitted = Pipeline(Scripted(say), 2).fitted(PROBLEMS)
        for place_of_path in range(2):
            drawn = Completion(place_of_path, "\\boxed{1}", "stop", (-1.0,), place_of_path)
            early.save([PlacedPath(1, place_of_path, fitted.path(PROBLEMS[1], drawn))])
        assert later.pools() == []
        assert [(lacking.problem.id, lacking.missing) for lacking in later.pending()] == [
            ("q0", (2, 3)),
            ("q1", (2, 3)),
        ]


def test_growing_twice_at_once_is_one_growth(place):
    sample(place, 2)

    async def both():
        return await asyncio.gather(*(asyncio.to_thread(sample, place, 4) for _ in range(2)))

    asyncio.run(both())
    assert [len(pool.paths) for pool in pools(place)] == [4] * 6
