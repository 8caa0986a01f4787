"""Ranks among all keys so far, one key at a time.

Keys lie in sorted blocks. A key finds its block and its place there by bisection, and a Fenwick tree over the blocks'
lengths says how many keys lie in the blocks before. A block that grows too long is halved, and the tree built anew:
so seldom that each key costs O(log n) and a short move within its block.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

Key = tuple[float, ...]

_LONGEST = 512


@dataclass(frozen=True, slots=True)
class Place:
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
