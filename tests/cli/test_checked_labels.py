"""`label --check`, `calibrate --checked`: a judge labels, people check a random part, by dialogue, sheet or field."""

from __future__ import annotations

import csv
import io
import json
import sys

import numpy as np
import pytest

import demur as dm

VOTE = ["--score", "simulated"]
N = 160


@pytest.fixture
def truth(demur, tmp_path, monkeypatch):
    """Whether each vote is right, by id; the pools have a judge's labels of all paths and people's of some problems."""
    monkeypatch.chdir(tmp_path)
    assert demur("simulate", "-o", "gold.jsonl", "-n", N, "-m", 6, "--seed", 3).code == 0
    source = dm.read_pools("gold.jsonl")
    voted = dm.vote_pools(source, dm.FieldChoice(score="simulated"), source.recipe("simulated"))
    right = dict(zip(voted.ids, voted.labelled.tolist(), strict=True))
    rng = np.random.default_rng(2)
    with open("gold.jsonl") as lines, open("pools.jsonl", "w") as out:
        for record in map(json.loads, lines):
            gold = record.pop("gold", None)
            checked = rng.random() < 0.4
            flipped = rng.random() < 0.15
            if checked:
                record["people_accept"] = gold
            for path in record["paths"]:
                same = path["answer"] == (gold[0] if isinstance(gold, list) else gold)
                path["judge_says"] = bool(same != flipped)
                if checked:
                    path["person_says"] = bool(same)
            out.write(json.dumps(record) + "\n")
    return right


