"""A process that is stopped within a transaction holds its locks: PostgreSQL ends it, others go on."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest
from sqlalchemy import event, text

from demur.descriptions import Description
from demur.errors import InvalidValue
from demur.records import Path, Problem
from demur.store import PathScore, PlacedPath, Store
from demur.store.connection import STALL_SECONDS, reading, writing
from processes import Process

M = 4
PROBLEMS = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}) for k in range(60)]
STOPS = """
    import asyncio, os, signal, sys
    from sqlalchemy import event
    from demur.records import Path
    from demur.store import PlacedPath, Store

    def stops_within(engine, number):
        "Have this process stop before it commits for the so-manieth time, its locks held."
        commits = []

        @event.listens_for(engine, "commit")
        def stop(_):
            commits.append(None)
            if len(commits) == number:
                print("stops", flush=True)
                os.kill(os.getpid(), signal.SIGSTOP)

    store = Store(sys.argv[1], stall=1.0)
    run = store.run()
"""
SAVES = """
    worker = run.at_work("sample", 4)
    worker.claim({0: 4, 1: 4}, 2, 8)
    stops_within(store.engine, 1)
    batch = [PlacedPath(0, place, Path("1", "text", extra={"n_tokens": 2, "seed": place})) for place in range(4)]
    print(run.save(batch, worker), run.patience.retries)
    worker.end()
"""
CLAIMS = """
    worker = run.at_work("sample", 4)
    stops_within(store.engine, 1)
    print(len(worker.claim({0: 4, 1: 4}, 2, 8).numbers), run.patience.retries)
    worker.end()
"""
SAMPLES = """
    from demur.backends import OpenAI, Settings
    from demur.engine import sample
    from demur.pipeline.pipeline import Pipeline

    if len(sys.argv) > 3:
        stops_within(store.engine, int(sys.argv[3]))
    backend = OpenAI(sys.argv[2], "m", concurrency=4)
    fitted = Pipeline(backend, n_paths=run.n_paths).fitted([one.problem for one in run.pending()])
    progress = asyncio.run(sample(run, backend, fitted.render, Settings(), fitted.path, lease=2.0))
    print(progress.saved, progress.in_vain)
"""


@pytest.fixture
def run(postgres_url):
    with Store(postgres_url, create=True, stall=1.0) as store:
        run = store.open_run("run", Description(), M)
        run.add_problems(PROBLEMS)
        yield run


def started(code, *given):
    code = textwrap.dedent(STOPS) + textwrap.dedent(code)
    command = [sys.executable, "-c", code, *map(str, given)]
    return Process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stopped(code, *given):
    """A process that has stopped itself."""
    process = started(code, *given)
    assert process.stdout.readline() == "stops\n", process.communicate()
    return process


def ended(process):
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return [int(word) for word in out.split()]


def path(number, place):
    return PlacedPath(number, place, Path("2", "other", extra={"n_tokens": 2, "seed": 50 + place}))


def test_a_write_that_stands_still_is_ended_and_done_again(postgres_url, run):
    """The same paths are written by another: it waits no longer than the stall, and what it wrote stays."""
    process = stopped(SAVES, postgres_url)
    assert run.save([path(0, place) for place in range(2)]) == 0
    assert run.summary()["paths"] == 2, "what stood still was never committed"
    in_vain, retries = ended(process)
    assert (in_vain, retries > 0) == (2, True)
    (pool,) = run.pools()
    assert [(one.answer, one.extra["seed"]) for one in pool.paths] == [("2", 50), ("2", 51), ("1", 2), ("1", 3)]
    assert run.came("sample") == 4 + 2  # those in vain were paid for too


def test_a_claim_that_stands_still_keeps_nobody_from_claiming(postgres_url, run):
    process = stopped(CLAIMS, postgres_url)
    mine = run.at_work("sample", 4)
    assert mine.claim({0: M, 1: M}, 2, 8).numbers == (0, 1)
    claimed, retries = ended(process)
    assert (claimed, retries > 0) == (0, True)
    mine.end()


@pytest.mark.parametrize("commits", [3, 6, 11])
def test_a_sampler_that_is_stopped_within_a_write_is_taken_over_and_doubles_nothing(server, postgres_url, run, commits):
    server.delay = 0.05
    stalled = stopped(SAMPLES, postgres_url, server.url, commits)
    other = started(SAMPLES, postgres_url, server.url)
    drawn, _ = ended(other)
    before = [[(one.text, one.extra["seed"]) for one in pool.paths] for pool in run.pools(with_texts=True)]
    assert [len(pool) for pool in before] == [M] * len(PROBLEMS)
    saved, in_vain = ended(stalled)
    assert [[(one.text, one.extra["seed"]) for one in pool.paths] for pool in run.pools(with_texts=True)] == before
    assert saved + drawn == M * len(PROBLEMS)
    noted = [facts for facts in run.summary()["commands"] if facts["command"] == "takeover"]
    assert in_vain <= sum(facts["in_vain_at_most"] for facts in noted)
    assert run.summary()["workers"] == []


def test_nothing_is_written_as_a_pipeline_within_which_the_server_has_no_clock_running(run):
    one_by_one = []

    @event.listens_for(run.engine, "before_cursor_execute")
    def see(connection, cursor, statement, parameters, context, executemany):
        one_by_one.extend([statement] if executemany else [])

    worker = run.at_work("sample", 4)
    worker.claim({0: M, 1: M}, 2, 8)
    run.add_problems([Problem(f"new{k}", "What?") for k in range(3)])
    run.save([path(number, place) for number in range(2) for place in range(M)], worker)
    run.save_scores("judge", {"model": "a"}, [PathScore(0, place, 1.0) for place in range(M)])
    run.note("sample", "2026-01-01T00:00:00", {"paths": M})
    worker.end()
    assert (run.summary()["paths"], one_by_one) == (2 * M, [])


def test_only_what_writes_is_ended_and_not_before_a_minute_unless_it_is_said(postgres_url, run):
    """Who reads holds nothing that others wait for, and may think about it for as long as it likes."""
    shown = text("SHOW idle_in_transaction_session_timeout")
    with Store(postgres_url) as store:
        with writing(store.engine, postgres_url) as connection:
            assert connection.execute(shown).scalar_one() == "1min"
        with reading(store.engine, postgres_url) as connection:
            assert connection.execute(shown).scalar_one() == "0"
    with writing(run.engine, postgres_url) as connection:
        assert connection.execute(shown).scalar_one() == "1s"
    assert 30 <= STALL_SECONDS <= 60


@pytest.mark.parametrize("stall", [0, -1, float("nan"), 1e9])
def test_a_stall_that_makes_no_sense_is_refused(tmp_path, stall):
    with pytest.raises(InvalidValue, match="a stall is a number of seconds"):
        Store(tmp_path / "run.db", create=True, stall=stall)
