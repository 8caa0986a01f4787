"""Whatever a verb prints or writes as JSON is JSON: with a policy that never answers, and on pools that hold NaN."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from pathlib import Path

import pytest

from demur.cli import app
from demur.files.strict_json import parse

NEVER = ["--score", "simulated", "--tie-break", "mean_score", "--alpha", 0.001]
NAN, INFINITE = float("nan"), float("inf")

VERBS = {
    "answers": ["odd.jsonl", "-o", "copy.jsonl"],
    "audit": ["odd.jsonl", "--policy", "policy.json"],
    "calibrate": ["calibration.jsonl", *NEVER, "-o", "again.json"],
    "cascade": ["calibration.jsonl", "calibration.jsonl", "--alpha", 0.001, "-o", "cascade.json"],
    "decide": ["odd.jsonl", "--policy", "policy.json", "-o", "decisions.jsonl.gz"],
    "evaluate": ["odd.jsonl", *NEVER, "--splits", 3],
    "export": ["run.db", "-o", "exported.jsonl"],
    "import": ["odd.jsonl", "-o", "other.db"],
    "label": ["odd.jsonl", *NEVER, "-o", "labels.jsonl", "--out-sheet", "sheet.jsonl"],
    "plan": ["--alpha", 0.001],
    "report": ["odd.jsonl", "--policy", "policy.json", "-o", "report.html"],
    "runs": ["run.db"],
    "score": ["run.db", "--list"],
    "shift": ["odd.jsonl", "--reference", "calibration.jsonl", "-o", "shift.json"],
    "simulate": ["-n", 5, "-m", 3, "-o", "simulated.jsonl"],
    "study": ["study.toml", "--no-figures", "-o", "results"],
    "tune": ["calibration.jsonl", "--alpha", 0.1, "-o", "tuned.json"],
}
ELSEWHERE = {"ask", "demo", "doctor", "judge-labels", "keys", "models", "recalibrate", "sample", "serve"}
"""Verbs that ask a model or a service; what these write goes through the same function."""


def strict(text):
    """The value of a text which must be JSON."""
    return parse(text, finite=True)


def everything_in(folder):
    """Every text under a folder that should be JSON, with where it stands."""
    for path in sorted(Path(folder).rglob("*")):
        if path.suffix == ".db":
            yield from stored(path)
        elif path.suffix == ".html":
            yield path.name, re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', path.read_text())[1]
        elif path.suffix in (".json", ".gz", ".jsonl"):
            text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
            yield from ((path.name, line) for line in ([text] if path.suffix == ".json" else text.splitlines()))


def stored(path):
    """The texts of a database that look like JSON."""
    with sqlite3.connect(path) as connection:
        for (table,) in connection.execute("select name from sqlite_master where type = 'table'").fetchall():
            for row in connection.execute(f"select * from {table}"):
                yield from ((f"{path.name}, {table}", value) for value in row if str(value)[:1] in ("{", "["))


@pytest.fixture
def odd(demur, tmp_path):
    """Pools of which some fields hold numbers that JSON does not have, a run of them, and a policy."""
    assert demur("simulate", "-o", "calibration.jsonl", "-n", 120, "-m", 5, "--seed", 1).code == 0
    assert demur("simulate", "-o", "plain.jsonl", "-n", 30, "-m", 5, "--seed", 2).code == 0
    assert demur("calibrate", "calibration.jsonl", *NEVER, "-o", "policy.json").code == 0
    lines = []
    for number, line in enumerate((tmp_path / "plain.jsonl").read_text().splitlines()):
        pool = json.loads(line)
        if "paths" in pool:
            pool |= {"difficulty": NAN, "from": {"year": [INFINITE, 2]}, "question": f"What is {number} + 1?"}
            pool["paths"][0]["seconds"] = -INFINITE
        lines.append(json.dumps(pool))
    (tmp_path / "odd.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "plain.jsonl").unlink()
    assert demur("import", "odd.jsonl", "-o", "run.db").code == 0
    (tmp_path / "study.toml").write_text(
        '[study]\nname = "s"\nalphas = [0.001]\nsplits = 3\nn_cal = 20\n\n'
        '[[cells]]\ndataset = "d"\nmodel = "m"\nstore = "run.db"\n'
    )
    assert "NaN" in (tmp_path / "odd.jsonl").read_text()
    return tmp_path


def test_every_verb_is_tried_here_or_asks_a_model_or_a_service():
    assert {command.name for command in app.registered_commands} == VERBS.keys() | ELSEWHERE


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_prints_and_writes_nothing_but_json(demur, odd, verb):
    ran = demur(verb, *VERBS[verb], "--json")
    assert ran.code in (0, 3), ran.err
    strict(ran.out)
    (odd / "odd.jsonl").unlink()
    written = list(everything_in(odd))
    assert len(written) > 120
    for where, text in written:
        try:
            strict(text)
        except ValueError as error:
            pytest.fail(f"{where}: {error}: {text[:300]}")


def test_a_threshold_above_every_number_is_null_in_decisions_and_the_explanation_says_why(demur, odd):
    assert demur("decide", "odd.jsonl", "--policy", "policy.json", "-o", "decisions.jsonl").code == 0
    decisions = [strict(line) for line in (odd / "decisions.jsonl").read_text().splitlines()]
    assert len(decisions) == 30
    assert all(one["threshold_key"] == [1.0, None, None] for one in decisions)
    assert all("the policy abstains always" in one["explanation"] for one in decisions)
