"""The line of a pool file that tells of the whole file, where there is one."""

from __future__ import annotations

from typing import Any

POOLS = "demur-pools"


def is_header(record: Any) -> bool:
    """Whether a line is about the file, rather than a problem of it."""
    return isinstance(record, dict) and record.get("format") == POOLS and not record.keys() & {"id", "paths"}
