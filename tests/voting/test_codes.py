"""From keys to codes and back: however many keys there are, in whatever they are held, and what is no answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import demur as dm
from demur.errors import InvalidValue
from demur.voting.one_pool import vote_one
from demur.voting.recipe import Recipe

ODD = object()


class Unhashable(float):
    """A number that cannot be looked up, for it says what equals it and not how it hashes."""

    def __eq__(self, other):
        return float(self) == other


@pytest.mark.parametrize("distinct", [3, 126, 127, 128, 254, 255, 256, 257, 3000])
@pytest.mark.parametrize("nothing", [None, "nan"])
def test_keys_vote_as_their_codes_do_however_many_there_are(distinct, nothing):
    """One byte holds few of them. Paths without an answer are None, or a NaN each of its own, as tables have it."""
    rng = np.random.default_rng(distinct)
    codes = rng.integers(-1, distinct, (400, 7))
    codes[:, :3] = codes[:, :1]  # so that some answers win
    codes.ravel()[: min(distinct, 2800)] = np.arange(min(distinct, 2800))  # each of them is there
    names = np.array([f"{code:04d}" for code in range(distinct)])
    keys = [
        [(None if nothing is None else float("nan")) if code < 0 else str(names[code]) for code in row]
        for row in codes.tolist()
    ]
    keyed, coded = dm.vote(keys), dm.vote(codes)
    assert keyed.answer.tolist() == [None if code < 0 else names[code] for code in coded.answer]
    np.testing.assert_array_equal(keyed.confidence, coded.confidence)
    np.testing.assert_array_equal(keyed.unanimous, coded.unanimous)
    ragged = [row[: 1 + at % 7] for at, row in enumerate(keys)]
    alone = [dm.vote([row]) for row in ragged[:50]]
    together = dm.vote(ragged)
    assert together.answer[:50].tolist() == [vote.answer[0] for vote in alone]
    assert together.confidence[:50].tolist() == [vote.confidence[0] for vote in alone]


@pytest.mark.parametrize("distinct", [3, 300])
@pytest.mark.parametrize(
    "nothing", ["", "   ", "\t\n", np.str_(""), float("nan"), np.float64("nan"), pd.NA, pd.NaT, np.datetime64("NaT")]
)
def test_blanks_and_what_tables_have_for_nothing_are_no_answer(nothing, distinct):
    """Also where keys are too many for a byte each, in arrays of objects, and in one pool alone."""
    pools = [[nothing, nothing, "a"]] + [[f"b{at}", nothing, f"b{at}"] for at in range(distinct)]
    expected = dm.vote([[None if answer is nothing else answer for answer in pool] for pool in pools])
    for answers in (pools, np.array(pools, dtype=object)):
        votes = dm.vote(answers)
        assert votes.answer.tolist() == expected.answer.tolist()
        assert votes.confidence.tolist() == expected.confidence.tolist()
    assert [dict(vote.support) for vote in dm.vote(pools)] == [dict(vote.support) for vote in expected]
    assert vote_one(Recipe(), pools[0]) == replace(expected[0], key=(expected[0].confidence,))
    assert dm.vote([[nothing, nothing]])[0].answer is None


@pytest.mark.parametrize(
    "pool", [[True, 1, 2], [1, True, 2], ["a", 0, False], [1.0, True], [True, None, np.int64(1)], [0, "", False]]
)
@pytest.mark.parametrize("others", [0, 400])
def test_a_boolean_and_the_number_equal_to_it_are_not_counted_as_one_answer(pool, others):
    answers = [[f"x{at}"] * len(pool) for at in range(others)] + [pool]
    with pytest.raises(
        InvalidValue, match=r"a pool holds the answers (True|False) and .*, which Python takes for equal"
    ):
        dm.vote(answers)
    with pytest.raises(InvalidValue, match="which Python takes for equal; write them as strings"):
        vote_one(Recipe(), pool)


def test_booleans_alone_and_apart_from_their_numbers_are_answers():
    votes = dm.vote([[True, True, False], [1, 1, 2], [True, 2, 2], [0.0, 0, 5]])
    assert [(type(vote.answer), vote.answer) for vote in votes] == [(bool, True), (int, 1), (int, 2), (float, 0.0)]


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([["a", "b"], ["c", ["nested"]]], r"an answer must be a string, a number or None, got \['nested'\]"),
        ([["a", "b"], ["c", {1: 2}]], r"an answer must be a string, a number or None, got \{1: 2\}"),
        ([["a", None], [2.5, ODD]], r"an answer must be a string, a number or None, got <object object"),
        ([["a", ("t",)]], r"an answer must be a string, a number or None, got \('t',\)"),
        ([["a", ("t", ["nested"])]], r"an answer must be a string, a number or None, got \('t', \['nested'\]\)"),
        ([["a", Unhashable(1.5)]], r"an answer must be a string, a number or None, got 1.5"),
        ("abc", r"answers must be an integer array or a sequence of pools, got 'abc'"),
        (b"abc", r"answers must be an integer array or a sequence of pools, got b'abc'"),
        (7, r"answers must be an integer array or a sequence of pools, got 7"),
        (None, r"answers must be an integer array or a sequence of pools, got None"),
        ([["a"], "bc"], r"each pool must be a sequence of answers; pool 1 is 'bc'"),
        (np.ma.array([[1, 2]], mask=[[True, False]]), r"^answers must not be a masked array"),
        (np.array([[2**63 - 1, 5]]), r"answer codes must be below 2\*\*63 - 1, got 9223372036854775807"),
        (np.empty((3, 0), dtype=int), r"at least one pool of at least one path, got shape \(3, 0\)"),
    ],
)
def test_what_is_no_answer_is_named(answers, told):
    with pytest.raises(InvalidValue, match=told):
        dm.vote(answers)


def test_numbers_that_are_equal_are_one_answer_and_no_number_is_none():
    votes = dm.vote([[2, 2.0, np.float32(2), "2"], [float("nan"), np.float64("nan"), 0.0, -0.0], [float("nan")] * 4])
    assert votes.answer.tolist() == [2, 0, None]
    assert votes.confidence.tolist() == [0.75, 0.5, 0.0]
    assert votes.has_answer.tolist() == [True, True, False]
