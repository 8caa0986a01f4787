"""How answers are written: which spelling stands for a key, and which look like no answer. Pure counting."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

_SUSPECT = re.compile(r"(?i)none|null|nan|n/?a|no[ _-]?answer[.!]?|unknown|\?+|_+|-+|\[?invalid\]?")


def spellings_by_key(key_of: Mapping[str | None, str | None], times: Mapping[str | None, int]) -> dict[str, str]:
    """How each key is written: as most paths have it, then the shortest way."""
    best: dict[str, tuple[int, int, str]] = {}
    for text, key in key_of.items():
        if key is not None and text is not None:
            rank = (-times[text], len(text), text)
            best[key] = min(best.get(key, rank), rank)
    return {key: text for key, (_, _, text) in best.items()}


def spelling_is_settled(key: str, keys: Sequence[str | None], texts: Sequence[str | None], left: int) -> bool:
    """Whether the answer behind a key will be written as it is now, however `left` more paths write it."""
    times = Counter(text for own, text in zip(keys, texts, strict=True) if own == key and text is not None)
    first, *others = sorted(times, key=lambda text: (-times[text], len(text), text))
    if times[first] <= left:  # a way to write it that no path has yet may draw level, and be shorter
        return False
    return all((-times[first], len(first), first) < (-times[text] - left, len(text), text) for text in others)


def suspects_among(counts: Mapping[str, int], named: Collection[str]) -> dict[str, int]:
    """The spellings that look like "no answer" and were not named, the most frequent first."""
    suspects = ((text, paths) for text, paths in counts.items() if _SUSPECT.fullmatch(text) and text not in named)
    return dict(sorted(suspects, key=lambda suspect: (-suspect[1], suspect[0])))
