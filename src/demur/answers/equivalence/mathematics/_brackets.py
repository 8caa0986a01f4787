"""Brackets: what stands outside of them, and whether one encloses a whole text."""

from __future__ import annotations


def split(text: str, separators: str) -> list[str]:
    """Split at separators outside brackets; blank parts vanish."""
    if not any(separator in text for separator in separators):
        return [text.strip()] if text.strip() else []
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth = max(0, depth - 1)
        elif character in separators and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def closes(text: str) -> bool:
    """Whether the first bracket is closed by the last."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            return position == len(text) - 1
    return False
