"""Labels down to a key that is said before the first of them, from `label` to `decide --fdr`."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

import demur as dm

VOTE = ["--score", "simulated", "--tie-break", "jitter:0"]


@pytest.fixture
def right(demur, tmp_path):
    """Pools, and whether each of their votes is right, by id."""
    assert demur("simulate", "-o", "pools.jsonl", "-n", 120, "-m", 6, "--seed", 3).code == 0
    assert demur("simulate", "-o", "new.jsonl", "-n", 80, "-m", 6, "--seed", 4).code == 0
    lines = (tmp_path / "new.jsonl").read_text().splitlines()
    (tmp_path / "new.jsonl").write_text("\n".join(_renamed(line) for line in lines))
    source = dm.read_pools(tmp_path / "pools.jsonl")
    voted = dm.vote_pools(source, dm.FieldChoice(score="simulated"), source.recipe("simulated", tie_break="jitter:0"))
    return dict(zip(voted.ids, voted.labelled.tolist(), strict=True))


def _renamed(line):
    record = json.loads(line)
    return json.dumps({**record, **({"id": f"new-{record['id']}"} if "id" in record else {})})


@pytest.fixture
def label(demur, monkeypatch):
    """Run `demur label` with lines on its standard input."""

    def run(lines, *arguments):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return demur("label", "pools.jsonl", *VOTE, "-o", "labels.jsonl", *arguments)

    return run


def header_of(file):
    return json.loads(Path(file).read_text().splitlines()[0])


def fill(sheet, right, leave=0):
    rows = [json.loads(line) for line in Path(sheet).read_text().splitlines()]
    for row in rows[leave:]:
        row["verdict"] = "right" if right[row["id"]] else "wrong"
    Path(sheet).write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_all_votes_down_to_there_are_asked_about_and_decide_takes_the_batch(demur, label, right):
    begun = label([], "--down-to", "60%", "--out-sheet", "queue.jsonl")
    assert begun.code == 0, begun.err
    assert "(--down-to 60%): 72 votes to go." in begun.out
    assert header_of("labels.jsonl")["down_to"] == {"share": "3/5"}
    fill("queue.jsonl", right)
    ended = label([], "--in-sheet", "queue.jsonl")
    assert "(--down-to 60%): all are there. `decide --fdr` takes a policy" in ended.out
    facts = label([], "--json").json
    assert (facts["labelled"], facts["done"], facts["down_to"], facts["to_label"]) == (72, True, "60%", 0)
    made = demur("calibrate", "pools.jsonl", *VOTE, "--label-file", "labels.jsonl", "-o", "policy.json")
    assert made.code == 0, made.err
    assert "and did: batches may be selected from too" in made.out
    ran = demur("decide", "new.jsonl", "--policy", "policy.json", "--fdr", 0.2, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["n_answered"] > 0
    assert "the key at which labelling ended was fixed before the first label" in ran.json["promise"]


def test_what_is_missing_or_was_not_fixed_beforehand_is_refused(demur, label, right):
    label([], "--down-to", "0.5", "--out-sheet", "queue.jsonl")
    fill("queue.jsonl", right, leave=2)
    label([], "--in-sheet", "queue.jsonl")
    demur("calibrate", "pools.jsonl", *VOTE, "--label-file", "labels.jsonl", "-o", "policy.json")
    ran = demur("decide", "new.jsonl", "--policy", "policy.json", "--fdr", 0.2)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "2 of the votes above 0.5, where labelling was to end, have no label" in ran.err
    other = label([], "--down-to", "0.4", "--json")
    assert "labels.jsonl was begun with --down-to 0.5, and where labelling ends is fixed" in other.err
    assert label([], "--down-to", "0.5", "--json").code == 0


def test_labels_that_ended_as_they_pleased_give_no_batch(demur, label, right):
    label(["y"] * 5 + ["q"])
    demur("calibrate", "pools.jsonl", *VOTE, "--label-file", "labels.jsonl", "-o", "policy.json")
    ran = demur("decide", "new.jsonl", "--policy", "policy.json", "--fdr", 0.2)
    assert "a batch needs all, or all above a key that was fixed before the first label" in ran.err
    assert "begin labels with --down-to" in ran.err
    late = label([], "--down-to", "0.5", "--json")
    assert "labels.jsonl was begun without --down-to" in late.err


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--down-to", "1.5"], "at least 0 and less than 1"),
        (["--down-to", "some"], "such as 0.8, or through a share of the votes, such as 40%"),
        (["--down-to", "40%", "--check", 20], "leave --check or --down-to out"),
    ],
)
def test_bad_ends_are_refused_in_a_line(label, right, flags, told):
    ran = label([], *flags, "--json")
    assert ran.code == 2
    assert told in " ".join(ran.err.split())


def test_a_file_of_pools_of_which_some_have_gold_says_where_gold_ends(demur, right, tmp_path):
    source = dm.read_pools(tmp_path / "pools.jsonl")
    voted = dm.vote_pools(source, dm.FieldChoice(score="simulated"), source.recipe("simulated", tie_break="jitter:0"))
    known = dict(zip(voted.ids, (voted.votes.key[:, 0] > 0.5).tolist(), strict=True))
    lines = [json.loads(line) for line in (tmp_path / "pools.jsonl").read_text().splitlines()]
    for line in lines:
        if "id" in line and not known[line["id"]]:
            del line["gold"]
    (tmp_path / "part.jsonl").write_text("\n".join(map(json.dumps, lines)))
    calibrate = ["calibrate", "part.jsonl", *VOTE, "--alpha", 0.1, "-o", "policy.json"]
    refused = demur(*calibrate)
    assert "to count their votes as wrong, calibrate with --partly-labelled" in refused.err
    assert demur(*calibrate, "--partly-labelled", "--down-to", "0.5").code == 0
    assert demur("decide", "new.jsonl", "--policy", "policy.json", "--fdr", 0.2).code == 0
    assert "leave --down-to out" in demur(*calibrate, "--partly-labelled", "--down-to", "0.9").err
    assert "give --partly-labelled" in demur("calibrate", "pools.jsonl", *VOTE, "--down-to", "0.9").err
    assert demur(*calibrate, "--partly-labelled", "--selective", "--delta", 0.1).code == 0


@pytest.mark.parametrize(
    "stored", [0.5, {}, {"share": "3/5", "confidence": 0.5}, {"share": "7/5"}, {"confidence": "high"}, {"key": 1}]
)
def test_a_damaged_end_is_refused(label, right, stored):
    label([], "--down-to", "60%", "--json")
    changed = header_of("labels.jsonl") | {"down_to": stored}
    Path("labels.jsonl").write_text(json.dumps(changed) + "\n")
    ran = label([], "--json")
    assert ran.code == 2
    assert "line 1: `down_to` cannot be read" in ran.err
