"""A policy made anew on later votes of the same kind, and the two compared on the same votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from demur.calibration import (
    Grouped,
    Guarantee,
    HighProbability,
    JudgedGuarantee,
    Level,
    Marginal,
    RankGuarantee,
    Rule,
    Shifted,
)
from demur.calibration.labelling import LabelProgress, LabelQueue
from demur.errors import InvalidValue
from demur.policy.calibrate import calibrate
from demur.policy.policy import Policy
from demur.pools.splits import Rows
from demur.pools.voted_pools import VotedPools

OPTIMISTIC = (
    "The new version is compared on the audits that calibrated it, which flatters it: its threshold was chosen to "
    "leave few of their errors."
)
FAIR = "Both versions are compared on audits that were kept back from the new one."
_ANY = Fraction(1, 2)


def guarantees_again(old: Policy, alphas: Sequence[Level] | None = None) -> list[Guarantee]:
    """What a policy promises, to be promised again; or the same kind of promise for other alphas."""
    guarantees = [rule.guarantee for rule in old.points]
    for one in guarantees:
        if isinstance(one, Shifted) and not alphas:
            raise InvalidValue(
                "this policy promises under a shift of questions, and audits come from the questions themselves",
                "name {alpha} for a promise about these, without weights",
            )
        if isinstance(one, JudgedGuarantee) and not alphas:
            raise InvalidValue(
                "this policy rests on a judge's labels of all votes, and audits have people's",
                "name {alpha} for a promise by people's labels",
            )
    if old.outliers is not None:
        raise InvalidValue(
            "this policy abstains on outliers too, which are found anew only where the questions' texts are",
            "export the audits, and calibrate them with {outlier_level}",
        )
    if not alphas:
        return guarantees
    kinds = {repr(_at(one, _ANY)): one for one in guarantees}
    if len(kinds) > 1:
        raise InvalidValue(
            f"this policy holds {len(kinds)} kinds of guarantee, and an alpha does not say which", "leave {alpha} out"
        )
    return [_at(guarantees[0], alpha) for alpha in alphas]


def _at(guarantee: Guarantee, alpha: Level) -> Guarantee:
    """The same kind of guarantee for another alpha; where weights or a judge are part of it, without them."""
    if isinstance(guarantee, Grouped):
        return replace(guarantee, guarantee=_at(guarantee.guarantee, alpha))  # type: ignore[arg-type]
    plain: Any = guarantee.guarantee if isinstance(guarantee, Shifted) else guarantee
    if isinstance(plain, JudgedGuarantee):
        delta = plain.parameters().get("delta")
        plain = Marginal(0.5) if delta is None else HighProbability(0.5, delta)
    kind: Any = type(plain)
    made: Guarantee = kind(**{**plain.parameters(), "alpha": alpha})
    return made


def recalibrate(old: Policy, voted: VotedPools, guarantees: Sequence[Guarantee]) -> Policy:
    """A policy on other votes that were made the same way; those without a label count as wrong."""
    old.check(voted.votes)
    new = calibrate(voted, guarantee=list(guarantees), partly_labelled=True, sizes_by_chance=old.strata.by_chance)
    # Votes that were kept without texts were let in by the old policy, so they have system prompts that it knows.
    return new if new.systems is not None else replace(new, systems=old.systems)


def labels_to_get(
    voted: VotedPools, guarantees: Sequence[Guarantee], *, by_chance: bool = False
) -> tuple[list[LabelProgress], list[str]]:
    """How far the labels of each guarantee are, and the ids of the votes to label next, the most wanted first.

    Of guarantees that need all labels, nothing is said.
    """
    ranked = [
        one for one in guarantees if isinstance(one.guarantee if isinstance(one, Grouped) else one, RankGuarantee)
    ]
    if not ranked:
        return [], []
    queue = LabelQueue(voted, ranked, sizes_by_chance=by_chance)
    known = np.ones(len(voted), dtype=np.bool_) if voted.known is None else voted.known
    for row in queue.rows[known[queue.rows]].tolist():
        queue.label(row, right=bool(voted.labels_so_far[row]))
    wanted = [] if queue.next is None else [voted.ids[row] for row in queue.wanted]
    return queue.progress(), wanted


@dataclass(frozen=True)
class OnVotes:
    """What one version makes of some votes."""

    threshold: float
    answered: int
    wrong: int
    """Of those answered, those known to be wrong."""
    unlabelled: int
    """Of those answered, those of which that is not known."""


@dataclass(frozen=True)
class Comparison:
    """Two versions at one alpha, on the same votes."""

    alpha: float
    guarantee: str
    votes: int
    old: OnVotes | None
    """None where the old version has no such operating point."""
    new: OnVotes


def compare(old: Policy, new: Policy, voted: VotedPools, rows: Rows | None = None) -> list[Comparison]:
    """The two versions at each alpha of the new one; of each question one vote counts."""
    rows = voted.counted if rows is None else rows
    found = []
    for rule in new.points:
        before = [one for one in old.points if (one.alpha, one.guarantee.name) == (rule.alpha, rule.guarantee.name)]
        mine, theirs = _on(rule, voted, rows), _on(before[0], voted, rows) if before else None
        found.append(Comparison(rule.alpha, rule.guarantee.name, len(rows), theirs, mine))
    return found


def _on(rule: Rule, voted: VotedPools, rows: Rows) -> OnVotes:
    cases, correct, known = voted.cases_of(rows)
    answered = rule.answers(cases)
    there = np.ones(len(rows), dtype=np.bool_) if known is None else known
    return OnVotes(
        rule.threshold,
        int(answered.sum()),
        int((answered & there & ~correct).sum()),
        int((answered & ~there).sum()),
    )
