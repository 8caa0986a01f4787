"""Ranks among all keys so far, one key at a time or many in the order they came.

Keys lie in sorted blocks. A key finds its block and its place there by bisection, and a Fenwick tree over the blocks'
lengths says how many keys lie in the blocks before. A block that grows too long is halved, and the tree built anew:
so seldom that each key costs O(log n) and a short move within its block. Keys are kept as bytes that order as they do:
one object each, compared at one stroke, so that a million of them are hardly slower than a thousand.

Many keys are sorted together. How many of them came before each and are smaller is counted on their places in that
order (`earlier_keys`); those that were there before them are met by bisection, or, where the new ones are not few
beside them, by sorting all of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from demur.evidence.counts import Floats
from demur.monitoring.earlier_keys import smaller_before

Key = bytes
Numbers = NDArray[np.uint64]
Counts = NDArray[np.int64]

_LONGEST = 1024
_FEW = 4
"""New keys are few if there were more than so many times as many."""
_SIGN = np.uint64(1 << 63)


def ordered_bytes(keys: Floats) -> list[Key]:
    """Each row as bytes that compare as rows do, lexicographically; −0 is 0, and no entry may be NaN."""
    return _as_bytes(_ordered_numbers(keys))


def _ordered_numbers(keys: Floats) -> Numbers:
    """Each entry as a whole number that orders as it does."""
    bits = (keys + 0.0).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _as_bytes(numbers: Numbers) -> list[Key]:
    packed, width = numbers.astype(">u8").tobytes(), 8 * numbers.shape[1]
    return [packed[start : start + width] for start in range(0, len(packed), width)]


class Place(NamedTuple):
    """Where a key stands among those before it."""

    above: int
    """Keys that are larger."""
    equal: int
    among: int
    """All of them."""


class Places(NamedTuple):
    """Where each of many keys stands among those before it."""

    above: Counts
    equal: Counts
    among: Counts


class _Found(NamedTuple):
    """Where a key belongs."""

    block: int
    within: int
    """Its place in the block."""
    below: int
    equal: int


class OnlineRanks:
    """The keys so far, in order."""

    _blocks: list[list[Key]]

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._hold(sorted(keys))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Key]:
        """All keys, ascending."""
        return chain.from_iterable(self._blocks)

    def add(self, key: Key) -> Place:
        """Where a key stands among those before it; from now on it is one of them."""
        length = self._length
        if not length:
            self._hold([key])
            return Place(0, 0, 0)
        found = self._find(key)
        self._insert(found, key)
        return Place(length - found.below - found.equal, found.equal, length)

    def add_many(self, keys: Floats) -> Places:
        """Where each row stands among the keys before it, in the order they come; the same as adding one by one."""
        if not len(keys):
            return Places(*[np.zeros(0, dtype=np.int64)] * 3)
        length, numbers = self._length, _ordered_numbers(keys)
        among = self._among_few if len(keys) * _FEW < length else self._among_many
        order, below, equal, occurrence = among(numbers)
        places = np.empty(len(keys), dtype=np.int64)
        places[order] = np.arange(len(keys))
        not_above = below + smaller_before(places)[order] + equal
        above, equals = np.empty((2, len(keys)), dtype=np.int64)
        above[order], equals[order] = length + order - not_above, equal + occurrence
        return Places(above, equals, length + np.arange(len(keys)))

    def _among_few(self, numbers: Numbers) -> tuple[Counts, ...]:
        """New keys in order: which row each is, how many of the old are smaller and equal, and how often it has been
        among the new. The new ones are held from now on."""
        order = np.lexsort(numbers.T[::-1])
        ordered, keys = numbers[order], _as_bytes(numbers[order])
        occurrence = _occurrences(ordered)
        found = list[_Found]()
        for key, again in zip(keys, occurrence.tolist(), strict=True):
            found.append(found[-1] if again else self._find(key, found[-1].block if found else 0))
        for (block, within, _, _), key in zip(found[::-1], keys[::-1], strict=True):  # from behind: places stay
            self._blocks[block].insert(within, key)
        self._blocks = list(chain.from_iterable(map(_halves, self._blocks)))
        self._index()
        _, _, below, equal = np.array(found).T
        return order, below, equal, occurrence

    def _among_many(self, numbers: Numbers) -> tuple[Counts, ...]:
        """The same, by sorting old and new keys together."""
        old = np.frombuffer(b"".join(self), dtype=">u8").reshape(-1, numbers.shape[1])
        every = np.concatenate([old.astype(np.uint64), numbers])
        order = np.lexsort(every.T[::-1])  # stable: of equal keys the old ones come first, then the new as they came
        ordered, is_new = every[order], order >= len(old)
        self._hold(_as_bytes(ordered))
        place = np.arange(len(every)) - _occurrences(ordered)  # where the first of the same key is
        passed = np.append(0, np.cumsum(~is_new))  # old keys before each place
        first = place[is_new]
        below, to_here = passed[first], passed[:-1][is_new]
        occurrence = np.flatnonzero(is_new) - first - (to_here - below)
        return order[is_new] - len(old), below, to_here - below, occurrence

    def _hold(self, ordered: list[Key]) -> None:
        half = _LONGEST // 2
        self._blocks = [ordered[start : start + half] for start in range(0, len(ordered), half)]
        self._index()

    def _find(self, key: Key, start: int = 0) -> _Found:
        """Where a key belongs, no block before `start` being its own; some keys must be held."""
        home = bisect_left(self._last, key, start)
        if home == len(self._blocks):
            return _Found(home - 1, len(self._blocks[-1]), self._length, 0)
        block = self._blocks[home]
        within = bisect_left(block, key)
        below = self._before(home) + within
        return _Found(home, within, below, self._up_to(key) - below if block[within] == key else 0)

    def _up_to(self, key: Key) -> int:
        """How many keys are at most this one."""
        after = bisect_right(self._last, key)
        if after == len(self._blocks):
            return self._length
        return self._before(after) + bisect_right(self._blocks[after], key)

    def _insert(self, found: _Found, key: Key) -> None:
        home, block = found.block, self._blocks[found.block]
        block.insert(found.within, key)
        if len(block) > _LONGEST:
            half = len(block) // 2
            self._blocks[home : home + 1] = [block[:half], block[half:]]
            self._index()
            return
        self._last[home] = block[-1]
        self._length += 1
        tree, node = self._tree, home + 1
        while node < len(tree):
            tree[node] += 1
            node += node & -node

    def _before(self, block: int) -> int:
        """How many keys lie in the blocks before one."""
        tree, total = self._tree, 0
        while block:
            total += tree[block]
            block &= block - 1
        return total

    def _index(self) -> None:
        """The last key of each block, and the tree of lengths."""
        self._last: list[Key] = [block[-1] for block in self._blocks]
        self._tree = tree = [0, *map(len, self._blocks)]
        self._length: int = sum(tree)
        for node in range(1, len(tree)):
            parent = node + (node & -node)
            if parent < len(tree):
                tree[parent] += tree[node]


def _occurrences(ordered: Numbers) -> Counts:
    """How many rows before each are the same, in rows that are in order."""
    places = np.arange(len(ordered))
    new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
    return np.asarray(places - np.maximum.accumulate(np.where(new, places, 0)))


def _halves(block: list[Key]) -> list[list[Key]]:
    """A block, cut where it has grown too long."""
    if len(block) <= _LONGEST:
        return [block]
    half = _LONGEST // 2
    return [block[start : start + half] for start in range(0, len(block), half)]
