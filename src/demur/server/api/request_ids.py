"""What a request is known by."""

from __future__ import annotations

import secrets


def new_id() -> str:
    """A name for a request, from now on."""
    return "req_" + secrets.token_hex(16)
