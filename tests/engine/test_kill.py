"""`kill -9` at random moments of `demur sample`: the same command finishes, nothing is lost or there twice."""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import time

import pytest

from demur.errors import StoreError
from demur.store import Store
from loopback import Doled, choice, obliging, reply
from patience import wait_until
from processes import PATIENT, Process

PROBLEMS, PATHS, KILLS = 30, 6, 8


def command(server, place):
    return [
        *PATIENT, "sample", "builtin:addition", "--limit", str(PROBLEMS), "-m", str(PATHS),
        "--base-url", server.url, "--model", "m", "--concurrency", "4", "-o", place,
    ]  # fmt: skip


def texts(place):
    try:
        with Store(place) as store:
            pools = store.run().pools(with_texts=True, complete=False)
    except StoreError:  # killed before there was one
        return {}
    return {(p.problem.id, path.extra["seed"]): path.text for p in pools for path in p.paths}


@pytest.mark.parametrize("one_by_one", [True, False], ids=["n=1", "n=m"])
def test_a_killed_run_goes_on_where_it_was(server, place, one_by_one):
    behave = (lambda n, body, r: reply(choice(f"\\boxed{{{body['seed']}}}"))) if one_by_one else obliging
    server.behave, rng = Doled(0, behave), random.Random(PATHS)
    most = (PROBLEMS * PATHS if one_by_one else PROBLEMS) // KILLS
    environment = {**os.environ, "NO_COLOR": "1"}
    saved: dict = {}
    for kill in range(KILLS):
        running = Process(command(server, place), env=environment, stdout=subprocess.DEVNULL)
        server.behave.answered = len(server.requests) + rng.randrange(most // 2, most) + 1
        wait_until(lambda: len(server.requests) >= server.behave.answered)
        if kill % 2:
            wait_until(lambda before=saved: len(texts(place)) > len(before))
        time.sleep(rng.uniform(0.0, 0.1))
        running.send_signal(signal.SIGKILL)
        running.wait()
        now = texts(place)
        assert saved.items() <= now.items(), "a path that was saved is gone or another"
        saved = now
    assert 0 < len(saved) < PROBLEMS * PATHS, "it was killed in the middle"
    server.behave.answered = math.inf
    finished = subprocess.run(command(server, place), env=environment, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr
    whole = texts(place)
    assert saved.items() <= whole.items()
    with Store(place) as store:
        pools = store.run().pools()
        facts = store.run().summary()
    assert [len(pool.paths) for pool in pools] == [PATHS] * PROBLEMS
    assert facts["paths"] == PROBLEMS * PATHS == len(whole)
    assert all("perplexity" in path.scores for pool in pools for path in pool.paths)
    asked = len(server.requests)
    again = subprocess.run(command(server, place), env=environment, capture_output=True, text=True, timeout=300)
    assert again.returncode == 0
    assert len(server.requests) == asked, "a finished run asks for nothing"


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_being_interrupted_ends_cleanly_after_saving(server, tmp_path, ending):
    server.behave = Doled(8)
    place = str(tmp_path / "run.db")
    running = Process(command(server, place), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(server.requests) > 8)
    running.send_signal(ending)
    out, err = running.communicate(timeout=300)
    assert running.returncode == 130
    assert "Run the same command again to go on." in out
    assert "Traceback" not in err
    assert 0 < len(texts(place)) < PROBLEMS * PATHS
