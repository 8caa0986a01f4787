"""Calibration votes that a judge labelled, a random part of them checked by people: what of that calibrates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from demur.calibration import Guarantee, JudgedGuarantee
from demur.errors import InvalidValue
from demur.evidence.counts import Evidence
from demur.evidence.judge_check import JudgeCheck
from demur.pools.checks import Checks
from demur.pools.label_rule import LabelRule
from demur.pools.splits import Rows
from demur.pools.voted_pools import VotedPools


@dataclass(frozen=True, eq=False)
class JudgedVotes:
    """The votes that calibrate with their labels, what the check found, and what errors it found missed."""

    voted: VotedPools
    check: JudgeCheck | None
    """None where there are no labels but people's."""
    rule: LabelRule
    """What people call right."""
    missed: Evidence | None = None
    """Where the judge's labels calibrate too; None where the checked votes do alone."""
    clustered: bool = False
    """Whether clusters are what counts, even where of each one question was checked."""


def judged_votes(voted: VotedPools, checks: Checks, guarantees: Sequence[Guarantee]) -> JudgedVotes:
    """By the guarantees: the checked votes alone, with people's labels, or all votes with the judge's."""
    kinds = {isinstance(one, JudgedGuarantee) for one in guarantees}
    if len(kinds) > 1:
        raise InvalidValue(
            "guarantees by a judge's labels use those of all votes, and the others those of the checked ones",
            "make a policy of each",
        )
    voted, checks = _scored(voted, checks)
    checks.refuse_extremes(voted.votes.key)
    n, judged = len(voted.counted), None if voted.correct is None else voted.correct & _known(voted)
    if not kinds.pop():
        rows = _checked_rows(voted, checks)
        part, mine = _checked_alone(voted, checks, rows)
        counted = part.counted
        check = None if judged is None else JudgeCheck.of(judged[rows][counted], mine.take(counted), n)
        return JudgedVotes(part, check, checks.rule, clustered=voted.clustered)
    if voted.clustered:
        raise InvalidValue(
            "guarantees by a judge's labels count questions, and some of these share a cluster",
            "calibrate on the checked votes alone, without them",
        )
    if judged is None:
        voted.labels_so_far  # noqa: B018 - says what is lacking
    assert judged is not None
    rows = voted.counted
    counted_checks = checks.take(rows)
    # A judge's "wrong" that people call right is right, and only what people know can be missed.
    right = judged | (checks.known & checks.right)
    known = _known(voted) | (checks.known & checks.right)
    not_missed = (checks.right & checks.known) | (~voted.labels_so_far & _known(voted))
    drawn = rows[counted_checks.drawn]
    missed = Evidence.of(voted.votes.key[drawn], not_missed[drawn])
    check = JudgeCheck.of(judged[rows], counted_checks, n)
    return JudgedVotes(voted.with_labels(right, known), check, checks.rule, missed)


def _scored(voted: VotedPools, checks: Checks) -> tuple[VotedPools, Checks]:
    unscored = voted.votes.unscored
    return (voted, checks) if unscored is None else (voted.scored, checks.take(np.flatnonzero(~unscored)))


def _known(voted: VotedPools) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.ones(len(voted), dtype=np.bool_) if voted.known is None else voted.known


def _checked_rows(voted: VotedPools, checks: Checks) -> Rows:
    """The drawn votes of clusters and questions whose vote that counts was drawn.

    Of rows drawn at random, large clusters have one more often: by the one that counts, all clusters are drawn alike.
    """
    counted = voted.counted[checks.drawn[voted.counted]]
    if not len(counted):
        raise InvalidValue(
            "of no cluster or question the one vote that counts was checked, so that nothing can be promised",
            "draw the part to be checked from the votes that count",
        )
    return np.flatnonzero(checks.drawn & np.isin(voted.units, voted.units[counted]))


def _checked_alone(voted: VotedPools, checks: Checks, rows: Rows) -> tuple[VotedPools, Checks]:
    """Some drawn votes with people's labels, which may lack some, and what is known of those."""
    part, mine = voted.take(rows), checks.take(rows)
    return part.with_labels(mine.right, None if mine.known.all() else mine.known), mine
