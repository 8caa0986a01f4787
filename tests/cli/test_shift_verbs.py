"""`demur shift`, `calibrate --shift`, `--shift-weights` and `--gate`, and what the verbs behind them say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import demur as dm
from demur.pools.parquet import write_parquet

PLACES = ["France", "Peru", "Kenya", "Norway", "Japan"]


def write(path, seed, share, n, *, labelled=True):
    """Pools of which this share is about capitals, where the model is often wrong; with known weights."""
    rng, lines = np.random.default_rng(seed), []
    for row in range(n):
        hard = bool(rng.random() < share)
        text = (
            f"What is the capital of {rng.choice(PLACES)} number {rng.integers(10**9)}?"
            if hard
            else f"Ann has {rng.integers(10**9)} apples and buys {rng.integers(99)} more. How many has she?"
        )
        good = (0.5 if hard else 0.9) * rng.uniform(0.6, 1)
        paths = [{"answer": "7" if rng.random() < good else str(rng.integers(3))} for _ in range(8)]
        known = {"gold": "7", "paths": paths, "weight": 3.5 if hard else 0.375} if labelled else {}
        lines.append(json.dumps({"id": f"{path.stem}-{row}", "task": "math", "question": text, **known}))
    path.write_text("\n".join(lines) + "\n")
    return path.name


@pytest.fixture
def files(demur, tmp_path):
    """Traffic and reference without labels; pools to calibrate on, and pools of the traffic."""
    sides = {"traffic": (1, 0.7, 200), "reference": (2, 0.2, 200)}
    texts = {name: write(tmp_path / f"{name}.jsonl", *how, labelled=False) for name, how in sides.items()}
    pools = {"pools": (3, 0.2, 300), "new": (4, 0.7, 200)}
    return texts | {name: write(tmp_path / f"{name}.jsonl", *how) for name, how in pools.items()}


def test_from_questions_to_a_policy_for_the_traffic_and_its_audit(demur, files):
    ran = demur("shift", files["traffic"], "--reference", files["reference"], "-o", "shift.json")
    assert (ran.code, ran.err) == (0, "")
    assert "AUROC of 0.7" in ran.out
    assert "weights above 10 are cut" in ran.out.lower()
    assert "do not cover a model that answers the same question otherwise" in ran.out
    ran = demur("calibrate", files["pools"], "--shift", "shift.json", "--alpha", "0.1", "-o", "policy.json")
    assert ran.code == 0, ran.err
    assert "approximately at most 0.1" in ran.out
    assert "effective sample size" in ran.out
    decided = demur("decide", files["new"], "--policy", "policy.json", "--json")
    assert 0 < decided.json["answered"] < 1
    audit = demur("audit", files["new"], "--policy", "policy.json")
    assert "No exact law is known under weights" in audit.out
    report = demur("report", files["new"], "--policy", "policy.json", "-o", "report.html")
    assert "one threshold for all questions" in report.err
    plain = demur("calibrate", files["pools"], "--alpha", "0.1", "-o", "plain.json")
    assert plain.code == 0
    wrong = [
        demur("audit", files["new"], "--policy", policy, "--json").json["points"][0]["confident_error"]
        for policy in ("plain.json", "policy.json")
    ]
    assert wrong[1] < wrong[0]


def test_a_shift_that_is_none_is_told(demur, files, tmp_path):
    like = write(tmp_path / "like.jsonl", 9, 0.2, 200, labelled=False)
    ran = demur("shift", like, "--reference", files["reference"])
    assert "No shift to see" in ran.out
    facts = demur("shift", like, "--reference", files["reference"], "--json").json
    assert facts["shift_seen"] is False
    assert {"auroc", "auroc_error", "effective_share", "clipped_traffic", "traffic", "reference"} <= set(facts)


def test_known_weights_stand_in_a_field_and_bad_ones_are_named(demur, files, tmp_path):
    ran = demur("calibrate", files["pools"], "--shift-weights", "weight", "--alpha", "0.1", "-o", "policy.json")
    assert ran.code == 0, ran.err
    assert "as much more often in use" in ran.out
    assert "approximately" not in ran.out
    assert demur("decide", files["new"], "--policy", "policy.json").code == 0
    for value, told in ((-1, "got -1"), (None, "got none"), ("much", "got 'much'")):
        lines = [json.loads(line) for line in (tmp_path / "pools.jsonl").read_text().splitlines()]
        lines[5]["weight"] = value
        (tmp_path / "bad.jsonl").write_text("\n".join(map(json.dumps, lines)))
        ran = demur("calibrate", "bad.jsonl", "--shift-weights", "weight")
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert "problem 'pools-5': its weight must be a number" in ran.err
        assert told in ran.err


def test_what_does_not_go_together_is_refused_in_one_line(demur, files):
    assert demur("shift", files["traffic"], "--reference", files["reference"], "-o", "shift.json").code == 0
    for arguments, told in (
        (("--shift", "shift.json", "--shift-weights", "weight"), "choose one"),
        (("--shift-weights", "weight", "--delta", "0.1"), "a high_probability guarantee cannot be weighted"),
        (("--shift-weights", "weight", "--chosen-from", "4"), "a choice among 4 ways to vote"),
        (("--shift-weights", "correct"), "names labels"),
        (("--shift", "pools.jsonl"), "is not"),
        (("--gate-level", "0.1"), "--gate"),
        (("--gate", "pools.jsonl"), "were fitted on calibration problems"),
    ):
        ran = demur("calibrate", files["pools"], *arguments)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran.err
        assert told in ran.err
    ran = demur("calibrate", files["traffic"].replace("traffic", "pools"), "--shift", "shift.json", "-o", "shift.json")
    assert "holds a fitted shift" in ran.err
    ran = demur("shift", files["traffic"], "--reference", files["traffic"])
    assert "in the traffic and in the reference too" in ran.err
    assert re.search(r"such as '[^']+';", ran.err)
    lines = [json.loads(line) for line in Path(files["pools"]).read_text().splitlines()]
    Path("blank.jsonl").write_text("".join(json.dumps({**line, "question": None}) + "\n" for line in lines))
    ran = demur("calibrate", "blank.jsonl", "--gate", files["reference"])
    assert "have no question text, which the gate looks at; give the questions with the pools" in ran.err


def test_a_gate_abstains_on_questions_unlike_its_reference(demur, files, tmp_path):
    sums = write(tmp_path / "sums.jsonl", 11, 0.0, 100, labelled=False)
    ran = demur("calibrate", files["pools"], "--gate", sums, "--alpha", "0.2", "-o", "policy.json")
    facts = demur("calibrate", files["pools"], "--gate", sums, "--alpha", "0.2", "--json").json
    assert f"The gate turns away {facts['gated']} of these questions as unlike its own" in ran.out
    assert ran.code == 0, ran.err
    ran = demur("decide", files["new"], "--policy", "policy.json", "-o", "decisions.jsonl")
    assert "unlike the reference questions of the gate" in ran.out + ran.err
    decisions = [json.loads(line) for line in (tmp_path / "decisions.jsonl").read_text().splitlines()]
    asked = [json.loads(line)["question"] for line in (tmp_path / "new.jsonl").read_text().splitlines()]
    odd = [decision for decision, text in zip(decisions, asked, strict=True) if "capital" in text]
    assert all(decision["answer"] is None and "unlike" in decision["explanation"] for decision in odd)
    assert any(decision["answer"] is not None for decision in decisions)


def test_questions_are_read_from_tables_and_folders_of_shards_as_from_lines(demur, files, tmp_path):
    """Texts decide, wherever they stand; a folder of question files is still read as one."""
    write(tmp_path / "spare.jsonl", 5, 0.2, 200)
    read = list(dm.read_pools("spare.jsonl").pools)
    write_parquet(read, "spare.pq")
    for folder in ("shards", "questions"):
        Path(folder).mkdir()
    for number, part in enumerate((read[:80], read[80:])):
        write_parquet(part, f"shards/part-{number}.parquet")
    Path("questions", "spare.jsonl").write_bytes(Path("spare.jsonl").read_bytes())
    places = ("spare.jsonl", "spare.pq", "shards", "shards/", f"file://{tmp_path}/shards", "questions")
    ran = [demur("shift", files["traffic"], "--reference", place, "--json") for place in places]
    assert [one.code for one in ran] == [0] * len(places), [one.err for one in ran]
    assert all(one.json == ran[0].json for one in ran[1:])
    turned = demur("shift", "shards", "--reference", files["traffic"], "--json")
    assert turned.json["traffic"] == 200
    gated = [demur("calibrate", files["pools"], "--gate", place, "--json").json for place in ("spare.jsonl", "shards")]
    assert gated[0] == gated[1]


def test_a_folder_that_holds_no_questions_is_one_line(demur, files):
    Path("mixed").mkdir()
    write_parquet(list(dm.read_pools(files["pools"]).pools)[:5], "mixed/part-0.parquet")
    Path("mixed", "more.jsonl").write_bytes(Path(files["pools"]).read_bytes())
    Path("empty").mkdir()
    for place, told in (("mixed", "holds pools of two kinds"), ("empty", "holds no .jsonl, .json or .csv file")):
        ran = demur("shift", files["traffic"], "--reference", place)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert place in ran.err
        assert told in ran.err
