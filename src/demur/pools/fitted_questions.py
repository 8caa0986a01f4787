"""Questions that shaped weights or a gate may not calibrate: they are known by their digests."""

from __future__ import annotations

from collections.abc import Set

from demur.errors import CalibrationLeak, InvalidValue
from demur.pools.voted_pools import VotedPools
from demur.records import question_digest


def refuse_without_question(voted: VotedPools, why: str) -> None:
    """Raise if some of these votes are on questions of which nothing is known, which something looks at."""
    lacking = len(voted) if voted.questions is None else sum(digest is None for digest in voted.questions)
    if lacking:
        raise InvalidValue(
            f"{lacking} of {len(voted)} calibration votes have no question text, which {why}",
            "give the questions with the pools or votes",
        )


def refuse_fitted_questions(voted: VotedPools, fitted_on: Set[str], what: str) -> None:
    """Raise if some of these questions shaped `what`: then they cannot calibrate."""
    digests = [None] * len(voted) if voted.questions is None else list(voted.questions)
    if all(digest is None for digest in digests):
        raise InvalidValue(
            f"{what} need votes with questions, to check that calibration does not use those they were fitted on",
            "give the questions with the pools or votes",
        )
    texts = [None] * len(voted) if voted.table is None else voted.table.questions
    for row, (digest, text) in enumerate(zip(digests, texts, strict=True)):
        if digest in fitted_on or (text is not None and question_digest(text) in fitted_on):
            raise CalibrationLeak(
                f"{what} were fitted on calibration problems ({voted.ids[row]!r})",
                "fit on questions that calibration does not use",
            )
