"""The file beside a policy that names its calibration problems: JSON or, where they are very many, digests as they are.

demur-seen 1
{"ids": 10000000, "questions": 9999871, "clusters": 0, "hold_out": null}
…eight bytes of each digest, ascending, in that order

"""

from __future__ import annotations

import base64
from typing import Any

from demur.files import strict_json
from demur.files.strict_json import as_json

MARK = b"demur-seen 1\n"
_NAMES = ("ids", "questions", "clusters")
_WIDTH = 8


def is_packed(calibration: dict[str, Any]) -> bool:
    """Whether problems are known by digests."""
    return isinstance(calibration["ids"], dict)


def pack(calibration: dict[str, Any]) -> bytes:
    """The content of the file."""
    if not is_packed(calibration):
        return as_json(calibration).encode()
    parts = [base64.b64decode(calibration[name]["digests"]) for name in _NAMES]
    sizes = {name: len(part) // _WIDTH for name, part in zip(_NAMES, parts, strict=True)}
    header = as_json({**sizes, "hold_out": calibration["hold_out"]})
    return b"".join([MARK, header.encode(), b"\n", *parts])


def unpacked(content: bytes) -> dict[str, Any]:
    """What such a file says; ValueError where it does not hold together."""
    line, newline, rest = content[len(MARK) :].partition(b"\n")
    header = strict_json.parse(line.decode())
    sizes: list[Any] = [header.get(name) if isinstance(header, dict) else None for name in _NAMES]
    if not newline or not all(type(size) is int and size >= 0 for size in sizes) or sum(sizes) * _WIDTH != len(rest):
        raise ValueError("it does not hold the digests that it announces")
    calibration, at = {"hold_out": header.get("hold_out")}, 0
    for name, size in zip(_NAMES, sizes, strict=True):
        part = rest[at : at + size * _WIDTH]
        calibration[name] = {"digests": base64.b64encode(part).decode("ascii")}
        at += len(part)
    return calibration
