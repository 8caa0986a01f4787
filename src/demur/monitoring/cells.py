"""Where keys fall among the calibration keys, counted: ranks that need no memory of the stream.

    n       calibration keys; they leave n + 1 gaps
    a_i     gaps of cell i: cells are runs of neighbouring gaps, about equally many each, and at most MOST_CELLS
    c_i     keys of the stream so far that fell into cell i; t in all

While the stream is exchangeable with the calibration keys, the next key takes each of n + 1 + t places among all keys
before it with the same probability, whatever the order of those. a_i + c_i of these places lie in cell i, so that is
where it falls with probability (a_i + c_i)/(n + 1 + t), whatever cells were met before. It is a rank to within a cell,
and counts are all there is to keep: a year of traffic takes no more room than a day.

No two keys may be equal: keys that are get a draw as their last entry.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.evidence.counts import Floats
from demur.monitoring.betting import as_count

Key = bytes
Counts = NDArray[np.int64]

MOST_CELLS = 256
_AT_ONCE = 128
_EARLIER = np.tri(_AT_ONCE, k=-1, dtype=np.bool_)
_SIGN = np.uint64(1 << 63)


def ordered_bytes(keys: Floats) -> list[Key]:
    """Each row as bytes that compare as rows do, lexicographically; −0 is 0, and no entry may be NaN."""
    bits = (keys + 0.0).view(np.uint64)
    packed = np.where(bits & _SIGN, ~bits, bits | _SIGN).astype(">u8").tobytes()
    width = 8 * keys.shape[1]
    return [packed[start : start + width] for start in range(0, len(packed), width)]


class Place(NamedTuple):
    """Where a key falls, in places among all keys before it."""

    above: int
    """Those of higher cells."""
    within: int
    """Those of its own."""
    among: int
    """All of them."""


class Cells:
    """How many keys of a stream fell into each cell between the calibration keys."""

    def __init__(self, calibration: Floats) -> None:
        n = len(calibration)
        cells = min(n + 1, MOST_CELLS)
        ranks = np.arange(1, cells) * (n + 1) // cells
        """Of the calibration keys that are edges, ascending from 1."""
        order = np.lexsort(calibration.T[::-1])
        self._edges = ordered_bytes(calibration[order[ranks - 1]])
        self.gaps: list[int] = np.diff(ranks, prepend=0, append=n + 1).tolist()
        self._places = self.gaps.copy()
        self._among = n + 1

    @property
    def counts(self) -> list[int]:
        """Keys of the stream in each cell, the lowest cell first."""
        return [places - gaps for places, gaps in zip(self._places, self.gaps, strict=True)]

    def add(self, key: Key) -> Place:
        """Where a key falls among those before it; from now on it is one of them."""
        cell = bisect_left(self._edges, key)
        place = Place(sum(self._places[cell + 1 :]), self._places[cell], self._among)
        self._places[cell] += 1
        self._among += 1
        return place

    def add_many(self, keys: Sequence[Key]) -> tuple[Counts, Counts, Counts]:
        """Of many keys in the order they came: the places above, within and among; the same as one after another."""
        cells = np.array([bisect_left(self._edges, key) for key in keys], dtype=np.int64)
        parts = [self._some(cells[start : start + _AT_ONCE]) for start in range(0, len(cells), _AT_ONCE)]
        above, within = np.concatenate(parts, axis=1) if parts else np.empty((2, 0), dtype=np.int64)
        among = self._among + np.arange(len(keys))
        self._among += len(keys)
        return above, within, among

    def _some(self, cells: Counts) -> Counts:
        """Above and within, of few enough that each can be compared with each."""
        places = np.array(self._places)
        higher = places.sum() - places.cumsum()
        earlier = _EARLIER[: len(cells), : len(cells)]
        small = cells.astype(np.int16)
        above = higher[cells] + np.count_nonzero((small > small[:, None]) & earlier, axis=1)
        within = places[cells] + np.count_nonzero((small == small[:, None]) & earlier, axis=1)
        self._places = (places + np.bincount(cells, minlength=len(places))).tolist()
        return np.stack([above, within])

    def restore(self, counts: Any) -> None:
        """Go on from counts; ValueError where they are none of these cells."""
        if not isinstance(counts, list) or len(counts) != len(self.gaps):
            raise InvalidValue(f"its counts must be {len(self.gaps)} numbers, one per cell, got {counts!r:.60}")
        whole = [as_count(count, "a cell's count") for count in counts]
        self._places = [gaps + count for gaps, count in zip(self.gaps, whole, strict=True)]
        self._among = sum(self._places)
