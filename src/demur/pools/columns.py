"""The columns of a table of paths, whatever holds it: pandas, Polars, Arrow, lists, or rows as dictionaries.

A table that speaks Arrow's C stream interface (`__arrow_c_stream__`) is read through it where pyarrow is installed, so
that a million rows cost no object each. Without pyarrow, or where a column mixes types, its cells are read as lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue, PoolFileError
from demur.pools.runs import Runs, is_text
from demur.records import is_nothing

Codes = NDArray[Any]


class Columns(Protocol):
    """A table, column by column. A cell that holds nothing, in whatever way, is None."""

    names: list[str]
    n: int
    in_memory: bool
    """Whether columns are there, and not read when somebody asks for them."""

    def cells(self, name: str) -> list[Any]:
        """The values of a column."""

    def encoded(self, name: str, *, in_runs: bool = False) -> tuple[Codes, list[Any]] | None:
        """A code per row, −1 for nothing, and the value behind each, numbered as they come; None where they cannot be
        told apart so: lists and objects. `in_runs` says that most rows repeat the one before."""

    def numbers(self, name: str) -> NDArray[np.float64] | None:
        """A column of numbers, NaN for nothing; None where it holds anything else."""

    def renamed(self, names: Mapping[str, str]) -> Columns:
        """The same under other names."""

    def cells_at(self, name: str, rows: NDArray[np.intp]) -> list[Any]:
        """The values of a column in some rows, ascending."""

    def runs(self, name: str) -> Runs | None:
        """A column whose rows mostly repeat the one before; None where `encoded` is."""

    def whole_numbers(self, name: str) -> NDArray[np.int32] | None:
        """A column of small whole numbers, none of which is missing; None where it holds anything else."""

    def only(self, name: str) -> str | None:
        """The text that all rows of a column say, where that is known without a look at them."""

    def mentions(self, name: str, words: str) -> bool:
        """Whether some text of a column holds these words."""

    def at(self, row: int) -> str | None:
        """Where a row stands, for messages; None where the table has no parts."""

    def part_of(self, rows: NDArray[np.int64]) -> NDArray[np.intp]:
        """The part of the table that each row stands in: tables of several files have several."""


class _InMemory:
    """What columns have alike that lie in memory."""

    in_memory = True

    def cells_at(self: Columns, name: str, rows: NDArray[np.intp]) -> list[Any]:
        cells = self.cells(name)
        return [cells[row] for row in rows.tolist()]

    def runs(self: Columns, name: str) -> Runs | None:
        encoded = self.encoded(name, in_runs=True)
        return None if encoded is None else Runs.of_codes(*encoded)

    def whole_numbers(self, name: str) -> NDArray[np.int32] | None:
        return None

    def only(self, name: str) -> str | None:
        return None

    def mentions(self: Columns, name: str, words: str) -> bool:
        return any(isinstance(cell, str) and words in cell for cell in self.cells(name))

    def at(self, row: int) -> str | None:
        return None

    def part_of(self, rows: NDArray[np.int64]) -> NDArray[np.intp]:
        return np.zeros(len(rows), dtype=np.intp)


class ListColumns(_InMemory):
    """Columns as lists of Python's own values."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self._columns = {name: [_cell(value) for value in column] for name, column in columns.items()}
        self.names = list(self._columns)
        self.n = len(next(iter(self._columns.values()), ()))

    def cells(self, name: str) -> list[Any]:
        return self._columns[name]

    def encoded(self, name: str, *, in_runs: bool = False) -> tuple[Codes, list[Any]] | None:
        code: dict[Any, int] = {}
        values: list[Any] = []
        codes = np.full(self.n, -1, dtype=np.intp)
        for row, value in enumerate(self._columns[name]):
            if value is None:
                continue
            # 1, 1.0 and True are equal in Python and three answers on paper, and so are 0.0 and -0.0.
            mark = (type(value), repr(value) if isinstance(value, float) else value)
            try:
                codes[row] = code.setdefault(mark, len(code))
            except TypeError:
                return None
            if len(code) > len(values):
                values.append(value)
        return codes, values

    def numbers(self, name: str) -> NDArray[np.float64] | None:
        column = self._columns[name]
        if not {type(value) for value in column} <= {int, float, type(None)}:
            return None
        try:
            return np.array([np.nan if value is None else value for value in column], dtype=np.float64)
        except OverflowError:  # a whole number beyond any float
            return None

    def renamed(self, names: Mapping[str, str]) -> Columns:
        return ListColumns({names.get(name, name): column for name, column in self._columns.items()})


