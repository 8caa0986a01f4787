"""The count itself: winner, its share and unanimity for one block of equally large pools, as arrays.

Notation (paper §3.1), for a block of b pools of m paths, laid out m × b so that each step runs along memory:
    codes[j]      a(T⁽ʲ⁾)   answer codes; −1 where a path has none
    weights[j]    w_j       whole numbers on the grid of `exact_sums`, so that every sum below is exact
    tally[j]      V_y       the whole tally of answer y = codes[j] where j is the first path to give it,
                            and no more than that at its later paths
The tie rule: answers whose tallies differ by at most 1e-12 of the total are tied; the one with more paths wins, then
the one with the larger single weight, then the smaller key. It sees neither labels nor the order of paths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.voting._exact_sums import Floats, on_grid

TIE_RULE = "paths-weight-key@1"
TIE_WIDTH = 1e-12
CONFIDENCE_DECIMALS = 12

_WIDE = 1024
"""Paths of a pool from which on sorting them is faster than comparing each with each."""
Codes = NDArray[np.signedinteger[Any]]
Counts = NDArray[Any]


@dataclass(frozen=True)
class Outcome:
    """The votes of one block."""

    winner: NDArray[np.int64]
    """The winning code, the smallest of those still tied; −1 where no path has an answer."""
    confidence: Floats
    unanimous: NDArray[np.bool_]
    tied: NDArray[np.intp]
    """Pools in which several answers are still tied after paths and weights: the key decides."""
    candidates: NDArray[np.bool_]
    """For each of those (m × their number), the paths that gave one of the tied answers."""


def compact(codes: NDArray[Any]) -> Codes:
    """The block's codes in the smallest type that holds them, laid out path by path (m × b)."""
    highest, kinds = int(codes.max()), (np.int8, np.int16, np.int32)
    # The very largest value is kept free, to stand for "not a candidate".
    smallest: type[np.signedinteger[Any]] = next((kind for kind in kinds if highest < np.iinfo(kind).max), np.int64)
    if np.issubdtype(codes.dtype, np.signedinteger) and int(codes.min()) < -1:
        codes = np.maximum(codes, -1)
    return np.ascontiguousarray(codes.astype(smallest).T)


def count_paths(codes: Codes) -> Counts:
    """Paths behind each answer, in full at the first path that gives it; 0 where a path has no answer."""
    width = len(codes)
    answered = codes >= 0
    if width > _WIDE:
        return tally_weights(first_paths(codes), np.ones(codes.shape)).astype(np.int32)
    counts: Counts = answered.astype(np.int8 if width < 127 else np.int32)
    same = np.empty(codes.shape, dtype=np.bool_)
    for gap in range(1, width):
        equal = same[: width - gap]
        np.equal(codes[gap:], codes[: width - gap], out=equal)
        earlier = counts[: width - gap]
        np.add(earlier, equal.view(np.int8), out=earlier)
    counts *= answered.view(np.int8)
    return counts


def first_paths(codes: Codes) -> NDArray[Any]:
    """For each path, the position of the first path with the same answer; m where a path has none."""
    width, pools = codes.shape
    kind: Any = np.uint8 if width < 256 else np.uint32
    if width > _WIDE:
        return np.where(codes < 0, kind(width), _first_of_sorted(codes).astype(kind))
    positions = np.repeat(np.arange(width, dtype=kind)[:, None], pools, axis=1)
    first = positions.copy()
    differ = np.empty(codes.shape, dtype=np.bool_)
    other = np.empty(codes.shape, dtype=kind)
    for gap in range(1, width):
        earlier = other[: width - gap]
        np.not_equal(codes[gap:], codes[: width - gap], out=differ[: width - gap])
        # All bits set where the codes differ, so that the minimum below passes it by.
        np.negative(differ[: width - gap].view(np.uint8), out=earlier, dtype=kind)
        np.bitwise_or(earlier, positions[: width - gap], out=earlier)
        later = first[gap:]
        np.minimum(later, earlier, out=later)
    np.maximum(first, (codes < 0).astype(kind) * kind(width), out=first)
    return first


