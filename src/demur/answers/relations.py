"""Relations: when two written answers are the same, each under a versioned name.

A relation maps an answer to a key, and equal keys are equal answers. The key is a function of the answer alone, so
every relation is an equivalence relation by construction (reflexive, symmetric, transitive), and neither the order of
paths, nor other questions, nor gold can change a class.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.characters import cleaned
from demur.answers.equivalence import auto as auto_keys
from demur.answers.equivalence import choice as choice_keys
from demur.answers.equivalence import plain as plain_keys
from demur.answers.equivalence import text as text_keys
from demur.answers.equivalence.mathematics import keys as mathematics_keys
from demur.answers.extraction import TRUNCATED, Extraction, whole_text
from demur.answers.extraction import choice as choice_extraction
from demur.answers.extraction import mathematics as mathematics_extraction
from demur.answers.extraction import text as text_extraction
from demur.answers.languages import with_points
from demur.errors import InvalidValue


@dataclass(frozen=True)
class Relation:
    """How answers of one kind of task are read and compared."""

    name: str
    version: int
    _key: Callable[[str, Asked], str | None] = field(repr=False)
    _extract: Callable[[str, Asked], Extraction] = field(repr=False)

    @property
    def spec(self) -> str:
        """Name and version, as a policy's fingerprint has it."""
        return f"{self.name}@{self.version}"

    def key(self, answer: Any, asked: Asked = NOTHING_SAID) -> str | None:
        """What equal answers to one question share; None for no answer (None, NaN, blank)."""
        written = as_written(answer)
        return None if written is None else self._key(with_points(cleaned(written), asked.language), asked)

    def extract(self, text: str, asked: Asked = NOTHING_SAID, *, truncated: bool = False) -> Extraction:
        """The answer that a path's text ends in, the rule that found it, and where."""
        return TRUNCATED if truncated else self._extract(text, asked)


def _unasked(key: Callable[[str], str | None]) -> Callable[[str, Asked], str | None]:
    """A key that depends on the answer alone, whatever the question says."""
    return lambda answer, _: key(answer)


mathematics = Relation("mathematics", 2, _unasked(mathematics_keys.key), mathematics_extraction.extract)
text = Relation("text", 2, _unasked(text_keys.key), text_extraction.extract)
choice = Relation("choice", 2, choice_keys.key, choice_extraction.extract)
plain = Relation("plain", 2, _unasked(plain_keys.key), whole_text)
auto = Relation("auto", 1, _unasked(auto_keys.key), whole_text)

RELATIONS = {relation.name: relation for relation in (mathematics, text, choice, plain, auto)}


def relation_named(name: str) -> Relation:
    """The relation of that name."""
    if name not in RELATIONS:
        raise InvalidValue(f"unknown relation {name!r}; expected one of {', '.join(RELATIONS)}")
    return RELATIONS[name]


def as_written(answer: Any) -> str | None:
    """An answer as text: numbers as they print, without an exponent."""
    if answer is None or answer != answer:
        return None
    if isinstance(answer, bool):
        return "true" if answer else "false"
    if isinstance(answer, float) and math.isfinite(answer):
        return format(Decimal(repr(answer)), "f")
    return str(answer)
