"""Score-weighted voting: from a table of answers and scores to (ŷ, ν), one vote per pool.

Notation (paper §3.1):
    answers      a(T⁽ʲ⁾)   one per path; none where no answer could be extracted
    scores       q_j        one per path, of paths without an answer too
    weight       w          uniform, linear or exponential(β), applied after the normaliser
    tally        V_y        Σ_j w(q_j) 1[a(T⁽ʲ⁾) = y]
    answer       ŷ          argmax_y V_y; the tie rule is that of `tallies`
    confidence   ν          V_ŷ / Σ_j w(q_j): paths without an answer count below the line (departure N)

Nothing here sees a label. ν is invariant to the order of paths, to the last bit, and to the scale of the weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur import normalisers
from demur.coding import CodedAnswers, Rows, code_answers, pad, refuse_mask
from demur.errors import InvalidValue
from demur.exact_sums import Floats, grid, on_grid
from demur.normalisers import Normaliser
from demur.records import Vote
from demur.tallies import TIE_RULE, Outcome, compact, majority, weighted
from demur.tie_breaks import Column, TieBreak
from demur.weights import Exponential, Uniform, Weight


@dataclass(frozen=True)
class Recipe:
    """How votes are made, so that a policy can make them again the same way."""

    weight: Weight = field(default_factory=Uniform)
    normaliser: Normaliser = normalisers.none
    tie_break: TieBreak | None = None
    score: str | None = None
    """The name of the score, where it has one."""
    coded: bool = False
    """Answers are integer codes, negative where missing, rather than keys."""
    upstream: Mapping[str, Any] = field(default_factory=dict)
    """What is known of the stages before the vote: model, prompt, extraction and so on."""

    def describe(self) -> dict[str, Any]:
        """The recipe as plain values: what a policy stores and compares."""
        return {
            **self.upstream,
            "answers": "codes" if self.coded else "keys",
            "score": self.score,
            "normaliser": self.normaliser.describe(),
            "weight": self.weight.describe(),
            "tie_rule": TIE_RULE,
            "tie_break": None if self.tie_break is None else self.tie_break.describe(),
        }


@dataclass(frozen=True, eq=False)
class Votes:
    """One vote per pool, as columns. `votes[i]` is one of them as a record.

    The table of answers and scores is kept by reference, for tallies; it is not copied.
    """

    answer: NDArray[Any]
    """ŷ: keys, None where a pool has no answer at all (codes and −1, where the table was coded)."""
    confidence: Floats
    unanimous: NDArray[np.bool_]
    secondary: Floats | None
    """The tie-breaking number of each vote; −inf where there is no answer."""
    ids: Sequence[str] | None
    recipe: Recipe
    _answers: CodedAnswers = field(repr=False)
    _scores: Floats | None = field(repr=False)

    def __len__(self) -> int:
        return len(self.confidence)

    def __getitem__(self, row: int) -> Vote:
        if not -len(self) <= row < len(self):
            raise IndexError(f"vote {row} of {len(self)}")
        row %= len(self)
        answer = self.answer[row]
        none = answer is None or (self.recipe.coded and answer < 0)
        tally, support, total = self._count(row)
        return Vote(
            answer=None if none else answer.item() if isinstance(answer, np.generic) else answer,
            confidence=float(self.confidence[row]),
            unanimous=bool(self.unanimous[row]),
            tally=tally,
            support=support,
            total=total,
            n_paths=int(self.n_paths[row]),
            secondary=None if self.secondary is None else float(self.secondary[row]),
            id=None if self.ids is None else self.ids[row],
        )

    def __iter__(self) -> Iterator[Vote]:
        return (self[row] for row in range(len(self)))

    @cached_property
    def n_paths(self) -> NDArray[np.intp]:
        """m, the number of paths of each pool."""
        return self._answers.n_paths

    @property
    def tally(self) -> list[dict[Any, float]]:
        """V_y of every answer of every pool, in units of the pool's largest weight; the winner first."""
        return [self._count(row)[0] for row in range(len(self))]

    @property
    def support(self) -> list[dict[Any, int]]:
        """How many paths gave each answer, for every pool; the winner first."""
        return [self._count(row)[1] for row in range(len(self))]

    @cached_property
    def key(self) -> Floats:
        """What is calibrated: the confidence, and the secondary key behind it where there is one (n × 1 or 2)."""
        if self.secondary is None:
            return self.confidence[:, None]
        return np.stack([self.confidence, self.secondary], axis=1)

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Whether a pool has an answer at all."""
        if self.recipe.coded:
            return np.asarray(self.answer >= 0)
        return np.array([answer is not None for answer in self.answer], dtype=np.bool_)

    def weights(self, row: int) -> list[float]:
        """The weight of each path of one pool, the pool's largest being 1."""
        width = int(self.n_paths[row])
        if self._scores is None:
            return [1.0] * width
        return weights_of(self._scores[row : row + 1, :width], self.recipe, slice(row, row + 1))[0].tolist()  # type: ignore[no-any-return]

    def take(self, rows: ArrayLike) -> Votes:
        """The votes of some rows, in that order."""
        index = np.asarray(rows)
        if index.dtype == np.bool_:
            index = np.flatnonzero(index)
        index = index.astype(np.intp)
        return replace(
            self,
            answer=self.answer[index],
            confidence=self.confidence[index],
            unanimous=self.unanimous[index],
            secondary=None if self.secondary is None else self.secondary[index],
            ids=None if self.ids is None else [self.ids[i] for i in index],
            _answers=self._answers.take(index),
            _scores=None if self._scores is None else self._scores[index],
        )

    def _count(self, row: int) -> tuple[dict[Any, float], dict[Any, int], float]:
        width = int(self.n_paths[row])
        codes = self._answers.codes[row, :width]
        whole = np.full(width, grid(width))
        if self._scores is not None:
            scores = self._scores[row : row + 1, :width]
            whole = on_grid(weights_of(scores, self.recipe, slice(row, row + 1)))[0]
        pool = codes.tolist() if self._answers.pools is None else self._answers.pools[row]
        paths: dict[Any, int] = {}
        votes: dict[Any, float] = {}
        for key, code, weight in zip(pool, codes.tolist(), whole.tolist(), strict=True):
            if code >= 0:
                paths[key] = paths.get(key, 0) + 1
                votes[key] = votes.get(key, 0.0) + weight
        winner = self.answer[row]
        order = sorted(paths, key=lambda key: (key != winner, -votes[key], -paths[key], isinstance(key, str), key))
        tally = {key: votes[key] / grid(width) for key in order}
        return tally, {key: paths[key] for key in order}, float(whole.sum() / grid(width))


