"""The columns of Parquet files, read from them when somebody asks, a batch of rows at a time.

A column that nobody asks for is never read, and of one that somebody does only codes, numbers or the first of equal
rows stay in memory, so that texts cost nothing unless they are shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import PoolFileError
from demur.files.bounds import CELLS, ROWS, TEXTS, UNPACKED, VALUES
from demur.pools.columns import Codes, cells_of, plain_form, refuse_repeated
from demur.pools.frame_rows import OF_PROBLEM, PATH, PROBLEM
from demur.pools.runs import Runs, is_text
from demur.pools.shards import Shard, libraries, reading

_ROWS = 1 << 17  # rows that are read at once
_TEXTS = ("STRING", "JSON", "ENUM", "NONE")
"""What columns of bytes hold that are read as codes of their texts."""
_MOST_CODED = 1 << 30
"""Bytes of a column in a row group, unpacked, from which on its texts are read as they stand: codes of so many could
not be held. What is smaller may be one text in very many rows, which only codes of it show."""


class ParquetColumns:
    """Columns of one or more files as of one table."""

    in_memory = False

    def __init__(self, shards: Sequence[Shard], own_names: Mapping[str, str] | None = None) -> None:
        self._shards = list(shards)
        self._arrow, _ = libraries()
        self._own_names = dict(own_names or {})
        """The files' own name of each column that has another here."""
        schema = self._schema()
        self._types = {name: schema.field(self._own(name)).type for name in self._here(schema.names)}
        self._refuse_binary()
        self.metadata: dict[bytes, bytes] = dict(schema.metadata or {})
        self.names = list(self._types)
        self._refuse_large()
        rows = [shard.metadata.num_rows for shard in self._shards]
        self._ends: NDArray[np.int64] = np.cumsum(rows, dtype=np.int64)
        self.n = int(self._ends[-1])
        self._kept: dict[str, tuple[tuple[int, int], Any]] = {}
        """Of each column, the row group that was read last."""
        self._counted: dict[str, tuple[int, int]] = {}
        """Of each column, the last row whose texts were counted, and their bytes."""

    def cells(self, name: str) -> list[Any]:
        cells: list[Any] = []
        for part in self._batches(name):
            self._count_texts(name, part, np.arange(len(cells), len(cells) + len(part)))
            cells += cells_of(part)
        return cells

    def cells_at(self, name: str, rows: NDArray[np.intp]) -> list[Any]:
        """The values in some rows, ascending; reads the row groups that hold them."""
        cells: list[Any] = []
        for place, within in self._by_group(rows):
            part = self._group(name, place).take(self._arrow.array(within))
            self._count_texts(name, part, rows[len(cells) : len(cells) + len(within)])
            cells += cells_of(part)
        return cells

    def encoded(self, name: str, *, in_runs: bool = False) -> tuple[Codes, list[Any]] | None:
        types = self._arrow.types
        kind = self._types[name]
        if types.is_nested(kind):
            return None
        codes = np.full(self.n, -1, dtype=np.int32 if self.n < 2**31 else np.int64)
        code: dict[Any, int] = {}
        values: list[Any] = []
        at = 0
        for part in self._batches(name):
            if not types.is_null(part.type):
                indices, own = _coded(part, self._arrow)
                place = np.empty(len(own) + 1, dtype=codes.dtype)
                place[-1] = -1
                for number, (mark, value) in enumerate(own):
                    place[number] = -1 if value is None else code.setdefault(mark, len(code))
                    if len(code) > len(values):
                        values.append(value)
                codes[at : at + len(part)] = place[indices]
            at += len(part)
        return codes, values

    def runs(self, name: str) -> Runs | None:
        """Where a column changes, and what it says from there on; None where its values are lists or objects."""
        types, arrow = self._arrow.types, self._arrow
        if types.is_nested(self._types[name]):
            return None
        starts, parts, at, last = list[NDArray[np.int64]](), list[Any](), 0, None
        for part in self._batches(name):
            if len(part):
                changes, firsts = _changes(part, arrow)
                self._count_texts(name, firsts, changes + at)
                firsts = firsts.cast(firsts.type.value_type) if types.is_dictionary(firsts.type) else firsts
                if at and firsts[0].as_py() == last:
                    changes, firsts = changes[1:], firsts[1:]
                last = last if not len(firsts) else firsts[-1].as_py()
                starts.append(changes + at)
                parts.append(firsts)
            at += len(part)
        return Runs.of_parts(np.concatenate(starts), parts, self.n)

    def numbers(self, name: str) -> NDArray[np.float64] | None:
        if _kind(self._types[name], self._arrow) != "number":
            return None
        values, at = np.empty(self.n), 0
        for part in self._batches(name):
            values[at : at + len(part)] = part.cast(self._arrow.float64(), safe=False).to_numpy(zero_copy_only=False)
            at += len(part)
        return values

    def whole_numbers(self, name: str) -> NDArray[np.int32] | None:
        """A column of small whole numbers, none of which is missing; None where it holds anything else."""
        if not self._arrow.types.is_integer(self._types[name]):
            return None
        values, at = np.empty(self.n, dtype=np.int32), 0
        for part in self._batches(name):
            if part.null_count:
                return None
            given = part.to_numpy(zero_copy_only=False)
            if len(given) and (given.min() < -(2**31) or given.max() >= 2**31):
                return None
            values[at : at + len(part)] = given
            at += len(part)
        return values

    def only(self, name: str) -> str | None:
        """The text that all rows of a column say, as far as the files' statistics tell; None where they do not."""
        said = set[Any]()
        for shard in self._shards:
            for number in range(shard.metadata.num_row_groups):
                group = shard.metadata.row_group(number)
                columns = (group.column(at) for at in range(group.num_columns))
                found = next((column for column in columns if self._is(column, name)), None)  # none of a list
                counts = None if found is None else found.statistics
                if counts is None or not (counts.has_min_max and counts.has_null_count) or counts.null_count:
                    return None
                if counts.min != counts.max:
                    return None
                said.add(counts.min)
        (text,) = said if len(said) == 1 else (None,)
        return text if isinstance(text, str) else None

    def mentions(self, name: str, words: str) -> bool:
        """Whether some text of a column holds these words."""
        from pyarrow import compute

        for part in self._batches(name):
            texts = part.dictionary if self._arrow.types.is_dictionary(part.type) else part
            if is_text(texts.type) and compute.any(compute.match_substring(texts, words)).as_py():
                return True
        return False

    def renamed(self, names: Mapping[str, str]) -> ParquetColumns:
        return ParquetColumns(self._shards, {here: own for own, here in names.items() if own in self.names})

    def at(self, row: int) -> str:
        """Where a row stands, for messages."""
        shard = int(np.searchsorted(self._ends, row, side="right"))
        return f"{self._shards[shard].name}, row {row - (int(self._ends[shard - 1]) if shard else 0)}"

    def part_of(self, rows: NDArray[np.int64]) -> NDArray[np.intp]:
        """The file that each row stands in."""
        return np.searchsorted(self._ends, rows, side="right")

    def _schema(self) -> Any:
        """The columns of all files, which must be the same."""
        first, schema = self._shards[0], None
        for shard in self._shards:
            with shard.opened() as opened:
                own = opened.schema_arrow
            refuse_repeated(own.names, shard.name)
            if schema is None:
                schema = own
                continue
            for one, other, here in ((schema, own, shard), (own, schema, first)):
                lacking = next((name for name in one.names if name not in other.names), None)
                if lacking is not None:
                    there = first if here is shard else shard
                    raise PoolFileError(
                        f"{here.name} has no column {lacking!r}, and {there.name} has one",
                        "the files of a folder are one table: write them alike, or keep them apart",
                    )
            for name in schema.names:
                ours, theirs = schema.field(name).type, own.field(name).type
                if _kind(ours, self._arrow) == "null":
                    schema = schema.set(schema.get_field_index(name), own.field(name))
                elif _kind(theirs, self._arrow) not in ("null", _kind(ours, self._arrow)):
                    raise PoolFileError(
                        f"the column {name!r} holds {theirs} in {shard.name} and {ours} in {first.name}",
                        "the files of a folder are one table: write them alike, or keep them apart",
                    )
        return schema

    def _refuse_large(self) -> None:
        """Raise if the files hold more than files of their size may."""
        where = self._shards[0].name if len(self._shards) == 1 else f"the folder of {self._shards[0].name}"
        size = sum(shard.size for shard in self._shards)
        files = [shard.metadata for shard in self._shards]
        ROWS.refuse(sum(file.num_rows for file in files), size, where, PoolFileError)
        CELLS.refuse(sum(file.num_rows * file.num_columns for file in files), size, where, PoolFileError)
        groups = [file.row_group(at) for file in files for at in range(file.num_row_groups)]
        UNPACKED.refuse(sum(group.total_byte_size for group in groups), size, where, PoolFileError)
        repeated = [at for at in range(files[0].num_columns) if files[0].schema.column(at).max_repetition_level]
        VALUES.refuse(
            sum(group.column(at).num_values for group in groups for at in repeated), size, where, PoolFileError
        )

    def _count_texts(self, name: str, part: Any, rows: NDArray[np.intp]) -> None:
        """Raise if a column's texts are more than those of a file of that size may be; each row counts once."""
        last, counted = self._counted.get(name, (-1, 0))
        fresh = int(np.searchsorted(rows, last, side="right"))
        if fresh < len(rows):
            counted += _text_bytes(part.slice(fresh), self._arrow)
            self._counted[name] = int(rows[-1]), counted
            size = sum(shard.size for shard in self._shards)
            TEXTS.refuse(counted, size, f"the column {name!r} of {self._shards[0].name}", PoolFileError)

    def _refuse_binary(self) -> None:
        """Raise where a column that is known by name holds bytes, which would be read as `b'18'`."""
        for name in (*PROBLEM, *OF_PROBLEM, *PATH, "key"):
            if "binary" in str(self._types.get(name)):
                raise PoolFileError(
                    f"the column {name!r} holds {self._types[name]} in {self._shards[0].name}", "write it as text"
                )

    def metadata_of(self, key: bytes) -> list[tuple[str, bytes | None]]:
        """What each file says of itself under a key, and its name."""
        return [(shard.name, (shard.metadata.metadata or {}).get(key)) for shard in self._shards]

    def _own(self, name: str) -> str:
        return self._own_names.get(name, name)

    def _here(self, names: Sequence[str]) -> list[str]:
        here = {own: name for name, own in self._own_names.items()}
        return [here.get(name, name) for name in names]

    def _is(self, column: Any, name: str) -> bool:
        return bool(column.path_in_schema == self._own(name))

    def _dictionaries(self, name: str, file: Any) -> list[str]:
        """The texts of a column, by the names of their places in a file, that are read as codes."""
        own, groups = self._own(name), [file.row_group(at) for at in range(file.num_row_groups)]
        places = [at for at in range(file.num_columns) if file.schema.column(at).path.split(".")[0] == own]
        return [
            file.schema.column(at).path
            for at in places
            if file.schema.column(at).physical_type == "BYTE_ARRAY"
            and file.schema.column(at).logical_type.type in _TEXTS
            and all(group.column(at).total_uncompressed_size < _MOST_CODED for group in groups)
        ]

    def _batches(self, name: str) -> Iterator[Any]:
        """A column in parts, in the order of rows."""
        for shard in self._shards:
            with shard.opened(self._dictionaries(name, shard.metadata)) as opened, reading(shard.name, self._arrow):
                for batch in opened.iter_batches(batch_size=_ROWS, columns=[self._own(name)], use_threads=False):
                    yield plain_form(batch.column(self._own(name)))

    def _by_group(self, rows: NDArray[np.intp]) -> Iterator[tuple[tuple[int, int], NDArray[np.intp]]]:
        """Some rows, ascending, by the file and the row group that they are in, and their places there."""
        first = 0
        for number, shard in enumerate(self._shards):
            for group in range(shard.metadata.num_row_groups):
                size = shard.metadata.row_group(group).num_rows
                low, high = np.searchsorted(rows, [first, first + size])
                if high > low:
                    yield (number, group), rows[low:high] - first
                first += size

    def _group(self, name: str, place: tuple[int, int]) -> Any:
        kept = self._kept.get(name)
        if kept is None or kept[0] != place:
            shard = self._shards[place[0]]
            with shard.opened(self._dictionaries(name, shard.metadata)) as opened, reading(shard.name, self._arrow):
                table = opened.read_row_group(place[1], columns=[self._own(name)], use_threads=False)
                kept = self._kept[name] = (place, plain_form(table.column(self._own(name))))
        return kept[1]


