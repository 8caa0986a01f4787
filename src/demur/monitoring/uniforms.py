"""Random numbers that can be drawn again: the t-th of a seed is always the same, whatever was drawn before it."""

from __future__ import annotations

import hashlib

import numpy as np

from demur.errors import InvalidValue

_BLOCK = 1024


class Uniforms:
    """Independent draws from [0, 1), numbered by whole numbers; from digests, so that runs can be repeated anywhere."""

    def __init__(self, seed: int) -> None:
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise InvalidValue(f"a seed must be a whole number, got {seed!r:.60}")
        self.seed = seed
        self._block: int | None = None
        self._drawn: list[float] = []

    def __getitem__(self, number: int) -> float:
        block, place = divmod(number, _BLOCK)
        if block != self._block:
            digest = hashlib.shake_256(f"{self.seed}:{block}".encode()).digest(8 * _BLOCK)
            self._drawn = ((np.frombuffer(digest, dtype=">u8") >> np.uint64(11)) / 2**53).tolist()
            self._block = block
        return self._drawn[place]
