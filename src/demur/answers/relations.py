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

from demur.answers import choices, open_answers
from demur.answers import plain as plain_answers
from demur.answers.extraction import Extraction
from demur.answers.maths import extraction as maths_extraction
from demur.answers.maths import keys as maths_keys
from demur.errors import InvalidValue


@dataclass(frozen=True)
class Relation:
    """How answers of one kind of task are read and compared."""

    name: str
    version: int
    _key: Callable[[str], str | None] = field(repr=False)
    _extract: Callable[..., Extraction] = field(repr=False)

    def describe(self) -> str:
        """Name and version, as a policy's fingerprint has it."""
        return f"{self.name}@{self.version}"

    def key(self, answer: Any) -> str | None:
        """What equal answers share; None for no answer (None, NaN, blank)."""
        written = as_written(answer)
        return None if written is None else self._key(written)

    def extract(self, text: str, *, truncated: bool = False) -> Extraction:
        """The answer that a path's text ends in, and the rule that found it."""
        return self._extract(text, truncated=truncated)


mathematics = Relation("mathematics", 1, maths_keys.key, maths_extraction.extract)
text = Relation("text", 1, open_answers.key, open_answers.extract)
choice = Relation("choice", 1, choices.key, choices.extract)
plain = Relation("plain", 1, plain_answers.key, plain_answers.extract)

RELATIONS = {relation.name: relation for relation in (mathematics, text, choice, plain)}
_TASKS = {"math": mathematics, "mathematics": mathematics, "qa": text, "text": text, "open": text, "mc": choice,
          "choice": choice, "multiple_choice": choice}  # fmt: skip

BY_TASK = "by-task(" + ",".join(sorted(relation.describe() for relation in RELATIONS.values())) + ")"


def relation_named(name: str) -> Relation:
    """The relation of that name."""
    if name not in RELATIONS:
        raise InvalidValue(f"unknown relation {name!r}; expected one of {', '.join(RELATIONS)}")
    return RELATIONS[name]


def relation_for(task: Any) -> Relation:
    """The relation of a problem's task; the plain one where the task is not known."""
    return _TASKS.get(task.lower(), plain) if isinstance(task, str) else plain


def as_written(answer: Any) -> str | None:
    """An answer as text: numbers as they print, without an exponent."""
    if answer is None or answer != answer:
        return None
    if isinstance(answer, bool):
        return "true" if answer else "false"
    if isinstance(answer, float) and math.isfinite(answer):
        return format(Decimal(repr(answer)), "f")
    return str(answer)
