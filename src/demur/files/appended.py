"""Files that lines are appended to, by one command at a time: what `append` returns from is on the disk.

A last line that was cut off, as a kill leaves it, was never said.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, Self

from demur.errors import DemurError, InvalidValue
from demur.files.strict_json import NotJson, parse


class AppendedLines:
    """JSON lines of one kind; `check` reads the file and raises where it holds something else."""

    def __init__(self, path: str | os.PathLike[str], kind: str, check: Callable[[Path], object]) -> None:
        self.path, self._kind, self._check = Path(path), kind, check
        self._stream: BinaryIO | None = None

    def __enter__(self) -> Self:
        if self.path.suffix == ".gz":
            raise InvalidValue(f"{self._kind} are appended one by one, so {self.path} cannot be gzipped")
        if self.path.exists() and not self.path.is_file():
            raise InvalidValue(f"cannot write {self._kind} to {self.path}: it is not a file")
        try:
            self._stream = self.path.open("a+b")
        except OSError as error:
            raise InvalidValue(f"cannot write {self.path}: {error.strerror or error}") from None
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._check(self.path)  # what is no such file is not touched
            self._mend()
        except BlockingIOError:
            self._stream.close()
            raise InvalidValue(f"another command is writing {self._kind} to {self.path}; wait for it to end") from None
        except DemurError:
            self._stream.close()
            raise
        return self

    def append_lines(self, lines: Iterable[str]) -> None:
        """Write lines, and wait until the disk has them."""
        assert self._stream is not None
        self._stream.write("".join(f"{line}\n" for line in lines).encode())
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if self._stream is not None:
            is_empty = self._stream.seek(0, os.SEEK_END) == 0
            self._stream.close()
            if is_empty and failed is not None:  # nobody said anything, so there is no file of what was said
                self.path.unlink(missing_ok=True)

    def _mend(self) -> None:
        """End the last line, or drop it where a kill cut it off."""
        assert self._stream is not None
        self._stream.seek(0)
        content = self._stream.read()
        whole, _, last = content.rpartition(b"\n")
        if not last:
            return
        try:
            parse(last.decode())
            self._stream.write(b"\n")
        except NotJson:
            self._stream.truncate(len(whole) + 1 if whole else 0)
        self._stream.flush()
