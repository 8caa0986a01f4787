"""Seeded splits that keep what belongs together on one side.

Rows that share a cluster, or the same question text, are one unit: they never land on two sides, and one of them
counts in n. Units are put in an order that depends on the ids and the seed alone, so shuffling a file changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.records import is_nothing

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
    parent = list(range(len(ids)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    first: dict[tuple[str, str], int] = {}
    for kind, column in (("cluster", clusters), ("question", questions)):
        for row, value in enumerate(() if column is None else column):
            if is_nothing(value):
                continue
            text = str(value) if kind == "cluster" else " ".join(str(value).split())
            if text:
                a, b = root(first.setdefault((kind, text), row)), root(row)
                parent[max(a, b)] = min(a, b)
    return np.array([root(row) for row in range(len(ids))], dtype=np.intp)


def in_drawn_order(ids: Sequence[str]) -> Rows:
    """The rows in an order that depends on their ids alone, however they were shuffled."""
    return np.array(sorted(range(len(ids)), key=lambda row: _digest(ids[row])), dtype=np.intp)


def one_per_unit(ids: Sequence[str], unit: Rows) -> Rows:
    """One row of each unit, ascending: the one whose id has the smallest digest. Blind to labels and to row order."""
    if len(np.unique(unit)) == len(ids):
        return np.arange(len(ids), dtype=np.intp)
    order = sorted(range(len(ids)), key=lambda row: (unit[row], _digest(ids[row])))
    chosen = [next(rows) for _, rows in groupby(order, key=lambda row: int(unit[row]))]
    return np.sort(np.array(chosen, dtype=np.intp))


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
