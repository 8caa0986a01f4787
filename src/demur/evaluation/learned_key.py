"""Fitting a learned key on a tune split, and whether it is better there than the share of the vote.

The key is a ridge logistic regression of "the vote is right" on what can be seen of its pool (`voting.features`) and on
which sources agree with the winner. The confidence ν is left almost free; all other features are held back by one
penalty and the sources by another, both chosen by what each fit says of the rows left out; where it is infinite they
are not looked at. Without either the key orders votes as ν does: the share is one of the candidates.

It is `better` where, on rows left out, its log-loss is below that of ν alone by more than the standard error of the
difference, and it ranks right above wrong votes no worse. The problems it was fitted on may not calibrate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.evaluation.ridge_logistic import RidgeLogistic, fit_ridge_logistic
from demur.evidence.counts import Floats
from demur.pools.voted_pools import VotedPools
from demur.voting.features import agreement, feature_names, features_of
from demur.voting.key import Counted
from demur.voting.learned import Learned
from demur.voting.problems import Problems
from demur.voting.votes import Votes

FEWEST_OF_EACH = 5
"""Right votes, and wrong ones, below which nothing is fitted."""
_FREE, _INTERCEPT = 0.1, 1e-6
_OF_FEATURES = (math.inf, 30.0, 5.0)
_OF_SOURCES = (math.inf, 100.0, 30.0, 10.0, 3.0)
_FEWEST_POOLS = 0.05
"""The share of pools that a source has paths in, for its agreement to be looked at."""
_MOST_SOURCES = 500
_LEADER = "confidence"
_SAME = 1e-9


@dataclass(frozen=True)
class LearnedKeyFit:
    """A learned key, and how it does against the share of the vote on rows left out."""

    key: Learned
    n: int
    """Labelled problems it was fitted on."""
    loss: float
    """Mean log-loss of the learned confidence."""
    share_loss: float
    """That of a logistic function of ν alone."""
    standard_error: float
    """Of the difference of the two."""
    auroc: float
    """The chance that a right vote has a larger learned confidence than a wrong one."""
    share_auroc: float
    """The same of ν, ties counted half, as jitter breaks them."""
    left_out: Floats = field(repr=False, compare=False)
    """For each of those problems, the learned confidence that all others give it."""

    @property
    def gain(self) -> float:
        """How much lower the log-loss is than that of ν alone."""
        return self.share_loss - self.loss

    @property
    def better(self) -> bool:
        """Whether the learned key is worth its labels."""
        return self.gain > self.standard_error and self.auroc >= self.share_auroc

    @property
    def verdict(self) -> str:
        """The comparison in words."""
        head = (
            f"On the {self.n} problems of the tune split, each left out in turn, the learned key has a log-loss "
            f"{abs(self.gain):.4f} {'lower' if self.gain > 0 else 'higher'} than the share of the vote (standard error "
            f"{self.standard_error:.4f}) and ranks a right vote above a wrong one {self.auroc:.1%} of the time, the "
            f"share {self.share_auroc:.1%}"
        )
        return f"{head}: {'it is better' if self.better else 'not better by more than chance; keep the share'}."


def fit_learned(voted: VotedPools, *, origin: str | None = None) -> LearnedKeyFit:
    """Fit a learned key on the problems of a tune split, which may not calibrate afterwards.

    One problem of each cluster or question counts. Looked at is what all paths of all pools have: their answers, the
    vote's scores, other scores, the length of their texts; and where paths come from several sources, which of them
    agree. `origin` names the field of paths that says so; without one it is the first of `src`, `source`, `model` and
    `prompt` that tells the paths of a pool apart.
    """
    if voted.votes.ids is None:
        raise InvalidValue(
            "a learned key needs votes with ids, so that calibration can refuse its problems", "give {ids}"
        )
    rows = voted.voting(voted.counted)
    tune = voted.take(rows[voted.votes.has_answer[rows]])
    named = origin or _origin(tune.votes)
    own, columns = tune.votes.upstream.score.get("name"), tune.votes.beside.columns
    counted = tune.votes.counted([name for name in columns if name != own], named)
    problems = Problems.of(voted.votes.ids, voted.questions, voted.clusters)
    return fit_counted(counted, tune.labelled, named, problems)


def fit_counted(counted: Counted, right: NDArray[np.bool_], origin: str | None, fitted_on: Problems) -> LearnedKeyFit:
    """The same on pools that are counted and all have an answer; `origin` is the field that names their origins."""
    for many, kind in ((int(right.sum()), "right"), (int((~right).sum()), "wrong")):
        if many < FEWEST_OF_EACH:
            raise InvalidValue(
                f"a learned key needs at least {FEWEST_OF_EACH} right and {FEWEST_OF_EACH} wrong votes, and the tune "
                f"split has {many} {kind}",
                "label more problems, or keep the share of the vote",
            )
    names, features = _telling(_without_gaps(counted))
    _refuse_labels(names, features, right)
    sources = _sources(counted)
    agreeing = agreement(counted, sources) if sources else np.zeros((len(right), 0))
    design = _Design(features, agreeing)
    pairs = product(_OF_FEATURES if len(names) > 1 else _OF_FEATURES[:1], _OF_SOURCES if sources else _OF_SOURCES[:1])
    fits = [design.fit(right, *pair) for pair in pairs]  # the first one looks at ν alone
    share, best = fits[0], min(fits, key=lambda fit: fit.loss)
    intercept, weights = design.raw(best.weights)
    named = {name: weight for name, weight in zip([*names, *sources], weights.tolist(), strict=True) if weight}
    weighed = [name for name in sources if name in named]
    apart = share.losses - best.losses
    return LearnedKeyFit(
        key=Learned(
            intercept,
            {name: named[name] for name in names if name in named},
            origin if weighed else None,
            {name: named[name] for name in weighed},
            fitted_on,
        ),
        n=len(right),
        loss=best.loss,
        share_loss=share.loss,
        standard_error=float(apart.std(ddof=1) / np.sqrt(len(apart))),
        auroc=_auroc(best.left_out, right),
        share_auroc=_auroc(counted.confidence, right),
        left_out=1.0 / (1.0 + np.exp(-best.left_out)),
    )


def _origin(votes: Votes) -> str | None:
    """The first field that tells the paths of some pool apart; None where they all come from one place."""
    for name, rows in votes.beside.origins.items():
        if any(len(set(row) - {None}) > 1 for row in rows):
            return name
    return None


def _without_gaps(counted: Counted) -> Counted:
    """The same without columns that some path lacks."""
    within = np.arange(counted.table.codes.shape[1]) < counted.table.n_paths[:, None]
    whole = {name: column for name, column in counted.columns.items() if not np.isnan(column[within]).any()}
    return replace(counted, columns=whole)


def _refuse_labels(names: Sequence[str], features: Floats, right: NDArray[np.bool_]) -> None:
    """Raise if some feature is one number wherever the vote is right and another wherever it is not."""
    for name, column in zip(names, features.T, strict=True):
        if np.ptp(column[right]) == np.ptp(column[~right]) == 0 != np.ptp(column):
            raise InvalidValue(
                f"the feature {name} is the label itself: one value wherever the vote is right, another wherever it "
                "is not",
                "leave that score out",
            )


class _Design:
    """Features and agreement of the tune split, centred, and features scaled: the first column is ν."""

    def __init__(self, features: Floats, agreeing: Floats) -> None:
        self.centre = np.concatenate([features.mean(axis=0), agreeing.mean(axis=0)])
        spread = features.std(axis=0)
        # Agreement keeps its own scale: a source that nearly always agrees says little, however rare its dissent.
        self.scale = np.concatenate([np.where(spread > _SAME, spread, 1.0), np.ones(agreeing.shape[1])])
        self.n_features = features.shape[1]
        self.table = (np.concatenate([features, agreeing], axis=1) - self.centre) / self.scale

    def fit(self, right: NDArray[np.bool_], of_features: float, of_sources: float) -> RidgeLogistic:
        """With these penalties; a column of infinite penalty is left out, and has the weight 0."""
        rows, columns = self.table.shape
        penalties = np.full(1 + columns, of_sources)
        penalties[1 : 1 + self.n_features] = of_features
        penalties[:2] = _INTERCEPT, _FREE
        looked_at, table = np.isfinite(penalties), np.concatenate([np.ones((rows, 1)), self.table], axis=1)
        fit = fit_ridge_logistic(table[:, looked_at], right, penalties[looked_at])
        weights = np.zeros(len(penalties))
        weights[looked_at] = fit.weights
        return replace(fit, weights=weights)

    def raw(self, weights: Floats) -> tuple[float, Floats]:
        """Intercept and weights for features as they are."""
        unscaled = weights[1:] / self.scale
        return float(weights[0] - unscaled @ self.centre), unscaled


def _telling(counted: Counted) -> tuple[list[str], Floats]:
    """The features that differ between these pools, no two of them the same, ν first."""
    names = feature_names(counted.columns, scores=counted.scores is not None)
    features = features_of(counted, names)
    kept: list[int] = []
    for at in range(len(names)):
        column = features[:, at]
        varies = np.ptp(column) > _SAME or names[at] == _LEADER
        if varies and not any(np.abs(column - features[:, other]).max() <= _SAME for other in kept):
            kept.append(at)
    return [names[at] for at in kept], features[:, kept]


def _sources(counted: Counted) -> list[str]:
    """Where paths come from, as far as enough pools have paths from there; nothing where that is one place."""
    if counted.origins is None:
        return []
    within = np.arange(counted.table.codes.shape[1]) < counted.table.n_paths[:, None]
    codes = np.where(within, counted.origins.codes, -1)
    pools = np.array([(codes == code).any(axis=1).sum() for code in range(len(counted.origins.names))])
    frequent = np.flatnonzero(pools >= max(2.0, _FEWEST_POOLS * len(codes)))
    most = frequent[np.argsort(-pools[frequent], kind="stable")][:_MOST_SOURCES]
    covered = np.isin(codes, most).any(axis=1).all()
    return [counted.origins.names[code] for code in sorted(most.tolist())] if len(most) > 1 and covered else []


def _auroc(values: Floats, right: NDArray[np.bool_]) -> float:
    """The chance that a right vote has the larger value, ties counted half."""
    wrong = np.sort(values[~right])
    below = np.searchsorted(wrong, values[right], "left") + np.searchsorted(wrong, values[right], "right")
    return float(below.mean() / (2 * len(wrong)))
