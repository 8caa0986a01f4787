"""Sums that do not depend on the order of their terms, nor on how wide the table is.

A float sum depends on its order in the last bit, and a last bit decides `>`. Here the terms of a row are first
rounded to multiples of 2⁻⁴⁴ of a bound on the row's largest, as whole numbers; whole numbers below 2⁵³ add exactly, so
any order, any padding with zeros and any machine gives the same sum. For rows of more than 512 terms the grid is
coarser by as many bits as the sum needs.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

GRID_BITS = 44
_LARGEST, _SCALE = np.finfo(np.float64).max, 2.0**-20


@cache
def grid(width: int) -> float:
    """The whole number that stands for 1 in rows of `width` terms."""
    spare_bits = max(0, (width - 1).bit_length() - (53 - GRID_BITS))
    return float(2 ** (GRID_BITS - spare_bits))


def on_grid(values: Floats) -> Floats:
    """Terms in [−1, 1] as whole numbers."""
    whole = values * grid(values.shape[1])
    return np.rint(whole, out=whole)


def row_sums(values: Floats) -> Floats:
    """Order-free sums along axis 1, kept as a column."""
    _, exponent = np.frexp(np.abs(values).max(axis=1, keepdims=True))
    scale = np.ldexp(1.0, np.minimum(exponent, 1023))  # a power of two: whole and dyadic scores stay exact
    sums: Floats = on_grid(values / scale).sum(axis=1, keepdims=True)
    return np.asarray(sums * (scale / grid(values.shape[1])))


def row_means(values: Floats, paths: NDArray[np.intp]) -> Floats:
    """The means of so many terms in each row, to the twelfth decimal; beyond all floats, the largest."""
    with np.errstate(over="ignore"):  # terms are scaled by a power of two, so that no sum overflows
        means = np.clip(row_sums(values * _SCALE)[:, 0] / paths / _SCALE, -_LARGEST, _LARGEST)
        rounded: Floats = np.round(means, 12)
    return np.where(np.isfinite(rounded), rounded, means)
