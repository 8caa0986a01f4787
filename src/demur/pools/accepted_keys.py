"""The right answers to problems whose votes were held on arrays, given as keys beside them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.records import is_nothing
from demur.voting.codes import CodedAnswers

_SEVERAL = (list, tuple, set, frozenset)


@dataclass(frozen=True, eq=False)
class AcceptedKeys:
    """One key per problem as an array of whole numbers, or else a set of keys for each."""

    keys: NDArray[np.integer[Any]] | Sequence[Collection[Any]]

    @classmethod
    def of(cls, gold: Any, rows: int) -> AcceptedKeys:
        """From one right answer per problem, or a list of several for some or all."""
        if isinstance(gold, (str, bytes)) or not hasattr(gold, "__len__"):
            raise InvalidValue(f"gold must hold the right answer to each of the {rows} problems, got {gold!r:.60}")
        if len(gold) != rows:
            raise InvalidValue(f"gold must hold the right answer to each of the {rows} problems, got {len(gold)}")
        if isinstance(gold, np.ndarray) and gold.ndim == 1 and np.issubdtype(gold.dtype, np.integer):
            if rows and gold.min() < 0:
                row = int(np.argmin(gold))
                raise InvalidValue(f"gold must be an answer; problem {row} has {gold[row]}, which is none")
            return cls(gold)
        listed = gold.tolist() if isinstance(gold, np.ndarray) else gold
        several = [frozenset(entry) if isinstance(entry, _SEVERAL) else frozenset([entry]) for entry in listed]
        for row, keys in enumerate(several):
            if not keys or any(is_nothing(key) for key in keys):
                raise InvalidValue(f"gold must be an answer; problem {row} has {listed[row]!r:.60}, which is none")
        return cls(several)

    def take(self, rows: NDArray[np.intp]) -> AcceptedKeys:
        """Those of some problems, in that order."""
        if isinstance(self.keys, np.ndarray):
            return AcceptedKeys(self.keys[rows])
        return AcceptedKeys([self.keys[row] for row in rows.tolist()])

    def label(self, winners: NDArray[Any], correct: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Whether each winner is right; raises where labels that were given too say otherwise."""
        if isinstance(self.keys, np.ndarray):
            right = np.asarray(winners == self.keys, dtype=np.bool_)
        else:
            pairs = zip(winners.tolist(), self.keys, strict=True)
            right = np.array([key in accepted for key, accepted in pairs], dtype=np.bool_)
        if correct is not None and (other := np.flatnonzero(right != correct)).size:
            raise InvalidValue(f"gold and correct disagree on vote {other[0]}", "give one of them")
        return right

    def among(self, answers: CodedAnswers) -> NDArray[np.bool_]:
        """Which entries of a table of answers are right; it has a row for each problem."""
        if answers.pools is None and isinstance(self.keys, np.ndarray):
            return np.asarray(answers.codes == self.keys[:, None])
        right = np.zeros(answers.codes.shape, dtype=np.bool_)
        pools: Any = answers.codes.tolist() if answers.pools is None else answers.pools
        for row, (pool, accepted) in enumerate(zip(pools, self._sets(), strict=True)):
            right[row, : len(pool)] = [key in accepted for key in pool]
        return right

    def _sets(self) -> Sequence[Collection[Any]]:
        return [{key} for key in self.keys.tolist()] if isinstance(self.keys, np.ndarray) else self.keys
