"""Decisions as a file: one JSON object per line, or one row each in Parquet or CSV, by the name's ending.

In Parquet and CSV the numbers of a decision's key are columns `key.NAME`; what has no column of its own (support,
shares, the stages of a cascade) is JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from demur.cli import replacing
from demur.errors import InvalidValue
from demur.files.cells import harmless
from demur.files.strict_json import as_json, is_finite, with_nulls
from demur.pools.shards import ENDINGS, is_remote
from demur.records import Decision

if TYPE_CHECKING:
    from demur.cli.decision_columns import DecisionColumns, SomeColumns
    from demur.policy.decisions import Decisions

FIELDS = (
    "id", "decision", "answer", "confidence", "threshold", "threshold_key", "p_value", "alpha", "support", "n_paths",
    "without_answer", "shares", "answer_set", "or_other", "groups", "outlier_p_value", "explanation",
)  # fmt: skip
Line = Callable[[Decision], dict[str, Any]]
"""What makes a line of a decision."""
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
    if is_table(out):
        _write_tables(lambda types: _tables(iter(lines), types), out, fields, key, made)
        return
    from demur.pools.jsonl import write_lines

    write_lines(map(_in_json, lines), out)


def write_decided(decided: Decisions, line: Line, out: str, key: Sequence[str]) -> None:
    """Write decisions: by column where they are plain, and the file is the same."""
    write_some(decided, range(len(decided)), line, out, key)


def write_some(
    decided: Decisions, rows: range, line: Line, out: str, key: Sequence[str], made: str | None = None
) -> None:
    """Write the decisions of some rows: by column where they are plain, and the file is the same."""
    columns = None if is_csv(out) else _columns_of(decided)
    if columns is None:
        every = decided if len(rows) == len(decided) else map(decided.__getitem__, rows)
        write_decisions(map(line, every), out, key=key, made=made)
        return
    starts = range(rows.start, rows.stop, _AT_ONCE)
    parts = (columns.some(start, min(start + _AT_ONCE, rows.stop)) for start in starts)
    some = ((part, {row: line(decided[part.start + row]) for row in part.odd}) for part in parts)
    if is_table(out):
        _write_tables(lambda types: (_plain_table(*one, types) for one in some), out, FIELDS, key, made)
        return
    from demur.pools.jsonl import write_lines

    write_lines(chain.from_iterable(_plain_lines(*one) for one in some), out)


@lru_cache(maxsize=1)
def _columns_of(decided: Decisions) -> DecisionColumns | None:
    """What is made once for all files of a folder."""
    from demur.cli.decision_columns import DecisionColumns

    return DecisionColumns.of(decided)


def _write_tables(
    tables: Callable[[dict[str, Any]], Iterable[Mapping[str, Any]]],
    out: str,
    fields: Sequence[str],
    key: Sequence[str],
    made: str | None,
) -> None:
    """Write tables that are made by the types of their columns."""
    from demur.pools.parquet import write_tables
    from demur.pools.shards import libraries

    arrow, _ = libraries()
    types = {name: _type(name, arrow) for name in fields} | {_KEY + name: arrow.float64() for name in key}
    known = {b"demur": replacing.DECISION_MARK} | ({} if made is None else {MADE: made.encode()})
    write_tables(tables(types), out, arrow.schema(list(types.items()), metadata=known))


def _plain_lines(part: SomeColumns, records: Mapping[int, dict[str, Any]]) -> Iterator[dict[str, Any] | str]:
    """Lines of plain decisions, some of which are given as records."""
    return (text if row not in records else _in_json(records[row]) for row, text in enumerate(part.lines()))


def _plain_table(part: SomeColumns, records: Mapping[int, dict[str, Any]], types: Iterable[str]) -> dict[str, Any]:
    """The same as columns of a table."""
    columns, nothing = part.cells(), [None] * (part.end - part.start)
    for name in columns if records else ():
        columns[name] = list(columns[name])
        for row, line in records.items():
            columns[name][row] = _cell(line, name)
    return {name: columns.get(name, nothing) for name in types}


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
