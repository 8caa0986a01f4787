"""Structured answers: the last JSON value of a text, or the calls of tools that it ends in.

The text is searched from its start for brackets that open a value. What only looks like one is not searched for
values inside, so that no part of a broken answer passes for a whole one; a broken one behind the last value that is
whole means that there is none. Code of other languages is passed over. One pass, over the last characters only.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.equivalence.structured import values
from demur.answers.equivalence.structured.calls import BLOCK, calls_of, resembles_call
from demur.answers.equivalence.structured.keys import JsonValues, ToolCalls, as_list
from demur.answers.extraction import ABSTAINED, NOTHING, Extraction, is_refusal

BROKEN = Extraction(None, "invalid JSON")
UNWANTED = Extraction(None, "against the schema")

_REASONING = re.compile(r"</?(?:think|thinking|reasoning|thought)>", re.I)
_FENCE = re.compile(r"^[ \t]*```+[ \t]*([\w+-]*)", re.M)
_NO_CODE = frozenset(
    {
        "",
        "json",
        "jsonc",
        "json5",
        "jsonl",
        "js",
        "javascript",
        "text",
        "txt",
        "output",
        "xml",
        "tool_call",
        "tool_calls",
    }
)
_OPENING = re.compile(r"\\(?:[A-Za-z]{1,20}\s?)?[{\[]|[{\[]")  # behind a backslash it is one of LaTeX's
_BRACKET = re.compile(r"\\[{}\[\]]|[{}\[\]]")
_LIKE_JSON = re.compile(r'\{\s*["}]|\[\s*(?:\{\s*["}]|["\[\]\-\d]|true|false|null|NaN|Infinity)')
_MEANT_AS_JSON = re.compile(r"""\{\s*(?:["']|\w{1,50}\s*:)|\[\s*[{"']""")
_BETWEEN_CALLS = re.compile(r"[\s;,]*(?:```\s*```\w*\s*)?")
_KINDS: dict[str | None, tuple[type, ...]] = {"object": (dict,), "array": (list,), None: (dict, list)}
_OTHER = {"}": "{", "]": "["}


@dataclass(frozen=True, slots=True)
class _Value:
    """A value, or a broken one (INVALID), and where it stands."""

    value: Any
    start: int
    end: int


def extract_value(structure: JsonValues) -> Callable[[str, Asked], Extraction]:
    """How the last value of a text is read: an object or a list, or anything else if there is nothing but it."""

    def extract(text: str, asked: Asked = NOTHING_SAID) -> Extraction:
        part = _Part.of(text)
        schema = structure.settings.schema
        wanted = _KINDS[None if schema is None else schema.top]
        read = [found for found in part.values if found.value is values.INVALID or isinstance(found.value, wanted)]
        if not read:
            return _alone(part, structure)
        if read[-1].value is values.INVALID:
            return BROKEN
        if not structure.allows(read[-1].value):
            return UNWANTED
        last = read[-1]
        method = "JSON" if part.fence_around(last.start) is None else "fenced JSON"
        return Extraction(part.written(last), method, part.span(last.start, last.end))

    return extract


def extract_calls(structure: ToolCalls) -> Callable[[str, Asked], Extraction]:
    """How calls of tools are read: all `<tool_call>` blocks, or else the last call and those right before it."""

    def extract(text: str, asked: Asked = NOTHING_SAID) -> Extraction:
        part = _Part.of(text)
        read = _blocks(part) or _adjacent_calls(part)
        if not read:
            return _silence(part)
        made = calls_of([found.value for found in read])
        if not made:
            return BROKEN
        if not structure.allows(as_list(made)):
            return UNWANTED
        answer = part.written(read[0]) if len(read) == 1 else values.written(as_list(made))
        return Extraction(answer, "tool call", part.span(read[0].start, read[-1].end))

    return extract


def _alone(part: _Part, structure: JsonValues) -> Extraction:
    """A text, a number, true or false, where nothing else is written."""
    value = values.parsed(part.text)
    if value is values.INVALID or isinstance(value, (dict, list)) or value is None:
        return BROKEN if part.unfinished else _silence(part)
    if not structure.allows(value):
        return UNWANTED
    bare = part.text.strip()
    start = part.text.index(bare)
    return Extraction(bare, "JSON", part.span(start, start + len(bare)))


def _silence(part: _Part) -> Extraction:
    return ABSTAINED if is_refusal(part.text) else NOTHING


def _blocks(part: _Part) -> list[_Value]:
    """What stands in the blocks, however much prose stands between them."""
    read = []
    for block in BLOCK.finditer(part.text):
        inside = block.group(1)
        start = block.start(1) + len(inside) - len(inside.lstrip())
        read.append(_Value(values.parsed(inside), start, max(start, block.start(1) + len(inside.rstrip()))))
    return read


def _adjacent_calls(part: _Part) -> list[_Value]:
    """The last value that is a call, whole or broken, and the calls right before it."""
    read: list[_Value] = []
    for found in reversed(part.values):
        if read and not _BETWEEN_CALLS.fullmatch(part.text, found.end, read[0].start):
            break
        if found.value is values.INVALID or resembles_call(found.value):
            read.insert(0, found)
        elif read:
            break
    return read


@dataclass(frozen=True)
class _Part:
    """The end of a text behind its reasoning, and where in the text it begins."""

    text: str
    offset: int
    cut: bool

    @classmethod
    def of(cls, text: str) -> _Part:
        start = max(0, len(text) - values.LONGEST)
        marks = list(_REASONING.finditer(text, start))
        closed = [mark for mark in marks if mark.group().startswith("</")]
        if not closed:
            return cls("", 0, False) if marks else cls(text[start:], start, start > 0)
        if text[closed[-1].end() :].strip():
            return cls(text[closed[-1].end() :], closed[-1].end(), False)
        return cls(text[start : closed[-1].start()], start, start > 0)

    def written(self, found: _Value) -> str:
        return self.text[found.start : found.end]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """A place in the whole text."""
        return self.offset + start, self.offset + end

    @cached_property
    def values(self) -> list[_Value]:
        """Objects and lists, and broken ones, in order."""
        read = list(self._scan())
        if self.cut and read and self._stray >= read[-1].end:  # it may be part of a value that begins before the cut
            return [_Value(values.INVALID, read[-1].start, read[-1].end)]
        return read

    @property
    def unfinished(self) -> bool:
        """Whether something was begun that looks like an object, and none is whole."""
        return _MEANT_AS_JSON.search(self.text) is not None

    def _scan(self) -> Iterator[_Value]:
        at: int | None = 0
        while at is not None and (opening := _OPENING.search(self.text, at)):
            start = opening.end() - 1
            at = self._end_of_code(start) or (opening.end() if len(opening.group()) > 1 else None)
            if at is None:
                found, at = self._opened_at(start)
                if found is not None:
                    yield found

    def _opened_at(self, start: int) -> tuple[_Value | None, int | None]:
        """The value that a bracket opens, and where to go on; nowhere, if the text ends in the middle of one."""
        text, closed, ended = self.text, self._closing.get(start), False
        go_on = start + 1
        if _LIKE_JSON.match(text, start):
            try:
                value, end = values.value_at(text, start)
                return _Value(value, start, end), end
            except RecursionError:
                return _Value(values.INVALID, start, start), closed
            except json.JSONDecodeError as error:
                ended = error.pos >= self._end or error.msg.startswith("Unterminated string")
                go_on = max(error.pos, go_on)
        if closed is not None and _MEANT_AS_JSON.match(text, start):
            return _Value(values.INVALID, start, closed), closed
        if closed is not None and text[start] == "{" and not text.startswith("{{", start):
            return None, closed
        return None, None if ended else go_on

    @cached_property
    def _end(self) -> int:
        return len(self.text.rstrip())

    @cached_property
    def _brackets(self) -> tuple[dict[int, int], int]:
        """For each bracket the place behind the one that closes it, and the last closing one that closes nothing."""
        closing: dict[int, int] = {}
        open_: list[int] = []
        left = {"{": 0, "[": 0}
        stray = -1
        for match in _BRACKET.finditer(self.text):
            sign, at = match.group(), match.start()
            if sign in left:
                open_.append(at)
                left[sign] += 1
            elif sign in _OTHER and not left[_OTHER[sign]]:
                stray = at
            elif sign in _OTHER:
                while True:
                    opened = open_.pop()
                    left[self.text[opened]] -= 1
                    if self.text[opened] == _OTHER[sign]:
                        break
                closing[opened] = match.end()
        return closing, stray

    @property
    def _closing(self) -> dict[int, int]:
        return self._brackets[0]

    @property
    def _stray(self) -> int:
        return self._brackets[1]

    @cached_property
    def _fences(self) -> tuple[list[int], list[tuple[int, bool]]]:
        """Where fenced parts begin; for each its end, and whether it is code of another language."""
        starts: list[int] = []
        ends: list[tuple[int, bool]] = []
        language = None
        for fence in _FENCE.finditer(self.text):
            if language is None:
                starts.append(fence.end())
                language = fence.group(1).lower()
            elif not fence.group(1):
                ends.append((fence.start(), language not in _NO_CODE))
                language = None
        if language is not None:
            ends.append((len(self.text), language not in _NO_CODE))
        return starts, ends

    def fence_around(self, at: int) -> tuple[int, bool] | None:
        """The fenced part that holds a place: its end, and whether it is code of another language."""
        starts, ends = self._fences
        place = bisect_right(starts, at) - 1
        return ends[place] if place >= 0 and at < ends[place][0] else None

    def _end_of_code(self, at: int) -> int | None:
        fence = self.fence_around(at)
        return fence[0] if fence is not None and fence[1] else None
