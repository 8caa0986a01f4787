"""Random numbers that can be drawn again: the t-th of a seed is always the same, whatever was drawn before it."""

from __future__ import annotations

import hashlib

import numpy as np

from demur.errors import InvalidValue
from demur.evidence.counts import Floats

_BLOCK = 1024


class Uniforms:
    """Independent draws from [0, 1), numbered from 0; drawn from digests, so that a run can be repeated anywhere."""

    def __init__(self, seed: int) -> None:
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise InvalidValue(f"a seed must be a whole number, got {seed!r:.60}")
        self.seed = seed
        self._last: tuple[int | None, Floats] = None, np.empty(0)

    def __getitem__(self, number: int) -> float:
        block, place = divmod(number, _BLOCK)
        return float(self._drawn(block)[place])

    def some(self, first: int, count: int) -> Floats:
        """Several, from one number on."""
        blocks = range(first // _BLOCK, (first + count - 1) // _BLOCK + 1)
        start = first % _BLOCK
        return np.concatenate([np.empty(0), *map(self._drawn, blocks)])[start : start + count]

    def _drawn(self, block: int) -> Floats:
        if block != self._last[0]:
            digest = hashlib.shake_256(f"{self.seed}:{block}".encode()).digest(8 * _BLOCK)
            self._last = block, (np.frombuffer(digest, dtype=">u8") >> np.uint64(11)) / 2**53
        return self._last[1]
