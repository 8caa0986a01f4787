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


@pytest.fixture
def unreadable(demur, tmp_path):
    """300 problems with gold, of which two cannot be read and one is missing; and the readable ones alone."""
    assert demur("simulate", "-o", "whole.jsonl", "-n", 300, "-m", 5, "--seed", 3).code == 0
    pools = lines(tmp_path / "whole.jsonl")
    write(tmp_path / "readable.jsonl", [pool for row, pool in enumerate(pools) if row not in (7, 100, 205)])
    pools[7]["gold"], pools[100]["gold"] = "!!!", ["", " "]
    pools[205].pop("gold")
    write(tmp_path / "pools.jsonl", pools)
    return tmp_path


VERBS = {
    "calibrate": ["--alpha", 0.1, "-o", "policy.json"],
    "evaluate": ["--alpha", 0.1, "--splits", 3],
    "plan": ["--alpha", 0.1],
    "report": ["--alpha", 0.1],
    "tune": ["--alpha", 0.2, "-o", "tuned.json"],
}
NOTE = "3 of 300 problems have no label that can be read (the first is "


def differing(one, other):
    """The names under which two objects differ."""
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


@pytest.mark.parametrize("name", ["pools.jsonl", "pools.parquet", "run.db"])
@pytest.mark.parametrize("verb", VERBS)
def test_gold_that_cannot_be_read_is_left_out_with_a_count(demur, unreadable, verb, name):
    flags = ["--relation", "mathematics", *VERBS[verb]]
    if name.endswith("parquet"):
        assert demur("answers", "pools.jsonl", "-o", name).code == 0
    elif name.endswith("db"):
        assert demur("import", "pools.jsonl", "-o", name).code == 0
    refused = demur(verb, name, *flags)
    if verb != "tune":  # which looks at the labels of a random part
        assert (refused.code, "--drop-unreadable" in refused.err) == (2, True), refused.err
    told = demur(verb, name, *flags, "--drop-unreadable", "--json")
    assert told.code == 0, told.err
    assert any(NOTE in note for note in told.json["notes"])
    assert NOTE in demur(verb, name, *flags, "--drop-unreadable").out
    alone = demur(verb, "readable.jsonl", *flags, "--json").json
    assert not differing(told.json, alone) & {"n", "threshold", "accuracy", "rows", "alphas", "n_cal", "unit"}


def test_a_policy_says_of_which_questions_its_promise_is(demur, unreadable):
    calibrate = ["calibrate", "--relation", "mathematics", "--alpha", 0.1]
    told = demur(*calibrate, "pools.jsonl", "--drop-unreadable", "-o", "policy.json", "--json").json
    alone = demur(*calibrate, "readable.jsonl", "-o", "alone.json", "--json").json
    assert told["labels"] == {"gold": "relation", "dropped": 3}
    limit = "3 calibration questions whose label cannot be read are left out, and the promise is about questions whose"
    (unreadable / "new.jsonl").write_text((unreadable / "whole.jsonl").read_text().replace('"sim-3', '"sim-4'))
    decided = demur("decide", "pools.jsonl", "--policy", "policy.json", "--json").json
    assert limit in decided["promise"]
    assert decided["threshold"] == demur("decide", "pools.jsonl", "--policy", "alone.json", "--json").json["threshold"]
    assert "label cannot be read" not in json.dumps(alone)
    assert demur("calibrate", "readable.jsonl", "--drop-unreadable", "--alpha", 0.1, "--json").json["labels"] == {
        "gold": "relation"
    }


def test_an_audit_leaves_them_out_too_and_takes_a_policy_that_was_calibrated_without_the_flag(demur, unreadable):
    assert demur("simulate", "-o", "old.jsonl", "-n", 200, "-m", 5, "--seed", 8).code == 0
    assert demur("calibrate", "old.jsonl", "--relation", "mathematics", "--alpha", 0.1, "-o", "policy.json").code == 0
    refused = demur("audit", "pools.jsonl", "--policy", "policy.json")
    assert (refused.code, "--drop-unreadable" in refused.err) == (2, True)
    told = demur("audit", "pools.jsonl", "--policy", "policy.json", "--drop-unreadable", "--json").json
    alone = demur("audit", "readable.jsonl", "--policy", "policy.json", "--json").json
    assert differing(told, alone) == {"notes"}
    assert any(NOTE in note for note in told["notes"])


def test_ready_made_labels_that_cannot_be_read_are_left_out_too(demur, unreadable):
    pools = lines(unreadable / "readable.jsonl")
    for row, pool in enumerate(pools):
        for path in pool["paths"]:
            path["ok"] = int(path["answer"] == pool["gold"]) if row else "perhaps"
    write(unreadable / "labelled.jsonl", pools)
    refused = demur("calibrate", "labelled.jsonl", "--correct", "ok", "--alpha", 0.1)
    assert (refused.code, "--drop-unreadable" in refused.err) == (2, True)
    told = demur("calibrate", "labelled.jsonl", "--correct", "ok", "--alpha", 0.1, "--drop-unreadable", "--json").json
    assert (told["n"], told["labels"]) == (296, {"field": "ok", "dropped": 1})


def test_where_no_label_can_be_read_there_is_nothing_left(demur, unreadable):
    write(unreadable / "none.jsonl", [{**pool, "gold": "!!!"} for pool in lines(unreadable / "whole.jsonl")])
    flags = ["--relation", "mathematics", "--alpha", 0.1, "--drop-unreadable"]
    assert "none of 300 problems has a label that can be read" in demur("calibrate", "none.jsonl", *flags).err