def _kind(kind: Any, arrow: Any) -> str:
    """What types of columns must have in common to be one column."""
    types = arrow.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if str(kind) in ("string", "large_string", "string_view"):
        return "text"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    return "list" if types.is_list(kind) or types.is_large_list(kind) else str(kind)


def _coded(part: Any, arrow: Any) -> tuple[NDArray[Any], list[tuple[Any, Any]]]:
    """A code per row, −1 for nothing, and behind each code what tells the value from others, and the value."""
    types = arrow.types
    if types.is_floating(part.type):  # by its bits: 0.0 and -0.0 are written otherwise
        floats = part.cast(arrow.float64()).to_numpy(zero_copy_only=False)
        bits, codes = np.unique(floats.view(np.int64), return_inverse=True)
        values = bits.view(np.float64).tolist()
        marks = ((float, mark) for mark in bits.tolist())  # 1.0 and the 1 of another file are written otherwise
        return codes, [(mark, None if value != value else value) for mark, value in zip(marks, values, strict=True)]
    coded = part if types.is_dictionary(part.type) else part.dictionary_encode()
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes, [(value, value) for value in coded.dictionary.to_pylist()]


def _changes(part: Any, arrow: Any) -> tuple[NDArray[np.int64], Any]:
    """The places of a part where it says something else than before, and what."""
    types = arrow.types
    if types.is_null(part.type):
        return np.zeros(1, dtype=np.int64), part[:1]
    if types.is_dictionary(part.type):
        codes = part.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    elif types.is_integer(part.type) and not part.null_count:
        codes = part.to_numpy(zero_copy_only=False)
    else:
        codes = part.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    starts = np.concatenate([[0], 1 + np.flatnonzero(codes[1:] != codes[:-1])]).astype(np.int64)
    firsts = part.take(arrow.array(starts))
    return starts, firsts


def _text_bytes(part: Any, arrow: Any) -> int:
    """The bytes of all texts of a part, each as often as it stands there."""
    from pyarrow import compute

    types, kind = arrow.types, part.type
    if isinstance(part, arrow.ChunkedArray):
        return sum(_text_bytes(chunk, arrow) for chunk in part.chunks)
    if types.is_dictionary(kind):
        if not is_text(kind.value_type):
            return 0
        return int(compute.sum(compute.binary_length(part.dictionary).take(part.indices)).as_py() or 0)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _text_bytes(part.flatten(), arrow)
    if types.is_struct(kind):
        return sum(_text_bytes(field, arrow) for field in part.flatten())
    if types.is_map(kind):
        return _text_bytes(part.keys, arrow) + _text_bytes(part.items, arrow)
    if types.is_fixed_size_binary(kind):
        return int(kind.byte_width) * len(part)
    return int(compute.sum(compute.binary_length(part)).as_py() or 0) if is_text(kind) else 0
