"""The cookie of a login: for this service's own pages, out of reach of their scripts and of other sites."""

from __future__ import annotations

from fastapi import Request, Response

_LONGEST = 100


def cookie_name(request: Request) -> str:
    """Over https a name that browsers take from this very host alone, and only over https."""
    return "__Host-demur-login" if _is_https(request) else "demur-login"


def token_in(request: Request) -> str:
    """What a request's cookie holds; empty where it has none that could be ours."""
    token = request.cookies.get(cookie_name(request), "")
    return token if len(token) <= _LONGEST else ""


def set_cookie(request: Request, response: Response, token: str, seconds: int) -> None:
    response.set_cookie(
        cookie_name(request),
        token,
        max_age=seconds,
        path="/",
        secure=_is_https(request),
        httponly=True,
        samesite="strict",
    )


def drop_cookie(request: Request, response: Response) -> None:
    set_cookie(request, response, "", 0)


def _is_https(request: Request) -> bool:
    return request.url.scheme == "https"
