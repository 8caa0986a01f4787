"""Seeded splits that keep what belongs together on one side.

Rows that share a cluster, or the same question text, are one unit: they never land on two sides, and one of them
counts in n. Units are put in an order that depends on the ids and the seed alone, so shuffling a file changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.records import is_nothing
from demur.voting.text_columns import DigestColumn

Rows = NDArray[np.intp]
Texts = Sequence[str | None]


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of each part."""

    tune: Rows
    calibration: Rows
    test: Rows


def units(ids: Sequence[str], clusters: Texts | None = None, questions: Texts | None = None) -> Rows:
    """A number per row, equal for rows that share a cluster or a non-blank question, however indirectly.

    Questions are texts, or digests of all that is asked.
    """
    marked = [marks for marks in (_marks(clusters, _cluster), _marks(questions, _question)) if marks is not None]
    every = np.arange(len(ids), dtype=np.intp)
    if not marked:
        return every
    if len(marked) == 1:
        return _first_of_each(marked[0])
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    # Rows, and behind them what each names, as one graph: whatever hangs together is one unit.
    size, ends = len(ids), []
    for marks in marked:
        ends.append(marks + size)
        size += int(marks.max()) + 1
    edges = np.tile(every, len(marked)), np.concatenate(ends)
    graph = coo_matrix((np.ones(len(edges[0]), dtype=np.int8), edges), shape=(size, size))
    return _first_of_each(connected_components(graph, directed=False)[1][: len(ids)].astype(np.intp))


def _marks(column: Texts | None, text_of: Callable[[Any], str]) -> Rows | None:
    """A number per row, equal where a column names the same, and one of its own where it names nothing."""
    if column is None:
        return None
    if isinstance(column, DigestColumn):
        if not column.any_known:
            return None
        marks = np.unique(column.values, return_inverse=True)[1].astype(np.intp)
        unknown = np.zeros(len(column), dtype=np.bool_) if column.known is None else ~column.known
    else:
        code: dict[str, int] = {"": -1}
        texts = ("" if is_nothing(value) else text_of(value) for value in column)
        marks = np.fromiter((code.setdefault(text, len(code)) for text in texts), dtype=np.intp, count=len(column))
        unknown = marks < 0
        if unknown.all():
            return None
    marks[unknown] = int(marks.max()) + 1 + np.arange(int(unknown.sum()))
    return marks


def _cluster(value: Any) -> str:
    return str(value)


def _question(value: Any) -> str:
    return " ".join(str(value).split())


def _first_of_each(marks: Rows) -> Rows:
    """For each row, the first that has its number."""
    first = np.full(int(marks.max(initial=0)) + 1, len(marks), dtype=np.intp)
    np.minimum.at(first, marks, np.arange(len(marks)))
    return first[marks]


def in_drawn_order(ids: Sequence[str]) -> Rows:
    """The rows in an order that depends on their ids alone, however they were shuffled."""
    return np.array(sorted(range(len(ids)), key=lambda row: _digest(ids[row])), dtype=np.intp)


def one_per_unit(ids: Sequence[str], unit: Rows) -> Rows:
    """One row of each unit, ascending: the one whose id has the smallest digest. Blind to labels and to row order."""
    members = np.bincount(unit, minlength=len(ids))[unit]
    if (members == 1).all():
        return np.arange(len(ids), dtype=np.intp)
    order = sorted(np.flatnonzero(members > 1).tolist(), key=lambda row: (unit[row], _digest(ids[row])))
    chosen = [next(rows) for _, rows in groupby(order, key=lambda row: int(unit[row]))]
    return np.sort(np.concatenate([np.flatnonzero(members == 1), np.array(chosen, dtype=np.intp)]))


def split(
    ids: Sequence[str],
    *,
    clusters: Texts | None = None,
    questions: Texts | None = None,
    seed: int,
    tune: float = 0,
    test: float = 0,
) -> Split:
    """Send shares `tune` and `test` of the problems, drawn by the seed, to those sides and the rest to calibration.

    Rows that share a cluster or a question text go together, and count as one.
    """
    _check_shares(tune, test)
    unit = units(ids, clusters, questions)
    # One member speaks for its unit. It is chosen without the seed: the smallest of several seeded digests would send
    # large units to the first side more often than small ones, and the sides would not be exchangeable.
    speakers = one_per_unit(ids, unit)
    order = unit[speakers[np.argsort([_digest(ids[row], seed) for row in speakers], kind="stable")]]
    n_tune, n_test = round(len(order) * tune), round(len(order) * test)
    sides = np.split(order, [n_tune, n_tune + n_test])
    parts = [np.flatnonzero(np.isin(unit, side)) for side in sides]
    return Split(tune=parts[0], calibration=parts[2], test=parts[1])


def split_rows(n: int, *, seed: int, test: float) -> Split:
    """The same of n rows without names, each by itself: they are drawn by their places."""
    _check_shares(0, test)
    order = np.random.default_rng(seed).permutation(n)
    n_test = round(n * test)
    return Split(np.arange(0), np.sort(order[n_test:]), np.sort(order[:n_test]))


def _check_shares(tune: float, test: float) -> None:
    if not (tune >= 0 and test >= 0 and tune + test < 1):
        raise InvalidValue(f"tune and test must be shares >= 0 that leave some for calibration, got {tune} and {test}")


def repeated(n: int, n_cal: int, splits: int, seed: int) -> tuple[Rows, Rows]:
    """Calibration and test rows of many random splits: arrays splits × n_cal and splits × (n − n_cal)."""
    if not 0 < n_cal < n:
        raise InvalidValue(f"n_cal must leave at least one row on each side of {n}, got {n_cal}")
    if splits < 1 or seed < 0:
        raise InvalidValue(f"splits must be at least 1 and the seed at least 0, got {splits} and {seed}")
    rows = np.tile(np.arange(n, dtype=np.intp), (splits, 1))
    shuffled: Any = np.random.default_rng(seed).permuted(rows, axis=1)
    return shuffled[:, :n_cal], shuffled[:, n_cal:]


def _digest(name: str, seed: int | str = "") -> bytes:
    return hashlib.blake2b(f"{seed}:{name}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
