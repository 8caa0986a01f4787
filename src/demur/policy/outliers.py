"""A gate behind the thresholds: questions that are unlike the calibration ones are abstained on as well.

It is measured on the calibration questions, half of which say what is usual while the other half are ranked, and has no
say in the thresholds. So it only turns answers into abstentions: whatever is promised of P(answered and wrong) holds as
it did. What is promised of the answers given (`Selective`, a batch) or of the abstentions (answer sets) does not, for
it changes which questions those are; there the gate must be part of the key, measured on questions that calibrate
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from demur.calibration import Rule
from demur.errors import InvalidValue
from demur.policy.document import PolicyParts
from demur.pools.voted_pools import VotedPools
from demur.questions.outliers import Likeness, OutlierGate, checked_level, questions_needed
from demur.records import question_digest
from demur.voting.votes import Votes

_IN_KEY = "give questions that calibrate nothing as {gate}, which is part of the key, in place of {outlier_level}"


def gate_on(voted: VotedPools, level: Any) -> OutlierGate:
    """The gate of calibration votes, by the questions that count: of those of one cluster, one does."""
    level, rows, asked = checked_level(level), voted.counted.tolist(), voted.votes.beside.asked
    texts = [None if asked is None else asked[row] for row in rows]
    if lacking := sum(question_digest(text) is None for text in texts):
        raise InvalidValue(
            f"{lacking} of {len(rows)} calibration questions have no text, by which outliers are told from them",
            "give the questions with the pools or votes, or leave {outlier_level} out",
        )
    if len(rows) < (needed := questions_needed(level)):
        raise InvalidValue(
            f"{len(rows)} calibration questions are too few to tell outliers from them at level {level:g}, which needs "
            f"{needed}",
            "give more, or a larger {outlier_level}",
        )
    known = [None] * len(voted) if voted.questions is None else voted.questions
    return OutlierGate.of_texts(
        [(known[row] or str(question_digest(text)), str(text)) for row, text in zip(rows, texts, strict=True)],
        level=level,
    )


def refuse_about_answers(rules: Iterable[Rule], *, sets: bool) -> None:
    """Raise where something is promised that a gate behind the thresholds would break."""
    about = next((rule.guarantee.name.replace("_", " ") for rule in rules if rule.among_answers), None)
    if about is not None:
        raise InvalidValue(
            f"a {about} promise is about the answers given, and does not survive that outliers are taken out of them",
            _IN_KEY,
        )
    if sets:
        raise InvalidValue(
            "answer sets are promised of the abstentions, and do not survive that outliers are put among them", _IN_KEY
        )


def refuse_batch(policy: PolicyParts) -> None:
    """Raise where a batch is asked for of a policy that abstains on outliers as well."""
    if policy.outliers is not None:
        raise InvalidValue(
            "a batch is promised few wrong ones among its answers, which does not survive that this policy takes "
            "outliers out of them",
            f"calibrate again: {_IN_KEY}",
        )


def likeness_of(policy: PolicyParts, votes: Votes) -> Likeness | None:
    """How much the questions of votes are like the calibration ones; None where the policy does not look at that.

    One that has no text is like none.
    """
    if policy.outliers is None:
        return None
    asked = votes.beside.asked
    if len(votes) and (asked is None or all(question_digest(text) is None for text in asked)):
        raise InvalidValue(
            "this policy abstains on questions that are unlike the calibration ones, and of these votes no question is "
            "known by its text",
            "give the questions with the pools or votes",
        )
    return policy.outliers.likeness([] if asked is None else asked)


def without_outliers(policy: PolicyParts, voted: VotedPools) -> VotedPools:
    """The same with no confidence in votes on outliers, which are never answered: for tables that count answers."""
    likeness = likeness_of(policy, voted.votes)
    if likeness is None:
        return voted
    key = voted.votes.key.copy()
    key[likeness.unlike, 0] = np.minimum(key[likeness.unlike, 0], 0.0)
    return replace(voted, votes=replace(voted.votes, key=key))


def outlier_notes(policy: PolicyParts) -> list[str]:
    """What abstaining on outliers costs, in words; nothing where the policy does not."""
    if policy.outliers is None:
        return []
    level, ranked = policy.outliers.level, len(policy.outliers.ranked)
    return [
        f"questions that are unlike the calibration ones are abstained on as well, by their rank among {ranked} of "
        f"these: at most {level:.4g} of questions like them, so that up to so much less is answered than is foretold "
        "here, and no more wrongly"
    ]
