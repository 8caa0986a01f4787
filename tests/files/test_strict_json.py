"""JSON read strictly: what is refused, and the line it stands in."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.files.strict_json import NotJson, RepeatedKey, as_json, is_deep, is_finite, parse

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(values, st.sampled_from([None, 1]))
def test_whatever_json_writes_is_read_as_it_was(value, indent):
    assert parse(json.dumps(value, indent=indent), finite=True) == value


@given(values, st.booleans())
def test_finite_values_are_written_as_ever(value, is_ascii):
    assert as_json(value, ensure_ascii=is_ascii, finite=True) == json.dumps(value, ensure_ascii=is_ascii)
    assert is_finite(value)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (float("nan"), "null"),
        ([1.5, float("inf"), (float("-inf"),)], "[1.5, null, [null]]"),
        ({"a": {"b": [float("nan")]}, "c": "NaN"}, '{"a": {"b": [null]}, "c": "NaN"}'),
        (np.float64("inf"), "null"),
    ],
)
def test_numbers_that_json_does_not_have_become_null_or_are_refused(value, written):
    assert as_json(value) == written
    assert not is_finite(value)
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_json(value, finite=True)


def test_numbers_that_json_does_not_have_are_found_in_keys_and_in_what_stands_for_other_values():
    assert parse(as_json({float("inf"): 1}), finite=True) == {"inf": 1}
    assert as_json([object(), float("nan")], default=lambda _: {"a": float("inf")}) == '[{"a": null}, null]'


@given(st.lists(st.text(), min_size=1, max_size=4, unique=True), values)
def test_a_key_that_stands_twice_is_found_in_its_line(keys, value):
    entries = [*(f"{json.dumps(key)} : {json.dumps(value)}" for key in keys), f"{json.dumps(keys[0])}:1"]
    with pytest.raises(RepeatedKey, match="stands twice") as refused:
        parse("[{},\n{\n" + ",\n".join(entries) + "}]")
    assert refused.value.line == 3 + len(keys)


def test_the_same_key_in_two_objects_is_no_repetition():
    assert parse('[{"a": {"a": ["a", {"a": 1}]}}, {"a": "a\\":"}]') == [{"a": {"a": ["a", {"a": 1}]}}, {"a": 'a":'}]


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("[1,\n 2", "at column 3", 2),
        ("9" * 5000, "too many digits", 1),
        ("[" * 200 + "]" * 200, "too deeply", 1),
        ("[" * 100_000, "too deeply", 1),
        ("[NaN]", "NaN is not JSON", 1),
        ("", "Expecting value", 1),
    ],
)
def test_what_cannot_be_read_says_why_and_where(text, said, line):
    with pytest.raises(NotJson, match=said) as refused:
        parse(text, finite=True)
    assert refused.value.line == line


def test_depth_is_counted_in_lists_and_objects():
    value: object = 1
    for _ in range(100):
        value = [value] if is_deep(value) is False else value
    assert not is_deep(value)
    assert is_deep({"a": [value, 1]})
