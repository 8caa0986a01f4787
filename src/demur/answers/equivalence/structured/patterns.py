"""Regular expressions of a schema, in time that grows with the text: no backtracking, whatever the pattern.

The usual part of the expressions of ECMA-262: letters, classes, `.`, groups, `|`, `* + ? {2,5}`, `^` and `$`. What
cannot be decided in one pass, references back and looking around, is refused, as are word borders and Unicode classes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Never

from demur.errors import InvalidValue

LONGEST_TEXT = 5000
_MOST_STEPS = 500
_MOST_PARTS = 20 * _MOST_STEPS
_DEEPEST = 30
_MOST_KEPT = 10_000

_CLASS = re.compile(r"\[(\^?)((?:[^\]\\]|\\.)+)\]", re.S)
_ESCAPE = re.compile(r"\\(?:[dDwWsStnrfv0]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^A-Za-z0-9])")
_GROUP = re.compile(r"\((?:\?:|\?<[A-Za-z_]\w*>|(?!\?))")
_TIMES = re.compile(r"(?:([*+?])|\{(\d{1,4})(,?)(\d{0,4})\})\??")
_LITERAL = re.compile(r"[^\\^$.\[|()?*+]")
_SPECIAL_IN_CLASS = re.compile(r"(\\.)|([\[&|~])", re.S)

States = frozenset[int]


class Pattern:
    """A pattern, and whether a text has a match of it somewhere."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._steps: list[tuple[Any, ...]] = []
        self._written = 0
        tree = self._choices(0)
        if self._at < len(text):
            self._refuse()
        self._emit(tree)
        self._steps.append(("match",))
        self._from_start = self._reached([0], at_start=True)
        self._from_here = self._reached([0])
        self._next: dict[tuple[States, str], States] = {}

    def found_in(self, text: str) -> bool:
        """Whether it matches some part of a text; never one of a text that is too long."""
        if len(text) > LONGEST_TEXT:
            return False
        states = self._from_start
        for character in text:
            if self._matched(states):
                return True
            following = self._next.get((states, character))
            if following is None:
                following = self._after(states, character)
            states = following
        return self._matched(self._reached(states, at_start=not text, at_end=True))

    def _matched(self, states: States) -> bool:
        return len(self._steps) - 1 in states

    def _after(self, states: States, character: str) -> States:
        steps = self._steps
        taken = [at + 1 for at in states if steps[at][0] == "take" and steps[at][1](character)]
        following = self._reached(taken) | self._from_here
        if len(self._next) > _MOST_KEPT:
            self._next.clear()
        self._next[states, character] = following
        return following

    def _reached(self, places: Iterable[int], *, at_start: bool = False, at_end: bool = False) -> States:
        """Where one can be without taking a character; places that need one, the end, or nothing more."""
        seen: set[int] = set()
        left = list(places)
        while left:
            at = left.pop()
            if at in seen:
                continue
            seen.add(at)
            kind, *targets = self._steps[at]
            if kind == "fork":
                left.extend(targets)
            elif (kind == "start" and at_start) or (kind == "end" and at_end):
                left.append(at + 1)
        return frozenset(at for at in seen if self._steps[at][0] in ("take", "end", "match"))

    def _emit(self, tree: tuple[Any, ...]) -> None:
        """Write the steps of a part: take a character, be at the start or the end, go on in one of two places."""
        steps, (kind, *parts) = self._steps, tree
        self._written += 1  # `(){9999}` writes no step, however often
        if len(steps) > _MOST_STEPS or self._written > _MOST_PARTS:
            self._refuse("is too long")
        if kind == "all":
            for part in parts:
                self._emit(part)
        elif kind == "any":
            ends = []
            for part in parts[:-1]:
                fork = self._room()
                self._emit(part)
                ends.append(self._room())
                steps[fork] = ("fork", fork + 1, len(steps))
            self._emit(parts[-1])
            for end in ends:
                steps[end] = ("fork", len(steps))
        elif kind == "times":
            self._emit_times(*parts)
        else:
            steps.append(tree)

    def _emit_times(self, part: tuple[Any, ...], least: int, most: int | None) -> None:
        for _ in range(least):
            self._emit(part)
        forks = []
        for _ in range(1 if most is None else most - least):
            forks.append(self._room())
            self._emit(part)
        if most is None:
            self._steps.append(("fork", forks[0]))
        for fork in forks:
            self._steps[fork] = ("fork", fork + 1, len(self._steps))

    def _room(self) -> int:
        self._steps.append(())
        return len(self._steps) - 1

    def _choices(self, depth: int) -> tuple[Any, ...]:
        if depth > _DEEPEST:
            self._refuse("is nested too deeply")
        choices = [self._sequence(depth)]
        while self._text.startswith("|", self._at):
            self._at += 1
            choices.append(self._sequence(depth))
        return ("any", *choices)

    def _sequence(self, depth: int) -> tuple[Any, ...]:
        parts: list[tuple[Any, ...]] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            part = self._atom(depth)
            if times := self._read(_TIMES):
                sign, least, comma, most = times.groups()
                low = {"*": 0, "+": 1, "?": 0}[sign] if sign else int(least)
                high = {"*": None, "+": None, "?": 1}[sign] if sign else int(most) if most else None if comma else low
                if high is not None and high < low:
                    self._refuse()
                part = ("times", part, low, high)
            parts.append(part)
        return ("all", *parts)

    def _atom(self, depth: int) -> tuple[Any, ...]:
        if self._read(_GROUP):
            inner = self._choices(depth + 1)
            if not self._text.startswith(")", self._at):
                self._refuse()
            self._at += 1
            return inner
        if one := self._read(_CLASS):
            inside = _SPECIAL_IN_CLASS.sub(lambda part: part.group(1) or "\\" + part.group(2), one.group(2))
            return ("take", self._matcher(f"[{one.group(1)}{inside}]"))
        if one := self._read(_ESCAPE):
            return ("take", self._matcher(one.group()))
        if one := self._read(_LITERAL):
            return ("take", one.group().__eq__)
        sign = self._text[self._at]
        self._at += 1
        if sign == ".":
            return ("take", lambda character: character not in "\n\r\u2028\u2029")
        if sign not in "^$":
            self._refuse()
        return ("start",) if sign == "^" else ("end",)

    def _read(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._at)
        if match:
            self._at = match.end()
        return match

    def _matcher(self, one_character: str) -> Callable[[str], object]:
        try:
            return re.compile(one_character, re.ASCII).fullmatch
        except re.error:
            self._refuse()

    def _refuse(self, why: str = "holds what cannot be matched in one pass, or is no pattern") -> Never:
        raise InvalidValue(f"the schema's pattern {self._text!r:.80} {why}")