class ArrowColumns(_InMemory):
    """Columns of an Arrow table."""

    def __init__(self, table: Any) -> None:
        self._table, self.names, self.n = table, list(table.column_names), table.num_rows

    def cells(self, name: str) -> list[Any]:
        return cells_of(self._column(name))

    def encoded(self, name: str, *, in_runs: bool = False) -> tuple[Codes, list[Any]] | None:
        import pyarrow
        from pyarrow import types

        column = self._column(name)
        kind = column.type
        if types.is_nested(kind):
            return None
        if types.is_null(kind):
            return np.full(self.n, -1, dtype=np.intp), []
        floating = types.is_floating(kind)
        if floating:  # by its bits: 0.0 and -0.0 are written otherwise
            floats = column.cast(pyarrow.float64()).to_numpy()
            codes, bits = _factorised(pyarrow.chunked_array([floats.view(np.int64)]), in_runs=in_runs)
            values = [_cell(value) for value in np.array(bits, dtype=np.int64).view(np.float64).tolist()]
        else:
            codes, values = _factorised(column, in_runs=in_runs)
        nothing = [place for place, value in enumerate(values) if value is None] if floating else []
        if nothing:
            codes = np.where(np.isin(codes, nothing), -1, codes)
        return codes, values

    def numbers(self, name: str) -> NDArray[np.float64] | None:
        import pyarrow
        from pyarrow import types

        column = self._column(name)
        if not (types.is_integer(column.type) or types.is_floating(column.type)):
            return None
        return np.asarray(column.cast(pyarrow.float64(), safe=False).to_numpy(), dtype=np.float64)

    def renamed(self, names: Mapping[str, str]) -> Columns:
        return ArrowColumns(self._table.rename_columns([names.get(name, name) for name in self.names]))

    def _column(self, name: str) -> Any:
        return plain_form(self._table[name], keep_dictionaries=False)


def plain_form(column: Any, *, keep_dictionaries: bool = True) -> Any:
    """A column without categories, and with texts in a form that every release of pyarrow works on."""
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind) and (not keep_dictionaries or not is_text(kind.value_type)):
        values = pyarrow.large_string() if str(kind.value_type) == "string_view" else kind.value_type
        chunks = column.chunks if isinstance(column, pyarrow.ChunkedArray) else [column]
        taken = [chunk.dictionary.cast(values).take(chunk.indices) for chunk in chunks]
        column = pyarrow.chunked_array(taken, values) if isinstance(column, pyarrow.ChunkedArray) else taken[0]
    if types.is_decimal(column.type):
        column = _of_decimals(column)
    if str(column.type) == "string_view":
        column = column.cast(pyarrow.large_string())
    return column


def _of_decimals(column: Any) -> Any:
    """Whole numbers, or the floats that are nearest: a cast of Arrow's makes 0.30000000000000004 of 0.3."""
    import pyarrow

    texts = column.cast(pyarrow.string())
    if column.type.scale > 0:
        return texts.cast(pyarrow.float64())
    try:
        return column.cast(pyarrow.int64())
    except pyarrow.ArrowInvalid:  # beyond 64 bits: no float tells two such ids apart
        return texts


