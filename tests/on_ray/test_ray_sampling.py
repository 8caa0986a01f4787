"""Sampling over a real cluster: the plain engine's pools and policy, whatever happens to workers, machines, driver."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

import demur as dm
from demur.errors import EndpointRefused
from demur.pipeline.config import Config
from demur.pipeline.ray.classing import class_shards
from demur.pipeline.ray.sampling import RayOptions, sample_shards
from demur.pipeline.ray.scoring import score_shards
from demur.pipeline.shards import shard_files
from demur.pools.parquet import read_parquet
from demur.pools.source import PoolSource, vote_pools
from demur.scoring.self_consistency import SelfConsistency
from demur.scoring.settings import ScorerSettings
from loopback import Doled, choice, error, obliging, reply, when
from patience import wait_until
from processes import PATIENT

PATHS = 4


def questions(n=24):
    return [dm.Problem(f"q{k}", f"What is {k} + 1?", (str(k % 7),), extra={"task": "math"}) for k in range(n)]


def config_of(server, **more):
    return Config(base_url=server.url, model="m", paths=PATHS, **more)


def source_of(folder) -> PoolSource:
    """All shards of a folder as one source."""
    files = [read_parquet(path) for path in shard_files(Path(folder))]
    known = files[0].provenance
    return PoolSource([pool for file in files for pool in file.pools], known.description, known.scorers)


def policy_of(source, place, score="perplexity"):
    policy = dm.calibrate(vote_pools(source, dm.FieldChoice(score=score)), alpha=[0.2, 0.4])
    policy.save(place)
    return place.read_bytes()


def plain(server, problems, place, **more):
    config = config_of(server, **more)
    return config.pipeline(config.backend()).run(problems, place)


def texts(source):
    return {
        pool.problem.id: [(path.answer, path.text, path.extra["seed"]) for path in pool.paths] for pool in source.pools
    }


def refuse_doubles(folder, problems):
    """Each path of each problem stands once, in one shard."""
    from pyarrow import parquet

    counted = Counter()
    for path in shard_files(Path(folder)):
        table = parquet.read_table(path, columns=["id", "path"])
        counted.update(zip(table.column("id").to_pylist(), table.column("path").to_pylist(), strict=True))
    assert counted == Counter({(problem.id, place): 1 for problem in problems for place in range(PATHS)})


def drawn_by_seed(number, body, request):
    """A model that is a function of the seed: other seeds, other answers and other log-probabilities."""
    first, n = body["seed"], body.get("n", 1)
    return reply(
        *(choice(f"The answer is {(first + k) % 3}.", [-((first + k) % 11) / 10, -0.2], index=k) for k in range(n))
    )


def test_the_same_seed_gives_the_same_pools_and_byte_for_byte_the_same_policy(server, address, tmp_path):
    server.behave, problems = drawn_by_seed, questions()
    plain(server, problems, tmp_path / "plain.db")
    expected = dm.read_pools(tmp_path / "plain.db", texts=True)
    done = sample_shards(config_of(server), problems, tmp_path / "shards", RayOptions(address, 2, 5))
    assert (done.blocks, done.finished, done.progress.saved) == (5, 5, 24 * PATHS)
    sampled = source_of(tmp_path / "shards")
    assert texts(sampled) == texts(expected)
    assert policy_of(sampled, tmp_path / "a.json") == policy_of(expected, tmp_path / "b.json")
    plain(server, problems, tmp_path / "other.db", seed=1)
    assert texts(dm.read_pools(tmp_path / "other.db", texts=True)) != texts(expected)  # the comparison can fail


def test_shards_that_the_cluster_scored_give_the_plain_engines_policy_byte_for_byte(server, address, tmp_path):
    server.behave, problems, options = drawn_by_seed, questions(12), RayOptions(address, 2, 5)
    plain(server, problems, tmp_path / "plain.db").add_score(SelfConsistency())
    sample_shards(config_of(server), problems, tmp_path / "shards", options)
    score_shards(tmp_path / "shards", {"self-consistency": ScorerSettings()}, options)
    class_shards(tmp_path / "shards", tmp_path / "classed", dm.FieldChoice(), options=options)
    expected = policy_of(dm.read_pools(tmp_path / "plain.db"), tmp_path / "a.json", "self-consistency")
    for folder in ("shards", "classed"):
        assert policy_of(dm.read_pools(tmp_path / folder), tmp_path / "b.json", "self-consistency") == expected


def test_going_on_asks_nobody_and_more_problems_come_behind(server, address, tmp_path):
    folder, options = tmp_path / "shards", RayOptions(address, 2, 4)
    sample_shards(config_of(server), questions(10), folder, options)
    before, asked = {path: path.read_bytes() for path in shard_files(folder)}, len(server.requests)
    again = sample_shards(config_of(server), questions(10), folder, options)
    assert (again.progress.wanted, len(server.requests)) == (0, asked)
    more = sample_shards(config_of(server), questions(13), folder, options)
    assert (more.blocks, more.progress.saved) == (4, 3 * PATHS)
    assert {path: path.read_bytes() for path in before} == before
    refuse_doubles(folder, questions(13))


def test_a_rule_that_stops_early_draws_the_plain_engines_paths_and_no_more_are_wanted(server, address, tmp_path):
    def often_two(number, body, request):
        first, n = body["seed"], body.get("n", 1)
        said = [f"The answer is {min(2, (first + k) % 5)}." for k in range(n)]
        return reply(*(choice(text, [-((first + k) % 11) / 10], index=k) for k, text in enumerate(said)))

    server.behave, problems = often_two, questions(12)
    rule = {"stop_rule": "agreement:2", "wave": 2}
    plain(server, problems, tmp_path / "plain.db", **rule)
    expected = dm.read_pools(tmp_path / "plain.db", texts=True)
    done = sample_shards(config_of(server, **rule), problems, tmp_path / "shards", RayOptions(address, 2, 5))
    drawn = sum(len(pool.paths) for pool in expected.pools)
    assert drawn < 12 * PATHS
    assert (done.finished, done.progress.saved, done.progress.wanted) == (3, drawn, drawn)
    sampled = source_of(tmp_path / "shards")
    assert texts(sampled) == texts(expected)
    assert policy_of(sampled, tmp_path / "a.json") == policy_of(expected, tmp_path / "b.json")


def meanwhile(condition, deed):
    """Do something as soon as something is so, in a thread; whether it was done."""
    done = threading.Event()

    def wait():
        wait_until(condition, 300)
        deed()
        done.set()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread, done


def test_workers_that_are_killed_lose_and_double_nothing(server, address, machines, tmp_path, capsys):
    """Two workers are really killed in the middle; what they had stored is not asked for again."""
    problems, killed = questions(48), []
    thread, first = meanwhile(lambda: len(server.requests) >= 8, lambda: killed.append(machines.kill_a_worker()))
    second_thread, second = meanwhile(
        lambda: len(server.requests) >= 26, lambda: killed.append(machines.kill_a_worker())
    )
    held = [(8, first), (26, second)]  # so many are answered before each death
    server.behave = lambda number, *asked: when(lambda: all(number < most or death.is_set() for most, death in held))(
        number, *asked
    )
    config, notes = config_of(server, concurrency=4), []
    done = sample_shards(config, problems, tmp_path / "shards", RayOptions(address, 2, 8), say=notes.append)
    thread.join()
    second_thread.join()
    assert first.is_set()
    assert second.is_set()
    assert all(killed)  # there was somebody to kill
    assert (done.finished, done.progress.failed) == (6, {})
    assert (done.progress.saved, done.progress.wanted, done.unfinished) == (48 * PATHS, 48 * PATHS, ())
    assert notes[1:] == ["note: 2 workers of the cluster ended and had to be started again"]
    refuse_doubles(tmp_path / "shards", problems)
    plain(server, problems, tmp_path / "plain.db")
    assert texts(source_of(tmp_path / "shards")) == texts(dm.read_pools(tmp_path / "plain.db", texts=True))
    # One request per problem; by each of four workers one path tried alone in each of four blocks; and those that
    # were under way at the two deaths.
    asked = len(server.requests) - 48 - 1
    assert asked <= 48 + 4 * 4 + 2 * 2
    assert capsys.readouterr().out == ""
    assert not list((tmp_path / "shards" / ".unfinished").glob("*.db"))


def test_a_machine_that_goes_takes_nothing_with_it(server, address, machines, tmp_path):
    problems = questions(32)
    thread, gone = meanwhile(lambda: len(server.requests) >= 8, machines.lose)
    server.behave = lambda number, *asked: when(lambda: number < 8 or gone.is_set())(number, *asked)
    options, notes = RayOptions(address, 2, 4), []
    done = sample_shards(config_of(server, concurrency=4), problems, tmp_path / "shards", options, say=notes.append)
    thread.join()
    assert gone.is_set()
    assert done.finished == done.blocks == 8
    assert (done.progress.saved, done.progress.wanted) == (32 * PATHS, 32 * PATHS)
    assert "note: the cluster lost 1 machine (127.0.0.2); others took over the work" in notes
    refuse_doubles(tmp_path / "shards", problems)


@pytest.mark.parametrize("ended_by", [signal.SIGKILL, signal.SIGTERM])
def test_a_driver_that_is_ended_is_gone_on_with(server, address, tmp_path, ended_by):
    server.behave, folder = Doled(20), tmp_path / "shards"
    problems = tmp_path / "questions.jsonl"
    problems.write_text(
        "".join(f'{{"id": "q{k}", "question": "What is {k} + 1?", "gold": "{k % 7}"}}\n' for k in range(32))
    )
    command = [*PATIENT, "sample", problems, "--task", "math", "-m", str(PATHS), "--model", "m",
               "--base-url", server.url, "--concurrency", "4", "--engine", "ray", "--ray-address", address,
               "--block", "4", "-o", folder]  # fmt: skip
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not folder.is_dir() or len(list(folder.glob("*.parquet"))) < 2:
        assert driver.poll() is None, driver.communicate()
        time.sleep(0.05)
    os.kill(driver.pid, ended_by)
    said, _ = driver.communicate()
    server.behave.answered = math.inf
    if ended_by == signal.SIGTERM:  # Ray would end the process at once
        assert (driver.returncode, b"Run the same command again to go on." in said) == (130, True)
    finished = {path: path.stat().st_mtime_ns for path in folder.glob("*.parquet")}
    assert len(finished) < 8
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.returncode, "8 of 8 shards" in ran.stdout) == (0, True), ran.stderr
    kept = {path: path.stat().st_mtime_ns for path in finished}
    assert sum(kept[path] == finished[path] for path in finished) >= len(finished) - 1  # one may have been unfinished
    refuse_doubles(folder, questions(32))


def test_a_problem_that_fails_keeps_its_block_open_and_costs_the_others_nothing(server, address, tmp_path):
    def picky(number, body, request):
        asked = body["messages"][-1]["content"]
        return error(400, "not this one") if "What is 5 +" in asked else obliging(number, body, request)

    server.behave, folder = picky, tmp_path / "shards"
    done = sample_shards(config_of(server), questions(8), folder, RayOptions(address, 2, 4))
    assert list(done.progress.failed) == ["q5"]
    assert done.finished == 1
    assert len(source_of(folder).pools) == 7  # the others can be used meanwhile
    score_shards(folder, {"self-consistency": ScorerSettings()}, RayOptions(address, 2))
    server.behave, asked = obliging, len(server.requests)
    again = sample_shards(config_of(server), questions(8), folder, RayOptions(address, 2, 4))
    assert (again.finished, again.progress.saved) == (2, PATHS)
    assert len(server.requests) - asked <= 2
    refuse_doubles(folder, questions(8))
    pools = [pool for path in shard_files(folder) for pool in read_parquet(path).pools]
    unscored = [pool.problem.id for pool in pools if "self-consistency" not in pool.paths[0].scores]
    assert unscored == ["q5"]  # what scores the others were given is kept


def test_an_endpoint_that_refuses_everybody_ends_the_work_in_one_line(server, address, tmp_path):
    server.behave = lambda *_: error(401, "who are you")
    with pytest.raises(EndpointRefused, match="401: who are you; set OPENAI_API_KEY"):
        sample_shards(config_of(server), questions(8), tmp_path / "shards", RayOptions(address, 2, 4))


def test_a_key_reaches_the_model_and_nothing_else_and_requests_are_counted_over_all_workers(
    server, address, machines, tmp_path, monkeypatch
):
    """The key is in every request, and in no file that Ray or the workers write."""
    key = "sk-ray-0123456789abcdefghij"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    server.delay = 0.05
    sample_shards(config_of(server, concurrency=6), questions(24), tmp_path / "shards", RayOptions(address, 2, 3))
    assert 2 < server.busiest <= 6
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {key}"}
    written = [path for folder in (machines.folder, tmp_path) for path in folder.rglob("*") if path.is_file()]
    assert len(written) > 10
    assert not [path for path in written if key.encode() in path.read_bytes()]


def test_the_embedded_model_under_two_workers_says_what_it_says_in_one_process(address, tmp_path):
    problems = dm.datasets.load("builtin:addition", limit=6)
    config = Config(paths=2, max_tokens=12, repeatable=True)
    config.pipeline(config.backend()).run(problems, tmp_path / "plain.db")
    done = sample_shards(config, problems, tmp_path / "shards", RayOptions(address, 2, 2))
    assert done.progress.saved == 12
    expected, sampled = dm.read_pools(tmp_path / "plain.db", texts=True), source_of(tmp_path / "shards")
    assert texts(sampled) == texts(expected)
    assert sampled.description == expected.description
