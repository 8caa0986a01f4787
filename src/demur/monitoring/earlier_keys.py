"""How many of those that came before are smaller: for every member of a permutation, without comparing pairs.

Values are told apart by their bits, the highest first. Among values that agree in all higher bits, one whose bit is set
is larger than all whose bit is not: those of them that came before are counted. Then the two kinds go separate ways,
each in the order it came. So n values take log₂ n passes over arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


def smaller_before(values: Counts) -> Counts:
    """Of 0, 1, …, n − 1 in some order: for each, how many before it are smaller."""
    n = len(values)
    half = (1 << max(n - 1, 0).bit_length()) // 2
    order = np.arange(max(2 * half, 1))  # filled up with larger ones that come later, which count for nobody
    order[:n] = values
    smaller = np.zeros(len(order), dtype=np.int64)
    while half:
        kind = order.reshape(-1, 2 * half)  # each row holds half values with the bit, and half without
        has_bit = (kind & half) > 0
        with_bit = kind[has_bit]
        smaller[with_bit] += np.cumsum(~has_bit, axis=1)[has_bit]
        parts = kind[~has_bit].reshape(-1, half), with_bit.reshape(-1, half)
        order = np.concatenate(parts, axis=1).ravel()
        half //= 2
    return np.asarray(smaller[values])