def cells_of(column: Any) -> list[Any]:
    """The values of an Arrow column as Python has them; None for nothing. A text of many rows is one object."""
    import pyarrow

    if isinstance(column, pyarrow.ChunkedArray):
        return [cell for chunk in column.chunks for cell in cells_of(chunk)]
    if isinstance(column, pyarrow.DictionaryArray):
        values = [*map(_cell, column.dictionary.to_pylist()), None]
        return [values[code] for code in column.indices.fill_null(-1).to_pylist()]
    return [_cell(value) for value in column.to_pylist()]


def _factorised(column: Any, *, in_runs: bool) -> tuple[Codes, list[Any]]:
    """Codes and values of a column of Arrow's; of one in runs, only the first of each is looked up."""
    import pyarrow
    from pyarrow import compute

    whole = column.combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pyarrow.ChunkedArray) else whole
    lengths = None
    if in_runs and len(whole) < 2**31:
        runs = compute.run_end_encode(whole)
        whole, lengths = runs.values, np.diff(runs.run_ends.to_numpy(), prepend=0)
    coded = whole.dictionary_encode()
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
    return codes if lengths is None else np.repeat(codes, lengths), coded.dictionary.to_pylist()


def columns_of(frame: Any, where: str = "the table") -> Columns:
    """The columns of a DataFrame, an Arrow table, a dictionary of columns or rows as dictionaries."""
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):  # Polars, before it is computed
        frame = frame.collect()
    names = getattr(frame, "column_names", None) or getattr(frame, "columns", None)
    if names is not None and not isinstance(frame, Mapping):
        refuse_repeated(names, where)
    if hasattr(frame, "__arrow_c_stream__") and find_spec("pyarrow") is not None:
        columns = _through_arrow(frame)
        if columns is not None:
            return columns
    for method, arguments in (("to_pydict", {}), ("to_dict", {"orient": "list"}), ("to_dict", {"as_series": False})):
        if hasattr(frame, method):
            try:
                lists = getattr(frame, method)(**arguments)
            except TypeError:  # another library's method of that name
                continue
            return ListColumns({str(name): column for name, column in lists.items()})
    if isinstance(frame, Mapping) and frame and all(_is_column(column) for column in frame.values()):
        if len({len(column) for column in frame.values()}) > 1:
            told = ", ".join(f"{name!r} {len(column)}" for name, column in frame.items())
            raise PoolFileError(f"{where} has columns of different length: {told}")
        return ListColumns({str(name): list(column) for name, column in frame.items()})
    return _of_rows(frame, where)


def refuse_repeated(names: Iterable[Any], where: str) -> None:
    """Raise if two columns have one name: a row would show the last of them."""
    seen: set[str] = set()
    for name in map(str, names):
        if name in seen:
            raise PoolFileError(f"{where} has two columns {name!r}; keep one of the two")
        seen.add(name)


def _through_arrow(frame: Any) -> Columns | None:
    """None where a column mixes types, which Arrow has no column for."""
    import pyarrow

    try:
        if isinstance(frame, pyarrow.Table):
            table = frame
        elif hasattr(frame, "iloc"):  # of pandas, whose index is no column, and whose NaN is nothing
            table = pyarrow.Table.from_pandas(frame.rename(columns=str), preserve_index=False)
        else:
            table = pyarrow.RecordBatchReader.from_stream(frame).read_all()
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return ArrowColumns(table)


def _of_rows(frame: Any, where: str) -> Columns:
    rows = list(frame) if isinstance(frame, Iterable) and not isinstance(frame, (str, bytes, Mapping)) else [frame]
    if not all(isinstance(row, Mapping) for row in rows):
        raise InvalidValue(f"expected a DataFrame, an Arrow table or rows as dictionaries, got {type(frame).__name__}")
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    for name in ("id", "answer"):
        lacking = next((number for number, row in enumerate(rows) if name not in row), None)
        if name in names and lacking is not None:
            raise PoolFileError(f"{where}, row {lacking} has no {name!r}; expected one row per path")
    return ListColumns({name: [row.get(name) for row in rows] for name in names})


def _is_column(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1)


def _cell(value: Any) -> Any:
    """A value as Python has it; None for nothing."""
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    return None if is_nothing(value) else value
