"""Where requests come from: this machine or another, this service's own pages or those of another site."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import Request

from demur.server.errors import ApiError

HARMLESS = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing."""


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether a host, as an address or a name without its port, is this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def refuse_strangers(request: Request) -> None:
    """Raise where a request to a service without keys comes from elsewhere, or through a name of somebody else's.

    A site may have its own name point to this machine; then a browser here takes us for that site. Its requests bear
    that name in their Host.
    """
    host = _host_in("//" + request.headers.get("host", ""))
    peer = request.client
    if not is_loopback(host) or (peer is not None and not is_loopback(peer.host)):
        raise ApiError(
            403, "without keys this service is for its own machine alone; make one with `demur keys add`",
            code="only_this_machine",
        )  # fmt: skip
    if request.method not in HARMLESS:
        refuse_other_sites(request)


def refuse_other_sites(request: Request) -> None:
    """Raise where the page of another site has a browser send a request. Programs say nothing of pages, and may."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        foreign = site not in ("same-origin", "none")
    else:
        foreign = origin is not None and origin.partition("://")[2] != request.headers.get("host")
    if foreign:
        raise ApiError(403, "the page of another site may not send this", code="other_site")


@lru_cache(maxsize=256)
def _host_in(address: str) -> str:
    """The host of an address; nothing where it is none."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:  # a bracket that is not closed, say
        return ""
