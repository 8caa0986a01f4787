"""Columns as a DataFrame of whichever library is there."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from demur.errors import DemurError, InvalidValue, MissingExtra

PACKAGES = {"pandas": "pandas", "polars": "polars", "arrow": "pyarrow"}


def frame_of(columns: Mapping[str, Any], library: str | None = None) -> Any:
    """A pandas DataFrame, or where pandas is not installed one of Polars, or an Arrow table; or the one asked for."""
    if library is None:
        library = next((name for name, package in PACKAGES.items() if find_spec(package) is not None), None)
        if library is None:
            raise MissingExtra("a table needs pandas, Polars or pyarrow, and none of them is installed", "parquet")
    if library not in PACKAGES:
        raise InvalidValue(f"a table comes as {', '.join(PACKAGES)}, not {library!r:.40}")
    try:
        made = import_module(PACKAGES[library])
    except ImportError:
        if library == "arrow":
            raise MissingExtra("an Arrow table needs pyarrow", "parquet") from None
        raise DemurError(f"{library} is not installed", f"install it: pip install {library}") from None
    plain = {name: column if library == "pandas" else _plain(column) for name, column in columns.items()}
    return made.table(plain) if library == "arrow" else made.DataFrame(plain)


def _plain(column: Any) -> Any:
    """Arrays of Python's objects as lists, whose types other libraries see."""
    return column.tolist() if getattr(getattr(column, "dtype", None), "kind", "") == "O" else column
