"""Names and digests of many problems as arrays: sequences of texts to whoever reads them one by one.

Ten million ids as Python's texts cost most of a gigabyte, and their digests another; here they cost what they hold.
"""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint64]
_AT_ONCE = 65_536
_DIGEST = re.compile(r"[0-9a-f]{16}")


class _Column(Sequence[str | None]):
    """A column of texts, some of which may be None."""

    @abstractmethod
    def _part(self, start: int, end: int) -> list[str | None]:
        """The entries from one row up to another."""

    @abstractmethod
    def take(self, rows: NDArray[np.intp]) -> _Column:
        """Some of the entries, in that order."""

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            start, stop, step = row.indices(len(self))
            return self._part(start, stop) if step == 1 else [self[at] for at in range(start, stop, step)]
        if not -len(self) <= row < len(self):
            raise IndexError(f"entry {row} of {len(self)}")
        row = int(row) % len(self)
        return self._part(row, row + 1)[0]

    def __iter__(self) -> Iterator[Any]:
        starts = range(0, len(self), _AT_ONCE)
        return chain.from_iterable(self._part(start, min(start + _AT_ONCE, len(self))) for start in starts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (_Column, list)):
            return NotImplemented
        return len(self) == len(other) and all(ours == theirs for ours, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class TextColumn(_Column):
    """Texts that lie end to end in UTF-8."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    """Where each begins, and at the end where the last one ends."""
    known: NDArray[np.bool_] | None = None
    """Which entries are texts; None where all are."""

    @classmethod
    def of(cls, texts: Iterable[str | None]) -> TextColumn:
        """From texts, each of which may be None."""
        parts, known = list[bytes](), list[bool]()
        for text in texts:
            parts.append(b"" if text is None else text.encode("utf-8", "surrogatepass"))
            known.append(text is not None)
        starts = np.concatenate([[0], np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)))])
        there = None if all(known) else np.array(known, dtype=np.bool_)
        return cls(np.frombuffer(b"".join(parts), dtype=np.uint8), starts.astype(np.int64), there)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def _part(self, start: int, end: int) -> list[str | None]:
        starts = (self.starts[start : end + 1] - self.starts[start]).tolist() if end > start else [0]
        blob = self.data[self.starts[start] : self.starts[max(start, end)]].tobytes()
        texts: list[str | None]
        if blob.isascii():  # a place in the bytes is a place in the text
            whole = blob.decode("ascii")
            texts = [whole[first:last] for first, last in pairwise(starts)]
        else:
            texts = [blob[first:last].decode("utf-8", "surrogatepass") for first, last in pairwise(starts)]
        if self.known is not None:
            pairs = zip(texts, self.known[start:end].tolist(), strict=True)
            texts = [text if there else None for text, there in pairs]
        return texts

    def take(self, rows: NDArray[np.intp]) -> TextColumn:
        lengths = self.starts[1:][rows] - self.starts[:-1][rows]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.repeat(self.starts[:-1][rows] - starts[:-1], lengths) + np.arange(starts[-1])
        return TextColumn(self.data[places], starts, None if self.known is None else self.known[rows])


@dataclass(frozen=True, eq=False)
class DigestColumn(_Column):
    """Digests of sixteen hexadecimal digits, as numbers."""

    values: Bits
    known: NDArray[np.bool_] | None = None
    """Which entries are digests; None where all are."""

    @classmethod
    def of(cls, digests: Iterable[str | None]) -> DigestColumn:
        """From digests, each of which may be None."""
        listed = list(digests)
        values = np.fromiter((0 if text is None else int(text, 16) for text in listed), np.uint64, len(listed))
        known = None if None not in listed else np.array([text is not None for text in listed], dtype=np.bool_)
        return cls(values, known)

    @classmethod
    def none(cls, rows: int) -> DigestColumn:
        """A column that says nothing."""
        return cls(np.zeros(rows, dtype=np.uint64), np.zeros(rows, dtype=np.bool_))

    @cached_property
    def any_known(self) -> bool:
        """Whether some entry is a digest."""
        return bool(len(self) if self.known is None else self.known.any())

    def __len__(self) -> int:
        return len(self.values)

    def _part(self, start: int, end: int) -> list[str | None]:
        packed = self.values[start:end].astype(">u8").tobytes().hex()
        texts: list[str | None] = [packed[at : at + 16] for at in range(0, len(packed), 16)]
        if self.known is not None:
            pairs = zip(texts, self.known[start:end].tolist(), strict=True)
            texts = [text if there else None for text, there in pairs]
        return texts

    def take(self, rows: NDArray[np.intp]) -> DigestColumn:
        return DigestColumn(self.values[rows], None if self.known is None else self.known[rows])


def bits_of(texts: Iterable[str]) -> Bits:
    """Sixty-four bits of each text: of a digest of sixteen hexadecimal digits, those that it says."""
    if isinstance(texts, DigestColumn):
        return texts.values if texts.known is None else texts.values[texts.known]
    parts, entries = [], iter(texts)
    while some := list(islice(entries, _AT_ONCE)):
        parts.append(np.frombuffer(b"".join(map(_bits, some)), dtype=">u8").astype(np.uint64))
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)


def _bits(text: str) -> bytes:
    if len(text) == 16 and _DIGEST.fullmatch(text):
        return bytes.fromhex(text)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


class DigestSet:
    """A set of very many texts, which are known by sixty-four bits of each.

    That two of ten million texts and ten million others share them by chance has a probability of five in a million.
    """

    def __init__(self, values: Bits) -> None:
        ordered = np.sort(values)
        self.values: Bits = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered
        """Ascending, each once."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> DigestSet:
        """From texts, none of which is None."""
        return cls(bits_of(texts))

    def __len__(self) -> int:
        return len(self.values)

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and bool(self.has(bits_of([text]))[0])

    def __or__(self, other: Any) -> DigestSet:
        theirs = other if isinstance(other, DigestSet) else DigestSet.of(other)
        return DigestSet(np.concatenate([self.values, theirs.values]))

    __ror__ = __or__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DigestSet) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash(self.values.tobytes())

    def __repr__(self) -> str:
        return f"DigestSet({len(self):,} texts)"

    def isdisjoint(self, others: Iterable[str]) -> bool:
        """Whether it has none of them."""
        return not self.has(bits_of(others)).any()

    def has(self, values: Bits) -> NDArray[np.bool_]:
        """Which of some digests are in it."""
        if not len(self.values):
            return np.zeros(len(values), dtype=np.bool_)
        places = np.minimum(np.searchsorted(self.values, values), len(self.values) - 1)
        return np.asarray(self.values[places] == values)

    def rows(self, column: Sequence[str | None]) -> NDArray[np.bool_]:
        """Which entries of a column are in it; None is not."""
        if isinstance(column, DigestColumn):
            there = self.has(column.values)
            return there if column.known is None else there & column.known
        known = np.array([text is not None and text != "" for text in column], dtype=np.bool_)
        there = np.zeros(len(column), dtype=np.bool_)
        there[known] = self.has(bits_of(str(text) for text in column if text is not None and text != ""))
        return there
