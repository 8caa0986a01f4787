"""`--engine ray` where Ray is not installed, or where it makes no sense: one line, and nothing is made."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

import demur as dm
from demur.descriptions import Description
from demur.pipeline.ray import sampling
from demur.pipeline.shards import Manifest, opened
from demur.pools.parquet import write_parquet
from demur.pools.provenance import Provenance
from demur.records import Path as ReasoningPath
from demur.store import Run

SAMPLE = ("sample", "builtin:addition", "--limit", 2)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((*SAMPLE, "-o", "run.db", "--engine", "ray"), "works on a folder of shards, and run.db is none"),
        ((*SAMPLE, "-o", "postgresql://h/d", "--engine", "ray"), "works on a folder of shards"),
        ((*SAMPLE, "-o", "s", "--engine", "spark"), "--engine is local or ray, got 'spark'"),
        ((*SAMPLE, "-o", "run.db", "--ray-address", "auto"), "--ray-address and --ray-workers go with --engine ray"),
        ((*SAMPLE, "-o", "run.db", "--ray-workers", 2), "--ray-address and --ray-workers go with --engine ray"),
        ((*SAMPLE, "-o", "run.db", "--block", 8), "--block goes with --engine ray"),
        ((*SAMPLE, "-o", "s", "--engine", "ray", "--block", 0), "block must be at least 1, got 0"),
        ((*SAMPLE, "-o", "s", "--engine", "ray", "--dry-run"), "leave --engine ray out"),
        (("score", "none", "--engine", "ray", "--score", "self-consistency"), "none is no folder of shards"),
        (("score", "run.db", "--engine", "ray", "--score", "self-consistency"), "works on a folder of shards"),
        (("score", "s", "--engine", "ray", "--list"), "--list, --forget and --run go without --engine ray"),
        (("answers", "pools.jsonl", "--engine", "ray"), "works on a folder of shards"),
        (("answers", "s", "--engine", "ray", "--explain"), "go without --engine ray"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(demur, arguments, told):
    ran = demur(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed here")
def test_without_ray_the_command_that_installs_it_is_named(demur):
    ran = demur(*SAMPLE, "-o", "s", "--engine", "ray")
    assert (ran.code, ran.out) == (2, "")
    assert "a cluster needs Ray Data; install it with:" in ran.err.splitlines()[-1]


def test_a_rule_that_stops_is_refused_where_engines_of_the_cluster_draw(demur, tmp_path, monkeypatch):
    """A rule that never stops is not: with that one the command comes as far as the folder."""
    monkeypatch.setattr(sampling, "ray_library", lambda: None)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "mine.parquet").write_bytes(b"PAR1 PAR1")
    asked = (*SAMPLE, "--model", "org/model", "--paths", 8, "-o", "s", "--engine", "ray", "--stop")
    ran = demur(*asked, "beta:0.95")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "draws all paths of a block at once" in ran.err
    assert "leave --stop out, or name a server with --base-url" in ran.err
    assert "holds Parquet files that are no shards" in demur(*asked, "fixed").err


def test_a_folder_of_shards_is_scored_by_the_cluster_or_in_a_run(demur, tmp_path):
    (tmp_path / "shards").mkdir()
    ran = demur("score", "shards", "--score", "self-consistency")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "score a folder of shards with --engine ray, or make it a run with `demur import`" in ran.err


def test_a_folder_of_shards_is_imported_one_shard_at_a_time_and_once(demur, tmp_path):
    (tmp_path / "shards").mkdir()
    for block in range(3):
        pools = [dm.Pool(dm.Problem(f"q{block}-{k}", "What?", ("1",)), (ReasoningPath("1"),)) for k in range(4)]
        write_parquet(pools, tmp_path / "shards" / f"block-{block:06d}.parquet")
    first = demur("import", "shards", "-o", "run.db", "--json").json
    assert (first["problems"], first["new_paths"]) == (12, 12)
    assert demur("import", "shards", "-o", "run.db", "--json").json["new_paths"] == 0
    assert len(dm.read_pools(tmp_path / "run.db").pools) == 12


def test_shards_whose_sampling_is_not_finished_are_not_imported_or_calibrated_as_all(demur, tmp_path):
    problems = [dm.Problem(f"q{k}", f"What is {k}?", ("1",)) for k in range(20)]
    with opened(tmp_path / "shards", Manifest(Description({"model": "m"}), 2, 0), problems, 10) as folder:
        pools = [dm.Pool(problem, (ReasoningPath("1"), ReasoningPath("1"))) for problem in problems[:10]]
        write_parquet(pools, folder.shard(folder.blocks[0]))
    for arguments in (("import", "shards", "-o", "run.db"), ("calibrate", "shards", "--alpha", 0.3, "-o", "p.json")):
        ran = demur(*arguments)
        assert (ran.code, ran.out) == (2, "")
        assert "10 of 20 problems of the shards in shards lack paths" in ran.err
        assert ("--partial" in ran.err) == (arguments[0] == "calibrate")
    assert not (tmp_path / "run.db").exists()
    ran = demur("calibrate", "shards", "--alpha", 0.3, "--partial", "-o", "p.json")
    assert ran.code == 0
    assert "10 of 20 problems of the shards in shards lack paths and are left out" in ran.err


@pytest.fixture
def half(demur, tmp_path):
    """A folder in which one of two blocks is sampled."""
    problems = [dm.Problem(f"q{k}", f"What is {k}?", ("1",)) for k in range(20)]
    with opened(tmp_path / "shards", Manifest(Description({"model": "m"}), 2, 0), problems, 10) as folder:
        pools = [dm.Pool(problem, (ReasoningPath("1"), ReasoningPath("1"))) for problem in problems[:10]]
        write_parquet(pools, folder.shard(folder.blocks[0]))
    return "shards"


@pytest.mark.parametrize("name", ["keyed.parquet", "keyed.jsonl", "keyed.jsonl.gz", "keyed.csv"])
def test_answers_of_half_a_sampling_are_refused_and_a_copy_says_what_is_left_out(demur, half, tmp_path, name):
    for arguments in (("answers", half), ("answers", half, "-o", name)):
        ran = demur(*arguments)
        assert (ran.code, ran.out) == (2, "")
        assert "10 of 20 problems of the shards in shards lack paths" in ran.err
        assert "or leave it out with --partial" in ran.err
    ran = demur("answers", half, "--partial", "-o", name)
    assert ran.code == 0
    assert "note: 10 of 20 problems of the shards in shards lack paths and are left out" in ran.err
    for arguments in (("import", name, "-o", "run.db"), ("calibrate", name, "--alpha", 0.3, "-o", "p.json")):
        ran = demur(*arguments)
        assert (ran.code, ran.out) == (2, "")
        assert f"10 problems lacked paths when {name} was made" in ran.err
    again = demur("answers", name, "--partial", "-o", "again.parquet")
    assert again.code == 0
    assert demur("calibrate", "again.parquet", "--alpha", 0.3, "--partial", "--json").json["left_out"] == 10
    assert not (tmp_path / "run.db").exists()
    assert demur("answers", half, "--explain", "--problem", "q3").code == 0  # one path can be looked at


def test_a_study_refuses_a_cell_of_half_a_sampling_by_name_and_goes_on_when_told(demur, half, tmp_path):
    study = '[study]\nalphas = [0.3]\nn_cal = 5\nsplits = 3\n[[cells]]\ndataset = "d"\nmodel = "m"\npools = "shards"\n'
    (tmp_path / "study.toml").write_text(study)
    ran = demur("study", "study.toml", "--no-figures")
    assert ran.code == 1
    assert "d / m: 10 of 20 problems of the shards in shards lack paths" in ran.out
    assert "or leave it out with partial=True" in ran.out
    ran = demur("study", "study.toml", "--no-figures", "--partial")
    assert ran.code == 0, ran.err
    assert "10 of 20 problems of the shards in shards lack paths and are left out" in ran.err
    (tmp_path / "study.toml").write_text(study + "partial = true\n")
    assert demur("study", "study.toml", "--no-figures").code == 0


@pytest.mark.parametrize("shards", [1, 5])
def test_a_run_is_counted_as_often_for_many_shards_as_for_one(demur, tmp_path, monkeypatch, shards):
    counted = []
    for name in ("summary", "numbers", "add_problems"):
        plain = getattr(Run, name)
        monkeypatch.setattr(Run, name, lambda *given, _plain=plain, _name=name: counted.append(_name) or _plain(*given))
    (tmp_path / "shards").mkdir()
    for block in range(shards):
        write_parquet([dm.Pool(dm.Problem(f"q{block}"), (ReasoningPath("1"),))], tmp_path / "shards" / f"{block}.pq")
    assert demur("import", "shards", "-o", "run.db", "--json").json["new_paths"] == shards
    assert sorted(counted) == ["add_problems", "numbers", "numbers", "summary", "summary"]


def test_shards_made_in_several_ways_are_not_imported_in_part(demur, tmp_path):
    (tmp_path / "shards").mkdir()
    for model in ("k", "m"):
        pools = [dm.Pool(dm.Problem(f"of-{model}"), (ReasoningPath("1"),))]
        write_parquet(pools, tmp_path / "shards" / f"{model}.parquet", Provenance(Description({"model": model})))
    ran = demur("import", "shards", "-o", "run.db")
    assert (ran.code, ran.out) == (2, "")
    assert "made in several ways: sampling.model is 'k' in the first shard, 'm' in another" in ran.err
    with dm.Store("run.db") as store:
        assert store.run().summary()["paths"] == 0
