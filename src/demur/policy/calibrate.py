"""From labelled votes to a policy."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from numpy.typing import ArrayLike

from demur.calibration import CLUSTER, QUESTION, Grouped, Guarantee, Level, Marginal, settle_by_size
from demur.calibration.grouped import refuse_without_groups
from demur.calibration.labelling import refuse_all_labels_needed
from demur.errors import InfeasibleWarning, InsufficientCalibration, InvalidValue
from demur.evidence.strata import Strata
from demur.policy.policy import Policy
from demur.policy.seen import Seen
from demur.pools.label_rule import LabelRule
from demur.pools.splits import Texts
from demur.pools.voted_pools import LabelledCases, VotedPools
from demur.records import is_nothing
from demur.voting.votes import Votes

Alphas = Level | Sequence[Level]
Guarantees = Guarantee | Sequence[Guarantee]


def calibrate(
    votes: Votes | VotedPools,
    correct: ArrayLike | None = None,
    *,
    alpha: Alphas | None = None,
    guarantee: Guarantees | None = None,
    clusters: Texts | None = None,
    questions: Texts | None = None,
    sizes_by_chance: bool = False,
    partly_labelled: bool = False,
    hold_out: float = 0.0,
    seed: int = 0,
    strict: bool = False,
) -> Policy:
    """Calibrate a policy on labelled votes: voted pools, or votes with one label each.

    `alpha=a` is short for `guarantee=Marginal(a)`; both take several. Rows that share a cluster or a question text
    count once. `hold_out` keeps a share of the problems back, drawn by the seed, for an audit. Too few votes give a
    policy that abstains always, with a warning; `strict` raises instead.
    Where pools differ in size, the promise is kept for each size by itself, and sizes that are too rare are not
    answered. `sizes_by_chance` declares that sizes vary by chance in use as they do here, or that the same stopping
    rule makes them: then one threshold serves all.
    `partly_labelled` says that some labels may be missing (None, NaN): those votes count as wrong. The promise holds
    whichever were labelled and why, as long as all the votes that were to be labelled are given, and a `Smoothed`
    guarantee was made before the first label.
    """
    given = VotedPools.of(votes, correct, questions=questions, clusters=clusters, partly_labelled=partly_labelled)
    # Before anything else: without labels there is nothing to calibrate on, and none is left out silently.
    given.labels_so_far if partly_labelled else given.labelled  # noqa: B018
    guarantees = as_guarantees(alpha, guarantee)
    if given.known is not None:
        refuse_all_labels_needed(guarantees)
    if hold_out and given.known is not None:
        raise InvalidValue(
            f"hold_out = {hold_out:g} keeps problems back for an audit, which needs the labels of all of them",
            "leave {hold_out} out, and audit on other problems",
        )
    if hold_out:
        _refuse_nameless(given)
        given = given.take(given.split(hold_out=hold_out, seed=seed).calibration)
    voted = given.scored
    voted.refuse_fitted()
    voted.refuse_without_jitter()
    unit, every = QUESTION, None
    by_group = any(isinstance(one, Grouped) for one in guarantees)
    if by_group:
        refuse_without_groups(voted.votes.cases)
    evidence = _strata(voted.counted_cases, by_group=by_group, by_chance=sizes_by_chance)
    if voted.clustered:
        distinct = voted.cases_of(voted.distinct)
        unit, every = CLUSTER, _strata(distinct, by_group=by_group, by_chance=sizes_by_chance)
    labels = LabelRule() if given.labels is None else given.labels.rule
    points = tuple(settle_by_size(one, evidence, unit, labels.wrong) for one in guarantees)
    for rule in points:
        if not rule.feasible:
            if strict:
                raise InsufficientCalibration(rule.too_few)
            warnings.warn(rule.too_few + "; the policy abstains always", InfeasibleWarning, stacklevel=2)
    known = given.votes.fitted_on.union(given.votes.ids or ())
    seen = Seen.of(known, given.questions, given.clusters, hold_out or None)
    recipe, upstream, unscored = voted.votes.recipe, voted.votes.upstream, len(given) - len(voted)
    return Policy(points, evidence, recipe, upstream, seen, unit, every, unscored, labels)


def _strata(labelled: LabelledCases, *, by_group: bool, by_chance: bool) -> Strata:
    """Votes as counts: by group only where a promise is, for whatever else a file may hold under that name."""
    cases, correct, known = labelled
    return Strata.of(cases if by_group else cases.without_groups(), correct, known, by_chance=by_chance)


def _refuse_nameless(voted: VotedPools) -> None:
    """Raise if something does not tell one problem from another: an audit could not leave out those that calibrated."""
    named = voted.votes.ids is not None or any(
        column is not None and not any(map(is_nothing, column)) for column in (voted.questions, voted.clusters)
    )
    if not named:
        raise InvalidValue("problems without names cannot be kept back: nothing tells them apart", "vote with {ids}")


def as_guarantees(alpha: Alphas | None, guarantee: Guarantees | None) -> list[Guarantee]:
    """What was asked for, the smallest alpha first."""
    if (alpha is None) == (guarantee is None):
        raise InvalidValue("give either alpha or guarantee")
    wanted: list[Guarantee]
    if guarantee is not None:
        wanted = list(guarantee) if isinstance(guarantee, Sequence) else [guarantee]
        if not all(isinstance(one, Guarantee) for one in wanted):
            raise InvalidValue(
                "guarantee must be Marginal, Smoothed, HighProbability, Selective or Grouped objects, got "
                f"{guarantee!r:.60}"
            )
    else:
        levels: list[Any] = [alpha] if isinstance(alpha, str) or not isinstance(alpha, Iterable) else list(alpha)
        wanted = [Marginal(level) for level in levels]
    if not wanted:
        raise InvalidValue("give at least one alpha")
    wanted.sort(key=lambda one: (one.alpha, one.name))
    for first, second in pairwise(wanted):
        if (first.alpha, first.name) == (second.alpha, second.name):
            raise InvalidValue(f"alpha = {first.alpha:g} occurs twice for the guarantee {first.name}")
    return wanted
