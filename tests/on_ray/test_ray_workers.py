"""Workers of a real cluster that are too many, have no room or are killed: nothing hangs, is lost or stands twice."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

import demur as dm
from demur.pipeline.ray.classing import class_shards
from demur.pipeline.ray.sampling import RayOptions
from demur.pipeline.ray.scoring import score_shards
from demur.pipeline.shards import shard_files
from demur.pools.fields import FieldChoice
from demur.pools.parquet import read_parquet, write_parquet
from demur.records import Path as ReasoningPath
from demur.scoring.settings import ScorerSettings

BLOCKS, PROBLEMS, PATHS = 8, 3, 4


@pytest.fixture
def shards(tmp_path, monkeypatch):
    """A folder of small shards, and functions of one's own that take their time."""
    (tmp_path / "unhurried.py").write_text(
        "import time\n\n\ndef score(pool):\n    time.sleep(0.1)\n"
        "    return [len(path.text) / 100 for path in pool.paths]\n"
        "\n\ndef extract(text):\n    time.sleep(0.03)\n    return text.rsplit(' ', 1)[1].rstrip('.')\n"
    )
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "shards"
    folder.mkdir()
    for block in range(BLOCKS):
        pools = [
            dm.Pool(
                dm.Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}),
                tuple(ReasoningPath(None, f"The answer is {k + 1 + j % 2}.") for j in range(PATHS)),
            )
            for k in range(PROBLEMS * block, PROBLEMS * (block + 1))
        ]
        write_parquet(pools, folder / f"block-{block:06d}.parquet")
    return folder


def pools_of(folder):
    return [pool for path in shard_files(folder) for pool in read_parquet(path).pools]


def whole(folder):
    """Each path of each problem stands once."""
    counted = Counter((pool.problem.id, place) for pool in pools_of(folder) for place, _ in enumerate(pool.paths))
    return counted == Counter({(f"q{k}", j): 1 for k in range(BLOCKS * PROBLEMS) for j in range(PATHS)})


def answered(folder, out, options, say=lambda _: None):
    how = {"extract": "unhurried:extract", "from_texts": True, "options": options, "say": say}
    done = class_shards(folder, out, FieldChoice(), **how)
    assert done.problems == BLOCKS * PROBLEMS
    assert done.reader.paths == BLOCKS * PROBLEMS * PATHS
    assert whole(out)
    assert {path.answer for path in pools_of(out)[0].paths} == {"1", "2"}


def scored(folder, options, say=lambda _: None):
    done = score_shards(folder, {"unhurried:score": ScorerSettings()}, options, say=say).progress["unhurried:score"]
    assert (done.saved, done.failed) == (BLOCKS * PROBLEMS * PATHS, {})
    assert whole(folder)
    assert all(path.scores[done.name] == len(path.text) / 100 for pool in pools_of(folder) for path in pool.paths)


def test_more_workers_than_processors_do_the_work_all_the_same(shards, address, tmp_path):
    answered(shards, tmp_path / "classed", RayOptions(address, 16))
    scored(shards, RayOptions(address, 16))


def kill_when(machines, condition):
    """Kill a worker as soon as something is so; how many there were."""
    killed = []

    def wait():
        for _ in range(15_000):
            if condition() and (many := machines.kill_a_worker()):
                killed.append(many)
                return
            time.sleep(0.02)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread, killed


@pytest.mark.parametrize("stage", ["answers", "score"])
def test_a_worker_that_is_killed_in_the_middle_loses_and_doubles_nothing(shards, address, machines, tmp_path, stage):
    out = tmp_path / "classed"
    before = {path: path.stat().st_mtime_ns for path in shard_files(shards)}

    def some_are_done():
        if stage == "answers":
            return len(list(out.glob("*.parquet"))) >= 2
        return sum(path.stat().st_mtime_ns != then for path, then in before.items()) >= 2

    thread, killed = kill_when(machines, some_are_done)
    notes = []
    if stage == "answers":
        answered(shards, out, RayOptions(address, 2), say=notes.append)
    else:
        scored(shards, RayOptions(address, 2), say=notes.append)
    thread.join()
    assert killed
    assert notes == ["note: 1 worker of the cluster ended and had to be started again"]


def busy(address, holds, ready, free):
    """Another job, in a process of its own, that uses processors until it is told to end."""
    return (
        "import os, time, ray\n"
        f"ray.init(address={address!r}, log_to_driver=False)\n"
        "@ray.remote(num_cpus=1)\nclass Holds:\n    def here(self): return 1\n"
        f"held = [Holds.remote() for _ in range({holds})]\n"
        "ray.get([one.here.remote() for one in held])\n"
        f"open({str(ready)!r}, 'w').close()\n"
        f"while not os.path.exists({str(free)!r}): time.sleep(0.05)\n"
    )


@pytest.mark.parametrize("holds", [1, 2])
def test_a_cluster_that_is_busy_with_other_work_is_shared_or_waited_for(shards, address, tmp_path, holds):
    """With one processor of two free there is one worker; with none, work begins when the other job has ended."""
    ready, free = tmp_path / "ready", tmp_path / "free"
    other = subprocess.Popen([sys.executable, "-c", busy(address, holds, ready, free)], stderr=subprocess.DEVNULL)
    try:
        while not ready.exists():
            assert other.poll() is None
            time.sleep(0.05)
        said = []

        def hear(note):
            said.append(note)
            if "begins when one is free" in note:
                free.touch()

        scored(shards, RayOptions(address, 2), hear)
        assert free.exists() == (holds == 2)
        assert any("begins when one is free" in note for note in said) == (holds == 2)
    finally:
        free.touch()
        other.wait()