def _first_of_sorted(codes: Codes) -> NDArray[np.intp]:
    """For each path, the position of the first path with the same code."""
    order = np.argsort(codes, axis=0, kind="stable")
    sorted_codes = np.take_along_axis(codes, order, axis=0)
    starts = np.zeros(codes.shape, dtype=np.intp)
    starts[1:] = np.where(sorted_codes[1:] != sorted_codes[:-1], np.arange(1, len(codes))[:, None], 0)
    first = np.empty(codes.shape, dtype=np.intp)
    np.put_along_axis(first, order, np.take_along_axis(order, np.maximum.accumulate(starts), axis=0), axis=0)
    return first


def tally_weights(first: NDArray[Any], whole: Floats) -> Floats:
    """The tally of each answer at the first path that gives it, 0 at its later paths and where a path has none.

    `first` is what `first_paths` gives.
    """
    width, pools = first.shape
    slots = first.astype(np.intp)
    slots *= pools
    slots += np.arange(pools)
    tally = np.bincount(slots.ravel(), weights=whole.ravel(), minlength=(width + 1) * pools)
    return np.asarray(
        tally[: first.size].reshape(first.shape), dtype=np.float64
    )  # the last row holds the weight of paths without an answer


def majority(codes: Codes) -> Outcome:
    """The uniform vote: whole counts, ties to the smaller key (paths and weights being equal)."""
    width, counts = len(codes), count_paths(codes)
    top = counts.max(axis=0)
    leading = counts == top
    leading &= codes >= 0
    winner, tied = _smallest_code(codes, leading)
    return Outcome(winner, np.round(top / width, CONFIDENCE_DECIMALS), top == width, tied, leading[:, tied])


def weighted(codes: Codes, weights: Floats) -> Outcome:
    """The score-weighted vote; `weights` (b × m, in [0, 1]) are rounded to the grid here."""
    whole = np.ascontiguousarray(on_grid(weights).T)  # no copy where the weights already lie path by path
    answered = codes >= 0
    tally, total = tally_weights(first_paths(codes), whole), whole.sum(axis=0)
    top = tally.max(axis=0)
    near = tally >= top - TIE_WIDTH * total
    near &= answered
    winner, tied = _smallest_code(codes, near)
    near = near[:, tied]
    if tied.size:
        near = _with_most_merit(codes[:, tied], whole[:, tied], near)
        winner[tied], still = _smallest_code(codes[:, tied], near)
        tied, near = tied[still], near[:, still]
    unanimous = answered[0] & (codes == codes[0]).all(axis=0)
    return Outcome(winner, np.round(top / total, CONFIDENCE_DECIMALS), unanimous, tied, near)


def _smallest_code(codes: Codes, candidates: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """The smallest candidate code of each pool (−1 where there is none), and the pools that have more than one."""
    barrier = (~candidates).astype(codes.dtype)
    barrier *= np.iinfo(codes.dtype).max
    smallest = np.maximum(codes, barrier).min(axis=0)
    tied = np.flatnonzero((codes * candidates).max(axis=0) > smallest)
    winner: NDArray[np.int64] = smallest.astype(np.int64)
    winner[smallest == np.iinfo(codes.dtype).max] = -1
    return winner, tied


def _with_most_merit(codes: Codes, whole: Floats, near: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of the tied answers those with the most paths, and of these those with the largest single weight."""
    slots = _first_of_sorted(codes) * codes.shape[1] + np.arange(codes.shape[1])
    paths = np.bincount(slots.ravel(), minlength=codes.size)[slots]
    heaviest = np.zeros(codes.size)
    np.maximum.at(heaviest, slots.ravel(), whole.ravel())
    heaviest = heaviest[slots]
    for merit in (paths, heaviest):
        best = np.where(near, merit, -1).max(axis=0)
        near = near & (merit == best)
    return near
