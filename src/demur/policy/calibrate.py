"""From labelled votes to a policy."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from demur.calibration import Guarantee, Marginal
from demur.errors import InfeasibleWarning, InsufficientCalibration, InvalidValue
from demur.evidence.counts import Evidence
from demur.policy.policy import Policy
from demur.policy.seen import Seen
from demur.pools.splits import Texts
from demur.pools.voted_pools import VotedPools
from demur.voting.votes import Votes

Alphas = float | Sequence[float]
Guarantees = Guarantee | Sequence[Guarantee]


def calibrate(
    votes: Votes | VotedPools,
    correct: ArrayLike | None = None,
    *,
    alpha: Alphas | None = None,
    guarantee: Guarantees | None = None,
    clusters: Texts | None = None,
    questions: Texts | None = None,
    n_paths: tuple[int, int] | None = None,
    hold_out: float = 0.0,
    seed: int = 0,
    strict: bool = False,
) -> Policy:
    """Calibrate a policy on labelled votes: voted pools, or votes with one label each.

    `alpha=a` is short for `guarantee=Marginal(a)`; both take several. Rows that share a cluster or a question text
    count once. `hold_out` keeps a share of the problems back, drawn by the seed, for an audit. Too few votes give a
    policy that abstains always, with a warning; `strict` raises instead. The policy will decide pools of the sizes that
    there are, or of those that `n_paths` says the questions come with.
    """
    voted = VotedPools.of(votes, correct, questions=questions, clusters=clusters)
    voted.labelled  # noqa: B018 - before anything else: without labels there is nothing to calibrate on
    guarantees = as_guarantees(alpha, guarantee)
    sizes = voted.votes.n_paths
    low, high = n_paths or (int(sizes.min()), int(sizes.max()))
    if not 1 <= low <= int(sizes.min()) <= int(sizes.max()) <= high:
        raise InvalidValue(f"n_paths must include every calibrated pool, {sizes.min()} to {sizes.max()}, got {n_paths}")
    if hold_out:
        voted = voted.take(voted.split(hold_out=hold_out, seed=seed).calibration)
    voted.refuse_fitted()
    evidence = Evidence.of(*voted.counted_keys)
    points = tuple(one.settle(evidence) for one in guarantees)
    for rule in points:
        if not rule.feasible:
            if strict:
                raise InsufficientCalibration(rule.too_few)
            warnings.warn(rule.too_few + "; the policy abstains always", InfeasibleWarning, stacklevel=2)
    seen = Seen.of(
        voted.votes.fitted_on.union(voted.votes.ids or ()), voted.questions, voted.clusters, hold_out or None
    )
    return Policy(points, evidence, voted.votes.recipe, voted.votes.upstream, (low, high), seen)


def as_guarantees(alpha: Alphas | None, guarantee: Guarantees | None) -> list[Guarantee]:
    """What was asked for, the smallest alpha first."""
    if (alpha is None) == (guarantee is None):
        raise InvalidValue("give either alpha or guarantee")
    wanted: list[Guarantee]
    if guarantee is not None:
        wanted = list(guarantee) if isinstance(guarantee, Sequence) else [guarantee]
        if not all(isinstance(one, Guarantee) for one in wanted):
            raise InvalidValue(
                f"guarantee must be Marginal, Smoothed or HighProbability objects, got {guarantee!r:.60}"
            )
    else:
        wanted = [Marginal(level) for level in np.atleast_1d(np.asarray(alpha, dtype=object)).tolist()]
    if not wanted:
        raise InvalidValue("give at least one alpha")
    wanted.sort(key=lambda one: (one.alpha, one.name))
    for first, second in pairwise(wanted):
        if (first.alpha, first.name) == (second.alpha, second.name):
            raise InvalidValue(f"alpha = {first.alpha:g} occurs twice for the guarantee {first.name}")
    return wanted
