"""Which other program wrote a file, told by its first bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from demur.pools.provenance import PoolFile

INSPECT, LM_EVAL, UQLM = "a log of inspect", "a sample log of lm-eval", "a result of uqlm"
_WRITTEN_BY = {
    INSPECT: re.compile(rb'PK\x03\x04|\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:'),
    LM_EVAL: re.compile(rb'\s*\{\s*"doc_id"\s*:'),
    UQLM: re.compile(
        rb'\s*(\[\s*)?\{\s*"(prompt|response)s?"\s*:|\s*\{\s*"data"\s*:\s*\{\s*"(prompt|response)s?"'
        rb"|[^\n{]*\bresponse,[^\n{]*sampled_responses"
    ),
}


def neighbour_of(head: bytes) -> str | None:
    """The program whose file begins so; None for all others."""
    kind = next((kind for kind, begins in _WRITTEN_BY.items() if begins.match(head)), None)
    return None if kind == UQLM and b'"paths"' in head else kind


def reader_of(kind: str) -> Callable[[Path], PoolFile]:
    """What reads a file of that kind."""
    from demur.pools.neighbours.inspect_log import read_inspect
    from demur.pools.neighbours.lm_eval import read_lm_eval
    from demur.pools.neighbours.uqlm import read_uqlm

    readers: dict[str, Any] = {INSPECT: read_inspect, LM_EVAL: read_lm_eval, UQLM: read_uqlm}
    reader: Callable[[Path], PoolFile] = readers[kind]
    return reader
