"""Blocks of code in a page of the docs: what the tests run, and what the pictures are drawn by."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its title if it has one, and its text."""

    language: str
    title: str | None
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        yield Block(found[1], found[2], found[3], text.count("\n", 0, found.start()) + 2)
