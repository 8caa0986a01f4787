"""Answers that are JSON, and calls of tools: what is the same, what is not, and what is no answer."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stopwatch import a_tenth, seconds

from demur import answers
from demur.answers import json_relation, relation_named, tool_calls_relation
from demur.answers.asked import Asked
from demur.errors import InvalidValue

JSON = json_relation()
CALLS = tool_calls_relation()

texts = st.text(max_size=8)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | texts
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)
objects = st.dictionaries(texts, documents, max_size=4)


def read(text, relation=JSON):
    return relation.key(relation.extract(text).answer)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("[1]", "[1.0]"), ("[1]", "[1e0]"), ("[100]", "[1E2]"), ("[0.1]", "[1e-1]"), ("[0]", "[-0.0]"), ("[1.50]", "[15e-1]"),
        ("[1e400]", "[10e399]"), ('{"a":1,"b":2}', '{ "b" : 2.0,\n "a" : 1 }'), ('["é"]', '["e\u0301"]'),
        ('["\\u00e9"]', '["\\u0065\\u0301"]'), ('["\\u0041\\/"]', '["A/"]'), ('{"é":1}', '{"e\u0301":1}'),
        ('[{"a":[1,{"b":2}]}]', '[{"a":[1.0,{"b":2.0}]}]'), ("[]", " [ ] "), ("```json\n[1]\n```", "[1]"), ("5", "5.0"),
        ("[10000000000000000000000001]", "[1.0000000000000000000000001e25]"),
    ],
)  # fmt: skip
def test_the_same_value_written_in_two_ways(a, b):
    assert JSON.key(a) == JSON.key(b) is not None


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("[1]", "[true]"), ("[0]", "[false]"), ("[0]", "[null]"), ("[1]", '["1"]'), ("[true]", '["true"]'), ("[null]", "[]"),
        ('{"a":null}', "{}"), ('["a"]', '["A"]'), ('["a"]', '["a "]'), ('["año"]', '["ano"]'), ("[1,2]", "[2,1]"),
        ("[1,1,2]", "[1,2,2]"), ("[[1],2]", "[[1,2]]"), ("{}", "[]"), ('[""]', "[null]"), ("[1]", "[-1]"),
        ("[0.1]", "[0.1000000000000000055511151231257827]"), ("[9007199254740993]", "[9007199254740992]"),
        ("[" + "1" * 400 + "]", "[" + "1" * 399 + "2]"), ("[1e400]", "[1e401]"), ('["１"]', '["1"]'), ('["٣"]', '["3"]'),
        ('["a\\u200bb"]', '["ab"]'), ('["ﬁ"]', '["fi"]'), ('["1,5"]', '["1.5"]'), ('["\\ud800"]', '["\\\\ud800"]'),
        ('{"a":1}', '{"A":1}'), ('{"a":1}', '{"a":1,"b":null}'), ("1", '"1"'), ('{"a":{"b":1}}', '{"a":{},"b":1}'),
    ],
)  # fmt: skip
def test_different_values_are_never_one(a, b):
    assert None not in (JSON.key(a), JSON.key(b))
    assert JSON.key(a) != JSON.key(b)


@pytest.mark.parametrize(
    "written",
    [
        "", " ", "null", "NaN", "[NaN]", "[Infinity]", '{"a": -Infinity}', '{"a":1,"a":1}', '{"a":1,"a":2}',
        '{"é":1,"e\u0301":1}', '[{"x":{"a":1,"\\u0061":2}}]', "{'a': 1}", "{a: 1}", "[1,]", "[1 2]", "[01]", "[.5]", "[+1]", "[1.]",
        '["a\nb"]', '"', "{", "[", "Paris", "True", "None", '{"a":1} so', '{"a":1}{"b":2}', "[" * 101 + "]" * 101,
        "[" * 5_000_000 + "]" * 5_000_000, "[" * 10_000_000, '{"a":' * 2_000_000, "[1e99999999999999999999]", "“a”",
        "[" + "1" * 30_000 + "]", "\x00", "\ud800",
    ],
    ids=lambda written: repr(written)[:40],
)  # fmt: skip
def test_what_is_no_valid_value_is_no_answer(written):
    assert JSON.key(written) is None
    assert CALLS.key(written) is None
    assert CALLS.extract(written).answer is None


def test_a_hundred_lists_in_each_other_are_the_deepest():
    assert JSON.key("[" * 100 + "]" * 100) is not None
    assert JSON.key("[" * 99 + "1" + "]" * 99) is not None


def test_python_values_and_their_json_are_one_answer():
    for value in ({"a": [1, 2.5, True, None, "é"]}, [1, {"b": {}}], 5, 2.5, True, []):
        assert JSON.key(value) == JSON.key(json.dumps(value)) is not None
    assert JSON.key(None) is JSON.key(float("nan")) is JSON.key([float("nan")]) is None
    assert JSON.key({"a": "\ud800"}) is not None
    loop: list = []
    loop.append(loop)
    assert JSON.key(loop) is None
    with pytest.raises(InvalidValue, match=r"is not JSON: Object of type set"):
        JSON.key({"a": {1}})


def test_gold_may_be_an_object_or_json_text_and_a_list_holds_the_accepted_ones():
    assert answers.is_correct('{"a": 1.0}', {"a": 1}, JSON)
    assert answers.is_correct({"a": 1}, ['{"a": 2}', '{"a": 1}'], JSON)
    assert answers.is_correct("[1, 2]", [[1, 2]], JSON)
    assert not answers.is_correct("[2, 1]", [[1, 2]], JSON)
    call = {"name": "f", "arguments": {"x": 1}}
    assert answers.is_correct(f"<tool_call>{json.dumps(call)}</tool_call>", call, CALLS)
    assert answers.is_correct([call, call], [[call, call]], CALLS)
    assert answers.is_correct([call, call], [call, call], CALLS)  # a list of calls is one answer
    assert not answers.is_correct(call, [call, call], CALLS)
    assert answers.is_correct(call, [[call, call], call], CALLS)


def test_no_language_changes_what_json_says():
    german = Asked.of(language="de")
    assert JSON.key("[1,5]", german) == JSON.key("[1,5]") != JSON.key("[1.5]", german)


# Rules


def test_ignored_members_might_as_well_not_be_there():
    relation = json_relation(ignore=["/id", "/items/*/ts", "/a~1b", "/m~0n"])
    one = {"id": 7, "items": [{"ts": 1, "x": 2}, {"ts": 3, "x": 4}], "a/b": 1, "m~n": 2}
    other = {"items": [{"x": 2}, {"ts": 9, "x": 4}]}
    assert relation.key(one) == relation.key(other) != relation.key({"items": [{"x": 4}, {"x": 2}]})
    assert relation.key({"items": {"ts": 1}}) != relation.key({"items": {"ts": 2}})  # `*` is one step, never none
    assert relation.key({"x": {"id": 1}}) != relation.key({"x": {"id": 2}})
    by_place = json_relation(ignore=["/0"])
    assert by_place.key([1, 2]) == by_place.key([5, 2]) != by_place.key([1, 3])
    members = json_relation(ignore=["/*/x"])
    assert members.key({"a": {"x": 1}, "b": {"x": 2, "y": 3}}) == members.key({"a": {}, "b": {"y": 3}})


def test_unordered_lists_are_multisets():
    relation = json_relation(unordered=["/tags", "/rows/*/cells"])
    assert relation.key({"tags": ["a", "b", "b"]}) == relation.key({"tags": ["b", "a", "b"]})
    assert relation.key({"tags": ["a", "b", "b"]}) != relation.key({"tags": ["a", "a", "b"]})
    assert relation.key({"tags": [1, "1"]}) == relation.key({"tags": ["1", 1.0]})
    assert relation.key({"tags": ["a"]}) != relation.key({"tags": ["a", "a"]})
    assert relation.key({"tags": "ab"}) != relation.key({"tags": "ba"})
    assert relation.key({"other": [1, 2]}) != relation.key({"other": [2, 1]})
    assert relation.key({"rows": [{"cells": [1, 2]}]}) == relation.key({"rows": [{"cells": [2, 1]}]})
    assert relation.key({"rows": [{"cells": [1]}, {"cells": [2]}]}) != relation.key(
        {"rows": [{"cells": [2]}, {"cells": [1]}]}
    )
    whole = json_relation(unordered=["", "/*"])
    assert whole.key([[1, 2], [3]]) == whole.key([[3], [2, 1]]) != whole.key([[1, 3], [2]])


def test_members_may_be_compared_by_another_relation():
    relation = json_relation(compare={"/total": "mathematics", "/city": "text", "/rows/*/ok": "text"})
    same = [{"total": "1/2"}, {"total": 0.5}, {"total": "\\frac12"}, {"total": "0.50"}]
    assert len({relation.key(value) for value in same}) == 1
    assert relation.key({"city": "The Paris."}) == relation.key({"city": "paris"}) != relation.key({"city": "Rome"})
    assert relation.key({"rows": [{"ok": True}]}) == relation.key({"rows": [{"ok": "True"}]})
    assert relation.key({"total": None}) != relation.key({"total": "null"})
    assert relation.key({"total": ""}) != relation.key({"total": None})
    assert relation.key({"total": [0.5]}) != relation.key({"total": ["1/2"]})
    assert relation.key({"x": "1/2"}) != relation.key({"x": 0.5})
    assert relation.key({"total": "n:5"}) != relation.key({"total": 5})


def test_the_language_of_a_question_is_that_of_texts_not_of_json_numbers():
    relation, german = json_relation(compare={"/x": "mathematics"}), Asked.of(language="de")
    assert relation.key({"x": "1,234"}, german) == relation.key({"x": 1.234}, german)
    assert relation.key({"x": 1.234}, german) != relation.key({"x": 1234}, german)


def test_a_compared_text_never_passes_for_another_value():
    relation = json_relation(compare={"/x": "text"})
    keys = [relation.key({"x": value}) for value in ("a", ["a"], {"a": 1}, None, "", True, 1, 'a","y":"b')]
    assert len(set(keys)) == len(keys)
    inner = json_relation(compare={"/x": "json"})
    assert inner.key({"x": '{"a": 1.0}'}) == inner.key({"x": '{"a":1}'}) != inner.key({"x": 'j:{"a":1}'})


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        ({"ignore": ["id"]}, "'id' is no JSON pointer; write it like"),
        ({"ignore": ["/a~2"]}, "'/a~2' is no JSON pointer"),
        ({"ignore": ["/a~"]}, "is no JSON pointer"),
        ({"ignore": [""]}, "the whole answer, which cannot be ignored"),
        ({"ignore": "/id"}, "`ignore` must be a list of JSON pointers, got '/id'"),
        ({"unordered": [3]}, "`unordered` must be a list of JSON pointers"),
        ({"compare": {"/a": "maths"}}, "unknown relation 'maths'; expected one of mathematics"),
        ({"compare": {"/a": 3}}, "`compare` must name a relation"),
        ({"compare": ["/a"]}, "`compare` must name a relation"),
        ({"compare": {"/a": "text@1"}}, "has the relation text@3, not 'text@1'"),
        ({"compare": {"/a/*": "text", "/*/b": "plain"}}, "lead to one place and compare it in two ways"),
        ({"unordered": ["/a"], "ignore": ["/a/0"]}, "'/a/0' names a place in '/a', which has no order"),
        ({"unordered": ["/*/a"], "ignore": ["/x/a/0/y"]}, "which has no order"),
        ({"schema": []}, r"a schema must be a JSON object, got \[\]"),
        ({"schema": {"type": "objekt"}}, "the schema is none: 'objekt' is not valid"),
        ({"schema": {"$schema": "http://example.org/own"}}, "is not known"),
        ({"schema": {"$ref": "https://example.org/a.json"}}, "nothing is fetched"),
        ({"schema": {"$ref": "other.json"}}, "nothing is fetched"),
        ({"schema": {"$ref": "#/$defs/none"}}, "which it does not hold"),
        ({"schema": {"properties": {"a": {"$id": "http://a/b"}}}}, "make it one schema"),
        ({"schema": {"pattern": "(a)\\1"}}, "cannot be matched in one pass"),
        ({"schema": {"pattern": "("}}, "schema is none|is no pattern"),
        ({"schema": {"title": "x" * 70_000}}, "characters, more than 64000"),
        ({"schema": {"const": float("nan")}}, "are not JSON"),
        ({"schema": {"const": {1}}}, "are not JSON"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("relation", [json_relation, tool_calls_relation])
def test_rules_that_make_no_sense_are_refused_in_one_line(relation, rules, complaint):
    with pytest.raises(InvalidValue, match=complaint) as refused:
        relation(**rules)
    assert "\n" not in str(refused.value)


def test_a_relation_is_named_by_all_of_its_rules_and_read_back_from_its_name():
    assert (JSON.spec, CALLS.spec) == ("json@1", "tool-calls@1")
    rules = {"schema": {"type": "object", "title": "a, (b)"}, "ignore": ["/b", "/a", "/b"], "compare": {"/t": "text"}}
    for make in (json_relation, tool_calls_relation):
        relation = make(**rules)
        assert relation_named(relation.spec).spec == relation.spec != make().spec
        assert '"compare":{"/t":"text@3"},"ignore":["/a","/b"]' in relation.spec
    assert json_relation(ignore=["/a"]).spec == json_relation(ignore=("/a",), unordered=[], schema={}).spec
    assert relation_named('json:{"ignore": ["/a"]}').spec == json_relation(ignore=["/a"]).spec
    assert relation_named("json@1") is relation_named("json") is answers.RELATIONS["json"]
    assert relation_named("mathematics@3") is answers.mathematics


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("json@9", "has the relation json@1, not 'json@9'"),
        ("jsn", "unknown relation 'jsn'; expected one of .*json, tool-calls"),
        ("text:{}", "the relation text takes no rules"),
        ("text:rules.json", "the relation text takes no rules"),
        ("json:{", "are not JSON"),
        ('json@1:{"ignore":["/a"],"ignore":[]}', "are not JSON: the key 'ignore' stands twice"),
        ("json:nowhere.json", "there is no file nowhere.json"),
        ('json:{"ignored":["/a"]}', "have no 'ignored'; expected schema, ignore, unordered, compare"),
        ("json@1:rules.json", "are not JSON"),
    ],
)
def test_names_that_name_no_relation_are_refused(name, complaint):
    with pytest.raises(InvalidValue, match=complaint):
        relation_named(name)


def test_rules_are_read_from_a_file_and_the_schema_from_one_beside_it(tmp_path):
    (tmp_path / "s.json").write_text('{"type": "object"}')
    (tmp_path / "rules.json").write_text('{"schema": "s.json", "ignore": ["/id"]}')
    relation = relation_named(f"json:{tmp_path / 'rules.json'}")
    assert relation.spec == json_relation(schema={"type": "object"}, ignore=["/id"]).spec
    (tmp_path / "rules.json").write_text('{"schema": "s.json", }')
    with pytest.raises(InvalidValue, match=r"rules.json, line 1: Expecting property name"):
        relation_named(f"json:{tmp_path / 'rules.json'}")
    (tmp_path / "rules.json").write_text("[]")
    with pytest.raises(InvalidValue, match="must be a JSON object"):
        relation_named(f"tool-calls:{tmp_path / 'rules.json'}")


# Extraction


@pytest.mark.parametrize(
    ("text", "answer", "method"),
    [
        ('{"a": 1}', '{"a": 1}', "JSON"),
        ('Here it is: {"a": 1}. I hope it helps.', '{"a": 1}', "JSON"),
        ('Sure!\n```json\n{"a": 1}\n```\nDone.', '{"a": 1}', "fenced JSON"),
        ('```\n[1, 2]\n```', "[1, 2]", "fenced JSON"),
        ('```javascript\n{"a": 1}\n```', '{"a": 1}', "fenced JSON"),
        ('First {"a": 1}, no: {"a": 2}', '{"a": 2}', "JSON"),
        ('{"a": 1}\n{"a": 2}\n', '{"a": 2}', "JSON"),
        ('{"a": 1} and [2, 3]', "[2, 3]", "JSON"),
        ('{"a": 1}{"a": ', '{"a": 1}', "JSON"),
        ('{"a": 1}\n```python\nprint([1, 2])\n```', '{"a": 1}', "JSON"),
        ('```python\nx = [1, 2]\n```\n{"a": 1}', '{"a": 1}', "JSON"),
        ('```python print([1])``` gives\n{"a": 1}', '{"a": 1}', "JSON"),
        ('```python\nx = [1]\n``` so\n```json\n{"a": 1}\n```\n```sh\ny=[2]', '{"a": 1}', "fenced JSON"),
        ('For x in [0, 1) it is {"a": {"b": [1]}}', '{"a": {"b": [1]}}', "JSON"),
        ('[Note: {"a": 1}]', '{"a": 1}', "JSON"),
        ('{{"a": 1}}', '{"a": 1}', "JSON"),
        ('\\boxed{{"a": 1}}', '{"a": 1}', "JSON"),
        ('\\[ {"a": 1} \\]', '{"a": 1}', "JSON"),
        ('{"a": 1} where {x | x > 0}', '{"a": 1}', "JSON"),
        ('{"a": "}{ ]["}', '{"a": "}{ ]["}', "JSON"),
        ('{"a": "he said \\"{\\""}', '{"a": "he said \\"{\\""}', "JSON"),
        ('<think>{"a": 1} or [2]</think>\n{"a": 3}', '{"a": 3}', "JSON"),
        ('<think>so {"a": 1}</think>\n', '{"a": 1}', "JSON"),
        ("<think>hm</think> 42 ", "42", "JSON"),
        ('  "Paris"\n', '"Paris"', "JSON"),
        ("true", "true", "JSON"),
        ("Oops { {\"a\": 1, oops. Again: {\"a\": 2}", '{"a": 2}', "JSON"),
        ("", None, "none"), ("null", None, "none"), ("Paris", None, "none"), ("It is 42.", None, "none"),
        ("I don't know.", None, "abstained"),
        ('<think>{"a": 1}', None, "none"),
        ("```python\nx = [1, 2]\n```", None, "none"),
        ("It holds for {x in [1, 2]}.", None, "none"),
        ("{'a': [1, 2]}", None, "invalid JSON"),
        ("{1: [1, 2]}", None, "invalid JSON"),
        ('{a: {"b": 1}}', None, "invalid JSON"),
        ('{"a": {"b": 1},}', None, "invalid JSON"),
        ('[{"a": 1}, {"b": 2,}]', None, "invalid JSON"),
        ('{"a": 1} no: {"a": 2,}', None, "invalid JSON"),
        ('{"a": 1} no: {"a": 2, "a": 3}', None, "invalid JSON"),
        ('{"a": 1} no: {"a": NaN}', None, "invalid JSON"),
        ('{"a": 1, "b: 2}', None, "invalid JSON"),
        ('{"a": {"b": 1}', None, "invalid JSON"),
        ('{"a": "x\ny"}', None, "invalid JSON"),
        ("[" * 101 + "]" * 101, None, "invalid JSON"),
        ("[" * 100_000 + "]" * 100_000, None, "none"),
        ("[" * 100_000, None, "invalid JSON"),
    ],
    ids=lambda value: repr(value)[:50],
)  # fmt: skip
def test_the_last_json_value_is_read(text, answer, method):
    read = JSON.extract(text)
    assert (read.answer, read.method) == (answer, method)
    assert (read.span is None) == (answer is None)
    assert answer is None or text[slice(*read.span)] == answer


def test_a_value_that_begins_before_what_is_looked_at_is_not_read_in_part():
    inner = ", ".join('{"a": 1}' for _ in range(5000))
    assert JSON.extract(f'{{"items": [{inner}], "b": [2]}}').answer is None
    read = JSON.extract("x " * 50_000 + '{"a": 1}')
    assert (read.answer, read.span) == ('{"a": 1}', (100_000, 100_008))


def test_a_truncated_path_has_no_answer():
    assert JSON.extract('{"a": 1}', truncated=True).answer is None


def test_a_schema_says_what_counts():
    schema = {"type": "object", "properties": {"total": {"type": "number", "minimum": 0}}, "required": ["total"]}
    relation = json_relation(schema=schema)
    assert relation.extract('{"total": 5} as said in [1]').answer == '{"total": 5}'
    for text in ('{"total": -1}', '{"total": "5"}', '{"sum": 5}', '{"total": 5} no: {"total": "six"}'):
        assert relation.extract(text) == answers.Extraction(None, "against the schema")
        assert relation.key(text[-20:].strip()) is None
    assert relation.key({"total": 5.0}) == relation.key('{"total": 5}') is not None
    assert json_relation(schema={"type": "integer"}).extract("5.0").answer == "5.0"
    assert json_relation(schema={"type": "integer"}).extract("5.5").method == "against the schema"


# Calls of tools

ONE = {"name": "search", "arguments": {"query": "x", "n": 1}}
NESTED = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"n": 1.0, "query": "x"}'}}
ONE_WRITTEN = [
    json.dumps(ONE),
    json.dumps([ONE]),
    json.dumps(NESTED),
    json.dumps([NESTED | {"id": "call_2"}]),
    json.dumps({"role": "assistant", "content": None, "tool_calls": [NESTED]}),
    json.dumps({"tool_calls": [ONE]}),
    json.dumps({"function_call": NESTED["function"]}),
    json.dumps({"name": "search", "parameters": {"query": "x", "n": 1}}),
    json.dumps({"type": "tool_use", "id": "t", "name": "search", "input": {"query": "x", "n": 1}}),
    f"<tool_call>{json.dumps(ONE)}</tool_call>",
    f"<tool_call>\n{json.dumps(ONE, indent=1)}\n</tool_call>\n",
    f"<tool_call>\n{json.dumps(ONE)}",
    f"```json\n{json.dumps(ONE)}\n```",
]
IN_TEXTS = [
    f"<|python_tag|>{json.dumps(ONE)}<|eom_id|>",
    f"[TOOL_CALLS] [{json.dumps(ONE)}]</s>",
    f"**Call:** `{json.dumps(ONE)}`",
    f"<tool_calls>{json.dumps(ONE)}</tool_calls>",
    f"<tool_call>{json.dumps(ONE)}<tool_call>",
]


@pytest.mark.parametrize("written", ONE_WRITTEN, ids=lambda written: written[:40])
def test_one_call_in_many_ways(written):
    assert CALLS.key(written) == CALLS.key(ONE) == 'j:[{"search":{"n":1,"query":"x"}}]'
    assert read(f"I will look it up.\n{written}", CALLS) == CALLS.key(ONE)
    assert read(f"<think>{json.dumps(ONE)} maybe</think>Now.\n{written}", CALLS) == CALLS.key(ONE)


@pytest.mark.parametrize("text", IN_TEXTS, ids=lambda text: text[:20])
def test_one_call_in_the_dress_of_many_models(text):
    assert read(text, CALLS) == CALLS.key(ONE)


def test_several_calls_have_an_order_unless_the_rules_say_not():
    other = {"name": "search", "arguments": {"query": "y", "n": 1}}
    first, last = json.dumps(ONE), json.dumps(other)
    both = CALLS.key([ONE, other])
    for text in (
        f"<tool_call>{first}</tool_call> and <tool_call>{last}</tool_call>",
        f"```json\n{first}\n```\n\n```json\n{last}\n```",
        f"Calls: {first}; {last}",
        f"{first}\n{last}",
        f"I call:\n\n- {first}\n- {last}\n",
        f"First {first}, and with that I go on: {last}",
        f"<tool_call>{first}<tool_call>{last}<tool_call>",
        f"[{first}, {last}]",
    ):
        assert read(text, CALLS) == both, text
    assert both != CALLS.key([other, ONE])
    assert both != CALLS.key([ONE]) != CALLS.key([ONE, ONE])
    parallel = tool_calls_relation(unordered=[""])
    assert parallel.key([ONE, other]) == parallel.key([other, ONE]) != parallel.key([ONE, ONE])


def test_no_call_is_lost_before_what_is_looked_at():
    call = json.dumps(ONE)
    assert read("x " * 20_000 + call, CALLS) == CALLS.key(ONE)
    assert read(call + "x " * 20_000 + call, CALLS) is None
    assert read(f"<think>{call} {'x ' * 20_000}</think>{call}", CALLS) == CALLS.key(ONE)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Search"}, {"name": "search "}, {"arguments": {"query": "x"}}, {"arguments": {"query": "x", "n": 2}},
        {"arguments": {"query": "x", "n": "1"}}, {"arguments": {"query": "X", "n": 1}}, {"arguments": {}},
        {"arguments": {"query": "x", "n": 1, "m": None}},
    ],
)  # fmt: skip
def test_another_name_or_argument_is_another_call(change):
    assert CALLS.key(ONE | change) not in (None, CALLS.key(ONE))


@pytest.mark.parametrize(
    "value",
    [
        [], {}, {"tool_calls": []}, {"tool_calls": None}, {"name": "search"}, {"name": "", "arguments": {}},
        {"name": 3, "arguments": {}}, ONE | {"arguments": "{x: 1}"}, ONE | {"arguments": "[1]"}, ONE | {"arguments": [1]},
        ONE | {"arguments": 5}, ONE | {"arguments": '{"a": 1, "a": 2}'}, ONE | {"parameters": {}}, ONE | {"note": "why"},
        [ONE, 5], [ONE, {}], {"function": "search", "arguments": {}}, {"type": "function", "function": ONE, "x": 1}, 5, "x", None,
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_call_is_no_answer(value):
    assert CALLS.key(value) is None
    assert CALLS.extract(json.dumps(value)).answer is None


def test_a_text_without_a_call_and_one_with_a_broken_call_are_told_apart():
    assert CALLS.extract("It is sunny.").method == "none"
    assert CALLS.extract('{"temperature": 20}').method == "none"
    assert CALLS.extract('<tool_call>{"name": "f", "arguments": {x}}</tool_call>').method == "invalid JSON"
    assert (
        CALLS.extract(f'<tool_call>{json.dumps(ONE)}</tool_call><tool_call>{{"name"</tool_call>').method
        == "invalid JSON"
    )
    assert read(f'{json.dumps(ONE)}\n{{"temperature": 20}}', CALLS) == CALLS.key(ONE)
    schema = {"items": {"properties": {"name": {"enum": ["add"]}}}}
    assert tool_calls_relation(schema=schema).extract(json.dumps(ONE)).method == "against the schema"
    assert tool_calls_relation(schema=schema).key(ONE | {"name": "add"}) is not None


def test_rules_of_calls_begin_with_the_name_of_a_tool():
    relation = tool_calls_relation(
        ignore=["/*/request_id", "/log"],
        unordered=["/search/tags"],
        compare={"/search/query": "text", "/pay/sum": "mathematics"},
    )
    search = {"name": "search", "arguments": {"query": "The Paris", "tags": [1, 2], "request_id": 1}}
    same = {"name": "search", "arguments": {"query": "paris", "tags": [2, 1]}}
    assert relation.key(search) == relation.key([{"name": "log", "arguments": {"m": 1}}, same])
    assert relation.key({"name": "find", "arguments": {"query": "Paris"}}) != relation.key(
        {"name": "find", "arguments": {"query": "paris"}}
    )
    assert relation.key({"name": "pay", "arguments": {"sum": "1/2"}}) == relation.key(
        {"name": "pay", "arguments": {"sum": 0.5}}
    )
    assert relation.key({"name": "log", "arguments": {"m": 1}}) is None


def test_pointers_that_lead_nowhere_are_told():
    relation = json_relation(ignore=["/id", "/items/*/ts"], unordered=["", "/tags"], compare={"/total": "mathematics"})
    assert relation.structure.unmet(['{"id": 1}', "no JSON", '{"items": [{"ts": 1}]}', '{"tags": 5}']) == ["/total"]
    calls = tool_calls_relation(ignore=["/search/n", "/find/n", "/log"])
    assert calls.structure.unmet([json.dumps(ONE)]) == ["/find/n", "/log"]


# What holds for every value


@given(documents)
def test_a_value_is_itself_however_it_is_written(value):
    written = [json.dumps(value), json.dumps(value, ensure_ascii=False, indent=2), json.dumps(value, sort_keys=True)]
    if value is not None and all(_composed_once(value)):
        assert len({JSON.key(text) for text in written}) == 1
        assert JSON.key(written[0]) is not None
        assert answers.equivalent(written[0], written[1], JSON)
        assert answers.equivalent(written[1], written[0], JSON)


def _composed_once(value):
    """For each object whether its names stay apart when accents are composed."""
    if isinstance(value, dict):
        yield len({unicodedata.normalize("NFC", name) for name in value}) == len(value)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _composed_once(inner)


def _shuffled(value, rng):
    if isinstance(value, dict):
        return {name: _shuffled(value[name], rng) for name in rng.sample(list(value), len(value))}
    return [_shuffled(entry, rng) for entry in value] if isinstance(value, list) else value


@given(documents, st.integers(0, 99))
def test_the_order_of_members_never_counts(value, seed):
    assert JSON.key([value]) == JSON.key([_shuffled(value, random.Random(seed))])


def _places(value, path=()):
    yield path
    for step, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from _places(inner, (*path, step))


def _at(value, path):
    for step in path:
        value = value[step]
    return value


def _with(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _with(value[path[0]], path[1:], new)
    return copy


def _same(a, b):
    """Sameness of parsed JSON, read literally."""
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b
    if type(a) is not type(b):
        return False
    if isinstance(a, str):
        return unicodedata.normalize("NFC", a) == unicodedata.normalize("NFC", b)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return a.keys() == b.keys() and all(_same(a[name], b[name]) for name in a)


ascii_documents = st.recursive(
    st.none() | st.booleans() | numbers | st.text("ab1 ", max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab1 ", max_size=3), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300)
@given(ascii_documents, ascii_documents, st.randoms(use_true_random=False))
def test_every_change_of_one_value_changes_the_key_unless_it_is_ignored(value, new, rng):
    value = [value]
    path = rng.choice([place for place in _places(value) if place])
    mutant = _with(value, path, new)
    assert (JSON.key(value) == JSON.key(mutant)) == _same(_at(value, path), new)
    pointer = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
    ignoring = json_relation(ignore=[pointer])
    assert ignoring.key(value) == ignoring.key(mutant)


@given(ascii_documents, ascii_documents)
def test_equal_keys_are_equal_values_and_nothing_else(a, b):
    assert (JSON.key([a]) == JSON.key([b])) == _same(a, b)


@given(st.lists(ascii_documents, max_size=5), st.randoms(use_true_random=False))
def test_an_unordered_list_is_the_same_in_every_order(value, rng):
    relation = json_relation(unordered=["/x"])
    assert relation.key({"x": value}) == relation.key({"x": rng.sample(value, len(value))})


@given(objects, st.text(alphabet="abc .\n", max_size=20), st.text(alphabet="abc .\n", max_size=20))
def test_an_object_in_prose_is_found_where_it_stands(value, before, after):
    written = json.dumps(value, ensure_ascii=False)
    found = JSON.extract(before + written + after)
    if JSON.key(written) is not None and "think>" not in written:
        assert (found.answer, found.span) == (written, (len(before), len(before) + len(written)))


@settings(max_examples=300)
@given(st.binary(max_size=60) | st.text("{}[]\",:\\ntrue1e-. '`<>/thinkol_c", max_size=60).map(str.encode))
def test_no_text_makes_it_fail_and_what_is_read_has_a_key(raw):
    text = raw.decode("utf-8", "surrogateescape")
    for relation in (JSON, CALLS):
        found = relation.extract(text)
        relation.key(text)
        if found.answer is not None:
            assert relation.key(found.answer) is not None
            assert text[slice(*found.span)].strip()


def test_keys_are_the_same_in_every_process():
    code = (
        "from demur.answers import json_relation as j\n"
        "r = j(ignore=['/id'], unordered=['/t', '/*/u'], compare={'/c': 'text', '/n': 'mathematics'})\n"
        "print(r.spec, r.key({'t': ['b', 'a', {'x': 1}], 'id': 3, 'c': 'The A', 'n': '1/2', 'z': {'u': [2, 1]},'é': 1.5}))"
    )
    ran = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(ran) == 1


HOSTILE = {
    "{": "{", "[": "[", "[{": "[{", '{"a":': '{"a":', "[1,": "[1,", '{"x': '{"x', '{"x" ': '{"x" ', '["': '["', '{"\\': '{"\\',
    "}": "}", "{}": "{} ", "{'": "{'", "[1,2)": "[1,2) ", "{[}": "{[}", "blanks": "{" + " " * 20, "frac": "\\frac{", "\\": "\\",
    "fences": "```\n", "code": "```python\n[1]\n```\n", "block": "<tool_call>", "blocks": "<tool_call>{", "<": "<tool_call><",
    "calls": '{"name":"f","arguments":{}} ', "think": "</think>", "deep": "[" * 100 + "]" * 100, "quotes": '"', "{{": "{{\"",
    "stray": "]}",
}  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize(
    "relation", [JSON, CALLS, json_relation(ignore=["/*/x"], unordered=["", "/*/*"])], ids=["json", "calls", "rules"]
)
def test_hostile_text_takes_no_long_time(relation, piece):
    for length in (19_000, 100_000, 2_000_000):
        text = piece * (length // len(piece))
        assert seconds(relation.extract, text) < a_tenth()
        assert seconds(relation.key, text) < a_tenth()


@pytest.mark.parametrize(
    "text",
    ["[" + "1," * 9900 + "1]", "[" + "1" * 19_000 + "]", '["' + "a" * 19_000 + '"]', "[1e" + "9" * 19_000 + "]", "[" + "{}," * 6000 + "{}]"],
    ids=lambda text: text[:8],
)  # fmt: skip
def test_large_values_take_no_long_time(text):
    for relation in (JSON, CALLS, json_relation(unordered=[""], compare={"/*": "mathematics"})):
        assert seconds(relation.extract, text) < a_tenth()
        assert seconds(relation.structure.key.__wrapped__, text) < a_tenth()
