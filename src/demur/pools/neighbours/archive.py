"""ZIP archives whose entries are deflated, stored or packed by Zstandard, read one entry at a time.

The standard library lists every archive, but reads no Zstandard before Python 3.14; and it lists nothing where the end
is missing, as a killed writer or a broken download leaves it. Then the entries' own headers are followed from the
front, as far as they go.
"""

from __future__ import annotations

import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import NamedTuple, Self

from demur.errors import MissingExtra, PoolFileError
from demur.files.bounds import Content
from demur.files.inputs import open_file

_LOCAL = struct.Struct("<4sHHHHHLLLHH")
_LOCAL_MARK = b"PK\x03\x04"
_STORED, _DEFLATED, _ZSTANDARD = 0, 8, 93
_ENCRYPTED, _SIZES_BEHIND, _UTF8 = 0x1, 0x8, 0x800
_WIDE = 0xFFFFFFFF
Unpack = Callable[[bytes, int], bytes]
"""From what is packed, and the size it should have, to what it holds; at most one byte more than that."""


class Entry(NamedTuple):
    """Where an entry stands, and what it should be when it is unpacked."""

    name: str
    method: int
    offset: int
    """Of its header."""
    packed: int
    size: int
    crc: int


class Archive:
    """An archive that is open; `entries` in the order they were written, of one name the last alone.

    With `recover`, an archive without its directory is read from the front, and `cut_off` says so.
    """

    def __init__(self, path: Path, *, recover: bool = False) -> None:
        self.path, self.cut_off = path, False
        try:
            self._stream = open_file(path)
        except FileNotFoundError:
            raise PoolFileError(f"there is no file {path}") from None
        except OSError as error:
            raise PoolFileError(f"cannot read {path}: {error.strerror or error}") from None
        try:
            entries = self._listed(recover)
        except BaseException:
            self._stream.close()
            raise
        self.entries = {entry.name: entry for entry in entries}
        self._size, self._content = self._stream.seek(0, 2), Content(path, PoolFileError)
        self._unpack: dict[int, Unpack] = {_STORED: _as_it_is, _DEFLATED: _inflated}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, entry: Entry) -> bytes:
        """What an entry holds, checked against its size and checksum, and against what the archive may hold."""
        # Entries may lie on top of each other: what stands once in the file is packed once.
        self._content.packed = min(self._content.packed + entry.packed, self._size)
        self._content.announce(entry.size)
        try:
            self._stream.seek(entry.offset)
            header = _LOCAL.unpack(self._stream.read(_LOCAL.size))
            if header[0] != _LOCAL_MARK or header[2] & _ENCRYPTED:
                raise self._damaged(entry, "it is encrypted" if header[0] == _LOCAL_MARK else "it is not where it is")
            self._stream.seek(header[9] + header[10], 1)
            packed = self._stream.read(entry.packed)
            content = self._method(entry)(packed, entry.size)
        except (OSError, struct.error, zlib.error, ValueError) as error:
            raise self._damaged(entry, str(error)) from None
        if len(packed) < entry.packed or len(content) != entry.size or zlib.crc32(content) != entry.crc:
            raise self._damaged(entry, "it is not what it was when it was written")
        self._content.add(content)
        return content

    def _method(self, entry: Entry) -> Unpack:
        if entry.method == _ZSTANDARD and _ZSTANDARD not in self._unpack:
            self._unpack[_ZSTANDARD] = _zstandard(self.path)
        unpack = self._unpack.get(entry.method)
        if unpack is None:
            raise self._damaged(entry, f"it is packed by method {entry.method}, which nothing here unpacks")
        return unpack

    def _damaged(self, entry: Entry, reason: str) -> PoolFileError:
        return PoolFileError(f"{self.path}: the entry {entry.name!r:.80} cannot be read: {reason}", "use a whole copy")

    def _listed(self, recover: bool) -> list[Entry]:
        try:
            with zipfile.ZipFile(self._stream) as directory:
                return [
                    Entry(one.filename, one.compress_type, one.header_offset, one.compress_size, one.file_size, one.CRC)
                    for one in directory.infolist()
                ]
        except (zipfile.BadZipFile, struct.error, OSError, ValueError, NotImplementedError) as error:
            self._stream.seek(0)
            if self._stream.read(len(_LOCAL_MARK)) != _LOCAL_MARK:
                raise PoolFileError(f"{self.path} is no ZIP archive, which a log of inspect is: {error}") from None
        entries = list(self._followed())
        if not entries:
            raise PoolFileError(f"{self.path} is cut off before anything in it is whole", "use a whole copy")
        if not recover:
            raise PoolFileError(
                f"{self.path} is cut off: its directory is missing, and {len(entries)} whole entries stand before",
                "use a whole copy, or take what is there with {recover}",
            )
        self.cut_off = True
        return entries

    def _followed(self) -> Iterator[Entry]:
        """Entries by the headers in front of each, as far as whole ones go."""
        end = self._stream.seek(0, 2)
        offset = 0
        while offset + _LOCAL.size <= end:
            self._stream.seek(offset)
            header = _LOCAL.unpack(self._stream.read(_LOCAL.size))
            mark, _, flags, method, _, _, crc, packed, size, name_length, extra_length = header
            if mark != _LOCAL_MARK or flags & _SIZES_BEHIND:  # without its sizes nobody knows where the next begins
                return
            name = self._stream.read(name_length).decode("utf-8" if flags & _UTF8 else "cp437", "replace")
            extra = self._stream.read(extra_length)
            if _WIDE in (packed, size):
                size, packed = _wide_sizes(extra, size, packed)
            following = offset + _LOCAL.size + name_length + extra_length + packed
            if following > end:
                return
            yield Entry(name, method, offset, packed, size, crc)
            offset = following


def _wide_sizes(extra: bytes, size: int, packed: int) -> tuple[int, int]:
    """The sizes of an entry beyond 4 GiB, which stand in an extra field."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1 and length >= 16:
            return struct.unpack_from("<QQ", extra, at + 4)
        at += 4 + length
    return size, packed


def _as_it_is(packed: bytes, size: int) -> bytes:
    return packed


def _inflated(packed: bytes, size: int) -> bytes:
    return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, size + 1)  # a byte more tells of more


def _zstandard(path: Path) -> Unpack:
    """What unpacks Zstandard, of the standard library where it has it."""
    if sys.version_info >= (3, 14):
        from compression import zstd

        def unpack(packed: bytes, size: int) -> bytes:
            return bytes(zstd.ZstdFile(BytesIO(packed)).read(size + 1))

        return unpack
    try:
        import zstandard
    except ImportError:
        raise MissingExtra(f"{path} is packed by Zstandard, and nothing here unpacks it", "inspect") from None
    context = zstandard.ZstdDecompressor()

    def unpack_frames(packed: bytes, size: int) -> bytes:
        try:  # large entries are several frames, one behind the other
            return context.stream_reader(packed, read_across_frames=True).read(size + 1)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from None

    return unpack_frames
