"""Secrets out of texts: what a server says before it is used, and every message before it is shown.

A secret that is known is found in whatever spelling it is echoed: as it is, percent-encoded, escaped as in JSON, or
inside Base64. Others are found by where they stand: logins and key-like parameters of addresses, authorisation headers.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit, urlunsplit

from demur.files.strict_json import as_json

HIDDEN = "[secret]"
_LONG = 8
"""From here on a text is not taken for a secret by chance; shorter ones (`x`, `EMPTY`) are left in what models say."""
_LONG_VALUE = 16
_NAME = r"[\w.-]{0,40}(?:key|token|secret|sig|passw|auth|credential)[\w.-]{0,40}|code"
_SECRET_NAME = re.compile(rf"(?i){_NAME}")
_PARAMETER = re.compile(rf"(?i)(?<=[?&;])({_NAME})=[^&#\s'\"<>]+")
# A database's user is no secret, its password is; a server's user may be the token itself.
_LOGIN = re.compile(r"(?i)(?:(?<=http://)|(?<=https://))[^\s/?#'\"<>]*@|(?<=://)[^\s/?#'\"<>:@]*:[^\s/?#'\"<>]*@")
_HEADER = re.compile(r"(?i)\b(basic|bearer)(\s+)[\w+/=.~-]{16,}")


class Secrets:
    """What must not be told, and takes it out of texts."""

    def __init__(self, *secrets: str) -> None:
        spellings = {spelling for secret in secrets if secret for spelling in _spellings(secret)}
        # The longest first, so that no part of one is left behind another.
        ordered = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
        whole = (re.escape(text) if len(text) >= _LONG else rf"(?<!\w){re.escape(text)}(?!\w)" for text in ordered)
        self._pattern = re.compile("|".join(whole)) if ordered else None
        # One of digits alone could be a part of any number, and what is left of that would be no JSON.
        self._long = [text.encode() for text in ordered if len(text) >= _LONG and not text.isdigit()]

    def out_of(self, message: str) -> str:
        """A message without them, and without whatever else looks like a secret."""
        return redacted(message if self._pattern is None else self._pattern.sub(HIDDEN, message))

    def out_of_body(self, raw: bytes) -> bytes:
        """What a server sent, without them; still JSON where it was."""
        for spelling in self._long:
            if spelling in raw:
                raw = raw.replace(spelling, HIDDEN.encode())
        return raw

    def out_of_value(self, value: Any, raw: bytes) -> Any:
        """A parsed answer without them, where its text may have spelt them with escapes."""
        return self._cleaned(value) if self._long and b"\\u" in raw else value

    def _cleaned(self, value: Any) -> Any:
        if isinstance(value, str):
            for spelling in self._long:
                value = value.replace(spelling.decode(), HIDDEN)
            return value
        if isinstance(value, list):
            return [self._cleaned(entry) for entry in value]
        if isinstance(value, dict):
            return {self._cleaned(key): self._cleaned(entry) for key, entry in value.items()}
        return value


def redacted(text: str) -> str:
    """A text without what looks like a secret: logins and key-like parameters of addresses, authorisation headers."""
    text = _PARAMETER.sub(rf"\1={HIDDEN}", _LOGIN.sub("", text))
    return _HEADER.sub(rf"\1\2{HIDDEN}", text)


def secrets_of(address: str) -> Iterator[str]:
    """The secrets that stand in an address: its login, password, and parameters that are named or look like a key."""
    parts = urlsplit(address)
    login = parts.netloc.rpartition("@")[0]
    yield from (login, unquote(login), unquote(login.partition(":")[2]))
    for name, value in parse_qsl(parts.query):
        if _SECRET_NAME.fullmatch(name) or len(value) >= _LONG_VALUE:
            yield value


def shown_address(address: str) -> str:
    """An address without user, password and query, even where it is none."""
    try:
        parts = urlsplit(address)
    except ValueError:  # brackets that are not closed, say
        return address.partition("://")[0] + "://…"
    if not parts.netloc:
        return re.split(r"[?#]", address, maxsplit=1)[0].rpartition("@")[2]
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _spellings(secret: str) -> Iterable[str]:
    yield secret
    for safe in ("", "/"):
        yield from _either_case(quote(secret, safe=safe))
    yield from _either_case(quote_plus(secret))
    for plain in (True, False):
        escaped = as_json(secret, ensure_ascii=plain)[1:-1]
        for once in (escaped, escaped.replace("/", "\\/")):
            yield from (once, as_json(once)[1:-1])  # a message may quote what was quoted already
    yield from _base64(secret.encode())


def _either_case(encoded: str) -> Iterable[str]:
    return encoded, re.sub("%..", lambda code: code.group().lower(), encoded)


def _base64(secret: bytes) -> Iterable[str]:
    """How a secret may stand in Base64: alone, and within a longer text, wherever it begins in a group of three bytes.

    Characters that hold bits of its neighbours too are left out.
    """
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield from (encode(secret).decode(), encode(secret).decode().rstrip("="))
        for before, mixed in ((0, 0), (1, 2), (2, 3)):
            whole = encode(bytes(before) + secret).decode()[mixed : (before + len(secret)) * 8 // 6]
            if len(whole) >= _LONG:
                yield whole
