"""Answers and scores of a table of paths, column by column: what `fields.read_table` reads path by path.

An answer is compared once for each way it is written, not once for each path. Whatever is out of the ordinary
(structured answers, scores that are missing and should not be) is left to the reading path by path, which says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.answers.relations import as_written
from demur.errors import PoolFileError
from demur.pools.frame_rows import DIGEST, OF_PROBLEM, PATH, PROBLEM, SCORE
from demur.pools.frames import FramePools
from demur.records import Problem, names_labels, question_digest
from demur.voting.cases import GroupColumn
from demur.voting.recipe import DROP, Unscored
from demur.voting.rows import KeyRows, ScoreRows
from demur.voting.text_columns import DigestColumn

Codes = NDArray[Any]
Spell = Callable[[Mapping[str | None, str | None], Mapping[str | None, int]], dict[str, str]]
_KNOWN = (*PROBLEM, *OF_PROBLEM, *PATH, DIGEST)
_NO_FIELDS = (None, "", "{}")


@dataclass(frozen=True)
class Surfaces:
    """Every answer as it is written, stripped: a code per path, pool by pool, −1 where there is none."""

    codes: Codes
    texts: list[str]
    counts: dict[str, int]


def surfaces_of(pools: FramePools, field: str) -> Surfaces | None:
    """The answers in a column; None where reading path by path has more to say of them."""
    names = pools.columns.names
    if names_labels(field) or field not in names:
        return None
    if field != "answer" and ("path_extra" in names or field in _KNOWN or field.startswith(SCORE)):
        return None
    encoded = pools.columns.encoded(field)
    if encoded is None:
        return None
    codes, values = pools.of_paths(encoded[0]), encoded[1]
    # Where nobody has an answer, it matters whether paths have the field at all.
    if (field != "answer" or "has_answer" in names) and (codes < 0).all():
        return None
    code: dict[str, int] = {}
    place = np.full(len(values) + 1, -1, dtype=codes.dtype)  # the last is where −1 looks
    for at, value in enumerate(values):
        text = value.strip() if isinstance(value, str) else (as_written(value) or "").strip()
        if text in ("inf", "-inf") and isinstance(value, float):
            return None
        if text:
            place[at] = code.setdefault(text, len(code))
    changed = not np.array_equal(place[:-1], np.arange(len(values)))
    codes = place[codes] if changed else codes
    seen = np.zeros(len(code) + 1, dtype=np.int64)
    for start in range(0, len(codes), 1 << 20):
        seen += np.bincount(codes[start : start + (1 << 20)] + 1, minlength=len(seen))
    counts = zip(code, seen[1:].tolist(), strict=True)
    return Surfaces(codes, list(code), {text: paths for text, paths in counts if paths})


def score_column(pools: FramePools, name: str) -> NDArray[np.float64] | None:
    """The score of every path, pool by pool, NaN where it has none; None where it is in no column of numbers."""
    columns = pools.columns
    column = SCORE + name if SCORE + name in columns.names else name.removeprefix(".")
    dotted = name.startswith(".") and "." not in column and column not in _KNOWN and "path_extra" not in columns.names
    if column not in columns.names or not (dotted or column.startswith(SCORE)):
        return None
    numbers = None if names_labels(name) else columns.numbers(column)
    values = None if numbers is None else pools.of_paths(numbers)
    if values is None:
        return None
    values = np.where(np.isinf(values), np.nan, values) if np.isinf(values).any() else values
    if column.startswith(SCORE) and "path_extra" in columns.names and "." in name and np.isnan(values).all():
        return None  # then the name is that of a field
    return values


def scores_of(pools: FramePools, name: str, unscored: Unscored) -> tuple[ScoreRows, list[int]] | None:
    """The score of every path and the rows that are left out for want of one; None where something is amiss."""
    values = score_column(pools, name)
    if values is None or not len(values):
        return None
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
    kind_of, problems = pools.kinds
    place = np.full(len(surfaces.texts) + 1, -1, dtype=surfaces.codes.dtype)
    if len(problems) == 1:
        key = key_of(problems[0])
        place[:-1] = [_place(code, text, missing, key) for text in surfaces.texts]
        flat = surfaces.codes if np.array_equal(place[:-1], np.arange(len(place) - 1)) else place[surfaces.codes]
    else:
        flat = np.empty_like(surfaces.codes)
        ends = np.cumsum(pools.sizes)
        order = np.argsort(kind_of, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(kind_of, minlength=len(problems)))[:-1])
        for problem, rows in zip(problems, members, strict=True):
            key = key_of(problem)
            paths = _paths_of(rows, pools.sizes, ends)
            own = surfaces.codes[paths]
            used = np.unique(own)
            for at in used[used >= 0].tolist():
                place[at] = _place(code, surfaces.texts[at], missing, key)
            flat[paths] = place[own]
    keys = np.empty(len(code) + 1, dtype=object)
    keys[:-1] = list(code)
    return KeyRows(flat, pools.sizes, keys)


def _paths_of(rows: NDArray[np.intp], sizes: NDArray[np.intp], ends: NDArray[np.intp]) -> NDArray[np.intp]:
    """The places of all paths of some pools."""
    wide = sizes[rows]
    before = np.concatenate([[0], np.cumsum(wide)[:-1]])
    return np.asarray(np.arange(int(wide.sum())) + np.repeat(ends[rows] - wide - before, wide))


def _place(code: dict[str, int], text: str, missing: set[str], key_of: Callable[[Any], str | None]) -> int:
    key = None if text in missing else key_of(text)
    return -1 if key is None else code.setdefault(key, len(code))


def stored_keys(pools: FramePools, surfaces: Surfaces, missing: set[str]) -> KeyRows | None:
    """The keys that a table has, of the answers that it has too; None where the two do not fit."""
    encoded = pools.columns.encoded("key")
    if encoded is None or not all(isinstance(value, str) for value in encoded[1]):
        return None
    codes, values = pools.of_paths(encoded[0]), encoded[1]
    if ((codes >= 0) & (surfaces.codes < 0)).any():
        return None
    named = [at for at, text in enumerate(surfaces.texts) if text in missing]
    if named:
        codes = np.where(np.isin(surfaces.codes, named), -1, codes).astype(codes.dtype)
    keys = np.empty(len(values) + 1, dtype=object)
    keys[:-1] = values
    return KeyRows(codes, pools.sizes, keys)


def group_column(pools: FramePools, group_of: Callable[[Any, str], Any]) -> GroupColumn:
    """The groups of each problem, in the column `group`; each way to write them is read once."""
    if "group" not in pools.columns.names:
        return GroupColumn([()], np.zeros(len(pools), dtype=np.intp))
    said = pools.said("group")
    if said is None:
        cells = zip(pools.of_problems("group"), pools.ids, strict=True)
        return GroupColumn.of(group_of(cell, identity) for cell, identity in cells)
    codes, values = said
    used, first, place = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)  # as they come
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    rows = zip(used[order].tolist(), first[order].tolist(), strict=True)
    every = GroupColumn.of(None if code < 0 else group_of(values[code], pools.ids[row]) for code, row in rows)
    return GroupColumn(every.kinds, every.codes[rank[place]])


class Spellings(Sequence[dict[str, str]]):
    """How each pool's answers are written, found out for the pools that somebody looks at."""

    def __init__(self, answers: KeyRows, texts: KeyRows, spell: Spell) -> None:
        self._answers, self.texts, self._spell = answers, texts, spell

    @classmethod
    def of(cls, answers: KeyRows, surfaces: Surfaces, spell: Spell) -> Spellings:
        """Of answers, by the ways that they are written."""
        texts = np.array([*surfaces.texts, None], dtype=object)
        return cls(answers, KeyRows(surfaces.codes, answers.sizes, texts), spell)

    def take(self, rows: NDArray[np.intp]) -> Spellings:
        """Of some of the pools, in that order."""
        return Spellings(self._answers.take(rows), self.texts.take(rows), self._spell)

    def cut(self, sizes: NDArray[np.intp]) -> Spellings:
        """Of the first paths of each pool, so many of each."""
        return Spellings(self._answers.cut(sizes), self.texts.cut(sizes), self._spell)

    def __len__(self) -> int:
        return len(self._answers)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return list(map(self._of, self.texts[row], self._answers[row]))
        return self._of(self.texts[row], self._answers[row])

    def __iter__(self) -> Iterator[dict[str, str]]:
        return (self._of(texts, keys) for texts, keys in zip(self.texts, self._answers, strict=True))

    def _of(self, texts: list[Any], keys: list[Any]) -> dict[str, str]:
        key_of = dict(zip(texts, keys, strict=True))
        if len(set(key_of.values())) == len(key_of):  # no key is written in two ways
            return {key: text for text, key in key_of.items() if key is not None and text is not None}
        return self._spell(key_of, Counter(texts))


