"""`calibrate --outlier-level`, and what the verbs behind it say of questions that are unlike the calibration ones."""

from __future__ import annotations

import json

import numpy as np
import pytest

THINGS = ["apples", "coins", "pencils", "marbles", "stamps"]
ODD = "Quelle est la capitale du pays numéro {} au siècle dernier, et pourquoi donc ?"


def write(path, seed, n, odd=0):
    """Pools on sums, and behind them some on questions of another kind, on which all paths agree."""
    rng, lines = np.random.default_rng(seed), []
    for row in range(n + odd):
        strange = row >= n
        text = (
            f"Ann has {rng.integers(10 ** rng.integers(2, 9))} {rng.choice(THINGS)} and buys {rng.integers(10**6)} more"
            f"{' on a rainy day' * rng.integers(4)}. How many has she?"
        )
        good = 1 if strange else rng.uniform(0.3, 1)
        paths = [{"answer": "7" if rng.random() < good else str(rng.integers(5))} for _ in range(8)]
        asked = ODD.format(rng.integers(10**6)) if strange else text
        lines.append(
            json.dumps({"id": f"{path.stem}-{row}", "task": "math", "question": asked, "gold": "7", "paths": paths})
        )
    path.write_text("\n".join(lines) + "\n")
    return path.name


@pytest.fixture
def files(demur, tmp_path):
    return write(tmp_path / "pools.jsonl", 1, 240), write(tmp_path / "new.jsonl", 2, 100, odd=10)


def test_from_calibration_to_decisions_audit_and_report(demur, files, tmp_path):
    pools, new = files
    ran = demur("calibrate", pools, "--outlier-level", "0.05", "--alpha", "0.1", "-o", "policy.json")
    assert ran.code == 0, ran.err
    assert "by their rank among 120 of these: at most 0.05 of questions like them" in ran.out
    assert "unlike that of the calibration questions, or missing" in ran.out
    facts = demur("calibrate", pools, "--outlier-level", "0.05", "--alpha", "0.1", "--json").json
    assert facts["outlier_level"] == 0.05
    assert demur("calibrate", pools, "--alpha", "0.1", "-o", "plain.json").code == 0
    ran = demur("decide", new, "--policy", "policy.json", "-o", "decisions.jsonl")
    assert "questions are unlike the calibration questions" in ran.out + ran.err
    lines = [json.loads(line) for line in (tmp_path / "decisions.jsonl").read_text().splitlines()]
    assert all(line["answer"] is None and line["outlier_p_value"] == 1 / 121 for line in lines[-10:])
    assert all("unlike the calibration questions" in line["explanation"] for line in lines[-10:])
    assert any(line["answer"] is not None for line in lines)
    gated, plain = (demur("decide", new, "--policy", f"{name}.json", "--json").json for name in ("policy", "plain"))
    assert gated["outliers"] >= 10
    assert "outliers" not in plain
    assert (gated["threshold"], gated["n_answered"] < plain["n_answered"]) == (plain["threshold"], True)
    assert all(line["answer"] in (None, other["answer"]) for line, other in zip(lines, plain["decisions"], strict=True))
    audit = demur("audit", new, "--policy", "policy.json")
    assert "abstaining on outliers makes them no more" in audit.out
    assert f"{gated['outliers']} questions are unlike the calibration questions" in audit.out + audit.err
    ran = demur("report", new, "--policy", "policy.json", "-o", "report.html")
    assert ran.code == 0, ran.err
    assert "unlike the calibration questions" in (tmp_path / "report.html").read_text()


def test_what_does_not_survive_it_is_refused_in_one_line_that_names_the_other_flag(demur, files):
    pools, new = files
    for arguments in (("--selective", "--delta", "0.1"), ("--answer-sets", "0.2")):
        ran = demur("calibrate", pools, "--outlier-level", "0.05", "--alpha", "0.1", *arguments)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran.err
        assert "give questions that calibrate nothing as --gate, which is part of the key" in ran.err
        assert "in place of --outlier-level" in ran.err
    assert demur("calibrate", pools, "--outlier-level", "0.05", "--alpha", "0.1", "-o", "policy.json").code == 0
    ran = demur("decide", new, "--policy", "policy.json", "--fdr", "0.1")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "as --gate" in ran.err


def test_bad_levels_and_too_few_questions_or_none_are_named(demur, files, tmp_path):
    for level, told in (("0", "strictly between 0 and 1"), ("0.001", "needs 1998; give more, or a larger --outlier")):
        ran = demur("calibrate", files[0], "--outlier-level", level)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert told in ran.err
    lines = [json.loads(line) for line in (tmp_path / "pools.jsonl").read_text().splitlines()]
    (tmp_path / "blank.jsonl").write_text("".join(json.dumps({**line, "question": None}) + "\n" for line in lines))
    ran = demur("calibrate", "blank.jsonl", "--outlier-level", "0.05")
    assert "240 of 240 calibration questions have no text" in ran.err
    assert demur("calibrate", files[0], "--outlier-level", "0.05", "--alpha", "0.1", "-o", "policy.json").code == 0
    ran = demur("decide", "blank.jsonl", "--policy", "policy.json")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "no question is known by its text" in ran.err
