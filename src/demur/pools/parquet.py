"""Pools as a table of paths, one row each, in Parquet: for data frames and other tools, and for very many pools.

The files of a folder are one table. What is known of how pools came to be is metadata of each file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from demur.errors import PoolFileError
from demur.files.strict_json import NotJson, parse
from demur.pools.answer_keys import KEY
from demur.pools.frame_rows import DIGEST, PATH, PROBLEM, SCORE, score_names, table_of, writable
from demur.pools.frames import FileKeys, FramePools, common_keys, renamed
from demur.pools.parquet_columns import ParquetColumns
from demur.pools.provenance import PoolFile, Provenance
from demur.pools.shards import libraries, shards_of
from demur.pools.targets import whole_file, writing
from demur.records import Pool

_METADATA = b"demur"
_ROWS = 1 << 17
"""Rows of a row group, or a few more: pools are never split."""


def write_parquet(
    pools: Iterable[Pool],
    target: str | os.PathLike[str],
    provenance: Provenance | None = None,
    scores: Sequence[str] | None = None,
) -> None:
    """One row per path; problem fields repeat, scores are columns `score.NAME`, provenance is metadata.

    Pools are written as they come, a row group at a time. `scores` names the columns of scores; without it they are
    those of all pools, or where pools come one by one those of the first row group.
    """
    groups: Iterator[list[Pool]] = _in_groups(pools)
    if scores is None and isinstance(pools, Sequence):
        scores = score_names(pools)
    elif scores is None:
        first = next(groups, [])
        scores, groups = score_names(first), chain([first], groups)
    keyed = provenance is not None and bool(provenance.keys)
    write_tables((_table(group, scores, keyed=keyed) for group in groups), target, _schema(scores, provenance))


def write_tables(tables: Iterable[Mapping[str, Sequence[Any]]], target: str | os.PathLike[str], schema: Any) -> None:
    """Write tables, columns by name, as the row groups of one file, which appears only when it is whole."""
    arrow, parquet = libraries()
    with (
        writing(target),
        whole_file(target) as stream,
        parquet.ParquetWriter(stream, schema, compression="zstd") as writer,
    ):
        for columns in tables:
            writer.write_table(arrow.table(columns, schema=schema))


def read_parquet(source: str | os.PathLike[str], columns: Mapping[str, str] | None = None) -> PoolFile:
    """Pools from a file or a folder of them; `id` and `answer` are required, the rest may be missing.

    Columns are read when they are needed.
    """
    table = ParquetColumns(shards_of(source))
    known, keys_by_file = _provenance(table)
    pools = FramePools(renamed(table, columns or {}, str(source)), str(source), keys_by_file=keys_by_file)
    return PoolFile(pools, known)


def provenance_of(source: str | os.PathLike[str]) -> Provenance:
    """What files say of how their pools came to be, without reading them."""
    return _provenance(ParquetColumns(shards_of(source)))[0]


def missing_scores(source: str | os.PathLike[str], name: str) -> int:
    """How many paths of a file lack a score."""
    table = ParquetColumns(shards_of(source))
    values = table.numbers(SCORE + name) if SCORE + name in table.names else None
    return table.n if values is None else int(np.isnan(values).sum())


def _provenance(table: ParquetColumns) -> tuple[Provenance, list[FileKeys]]:
    """What the files say of how their pools came to be, which must be the same, and of the keys in each."""
    (first, text), *others = table.metadata_of(_METADATA)
    told = {text: _read_metadata(text, first)}
    keys_by_file: list[FileKeys] = [(first, told[text].keys)]
    for name, other in others:
        if other not in told:
            told[other] = _read_metadata(other, name)
        if replace(told[other], keys={}, left_out=0) != replace(told[text], keys={}, left_out=0):
            raise PoolFileError(f"{name} tells of other pools than {first}: of another run", "keep them apart")
        keys_by_file.append((name, told[other].keys))
    left_out = told[text].left_out + sum(told[other].left_out for _, other in others)
    return replace(told[text], keys=common_keys(keys_by_file), left_out=left_out), keys_by_file


def _read_metadata(text: bytes | None, file: str) -> Provenance:
    if text is None:
        return Provenance()
    where = f"the metadata of {file}"
    try:
        return Provenance.of(parse(text.decode()), where)
    except (NotJson, UnicodeDecodeError) as error:
        raise PoolFileError(f"{where} cannot be read: {error}") from None


def _in_groups(pools: Iterable[Pool]) -> Iterator[list[Pool]]:
    """Pools together that make a row group."""
    group, rows = list[Pool](), 0
    for pool in pools:
        group.append(pool)
        rows += len(pool.paths)
        if rows >= _ROWS:
            yield group
            group, rows = [], 0
    if group:
        yield group


def _table(pools: Sequence[Pool], scores: Sequence[str], *, keyed: bool) -> dict[str, list[Any]]:
    unknown = set(score_names(pools)).difference(scores)
    if unknown:
        raise PoolFileError(
            f"a later pool has the score {min(unknown)!r}, which the first ones lack", "name all scores as {scores}"
        )
    keys = [writable(path.extra.get(KEY)) for pool in pools for path in pool.paths] if keyed else []
    columns = table_of([_without_keys(pool) for pool in pools] if keyed else pools, scores)
    columns[DIGEST] = [digest for pool in pools for digest in [pool.problem.digest] * len(pool.paths)]
    return columns | ({KEY: keys} if keyed else {})


def _without_keys(pool: Pool) -> Pool:
    extras = ({name: value for name, value in path.extra.items() if name != KEY} for path in pool.paths)
    paths = (replace(path, extra=extra) for path, extra in zip(pool.paths, extras, strict=True))
    return replace(pool, paths=tuple(paths))


def _schema(scores: Sequence[str], provenance: Provenance | None) -> Any:
    arrow, _ = libraries()
    types = {"path": arrow.int32(), "has_answer": arrow.bool_()}
    names = (*PROBLEM, DIGEST, *PATH, *((KEY,) if provenance is not None and provenance.keys else ()))
    columns = [(name, types.get(name, arrow.string())) for name in names]
    columns += [(SCORE + name, arrow.float64()) for name in scores]
    known = None if provenance is None else provenance.text()
    return arrow.schema(columns, metadata=None if known is None else {_METADATA: known.encode()})
