"""Structured answers: the last JSON value of a text, or the calls of tools in it.

A broken value behind the last whole one means that there is no answer: the whole one was not the last word. So does a
broken one anywhere among calls, of which none may be lost.
"""

from __future__ import annotations

from collections.abc import Callable

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.equivalence.structured import values
from demur.answers.equivalence.structured.calls import BLOCK, calls_of, resembles_call
from demur.answers.equivalence.structured.keys import JsonValues, ToolCalls, as_list
from demur.answers.extraction import ABSTAINED, NOTHING, Extraction, is_refusal
from demur.answers.extraction.json_in_text import FinalPart, Value

BROKEN = Extraction(None, "invalid JSON")
UNWANTED = Extraction(None, "against the schema")

_SIGNS_OF_CALLS = ("<tool_call>", '"arguments"', '"parameters"', '"input"')
_KINDS: dict[str | None, tuple[type, ...]] = {"object": (dict,), "array": (list,), None: (dict, list)}


def extract_value(structure: JsonValues) -> Callable[[str, Asked], Extraction]:
    """How the last value of a text is read: an object or a list, or anything else if there is nothing but it."""

    def extract(text: str, asked: Asked = NOTHING_SAID) -> Extraction:
        part = FinalPart.of(text)
        schema = structure.settings.schema
        wanted = _KINDS[None if schema is None else schema.top]
        read = [found for found in part.values if found.value is values.INVALID or isinstance(found.value, wanted)]
        if not read:
            return _alone(part, structure)
        last = read[-1]
        if last.value is values.INVALID:
            return BROKEN
        if not structure.allows(last.value):
            return UNWANTED
        method = "JSON" if part.fence_around(last.start) is None else "fenced JSON"
        return Extraction(part.written(last), method, part.span(last.start, last.end))

    return extract


def extract_calls(structure: ToolCalls) -> Callable[[str, Asked], Extraction]:
    """How calls of tools are read: all that stand in `<tool_call>` blocks, or else all there are."""

    def extract(text: str, asked: Asked = NOTHING_SAID) -> Extraction:
        part = FinalPart.of(text)
        read = _blocks(part) or _bare_calls(part)
        if not read:
            return _silence(part)
        made = calls_of([found.value for found in read])
        if not made or (part.cut and any(sign in text[: part.offset] for sign in _SIGNS_OF_CALLS)):
            return BROKEN
        if not structure.allows(as_list(made)):
            return UNWANTED
        answer = part.written(read[0]) if len(read) == 1 else values.written(as_list(made))
        return Extraction(answer, "tool call", part.span(read[0].start, read[-1].end))

    return extract


def _alone(part: FinalPart, structure: JsonValues) -> Extraction:
    """A text, a number, true or false, where nothing else is written."""
    value = values.parsed(part.text)
    if value is values.INVALID or isinstance(value, (dict, list)) or value is None:
        return BROKEN if part.unfinished else _silence(part)
    if not structure.allows(value):
        return UNWANTED
    bare = part.text.strip()
    start = part.text.index(bare)
    return Extraction(bare, "JSON", part.span(start, start + len(bare)))


def _silence(part: FinalPart) -> Extraction:
    return ABSTAINED if is_refusal(part.text) else NOTHING


def _blocks(part: FinalPart) -> list[Value]:
    """What stands in the blocks."""
    read = []
    for block in BLOCK.finditer(part.text):
        if inside := block.group(1).strip():
            start = part.text.index(inside, block.start(1))
            read.append(Value(values.parsed(inside), start, start + len(inside)))
    return read


def _bare_calls(part: FinalPart) -> list[Value]:
    """The values that are calls, whole or broken, and whatever is broken."""
    return [found for found in part.values if found.value is values.INVALID or resembles_call(found.value)]
