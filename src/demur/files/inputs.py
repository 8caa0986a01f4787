"""Files that others wrote, read with care: text in UTF-8, plain or gzipped.

What cannot be read is refused in one line, as the caller's own kind of error, with the line where the trouble begins.
"""

from __future__ import annotations

import gzip
import os
import select
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from demur.errors import DemurError

_MARK = b"\xef\xbb\xbf"
_WRITER_MILLISECONDS = 5000
_NOT_TEXT = {
    b"\xff\xfe": "it is UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "it is UTF-16 text; save it as UTF-8",
    b"\x1f\x8b": "it is gzipped; give it a name that ends in .gz",
    b"PAR1": "it is a Parquet file; as pools it is read under a name that ends in .parquet",
    b"PK\x03\x04": "it is a ZIP archive or a spreadsheet; save it as JSON lines or CSV",
    b"SQLite format 3\x00": "it is a database: where a run is not taken, `demur export` makes a pool file of it",
}

Refusal = type[DemurError]


def lines_of(path: Path, refusal: Refusal) -> Iterator[tuple[int, str]]:
    """Every line of a file, with its number."""
    number = 0
    with _refusing(path, refusal) as stopped, _opened(path) as stream:
        for number, raw in enumerate(stream, start=1):
            if number == 1:
                raw = _without_mark(raw, path, refusal)
            try:
                yield number, raw.decode()
            except UnicodeDecodeError as error:
                raise _not_utf8(path, number, error, refusal) from None
            stopped[0] = number


def text_of(path: Path, refusal: Refusal) -> str:
    """A whole file."""
    with _refusing(path, refusal), _opened(path) as stream:
        raw = _without_mark(stream.read(), path, refusal)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(path, raw.count(b"\n", 0, error.start) + 1, error, refusal) from None


def _not_utf8(path: Path, line: int, error: UnicodeDecodeError, refusal: Refusal) -> DemurError:
    odd = error.object[error.start]
    return refusal(f"{path}, line {line}: the byte 0x{odd:02x} is not UTF-8", "save it as UTF-8, or use a whole copy")


def _without_mark(start: bytes, path: Path, refusal: Refusal) -> bytes:
    for head, told in _NOT_TEXT.items():
        if start.startswith(head):
            raise refusal(f"cannot read {path}: {told}")
    return start.removeprefix(_MARK)


@contextmanager
def _refusing(path: Path, refusal: Refusal) -> Iterator[list[int]]:
    """What goes wrong with a file, told as a refusal; the list says how many lines were read."""
    stopped = [0]
    try:
        yield stopped
    except FileNotFoundError:
        raise refusal(f"there is no file {path}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        where = f"{path}, after line {stopped[0]}" if stopped[0] else str(path)
        raise refusal(f"{where}: the file is cut off or damaged: {error}", "use a whole copy of it") from None
    except OSError as error:
        raise refusal(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:  # a name that no file can have
        raise refusal(f"cannot read {str(path)!r}: {error}") from None


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with _opened_pipe(path) if path.is_fifo() else path.open("rb") as plain:
        yield cast(BinaryIO, gzip.GzipFile(fileobj=plain)) if path.suffix == ".gz" else plain


def _opened_pipe(path: Path) -> BinaryIO:
    """A pipe that somebody writes to; one that nobody does would be waited for in vain."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    stream = os.fdopen(handle, "rb")
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    if not poller.poll(_WRITER_MILLISECONDS) and _nobody_writes_to(handle):
        stream.close()
        raise OSError("it is a pipe, and nobody writes to it")
    os.set_blocking(handle, True)
    return stream


def _nobody_writes_to(handle: int) -> bool:
    """Of a pipe without anything to read: whether it ends here, or its writer takes its time."""
    try:
        return not os.read(handle, 1)
    except BlockingIOError:
        return False
