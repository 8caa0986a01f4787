"""What a result may take the place of: nothing that it is made from, and nothing of another kind."""

from __future__ import annotations

import contextlib
import gzip
import re
import zlib
from pathlib import Path
from typing import Any

from demur.errors import InvalidValue
from demur.pools.shards import ENDINGS, is_remote

POLICY, CASCADE, POOLS, LINES, PARQUET = "a policy", "a cascade", "pools", "JSON lines", "a Parquet file"
PAGE, TUNED, SHIFT, QUESTIONS = "a web page", "a tuned vote", "a fitted shift", "questions"
STORE, DECISIONS, _OTHER = "a store of runs", "a table of decisions", "something else"
DECISION_MARK = b'{"format": "demur-decisions"}'
"""What a Parquet file of decisions says of itself."""
LABELS = "labels"
_LINED = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
_DECIDED = (*_LINED, ".csv", ".tsv", ".csv.gz", ".tsv.gz", *ENDINGS)
_NAMED = {
    **dict.fromkeys((POLICY, CASCADE, TUNED, SHIFT), (".json",)),
    **dict.fromkeys((LINES, DECISIONS), _DECIDED),
    PAGE: (".html", ".htm"),
    LABELS: (".jsonl", ".ndjson"),
    QUESTIONS: _LINED,
    STORE: (".db", ".sqlite", ".sqlite3"),
}
"""How each kind of file is named; pools are checked where they are written."""
_ENDING = re.compile(r"\.[a-z][a-z0-9]*")
_HEAD = 4096
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
"""How an address begins, also where it was taken for a path and lost a slash."""


def refuse_overwriting(out: Path | str | None, *inputs: str | Path | None, by: str) -> None:
    """Raise if a result, which is `by` kind, would take the place of an input or of a file of another kind.

    Tables go to addresses as well; anything else is refused there.
    """
    if out is None:
        return
    if isinstance(out, str) and is_remote(out) and by in (PARQUET, DECISIONS):
        _refuse_overwriting_afar(out, *(str(place) for place in inputs if place is not None), by=by)
        return
    if _ADDRESS.match(str(out)):
        address = re.sub(r":/+", "://", str(out), count=1)
        if is_remote(address) and by == POOLS:
            raise InvalidValue(f"{address} is not named .parquet, and only Parquet is written there; name it so")
        raise InvalidValue(f"cannot write {by} to {address}, only to a file here; name one, and copy it there")
    out = Path(out)
    for folder in (Path(place) for place in inputs if place is not None and Path(place).is_dir()):
        if out.suffix.lower() in (".parquet", ".pq") and out.resolve().parent == folder.resolve():
            raise InvalidValue(f"{out} would be one of the files of {folder}, which is an input; choose another folder")
    if out.is_file():
        for source in (Path(place) for place in inputs if place is not None):
            if source.exists() and out.samefile(source):
                raise InvalidValue(f"{out} is an input of this command; choose another name for the output")
        _refuse_other(out, kind_of(out), by)
    refuse_name(out, by)


def refuse_name(out: Path | str, by: str) -> None:
    """Raise if a file is named like another kind than it would be; a name without an ending says nothing."""
    endings, name = _NAMED.get(by, ()), Path(out).name.lower()
    if endings and _ENDING.fullmatch(Path(name).suffix) and not name.endswith(endings):
        raise InvalidValue(
            f"{out} is not named like {by}",
            f"name it {' or '.join(part for part in endings if not part.endswith('.gz'))}",
        )


def refuse_store_name(out: str) -> None:
    """Raise if a new store would be named like another kind of file; one that is there keeps its name."""
    if "://" not in out and not Path(out).exists():
        refuse_name(out, STORE)


def _refuse_overwriting_afar(out: str, *inputs: str, by: str) -> None:
    """The same for an address, which is asked before any work is done."""
    from demur.pools.targets import is_same_place, object_at, writing

    with writing(out):
        for place in inputs:
            if is_same_place(out, place):
                raise InvalidValue(f"{out} is an input of this command; choose another name for the output")
            if is_same_place(out.rpartition("/")[0], place):
                raise InvalidValue(
                    f"{out} would be one of the files of {place}, which is an input; choose another folder"
                )
    file = object_at(out)
    if file is not None:
        with writing(out), file:
            there = _kind(file)
        _refuse_other(out, there, by)


def _refuse_other(out: Path | str, there: str | None, by: str) -> None:
    if there not in (None, by):
        raise InvalidValue(
            f"{out} is there already and holds {there}, which {by} would replace; choose another name, or remove it "
            "first"
        )


def written_as(out: Path | str | None) -> str:
    """The kind of a file that pools go to, by its name."""
    return PARQUET if out is not None and str(out).lower().endswith(ENDINGS) else POOLS


def refuse_foreign(place: Path) -> None:
    """Raise where a table or figure would take the place of a store, a policy or pools."""
    there = kind_of(place) if place.is_file() else None
    if there in (STORE, POLICY, CASCADE, TUNED, SHIFT, POOLS, QUESTIONS, PARQUET, DECISIONS):
        raise InvalidValue(f"{place} holds {there}, which results would replace; choose another folder")


def _footer(file: Any) -> bytes:
    """What stands at the end of a Parquet file, before its own length in four bytes and a mark in four more."""
    size = file.seek(0, 2)
    file.seek(max(0, size - 8))
    length = min(int.from_bytes(file.read(4), "little"), size)
    file.seek(max(0, size - 8 - length))
    return bytes(file.read(length))


def kind_of(path: Path) -> str | None:
    """What a file holds, by its first bytes; None where it is empty."""
    with path.open("rb") as file:
        return _kind(file)


def _kind(file: Any) -> str | None:
    head = file.read(_HEAD)
    if head.startswith(b"\x1f\x8b"):
        head = b""
        file.seek(0)
        with contextlib.suppress(OSError, EOFError, zlib.error), gzip.open(file) as packed:
            head = packed.read(_HEAD)
        head = head or b"\0"  # damaged, or nothing that can be told
    if head.startswith(b"SQLite format 3\0"):
        return STORE
    if head.startswith(b"PAR1"):
        return DECISIONS if DECISION_MARK in _footer(file) else PARQUET
    text = head.decode(errors="replace").removeprefix("\ufeff").lstrip()
    if not text:
        return None
    if text[:14].lower() == "<!doctype html" or text[:5].lower() == "<html":
        return PAGE
    line = text.split("\n", 1)[0]
    columns = set(re.split(r"[,\t]", line.strip()))
    if {"id", "answer"} <= columns:
        return DECISIONS if "decision" in columns else POOLS
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
