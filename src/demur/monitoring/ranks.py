"""Ranks among all keys so far, one key at a time.

Keys lie in sorted blocks. A key finds its block and its place there by bisection, and a Fenwick tree over the blocks'
lengths says how many keys lie in the blocks before. A block that grows too long is halved, and the tree built anew:
so seldom that each key costs O(log n) and a short move within its block. Keys are kept as bytes that order as they do:
one object each, compared at one stroke, so that a million of them are hardly slower than a thousand.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from demur.evidence.counts import Floats

Key = bytes

_LONGEST = 1024
_SIGN = np.uint64(1 << 63)


def ordered_bytes(keys: Floats) -> list[Key]:
    """Each row as bytes that compare as rows do, lexicographically; −0 is 0, and no entry may be NaN."""
    bits = (keys + 0.0).view(np.uint64)
    packed = np.where(bits & _SIGN, ~bits, bits | _SIGN).astype(">u8").tobytes()
    width = 8 * keys.shape[1]
    return [packed[start : start + width] for start in range(0, len(packed), width)]


class Place(NamedTuple):
    """Where a key stands among those before it."""

    above: int
    """Keys that are larger."""
    equal: int
    among: int
    """All of them."""


class OnlineRanks:
    """The keys so far, in order."""

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        ordered = sorted(keys)
        half = _LONGEST // 2
        self._blocks = [ordered[start : start + half] for start in range(0, len(ordered), half)]
        self._index()

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Key]:
        """All keys, ascending."""
        return chain.from_iterable(self._blocks)

    def add(self, key: Key) -> Place:
        """Where a key stands among those before it; from now on it is one of them."""
        length = self._length
        if not length:
            self._blocks = [[key]]
            self._index()
            return Place(0, 0, 0)
        first = bisect_left(self._last, key)
        if first == len(self._blocks):
            below, equal, home = length, 0, first - 1
        else:
            block = self._blocks[first]
            within = bisect_left(block, key)
            below, equal, home = self._before(first) + within, 0, first
            if block[within] == key:
                equal = self._up_to(key) - below
        self._insert(home, key)
        return Place(length - below - equal, equal, length)

    def _up_to(self, key: Key) -> int:
        """How many keys are at most this one."""
        after = bisect_right(self._last, key)
        if after == len(self._blocks):
            return self._length
        return self._before(after) + bisect_right(self._blocks[after], key)

    def _insert(self, home: int, key: Key) -> None:
        block = self._blocks[home]
        insort(block, key)
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
        self._last = [block[-1] for block in self._blocks]
        self._tree = tree = [0, *map(len, self._blocks)]
        self._length = sum(tree)
        for node in range(1, len(tree)):
            parent = node + (node & -node)
            if parent < len(tree):
                tree[parent] += tree[node]
