"""Files of monitors: versioned JSON that is data only, sealed with a digest, written all at once."""

from __future__ import annotations

import hmac
import json
import os
from pathlib import Path
from typing import Any

from demur.descriptions import digest
from demur.errors import MonitorFileError
from demur.files import strict_json
from demur.files.atomic import atomic_file
from demur.files.inputs import text_of

FORMAT = "demur-monitor"
SCHEMA = 1

Document = dict[str, Any]
FilePath = str | os.PathLike[str]


def write(document: Document, path: FilePath) -> None:
    """Seal and write; an interrupted write leaves the old file as it was."""
    sealed: Document = {"format": FORMAT, "schema": SCHEMA, **document}
    sealed["digest"] = digest(sealed)
    try:
        with atomic_file(path) as unfinished:
            unfinished.write_text(json.dumps(sealed, allow_nan=False) + "\n", encoding="utf-8", newline="\n")
    except OSError as error:
        raise MonitorFileError(f"cannot write {path}: {error.strerror or error}") from None


def read(path: FilePath) -> Document:
    """Read and verify the seal; nothing in the file is ever executed."""
    source = Path(path)
    document = _parse(source, text_of(source, MonitorFileError))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise MonitorFileError(f"{source} is not a file of a monitor", "give one that a monitor's `save` wrote")
    schema = document.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise MonitorFileError(f"{source} has schema {schema!r:.60}, expected {SCHEMA}", _AFRESH)
    if schema > SCHEMA:
        raise MonitorFileError(f"{source} has schema {schema}, and this demur reads up to {SCHEMA}", "upgrade demur")
    try:
        seal = str(document.pop("digest", None))
        intact = hmac.compare_digest(seal.encode(), digest(document).encode())
    except ValueError:  # a number that JSON cannot hold, such as 1e999
        intact = False
    if not intact:
        raise MonitorFileError(f"{source} was changed after it was written (its digest does not match)", _AFRESH)
    return document


_AFRESH = "use a copy as it was saved, or begin a monitor anew"


def _parse(path: Path, text: str) -> Any:
    try:
        return strict_json.parse(text, finite=True)
    except strict_json.NotJson as error:
        raise MonitorFileError(f"{path} is cut off or damaged: line {error.line}: {error}", _AFRESH) from None