def calibrated(demur, *arguments):
    ran = demur("calibrate", "pools.jsonl", *VOTE, "--alpha", "0.1", *arguments, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_a_field_of_the_paths_holds_what_people_say_of_a_part(demur, truth):
    facts = calibrated(demur, "--correct", "judge_says", "--checked", "person_says", "-o", "policy.json")
    judge = facts["judge"]
    assert judge["votes"] == N
    assert facts["n"] == judge["drawn"] == judge["checked"]
    low, high = judge["false_right_interval"]
    assert low <= judge["false_right_rate"] <= high
    assert facts["labels"] == {"field": "person_says"}
    shown = demur("calibrate", "pools.jsonl", *VOTE, "--correct", "judge_says", "--checked", "person_says")
    assert 'The judge\'s false "right"' in shown.out
    assert "drawn for people to check; these alone calibrate" in shown.out
    # A field of problems that holds what people accept comes to the same.
    other = calibrated(demur, "--correct", "judge_says", "--checked", "people_accept")
    assert other["points"][0]["threshold_key"] == facts["points"][0]["threshold_key"]
    assert other["judge"] == judge


def test_the_judges_labels_of_the_others_are_used_where_that_is_asked_for(demur, truth):
    both = ["--correct", "judge_says", "--checked", "person_says", "--use-judge"]
    on_average, sure = calibrated(demur, *both, "-o", "policy.json"), calibrated(demur, *both, "--delta", "0.2")
    assert on_average["n"] == sure["n"] == N
    assert [facts["points"][0]["guarantee"] for facts in (on_average, sure)] == [
        "judge_marginal", "judge_high_probability",
    ]  # fmt: skip
    assert "share" in on_average["points"][0]
    assert sure["points"][0]["delta"] == 0.2
    assert "which must have been drawn at random" in sure["points"][0]["promise"]
    audited = demur("audit", "policy.json", "--errors", 3, "--of", 100)
    assert audited.code == 0, audited.err


def test_a_random_part_goes_out_on_a_sheet_and_comes_back(demur, truth):
    begun = ["label", "pools.jsonl", *VOTE, "--alpha", "0.1", "-o", "checks.jsonl"]
    ran = demur(*begun, "--check", 50, "--seed", 7, "--out-sheet", "sheet.csv")
    assert ran.code == 0, ran.err
    assert "drawn at random (seed 7)" in ran.out
    with open("sheet.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 50
    for row in rows:
        row["verdict"] = "right" if truth[row["id"]] else "wrong"
    with open("sheet.csv", "w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    assert demur(*begun, "--in-sheet", "sheet.csv").code == 0
    facts = calibrated(demur, "--correct", "judge_says", "--label-file", "checks.jsonl", "-o", "policy.json")
    assert (facts["n"], facts["judge"]["checked"]) == (50, 50)
    assert facts["labels"] == {"people": True}
    # The same checks, made in Python.
    source = dm.read_pools("pools.jsonl")
    voted = dm.vote_pools(source, dm.FieldChoice(score="simulated"), source.recipe("simulated"), correct="judge_says")
    policy = dm.calibrate(voted, alpha=0.1, checked=dm.checked_by(voted, "checks.jsonl"))
    assert list(policy.points[0].threshold_key) == facts["points"][0]["threshold_key"]
    drawn = dm.draw_checks(voted, 50, seed=7)
    assert {voted.ids[row] for row in drawn} == {row["id"] for row in rows}
    # Without labels by a judge the random part calibrates all the same.
    bare = calibrated(demur, "--label-file", "checks.jsonl")
    assert "judge" not in bare
    assert bare["points"][0]["threshold_key"] == facts["points"][0]["threshold_key"]
    with pytest.raises(dm.errors.InvalidValue, match="a random part of the votes, by which a judge is checked"):
        dm.labelled_by(voted, "checks.jsonl")


def test_every_drawn_vote_is_asked_about_and_what_is_left_counts_as_wrong(demur, truth, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 12 + "q\n"))
    ran = demur("label", "pools.jsonl", *VOTE, "--check", 40, "-o", "checks.jsonl", "--alpha", "0.1")
    assert ran.code == 0, ran.err
    facts = calibrated(demur, "--correct", "judge_says", "--label-file", "checks.jsonl")
    assert facts["n"] == 40
    assert facts["labelled"] == 12
    assert "28 of them have no word yet" in " ".join(facts["label_notes"])
    with open("checks.jsonl") as lines:
        assert json.loads(next(lines))["check"] == {"drawn": 40, "seed": 0}
    asked = json.loads(demur("label", "pools.jsonl", *VOTE, "-o", "checks.jsonl", "--json").out)
    assert (asked["n"], asked["labelled"], asked["done"]) == (40, 12, False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["calibrate", "pools.jsonl", "--correct", "judge_says", "--use-judge"], "--checked FIELD"),
        (["calibrate", "pools.jsonl", "--correct", "judge_says", "--checked", "nobody"], "nothing is checked under"),
        (["calibrate", "pools.jsonl", "--correct", "judge_says", "--checked", "person_says", "--use-judge",
          "--smoothed"], "--smoothed exclude each other"),
        (["calibrate", "pools.jsonl", "--correct", "judge_says", "--checked", "person_says", "--use-judge",
          "--by-group"], "--use-judge and --by-group exclude each other"),
        (["calibrate", "pools.jsonl", "--correct", "judge_says", "--checked", "person_says", "--use-judge",
          "--chosen-from", "3"], "--use-judge knows no correction for a choice"),
        (["calibrate", "pools.jsonl", "--correct", "judge_says", "--checked", "person_says", "--hold-out", "0.5"],
         "needs people's labels"),
        (["label", "pools.jsonl", "--check", "900", "-o", "checks.jsonl", "--json"], f"between 1 and {N} votes"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_line(demur, truth, arguments, said):
    ran = demur(*arguments)
    assert ran.code != 0
    assert said in " ".join(ran.err.split())
    assert len(ran.err.strip().splitlines()) <= 4


def test_chance_chooses_once(demur, truth):
    begun = ["label", "pools.jsonl", *VOTE, "-o", "checks.jsonl", "--json"]
    assert demur(*begun, "--check", 40, "--seed", 1).code == 0
    assert demur(*begun).code == 0
    assert demur(*begun, "--check", 40).code == 0
    other = demur(*begun, "--check", 40, "--seed", 2)
    assert "was begun with --check 40 --seed 1" in " ".join(other.err.split())
    labels = ["label", "pools.jsonl", *VOTE, "-o", "labels.jsonl", "--json"]
    assert demur(*labels).code == 0
    assert "was begun without --check" in " ".join(demur(*labels, "--check", 40).err.split())
    both = demur("calibrate", "pools.jsonl", "--checked", "person_says", "--label-file", "checks.jsonl")
    assert "choose one" in both.err