def vote(
    answers: Any,
    scores: Any = None,
    *,
    weight: Weight | None = None,
    normaliser: Normaliser | None = None,
    tie_break: TieBreak | ArrayLike | None = None,
    ids: Sequence[Any] | None = None,
    score: str | None = None,
    upstream: Mapping[str, Any] | None = None,
) -> Votes:
    """Hold the vote of every pool of a table.

    `answers` is an integer array n × m (negative: no answer) or a sequence of pools of keys (None: no answer), which
    may differ in size; `scores` has the same shape. Without scores, or with `weight=uniform()`, it is the majority
    vote; with scores the weight is exponential unless told otherwise. `tie_break` adds a secondary key to the
    confidence: `mean_score()`, `jitter(seed)`, or one number per pool.
    """
    table = code_answers(answers)
    if weight is None:
        weight = Uniform() if scores is None else Exponential()
    if not isinstance(weight, Weight):
        raise InvalidValue(f"weight must be uniform(), linear() or exponential(beta), got {weight!r}")
    normaliser = normaliser or normalisers.none
    if not isinstance(normaliser, Normaliser):
        raise InvalidValue(f"normaliser must be one of demur.normalisers, got {normaliser!r}")
    if tie_break is not None and not isinstance(tie_break, TieBreak):
        tie_break = Column(tie_break)
    recipe = Recipe(weight, normaliser, tie_break, score, table.pools is None, dict(upstream or {}))
    names = None if ids is None else [str(name) for name in ids]
    if names is not None and len(names) != len(table):
        raise InvalidValue(f"ids must name each of the {len(table)} pools, got {len(names)}")
    if names is not None and len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise InvalidValue(f"ids must differ; {twice!r} occurs more than once")
    values = None if scores is None else as_scores(scores, table)
    return _hold(table, values, names, recipe)


def vote_again(
    recipe: Recipe, answers: Any, scores: Any = None, tie_break: Any = None, ids: Sequence[str] | None = None
) -> Votes:
    """The vote of other pools, made the way `recipe` says."""
    if recipe.coded:
        answers = np.asarray(answers)
    column = tie_break if isinstance(recipe.tie_break, Column) else recipe.tie_break
    if isinstance(recipe.tie_break, Column):
        if tie_break is None:
            raise InvalidValue(
                f"the policy breaks ties by {recipe.tie_break.describe()}; give its value for this pool as tie_break="
            )
        column = Column(tie_break, recipe.tie_break.name)
    return vote(
        answers, scores, weight=recipe.weight, normaliser=recipe.normaliser, tie_break=column, ids=ids,
        score=recipe.score, upstream=recipe.upstream,
    )  # fmt: skip


