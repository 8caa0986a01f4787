"""Where tables are written: a file here, or an object on a filesystem that Arrow knows.

Each appears when it is whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from demur.errors import PoolFileError
from demur.files.atomic import atomic_file
from demur.pools.shards import Shard, entries_of, is_remote, libraries, located, tables_among

_WAYS = "see that the address and what lets you write there are right, or name a file here"


@contextmanager
def whole_file(target: str | os.PathLike[str]) -> Iterator[Any]:
    """What to write to: it takes its place when the block ends well, and vanishes when it does not."""
    if not is_remote(target):
        with atomic_file(target) as unfinished, open(unfinished, "wb") as stream:
            yield stream
        return
    filesystem, path = located(target)
    unfinished_path = f"{path}.unfinished"
    try:
        with filesystem.open_output_stream(unfinished_path) as stream:
            yield stream
        filesystem.move(unfinished_path, path)
    except BaseException:
        with suppress(OSError):
            filesystem.delete_file(unfinished_path)
        raise


@contextmanager
def writing(target: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of writing, in one line that names the target."""
    arrow, _ = libraries()
    try:
        yield
    except (OSError, arrow.ArrowException) as error:
        told = " ".join(str(getattr(error, "strerror", None) or error).split()).rstrip(".")
        raise PoolFileError(f"cannot write {target}: {told:.300}", _WAYS if is_remote(target) else "") from None


def object_at(address: str) -> Any | None:
    """The file that lies at an address, to be read; None where there is none.

    Raises where nothing can be written there, as far as that is seen before: nobody answers, there is no such bucket,
    or it is a folder.
    """
    arrow, _ = libraries()
    with writing(address):
        filesystem, path = located(address)
        info = filesystem.get_file_info(path)
        if info.is_file:
            return filesystem.open_input_file(path)
    if info.type == arrow.fs.FileType.Directory:
        raise PoolFileError(f"cannot write {address}: it is a folder", "name a file in it")
    _refuse_no_bucket(address, filesystem, path)
    return None


def tables_at(folder: str) -> list[Shard]:
    """The Parquet files of a folder that is written to; none where there is no such folder yet.

    Raises where nothing can be written there, as far as that is seen before.
    """
    with writing(folder):
        filesystem, path = located(folder)
        tables = tables_among(entries_of(filesystem, path.rstrip("/")), folder, filesystem)
    if not tables:
        _refuse_no_bucket(folder, filesystem, path)
    return tables


def make_folder(address: str) -> None:
    """A folder where it must be there before its files are; objects have none."""
    with writing(address):
        filesystem, path = located(address)
        if filesystem.type_name in ("local", "hdfs"):
            filesystem.create_dir(path, recursive=True)


def _refuse_no_bucket(address: str, filesystem: Any, path: str) -> None:
    arrow, _ = libraries()
    if not is_remote(address) or not address.lower().startswith("s3:"):
        return
    bucket, known = path.partition("/")[0], None
    with suppress(OSError):  # who may write need not be allowed to look
        known = filesystem.get_file_info(bucket).type
    if known == arrow.fs.FileType.NotFound:
        raise PoolFileError(f"cannot write {address}: there is no bucket {bucket!r}", _WAYS)


def is_same_place(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two places are one file or folder, however they are written."""
    (filesystem, path), (another, there) = located(one), located(other)
    return bool(filesystem.equals(another)) and path.rstrip("/") == there.rstrip("/")
