"""Pools as a table of paths, one row each, in Parquet: for data frames and other tools."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from demur.answers.relations import as_written
from demur.errors import MissingExtra, PoolFileError
from demur.files.atomic import atomic_file
from demur.files.strict_json import NotJson, parse
from demur.pools.frames import PATH, PROBLEM, SCORE, pools_of_rows, refuse_repeated
from demur.pools.provenance import PoolFile, Provenance
from demur.records import Pool

_METADATA = b"demur"


def write_parquet(pools: Sequence[Pool], target: str | os.PathLike[str], provenance: Provenance | None = None) -> None:
    """One row per path; problem fields repeat, scores are columns `score.NAME`, provenance is metadata."""
    arrow, parquet = _libraries()
    names = sorted({name for pool in pools for path in pool.paths for name in path.scores})
    columns: dict[str, list[Any]] = {name: [] for name in (*PROBLEM, *PATH, *(SCORE + name for name in names))}
    for pool in pools:
        problem, gold, extra = pool.problem, json.dumps(list(pool.problem.gold)), json.dumps(dict(pool.problem.extra))
        shared = (problem.id, problem.question, gold, problem.cluster, problem.group, extra)
        for position, path in enumerate(pool.paths):
            answer = as_written(path.answer)
            own = (position, answer, path.has_answer_field, path.text, json.dumps(dict(path.extra)))
            row = (*shared, *own, *map(path.scores.get, names))
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value.encode("utf-8", "replace").decode() if isinstance(value, str) else value)
    types = {"path": arrow.int32(), "has_answer": arrow.bool_(), **{SCORE + name: arrow.float64() for name in names}}
    known = None if provenance is None else provenance.text()
    metadata = None if known is None else {_METADATA: known.encode()}
    schema = arrow.schema([(name, types.get(name, arrow.string())) for name in columns], metadata=metadata)
    try:
        with atomic_file(target) as unfinished:
            parquet.write_table(arrow.table(columns, schema=schema), unfinished, compression="zstd")
    except (OSError, arrow.ArrowException) as error:
        raise PoolFileError(f"cannot write {target}: {error}") from None


def read_parquet(source: str | os.PathLike[str]) -> PoolFile:
    """Pools from a table of paths; `id` and `answer` are required, the rest may be missing."""
    arrow, parquet = _libraries()
    if Path(source).exists() and not Path(source).is_file():
        raise PoolFileError(f"{source} cannot be read as Parquet: it is not a file")
    try:
        schema = parquet.read_schema(source)
        refuse_repeated(schema.names, str(source))
        rows = parquet.read_table(source).to_pylist()
    except FileNotFoundError:
        raise PoolFileError(f"there is no file {source}") from None
    except (OSError, arrow.ArrowException, ValueError, OverflowError) as error:
        raise PoolFileError(f"{source} cannot be read as Parquet: {' '.join(str(error).split())}") from None
    return PoolFile(pools_of_rows(rows, str(source)), _provenance(schema.metadata or {}, f"the metadata of {source}"))


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
