"""JSON in the text of a path: its objects and lists, whole or broken, and where they stand.

The text is searched from its start for brackets that open a value. What only looks like one is not searched for values
inside, so that no part of a broken one passes for a whole one. Code of other languages is passed over. Places are those
of the whole text, of which only the last characters are looked at, in one pass.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from demur.answers.equivalence.structured import values

_REASONING = re.compile(r"</?(?:think|thinking|reasoning|thought)>", re.I)
_FENCE = re.compile(r"^[ \t]*```+[ \t]*([\w+-]*)[^`\n]*$", re.M)
_LANGUAGES = "json jsonc json5 jsonl js javascript text txt plaintext output xml tool_call tool_calls"
_DATA = frozenset(("", *_LANGUAGES.split()))
"""Names of languages in which a fenced part may be the answer."""
_OPENING = re.compile(r"\\(?:[A-Za-z]{1,20}\s?)?[{\[]|[{\[]")  # behind a backslash it is one of LaTeX's
_BRACKET = re.compile(r"\\[{}\[\]]|[{}\[\]]")
_LIKE_JSON = re.compile(r'\{\s*["}]|\[\s*(?:\{\s*["}]|["\[\]\-\d]|true|false|null|NaN|Infinity)')
_MEANT_AS_JSON = re.compile(r"""\{\s*(?:["']|\w{1,50}\s*:)|\[\s*[{"']""")
_OTHER = {"}": "{", "]": "["}


@dataclass(frozen=True, slots=True)
class Value:
    """A value, or a broken one (INVALID), and where it stands."""

    value: Any
    start: int
    end: int


@dataclass(frozen=True)
class FinalPart:
    """The end of a text behind its reasoning, and where in the text it begins."""

    text: str
    offset: int
    cut: bool

    @classmethod
    def of(cls, text: str) -> FinalPart:
        start = max(0, len(text) - values.LONGEST)
        marks = list(_REASONING.finditer(text, start))
        closed = [mark for mark in marks if mark.group().startswith("</")]
        if not closed:
            return cls("", 0, False) if marks else cls(text[start:], start, start > 0)
        if text[closed[-1].end() :].strip():
            return cls(text[closed[-1].end() :], closed[-1].end(), False)
        return cls(text[start : closed[-1].start()], start, start > 0)

    def written(self, found: Value) -> str:
        return self.text[found.start : found.end]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """A place in the whole text."""
        return self.offset + start, self.offset + end

    @cached_property
    def values(self) -> list[Value]:
        """Objects and lists, and broken ones, in order."""
        read = list(self._scan())
        if self.cut and read and self._stray >= read[-1].end:  # it may be part of a value that begins before the cut
            return [Value(values.INVALID, read[-1].start, read[-1].end)]
        return read

    @property
    def unfinished(self) -> bool:
        """Whether something was begun that looks like an object, and none is whole."""
        return _MEANT_AS_JSON.search(self.text) is not None

    def _scan(self) -> Iterator[Value]:
        at: int | None = 0
        while at is not None and (opening := _OPENING.search(self.text, at)):
            start = opening.end() - 1
            at = self._end_of_code(start) or (opening.end() if len(opening.group()) > 1 else None)
            if at is None:
                found, at = self._opened_at(start)
                if found is not None:
                    yield found

    def _opened_at(self, start: int) -> tuple[Value | None, int | None]:
        """The value that a bracket opens, and where to go on; nowhere, if the text ends in the middle of one."""
        text, go_on, ended = self.text, start + 1, False
        if _LIKE_JSON.match(text, start):
            try:
                value, end = values.value_at(text, start)
                return Value(value, start, end), end
            except RecursionError:
                return Value(values.INVALID, start, start), self._closing.get(start)
            except json.JSONDecodeError as error:
                ended = error.pos >= self._end or error.msg.startswith("Unterminated string")
                go_on = max(error.pos, go_on)
        closed = self._closing.get(start)
        if closed is not None and _MEANT_AS_JSON.match(text, start):
            return Value(values.INVALID, start, closed), closed
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
        fences = list(_FENCE.finditer(self.text))
        for place, fence in enumerate(fences[::2]):
            starts.append(fence.end())
            end = fences[2 * place + 1].start() if 2 * place + 1 < len(fences) else len(self.text)
            ends.append((end, fence.group(1).lower() not in _DATA))
        return starts, ends

    def fence_around(self, at: int) -> tuple[int, bool] | None:
        """The fenced part that holds a place: its end, and whether it is code of another language."""
        starts, ends = self._fences
        place = bisect_right(starts, at) - 1
        return ends[place] if place >= 0 and at < ends[place][0] else None

    def _end_of_code(self, at: int) -> int | None:
        fence = self.fence_around(at)
        return fence[0] if fence is not None and fence[1] else None
