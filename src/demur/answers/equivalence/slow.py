"""The last resort for answers that the rules cannot read: math-verify, in a child process with hard limits.

It is off unless asked for. An answer that is compared as bare text and is a formula is worked out once, by the parser
of math-verify; what comes out is spelled so that the rules can read it, and they say which class it belongs to. Only
where that is the class of another answer is math-verify asked whether the two are equal, both ways round, and only then
are they one class. So nothing is joined that the rules' own values tell apart; two classes that the rules can read are
never joined, not even through a third, because an answer has one value; and the order of paths changes nothing.

Values and verdicts are kept, and can be stored and replayed, so a busy machine cannot change one later. What runs into
a limit has no value and is different, and counted; so is what makes the child end time after time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Self

from demur.answers.equivalence import _slow_file
from demur.answers.equivalence._formulas import accounts_for, formula, sides
from demur.answers.equivalence._slow_child import Child
from demur.answers.equivalence.mathematics.keys import key as key_of

_DOLLAR = re.compile(r"\\?\$")
_COMMA = re.compile(r"\d,\d")
"""Between digits it is what the question's language says, which is not known here."""


class SlowPath:
    """Values and pairwise verdicts of math-verify, bounded in time and memory, remembered.

    `store` names a file to replay them from, and to write them to when the path is closed.
    """

    def __init__(
        self, *, seconds: float = 2.0, megabytes: int = 2048, store: str | os.PathLike[str] | None = None
    ) -> None:
        self.store = store
        self.verdicts: _slow_file.Verdicts = {}
        self.readings: _slow_file.Readings = {}
        """How the value of each formula that was asked about is spelled; nothing where it has none."""
        self.disputed: set[tuple[str, str]] = set()
        """Pairs of one value that math-verify calls different: they stay apart."""
        self._child = Child(seconds, megabytes)
        if store is not None and os.path.exists(store):
            self.verdicts, self.readings = _slow_file.read(store)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def asked(self) -> int:
        """Questions that were put to the child, about one answer or two."""
        return self._child.asked

    @property
    def killed(self) -> int:
        """Questions that ran into a limit."""
        return self._child.killed

    @property
    def restarted(self) -> int:
        """Children that ended by themselves, or that somebody else ended."""
        return self._child.restarted

    def same(self, a: str, b: str) -> bool:
        """Whether math-verify calls two answers equal, either way round."""
        pair = (min(a, b), max(a, b))
        if pair not in self.verdicts:
            self.verdicts[pair] = self._child.ask("same", *pair) is True
        return self.verdicts[pair]

    def worked_out(self, answer: str) -> str | None:
        """An answer spelled as what it comes to; None where it is no formula, or has no value."""
        parts = [self._spelled(side) for side in sides(answer) or [""]]
        if None in parts or len({key for part in parts if _is_number(key := key_of(str(part)))}) > 1:
            return None  # one side is not worked out, or the equation says that two numbers are one
        return " = ".join(map(str, parts))

    def merge(self, keys: Sequence[str | None], answers: Sequence[Any]) -> list[str | None]:
        """The keys of one pool, classes that are the same by value and by math-verify merged.

        A merged class has the key of the member that the rules can read, if there is one, else the smallest.
        """
        joined, _ = self._joined(keys, answers)
        return [None if key is None else joined.get(key, key) for key in keys]

    def spellings(self, keys: Sequence[str | None], answers: Sequence[Any]) -> dict[str, str]:
        """For each key of one pool that is merged into another: how that other one is written, at its shortest.

        Answers that are spelled so are one class by the rules alone.
        """
        joined, shortest = self._joined(keys, answers)
        return {key: shortest[into] for key, into in joined.items()}

    def close(self) -> None:
        """Stop the child, and write what it said if that has a store."""
        self._child.stop()
        if self.store is not None:
            _slow_file.write(self.store, self.verdicts, self.readings)

    def _joined(self, keys: Sequence[str | None], answers: Sequence[Any]) -> tuple[dict[str, str], dict[str, str]]:
        """The key that each merged one becomes, and the shortest spelling of every key."""
        if all(key is None or _is_readable(key) for key in keys):
            return {}, {}
        shortest = _shortest(keys, answers)
        meant = {key: text if _is_readable(key) else self.worked_out(text) or text for key, text in shortest.items()}
        of_value: dict[str, list[str]] = {}
        for key in sorted(shortest, key=_readable_first):
            of_value.setdefault(key if _is_readable(key) else key_of(meant[key]) or key, []).append(key)
        joined: dict[str, str] = {}
        for same_value in of_value.values():
            joined |= self._closure(same_value, meant)
        return joined, shortest

    def _closure(self, keys: Sequence[str], meant: Mapping[str, str]) -> dict[str, str]:
        """Of keys of one value, readable ones first: the key that each becomes that math-verify holds equal to it."""
        root = {key: key for key in keys}

        def find(key: str) -> str:
            while root[key] != key:
                key = root[key]
            return key

        for a, b in combinations(keys, 2):
            if find(a) == find(b):
                continue
            one, other = (_DOLLAR.sub("", meant[key]).strip() for key in (a, b))
            if one == other or self.same(one, other):
                first, second = sorted((find(a), find(b)), key=_readable_first)
                root[second] = first
            else:
                self.disputed.add((one, other))
        return {key: find(key) for key in keys if find(key) != key}

    def _spelled(self, side: str) -> str | None:
        """A side of an answer as the rules can read it, or as they read what it comes to."""
        if _is_readable(key_of(side)) and not _COMMA.search(side):
            return side
        written = formula(side)
        if written is None:
            return None
        if written not in self.readings:
            self.readings[written] = self._work_out(written)
        spellings = [f"${spelling}$" for spelling in self.readings[written]]
        return next(iter([spelling for spelling in spellings if _is_readable(key_of(spelling))] or spellings), None)

    def _work_out(self, written: str) -> list[str]:
        """Spellings of a formula's value; none where it has no value, or where a letter of it was dropped."""
        said = self._child.ask("value", written)
        if said is None:
            return []
        names, spellings = said
        return list(spellings) if accounts_for(names, written) else []


def _is_readable(key: str | None) -> bool:
    return key is not None and not key.startswith("s:")


def _readable_first(key: str) -> tuple[bool, str]:
    return not _is_readable(key), key


def _is_number(key: str | None) -> bool:
    return key is not None and key.startswith(("n:", "c:"))


def _shortest(keys: Sequence[str | None], answers: Sequence[Any]) -> dict[str, str]:
    """The shortest spelling of each key, whatever the order of the answers."""
    shortest: dict[str, str] = {}
    for key, answer in zip(keys, answers, strict=True):
        if key is not None:
            text = str(answer).strip()
            shortest[key] = min(shortest.get(key, text), text, key=lambda spelt: (len(spelt), spelt))
    return shortest
