"""How much a file may hold for its size: a small file that unpacks to very much is refused before it fills the memory.

Every file may hold a certain number of bytes, values, rows and cells, and beyond that a number for each of its bytes.
Values are counted by the marks between them, so a text with many commas counts as several. `trust_size`, or
DEMUR_TRUST_SIZE=1 in the environment, lifts all bounds for files that are trusted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from demur.errors import DemurError

TRUST = "DEMUR_TRUST_SIZE"


@dataclass(frozen=True)
class Bound:
    """How much of something a file may hold."""

    what: str
    always: int
    """What every file may hold."""
    per_byte: float
    """What a file may hold for each of its bytes, if that is more."""

    def most(self, size: int) -> int:
        """What a file of that size may hold."""
        return max(self.always, int(self.per_byte * size))

    def refuse(self, amount: float, size: int, where: Path | str, refusal: type[DemurError]) -> None:
        """Raise if a file of that size holds more than it may."""
        if amount > self.most(size) and not size_trusted():
            raise refusal(
                f"{where} holds more than {self.most(size):,} {self.what}, the limit for {size:,} bytes of a file",
                f"if you trust the file, read it with {{trust_size}}, or with {TRUST}=1 in the environment",
            )


UNPACKED = Bound("bytes after unpacking", 64 << 20, 100)
VALUES = Bound("values", 2_000_000, 4)
DENSE_VALUES = Bound("values", 2_000_000, 0.5)
"""For each byte after unpacking: neither JSON nor a table is denser, unless somebody made it so."""
ROWS = Bound("rows", 10_000_000, 16)
CELLS = Bound("cells", 200_000_000, 64)
TEXTS = Bound("bytes of text in one column", 64 << 20, 1000)
"""A column of a table may name the same text in very many rows."""
_MARKS = b",[{\n"


def size_trusted() -> bool:
    """Whether files are read whatever they unpack to."""
    return os.environ.get(TRUST, "0") not in ("", "0")


@contextmanager
def trust_size() -> Iterator[None]:
    """Read files whatever they unpack to, in this process and its children."""
    before = os.environ.get(TRUST)
    os.environ[TRUST] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[TRUST]
        else:
            os.environ[TRUST] = before


class Content:
    """What one file was found to hold so far."""

    def __init__(self, where: Path | str, refusal: type[DemurError], more_marks: bytes = b"") -> None:
        self._where, self._refusal, self._marks = where, refusal, _MARKS + more_marks
        self.packed = 0
        """Bytes of the file."""
        self.unpacked = 0
        self.values = 0

    def announce(self, unpacked: int) -> None:
        """Raise if the file would hold too much with these further bytes."""
        UNPACKED.refuse(self.unpacked + unpacked, self.packed, self._where, self._refusal)

    def add(self, content: bytes) -> None:
        """Count what some bytes unpacked to; raises if it is more than the file may hold."""
        self.announce(len(content))
        self.unpacked += len(content)
        self.values += len(content) - len(content.translate(None, self._marks))
        VALUES.refuse(self.values, self.packed, self._where, self._refusal)
        DENSE_VALUES.refuse(self.values, self.unpacked, self._where, self._refusal)
