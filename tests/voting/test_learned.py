"""A learned key: a fixed function of what can be seen of a pool, as plain numbers."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import demur as dm
from demur.errors import InvalidValue
from demur.voting.key import parse_component
from demur.voting.problems import Problems

POOLS = [["x", "x", "y"], ["x", "x", "x"], [None, None, None], ["y", None, "z"]]
ORIGINS = [["a", "b", "c"]] * 4
LENGTHS = [[10, 20, 30], [1, 1, 1], [5, 5, 5], [7, 8, 9]]
KEY = dm.Learned(
    -0.5,
    {"confidence": 3.0, "length": 0.25},
    "origin",
    {"a": 1.5, "b": -0.5},
    Problems.of(["t1", "t2"], ["digest"]),
)
DOCUMENT = KEY.document()


def votes(key=KEY, **how):
    given = {"columns": {"length": LENGTHS}, "origins": ORIGINS, "ids": ["p", "q", "r", "s"]} | how
    return dm.vote(POOLS, confidence=key, **given)


def test_the_learned_confidence_is_the_logistic_function_of_weighted_features():
    first = votes().key[:, 0]
    logs = (math.log1p(10) + math.log1p(20)) / 2
    assert first[0] == pytest.approx(1 / (1 + math.exp(0.5 - 3 * 2 / 3 - 0.25 * logs - 1.5 + 0.5)), abs=1e-11)
    assert votes().confidence[0] == pytest.approx(2 / 3)
    assert votes().recipe.names == ("learned", "jitter")


def test_it_is_0_only_where_nothing_can_be_answered():
    assert votes().key[:, 0].tolist().index(0.0) == 2
    low, high = (votes(dm.Learned(intercept, {"confidence": 1.0})).key[[0, 1, 3], 0] for intercept in (-1e6, 1e6))
    assert (low == 1e-12).all()
    assert (high == 1.0).all()


def test_one_pool_has_the_key_that_it_has_among_others():
    made = votes()
    correct = np.array([True, True, False, True])
    policy = dm.calibrate(made, correct, alpha=0.5)
    for row in (0, 1, 3):
        own = {"columns": {"length": LENGTHS[row]}, "origins": ORIGINS[row], "id": made.ids[row]}
        assert policy.decide(POOLS[row], **own).key == tuple(made.key[row])


def test_a_document_reads_back_as_the_same_function():
    again = parse_component(json.loads(json.dumps(DOCUMENT)))
    assert again.spec == KEY.spec
    assert again.fitted_on == KEY.fitted_on
    assert np.array_equal(votes(again).key, votes().key)
    assert again.needs == ("length",)
    assert KEY.spec.startswith("learned@1:")
    assert dm.Learned(-0.5, {"confidence": 3.5}).spec != dm.Learned(-0.5, {"confidence": 3.0}).spec


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"version": 2}, "of version 2, and this demur knows 1"),
        ({"version": True}, "of version True"),
        ({"intercept": "0"}, "intercept of a learned key must be a number"),
        ({"intercept": float("nan")}, "intercept of a learned key must be a number"),
        ({"intercept": 1e12}, "must be a number of at most 1e.09"),
        ({"weights": [1.0]}, "weights of a learned key must be at most 200 numbers by name"),
        ({"weights": {"confidence": None}}, "the weight of 'confidence'"),
        ({"weights": {"confidence": True}}, "the weight of 'confidence'"),
        ({"weights": {"colour": 1.0}}, "a learned key knows no feature 'colour'"),
        ({"weights": {f"mean_score:{n}": 1.0 for n in range(201)}}, "at most 200 numbers"),
        ({"sources": {str(n): 1.0 for n in range(5001)}}, "at most 5000 numbers"),
        ({"sources": {"a" * 501: 1.0}}, "names of at most 500 letters"),
        ({"sources": {}}, "names the field that says where paths come from"),
        ({"origin": 3}, "origin of a learned key must name a field"),
        ({"origin": None}, "names the field that says where paths come from"),
        ({"weights": {}, "sources": {}, "origin": None}, "the weight of at least one feature"),
        ({"fitted_on": {"ids": "t1"}}, "fitted_on.ids of a learned key must be a list of strings"),
        ({"fitted_on": {"labels": []}}, "fitted_on of a learned key must hold lists of problems"),
        ({"code": "import os"}, "a learned key has no 'code'"),
    ],
)
def test_a_document_that_is_no_learned_key_is_refused(change, told):
    with pytest.raises(InvalidValue, match=told):
        parse_component({**DOCUMENT, **change})


def test_what_it_looks_at_must_be_given():
    with pytest.raises(InvalidValue, match="needs 'length' of every path, and it is not given"):
        votes(columns=None)
    with pytest.raises(InvalidValue, match=r"looks at where paths come from \(origin\), and that is not given"):
        votes(origins=None)
    with pytest.raises(InvalidValue, match="in the shape of answers"):
        votes(origins=[["a"]] * 4)


def test_the_problems_it_was_fitted_on_may_not_calibrate():
    leaking = dm.Learned(0.0, {"confidence": 1.0}, fitted_on=Problems.of(["q"]))
    with pytest.raises(dm.errors.CalibrationLeak, match="fitted on 1 of the calibration problems"):
        dm.calibrate(votes(leaking), np.array([True, True, False, True]), alpha=0.5)
