"""From a structured answer to the key of its equivalence class: `j:` and the one way to write it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.equivalence.structured import calls, values
from demur.answers.equivalence.structured.settings import Settings


class Structure(ABC):
    """How structured answers of one kind are read, checked and written by what a user said of them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.key = lru_cache(maxsize=4096)(self._key)
        """The key of a written answer; None where it is no valid one."""

    def allows(self, value: Any) -> bool:
        """Whether a value is one that the schema allows, where there is one."""
        return self.settings.schema is None or self.settings.schema.allows(value)

    def accepted(self, gold: Sequence[Any]) -> Sequence[Any]:
        """The answers that gold says are right, where it is a list of them."""
        return gold

    def unmet(self, answers: Iterable[str]) -> list[str]:
        """The pointers that lead to something in none of some written answers."""
        left = set(self.settings.rules.pointers) - {""}
        for answer in answers:
            if not left:
                break
            left.difference_update(*map(self.settings.rules.met_by, self._parts(answer)))
        return sorted(left)

    @abstractmethod
    def _key(self, answer: str, asked: Asked = NOTHING_SAID) -> str | None: ...

    @abstractmethod
    def _parts(self, answer: str) -> list[Any]:
        """What pointers are followed in."""


class JsonValues(Structure):
    """Any JSON value. Null alone is no answer, as it is none in a pool file."""

    def _key(self, answer: str, asked: Asked = NOTHING_SAID) -> str | None:
        value = values.parsed(answer)
        if value is values.INVALID or value is None or not self.allows(value):
            return None
        return "j:" + self.settings.rules.written(value, asked)

    def _parts(self, answer: str) -> list[Any]:
        value = values.parsed(answer)
        return [] if value is values.INVALID else [value]


class ToolCalls(Structure):
    """Calls of tools. A pointer begins with the name of a tool: `/search/query`, and `*` for every tool.

    `unordered` with the empty pointer says that the order of calls does not count; `ignore` with a name alone, that
    calls of this tool do not. A schema is one of the list of calls, each {"name": …, "arguments": {…}}.
    """

    def accepted(self, gold: Sequence[Any]) -> Sequence[Any]:
        """A list of bare calls is one answer, of all of them; several are lists in a list."""
        one_answer = gold and all(isinstance(entry, dict) and calls.resembles_call(entry) for entry in gold)
        return [list(gold)] if one_answer else gold

    def _key(self, answer: str, asked: Asked = NOTHING_SAID) -> str | None:
        made = calls.calls_written_as(answer)
        if made is None or not self.allows(as_list(made)):
            return None
        written = self.settings.rules.calls_written(made, asked)
        return None if written == "[]" else "j:" + written

    def _parts(self, answer: str) -> list[Any]:
        return [{name: arguments} for name, arguments in calls.calls_written_as(answer) or []]


def as_list(made: calls.Calls) -> list[dict[str, Any]]:
    """Calls as a schema sees them."""
    return [{"name": name, "arguments": arguments} for name, arguments in made]
