"""Signatures of policy files: HMAC-SHA256 by a key that only their makers and their users hold.

A policy's digest tells accidents from what was written; anybody can make a new one. A signature tells forgeries too.
"""

from __future__ import annotations

import hmac
import os
from typing import Any

from demur.descriptions import canonical
from demur.errors import InvalidValue, PolicyFileError
from demur.files.inputs import open_file

SHORTEST = 32
_LONGEST = 1 << 16
_LABEL = b"demur-policy hmac-sha256\n"
Key = bytes | str


def read_key(path: str | os.PathLike[str]) -> bytes:
    """The key that a file holds: its bytes or, where they are text, its text without the end of the line."""
    try:
        with open_file(path) as stream:
            key = stream.read(_LONGEST + 1)
    except OSError as error:
        raise InvalidValue(f"the key file {path} cannot be read: {error.strerror or error}") from None
    return checked_key(key.rstrip(b"\r\n") if key.isascii() else key, f"the key file {path}")


def checked_key(key: Key, where: str = "key") -> bytes:
    """A key as bytes; raises where it is too short to be one, and never repeats it."""
    held = key.encode() if isinstance(key, str) else bytes(key)
    if not SHORTEST <= len(held) <= _LONGEST or not held.strip():
        raise InvalidValue(
            f"{where} must hold {SHORTEST} to {_LONGEST} bytes that are not blank",
            "make one with: openssl rand -hex 32",
        )
    return held


def signature_of(document: dict[str, Any], key: Key) -> str:
    """The signature of a sealed document, which is without one."""
    return "hmac-sha256:" + hmac.digest(checked_key(key), _LABEL + canonical(document), "sha256").hex()


def check_signature(document: dict[str, Any], signature: Any, key: Key, path: os.PathLike[str]) -> None:
    """Raise unless the signature is that of the document, by this key."""
    wanted = signature_of(document, key)
    if signature is None:
        raise PolicyFileError(f"{path} is not signed, and a key was given to check it with", "sign it when calibrating")
    if not (isinstance(signature, str) and hmac.compare_digest(signature.encode(), wanted.encode())):
        raise PolicyFileError(f"{path} was not signed with this key, or was changed since")
