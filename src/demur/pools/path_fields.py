"""What paths have besides answer and score, by name, read only when a key looks at it. Never looks at gold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import PoolFileError
from demur.pools.field_names import score_fields, there_is
from demur.pools.frame_table import score_column
from demur.pools.frames import FramePools
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
    return [[None if path.text is None else float(len(path.text)) for path in pool.paths] for pool in pools]


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
    return [[_name(path, field) for path in pool.paths] for pool in pools]


@dataclass(frozen=True, eq=False)
class _Lazily(Mapping[str, Any]):
    """Columns of paths that are read when they are asked for; a column that nobody has is all gaps."""

    pools: Sequence[Pool]
    rows: tuple[int, ...] | None = None
    """Of which pools; None for all."""

    def take(self, rows: NDArray[np.intp]) -> Any:
        """Of some of the pools, in that order."""
        here = range(len(self.pools)) if self.rows is None else self.rows
        return type(self)(self.pools, tuple(here[row] for row in rows.tolist()))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def _here(self) -> Sequence[Pool]:
        return self.pools if self.rows is None else [self.pools[row] for row in self.rows]


class PathNumbers(_Lazily):
    """The numbers of paths; those that are listed are scores, and the length where paths have texts."""

    def __getitem__(self, name: str) -> Sequence[list[float | None]]:
        if self.rows is None or not isinstance(self.pools, FramePools):
            return numbers_of(self._here, name)
        return taken(numbers_of(self.pools, name), np.array(self.rows, dtype=np.intp))  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        scores = {name for pool in self._here for path in pool.paths for name in path.scores}
        texts = any(path.text is not None for pool in self._here for path in pool.paths)
        return iter(sorted({name for name in scores if not names_labels(name)} | ({LENGTH} if texts else set())))


class PathOrigins(_Lazily):
    """Where paths come from; the fields that are listed are the usual ones, as far as paths have them."""

    def __getitem__(self, field: str) -> list[list[str | None]]:
        return origins_of(self._here, field)

    def __iter__(self) -> Iterator[str]:
        known = {field for pool in self._here for path in pool.paths for field in ORIGINS if _name(path, field)}
        return (field for field in ORIGINS if field in known)


def _name(path: Path, field: str) -> str | None:
    value = path.extra.get(field)
    return None if value is None or isinstance(value, (dict, list)) else str(value)
