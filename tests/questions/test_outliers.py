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


# --- ranked among themselves ----------------------------------------------------------------------------------------


def words(rng, n):
    """Questions of random words, no two alike."""
    letters = np.array(list("abcdefghijklmnop"))
    return [
        " ".join("".join(rng.choice(letters, rng.integers(2, 9))) for _ in range(rng.integers(3, 20))) + "?"
        for _ in range(n)
    ]


def ranking(usual, ranked, level):
    """A gate of features that say what is usual, and of others that are ranked."""
    mean, spread = usual.mean(axis=0), np.sqrt(usual.var(axis=0) + usual.var(axis=0).mean() + 1e-4)
    gate = dm.OutlierGate(mean, spread, np.zeros(1), level, frozenset())
    return dm.OutlierGate(mean, spread, np.sort(gate.distance(ranked)), level, frozenset())


@pytest.mark.parametrize("level", [0.02, 0.05, 0.1, 0.3])
def test_whichever_of_some_questions_is_the_new_one_exactly_the_level_of_them_is_turned_away(level):
    """The theorem given the bag: of m + 1 questions each in turn is new, and the others are ranked."""
    table = features(words(np.random.default_rng(7), 101))
    usual, bag = table[:50], table[50:]
    away = 0
    for new in range(len(bag)):
        gate = ranking(usual, np.delete(bag, new, axis=0), level)
        distance = gate.distance(bag[new : new + 1])[0]
        p_value = (1 + int((gate.ranked >= distance).sum())) / (1 + len(gate.ranked))
        away += p_value <= level
    assert away == int(level * 51 + 1e-9)


def test_questions_that_say_what_is_usual_cannot_be_ranked_too():
    """The negative control: a new question is farther from the mean of others than they are themselves."""
    rng, halves, both = np.random.default_rng(8), [], []
    for _ in range(100):
        texts, new = words(rng, 60), words(rng, 30)
        table = features(texts)
        halves.append(dm.OutlierGate.fit(texts, level=0.1).closes(new).mean())
        both.append(ranking(table, table, 0.1).closes(new).mean())
    error = np.std(halves, ddof=1) / 10
    assert abs(np.mean(halves) - 3 / 31) <= 4 * error  # ⌊31 · 0.1⌋ ranks of 31: never to turn any away would fail
    assert np.mean(both) - 0.1 > 4 * np.std(both, ddof=1) / 10


def test_a_gate_needs_as_many_questions_as_it_says():
    for level, needed in ((0.01, 198), (0.05, 40), (0.015, 132)):
        assert len(dm.OutlierGate.fit(sums(1, needed + 5)[:needed], level=level).ranked) == needed // 2
        if needed > 40:
            with pytest.raises(InvalidValue, match=f"needs {needed} reference questions"):
                dm.OutlierGate.fit(sums(1, needed - 1), level=level)