def _hold(table: CodedAnswers, scores: Floats | None, ids: list[str] | None, recipe: Recipe) -> Votes:
    uniform = isinstance(recipe.weight, Uniform)
    if scores is None and not uniform:
        raise InvalidValue(f"{recipe.weight.name} weights need scores; give them, or use uniform weights")
    winner = np.empty(len(table), dtype=np.int64)
    confidence = np.empty(len(table))
    unanimous = np.empty(len(table), dtype=np.bool_)
    for rows, width in table.blocks():
        codes = compact(table.codes[rows, :width])
        if scores is not None:
            # Pools stay rows, but lie path by path in memory: every step then runs along it.
            block = np.asfortranarray(scores[rows, :width])
            require_finite(block, rows)
        outcome = majority(codes) if uniform else weighted(codes, weights_of(block, recipe, rows))
        winner[rows] = settle(table, rows, outcome)
        confidence[rows], unanimous[rows] = outcome.confidence, outcome.unanimous
    secondary = None
    if recipe.tie_break is not None:
        secondary = recipe.tie_break.of(table, scores, winner, ids)
    # The majority vote needs no scores for its tallies.
    kept = None if uniform else scores
    return Votes(table.keys_of(winner), confidence, unanimous, secondary, ids, recipe, table, kept)


def settle(table: CodedAnswers, rows: Rows, outcome: Outcome) -> NDArray[np.int64]:
    """The winning codes of a block, ties that fall to the smaller key included."""
    winner = outcome.winner
    if table.pools is not None and outcome.tied.size:  # codes of keys have no order of their own
        index = np.arange(len(table))[rows][outcome.tied]
        winner[outcome.tied] = table.smallest_keys(index, outcome.candidates.T)
    return winner


def weights_of(scores: Floats, recipe: Recipe, rows: Rows) -> Floats:
    """The weights of a block of pools of one size, each pool's largest being 1; `rows` names them in an error."""
    with np.errstate(over="ignore", invalid="ignore"):
        normalised = recipe.normaliser(scores)
    if normalised is not scores and not np.isfinite(normalised).all():
        pool, path = _where(~np.isfinite(normalised), rows)
        raise InvalidValue(
            f"the normaliser {recipe.normaliser.name} overflows on the scores of pool {pool} (path {path}); "
            "scores must be of moderate size"
        )
    return recipe.weight(normalised)


def as_scores(scores: Any, table: CodedAnswers) -> Floats:
    refuse_mask(scores, "scores")
    if isinstance(scores, np.ndarray) and scores.dtype == np.bool_:
        raise InvalidValue("scores must be numbers, got booleans: those look like labels, which the vote must not see")
    try:
        if table.sizes is None or isinstance(scores, np.ndarray):
            values = np.asarray(scores, dtype=np.float64)
        else:
            pools = [np.asarray(pool, dtype=np.float64) for pool in scores]
            sizes = [pool.size for pool in pools]
            if sizes != table.sizes.tolist():
                raise InvalidValue(
                    f"scores must have one number per path: {sizes[:3]}… paths, where answers have "
                    f"{table.sizes[:3].tolist()}…"
                )
            return np.asarray(pad(np.concatenate(pools), table.sizes, 0.0), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InvalidValue):
            raise
        raise InvalidValue(f"scores must be numbers, one per path, in the shape of answers: {error}") from None
    if values.shape != table.codes.shape or table.sizes is not None:
        raise InvalidValue(
            f"scores must have the shape of answers, {table.codes.shape}"
            f"{' with pools of different size' if table.sizes is not None else ''}, got {values.shape}"
        )
    return values


def require_finite(scores: Floats, rows: Rows) -> None:
    finite = np.isfinite(scores)
    if not finite.all():
        pool, path = _where(~finite, rows)
        value = scores.ravel()[int(np.argmin(finite))]
        raise InvalidValue(f"scores must be finite; pool {pool} has {value} at path {path}")


def _where(bad: NDArray[np.bool_], rows: Rows) -> tuple[int, int]:
    row, path = divmod(int(np.argmax(bad)), bad.shape[1])
    return int(rows[row]) if isinstance(rows, np.ndarray) else int(rows.start) + row, path
