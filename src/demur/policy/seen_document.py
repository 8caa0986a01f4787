"""The problems that calibrated a policy, as its file holds them: names, or digests where they are very many."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np

from demur.policy.file import Document
from demur.policy.plain_values import is_number, strings, typed
from demur.policy.seen import Seen
from demur.voting.problems import Names
from demur.voting.text_columns import DigestSet

SEEN = ("ids", "questions", "clusters")
DIGESTS = "digests"


def seen_document(seen: Seen) -> Document:
    """As plain values."""
    seed = {} if seen.seed is None else {"seed": seen.seed}
    return {**{name: _stored(getattr(seen, name)) for name in SEEN}, "hold_out": seen.hold_out, **seed}


def seen_of(document: Document) -> Seen:
    """Which problems calibrated a document's policy."""
    calibration = typed(document, "calibration", dict)
    hold_out = calibration.get("hold_out")
    if not (hold_out is None or (is_number(hold_out) and 0 < hold_out < 1)):
        raise ValueError(f"hold_out must be a share, got {hold_out!r}")
    if not isinstance(seed := calibration.get("seed"), (int, type(None))):
        raise ValueError(f"seed must be a whole number, got {seed!r:.60}")
    ids, questions, clusters = (_names(calibration, name) for name in SEEN)
    return Seen(ids, questions, clusters, hold_out, seed)


def _stored(names: Names) -> Any:
    if isinstance(names, DigestSet):
        return {DIGESTS: base64.b64encode(names.values.astype("<u8").tobytes()).decode("ascii")}
    return sorted(names)


def _names(calibration: Document, name: str) -> Names:
    stored = calibration.get(name)
    if not isinstance(stored, dict):
        return frozenset(strings(calibration, name))
    try:
        packed = base64.b64decode(stored.get(DIGESTS, ""), validate=True)
        values = np.frombuffer(packed, dtype="<u8").astype(np.uint64)
    except (binascii.Error, TypeError, ValueError):
        raise ValueError(f"`{name}` must hold strings, or digests of eight bytes each") from None
    if (values[1:] <= values[:-1]).any():
        raise ValueError(f"the digests of `{name}` must stand in order, each once")
    return DigestSet(values)
