"""JSON read strictly: what is refused, and the line it stands in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.files.strict_json import NotJson, RepeatedKey, is_deep, parse

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(values, st.sampled_from([None, 1]))
def test_whatever_json_writes_is_read_as_it_was(value, indent):
    assert parse(json.dumps(value, indent=indent), finite=True) == value


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
