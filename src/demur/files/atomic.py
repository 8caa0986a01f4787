"""Files that appear whole or not at all: written beside their target, then put in its place."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from demur.files.inputs import Refusal


@contextlib.contextmanager
def atomic_file(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to; it takes the target's place when the block ends well, and vanishes when it does not.

    Symbolic links are followed. Pipes and devices cannot be put in place whole, so they are written to directly.
    """
    path = Path(os.path.realpath(target))
    if not str(target) or path.is_dir():
        raise IsADirectoryError(21, f"{str(target)!r} is not a file name")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(13, f"{target} is read-only")
    if path.exists() and not path.is_file():
        yield path
        return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".unfinished")
    os.close(handle)
    unfinished = Path(name)
    try:
        yield unfinished
        unfinished.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextlib.contextmanager
def written_whole(target: str | os.PathLike[str], refusal: Refusal) -> Iterator[Path]:
    """As `atomic_file`; what the disk refuses is told in one line, as the caller's own kind of error."""
    try:
        with atomic_file(target) as unfinished:
            yield unfinished
    except OSError as error:
        raise refusal(f"cannot write {target}: {error.strerror or error}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
