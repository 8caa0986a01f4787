"""Answers of shards put into classes: what workers write, without a cluster."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace

import pytest

import demur as dm
from demur.answers.relations import mathematics, text
from demur.descriptions import Description
from demur.engine.ray.cluster import Cluster
from demur.errors import MissingExtra, PoolFileError
from demur.pipeline.ray import classing
from demur.pipeline.shards import Manifest, opened
from demur.pools.fields import FieldChoice
from demur.pools.parquet import read_parquet, write_parquet
from demur.pools.provenance import Provenance
from demur.records import Path as ReasoningPath


def pools_of(task, numbers):
    paths = tuple(ReasoningPath(answer) for answer in ("1/2", "0.5", "A"))
    return [dm.Pool(dm.Problem(f"{task}{k}", f"What is {k}?", extra={"task": task}), paths) for k in numbers]


def replace_id(pool, name):
    return replace(pool, problem=replace(pool.problem, id=f"{name}-{pool.problem.id}"))


@pytest.fixture
def shards(tmp_path, monkeypatch):
    """Two shards, each of a task of its own; their work is done in this process."""

    def here(work, todo, crew, surroundings):
        work.open()
        yield from map(work.do, todo)

    monkeypatch.setattr(classing, "ray_library", lambda: None)
    monkeypatch.setattr(classing, "cluster", lambda *_, **__: nullcontext(Cluster(1, 0, 0.0)))
    monkeypatch.setattr(classing, "work_through", here)
    folder = tmp_path / "shards"
    folder.mkdir()
    for task in ("math", "mc"):
        write_parquet(pools_of(task, range(2)), folder / f"{task}.parquet")
    return folder


def test_every_shard_says_how_the_keys_of_the_whole_folder_are_made(shards, tmp_path):
    """Also where the input has keys of another relation, which are not passed on as these."""
    write_parquet(
        pools_of("math", range(2)),
        shards / "math.parquet",
        Provenance(keys={"field": "answer", "missing": [], "relation": "plain@1"}),
    )
    classing.class_shards(shards, tmp_path / "out", FieldChoice())
    both = [pool.problem for pool in pools_of("math", [0]) + pools_of("mc", [0])]
    classed = read_parquet(tmp_path / "out")
    assert classed.provenance.keys == FieldChoice().describe(both)
    assert [path.extra["key"] for path in classed.pools[0].paths][:2] == ["n:1/2", "n:1/2"]
    assert "key" in classed.pools.columns.names


def test_keys_of_another_version_are_refused_unless_they_are_to_be_replaced(shards, tmp_path):
    old = {"field": "answer", "missing": [], "relation": "mathematics@0"}
    write_parquet(pools_of("math", range(2)), shards / "math.parquet", Provenance(keys=old))
    with pytest.raises(PoolFileError, match="holds keys of the relation mathematics@0"):
        classing.class_shards(shards, tmp_path / "out", FieldChoice())
    assert not (tmp_path / "out").exists()
    classing.class_shards(shards, tmp_path / "out", FieldChoice(), rekey=True)
    assert "mathematics@0" not in read_parquet(tmp_path / "out").provenance.keys["relation"]


def test_a_folder_with_keys_of_several_versions_is_refused_by_file_and_made_again_on_request(shards, tmp_path):
    """As without a cluster: the same words, of the whole folder."""
    ours = {"field": "answer", "missing": [], "relation": "mathematics@1"}
    for name, version in (("math", 0), ("more", 1)):
        known = Provenance(keys={**ours, "relation": f"mathematics@{version}"})
        write_parquet(
            [replace_id(pool, name) for pool in pools_of("math", range(2))], shards / f"{name}.parquet", known
        )
    (shards / "mc.parquet").unlink()
    with pytest.raises(PoolFileError) as refused:
        classing.class_shards(shards, tmp_path / "out", FieldChoice())
    told = "holds keys of the relation mathematics@0 in math.parquet, of mathematics@1 in more.parquet, and this demur"
    assert told in str(refused.value)
    assert f"`demur answers {shards}` with rekey=True" in str(refused.value)
    with pytest.raises(PoolFileError) as plain:
        dm.vote_pools(dm.read_pools(shards), labelled=False)
    assert str(plain.value) == str(refused.value)
    assert not (tmp_path / "out").exists()
    classing.class_shards(shards, tmp_path / "out", FieldChoice(), rekey=True)
    again = read_parquet(tmp_path / "out")
    assert again.provenance.keys["relation"] == FieldChoice().describe([pools_of("math", [0])[0].problem])["relation"]
    assert len(dm.vote_pools(dm.read_pools(tmp_path / "out"), labelled=False).votes) == 4


def test_nothing_is_made_without_ray(shards, tmp_path, monkeypatch):
    def absent():
        raise MissingExtra("a cluster needs Ray Data", "ray")

    monkeypatch.setattr(classing, "ray_library", absent)
    with pytest.raises(MissingExtra):
        classing.class_shards(shards, tmp_path / "out", FieldChoice())
    assert not (tmp_path / "out").exists()


def test_a_shard_is_made_again_when_what_it_was_made_from_is_newer(shards, tmp_path):
    assert classing.class_shards(shards, tmp_path / "out", FieldChoice()).problems == 4
    write_parquet(pools_of("math", range(3)), shards / "math.parquet")
    made = (tmp_path / "out" / "math.parquet").stat().st_mtime_ns
    os.utime(shards / "math.parquet", ns=(made + 10**9, made + 10**9))
    again = classing.class_shards(shards, tmp_path / "out", FieldChoice())
    assert (again.problems, again.already) == (3, 1)
    assert len(read_parquet(tmp_path / "out").pools) == 5


def sampled(folder, numbers, model="m"):
    """A sampling of four problems in two blocks, of which some are finished."""
    problems = [pool.problem for pool in pools_of("math", range(4))]
    with opened(folder, Manifest(Description({"model": model}), 3, 0), problems, 2) as shards:
        for number in numbers:
            block = shards.blocks[number]
            paths = pools_of("math", [0])[0].paths
            known = Provenance(Description({"model": model}))
            write_parquet([dm.Pool(one, paths) for one in block.problems], shards.shard(block), known)


def test_shards_whose_sampling_is_not_finished_are_refused_and_what_is_made_of_a_part_says_so(shards, tmp_path):
    half, out = tmp_path / "half", tmp_path / "out"
    sampled(half, [0])
    for place in (None, out):
        with pytest.raises(PoolFileError, match=r"2 of 4 problems .* lack paths.*or leave it out with partial=True"):
            classing.class_shards(half, place, FieldChoice())
    assert not out.exists()
    said = []
    part = classing.class_shards(half, out, FieldChoice(), partial=True, say=said.append)
    assert (part.problems, said[0].startswith("note: 2 of 4 problems")) == (2, True)
    with pytest.raises(PoolFileError, match=r"2 of 4 problems of the shards in .*out lack paths"):
        dm.read_pools(out)
    sampled(half, [1])
    with pytest.raises(PoolFileError, match=r"2 of 4 problems of the shards in .*out lack paths"):
        dm.read_pools(out)
    classing.class_shards(half, out, FieldChoice())
    assert (len(dm.read_pools(out).pools), dm.read_pools(out).left_out) == (4, 0)


def test_answers_of_another_sampling_are_not_taken_for_these(shards, tmp_path):
    sampled(tmp_path / "a", [0, 1])
    sampled(tmp_path / "b", [0, 1], model="other")
    classing.class_shards(tmp_path / "a", tmp_path / "out", FieldChoice())
    with pytest.raises(PoolFileError, match="made another way; choose another folder"):
        classing.class_shards(tmp_path / "b", tmp_path / "out", FieldChoice())


SAID = {"task": "math", "extract": mathematics.spec}


@pytest.fixture
def described(shards):
    """A folder of shards that say how they were sampled and read."""
    (shards / "mc.parquet").unlink()
    known = Provenance(Description({"model": "small"}, {**SAID, "markers": ["Total:"]}))
    write_parquet(pools_of("math", range(2)), shards / "math.parquet", known)
    write_parquet(pools_of("math", range(2, 4)), shards / "more.parquet", known)
    return shards


def test_shards_keep_how_their_answers_were_read(described, tmp_path):
    classing.class_shards(described, tmp_path / "out", FieldChoice())
    assert read_parquet(tmp_path / "out").provenance.description == read_parquet(described).provenance.description


def test_shards_that_are_read_anew_say_so_and_their_problems_name_the_task(described, tmp_path):
    classing.class_shards(described, tmp_path / "out", FieldChoice(task="qa"), from_texts=True)
    made = read_parquet(tmp_path / "out")
    assert made.provenance.description.answers == {"task": "qa", "extract": text.spec}
    assert {pool.problem.extra["task"] for pool in made.pools} == {"qa"}
    with pytest.raises(PoolFileError, match="made another way"):
        classing.class_shards(described, tmp_path / "out", FieldChoice(task="qa"), extract="x")
