"""What paths have besides answer and score, by name, read only when a key looks at it. Never looks at gold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import PoolFileError
from demur.pools.field_names import score_fields, there_is
from demur.pools.frame_table import score_column
from demur.pools.frames import FramePools
from demur.pools.parts import in_passing, score_names, some_of, without_texts
from demur.pools.scores import is_number, refuse_label_name, with_gaps
from demur.records import Path, Pool, names_labels
from demur.voting.codes import taken
from demur.voting.key import LENGTH, Beside
from demur.voting.rows import ScoreRows

ORIGINS = ("src", "source", "model", "prompt")
"""Fields that say where a path comes from, where nobody names one."""


def beside_of(pools: Sequence[Pool], asked: Sequence[str | None] | None = None) -> Beside:
    """What a key may look at besides answers and scores."""
    return Beside(PathNumbers(pools), PathOrigins(pools), asked)


def numbers_of(pools: Sequence[Pool], name: str) -> Sequence[list[float | None]]:
    """A number of every path: a score by name, a field of the path by a dotted name, or the `length` of its text."""
    if isinstance(pools, FramePools) and name != LENGTH and (values := score_column(pools, name)) is not None:
        return ScoreRows(values, pools.sizes)
    if name != LENGTH:
        return with_gaps(pools, name)
    every = in_passing(pools)
    return [[None if path.text is None else float(len(path.text)) for path in pool.paths] for pool in every]


def refuse_absent(pools: Sequence[Pool], name: str) -> None:
    """Raise where no path has a number that ties are to be broken by."""
    if isinstance(pools, FramePools) and (values := score_column(pools, name)) is not None:
        absent = bool(np.isnan(values).all())
    else:
        absent = not any(number is not None for pool in pools for number in numbers_of([pool], name)[0])
    if pools and absent:
        known = there_is(name, score_fields(pools, is_number))
        raise PoolFileError(f"no path has the score {name!r}, which ties are to be broken by; {known}")


def origins_of(pools: Sequence[Pool], field: str) -> list[list[str | None]]:
    """Where every path comes from, by a field of paths; None where it does not say."""
    refuse_label_name(field)
    return [[_name(path, field) for path in pool.paths] for pool in in_passing(without_texts(pools))]


@dataclass(frozen=True, eq=False)
class _Lazily(Mapping[str, Any]):
    """Columns of paths that are read when they are asked for; a column that nobody has is all gaps."""

    pools: Sequence[Pool]
    rows: tuple[int, ...] | None = None
    """Of which pools; None for all."""
    known: dict[str, Any] = field(default_factory=dict, repr=False)
    """Columns of all pools of a table, once they were read."""

    def take(self, rows: NDArray[np.intp]) -> Any:
        """Of some of the pools, in that order."""
        here = range(len(self.pools)) if self.rows is None else self.rows
        return type(self)(self.pools, tuple(here[row] for row in rows.tolist()), self.known)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _column(self, name: str, of: Callable[[Sequence[Pool], str], Any]) -> Any:
        if not isinstance(self.pools, FramePools):
            return of(self.pools if self.rows is None else [self.pools[row] for row in self.rows], name)
        if name not in self.known:
            self.known[name] = of(self.pools, name)
        return self.known[name] if self.rows is None else taken(self.known[name], np.array(self.rows, dtype=np.intp))

    @property
    def _here(self) -> Sequence[Pool]:
        """The pools, in any order."""
        return self.pools if self.rows is None else some_of(self.pools, sorted(set(self.rows)))


class PathNumbers(_Lazily):
    """The numbers of paths; those that are listed are scores, and the length where paths have texts."""

    def __getitem__(self, name: str) -> Sequence[list[float | None]]:
        return self._column(name, numbers_of)  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        names = {name for name in score_names(self._here) if not names_labels(name)}
        texts = any(path.text is not None for pool in in_passing(self._here) for path in pool.paths)
        return iter(sorted(names | ({LENGTH} if texts else set())))


class PathOrigins(_Lazily):
    """Where paths come from; the fields that are listed are the usual ones, as far as paths have them."""

    def __getitem__(self, name: str) -> list[list[str | None]]:
        return self._column(name, origins_of)  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        every = (path for pool in in_passing(without_texts(self._here)) for path in pool.paths)
        known = {name for path in every for name in ORIGINS if _name(path, name)}
        return (name for name in ORIGINS if name in known)


def _name(path: Path, field: str) -> str | None:
    value = path.extra.get(field)
    return None if value is None or isinstance(value, (dict, list)) else str(value)
