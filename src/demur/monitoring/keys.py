"""One key of a policy's votes, as a caller gives it."""

from __future__ import annotations

import math
from collections.abc import Iterable

from demur.errors import InvalidValue
from demur.evidence.counts import ThresholdKey


def as_key(key: float | Iterable[float], width: int) -> ThresholdKey:
    """The numbers of a key, of which a policy's votes have so many."""
    try:
        entries = tuple(map(float, key)) if isinstance(key, Iterable) else (float(key),)
    except (TypeError, ValueError):
        raise InvalidValue(f"a key must be numbers, got {key!r:.60}") from None
    if len(entries) != width or any(map(math.isnan, entries)) or not 0 <= entries[0] <= 1:
        raise InvalidValue(
            f"a key of this policy is {width} number{'s' * (width > 1)}, a confidence in [0, 1] first and none of "
            f"them NaN, got {entries}"
        )
    return entries
