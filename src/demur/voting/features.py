"""What can be seen of a pool without its label, as named numbers: what a learned key is made of.

Notation, for a pool of m paths with the vote's answer ŷ:
    confidence          ν           the winner's share of all weight
    share               |ŷ| / m     its share of the paths
    margin                          its paths less those of the next answer, of all paths
    entropy                         of the answers' shares among the paths that have one
    distinct            log(1 + n)  of the number of answers
    missing                         the share of paths without an answer
    unanimous                       1 where every path gave the answer
    mean_score, best_score          of the paths that gave the answer
    score_lead                      their mean less that of the other paths; 0 where there are none
    length, length_lead             the same of log(1 + characters)
and of each score that is not the vote's own, by its name: `mean_score:NAME`, `best_score:NAME`, `score_lead:NAME` and
`share:NAME`, the winner's share under weights exp(z) of that score, standardised within the pool.

Nothing here sees a label. Each number is the same, to the last bit, in whatever order the paths come and however many
pools are looked at together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.voting._exact_sums import Floats, on_grid, row_means, row_sums
from demur.voting.key import LENGTH, Counted

OF_VOTES = ("confidence", "share", "margin", "entropy", "distinct", "missing", "unanimous")
OF_OWN_SCORE = ("mean_score", "best_score", "score_lead")
OF_OTHER_SCORES = (*OF_OWN_SCORE, "share")
OF_LENGTHS = ("length", "length_lead")

Mask = NDArray[np.bool_]


def feature_names(columns: Iterable[str], *, scores: bool) -> tuple[str, ...]:
    """All features of pools that have these columns and, where `scores`, the scores of a weighted vote."""
    known = sorted(set(columns))
    names = [*OF_VOTES, *(OF_OWN_SCORE if scores else ())]
    names += OF_LENGTHS if LENGTH in known else ()
    names += [f"{kind}:{column}" for column in known if column != LENGTH for kind in OF_OTHER_SCORES]
    return tuple(names)


def is_feature(name: str) -> bool:
    """Whether there is a feature of this name, given the columns."""
    kind, colon, column = name.partition(":")
    return kind in OF_OTHER_SCORES and column not in ("", LENGTH) if colon else kind in _OF_ONE_VOTE


def columns_of(names: Iterable[str]) -> tuple[str, ...]:
    """The columns that features look at."""
    looked_at = (LENGTH if name in OF_LENGTHS else name.partition(":")[2] for name in names)
    return tuple(dict.fromkeys(column for column in looked_at if column))


def looks_at_scores(names: Iterable[str]) -> bool:
    """Whether some of the features are made of the vote's own scores."""
    return any(name in OF_OWN_SCORE for name in names)


def features_of(counted: Counted, names: Sequence[str]) -> Floats:
    """A row per pool, a column per name. Pools without an answer have rows of zeros."""
    columns = {column: _complete(counted, column) for column in columns_of(names)}
    if looks_at_scores(names) and counted.scores is None:
        lacking = next(name for name in names if name in OF_OWN_SCORE)
        raise InvalidValue(f"the learned key looks at {lacking}, and the vote has no scores", "give {scores}")
    values = np.zeros((len(counted.table), len(names)))
    for rows, width in counted.table.blocks():
        block = _Block(
            counted.table.codes[rows, :width],
            counted.winner[rows],
            counted.confidence[rows],
            None if counted.scores is None else counted.scores[rows, :width],
            {column: numbers[rows, :width] for column, numbers in columns.items()},
        )
        for at, name in enumerate(names):
            values[rows, at] = block.feature(name)
    values[counted.winner < 0] = 0.0
    return values


def agreement(counted: Counted, names: Sequence[str]) -> Floats:
    """How far each named origin of paths agrees with the winner: a row per pool, a column per name.

    1 where all its paths gave the answer, −1 where none did, 0 where the pool has none of its paths.
    """
    if counted.origins is None:
        raise InvalidValue(
            f"the learned key looks at where paths come from ({', '.join(names[:3])}, …), and these pools do not say",
            "give {origins}",
        )
    codes, n, many = counted.origins.codes, len(counted.table), len(names)
    place = {name: at for at, name in enumerate(names)}
    column = np.array([*(place.get(name, many) for name in counted.origins.names), many], dtype=np.intp)[codes]
    slots = (column + np.arange(n)[:, None] * (many + 1)).ravel()
    gave = (counted.table.codes == counted.winner[:, None]) & (counted.winner >= 0)[:, None]
    within = np.arange(codes.shape[1]) < counted.table.n_paths[:, None]
    paths, agreeing = (
        np.bincount(slots, weights=mask.ravel(), minlength=n * (many + 1)).reshape(n, many + 1)[:, :many]
        for mask in (within, gave & within)
    )
    lacking = np.flatnonzero((paths.sum(axis=1) == 0) & (counted.winner >= 0))
    if len(lacking):
        raise InvalidValue(
            f"pool {lacking[0]} has no path from any of the {many} sources that the learned key knows "
            f"({', '.join(names[:3])}, …)",
            "sample as for calibration, or calibrate again",
        )
    agreed: Floats = np.divide(2 * agreeing - paths, paths, out=np.zeros((n, many)), where=paths > 0)
    return agreed


