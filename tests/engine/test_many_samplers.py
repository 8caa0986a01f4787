"""Many samplers of one run: real processes on one store, killed and stalled, lose nothing and store nothing twice."""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from contextlib import closing

from sqlalchemy import event, text

from demur.backends import Completion, Scripted, Settings
from demur.descriptions import Description
from demur.engine import sample, score_run
from demur.errors import StoreError
from demur.pipeline.pipeline import Pipeline
from demur.records import Path, Problem
from demur.scoring import OwnScore
from demur.store import Budget, PlacedPath, Store
from loopback import Doled, choice, reply, when
from patience import wait_until
from processes import Process

M, SAMPLERS, KILLS = 4, 4, 5
PROBLEMS = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}) for k in range(60)]


def demur_sample(server, place, limit, *flags, key=""):
    command = [
        sys.executable, "-m", "demur", "sample", "builtin:addition", "--limit", str(limit), "-m", str(M),
        "--base-url", server.url, "--model", "m", "--concurrency", "4", "-o", place, "--json", *flags,
    ]  # fmt: skip
    known = {**os.environ, "OPENAI_API_KEY": key}
    return Process(command, env=known, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def together(server, number, behave):
    """A model that answers nobody until so many samplers, each with a key of its own, have asked."""

    return when(lambda: len({sent.get("Authorization") for sent in server.headers}) >= number, behave)


def finished(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode in (0, 130), err
    return json.loads(out)


def paid_for(server):
    """How often each path was asked for, by its seed."""
    asked = Counter()
    for body in server.requests:
        asked.update(range(body["seed"], body["seed"] + body.get("n", 1)))
    return asked


def saved(place):
    with Store(place) as store:
        pools = store.run().pools(with_texts=True, complete=False)
    return {(pool.problem.id, path.extra["seed"]): path.text for pool in pools for path in pool.paths}


def test_four_samplers_killed_in_turn_lose_nothing_and_say_what_was_paid_for_twice(server, postgres_url):
    server.behave, limit, rng = Doled(0), 240, random.Random(1)
    running = [demur_sample(server, postgres_url, limit) for _ in range(SAMPLERS)]
    kept: dict = {}
    for turn in range(KILLS):
        server.behave.answered += rng.randrange(20, 40)  # after all kills there is work left
        wait_until(lambda: len(server.requests) >= server.behave.answered)
        victim = running[turn % SAMPLERS]
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
        now = saved(postgres_url)
        assert kept.items() <= now.items(), "a path that was saved is gone or another"
        kept = now
        if turn != KILLS - 1:
            running[turn % SAMPLERS] = demur_sample(server, postgres_url, limit)
    server.behave.answered = math.inf
    told = [finished(process) for process in running if process.returncode is None]
    whole = saved(postgres_url)
    assert kept.items() <= whole.items()
    with Store(postgres_url) as store:
        run = store.run()
        pools, facts = run.pools(), run.summary()
    assert [len(pool.paths) for pool in pools] == [M] * limit
    assert all("perplexity" in path.scores for pool in pools for path in pool.paths)
    asked = paid_for(server)
    assert set(asked) == {seed for _, seed in whole}
    twice = sum(asked.values()) - limit * M
    takeovers = [noted for noted in facts["commands"] if noted["command"] == "takeover"]
    assert 0 <= twice <= sum(noted["in_vain_at_most"] for noted in takeovers)
    came = sum(noted["came"] for noted in takeovers if noted["of"] == "sample")
    assert came + sum(one["saved"] for one in told) == limit * M
    assert [one["in_vain"] for one in told] == [0] * len(told)
    assert facts["workers"] == []


def test_without_a_crash_nothing_is_paid_for_twice(server, tmp_path):
    server.delay, place = 0.05, str(tmp_path / "run.db")
    told = [finished(process) for process in [demur_sample(server, place, 150) for _ in range(3)]]
    assert set(paid_for(server).values()) == {1}
    assert sum(one["saved"] for one in told) == 150 * M == len(saved(place))
    assert all(one["wanted"] == one["saved"] + one["by_others"] for one in told)


def test_under_a_stopping_rule_two_samplers_draw_what_one_draws(server, tmp_path):
    """Which paths a pool has is a function of its answers: not of who drew it, nor of who was quicker."""

    def answers_by_seed(number, body, request):
        seeds = range(body["seed"], body["seed"] + body.get("n", 1))
        return reply(*(choice(f"So \\boxed{{{max(0, seed * 7919 % 11 - 7)}}}") for seed in seeds))

    server.behave = answers_by_seed
    rule = ("--stop", "beta:0.8", "--wave", "2")
    finished(demur_sample(server, str(tmp_path / "alone.db"), 60, *rule))
    asked_alone = paid_for(server)
    server.requests.clear()
    server.headers.clear()
    server.behave = together(server, 2, answers_by_seed)
    two = [demur_sample(server, str(tmp_path / "shared.db"), 60, *rule, key=name) for name in ("one", "other")]
    told = [finished(process) for process in two]
    assert saved(str(tmp_path / "shared.db")) == saved(str(tmp_path / "alone.db"))
    assert paid_for(server) == asked_alone
    assert all(one["saved"] for one in told), "both were at work"
    assert 60 * 2 < len(asked_alone) < 60 * M, "some pools ended early, and some did not"


def test_a_budget_holds_over_all_samplers_and_the_same_command_goes_on_when_it_is_raised(server, tmp_path):
    server.delay, place = 0.02, str(tmp_path / "run.db")
    flags = ("--budget-paths", str(50 * M + 1))
    told = [finished(process) for process in [demur_sample(server, place, 100, *flags) for _ in range(2)]]
    assert sum(one["saved"] for one in told) == 50 * M == sum(paid_for(server).values())
    assert {one["stopped"] for one in told} == {True}
    assert f"200 of {50 * M + 1} paths, and the next problem needs 4" in {one["budget_spent"] for one in told}
    last = finished(demur_sample(server, place, 100, "--budget-paths", "none"))
    assert (last["saved"], last["stopped"], last["budget_spent"]) == (50 * M, False, None)


STALLED = """
    import asyncio, sys
    from demur.backends import OpenAI, Settings
    from demur.engine import sample
    from demur.pipeline.pipeline import Pipeline
    from demur.store import Store

    place, url = sys.argv[1:]
    with Store(place) as store:
        run = store.run()
        backend = OpenAI(url, "m", concurrency=4)
        problems = [one.problem for one in run.pending()]
        fitted = Pipeline(backend, n_paths=run.n_paths).fitted(problems)
        print("ready", flush=True)
        work = sample(run, backend, fitted.render, Settings(), fitted.path, lease=2.0)
        progress = asyncio.run(work)
        print(progress.saved, progress.in_vain, progress.lost_leases)
"""


def stop_between_transactions(process, store):
    """Stop a process where it holds no lock: one that stops within a transaction has others wait for its end."""
    for _ in range(100):
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)  # a statement that is under way may end meanwhile
        if not holds_a_lock(store):
            return
        process.send_signal(signal.SIGCONT)
        time.sleep(0.03)
    raise AssertionError("it was always within a transaction")


def holds_a_lock(store):
    if store.engine.dialect.name == "postgresql":
        others = "datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'"
        with store.engine.connect() as connection:
            return connection.execute(text(f"SELECT count(*) FROM pg_stat_activity WHERE {others}")).scalar_one() > 0
    try:
        with closing(sqlite3.connect(store.engine.url.database, timeout=0.2, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return True
    return False


def test_a_sampler_that_stalls_is_taken_over_and_stores_nothing_twice(server, place):
    server.behave = Doled(8)
    with Store(place, create=True) as store:
        run = store.open_run("run", Description(), M)
        run.add_problems(PROBLEMS)
        command = [sys.executable, "-c", textwrap.dedent(STALLED), place, server.url]
        stalled = Process(command, stdout=subprocess.PIPE, text=True)
        assert stalled.stdout.readline() == "ready\n"
        wait_until(lambda: len(server.requests) >= 8)
        stop_between_transactions(stalled, store)
        server.behave.answered = math.inf
        other = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert [len(pool.paths) for pool in run.pools()] == [M] * len(PROBLEMS)
        before = saved(place)
        stalled.send_signal(signal.SIGCONT)
        _, in_vain, lost = map(int, stalled.communicate(timeout=300)[0].split())
        assert lost >= 1
        assert saved(place) == before
        took_over = [noted for noted in run.summary()["commands"] if noted["command"] == "takeover"]
        assert took_over
        assert in_vain <= sum(noted["in_vain_at_most"] for noted in took_over)
        assert other.returncode == 0, other.stderr


class Slow(Scripted):
    """Takes its time for each problem, and counts what it gave."""

    seconds = 0.01

    async def sample(self, prompt, settings, wanted):
        self.asked.append((prompt.problem, tuple(wanted)))
        await asyncio.sleep(self.seconds)
        yield [Completion(w.path, f"\\boxed{{{w.path}}}", "stop", (-0.5,), w.seed, n_tokens=2) for w in wanted]


class Slower(Slow):
    seconds = 0.1


def sampled(run, backend, **options):
    fitted = Pipeline(backend, n_paths=M).fitted(PROBLEMS)
    return sample(run, backend, fitted.render, Settings(), fitted.path, **options)


def test_who_is_done_waits_for_the_others_and_says_so(tmp_path):
    """One holds a problem and does nothing: the other waits, until the first hands it back."""
    with Store(tmp_path / "run.db", create=True) as store:
        run = store.open_run("run", Description(), M)
        run.add_problems(PROBLEMS)
        idle, said = run.at_work("sample", 1), []
        held = idle.claim(dict.fromkeys(range(60), M), 3, 60).numbers

        def watch(progress):
            if progress.waiting and not said:
                said.append(progress.waiting)
                threading.Thread(target=idle.end).start()

        progress = asyncio.run(sampled(run, Slow(None), watch=watch))
    assert len(held) == 3
    assert said[0].startswith("waiting for ")
    assert said[0].endswith(", who are at the last 3 problems")
    assert (progress.saved, progress.by_others) == (60 * M, 0)


def test_waiting_ends_when_it_is_asked_to_or_time_is_up(tmp_path):
    with Store(tmp_path / "run.db", create=True) as store:
        run = store.open_run("run", Description(), M)
        run.add_problems(PROBLEMS[:4])
        idle = run.at_work("sample", 1)
        assert len(idle.claim(dict.fromkeys(range(4), M), 4, 8).numbers) == 4
        late = asyncio.run(sampled(run, Slow(None), seconds=0.2))

        async def interrupted():
            stop = asyncio.Event()
            asyncio.get_running_loop().call_later(0.2, stop.set)
            return await sampled(run, Slow(None), stop=stop)

        stopped = asyncio.run(interrupted())
        idle.end()
    assert (late.out_of_time, late.saved) == (True, 0)
    assert (stopped.interrupted, stopped.saved) == (True, 0)


def test_two_scorers_share_the_work_and_score_no_pool_twice(place):
    seen, both_at_work = [], threading.Barrier(2)

    def scorer():
        begun = []

        def length(pool):
            if not begun:
                begun.append(both_at_work.wait(300))
            seen.append(pool.problem.id)
            return [float(len(path.text)) for path in pool.paths]

        return OwnScore(length)

    with Store(place, create=True) as store:
        run = store.open_run("run", Description(), M)
        run.add_problems([Problem(f"q{k}", "What?") for k in range(500)])
        run.save([PlacedPath(k, j, Path("1", "x" * (j + 1))) for k in range(500) for j in range(M)])

        async def both():
            return await asyncio.gather(*(score_run(run, scorer()) for _ in range(2)))

        one, other = asyncio.run(both())
    assert sorted(seen) == sorted(f"q{k}" for k in range(500))
    assert one.saved + other.saved == 500 * M
    assert min(one.saved, other.saved) > 0
    assert one.in_vain == other.in_vain == 0


def test_a_full_disk_ends_the_samplers_and_the_next_one_goes_on(tmp_path):
    with Store(tmp_path / "run.db", create=True) as store:
        run = store.open_run("run", Description(), M)
        run.add_problems(PROBLEMS)
        asyncio.run(sampled(run, Slow(None, concurrency=4), ids=[one.id for one in PROBLEMS[:20]]))
        pages = run._rows(text("PRAGMA page_count"))[0][0]
        store.engine.dispose()

        def full(connection, _):
            connection.execute(f"PRAGMA max_page_count = {pages}")

        event.listen(store.engine, "connect", full)

        async def two():
            return await asyncio.gather(
                *(sampled(run, Slow(None, concurrency=4)) for _ in range(2)), return_exceptions=True
            )

        for ended in asyncio.run(two()):
            assert isinstance(ended, StoreError)
            assert "the disk is full; what was saved is safe" in str(ended)
        event.remove(store.engine, "connect", full)
        store.engine.dispose()
        before = run.summary()["paths"]
        assert before >= 20 * M
        progress = asyncio.run(sampled(run, Slow(None, concurrency=4), lease=0.5))
        assert before + progress.saved == len(PROBLEMS) * M
        assert run.summary()["pools"] == len(PROBLEMS)


def test_a_lone_sampler_reads_nothing_again(tmp_path, monkeypatch):
    """What it read before it began is still so: nobody else was there."""
    with Store(tmp_path / "run.db", create=True) as store:
        run = store.open_run("run", Description(), M)
        run.add_problems(PROBLEMS)
        readings = []
        read = run.pending
        monkeypatch.setattr(run, "pending", lambda *given, **named: readings.append(named) or read(*given, **named))
        progress = asyncio.run(sampled(run, Slow(None, concurrency=4)))
    assert progress.saved == len(PROBLEMS) * M
    assert len(readings) == 1


def test_seconds_of_a_budget_end_a_sampler(tmp_path):
    with Store(tmp_path / "run.db", create=True) as store:
        run = store.open_run("run", Description(), M)
        run.add_problems(PROBLEMS)
        run.set_budget(Budget(seconds=1))
        progress = asyncio.run(sampled(run, Slower(None, concurrency=1)))
        assert 0 < progress.saved < len(PROBLEMS) * M
        assert progress.stopped
        assert "raise it with {budget_seconds} to go on" in progress.budget
        again = asyncio.run(sampled(run, Slower(None, concurrency=1)))
        assert again.saved == 0
