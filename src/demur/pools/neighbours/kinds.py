"""Which other program wrote a file, told by its first bytes, and by the keys of its first line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from demur.errors import PoolFileError
from demur.files.inputs import lines_of
from demur.files.strict_json import NotJson, parse
from demur.pools.provenance import PoolFile

INSPECT, LM_EVAL, UQLM = "a log of inspect", "a sample log of lm-eval", "a result of uqlm"
BATCH = "a file of a batch"
_WRITTEN_BY = {
    INSPECT: re.compile(rb'PK\x03\x04|\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:').match,
    LM_EVAL: re.compile(rb'\s*\{\s*"doc_id"\s*:').match,
    UQLM: re.compile(
        rb'\s*+(\[\s*+)?\{\s*"(prompt|response)s?"\s*:|\s*\{\s*"data"\s*:\s*\{\s*"(prompt|response)s?"'
        rb'|(?>[^\n{]*?\bresponse"?,)[^\n{]*sampled_responses'
    ).match,
    BATCH: re.compile(rb'\s*\{\s*("id"\s*:\s*"[^"\n]*"\s*,\s*)?"custom_id"\s*:').match,
}


def neighbour_of(path: Path, head: bytes) -> str | None:
    """The program that wrote a file which begins so; None for all others, pools whose fields are named alike too."""
    head = head.removeprefix(b"\xef\xbb\xbf")
    kind = next((kind for kind, begins in _WRITTEN_BY.items() if begins(head)), None)
    return None if kind is not None and head.lstrip().startswith(b"{") and _begins_with_pool(path) else kind


def _begins_with_pool(path: Path) -> bool:
    """Whether the first line of a file is an object with paths, however far behind they stand."""
    first = next((line for _, line in lines_of(path, PoolFileError) if not line.isspace()), "")
    try:
        record = parse(first, any_depth=True)
    except NotJson:
        return False  # of a document of many lines, or damaged: who reads it says so
    return isinstance(record, dict) and "paths" in record


def reader_of(kind: str) -> Callable[[Path], PoolFile]:
    """What reads a file of that kind."""
    from demur.pools.neighbours.inspect_log import read_inspect
    from demur.pools.neighbours.lm_eval import read_lm_eval
    from demur.pools.neighbours.uqlm import read_uqlm

    readers: dict[str, Any] = {
        INSPECT: read_inspect,
        LM_EVAL: read_lm_eval,
        UQLM: read_uqlm,
        BATCH: _refuse_batch,
    }
    reader: Callable[[Path], PoolFile] = readers[kind]
    return reader


def _refuse_batch(path: Path) -> PoolFile:
    """Its answers are paths of the run that asked for them: there it is known which."""
    raise PoolFileError(
        f"{path} holds requests or answers of a batch, and no pools",
        "put answers into the run that asked for them, with `demur import` and {batch}",
    )
