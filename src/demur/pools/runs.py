"""A column of a table in runs: where it changes, and what it says from there on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.records import is_nothing
from demur.voting.text_columns import TextColumn


@dataclass(frozen=True, eq=False)
class Runs:
    """Equal rows that follow one another are one run."""

    starts: NDArray[np.int64]
    """The first row of each run."""
    codes: NDArray[Any]
    """What each says: −1 for nothing."""
    values: Sequence[Any]
    """The value behind each code, numbered as they come."""
    n: int
    """Rows of the table."""

    @classmethod
    def of_codes(cls, codes: NDArray[Any], values: Sequence[Any]) -> Runs:
        """From a code per row."""
        if not len(codes):
            return cls(np.zeros(0, dtype=np.int64), codes, values, 0)
        starts = np.concatenate([[0], 1 + np.flatnonzero(codes[1:] != codes[:-1])]).astype(np.int64)
        return cls(starts, codes[starts], values, len(codes))

    @classmethod
    def of_parts(cls, starts: NDArray[np.int64], parts: Sequence[Any], n: int) -> Runs:
        """From the rows where something changes, and what they say, in Arrow arrays that may differ in type."""
        import pyarrow
        from pyarrow import types

        kinds = {part.type for part in parts if not types.is_null(part.type)}
        if not kinds:
            return cls(starts, np.full(len(starts), -1, dtype=np.int32), [], n)
        if all(map(is_text, kinds)):
            kinds = {pyarrow.large_string()}  # the form that holds more than 2 GB
        elif all(map(types.is_signed_integer, kinds)):
            kinds = {pyarrow.int64()}
        if len(kinds) > 1:  # whole numbers in one file and fractions in another: 1 and 1.0 are written otherwise
            place: dict[tuple[type, Any], int] = {}
            cells = (cell for part in parts for cell in part.to_pylist())
            marks = [-1 if is_nothing(cell) else place.setdefault((type(cell), cell), len(place)) for cell in cells]
            return cls(starts, np.array(marks, dtype=np.int32), [cell for _, cell in place], n)
        (kind,) = kinds
        coded = pyarrow.concat_arrays([part.cast(kind) for part in parts]).dictionary_encode()
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        if is_text(kind):
            return cls(starts, codes, text_column(coded.dictionary), n)
        values = coded.dictionary.to_pylist()
        nothing = [at for at, value in enumerate(values) if value != value]
        return cls(starts, np.where(np.isin(codes, nothing), -1, codes) if nothing else codes, values, n)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many rows each has."""
        return np.diff(self.starts, append=self.n)

    def at(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """What some rows say, as codes."""
        if np.array_equal(rows, self.starts):
            return self.codes
        return np.asarray(self.codes[np.searchsorted(self.starts, rows, side="right") - 1])


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow's is that of texts."""
    return str(kind) in ("string", "large_string", "string_view")


def text_column(array: Any) -> TextColumn:
    """An Arrow array of texts, without a copy where it can be."""
    import pyarrow

    array = array.cast(pyarrow.large_string())
    _, offsets, data = array.buffers()
    starts = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    held = np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    known = None if not array.null_count else np.asarray(array.is_valid().to_numpy(zero_copy_only=False))
    return TextColumn(held, starts, known)
