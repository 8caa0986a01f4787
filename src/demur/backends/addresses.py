"""Addresses of servers: who names one decides whether a key goes there.

A key of the environment goes to an address from the environment, from the command line or from Python; to one that a
file names it goes once the user has named that address too.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote, urlsplit, urlunsplit

from demur.backends.redaction import shown_address
from demur.errors import BackendError, InvalidValue
from demur.foreign_code import FromFile

_PORTS = {"http": 80, "https": 443, "postgresql": 5432}


def file_address(address: str | None, trusted: Iterable[str] = ()) -> str | None:
    """An address that a file names: marked as such, unless it is among those that the user trusts."""
    if address is None or any(same_address(address, one) for one in trusted):
        return address
    return FromFile(address, "trust_address")


def same_address(one: str, other: str) -> bool:
    """Whether two addresses are one, whatever login and query they are written with."""
    try:
        return _place(one) == _place(other)
    except ValueError:  # no address at all
        return False


def _place(address: str) -> tuple[object, ...]:
    parts = urlsplit(address.strip())
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme), parts.path.rstrip("/")


def is_web_address(address: str) -> bool:
    """Whether an address can be asked by HTTP."""
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:  # brackets that are not closed, a port that is none
        return False


def without_login(address: str) -> tuple[str, str]:
    """An address as it is asked, and the user and password that stood in it."""
    parts = urlsplit(address)
    login, _, host = parts.netloc.rpartition("@")
    return urlunsplit((parts.scheme, host, parts.path, parts.query, "")), unquote(login)


def usable_key(key: str, variable: str) -> str:
    """A key as a header can carry it; an error that does not repeat it where none can."""
    if not (key.isascii() and key.isprintable()):
        raise BackendError(
            f"{variable} holds a line break, or another character that no key has",
            f"set {variable} to the key alone, without the end of its line",
        )
    return key


def refuse_unconfirmed(place: str | None, what: str) -> None:
    """Raise where a file names a database: its driver would take a password of the environment there."""
    if isinstance(place, FromFile):
        shown = shown_address(place)
        raise InvalidValue(
            f"{what} is {shown}, which a file names; a password of the environment could go there",
            f"confirm it: {{{place.repeat}={shown}}}",
        )
