"""Pools with a known truth, for demonstrations, tests and planning.

The model, per problem:
    difficulty    θ ~ Beta(a, b)            the chance that a path is right; its mean is a / (a + b)
    wrong answers p ~ Dirichlet(c, …, c)    how a wrong path chooses among the wrong answers: small c, few favourites
    score         q ~ Normal(0, 1)          plus `separation` where the path is right
    no answer     with probability `missing`, whatever the path
Which of the answers is gold is drawn at random, so nothing that prefers small keys prefers the truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.errors import InvalidValue
from demur.records import Path, Pool, Problem

SCORE = "simulated"


@dataclass(frozen=True, eq=False)
class SimulatedPools:
    """A table of simulated pools, and the truth about it."""

    answers: NDArray[np.int64]
    """n × m codes; −1 is no answer."""
    scores: NDArray[np.float64]
    gold: NDArray[np.int64]
    difficulty: NDArray[np.float64]
    """θ, each problem's chance that a path is right."""
    seed: int = 0
    """Part of the problems' names, so that those of another seed are other problems."""

    def is_right(self, answer: ArrayLike) -> NDArray[np.bool_]:
        """Whether each problem's answer is the right one."""
        return np.asarray(np.asarray(answer) == self.gold)

    def pools(self) -> list[Pool]:
        """The same as records, as they would stand in a file."""
        width = len(str(len(self.gold) - 1))
        drawn = f"{self.seed}-" if self.seed else ""
        columns = (column.tolist() for column in (self.gold, self.difficulty, self.answers, self.scores))
        pools = []
        for row, (gold, theta, answers, scores) in enumerate(zip(*columns, strict=True)):
            name, question = f"sim-{drawn}{row:0{width}d}", f"Simulated question {drawn}{row}"
            problem = Problem(name, question, (str(gold),), extra={"difficulty": round(theta, 6)})
            paths = (
                Path(None if answer < 0 else str(answer), scores={SCORE: round(score, 6)})
                for answer, score in zip(answers, scores, strict=True)
            )
            pools.append(Pool(problem, tuple(paths)))
        return pools


def simulate_pools(
    n: int,
    *,
    n_paths: int = 16,
    seed: int = 0,
    a: float = 1.1,
    b: float = 0.75,
    n_answers: int = 8,
    concentration: float = 0.7,
    separation: float = 0.7,
    missing: float = 0.02,
) -> SimulatedPools:
    """Draw n problems with n_paths paths each."""
    if n < 1 or n_paths < 1:
        raise InvalidValue(f"n and n_paths must be at least 1, got {n} and {n_paths}")
    if seed < 0 or not np.isfinite(separation):
        raise InvalidValue(f"need a seed >= 0 and a finite separation, got {seed} and {separation}")
    if n_answers < 2 or not (a > 0 and b > 0 and concentration > 0 and 0 <= missing < 1):
        raise InvalidValue(
            "need n_answers >= 2, a, b and concentration > 0 and 0 <= missing < 1, got "
            f"n_answers={n_answers}, a={a}, b={b}, concentration={concentration}, missing={missing}"
        )
    rng = np.random.default_rng(seed)
    theta = rng.beta(a, b, n)
    wrong = rng.dirichlet(np.full(n_answers - 1, concentration), n)
    edges = np.cumsum(np.column_stack([theta, (1 - theta)[:, None] * wrong]), axis=1)[:, :-1]
    drawn = (rng.random((n, n_paths))[:, :, None] > edges[:, None, :]).sum(axis=2)  # 0 is the right answer
    scores = rng.standard_normal((n, n_paths)) + separation * (drawn == 0)
    names = rng.permuted(np.tile(np.arange(n_answers), (n, 1)), axis=1)
    answers = np.take_along_axis(names, drawn, axis=1)
    answers[rng.random((n, n_paths)) < missing] = -1
    return SimulatedPools(answers, scores, names[:, 0], theta, seed)
