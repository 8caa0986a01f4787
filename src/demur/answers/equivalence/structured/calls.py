"""Calls of tools, however a model or a server writes them: their names and their arguments, in order.

    {"name": "search", "arguments": {"query": "…"}}                                      or a list of such
    {"id": "…", "type": "function", "function": {"name": "search", "arguments": "{…}"}}  arguments as JSON in a text
    {"role": "assistant", "tool_calls": […]}                                             the message that holds them
    {"role": "assistant", "function_call": {…}}                                          as it once was
    <tool_call>{"name": …, "arguments": …}</tool_call>                                   one block or several

`parameters` and `input` are other names of `arguments`. Ids and types do not count. No call is no answer.
"""

from __future__ import annotations

import re
from typing import Any

from demur.answers.equivalence.structured import values

Calls = list[tuple[str, Any]]

BLOCK = re.compile(r"<tool_call>([^<]*(?:<(?!/?tool_call>)[^<]*)*+)(?:</tool_call>|(?=<tool_call>)|\Z)")
_ARGUMENTS = ("arguments", "parameters", "input")
_IN_MESSAGES = ("tool_calls", "function_call")
_ASIDE = frozenset({"id", "type", "index", "call_id", "status"})


def calls_written_as(text: str) -> Calls | None:
    """The calls that an answer is; None where it is none, or not of calls alone."""
    if "<tool_call>" in text[: values.LONGEST]:
        if len(text) > values.LONGEST or BLOCK.sub("", text).strip():
            return None
        value: Any = [values.parsed(block) for block in BLOCK.findall(text)]
    else:
        value = values.parsed(text)
    return calls_of(value) or None


def calls_of(value: Any) -> Calls | None:
    """The calls that a value is; None where it is none, or where something in it is no call."""
    if isinstance(value, list):
        inner = [calls_of(entry) for entry in value]
        return None if None in inner else [call for calls in inner if calls is not None for call in calls]
    if not isinstance(value, dict):
        return None
    for message in _IN_MESSAGES:
        if message in value:
            return calls_of(value[message])
    call = value["function"] if "function" in value and value.keys() - _ASIDE == {"function"} else value
    return _one_call(call) if isinstance(call, dict) else None


def resembles_call(value: Any) -> bool:
    """Whether a value has what only calls have, be they whole or broken."""
    if isinstance(value, list):
        return any(map(resembles_call, value[:1]))
    if not isinstance(value, dict):
        return False
    if "function" in value or any(value.get(message) for message in _IN_MESSAGES):
        return True
    return "name" in value and not value.keys().isdisjoint(_ARGUMENTS)


def _one_call(call: dict[str, Any]) -> Calls | None:
    rest = call.keys() - _ASIDE - {"name"}
    name = call.get("name")
    if not isinstance(name, str) or not name or len(rest) != 1 or not rest <= set(_ARGUMENTS):
        return None
    arguments = call[rest.pop()]
    if isinstance(arguments, str):
        arguments = values.parsed(arguments) if arguments.strip() else {}
    elif arguments is None:
        arguments = {}
    return [(name, arguments)] if isinstance(arguments, dict) else None
