"""When two written answers are the same."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.answers import key

decimals = st.from_regex(r"[+-]?([0-9]{1,6}(\.[0-9]{0,5})?|\.[0-9]{1,5})", fullmatch=True)


@pytest.mark.parametrize("answer", ["6", "6.0", " 6 ", "+6", "06", "6.", "6.000", 6, 6.0])
def test_one_number_written_in_many_ways(answer):
    assert key(answer) == "6"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("0.50", "0.5"), (".5", "0.5"), ("-0", "0"), ("-0.0", "0"), ("-.5", "-0.5"), (1e-7, "0.0000001"), ("1e-7", "1e-7"),
     ("A", "A"), (" two words ", "two words"), ("6 apples", "6 apples"), ("1/2", "1/2"), (".", "."), ("-", "-"),
     (True, "true"), ("٣", "٣"), (10**30, "1" + "0" * 30)],
)  # fmt: skip
def test_keys_by_hand(answer, expected):
    assert key(answer) == expected


@pytest.mark.parametrize("answer", [None, "", "  ", "\n", float("nan")])
def test_what_is_no_answer(answer):
    assert key(answer) is None


@given(decimals, decimals)
def test_decimals_share_a_key_exactly_when_they_are_equal(first, second):
    assert (key(first) == key(second)) == (Fraction(first.removeprefix("+")) == Fraction(second.removeprefix("+")))


@given(st.text())
def test_a_key_is_its_own_key(text):
    found = key(text)
    assert found is None or key(found) == found


def test_huge_answers_cost_only_their_length():
    assert key("9" * 1_000_000) == "9" * 1_000_000
    assert key("0" * 1_000_000 + "1") == "1"
    assert key("1." + "0" * 1_000_000) == "1"
