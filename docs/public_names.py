"""Part of the site's build: every public name of demur has its place on exactly one page of the API reference."""

from __future__ import annotations

import logging
import re
from collections import Counter
from typing import Any

import demur

_log = logging.getLogger("mkdocs.hooks.public_names")  # a warning there fails a strict build
_DIRECTIVE = re.compile(r"^::: demur\.(\w+)", re.MULTILINE)  # of a module, or of what is in it
_placed: Counter[str] = Counter()


def on_pre_build(**_: Any) -> None:
    """Start afresh: a served site is built many times."""
    _placed.clear()


def on_page_markdown(markdown: str, **_: Any) -> None:
    """Note the names that a page shows."""
    _placed.update(set(_DIRECTIVE.findall(markdown)))


def on_post_build(**_: Any) -> None:
    """Say which names are nowhere, or twice."""
    for name in demur.__all__:
        if _placed[name] != 1:
            _log.warning(
                "the public name demur.%s stands on %d pages of docs/reference, not on one", name, _placed[name]
            )
