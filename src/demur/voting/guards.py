"""What keeps labels, and values that say other than they seem, out of the vote: at every door, the same."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Number
from typing import Any

import numpy as np

from demur.errors import InvalidValue

_SCALARS = (Number, np.number, str, bytes, type(None))


def refuse_mask(values: Any, name: str) -> None:
    """Masked arrays lose their mask on the way into arrays: refuse them rather than read what they hide."""
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidValue(
            f"{name} must not be a masked array; fill it first, with -1 or None where there is no answer"
        )


def refuse_booleans(values: Any, name: str) -> None:
    """Raise if any of these numbers is a boolean, in whatever they are held: arrays, lists of lists, tables."""
    if _hold_booleans(values):
        raise InvalidValue(f"{name} must be numbers, got booleans: those look like labels, which the vote must not see")


def _hold_booleans(values: Any, depth: int = 3) -> bool:
    if hasattr(values, "__array__"):
        array = np.asarray(values)
        if array.dtype != object:
            return bool(array.dtype.kind == "b")
        values = array.ravel().tolist()
    if isinstance(values, _SCALARS) or not isinstance(values, Collection) or not depth:
        return isinstance(values, bool)
    kinds: set[type] = set(map(type, values))
    if kinds & {bool, np.bool_}:
        return True
    nested = {kind for kind in kinds if not issubclass(kind, _SCALARS)}
    return bool(nested) and any(_hold_booleans(value, depth - 1) for value in values if type(value) in nested)
