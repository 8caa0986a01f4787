"""Questions that shaped weights or a gate may not calibrate, nor test: they are known by their digests."""

from __future__ import annotations

from collections.abc import Set

from demur.errors import CalibrationLeak, InvalidValue
from demur.pools.splits import Rows
from demur.pools.voted_pools import VotedPools
from demur.questions.density_ratio import DensityRatio
from demur.questions.outliers import OutlierGate
from demur.records import question_digest


def refuse_without_question(voted: VotedPools, why: str) -> None:
    """Raise if some of these votes are on questions of which nothing is known, which something looks at."""
    lacking = len(voted) if voted.questions is None else sum(digest is None for digest in voted.questions)
    if lacking:
        raise InvalidValue(
            f"{lacking} of {len(voted)} calibration votes have no question text, which {why}",
            "give the questions with the pools or votes",
        )


def refuse_gated(voted: VotedPools) -> None:
    """Raise if a gate looks at questions of these votes that are not known, or that are its reference."""
    if (gate := voted.votes.recipe.gate) is not None:
        refuse_without_question(voted, "the gate looks at")
        refuse_fitted_questions(voted, gate.fitted_on, "the gate and its p-values")


def refuse_fitted_questions(voted: VotedPools, fitted_on: Set[str], what: str) -> None:
    """Raise if some of these questions shaped `what`: then they cannot calibrate."""
    if voted.questions is None or all(digest is None for digest in voted.questions):
        raise InvalidValue(
            f"{what} need votes with questions, to check that calibration does not use those they were fitted on",
            "give the questions with the pools or votes",
        )
    if rows := _fitted_rows(voted, fitted_on):
        raise CalibrationLeak(
            f"{what} were fitted on calibration problems ({voted.ids[rows[0]]!r})",
            "fit on questions that calibration does not use",
        )


def refuse_fitted_tests(voted: VotedPools, gate: OutlierGate | None, shift: DensityRatio | None, rows: Rows) -> None:
    """Raise if some of these rows shaped the gate or the weights of a policy: they are not new to it."""
    for what, fitted in (("the gate", gate), ("the weights", shift)):
        shared = set() if fitted is None else set(_fitted_rows(voted, fitted.fitted_on)) & set(rows.tolist())
        if shared:
            raise CalibrationLeak(
                f"{len(shared)} of {len(rows)} problems shaped {what} of this policy (the first is "
                f"{voted.names[min(shared)]!r}), so that they are not new to it",
                "leave them out, or give other problems",
            )


def _fitted_rows(voted: VotedPools, fitted_on: Set[str]) -> list[int]:
    """The rows of questions that are known by these digests, with or without their options and passages."""
    digests = [None] * len(voted) if voted.questions is None else list(voted.questions)
    texts = [None] * len(voted) if voted.table is None else voted.table.questions
    return [
        row
        for row, (digest, text) in enumerate(zip(digests, texts, strict=True))
        if digest in fitted_on or (text is not None and question_digest(text) in fitted_on)
    ]
