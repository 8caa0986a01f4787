"""Files of pools, whatever their kind: JSON lines (plain or gzipped), Parquet, or CSV with one row per path; and the
files of `pools.neighbours`.

What a file holds and what it is called must agree; under any other name a file is told by its first bytes.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from demur.errors import InvalidValue, PoolFileError
from demur.pools.delimited import read_csv, write_csv
from demur.pools.frames import FramePools
from demur.pools.jsonl import read_jsonl
from demur.pools.jsonl import write_pools as write_jsonl
from demur.pools.neighbours.kinds import neighbour_of, reader_of
from demur.pools.parquet import read_parquet, write_parquet
from demur.pools.provenance import PoolFile, Provenance
from demur.pools.shards import is_remote
from demur.pools.source import PoolSource
from demur.records import Pool

JSONL, PARQUET, CSV = "JSON lines", "Parquet", "CSV"
_ENDINGS = {
    (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz"): JSONL,
    (".parquet", ".pq"): PARQUET,
    (".csv", ".csv.gz", ".tsv", ".tsv.gz"): CSV,
}
_HEAD = 4096
WRITTEN = (".jsonl", ".jsonl.gz", ".parquet")
FLAGS = "score_flags"
"""A path's field that says which of its scores are not quite what they should be: {"judge": "floor"}."""


def source_of_file(path: str | os.PathLike[str], columns: Mapping[str, str] | None = None) -> PoolSource:
    """The pools of a file, with what it says of how they came to be; `columns`, what a table's own names mean."""
    read = _read(path, columns or {})
    known = read.provenance
    flags = flag_counts(read.pools)
    return PoolSource(read.pools, known.description, known.scorers, flags, known.left_out, keys=known.keys)


def write_pools(
    source: PoolSource, target: str | os.PathLike[str], pools: Callable[[], Iterable[Pool]] | None = None
) -> None:
    """Write pools in the kind that the name ends in, with what is known of how they came to be.

    `pools` gives those of the source changed, one by one, as they are written.
    """
    path, known = Path(target), Provenance(source.description, source.scorers, source.keys, source.left_out)
    kind = kind_named(path)
    given = source.pools if pools is None else pools()
    if not path.name:
        raise InvalidValue(f"{str(target)!r} is not a file name")
    if kind is None:
        raise InvalidValue(f"{target} is named like no kind of pool file", f"name it {', '.join(WRITTEN)} or .csv")
    if is_remote(target) and kind != PARQUET:
        raise InvalidValue(f"{target} is named like {kind}, and only Parquet is written there", "name it .parquet")
    if kind == PARQUET:
        write_parquet(given, target if is_remote(target) else path, known, source.score_names)
    elif kind == CSV:
        write_csv(list(given), path, replace(known, keys={}))
    else:
        write_jsonl(given, path, replace(known, keys={}))


def kind_named(path: Path) -> str | None:
    """The kind that a name says; None where it says none."""
    return next((kind for endings, kind in _ENDINGS.items() if path.name.lower().endswith(endings)), None)


def flag_of(fields: object, name: str) -> str | None:
    """Why the score of a path is not quite what it should be, as far as the path's fields say."""
    flags = fields.get(FLAGS) if isinstance(fields, dict) else None
    flag = flags.get(name) if isinstance(flags, dict) else None
    return flag if isinstance(flag, str) else None


def _read(place: str | os.PathLike[str], columns: Mapping[str, str]) -> PoolFile:
    path = Path(place)
    if is_remote(place):
        if kind_named(path) not in (None, PARQUET):
            raise InvalidValue(f"{place} is named like {kind_named(path)}, and only Parquet is read from there")
        return read_parquet(place, columns)
    if path.is_dir():
        return read_parquet(path, columns)
    head = _head(path)
    neighbour = None if head is None else neighbour_of(path, head)
    if neighbour is not None:
        if columns:
            raise InvalidValue(f"{path} is {neighbour}, which has no columns of its own", "leave {columns} out")
        return reader_of(neighbour)(path)
    named, held = kind_named(path), None if head is None else _kind_held(head)
    if held is not None and named not in (None, held):
        ending = next(endings[0] for endings, kind in _ENDINGS.items() if kind == held)
        raise PoolFileError(f"{path} is named like {named} and holds {held}", f"give it a name that ends in {ending}")
    kind = named or held or JSONL
    if kind == PARQUET:
        return read_parquet(path, columns)
    if kind == CSV:
        return read_csv(path, columns)
    if columns:
        raise InvalidValue(f"{path} is read as JSON lines, which have no columns", "leave {columns} out")
    return read_jsonl(path)


def neighbour_file(path: Path) -> str | None:
    """Which other program wrote a file, as far as its first bytes say."""
    head = _head(path)
    return None if head is None else neighbour_of(path, head)


def _head(path: Path) -> bytes | None:
    """The first bytes of a file, unpacked; None of a pipe, which can be read once only."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
        if head.startswith(b"\x1f\x8b"):
            with gzip.open(path) as packed:
                return packed.read(_HEAD)
    except (OSError, EOFError, ValueError, zlib.error):
        return None  # the reader says what is the matter
    return head


def _kind_held(head: bytes) -> str | None:
    """What the first bytes of a file say, as far as they do."""
    if head.startswith(b"PAR1"):
        return PARQUET
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        return JSONL
    columns = {name.strip(b' "') for name in text.split(b"\n", 1)[0].strip().split(b",")}
    return CSV if {b"id", b"answer"} <= columns else None


def flag_counts(pools: Sequence[Pool]) -> Mapping[str, Mapping[str, int]]:
    """How many values of each score are flagged, by flag; of a table, when somebody asks."""
    return _FlagsOfTable(pools) if isinstance(pools, FramePools) else _count_flags(pools)


class _FlagsOfTable(Mapping[str, Mapping[str, int]]):
    """Counts that need a look at the further fields of every path."""

    def __init__(self, pools: FramePools) -> None:
        self._pools = pools

    @cached_property
    def _counts(self) -> dict[str, dict[str, int]]:
        names = self._pools.columns.names
        if FLAGS in names:
            return _count_flags(self._pools.without_texts())
        if "path_extra" not in names or self._pools.columns.only("path_extra") == "{}":
            return {}
        if not self._pools.columns.mentions("path_extra", FLAGS):
            return {}
        return _count_flags(self._pools.without_texts())

    def __getitem__(self, name: str) -> Mapping[str, int]:
        return self._counts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)


def _count_flags(pools: Iterable[Pool]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {}
    for path in (path for pool in pools for path in pool.paths if FLAGS in path.extra):
        for name in path.scores:
            if (flag := flag_of(path.extra, name)) is not None:
                counts.setdefault(name, Counter())[flag] += 1
    return {name: dict(flags) for name, flags in counts.items()}