def digests_of(pools: FramePools, *, fold: bool = False) -> DigestColumn:
    """Of what is asked, where the table says it; with `fold`, of the folded questions, if it holds their texts."""
    names, digest = pools.columns.names, partial(question_digest, fold=fold)
    if DIGEST in names and not ((pools.columns.in_memory or fold) and "question" in names):
        return _stored_digests(pools)
    if "question" not in names and "messages" not in names and _no_extra(pools):
        return DigestColumn.none(len(pools))
    if not any(name in names for name in OF_PROBLEM) and _no_extra(pools):
        codes, values = pools.said("question") or (None, [])
        if codes is not None and all(isinstance(value, str) for value in values):
            digests = DigestColumn.of([*map(digest, values), None])
            return digests.take(codes)
    return DigestColumn.of(digest(problem.question, problem.extra) for problem in pools.problems())


def _no_extra(pools: FramePools) -> bool:
    """Whether problems have no fields but those that are known by name."""
    if "problem_extra" not in pools.columns.names:
        return True
    said = pools.said("problem_extra")
    return said is not None and all(value in _NO_FIELDS for value in said[1])


def _stored_digests(pools: FramePools) -> DigestColumn:
    said = pools.said(DIGEST)
    if said is None or not all(isinstance(value, str) for value in said[1][:1]):
        raise PoolFileError(f"{pools.where}: the column {DIGEST!r} must hold texts", "leave it out, or write it again")
    try:
        return DigestColumn.of([*said[1], None]).take(said[0])
    except (ValueError, TypeError, OverflowError):
        raise PoolFileError(
            f"{pools.where}: the column {DIGEST!r} must hold digests of sixteen hexadecimal digits",
            "leave it out, or write it again",
        ) from None


class Texts(Sequence[str | None]):
    """The texts of questions, which are read when somebody looks at one."""

    def __init__(self, pools: FramePools, rows: NDArray[np.intp] | None = None) -> None:
        self._pools, self._rows = pools, rows
        self._read: list[str | None] | None = None

    def __len__(self) -> int:
        return len(self._pools) if self._rows is None else len(self._rows)

    def __getitem__(self, row: Any) -> Any:
        return self._all()[row]

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._all())

    def take(self, rows: NDArray[np.intp]) -> Texts:
        """Of some of the problems, in that order."""
        return Texts(self._pools, rows if self._rows is None else self._rows[rows])

    def _all(self) -> list[str | None]:
        if self._read is None:
            names = self._pools.columns.names
            if "question" not in names and "messages" not in names and _no_extra(self._pools):
                self._read = [None] * len(self)
            else:
                rows = np.arange(len(self._pools)) if self._rows is None else self._rows
                order = np.argsort(rows, kind="stable")
                self._read = [None] * len(rows)
                for place, problem in zip(order.tolist(), self._pools.problems(rows[order]), strict=True):
                    self._read[place] = problem.question
        return self._read
