"""What a result may take the place of: nothing that it is made from, and nothing of another kind."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from pathlib import Path

from demur.errors import InvalidValue

POLICY, CASCADE, POOLS, LINES, PARQUET = "a policy", "a cascade", "pools", "JSON lines", "a Parquet file"
PAGE, TUNED, SHIFT, QUESTIONS = "a web page", "a tuned vote", "a fitted shift", "questions"
STORE, DECISIONS, _OTHER = "a store of runs", "a table of decisions", "something else"
DECISION_MARK = b'{"format": "demur-decisions"}'
"""What a Parquet file of decisions says of itself."""
_HEAD = 4096


def refuse_overwriting(out: Path | None, *inputs: str | Path | None, by: str) -> None:
    """Raise if a result, which is `by` kind, would take the place of an input or of a file of another kind."""
    if out is None:
        return
    for folder in (Path(place) for place in inputs if place is not None and Path(place).is_dir()):
        if out.suffix.lower() in (".parquet", ".pq") and out.resolve().parent == folder.resolve():
            raise InvalidValue(f"{out} would be one of the files of {folder}, which is an input; choose another folder")
    if not out.is_file():
        return
    for source in (Path(place) for place in inputs if place is not None):
        if source.exists() and out.samefile(source):
            raise InvalidValue(f"{out} is an input of this command; choose another name for the output")
    there = kind_of(out)
    if there not in (None, by):
        raise InvalidValue(
            f"{out} is there already and holds {there}, which {by} would replace; choose another name, or remove it "
            "first"
        )


def written_as(out: Path | None) -> str:
    """The kind of a file that pools go to, by its name."""
    return PARQUET if out is not None and out.suffix == ".parquet" else POOLS


def refuse_foreign(place: Path) -> None:
    """Raise where a table or figure would take the place of a store, a policy or pools."""
    there = kind_of(place) if place.is_file() else None
    if there in (STORE, POLICY, CASCADE, TUNED, SHIFT, POOLS, QUESTIONS, PARQUET, DECISIONS):
        raise InvalidValue(f"{place} holds {there}, which results would replace; choose another folder")


def _footer(path: Path) -> bytes:
    """What stands at the end of a Parquet file, before its own length in four bytes and a mark in four more."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        length = min(int.from_bytes(file.read(4), "little"), size)
        file.seek(max(0, size - 8 - length))
        return file.read(length)


def kind_of(path: Path) -> str | None:
    """What a file holds, by its first bytes; None where it is empty."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith(b"\x1f\x8b"):
        head = b""
        with contextlib.suppress(OSError, EOFError, zlib.error), gzip.open(path) as packed:
            head = packed.read(_HEAD)
        head = head or b"\0"  # damaged, or nothing that can be told
    if head.startswith(b"SQLite format 3\0"):
        return STORE
    if head.startswith(b"PAR1"):
        return DECISIONS if DECISION_MARK in _footer(path) else PARQUET
    text = head.decode(errors="replace").removeprefix("\ufeff").lstrip()
    if not text:
        return None
    if text[:14].lower() == "<!doctype html" or text[:5].lower() == "<html":
        return PAGE
    line = text.split("\n", 1)[0]
    if text.startswith("{") and '"format": "demur-policy"' in text[:200]:
        return POLICY
    if text.startswith("{") and '"format": "demur-shift"' in text[:200]:
        return SHIFT
    if text.startswith("{") and '"format": "demur-cascade"' in text[:200]:
        return CASCADE
    if text.startswith("{") and '"format": "demur-tuned"' in text[:200]:
        return TUNED
    if line.startswith('{"'):
        if any(name in line for name in ('"paths":', '"format": "demur-pools"')):
            return POOLS
        if '"question":' not in line:
            return LINES
        return QUESTIONS if "\n" in text else POOLS  # the paths of a long question may come later
    return _OTHER
