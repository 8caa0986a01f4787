"""Files that others wrote, read with care: text in UTF-8, plain or gzipped.

What cannot be read is refused in one line, as the caller's own kind of error, with the line where the trouble begins.
Only files are read, and pipes of the shell; all else is refused before it is opened.
"""

from __future__ import annotations

import gzip
import io
import os
import select
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from demur.errors import DemurError
from demur.files.bounds import Content

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_MARK = b"\xef\xbb\xbf"
_WRITER_MILLISECONDS = 5000
_AT_ONCE = 1 << 20
_OF_THE_SHELL = ("/dev/", "/proc/")
"""Where pipes stand that the shell made: `… | demur … /dev/stdin`, and `demur … <(…)`."""
_SPECIAL = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
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
    with _refusing(path, refusal) as stopped, _opened(path, refusal) as stream:
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
    with _refusing(path, refusal), _opened(path, refusal) as stream:
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
    except DemurError:
        raise
    except FileNotFoundError:
        raise refusal(f"there is no file {path}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        where = f"{path}, after line {stopped[0]}" if stopped[0] else str(path)
        raise refusal(f"{where}: the file is cut off or damaged: {error}", "use a whole copy of it") from None
    except OSError as error:
        raise refusal(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:  # a name that no file can have
        raise refusal(f"cannot read {str(path)!r}: {error}") from None


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """A file that is open to be read; an OSError, before it is opened, if the path leads to anything else."""
    kind = stat.S_IFMT(os.stat(path).st_mode)
    if kind == stat.S_IFIFO and os.path.abspath(path).startswith(_OF_THE_SHELL):
        return _opened_pipe(path)
    if kind != stat.S_IFREG:
        raise OSError(f"it is {_SPECIAL.get(kind, 'no file')}, and only files are read")
    return open(path, "rb")


@contextmanager
def _opened(path: Path, refusal: Refusal) -> Iterator[BinaryIO]:
    """The text of a file, counted as it is read."""
    content = Content(path, refusal, b"\t" if ".tsv" in path.suffixes else b"")

    def count_packed(part: bytes) -> None:
        content.packed += len(part)
        if part[:1] == b"\0" and not part.strip(b"\0"):  # a file that is all hole has no end that memory could hold
            raise OSError("it holds zero bytes, and no text")

    with open_file(path) as plain:
        packed = io.BufferedReader(_Counted(plain, count_packed), _AT_ONCE)
        text = cast(BinaryIO, gzip.GzipFile(fileobj=packed)) if path.suffix == ".gz" else packed
        yield io.BufferedReader(_Counted(text, content.add), _AT_ONCE)


class _Counted(io.RawIOBase):
    """A stream that shows what is read of it."""

    def __init__(self, stream: BinaryIO, count: Callable[[bytes], None]) -> None:
        self._stream, self._count = stream, count

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        part = self._stream.read1(len(view))  # type: ignore[attr-defined]
        self._count(part)
        view[: len(part)] = part
        return len(part)


def _opened_pipe(path: str | os.PathLike[str]) -> BinaryIO:
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