def _complete(counted: Counted, column: str) -> Floats:
    """A column without gaps; raises, with the first, where a path has no value."""
    values = counted.columns.get(column)
    if values is None:
        raise InvalidValue(
            f"the learned key looks at the {column} of paths, and these pools have none", "give it in {columns}"
        )
    within = np.arange(values.shape[1]) < counted.table.n_paths[:, None]
    gaps = np.isnan(values) & within
    if gaps.any():
        pool, path = divmod(int(np.argmax(gaps)), gaps.shape[1])
        raise InvalidValue(
            f"the learned key looks at the {column} of every path, and path {path} of pool {pool} has none"
        )
    return values


class _Block:
    """Some pools of one size."""

    def __init__(
        self, codes: NDArray[Any], winner: NDArray[np.int64], confidence: Floats, scores: Floats | None, columns: Any
    ) -> None:
        self.width, self.codes, self.confidence, self.scores = codes.shape[1], codes, confidence, scores
        self.columns: dict[str, Floats] = columns
        self.gave: Mask = (codes == winner[:, None]) & (winner >= 0)[:, None]
        self.support = self.gave.sum(axis=1)
        self.answered = (codes >= 0).sum(axis=1)
        self.paths = _paths_behind(codes)

    def feature(self, name: str) -> Floats:
        kind, _, column = name.partition(":")
        if column:
            return _OF_SCORE[kind](self, self.columns[column])
        return _OF_ONE_VOTE[kind](self)

    def own_scores(self) -> Floats:
        assert self.scores is not None
        return self.scores

    def log_lengths(self) -> Floats:
        return np.log1p(self.columns[LENGTH])

    def margin(self) -> Floats:
        others = np.where(self.gave, 0, self.paths).max(axis=1)
        return np.asarray((self.support - others) / self.width)

    def entropy(self) -> Floats:
        """−Σ p log p over answers is the mean of −log p over paths: each answer has as many as it weighs."""
        logs = np.log(np.maximum(np.arange(self.width + 1), 1))
        total = row_sums(logs[self.paths])[:, 0]
        behind = np.maximum(self.answered, 1)
        return np.asarray(np.round(logs[behind] - total / behind, 12))

    def distinct(self) -> Floats:
        ranked = np.sort(self.codes, axis=1)
        new = (ranked[:, 1:] != ranked[:, :-1]) & (ranked[:, 1:] >= 0)
        answers = new.sum(axis=1) + (ranked[:, 0] >= 0)
        return np.asarray(np.log1p(answers.astype(np.float64)))

    def mean(self, values: Floats) -> Floats:
        return _mean_where(values, self.gave)

    def best(self, values: Floats) -> Floats:
        highest = np.where(self.gave, values, -np.inf).max(axis=1)
        return np.where(self.support > 0, highest, 0.0)

    def lead(self, values: Floats) -> Floats:
        ahead = _mean_where(values, self.gave) - _mean_where(values, ~self.gave)
        return np.where(self.support < self.width, ahead, 0.0)

    def share(self, values: Floats) -> Floats:
        centred = values - row_sums(values) / self.width
        spread = np.sqrt(row_sums(centred * centred) / self.width)
        standard = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 1e-12)
        weights = on_grid(np.exp(standard - standard.max(axis=1, keepdims=True)))
        return np.asarray(np.round((weights * self.gave).sum(axis=1) / weights.sum(axis=1), 12))


def _paths_behind(codes: NDArray[Any]) -> NDArray[np.int64]:
    """For each path, how many have its answer; 0 where it has none."""
    paths = np.zeros(codes.shape, dtype=np.int64)
    for j in range(codes.shape[1]):
        paths += codes == codes[:, j : j + 1]
    return np.where(codes >= 0, paths, 0)


def _mean_where(values: Floats, mask: Mask) -> Floats:
    return row_means(np.where(mask, values, 0.0), np.maximum(mask.sum(axis=1), 1))


_OF_SCORE: dict[str, Callable[[_Block, Floats], Floats]] = {
    "mean_score": _Block.mean,
    "best_score": _Block.best,
    "score_lead": _Block.lead,
    "share": _Block.share,
}
_OF_ONE_VOTE: dict[str, Callable[[_Block], Floats]] = {
    "confidence": lambda block: block.confidence,
    "share": lambda block: block.support / block.width,
    "margin": _Block.margin,
    "entropy": _Block.entropy,
    "distinct": _Block.distinct,
    "missing": lambda block: 1.0 - block.answered / block.width,
    "unanimous": lambda block: (block.support == block.width).astype(np.float64),
    "mean_score": lambda block: block.mean(block.own_scores()),
    "best_score": lambda block: block.best(block.own_scores()),
    "score_lead": lambda block: block.lead(block.own_scores()),
    "length": lambda block: block.mean(block.log_lengths()),
    "length_lead": lambda block: block.lead(block.log_lengths()),
}
