"""Decisions as lines and columns of a file without a record for each: the same file for a fraction of the work.

Only plain decisions on the pools of a table: without groups, weights, answer sets and a look at the question. Rows
that are out of the ordinary are left to records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from json.encoder import encode_basestring
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.calibration.choices import choices_of
from demur.files.strict_json import as_json
from demur.policy.decisions import Decisions
from demur.pools.frame_table import Spellings
from demur.voting.answer_counts import AnswerCounts, AnswerTable

_p_value = lru_cache(1 << 16)(float.__repr__)


@dataclass(frozen=True, eq=False)
class DecisionColumns:
    """Plain decisions on all pools of a table."""

    decided: Decisions
    table: AnswerTable
    answers: NDArray[Any]
    """How answers are written, by code; None at the end."""
    quoted: NDArray[Any]
    """The same as JSON."""
    explained: dict[tuple[Any, ...], tuple[str, str]] = field(default_factory=dict)
    """The explanations so far, by all that they depend on, and the same as JSON."""

    @classmethod
    def of(cls, decided: Decisions) -> DecisionColumns | None:
        """None where decisions must be made one by one."""
        votes, spelled = decided.votes, decided.votes.written
        beyond = (votes.groups, votes.importance, decided.likeness, decided.sets)
        if type(decided) is not Decisions or any(one is not None for one in beyond) or votes.ids is None:
            return None
        if votes.recipe.names[0] != "share" or np.isnan(votes.key).any() or not isinstance(spelled, Spellings):
            return None
        table, answers = AnswerTable.of(votes, spelled.texts), spelled.texts.keys
        try:
            "".join([*answers[:-1].tolist(), *votes.ids]).encode()
        except UnicodeEncodeError:  # half a surrogate pair, as models sometimes leave
            return None
        quoted = np.array([*map(encode_basestring, answers[:-1].tolist()), "null"], dtype=object)
        return None if table is None else cls(decided, table, answers, quoted)

    def some(self, start: int, end: int) -> SomeColumns:
        return SomeColumns(self, start, end)


@dataclass(frozen=True, eq=False)
class SomeColumns:
    """Some of them, from a row to another."""

    every: DecisionColumns
    start: int
    end: int

    def cells(self) -> dict[str, Any]:
        """Their columns in a table; those that plain decisions have nothing in are left out."""
        votes, rows = self.every.decided.votes, slice(self.start, self.end)
        sizes = self.sizes.tolist()
        return {
            "id": self._ids,
            "decision": self._decisions,
            "answer": self.every.answers[self._answer].tolist(),
            "confidence": votes.confidence[rows],
            "threshold": [self._thresholds[size][0] for size in sizes],
            "threshold_key": [self._thresholds[size] for size in sizes],
            "p_value": self.every.decided.p_value[rows],
            "alpha": np.full(len(sizes), float(self.every.decided.rule.alpha)),
            "support": self._support,
            "n_paths": self.sizes,
            "without_answer": self._without_answer,
            "shares": self._shares,
            **{f"key.{name}": votes.key[rows, at] for at, name in enumerate(votes.recipe.names)},
            "explanation": [text for text, _ in self._explanations],
        }

    def lines(self) -> Iterator[str]:
        """Each as a line of JSON."""
        sizes, alpha = self.sizes.tolist(), as_json(self.every.decided.rule.alpha)
        thresholds = {size: (as_json(key[0]), as_json(key)) for size, key in self._thresholds.items()}
        confidence, *others = map(_numbers, self._key.T)
        names = [encode_basestring(name).replace("%", "%%") for name in self.every.decided.votes.recipe.names]
        key = "{" + ", ".join(f"{name}: %s" for name in names) + "}"
        columns: dict[str, Iterable[Any]] = {
            "id": map(encode_basestring, self._ids),
            "decision": map(encode_basestring, self._decisions),
            "answer": self.every.quoted[self._answer].tolist(),
            "confidence": confidence,
            "threshold": [thresholds[size][0] for size in sizes],
            "threshold_key": [thresholds[size][1] for size in sizes],
            "p_value": map(_p_value, self.every.decided.p_value[self.start : self.end].tolist()),
            "alpha": [alpha] * len(sizes),
            "support": self._support,
            "n_paths": sizes,
            "without_answer": self._without_answer.tolist(),
            "shares": self._shares,
            "key": [key % row for row in zip(confidence, *others, strict=True)],
            "explanation": [text for _, text in self._explanations],
        }
        form = "{" + ", ".join(f'"{name}": %s' for name in columns) + "}"
        return (form % row for row in zip(*columns.values(), strict=True))

    @property
    def odd(self) -> list[int]:
        """Those, counted from the first, that must be made as records."""
        unscored = self.every.decided.unscored[self.start : self.end]
        return np.flatnonzero(self._counts.respelled | unscored).tolist()

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        return self.every.decided.votes.n_paths[self.start : self.end]

    @cached_property
    def _key(self) -> NDArray[np.float64]:
        return self.every.decided.votes.key[self.start : self.end]

    @cached_property
    def _ids(self) -> list[str]:
        return list((self.every.decided.votes.ids or ())[self.start : self.end])

    @cached_property
    def _counts(self) -> AnswerCounts:
        return self.every.table.counts(self.start, self.end)

    @cached_property
    def _thresholds(self) -> Mapping[int, tuple[float, ...]]:
        """By the number of paths."""
        return {size: self.every.decided.rule.threshold_of(size) for size in np.unique(self.sizes).tolist()}

    @cached_property
    def _winner(self) -> NDArray[np.intp]:
        """How each winner is written, −1 where a pool has no answer."""
        winner = np.full(self.end - self.start, -1)
        winner[self._counts.pool[::-1]] = self._counts.text[::-1]
        return winner

    @cached_property
    def _answer(self) -> NDArray[np.intp]:
        return np.where(self.every.decided.answered[self.start : self.end], self._winner, -1)

    @cached_property
    def _decisions(self) -> list[str]:
        return np.where(self._answer >= 0, "answer", "abstain").tolist()  # type: ignore[no-any-return]

    @cached_property
    def _without_answer(self) -> NDArray[np.intp]:
        own = np.bincount(self._counts.pool, weights=self._counts.paths, minlength=len(self.sizes))
        return self.sizes - own.astype(np.intp)

    @cached_property
    def _support(self) -> list[str]:
        return self._objects(self._counts.paths.tolist())

    @cached_property
    def _shares(self) -> list[str]:
        return self._objects(map(float.__repr__, self._counts.share.tolist()))

    def _objects(self, values: Iterable[object]) -> list[str]:
        """A JSON object for each pool, of a value for each of its answers."""
        fields = [
            f"{answer}: {value}"
            for answer, value in zip(self.every.quoted[self._counts.text].tolist(), values, strict=True)
        ]
        places = np.searchsorted(self._counts.pool, np.arange(len(self.sizes) + 1)).tolist()
        return [f"{{{', '.join(fields[first:last])}}}" for first, last in pairwise(places)]

    @cached_property
    def _explanations(self) -> list[tuple[str, str]]:
        """Each sentence, which is made once for all decisions that it is the same for."""
        decided, explained = self.every.decided, self.every.explained
        p_values, answered = decided.p_value[self.start : self.end], decided.answered[self.start : self.end]
        bounds = np.array([self._thresholds[size] for size in self.sizes.tolist()])
        differs = self._key != bounds
        at = np.where(differs.any(axis=1), differs.argmax(axis=1), bounds.shape[1] - 1)  # what a tie is broken by
        shown = map("{:.4g}".format, self._key[np.arange(len(at)), at].tolist())
        says_p = (answered != (p_values <= decided.rule.alpha)) | (choices_of(decided.rule.guarantee) > 1)
        p_shown = (
            f"{value:.4g}" if says else "" for value, says in zip(p_values.tolist(), says_p.tolist(), strict=True)
        )
        unscored = decided.unscored[self.start : self.end]
        listed = (column.tolist() for column in (self.sizes, answered, self._winner >= 0, unscored, at))
        found = []
        for row, kind in enumerate(zip(*listed, shown, p_shown, strict=True), self.start):
            if kind not in explained:
                text = decided[row].explanation
                explained[kind] = text, encode_basestring(text)
            found.append(explained[kind])
        return found


def _numbers(column: NDArray[np.float64]) -> list[str]:
    """Numbers as JSON, which has no infinite ones."""
    texts = list(map(float.__repr__, column.tolist()))
    for row in np.flatnonzero(np.isinf(column)).tolist():
        texts[row] = "null"
    return texts
