"""A PostgreSQL that goes away and comes back in the middle of work: nothing is lost, nothing is there twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import psycopg
import pytest
from sqlalchemy import event, text
from sqlalchemy.engine import make_url

from demur.backends import Completion, Scripted, Settings
from demur.descriptions import Description
from demur.engine import sample, score_run
from demur.errors import StoreError, StoreUnreachable
from demur.pipeline.pipeline import Pipeline
from demur.records import Path, Problem
from demur.scoring.own import OwnScore
from demur.store import PathScore, PlacedPath, Store
from demur.store.connection import writing
from loopback import until, when
from patience import wait_until
from postgres_servers import answering, running_postgres

PROBLEMS = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}) for k in range(30)]
PATHS = 4


@pytest.fixture(scope="module")
def postgres_of_its_own(tmp_path_factory):
    """A server that may be stopped: no other test uses it."""
    with running_postgres(tmp_path_factory.mktemp("restarted")) as running:
        yield running


@pytest.fixture
def place(postgres_of_its_own):
    postgres_of_its_own.start()
    name = f"d{time.monotonic_ns()}"
    postgres_of_its_own.psql(f"CREATE DATABASE {name};")
    return make_url(postgres_of_its_own.get_uri()).set(database=name).render_as_string(hide_password=False)


@pytest.fixture
def run(place):
    with Store(place, create=True) as store:
        run = store.open_run("run", Description(), PATHS)
        run.add_problems(PROBLEMS)
        yield run


class Slow(Scripted):
    """Takes its time for each path, and counts what it gave; from the tenth problem on it waits for `go_on`."""

    go_on = staticmethod(lambda: True)

    async def sample(self, prompt, settings, wanted):
        self.asked.append((prompt.problem, tuple(wanted)))
        if len(self.asked) > 10:
            await until(self.go_on)
        for want in wanted:
            await asyncio.sleep(0.03)
            yield [Completion(want.path, f"\\boxed{{{want.path}}}", "stop", (-0.5,), want.seed, n_tokens=2)]


class Interrupted(threading.Thread):
    """Stops the server when `after` says so, and starts it again when `missed` says so."""

    def __init__(self, server, *, after, missed):
        super().__init__()
        self.server, self.after, self.missed, self.stopped = server, after, missed, False
        self.start()

    def run(self):
        wait_until(self.after)
        self.server.stop()
        self.stopped = True
        try:
            wait_until(self.missed)
        finally:
            self.server.start()


def test_sampling_goes_on_and_asks_for_no_path_twice(run, postgres_of_its_own):
    backend = Slow(None, concurrency=4)
    fitted = Pipeline(backend, n_paths=PATHS).fitted(PROBLEMS)
    states = []
    restart = Interrupted(
        postgres_of_its_own, after=lambda: states and states[-1] > 10, missed=lambda: run.patience.retries
    )
    backend.go_on = lambda: restart.stopped
    work = sample(
        run, backend, fitted.render, Settings(), fitted.path, watch=lambda progress: states.append(progress.saved)
    )
    progress = asyncio.run(work)
    restart.join()
    assert (progress.saved, progress.failed) == (PATHS * len(PROBLEMS), {})
    assert len(backend.asked) == len(PROBLEMS)
    assert run.summary()["paths"] == PATHS * len(PROBLEMS)
    assert progress.database_retries > 0
    assert "went away or cannot be reached" in progress.trouble


def test_the_command_goes_on_too(place, postgres_of_its_own, server):
    restart = Interrupted(
        postgres_of_its_own, after=lambda: len(server.requests) > 12, missed=lambda: time.sleep(0.5) or True
    )
    server.behave = lambda number, *asked: when(lambda: number < 12 or restart.stopped)(number, *asked)
    command = [sys.executable, "-m", "demur", "sample", "builtin:addition", "--limit", "60", "-m", "3", "-o", place]
    command += ["--base-url", server.url, "--model", "m", "--concurrency", "4"]
    ran = subprocess.run(command, env={**os.environ, "NO_COLOR": "1"}, capture_output=True, text=True, timeout=300)
    restart.join()
    assert ran.returncode == 0, ran.stderr
    with Store(place) as store:
        assert store.run().summary()["paths"] == 180
        assert [len(pool.paths) for pool in store.run().pools()] == [3] * 60
    asked = [(body["messages"][-1]["content"], body["seed"]) for body in server.requests if "messages" in body]
    assert len(asked) == len(set(asked)), "a path was paid for twice"


def test_scoring_goes_on_and_scores_no_pool_twice(run, postgres_of_its_own):
    run.save([PlacedPath(n, k, Path("1", "text", extra={"extraction": "boxed"})) for n in range(30) for k in range(4)])
    scored = []

    def slowly(pool):
        scored.append(pool.problem.id)
        time.sleep(0.05)
        return [float(place) for place in range(len(pool.paths))]

    restart = Interrupted(postgres_of_its_own, after=lambda: len(scored) > 5, missed=lambda: time.sleep(0.5) or True)
    progress = asyncio.run(score_run(run, OwnScore(slowly)))
    restart.join()
    assert (progress.saved, progress.failed) == (120, {})
    assert sorted(scored) == sorted(problem.id for problem in PROBLEMS)
    assert [len(path.scores) for pool in run.pools() for path in pool.paths] == [1] * 120


def test_a_commit_whose_outcome_nobody_learns_is_not_doubled(run):
    """The server commits, and the connection breaks before it can say so."""
    broken = []

    @event.listens_for(run.engine, "commit")
    def commit_and_break(connection):
        if not broken:
            broken.append(True)
            raw = connection.connection.driver_connection
            raw.commit()
            raw.close()

    def doing(work):
        broken.clear()
        work()
        assert broken

    doing(lambda: run.save([PlacedPath(0, k, Path("1", "text")) for k in range(PATHS)]))
    doing(lambda: run.save_scores("judge", {"model": "a"}, [PathScore(0, k, 1.0) for k in range(PATHS)]))
    doing(lambda: run.note("sample", "2026-01-01T00:00:00", {"paths": PATHS}))
    doing(lambda: run.add_problems([Problem("new", "What?")]))
    facts = run.summary()
    assert (facts["paths"], facts["pools"], facts["problems"], len(facts["commands"])) == (4, 1, 31, 1)
    assert len(run.pools()[0].paths[0].scores) == 1


@pytest.mark.parametrize("committed", [False, True])
def test_who_ends_when_its_connection_is_cut_leaves_nothing_behind(run, committed):
    """Else it would be taken over as if it had died, and paths be told as paid for in vain."""
    worker, broken = run.at_work("sample", 4), []
    worker.claim({0: PATHS}, 1, 1)

    @event.listens_for(run.engine, "commit")
    def cut(connection):
        if not broken:
            broken.append(True)
            raw = connection.connection.driver_connection
            if committed:
                raw.commit()
            raw.close()

    worker.end()
    assert broken
    assert run.everybody_at_work() == []


def test_a_full_disk_of_the_server_is_said_with_the_way_out(place, run):
    full = "could not extend file: No space left on device"
    raising = text(f"DO $$ BEGIN RAISE EXCEPTION '{full}' USING ERRCODE = '53100'; END $$")
    with (
        pytest.raises(StoreError, match="its disk is full; what was saved is safe: make room"),
        writing(run.engine, place) as connection,
    ):
        connection.execute(raising)


def test_a_server_that_stays_away_ends_the_work_when_patience_is_over(place, run, postgres_of_its_own):
    with Store(place, patience=3.0) as store:
        hasty = store.run()
        postgres_of_its_own.stop()
        with pytest.raises(StoreUnreachable, match=r"went away.*run the same command again"):
            hasty.save([PlacedPath(0, 0, Path("1", "text"))])
        assert hasty.patience.retries > 1
    with pytest.raises(StoreUnreachable):
        Store(place)  # at once: it was never there


def test_being_asked_to_stop_while_the_server_is_away_ends_the_wait(run, postgres_of_its_own):
    async def work():
        stop, backend = asyncio.Event(), Slow(None, concurrency=4)
        fitted = Pipeline(backend, n_paths=PATHS).fitted(PROBLEMS)
        postgres_of_its_own.stop()
        asyncio.get_running_loop().call_later(1.0, stop.set)
        return await asyncio.wait_for(sample(run, backend, fitted.render, Settings(), fitted.path, stop=stop), 120)

    asked = run.pending()
    run.pending = lambda *_, **__: asked  # read before it went
    with pytest.raises(StoreUnreachable):
        asyncio.run(work())


def test_a_server_that_died_is_started_again_for_the_tests_after_it(postgres_of_its_own):
    answering(postgres_of_its_own)
    os.kill(postgres_of_its_own.get_pid(), signal.SIGKILL)
    with psycopg.connect(answering(postgres_of_its_own).get_uri()) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
