"""Between records and rows: what a database can hold of what a model wrote."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from demur.answers.relations import as_written
from demur.errors import StoreError
from demur.records import Path, Problem

PATH_FACTS = ("finish_reason", "n_tokens", "logprob_mean", "logprob_std", "seed", "latency")


@dataclass(frozen=True, slots=True)
class SavedPath:
    """A sampled path on its way into the store."""

    number: int
    path: int
    text: str | None
    answer: str | None
    extraction: str | None
    finish_reason: str | None = None
    n_tokens: int | None = None
    logprob_mean: float | None = None
    logprob_std: float | None = None
    seed: int | None = None
    latency: float | None = None
    extra: Mapping[str, Any] | None = None


class Scored(NamedTuple):
    """The score of one path, by the number of its problem and its own."""

    number: int
    path: int
    value: float
    flag: str | None = None
    """Why the value is not quite what it should be: floor, cut or empty."""


def path_row(each: SavedPath) -> dict[str, Any]:
    """The columns of a path but its key. A number that no database takes is left out."""
    return {
        "answer": storable(each.answer),
        "extraction": storable(each.extraction, 40),
        "finish_reason": storable(each.finish_reason, 40),
        "n_tokens": _whole(each.n_tokens, 2**31),
        "logprob_mean": _finite(each.logprob_mean),
        "logprob_std": _finite(each.logprob_std),
        "seed": _whole(each.seed, 2**63),
        "latency": _finite(each.latency),
        "extra": plain(each.extra) if each.extra else None,
    }


def storable(text: str | None, most: int | None = None) -> str | None:
    """Text that every database takes: no NUL, no half of a surrogate pair."""
    if text is None:
        return None
    return str(text)[:most].replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def _whole(value: Any, beyond: int) -> int | None:
    """A whole number that a database takes; None for anything else."""
    return value if type(value) is int and 0 <= value < beyond else None


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and -1e300 < value < 1e300 else None


def pack(text: str | None) -> bytes | None:
    return None if text is None else zlib.compress(text.encode("utf-8", "surrogatepass"), level=1)


def unpack(packed: bytes | None) -> str | None:
    return None if packed is None else zlib.decompress(packed).decode("utf-8", "surrogatepass")


def saved(number: int, position: int, path: Path) -> SavedPath:
    """A path of a file as it is stored."""
    facts = {name: path.extra.get(name) for name in PATH_FACTS}
    kept = {name: value for name, value in path.extra.items() if name not in (*PATH_FACTS, "extraction")}
    extraction = path.extra.get("extraction") or ("given" if path.has_answer_field else None)
    answer = as_written(path.answer)
    return SavedPath(number, position, path.text, answer, extraction, **facts, extra=kept)


def problem_row(problem: Problem) -> dict[str, Any]:
    if storable(problem.id) != problem.id:
        raise StoreError(f"the id {problem.id!r} holds characters that cannot be stored")
    return {
        "id": problem.id, "question": storable(problem.question), "gold": plain(list(problem.gold)),
        "cluster": storable(problem.cluster), "kind": storable(problem.group), "extra": plain(dict(problem.extra)),
    }  # fmt: skip


def asked(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What of a problem reaches the model."""
    extra = json.loads(row["extra"])
    return (row["question"], *(extra.get(name) for name in ("task", "passages", "options")))


def problem_of(row: Any) -> Problem:
    return Problem(
        id=row.id, question=row.question, gold=tuple(json.loads(row.gold)), cluster=row.cluster, group=row.kind,
        extra=json.loads(row.extra),
    )  # fmt: skip


def facts_of(row: Sequence[Any]) -> dict[str, Any]:
    known = {name: value for name, value in zip(PATH_FACTS, row[5:], strict=False) if value is not None}
    if row[3] is not None:
        known["extraction"] = row[3]
    return known if row[4] is None else known | json.loads(row[4])


def plain(value: Any) -> str:
    return json.dumps(value)  # ASCII, so that no database minds what a model wrote
