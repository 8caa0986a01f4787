"""Answers: from free text to equivalence classes.

answers.classes(["0.5", "\\\\frac12", "50"])   # equal keys for equal answers
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from demur.answers.equivalence.slow import SlowPath
from demur.answers.extraction import Extraction
from demur.answers.relations import RELATIONS, Relation, choice, mathematics, plain, relation_named, text

__all__ = [
    "RELATIONS",
    "Extraction",
    "Relation",
    "SlowPath",
    "choice",
    "classes",
    "equivalent",
    "explain",
    "extract",
    "is_correct",
    "mathematics",
    "plain",
    "relation_named",
    "text",
]


def extract(text: str, relation: Relation = mathematics, *, truncated: bool = False) -> Extraction:
    """The answer that a path's text ends in, and the rule that found it. A truncated path has none."""
    return relation.extract(text, truncated=truncated)


def equivalent(a: Any, b: Any, relation: Relation = mathematics) -> bool:
    """Whether two answers are the same. No answer is the same as nothing, not even itself."""
    key = relation.key(a)
    return key is not None and key == relation.key(b)


def classes(
    answers: Iterable[Any], relation: Relation = mathematics, *, slow: SlowPath | None = None
) -> list[str | None]:
    """A key per answer of one pool: equal for equal answers, None for no answer.

    With `slow`, classes that the rules could only compare as text are put to math-verify as well.
    """
    surfaces = list(answers)
    keys = [relation.key(answer) for answer in surfaces]
    return keys if slow is None else slow.merge(keys, surfaces)


def is_correct(answer: Any, gold: Any, relation: Relation = mathematics) -> bool:
    """Whether an answer is one of the accepted ones; `gold` is an answer or a sequence of them."""
    accepted = gold if isinstance(gold, (list, tuple, set, frozenset)) else [gold]
    return any(equivalent(answer, right, relation) for right in accepted)


def explain(a: Any, b: Any, relation: Relation = mathematics) -> str:
    """Why two answers are, or are not, the same."""
    first, second = relation.key(a), relation.key(b)
    lines = [f"{a!r} is read as {_reading(first)}", f"{b!r} is read as {_reading(second)}"]
    same = first is not None and first == second
    return "\n".join([*lines, f"{'The same' if same else 'Different'} by {relation.spec}."])


_KIND_NAMES = (
    "n the number|c the constant|e the expression with values|q the equation|l the inequality|"
    "i the pair or interval|u the union|t the tuple|m the matrix|a the assignments|v one or the other of|"
    "b the number in a base|r the time, ratio or range|p the number with its words|w the word|d the date|o the option|"
    "s text that is compared as it stands,"
)
_KINDS = dict(name.split(" ", 1) for name in _KIND_NAMES.split("|"))


def _reading(key: str | None) -> str:
    if key is None:
        return "no answer"
    kind, colon, rest = key.partition(":")
    if key.startswith("{"):
        return f"the set {key}"
    return f"{_KINDS[kind]} {rest}" if colon and kind in _KINDS else f"{key!r}"
