"""Between records and rows: what a database can hold of what a model wrote."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Container, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from demur.answers.relations import as_written
from demur.errors import InvalidValue, StoreError
from demur.files.bounds import UNPACKED, size_trusted
from demur.files.strict_json import as_json
from demur.records import Path, Problem, group_as_text, group_of_text

MOST_PATHS = 1 << 20
LONGEST_NAME = 200
_LONGEST_ID = 2000
"""Bytes in UTF-8: PostgreSQL finds nothing longer by an index."""
PATH_FACTS = ("finish_reason", "n_tokens", "logprob_mean", "logprob_std", "seed", "latency")

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NOTHING: Any = MappingProxyType({})


class PlacedPath(NamedTuple):
    """A path, the number of its problem and its own."""

    number: int
    place: int
    path: Path


class PathScore(NamedTuple):
    """The score of one path, by the number of its problem and its own."""

    number: int
    path: int
    value: float
    flag: str | None = None
    """Why the value is not quite what it should be: floor, cut or empty."""


def path_row(path: Path) -> dict[str, Any]:
    """The columns of a path but its key and text. A number that no database takes is left out."""
    known = path.extra
    others = {name: value for name, value in known.items() if name not in PATH_FACTS and name != "extraction"}
    return {
        "answer": storable(as_written(path.answer)),
        "extraction": storable(known.get("extraction") or ("given" if path.has_answer_field else None), 40),
        "finish_reason": storable(known.get("finish_reason"), 40),
        "n_tokens": _whole(known.get("n_tokens"), 2**31),
        "logprob_mean": _finite(known.get("logprob_mean")),
        "logprob_std": _finite(known.get("logprob_std")),
        "seed": _whole(known.get("seed"), 2**63),
        "latency": _finite(known.get("latency")),
        "extra": plain(others) if others else None,
    }


def storable(written: str | None, most: int | None = None) -> str | None:
    """Text that every database takes: a NUL and half of a surrogate pair are U+FFFD there."""
    if written is None:
        return None
    return _UNSTORABLE.sub("\ufffd", str(written)[:most])


def is_name(value: Any) -> bool:
    """Whether every database takes a text as the name of something."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and storable(value) == value


def check_name(what: str, name: str, known: Callable[[], Container[str]]) -> None:
    """Raise if not every database takes the name of a run or score, unless a file from before has it already."""
    if not is_name(name) and name not in known():
        raise InvalidValue(
            f"the name of a {what} is a text of 1 to {LONGEST_NAME} characters, without NUL and half of a surrogate "
            f"pair, got {len(name)} characters: {name!r:.60}"
        )


def check_place(place: int, number: int) -> None:
    """Raise where a path has an index that no pool has."""
    if not 0 <= place < MOST_PATHS:
        raise StoreError(f"path {place} of problem number {number}: indexes of paths go from 0 to {MOST_PATHS - 1}")


def tokens_of(batch: Sequence[PlacedPath]) -> int:
    """The tokens of some paths, as far as they are known."""
    return sum(_whole(placed.path.extra.get("n_tokens"), 2**31) or 0 for placed in batch)


def _whole(value: Any, beyond: int) -> int | None:
    """A whole number that a database takes; None for anything else."""
    return value if type(value) is int and 0 <= value < beyond else None


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and -1e300 < value < 1e300 else None


def pack(written: str) -> bytes:
    return zlib.compress(written.encode("utf-8", "surrogatepass"), level=1)


def unpack(packed: bytes | None) -> str | None:
    """The text that was packed; raises before it is larger than a file of that size may be."""
    if packed is None:
        return None
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(packed, 0 if size_trusted() else UNPACKED.most(len(packed)))
    if unpacker.unconsumed_tail:
        UNPACKED.refuse(len(content) + 1, len(packed), "a text of the store", StoreError)
    if not unpacker.eof:
        raise zlib.error("incomplete or truncated stream")
    return content.decode("utf-8", "surrogatepass")


def problem_row(problem: Problem) -> dict[str, Any]:
    if storable(problem.id) != problem.id:
        raise StoreError(f"the id {problem.id!r:.60} holds characters that cannot be stored")
    texts = {name: storable(getattr(problem, name)) for name in ("id", "question", "cluster")}
    texts["group"] = storable(group_as_text(problem.group))
    return {**texts, "gold": plain(list(problem.gold)), "extra": plain(dict(problem.extra))}


def check_id(name: str) -> None:
    """Raise where a new id is too long for some database."""
    if (size := len(name.encode())) > _LONGEST_ID:
        raise StoreError(f"an id has at most {_LONGEST_ID} bytes, and {name!r:.60} has {size}", "use shorter ids")


def what_is_asked(row: Any) -> tuple[Any, ...]:
    """What of a problem reaches the model."""
    extra = json.loads(row["extra"])
    return (row["question"], *(extra.get(name) for name in ("task", "passages", "options", "messages")))


def problem_of(row: Any) -> Problem:
    gold, extra = json.loads(row.gold), json.loads(row.extra)
    if not isinstance(gold, list) or not isinstance(extra, dict):
        raise TypeError(f"gold or further fields of problem number {row.number}")
    question, cluster, group = (
        None if value is None else text(value) for value in (row.question, row.cluster, row.group)
    )
    named = None if group is None else group_of_text(group)
    return Problem(text(row.id), question, tuple(gold), cluster, named, extra)


def path_of(row: Sequence[Any], written: bytes | None, scored: Mapping[str, float], *, facts: bool) -> Path:
    """A path from its row (number, path, answer, extraction, extra and PATH_FACTS), its packed text and its scores."""
    answer, extraction = row[2], row[3]
    try:
        if answer is not None and type(answer) is not str:
            raise TypeError(f"its answer is {type(answer).__name__}")
        return Path(answer, unpack(written), scored, _facts_of(row) if facts else _NOTHING, extraction is not None)
    except (zlib.error, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"path {row[1]} of problem number {row[0]} ({error})") from None


def _facts_of(row: Sequence[Any]) -> dict[str, Any]:
    known = {name: value for name, value in zip(PATH_FACTS, row[5:], strict=False) if value is not None}
    if row[3] is not None:
        known["extraction"] = row[3]
    if any(type(value) is bytes for value in known.values()):
        raise TypeError("bytes where a text or a number should be")
    return known if row[4] is None else known | json.loads(row[4])


def score_of(value: Any) -> float:
    """A score as it was stored; raises where it is none."""
    if type(value) is not float:
        raise TypeError(f"a score is {value!r:.40}")
    return value


def text(value: Any) -> str:
    """A text as it was stored; raises where it is none: SQLite keeps whatever it is given."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} where a text should be")
    return value


def plain(value: Any) -> str:
    return as_json(value)  # ASCII, so that no database minds what a model wrote
