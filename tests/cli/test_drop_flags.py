"""What would refuse a whole file can be left out by a flag, with a count, in text, in JSON and in the policy."""

from __future__ import annotations

import json

import pytest


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


@pytest.fixture
def new(demur, tmp_path):
    """A policy, and 60 problems of which three calibrated it: by id, by question, and by cluster."""
    assert demur("simulate", "-o", "old.jsonl", "-n", 120, "-m", 5, "--seed", 1).code == 0
    assert demur("simulate", "-o", "plain.jsonl", "-n", 57, "-m", 5, "--seed", 2).code == 0
    old, fresh = lines(tmp_path / "old.jsonl"), lines(tmp_path / "plain.jsonl")
    old[9]["cluster"] = "c9"
    write(tmp_path / "old.jsonl", old)
    assert demur("calibrate", "old.jsonl", "--alpha", 0.2, "-o", "policy.json").code == 0
    again = [old[3], {**old[5], "id": "another"}, {**fresh[0], "id": "third", "question": "Third?", "cluster": "c9"}]
    write(tmp_path / "new.jsonl", [*fresh[:20], *again, *fresh[20:]])
    return tmp_path


def test_problems_that_calibrated_a_policy_are_left_out_of_its_audit(demur, new):
    audit = ["audit", "new.jsonl", "--policy", "policy.json"]
    refused = demur(*audit)
    assert refused.code == 2
    assert "3 of 60 problems calibrated this policy" in refused.err
    assert "leave them out with --drop-seen" in refused.err
    told = demur(*audit, "--drop-seen", "--json").json
    assert (told["problems"], told["left_out"], told["n"]) == (60, 3, 57)
    assert "57 questions the policy has not seen (3 calibrated it and are left out)" in demur(*audit, "--drop-seen").out
    alone = demur("audit", "plain.jsonl", "--policy", "policy.json", "--json").json
    assert told["points"] == alone["points"]
    assert "all 120 problems calibrated" in demur("audit", "old.jsonl", "--policy", "policy.json", "--drop-seen").err


def test_they_are_left_out_of_a_batch_as_if_they_had_not_been_there(demur, new):
    decide = ["decide", "new.jsonl", "--policy", "policy.json", "--fdr", 0.3]
    refused = demur(*decide)
    assert (refused.code, "leave them out with --drop-seen" in refused.err) == (2, True)
    told = demur(*decide, "--drop-seen", "-o", "some.jsonl", "--json").json
    assert demur("decide", "plain.jsonl", "--policy", "policy.json", "--fdr", 0.3, "-o", "alone.jsonl").code == 0
    assert lines(new / "some.jsonl") == lines(new / "alone.jsonl")
    assert (told["left_out"], told["problems"]) == (3, 57)
    said = demur(*decide, "--drop-seen").out
    assert "3 of 60 problems calibrated this policy, and are left out of the batch" in said
    assert "--drop-seen goes with --fdr" in demur(*decide[:-2], "--drop-seen").err


def test_they_are_left_out_of_the_audit_of_a_cascade(demur, new):
    assert demur("cascade", "old.jsonl", "old.jsonl", "--alpha", 0.2, "-o", "cascade.json").code == 0
    audit = ["audit", "new.jsonl", "new.jsonl", "--cascade", "cascade.json"]
    refused = demur(*audit)
    assert (refused.code, "leave them out with --drop-seen" in refused.err) == (2, True)
    told = demur(*audit, "--drop-seen", "--json").json
    assert (told["left_out"], told["n"]) == (3, 57)
