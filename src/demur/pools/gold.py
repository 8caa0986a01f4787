"""What a problem accepts as right, and whether an answer is it, by a rule that may be more lenient than the vote.

Accepted are `gold` and the problem's field `aliases`. Nothing upstream of the labels sees either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from demur.answers.relations import Relation, as_written
from demur.errors import PoolFileError
from demur.pools.containment import holds
from demur.pools.label_rule import LabelRule
from demur.records import Problem

ALIASES = "aliases"
_OPEN = ("text", "auto", "plain")
"""Relations of answers in words: a formula that holds another one is another formula."""
_VALUE = re.compile(r"[+-]?\d{1,4000}(?:/\d{1,4000}|(?:\.\d{1,4000})?(?:[eE][+-]?\d{1,3})?)", re.ASCII)
_KINDS = ("n", "c", "p")
"""Kinds of keys that may be one number: rational, constant, and a text of one word."""


def accepted(problem: Problem) -> tuple[Any, ...]:
    """The answers that a problem accepts: its gold, and its aliases."""
    aliases = problem.extra.get(ALIASES)
    if aliases is None:
        return problem.gold
    listed = [aliases] if isinstance(aliases, str) else aliases
    if not isinstance(listed, (list, tuple)) or not all(_is_alias(alias) for alias in listed):
        raise PoolFileError(
            f"problem {problem.id!r}: `{ALIASES}` must be a list of texts or numbers, got {aliases!r:.60}"
        )
    return (*problem.gold, *listed)


def without_aliases(problem: Problem) -> dict[str, Any]:
    """What else a problem says, but for what it accepts."""
    return {name: value for name, value in problem.extra.items() if name != ALIASES}


def accepted_texts(problem: Problem) -> tuple[str, ...]:
    """The same as they are written, each once."""
    written = (as_written(answer) for answer in accepted(problem))
    return tuple(dict.fromkeys(text.strip() for text in written if text is not None and text.strip()))


def leniently_right(
    rule: LabelRule,
    relation: Relation,
    accepted_keys: Mapping[str, str],
    answers: Mapping[str, str],
) -> set[str]:
    """Keys of answers that are right by the rule's tolerance or containment; both mappings are key → as written."""
    if rule.tolerance is None and not rule.containment:
        return set()
    others = {key: written for key, written in answers.items() if key not in accepted_keys}
    right: set[str] = set()
    if rule.tolerance is not None:
        right |= set(_where(others, _within(accepted_keys, rule.tolerance)))
    if rule.containment and relation.name in _OPEN:
        golds = list(accepted_keys.values())
        right |= {key for key, written in others.items() if any(holds(written, gold) for gold in golds)}
    return right


@lru_cache(maxsize=65_536)
def number_of(key: str) -> Fraction | None:
    """The value of a key that is one real number; None where it is not."""
    kind, colon, rest = key.partition(":")
    written = key if not colon else rest if kind in _KINDS else ""
    if not _VALUE.fullmatch(written):
        return None
    try:
        return Fraction(written)
    except ZeroDivisionError:
        return None


def other_number(key: str, accepted_keys: Iterable[str]) -> bool:
    """Whether an answer and all that is accepted are numbers, so that no judge need say that they differ."""
    return number_of(key) is not None and all(number_of(gold) is not None for gold in accepted_keys)


def _within(keys: Iterable[str], tolerance: Fraction) -> Callable[[Fraction], bool]:
    """|answer − gold| ≤ tolerance · |gold|, for one of the accepted numbers; where gold is 0, |answer| ≤ tolerance."""
    golds = [value for key in keys if (value := number_of(key)) is not None]
    bounds = [(gold, tolerance * abs(gold) if gold else tolerance) for gold in golds]
    return lambda value: any(abs(value - gold) <= bound for gold, bound in bounds)


def _where(keys: Iterable[str], takes: Callable[[Fraction], bool]) -> Iterable[str]:
    return (key for key in keys if (value := number_of(key)) is not None and takes(value))


def _is_alias(alias: Any) -> bool:
    return isinstance(alias, (str, int, float)) and not isinstance(alias, bool)
