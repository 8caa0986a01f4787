"""Schemas of structured answers: what the library says, exactly and in bounded time, and nothing fetched."""

from __future__ import annotations

import json
import re
import socket
import sys

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stopwatch import a_tenth, seconds

from demur.answers import json_relation
from demur.answers.equivalence.structured.patterns import Pattern
from demur.answers.equivalence.structured.schemas import Schema
from demur.answers.equivalence.structured.values import parsed
from demur.errors import InvalidValue, MissingExtra

documents = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, 2.5]) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "ab"]), inner, max_size=3),
    max_leaves=8,
)
simple = st.sampled_from(
    [
        {}, {"type": "integer"}, {"type": "number"}, {"type": ["string", "null"]}, {"type": "boolean"}, {"minimum": 1},
        {"exclusiveMaximum": 2}, {"multipleOf": 0.5}, {"enum": [1, "a", None, [1], {"a": 1}]}, {"const": 1},
        {"minLength": 2}, {"pattern": "^a+b?$"}, {"pattern": "b"}, {"uniqueItems": True}, {"minItems": 2}, {"required": ["a"]},
        {"maxProperties": 1}, {"$ref": "#/$defs/one"}, {"contains": {"type": "integer"}}, {"propertyNames": {"pattern": "^a"}},
        {"dependentRequired": {"a": ["b"]}}, {"format": "date"},
    ]
)  # fmt: skip
schemas = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.fixed_dictionaries({"a": inner, "b": inner})}
        ),
        st.fixed_dictionaries({"properties": st.fixed_dictionaries({"a": inner}), "additionalProperties": inner}),
        st.fixed_dictionaries({"properties": st.just({"a": True}), "additionalProperties": st.just(False)}),
        st.fixed_dictionaries(
            {"patternProperties": st.fixed_dictionaries({"^a": inner}), "additionalProperties": inner}
        ),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"prefixItems": st.tuples(inner).map(list), "items": st.just(False)}),
        st.lists(inner, min_size=1, max_size=2).flatmap(
            lambda parts: st.sampled_from([{"anyOf": parts}, {"oneOf": parts}, {"allOf": parts}])
        ),
        inner.map(lambda part: {"not": part}),
        st.fixed_dictionaries({"if": inner, "then": inner, "else": inner}),
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(schemas, documents)
def test_a_schema_allows_what_the_library_allows(schema, value):
    schema = {**schema, "$defs": {"one": {"const": 1}}}
    wanted = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert Schema(schema).allows(parsed(json.dumps(value))) == wanted


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"type": "integer"}, ["5", "5.0", "5e3", "1" * 5000], ["5.5", "true", '"5"']),
        ({"const": 0.1}, ["0.1", "0.10", "1e-1"], ["0.1000000000000000055511151231257827"]),
        ({"const": 1}, ["1", "1.0"], ["true", '"1"']),
        ({"enum": [9007199254740993]}, ["9007199254740993"], ["9007199254740992"]),
        ({"multipleOf": 0.01}, ["19.99", "0", "1e2"], ["19.999", "1e5000", "1e-5000"]),
        ({"maximum": 10}, ["10", "-1e5000"], ["10.000000000000000000000001", "1e5000"]),
        ({"uniqueItems": True}, ["[1, true, null]"], ["[1, 1.0]", '[{"a": 1, "b": 2}, {"b": 2, "a": 1}]']),
        ({"const": "é"}, ['"e\u0301"', '"\\u00e9"'], ['"e"']),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^a$"}, ['"a"'], ['"ba"']),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}, ["1"], ['"1"']),
    ],
)
def test_numbers_and_texts_are_compared_exactly(schema, right, wrong):
    relation = json_relation(schema=schema)
    assert all(relation.key(answer) is not None for answer in right)
    assert all(relation.key(answer) is None for answer in wrong)


def test_a_schema_that_leads_to_itself_is_followed_as_far_as_values_go():
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}
    assert json_relation(schema=tree).key('{"next":' * 99 + "{}" + "}" * 99) is not None
    assert json_relation(schema=tree).key('{"next":' * 50 + "[]" + "}" * 50) is None
    assert json_relation(schema={"$ref": "#"}).key("{}") is None


