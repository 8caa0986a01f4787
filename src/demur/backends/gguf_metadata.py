"""What a GGUF file says of itself: a few of its fields, without reading the rest.

The gguf package takes seconds for a vocabulary; here strings that nobody asked for are stepped over.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from pathlib import Path
from typing import Any, BinaryIO

from demur.errors import BackendError
from demur.files.inputs import open_file

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


def gguf_fields(path: Path, wanted: Collection[str]) -> dict[str, Any]:
    """Those of the wanted fields that a file has; an array of strings is a list of them."""
    try:
        with open_file(path) as stream:
            return _Fields(stream, path.stat().st_size).read(wanted)
    except (OSError, struct.error, ValueError, KeyError, MemoryError, RecursionError) as error:
        raise BackendError(f"{path} cannot be read as a GGUF file: {error}") from None


class _Fields:
    def __init__(self, stream: BinaryIO, size: int) -> None:
        self.stream, self.size = stream, size

    def read(self, wanted: Collection[str]) -> dict[str, Any]:
        if self.stream.read(4) != b"GGUF":
            raise ValueError("it does not begin as one")
        _, _, count = self._unpack("IQQ")
        fields: dict[str, Any] = {}
        for _ in range(count):
            name = self._bytes().decode()
            value = self._value(self._unpack("I")[0], keep=name in wanted)
            if name in wanted:
                fields[name] = value
            if len(fields) == len(wanted):
                break
        return fields

    def _value(self, kind: int, *, keep: bool) -> Any:
        if kind == _STRING:
            return self._bytes().decode("utf-8", "replace") if keep else self._bytes()
        if kind != _ARRAY:
            return self._unpack(_NUMBERS[kind])[0]
        inner, length = self._unpack("IQ")
        if inner in _NUMBERS:
            self._within(length * struct.calcsize(_NUMBERS[inner]))
            return self._unpack(f"{length}{_NUMBERS[inner]}")
        self._within(8 * length)  # each takes so much at least
        values = [self._value(inner, keep=keep) for _ in range(length)]
        return values if keep else None

    def _unpack(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(f"<{form}", self.stream.read(struct.calcsize(f"<{form}")))

    def _bytes(self) -> bytes:
        (length,) = self._unpack("Q")
        self._within(length)
        return self.stream.read(length)

    def _within(self, length: int) -> None:
        if length > self.size - self.stream.tell():
            raise ValueError("it ends in the middle of a field")
