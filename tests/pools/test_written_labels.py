"""Labels are true and false however they are written: as booleans, 0 and 1, or words; never in two ways at once."""

from __future__ import annotations

import json

import numpy as np
import pytest

import demur as dm
from demur.errors import InvalidValue, PoolFileError
from demur.pools.files import source_of_file
from demur.pools.label_rule import LabelRule

WAYS = {
    "booleans": (True, False),
    "numbers": (1, 0),
    "floats": (1.0, 0.0),
    "digits": ("1", "0"),
    "decimals": ("1.0", " 0.0"),
    "words": ("true", "False"),
    "capitals": ("YES", "No"),
}


def lines_of(labels):
    """Pools of two answers, of which the first is right in two of three."""
    right, wrong = labels
    for row in range(30):
        said = (right, wrong) if row % 3 else (wrong, right)
        yield {
            "id": f"q{row}",
            "paths": [{"answer": a, "ok": ok} for a, ok in zip("aab", (said[0], *said), strict=True)],
        }


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["pools.jsonl", "pools.csv"])
def test_a_field_of_labels_is_read_however_they_are_written(tmp_path, name, way):
    if name == "pools.jsonl":
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines_of(WAYS[way])))
    else:
        rows = [f"{line['id']},{p['answer']},{p['ok']}" for line in lines_of(WAYS[way]) for p in line["paths"]]
        (tmp_path / name).write_text("\n".join(["id,answer,ok", *rows]) + "\n")
    voted = dm.vote_pools(source_of_file(tmp_path / name), correct="ok")
    assert voted.labelled.tolist() == [row % 3 != 0 for row in range(30)]


@pytest.mark.parametrize("way", WAYS)
def test_labels_of_arrays_are_read_alike(way):
    right, wrong = WAYS[way]
    votes = dm.vote([["a"]] * 4)
    for labels in ([right, wrong, right, right], np.array([right, wrong, right, right])):
        policy = dm.calibrate(votes, labels, alpha=0.5)
        assert policy.evidence.n_right == 3
    some = dm.calibrate(votes, [right, None, wrong, float("nan")], alpha=0.5, partly_labelled=True)
    assert (some.evidence.n_right, some.evidence.n_unlabelled) == (1, 2)


@pytest.mark.parametrize(
    "labels", [(True, "no"), (1, "0"), ("yes", "0"), ("true", "no"), (1, "false"), (True, 0)], ids=repr
)
def test_labels_in_two_ways_are_refused(tmp_path, labels):
    (tmp_path / "pools.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines_of(labels)))
    with pytest.raises(InvalidValue, match="the field 'ok' holds labels in several ways"):
        dm.vote_pools(source_of_file(tmp_path / "pools.jsonl"), correct="ok")


@pytest.mark.parametrize("odd", [2, -1, 0.5, float("inf"), "right?", "2", "t", [1], {"a": 1}])
def test_what_is_no_label_is_refused_by_problem_and_path(tmp_path, odd):
    (tmp_path / "pools.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines_of((odd, 0))))
    with pytest.raises(
        PoolFileError, match="problem 'q0', path 2: the label 'ok' must be true or false, or 0 or 1, got"
    ):
        dm.vote_pools(source_of_file(tmp_path / "pools.jsonl"), correct=LabelRule("ok"))
    with pytest.raises(InvalidValue, match="correct must hold"):
        dm.calibrate(dm.vote([["a"]] * 2), np.array([odd, 0], dtype=object), alpha=0.5)
