"""Pools as a table of paths, one row each, in Parquet: for data frames and other tools."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from demur.errors import MissingExtra, PoolFileError
from demur.files.atomic import atomic_file
from demur.files.strict_json import NotJson, parse
from demur.pools.columns import refuse_repeated
from demur.pools.frames import SCORE, pools_of_frame, table_of
from demur.pools.provenance import PoolFile, Provenance
from demur.records import Pool

_METADATA = b"demur"


def write_parquet(pools: Sequence[Pool], target: str | os.PathLike[str], provenance: Provenance | None = None) -> None:
    """One row per path; problem fields repeat, scores are columns `score.NAME`, provenance is metadata."""
    arrow, parquet = _libraries()
    columns = table_of(pools)
    names = [name for name in columns if name.startswith(SCORE)]
    types = {"path": arrow.int32(), "has_answer": arrow.bool_(), **dict.fromkeys(names, arrow.float64())}
    known = None if provenance is None else provenance.text()
    metadata = None if known is None else {_METADATA: known.encode()}
    schema = arrow.schema([(name, types.get(name, arrow.string())) for name in columns], metadata=metadata)
    try:
        with atomic_file(target) as unfinished:
            parquet.write_table(arrow.table(columns, schema=schema), unfinished, compression="zstd")
    except (OSError, arrow.ArrowException) as error:
        raise PoolFileError(f"cannot write {target}: {error}") from None


def read_parquet(source: str | os.PathLike[str], columns: Mapping[str, str] | None = None) -> PoolFile:
    """Pools from a table of paths; `id` and `answer` are required, the rest may be missing."""
    arrow, parquet = _libraries()
    if Path(source).exists() and not Path(source).is_file():
        raise PoolFileError(f"{source} cannot be read as Parquet: it is not a file")
    try:
        schema = parquet.read_schema(source)
        refuse_repeated(schema.names, str(source))
        table = parquet.read_table(source)
    except FileNotFoundError:
        raise PoolFileError(f"there is no file {source}") from None
    except (OSError, arrow.ArrowException, ValueError, OverflowError) as error:
        raise PoolFileError(f"{source} cannot be read as Parquet: {' '.join(str(error).split())}") from None
    known = _provenance(schema.metadata or {}, f"the metadata of {source}")
    return PoolFile(pools_of_frame(table, columns, str(source)), known)


def provenance_of(source: str | os.PathLike[str]) -> Provenance:
    """What a file says of how its pools came to be, without reading them."""
    arrow, parquet = _libraries()
    try:
        schema = parquet.read_schema(source)
    except (OSError, arrow.ArrowException, ValueError) as error:
        raise PoolFileError(f"{source} cannot be read as Parquet: {' '.join(str(error).split())}") from None
    return _provenance(schema.metadata or {}, f"the metadata of {source}")


def missing_scores(source: str | os.PathLike[str], name: str) -> int:
    """How many paths of a file lack a score, by what the file says of its columns where it does."""
    arrow, parquet = _libraries()
    column = SCORE + name
    try:
        with parquet.ParquetFile(source) as file:
            rows, names = file.metadata.num_rows, file.schema_arrow.names
            return rows if column not in names else int(file.read([column]).column(column).null_count)
    except (OSError, arrow.ArrowException, ValueError) as error:
        raise PoolFileError(f"{source} cannot be read as Parquet: {' '.join(str(error).split())}") from None


def _provenance(metadata: Mapping[bytes, bytes], where: str) -> Provenance:
    if _METADATA not in metadata:
        return Provenance()
    try:
        return Provenance.of(parse(metadata[_METADATA].decode()), where)
    except (NotJson, UnicodeDecodeError) as error:
        raise PoolFileError(f"{where} cannot be read: {error}") from None


def _libraries() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Parquet needs pyarrow", "parquet") from None
    return pyarrow, pyarrow.parquet
