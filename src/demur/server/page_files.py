"""The pages: `/login`, `/review`, `/status`, where `/` leads to, and the files that they use.

The files of the folder `pages` are read when the service starts, and found by their whole names: no request opens one.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from demur.server.access.access import allowed
from demur.server.access.security_headers import OF_PAGES
from demur.server.errors import ApiError

_FOLDER = Path(__file__).with_name("pages")
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FILES = {file.name: file.read_bytes() for file in sorted(_FOLDER.iterdir()) if file.suffix in _KINDS}
ROLE_OF = {"login": None, "review": "review", "status": "review"}
"""Who may open a page; None: everybody."""
router = APIRouter(include_in_schema=False)


async def page(request: Request) -> Response:
    """A page; whoever may not see it is asked to log in."""
    name = request.url.path.strip("/")
    if f"{name}.html" not in FILES:
        raise _not_found(request)
    role = ROLE_OF[name]
    if role is not None:
        try:
            await allowed(request, role)
        except ApiError as error:
            if error.code not in ("missing_api_key", "role_missing"):
                raise
            return RedirectResponse(f"/login?then={name}", 303)
    return _file(f"{name}.html")


for _name in ROLE_OF:
    router.add_api_route(f"/{_name}", page, methods=["GET"])


@router.get("/")
async def start() -> Response:
    """The address alone leads to the pages."""
    return RedirectResponse("/status", 303)


@router.get("/pages/{name}")
async def file(request: Request, name: str) -> Response:
    """A style or a script; nothing in them is secret."""
    if name not in FILES or name.endswith(".html"):
        raise _not_found(request)
    return _file(name)


def _file(name: str) -> Response:
    kind = _KINDS[Path(name).suffix]
    return Response(FILES[name], media_type=kind, headers={"Content-Security-Policy": OF_PAGES})


def _not_found(request: Request) -> ApiError:
    return ApiError(404, f"there is no {request.url.path[:200]!r} here")
