"""Decisions as a file: one JSON object per line, or one row each in Parquet or CSV, by the name's ending.

In Parquet and CSV the numbers of a decision's key are columns `key.NAME`; what has no column of its own (support,
shares, the stages of a cascade) is JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from typing import Any

from demur.cli import replacing
from demur.errors import InvalidValue
from demur.files.cells import harmless
from demur.files.strict_json import as_json, is_finite, with_nulls
from demur.pools.shards import ENDINGS, is_remote

FIELDS = (
    "id", "decision", "answer", "confidence", "threshold", "threshold_key", "p_value", "alpha", "support", "n_paths",
    "without_answer", "shares", "answer_set", "or_other", "groups", "outlier_p_value", "explanation",
)  # fmt: skip
_TEXTS = ("id", "decision", "answer", "stage", "explanation")
_NUMBERS = ("confidence", "threshold", "p_value", "alpha", "outlier_p_value", "cost")
_COUNTS = ("n_paths", "without_answer")
_LISTS = {"answer_set": "string", "groups": "string", "threshold_key": "float64"}
_KEY = "key."
_AT_ONCE = 8192
_UNKNOWN = (math.inf,)
MADE = b"demur.made"
"""Of a table's metadata, what says how its decisions were made."""


def is_table(out: str | None) -> bool:
    """Whether decisions go to a Parquet file."""
    return out is not None and out.lower().endswith(ENDINGS)


def is_csv(out: str | None) -> bool:
    """Whether decisions go to a file of cells with a separator between them."""
    return out is not None and out.lower().endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz"))


def written_as(out: str | None) -> str:
    """The kind of file that decisions go to; an error where only a table can."""
    if out is not None and is_remote(out) and not is_table(out):
        raise InvalidValue(
            f"{out} is not named .parquet, and only Parquet is written there; name it so, or end it in / for a folder"
        )
    return replacing.DECISIONS if is_table(out) or is_csv(out) else replacing.LINES


def write_decisions(
    lines: Iterable[dict[str, Any]],
    out: str,
    fields: Sequence[str] = FIELDS,
    key: Sequence[str] = (),
    made: str | None = None,
) -> None:
    """Write decisions as they come; `key` are the names of the numbers of a decision's key.

    `made` says how the decisions of a table were made, for a command that goes on with a folder of them.
    """
    if is_csv(out):
        from demur.pools.delimited import write_rows

        names = [*fields, *(_KEY + name for name in key)]
        write_rows(chain([names], ([_text_cell(line, name) for name in names] for line in lines)), out)
        return
    if not is_table(out):
        from demur.pools.jsonl import write_lines

        write_lines(map(_in_json, lines), out)
        return
    from demur.pools.parquet import write_tables
    from demur.pools.shards import libraries

    arrow, _ = libraries()
    types = {name: _type(name, arrow) for name in fields} | {_KEY + name: arrow.float64() for name in key}
    known = {b"demur": replacing.DECISION_MARK} | ({} if made is None else {MADE: made.encode()})
    write_tables(_tables(iter(lines), types), out, arrow.schema(list(types.items()), metadata=known))


def _in_json(line: dict[str, Any]) -> dict[str, Any]:
    """A line with null for infinite thresholds, with which it would be tried twice."""
    if all(map(math.isfinite, line.get("threshold_key", _UNKNOWN))):
        return line
    return line | {name: with_nulls(line[name]) for name in ("threshold", "threshold_key") if name in line}


def _tables(lines: Iterator[dict[str, Any]], types: dict[str, Any]) -> Iterator[dict[str, list[Any]]]:
    while some := list(islice(lines, _AT_ONCE)):
        yield {name: _cells(some, name) for name in types}


def _cells(lines: Sequence[dict[str, Any]], name: str) -> list[Any]:
    """A column of some lines."""
    if name.startswith(_KEY):
        own = name.removeprefix(_KEY)
        return [line["key"][own] for line in lines]
    values = [line.get(name) for line in lines]
    if (made := _made_cell(name)) is None or all(value is None for value in values):
        return values
    return [None if value is None else made(value) for value in values]


def _type(name: str, arrow: Any) -> Any:
    if name in _NUMBERS:
        return arrow.float64()
    if name in _COUNTS:
        return arrow.int32()
    if name in _LISTS:
        return arrow.list_(getattr(arrow, _LISTS[name])())
    return arrow.bool_() if name == "or_other" else arrow.string()


def _text_cell(line: dict[str, Any], name: str) -> Any:
    """A cell of CSV: empty where there is nothing and for an infinite number, which is one in no spreadsheet."""
    value = _cell(line, name)
    if name in _LISTS and value is not None:
        return as_json(value, ensure_ascii=False)
    if isinstance(value, bool):
        return as_json(value)
    return "" if value is None or not is_finite(value) else harmless(value)


def _cell(line: dict[str, Any], name: str) -> Any:
    if name.startswith(_KEY):
        return line["key"][name.removeprefix(_KEY)]
    value, made = line.get(name), _made_cell(name)
    return value if value is None or made is None else made(value)


@cache
def _made_cell(name: str) -> Callable[[Any], Any] | None:
    """What makes a cell of a column's value; None if the value is the cell."""
    if name in _NUMBERS or name in _COUNTS or name == "or_other":
        return None
    from demur.pools.frame_rows import writable

    if name in _LISTS:
        return (lambda value: [writable(str(one)) for one in value]) if _LISTS[name] == "string" else list
    if name in _TEXTS:
        return lambda value: writable(str(value))
    return lambda value: writable(as_json(value, ensure_ascii=False))
