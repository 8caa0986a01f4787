"""An output takes the place of its own kind only: stores, policies, pages and whatever else lies there stay."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pytest

from demur.cli.replacing import LINES, PAGE, PARQUET, POLICY, POOLS, kind_of, written_as

CONTENTS = {
    "notes": b"remember the milk\n",
    "settings": b'{\n "a": 1\n}\n',
    "array": b"[1, 2]\n",
    "binary": bytes(range(256)),
    "damaged gzip": b"\x1f\x8b\x08 no gzip at all",
    "program": b"import os\n",
}


@pytest.fixture
def things(demur, pools, tmp_path):
    """One file of each kind that demur writes, by kind."""
    assert demur("calibrate", pools, "--score", "simulated", "--alpha", 0.1, "-o", "policy.json").code == 0
    assert demur("decide", pools, "--policy", "policy.json", "-o", "decisions.jsonl").code == 0
    assert demur("report", pools, "--score", "simulated", "--alpha", 0.1, "-o", "report.html").code == 0
    assert demur("simulate", "-n", 5, "-o", "packed.jsonl.gz").code == 0
    (tmp_path / "table.parquet").write_bytes(b"PAR1 and so on")
    with sqlite3.connect(tmp_path / "run.db") as store:
        store.execute("CREATE TABLE t (x)")
    return {
        POLICY: "policy.json",
        LINES: "decisions.jsonl",
        PAGE: "report.html",
        POOLS: "packed.jsonl.gz",
        PARQUET: "table.parquet",
        "a store of runs": "run.db",
    }


def commands(source, out):
    return {
        POLICY: ("calibrate", source, "--score", "simulated", "--alpha", 0.1, "-o", out),
        LINES: ("decide", source, "--policy", "kept.json", "-o", out),
        PAGE: ("report", source, "--score", "simulated", "--alpha", 0.1, "-o", out),
        POOLS: ("simulate", "-n", 5, "-o", out),
    }


def test_every_kind_is_known_by_its_content(things, tmp_path):
    assert {kind: kind_of(tmp_path / name) for kind, name in things.items()} == {kind: kind for kind in things}
    (tmp_path / "empty").touch()
    assert kind_of(tmp_path / "empty") is None


def test_an_output_replaces_its_own_kind_and_no_other(demur, pools, things, tmp_path):
    (tmp_path / "kept.json").write_bytes((tmp_path / "policy.json").read_bytes())
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(content)
    for kind, target in [*things.items(), *((None, name) for name in CONTENTS)]:
        before = (tmp_path / target).read_bytes()
        for writes, command in commands(pools, target).items():
            if kind == (written_as(Path(target)) if writes == POOLS else writes):
                continue
            ran = demur(*command)
            assert ran.code == 2, command
            assert "is there already and holds" in ran.err
            assert ran.err.count("\n") == 1
            assert (tmp_path / target).read_bytes() == before
    for kind, command in {kind: commands(pools, things[kind])[kind] for kind in (POLICY, LINES, PAGE, POOLS)}.items():
        assert demur(*command).code == 0, kind


def test_a_packed_policy_is_still_a_policy(demur, pools, things, tmp_path):
    (tmp_path / "packed").write_bytes(gzip.compress((tmp_path / "policy.json").read_bytes()))
    assert kind_of(tmp_path / "packed") == POLICY


def test_what_is_written_to_a_device_is_let_through(demur, pools):
    assert demur("calibrate", pools, "--score", "simulated", "--alpha", 0.1, "-o", "/dev/null").code == 0


def test_results_of_a_study_take_the_place_of_no_store(demur, pools, tmp_path):
    (tmp_path / "s.toml").write_text(
        '[study]\nname = "s"\n\n[[cells]]\ndataset = "d"\nmodel = "m"\npools = "pools.jsonl"\n'
    )
    demur("import", pools, "-o", "run.db")
    for place in ("results.md", "tables/grid.csv"):
        target = tmp_path / "out" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((tmp_path / "run.db").read_bytes())
        ran = demur("study", "s.toml", "-o", "out", "--no-figures")
        assert ran.code == 2
        assert "a store of runs, which results would replace" in ran.err
        assert target.read_bytes() == (tmp_path / "run.db").read_bytes()
        target.unlink()
