"""Whether a score can do anything in a vote: told from the scores alone, without a label.

A score that is the same for all paths of a pool, or sits at one end of its range, tells paths apart as little as none;
one whose exp(q) hands a pool to a single path turns the vote into best-of-m (theory, departure F).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from demur.voting.codes import code_answers
from demur.voting.path_scores import as_scores
from demur.voting.recipe import Recipe
from demur.voting.rows import KeyRows, ScoreRows
from demur.voting.weights import Uniform

_MOST = 0.5
_END, _TAIL = 1e-3, 0.05
_ONE_PATH = 0.9
_NEARLY_EVEN = 1.1


@dataclass(frozen=True)
class ScoreHealth:
    """Shares between 0 and 1; of pools with at least two paths, or of all paths."""

    constant: float
    """Pools whose paths all have the same score."""
    at_top: float
    """Paths within a thousandth of the range (of the middle 90 % of values) from its top."""
    at_bottom: float
    one_path: float
    """Pools of three paths or more in which one has more than 90 % of the weight."""
    even: float
    """Pools whose largest weight is less than 1.1 times the smallest, the constant ones left out."""

    @classmethod
    def of(cls, scores: Sequence[Sequence[float]], recipe: Recipe) -> ScoreHealth:
        """The health of scores that are voted with in a given way."""
        table = code_answers(_one_answer(scores))
        values = as_scores(scores, table)
        constant, wide, even, pools, wide_pools = 0, 0, 0, 0, 0
        every = []
        for rows, width in table.blocks():
            block = values[rows, :width]
            every.append(block.ravel())
            if width < 2:
                continue
            same = block.max(axis=1) == block.min(axis=1)
            constant, pools = constant + int(same.sum()), pools + len(block)
            if isinstance(recipe.weight, Uniform):
                continue
            weights = recipe.weights(np.asfortranarray(block), rows)
            even += int((~same & (weights.min(axis=1) * _NEARLY_EVEN > 1)).sum())
            if width > 2:
                wide += int((weights.sum(axis=1) * _ONE_PATH < 1).sum())
                wide_pools += len(block)
        flat = np.concatenate(every)
        # Quantiles, so that a few values far off (floors, say) do not stretch the range.
        low, high = np.quantile(flat, [_TAIL, 1 - _TAIL]).tolist()
        near = _END * (high - low)
        return cls(
            constant=constant / max(pools, 1),
            at_top=float((flat >= high - near).mean()),
            at_bottom=float((flat <= low + near).mean()),
            one_path=wide / max(wide_pools, 1),
            even=even / max(pools - constant, 1),
        )

    def warnings(self, name: str) -> list[str]:
        """What is the matter with it, and what would help; nothing where nothing is."""
        warnings = []
        if self.constant > _MOST:
            warnings.append(
                f"the score {name!r} is the same for all paths in {self.constant:.0%} of the pools: there the vote is "
                "a majority vote; choose another score"
            )
        end, share = max((("top", self.at_top), ("bottom", self.at_bottom)), key=lambda end: end[1])
        if share > _MOST and self.constant <= _MOST:
            warnings.append(
                f"the score {name!r} is saturated: {share:.0%} of the paths lie at the {end} of its range; if it is "
                "a probability, take the log-probability or the raw reward in its place, else the normaliser rank"
            )
        if self.one_path > _MOST:
            warnings.append(
                f"the score {name!r} is so wide that one path has more than {_ONE_PATH:.0%} of the weight in "
                f"{self.one_path:.0%} of the pools: the vote is best-of-m; use the normaliser pool_z, or a smaller "
                "beta: the weight exponential:BETA"
            )
        if self.even > _MOST and self.constant <= _MOST:
            warnings.append(
                f"the score {name!r} is so narrow that weights differ by less than a tenth in {self.even:.0%} of the "
                "pools: the vote is nearly a majority vote; use the normaliser pool_z"
            )
        return warnings


def _one_answer(scores: Sequence[Sequence[float]]) -> Any:
    """A table in which all paths give one answer."""
    if isinstance(scores, ScoreRows):
        return KeyRows(np.zeros(len(scores.flat), dtype=np.int8), scores.sizes, np.array(["", None], dtype=object))
    return [[0] * len(pool) for pool in scores]