def test_nothing_is_fetched(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    for target in ("http://127.0.0.1:9/a", "https://example.org/a#/b", "file:///etc/passwd", "a.json", "//a/b"):
        for name in ("$ref", "$dynamicRef"):
            with pytest.raises(InvalidValue, match="nothing is fetched"):
                json_relation(schema={"properties": {"x": {"anyOf": [{name: target}]}}})
    assert json_relation(schema={"$id": "http://example.org/x", "$ref": "#/$defs/a", "$defs": {"a": {}}}).key("{}")


def test_the_library_may_be_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(MissingExtra, match=r"a schema needs jsonschema; install it with: .*install '.*schema"):
        json_relation(schema={"type": "object"})
    assert json_relation(ignore=["/a"]).key("{}") is not None


def test_large_answers_take_no_long_time():
    nothing_fits = {
        "anyOf": [{"type": "string"}, {"type": "boolean"}, {"type": "object", "required": ["x"]}, {"minimum": 1}]
    }
    relation = json_relation(schema={"items": nothing_fits, "uniqueItems": True})
    for answer in ("[" + "1," * 9000 + "1]", "[" + "{}," * 5000 + "{}]", json.dumps([{"x": n} for n in range(800)])):
        assert seconds(relation.structure.key.__wrapped__, answer) < a_tenth()


# Patterns

atoms = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", "[a-c1]", r"\.", "(?:a|b)", "(ab|a)", "^", "$", "", r"[\d-]", "é"]
)
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "{0,2}?"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(patterns, st.text("ab1.c-é", max_size=8))
def test_a_pattern_matches_what_it_always_did(pattern, text):
    assert Pattern(pattern).found_in(text) == (re.search(pattern, text, re.ASCII) is not None)


@pytest.mark.parametrize(
    ("pattern", "right", "wrong"),
    [
        (r"^\d{4}-\d{2}-\d{2}$", ["2024-01-31"], ["2024-1-31", "x2024-01-31", "2024-01-31\n"]),
        (r"^[^@\s]+@[^@\s]+\.[a-z]{2,}$", ["a@b.org"], ["a@b", "@b.org"]),
        (r"^(?<a>USD|EUR)$", ["USD", "EUR"], ["usd", "USDEUR"]),
        (r"^[\w.\-\[\]&|~]+$", ["a.b-[c]&|~"], ["a b"]),
        (r"\u0041\x42\/\t", ["AB/\t"], ["AB/t"]),
        (r"^a{2}{$", ["aa{"], ["aa"]),
        ("", ["", "a"], []),
        ("^$", [""], ["a"]),
    ],
)
def test_usual_patterns(pattern, right, wrong):
    assert all(map(Pattern(pattern).found_in, right))
    assert not any(map(Pattern(pattern).found_in, wrong))


@pytest.mark.parametrize(
    "pattern",
    [r"(a)\1", "(?=a)b", "(?!a)b", "(?<=a)b", r"\bword\b", r"\p{L}", "(a", "a)", "*a", "a**", "[", "[]", "[b-a]", "a{3,2}", r"\k<a>",
     "a{5000}", "(" * 50 + "a" + ")" * 50, "(?i)a", r"\c", "\\", "(a{20}){30}", "[[:alpha:]-\\", "((((){999}){999}){999}){999}"],
)  # fmt: skip
def test_other_patterns_are_refused(pattern):
    with pytest.raises(InvalidValue, match="the schema's pattern"):
        Pattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*$", "(a|ab)*c", "(.*a){20}", "a*a*a*a*a*b", "^(([a-z])+.)+[A-Z]([a-z])+$"]
)
def test_no_pattern_backtracks(pattern):
    compiled = Pattern(pattern)
    assert seconds(compiled.found_in, "a" * 4999 + "!") < a_tenth()
    assert not compiled.found_in("a" * 5001)
