"""Answers and scores of a table of paths, column by column: what `fields.read_table` reads path by path.

An answer is compared once for each way it is written, not once for each path. Whatever is out of the ordinary
(structured answers, scores that are missing and should not be) is left to the reading path by path, which says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.answers.relations import as_written
from demur.pools.frames import OF_PROBLEM, PATH, PROBLEM, SCORE, FramePools
from demur.records import Problem, names_labels, question_digest
from demur.voting.recipe import DROP, Unscored
from demur.voting.rows import KeyRows, ScoreRows

Codes = NDArray[np.intp]
Spell = Callable[[Mapping[str | None, str | None], Mapping[str | None, int]], dict[str, str]]


@dataclass(frozen=True)
class Surfaces:
    """Every answer as it is written, stripped: a code per path, pool by pool, −1 where there is none."""

    codes: Codes
    texts: list[str]
    counts: dict[str, int]


def surfaces_of(pools: FramePools, field: str) -> Surfaces | None:
    """The answers in a column; None where reading path by path has more to say of them."""
    names = pools.columns.names
    if "has_answer" in names or "path_extra" in names or names_labels(field) or field not in names:
        return None
    if field != "answer" and (field in (*PROBLEM, *OF_PROBLEM, *PATH) or field.startswith(SCORE)):
        return None
    encoded = pools.columns.encoded(field)
    if encoded is None or (field != "answer" and (encoded[0] < 0).all()):
        return None
    codes, values = encoded
    code: dict[str, int] = {}
    place = np.full(len(values) + 1, -1, dtype=np.intp)  # the last is where −1 looks
    for at, value in enumerate(values):
        text = value.strip() if isinstance(value, str) else (as_written(value) or "").strip()
        if text in ("inf", "-inf") and isinstance(value, float):
            return None
        if text:
            place[at] = code.setdefault(text, len(code))
    codes = place[codes if pools.order is None else codes[pools.order]]
    seen = np.bincount(codes[codes >= 0], minlength=len(code)).tolist()
    return Surfaces(codes, list(code), dict(zip(code, seen, strict=True)))


def scores_of(pools: FramePools, name: str, unscored: Unscored) -> tuple[ScoreRows, list[int]] | None:
    """The score of every path and the rows that are left out for want of one; None where something is amiss."""
    columns = pools.columns
    column = SCORE + name if SCORE + name in columns.names else name.removeprefix(".")
    dotted = name.startswith(".") and "." not in column and column not in (*PROBLEM, *OF_PROBLEM, *PATH)
    if column not in columns.names or "path_extra" in columns.names or not (dotted or column.startswith(SCORE)):
        return None
    values = None if names_labels(name.removeprefix(".")) else columns.numbers(column)
    if values is None or np.isinf(values).any():
        return None
    values = values if pools.order is None else values[pools.order]
    lacking = np.isnan(values)
    if not lacking.any():
        return ScoreRows(values, pools.sizes), []
    if unscored is None or lacking.all():
        return None
    if unscored != DROP:
        return ScoreRows(np.where(lacking, float(unscored), values), pools.sizes), []
    pool_of = np.repeat(np.arange(len(pools)), pools.sizes)
    left_out = np.unique(pool_of[lacking])
    return ScoreRows(np.where(np.isin(pool_of, left_out), 0.0, values), pools.sizes), left_out.tolist()


def keys_of(
    pools: FramePools, surfaces: Surfaces, missing: set[str], key_of: Callable[[Problem], Callable[[Any], str | None]]
) -> KeyRows:
    """The key of every path; what a question says of its answers counts for its own."""
    code: dict[str, int] = {}
    if pools.plain_problems:
        key = key_of(Problem(""))
        place = np.array([_place(code, text, missing, key) for text in surfaces.texts] + [-1], dtype=np.intp)
        flat = place[surfaces.codes]
    else:
        flat, at = np.empty(len(surfaces.codes), dtype=np.intp), 0
        for pool, size in zip(pools, pools.sizes.tolist(), strict=True):
            key, part = key_of(pool.problem), surfaces.codes[at : at + size].tolist()
            places = {own: -1 if own < 0 else _place(code, surfaces.texts[own], missing, key) for own in set(part)}
            flat[at : at + size] = [places[own] for own in part]
            at += size
    keys = np.empty(len(code) + 1, dtype=object)
    keys[:-1] = list(code)
    return KeyRows(flat, pools.sizes, keys)


def _place(code: dict[str, int], text: str, missing: set[str], key_of: Callable[[Any], str | None]) -> int:
    key = None if text in missing else key_of(text)
    return -1 if key is None else code.setdefault(key, len(code))


class Spellings(Sequence[dict[str, str]]):
    """How each pool's answers are written, found out for the pools that somebody looks at."""

    def __init__(self, answers: KeyRows, surfaces: Surfaces, spell: Spell) -> None:
        self._answers, self._spell = answers, spell
        texts = np.array([*surfaces.texts, None], dtype=object)
        self._texts = KeyRows(surfaces.codes, answers.sizes, texts)

    def __len__(self) -> int:
        return len(self._answers)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[at] for at in range(*row.indices(len(self)))]
        return self._of(self._texts[row], self._answers[row])

    def __iter__(self) -> Iterator[dict[str, str]]:
        return (self._of(texts, keys) for texts, keys in zip(self._texts, self._answers, strict=True))

    def _of(self, texts: list[Any], keys: list[Any]) -> dict[str, str]:
        return self._spell(dict(zip(texts, keys, strict=True)), Counter(texts))


def digests_of(pools: FramePools) -> list[str | None]:
    """Of what is asked, where the table says it."""
    if pools.plain_problems:
        return [None] * len(pools)
    return [question_digest(pool.problem.question, pool.problem.extra) for pool in pools]
