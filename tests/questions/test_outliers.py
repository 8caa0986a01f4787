"""The outlier gate: its p-values are exact, other kinds of questions are seen, and bad gates are refused."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

import demur as dm
from demur.errors import InvalidValue
from demur.questions.features import features
from demur.questions.fitting import area

SUMS = ["apples", "coins", "pencils", "marbles", "stamps"]


def sums(seed, n):
    rng = np.random.default_rng(seed)
    return [
        f"Ann has {rng.integers(10 ** rng.integers(1, 9))} {rng.choice(SUMS)} and buys {rng.integers(10**6)} more"
        f"{' on a rainy day' * rng.integers(4)}. How many has she?"
        for _ in range(n)
    ]


ODD = [
    "Qui a peint le plafond de la chapelle Sixtine à Rome ?",
    "∂u/∂t = Δu: which norm decays?",
    "光合作用需要什么气体",
]


def test_of_questions_like_the_reference_no_more_than_the_level_are_turned_away():
    """Over references and new questions together; half of the level would be too few."""
    rates = [
        dm.OutlierGate.fit(sums(seed, 120), level=0.1).closes(sums(10_000 + seed, 60)).mean() for seed in range(40)
    ]
    error = np.std(rates, ddof=1) / np.sqrt(len(rates))
    assert np.mean(rates) <= 0.1 + 4 * error
    assert np.mean(rates) > 0.05


def test_questions_of_other_kinds_are_turned_away():
    gate = dm.OutlierGate.fit(sums(1, 200))
    assert gate.closes(ODD).all()
    assert gate.p_value(ODD) == pytest.approx(1 / 101)


def test_a_question_without_text_is_unlike_any():
    gate = dm.OutlierGate.fit(sums(1, 100), level=0.1)
    assert gate.closes([None, "", "  "]).all()


def test_the_p_value_counts_ranked_reference_questions_that_are_as_far():
    gate = dm.OutlierGate.fit(sums(1, 100), level=0.1)
    new = sums(2, 20)
    distances = gate.distance(features(new))
    expected = [(1 + sum(other >= distance for other in gate.ranked)) / 51 for distance in distances]
    assert gate.p_value(new) == pytest.approx(expected)


def test_a_document_gives_the_same_gate_back_and_each_value_is_checked():
    gate = dm.OutlierGate.fit(sums(1, 100), level=0.1)
    document = json.loads(json.dumps(gate.document()))
    again = dm.OutlierGate.of(document)
    assert (again.p_value(sums(3, 30)) == gate.p_value(sums(3, 30))).all()
    assert again.fingerprint == gate.fingerprint
    for name, value, told in (
        ("mean", [0.0], "512 means"),
        ("spread", [0.0] * 512, "spreads above 0"),
        ("ranked", [2.0, 1.0] * 30, "must ascend"),
        ("ranked", ["far"], "must be numbers"),
        ("level", 0, "strictly between 0 and 1"),
        ("features", 0, "version 0"),
        ("fitted_on", "all", "digests"),
    ):
        with pytest.raises(InvalidValue, match=told):
            dm.OutlierGate.of({**document, name: value})
    with pytest.raises(InvalidValue, match="an outlier gate holds"):
        dm.OutlierGate.of({**document, "more": 1})


def test_too_few_reference_questions_are_refused():
    with pytest.raises(InvalidValue, match="holds 20 different questions, and 40 are needed"):
        dm.OutlierGate.fit(sums(1, 20))
    with pytest.raises(InvalidValue, match=r"too few for a gate at level 0\.01"):
        dm.OutlierGate.fit(sums(1, 100), level=0.01)
    for level in (0, 1, -1, "x", True, np.nan):
        with pytest.raises(InvalidValue, match="strictly between 0 and 1"):
            dm.OutlierGate.fit(sums(1, 100), level=level)


@pytest.mark.real_data
def test_recorded_questions_of_other_sets_are_told_from_the_reference(recorded_pools):
    def texts(name):
        with gzip.open(recorded_pools.parent / "questions" / f"{name}.jsonl.gz", "rt") as lines:
            return [json.loads(line)["question"] for line in lines]

    school, contest = texts("gsm8k_test"), texts("math500")
    gate = dm.OutlierGate.fit(school[:400])
    assert gate.closes(school[400:]).mean() < 0.08
    distances = gate.distance(features(school[400:])), gate.distance(features(contest))
    assert area(*distances)[0] > 0.8
    assert gate.closes(contest).mean() > 0.4
