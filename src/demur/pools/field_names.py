"""Which fields pools have, for whoever names one that they do not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from demur.records import Path, Pool, names_labels

_LOOKED_AT = 100
_MOST = 20


def there_is(wanted: str, names: Iterable[str]) -> str:
    """The names that there are, and which of them was perhaps meant."""
    known = list(dict.fromkeys(names))
    nearest = [] if wanted in known else get_close_matches(wanted, known, n=1)
    more = f", … ({len(known)} in all)" if len(known) > _MOST else ""
    listed = f"there is: {', '.join(known[:_MOST]) or 'none'}{more}"
    return f"did you mean {nearest[0]!r}? {listed}" if nearest else listed


def score_fields(pools: Sequence[Pool], is_number: Callable[[Any], bool]) -> list[str]:
    """What may be named as a score: scores, and other numbers of paths by their dotted names."""
    paths = _paths(pools)
    names = {score for path in paths for score in path.scores}
    dotted = {f".{name}" for path in paths for name, value in path.extra.items() if is_number(value)}
    return sorted(names) + sorted(name for name in dotted if not names_labels(name))


def answer_fields(pools: Sequence[Pool]) -> list[str]:
    """Fields of paths that may hold answers: texts and numbers, those that are named like answers first."""
    paths = _paths(pools)
    given = ((name, value) for path in paths for name, value in path.extra.items())
    names = {name for name, value in given if isinstance(value, (str, int, float)) and not isinstance(value, bool)}
    names |= {"answer"} if any(path.has_answer_field for path in paths) else set()
    kept = [name for name in names if not names_labels(name)]
    return sorted(kept, key=lambda name: (not name.startswith("answer"), name))


def label_fields(pools: Sequence[Pool]) -> list[str]:
    """Fields of paths that hold true or false."""
    return sorted({name for path in _paths(pools) for name, value in path.extra.items() if isinstance(value, bool)})


def number_fields(pools: Sequence[Pool], is_number: Callable[[Any], bool]) -> list[str]:
    """Fields of problems that hold numbers."""
    fields = (pool.problem.extra for pool in pools[:_LOOKED_AT])
    names = {name for extra in fields for name, value in extra.items() if is_number(value)}
    return sorted(name for name in names if not names_labels(name))


def _paths(pools: Sequence[Pool]) -> list[Path]:
    return [path for pool in pools[:_LOOKED_AT] for path in pool.paths]
