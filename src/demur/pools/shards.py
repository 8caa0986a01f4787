"""Where tables of pools lie: a Parquet file, or a folder of them, here or on a filesystem that Arrow knows (`s3://…`).

The files of a folder are one table, in the order of their names: they must have the same columns, and tell of the same
run. Names that begin with `.` or `_` are not looked at: unfinished files, and what other programs leave there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from demur.errors import MissingExtra, PoolFileError

ENDINGS = (".parquet", ".pq")
_OTHERS = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz", ".csv", ".csv.gz", ".tsv", ".tsv.gz")
_REMOTE = re.compile(r"(s3|gs|gcs|abfss?|hdfs|viewfs|file)://", re.IGNORECASE)
_ENDPOINT = "AWS_ENDPOINT_URL"
_DAMAGED = "write it again, or move it out of the folder"


def is_remote(place: str | os.PathLike[str]) -> bool:
    """Whether a place is an address on a filesystem that Arrow knows."""
    return isinstance(place, str) and _REMOTE.match(place) is not None


@dataclass
class Shard:
    """One Parquet file."""

    name: str
    """As messages name it."""
    path: str
    filesystem: Any = field(repr=False)
    stamp: tuple[Any, ...] = ()
    """Its size and when it was written, so that a change is noticed."""
    metadata: Any = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """In bytes."""
        return int(self.stamp[0])

    @property
    def base_name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    def opened(self, as_dictionaries: Sequence[str] = ()) -> Any:
        """The file, to be read; its footer is read once."""
        arrow, parquet = libraries()
        with reading(self.name, arrow):
            if _stamp(self.filesystem.get_file_info(self.path)) != self.stamp:
                raise PoolFileError(f"{self.name} was changed while it was read", "run the command again")
            source = self.filesystem.open_input_file(self.path)
            opened = parquet.ParquetFile(source, metadata=self.metadata, read_dictionary=list(as_dictionaries))
            self.metadata = opened.metadata
            return opened


def shards_of(place: str | os.PathLike[str]) -> list[Shard]:
    """The Parquet files at a place, in the order of their names; an error where there are none."""
    arrow, _ = libraries()
    told = os.fspath(place)
    with reading(told, arrow):
        filesystem, path = located(place)
        info = filesystem.get_file_info(path)
    if info.is_file:
        return [Shard(told, path, filesystem, _stamp(info))]
    if info.type == arrow.fs.FileType.NotFound:
        raise PoolFileError(f"there is no file {told}")
    if info.type != arrow.fs.FileType.Directory:
        raise PoolFileError(f"{told} cannot be read as Parquet: it is not a file")
    with reading(told, arrow):
        entries = entries_of(filesystem, path)
    files = tables_among(entries, told, filesystem)
    others = [entry for entry in entries if entry.is_file and entry.base_name.lower().endswith(_OTHERS)]
    if not files:
        folders = [entry.base_name for entry in entries if not entry.is_file]
        inside = f"; give one of its folders, such as {folders[0]!r}" if folders else ""
        raise PoolFileError(f"the folder {told} holds no file that ends in {' or '.join(ENDINGS)}{inside}")
    if others:
        raise PoolFileError(
            f"the folder {told} holds pools of two kinds: {files[0].base_name} and {others[0].base_name}",
            "keep them apart",
        )
    return files


def entries_of(filesystem: Any, path: str) -> list[Any]:
    """What lies in a folder and is looked at, in the order of names; nothing where there is no such folder."""
    arrow, _ = libraries()
    entries = filesystem.get_file_info(arrow.fs.FileSelector(path, allow_not_found=True))
    seen = (entry for entry in entries if entry.base_name[:1] not in "._")
    return sorted(seen, key=lambda entry: entry.base_name)


def tables_among(entries: Sequence[Any], folder: str, filesystem: Any) -> list[Shard]:
    """The Parquet files among the entries of a folder."""
    files = (entry for entry in entries if entry.is_file and entry.base_name.lower().endswith(ENDINGS))
    return [Shard(f"{folder.rstrip('/')}/{entry.base_name}", entry.path, filesystem, _stamp(entry)) for entry in files]


def _stamp(info: Any) -> tuple[Any, ...]:
    return info.size, info.mtime_ns


def located(place: str | os.PathLike[str]) -> tuple[Any, str]:
    """The filesystem of a place, and its path there."""
    from pyarrow import fs

    if not is_remote(place):
        return fs.LocalFileSystem(), os.path.abspath(place)
    address = str(place)
    endpoint = os.environ.get(_ENDPOINT)
    if address.lower().startswith("s3://") and endpoint and "endpoint_override" not in address:
        scheme, _, host = endpoint.rpartition("://")
        own = {"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"}
        own |= (
            {"region": region} if (region := os.environ.get("AWS_REGION", os.environ.get("AWS_DEFAULT_REGION"))) else {}
        )
        return fs.S3FileSystem(**own), address[len("s3://") :].rstrip("/")
    filesystem, path = fs.FileSystem.from_uri(address)
    return filesystem, path


@contextmanager
def reading(name: str, arrow: Any) -> Iterator[None]:
    """Errors of reading a file, in one line that names it."""
    try:
        yield
    except FileNotFoundError:
        raise PoolFileError(f"there is no file {name}") from None
    except PermissionError:
        raise PoolFileError(f"{name} cannot be read: permission denied") from None
    except (OSError, arrow.ArrowException, ValueError, OverflowError) as error:
        if isinstance(error, PoolFileError):
            raise
        told = " ".join(str(error).split()).rstrip(".")
        away = is_remote(name) and not isinstance(error, arrow.ArrowInvalid)
        raise PoolFileError(f"{name} cannot be read as Parquet: {told:.300}", "" if away else _DAMAGED) from None


def libraries() -> tuple[Any, Any]:
    """pyarrow, and its part for Parquet."""
    try:
        import pyarrow
        import pyarrow.fs
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Parquet needs pyarrow", "parquet") from None
    return pyarrow, pyarrow.parquet
