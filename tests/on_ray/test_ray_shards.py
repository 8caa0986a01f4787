"""Scores and answers of shards over a real cluster: those of the plain engine, and paid for once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import demur as dm
from demur.errors import InvalidValue, PoolFileError
from demur.pipeline.ray.classing import class_shards
from demur.pipeline.ray.sampling import RayOptions
from demur.pipeline.ray.scoring import score_shards
from demur.pipeline.shards import shard_files
from demur.pools.fields import FieldChoice
from demur.pools.parquet import read_parquet, write_parquet
from demur.pools.reading import AnswerReader
from demur.records import Path as ReasoningPath
from demur.scoring.self_consistency import SelfConsistency
from demur.scoring.settings import ScorerSettings
from loopback import choice, reply


def pools_of(numbers):
    return [
        dm.Pool(
            dm.Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}),
            tuple(ReasoningPath(None, f"{k} and {j % 2} make\nThe answer is {k + 1 + j % 2}.") for j in range(4)),
        )
        for k in numbers
    ]


@pytest.fixture
def shards(tmp_path) -> Path:
    folder = tmp_path / "shards"
    folder.mkdir()
    for block in range(4):
        write_parquet(pools_of(range(6 * block, 6 * block + 6)), folder / f"block-{block:06d}.parquet")
    return folder


def all_pools(folder):
    return [pool for path in shard_files(folder) for pool in read_parquet(path).pools]


def test_self_consistency_is_that_of_the_plain_scorer_and_is_computed_once(shards, address):
    done = score_shards(shards, {"self-consistency": ScorerSettings()}, RayOptions(address, 2))
    assert done.progress["self-consistency"].saved == 24 * 4
    for pool in all_pools(shards):
        assert [path.scores["self-consistency"] for path in pool.paths] == SelfConsistency().score(pool)
    before = {path: path.read_bytes() for path in shard_files(shards)}
    again = score_shards(shards, {"self-consistency": ScorerSettings()}, RayOptions(address, 2))
    assert again.progress["self-consistency"].wanted == 0
    assert {path: path.read_bytes() for path in before} == before
    known = read_parquet(shard_files(shards)[0]).provenance.scorers["self-consistency"]
    assert known == {**SelfConsistency().identity(), "normaliser": "pool_z"}


def judging(number, body, request):
    """A judge that says Y the surer, the longer the chat."""
    top = [{"token": "Y", "logprob": -len(json.dumps(body["messages"])) / 1e4}, {"token": "N", "logprob": -8.0}]
    content = [{"token": "Y", "logprob": top[0]["logprob"], "top_logprobs": top}]
    return reply({**choice("Y"), "logprobs": {"content": content}})


def test_a_judge_asks_once_per_path_and_only_for_what_is_missing(shards, address, server):
    server.behave = judging
    settings = ScorerSettings(base_url=server.url, model="j", route="chat")
    first, second = shard_files(shards)[:2]
    aside = shards.parent / first.name
    first.rename(aside)
    score_shards(shards, {"judge": settings}, RayOptions(address, 2))
    asked = len(server.requests)
    assert asked >= 18 * 4
    aside.rename(first)
    done = score_shards(shards, {"judge": settings}, RayOptions(address, 2))
    assert done.progress["judge"].saved == 6 * 4
    assert len(server.requests) - asked <= 6 * 4 + 4  # and a few to find out what the server can do
    scores = [path.scores["judge"] for pool in all_pools(shards) for path in pool.paths]
    assert len(set(scores)) > 1
    other = score_shards(
        shards, {"judge": ScorerSettings(base_url=server.url, model="k", route="chat")}, RayOptions(address, 2)
    )
    assert other.progress["judge"].name == "judge-2"
    assert set(read_parquet(second).provenance.scorers) == {"judge", "judge-2"}


def test_answers_of_shards_are_those_that_the_plain_reader_finds(shards, address, tmp_path):
    done = class_shards(shards, tmp_path / "classed", FieldChoice(), from_texts=True, options=RayOptions(address, 2))
    reader = AnswerReader(FieldChoice(), None, True)
    for pool in all_pools(shards):
        reader.read(pool)
    assert (done.reader.methods, done.reader.without, done.problems) == (reader.methods, reader.without, 24)
    assert done.classes.classes == 24 * 2
    assert {path.extra["key"] for path in all_pools(tmp_path / "classed")[0].paths} == {"n:1", "n:2"}
    again = class_shards(shards, tmp_path / "classed", FieldChoice(), from_texts=True, options=RayOptions(address, 2))
    assert (again.already, again.progress.wanted) == (4, 0)
    with pytest.raises(PoolFileError, match="made another way; choose another folder"):
        class_shards(shards, tmp_path / "classed", FieldChoice(), options=RayOptions(address, 2))
    with pytest.raises(InvalidValue, match="is an input of this command"):
        class_shards(shards, shards, FieldChoice(), options=RayOptions(address, 2))


def test_a_disk_that_takes_no_more_ends_the_work_and_spoils_no_shard(shards, address, tmp_path, monkeypatch):
    """A score of one's own that lets its process write no further byte: what was there stays as it was."""
    (tmp_path / "full.py").write_text(
        "import resource\n\n\ndef fill(pool):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))\n"
        "    return [0.0 for _ in pool.paths]\n"
    )
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in shard_files(shards)}
    with pytest.raises(PoolFileError, match=r"cannot write .*block-00000\d.parquet: .*File too large"):
        score_shards(shards, {"full:fill": ScorerSettings()}, RayOptions(address, 2))
    assert {path: path.read_bytes() for path in shard_files(shards)} == before


def test_an_id_in_two_shards_is_named(shards, address):
    write_parquet(pools_of([3]), shards / "more.parquet")
    with pytest.raises(PoolFileError, match=r"the id 'q3' stands in .*block-000000.parquet and in more.parquet"):
        score_shards(shards, {"self-consistency": ScorerSettings()}, RayOptions(address, 2))
