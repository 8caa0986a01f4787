"""What people said of a decision, as a label: a verdict counts as it is, a true answer by the policy's own rule.

Audits, reviews, feedback and recalibration all read what was said here, so that one word never counts in two ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from demur.errors import DemurError
from demur.policy.policy import Policy
from demur.pools.fields import FieldChoice, read_table
from demur.pools.label_rule import LabelRule
from demur.pools.labels import read_labels
from demur.records import Path, Pool, Problem
from demur.store.service import Decision, Feedback

_NOT_KEPT = "?"
"""The winner of a vote whose texts were not kept."""


@dataclass(frozen=True)
class SpokenLabel:
    """Whether a vote is right, as somebody said."""

    right: bool | None
    lost: bool = False
    """A true answer was given, and cannot be compared with the vote."""


class SpokenLabels:
    """Whether votes are right, by what people said of them and by the policy's own rule for true answers."""

    def __init__(self, policy: Policy) -> None:
        self.fields = replace(FieldChoice.of(policy.description), score=None)
        rule = policy.labels
        plain = rule.label_field is not None or rule.people
        self.rule = LabelRule() if plain else replace(rule, judge=None, verdicts=None)
        self.task = policy.upstream.answers.get("task")

    def label(self, made: Decision, words: Sequence[Feedback], *, callers: bool = False) -> SpokenLabel:
        """By the word that counts most of those that say something; `unsure` says nothing."""
        if winner_of(made) is None:
            return SpokenLabel(False)
        labels = [self.of_word(made, word) for word in by_weight(words, callers=callers)]
        lost = any(label.lost for label in labels)
        return next((label for label in labels if label.right is not None), SpokenLabel(None, lost))

    def of_word(self, made: Decision, word: Feedback) -> SpokenLabel:
        """By one word; a verdict and a true answer that contradict each other make no vote right.

        Who is unsure says nothing, whatever answer they name.
        """
        if word.verdict in ("wrong", "unsure"):
            return SpokenLabel(False if word.verdict == "wrong" else None)
        same = None if word.answer is None else self.agrees(made, word.answer)
        if same is not None:
            return SpokenLabel(same)
        return SpokenLabel(True if word.verdict == "right" else None, lost=word.answer is not None)

    def agrees(self, made: Decision, true: str) -> bool | None:
        """Whether the vote's winner is the true answer; None where that cannot be told."""
        if made.winner is None:
            return None
        asked = {name: value for name, value in (made.asked or {}).items() if name != "groups"}
        known = {**asked, **({} if self.task is None else {"task": self.task})}
        pool = Pool(Problem(made.request, made.question, (true,), extra=known), (Path(made.winner),))
        try:
            table = read_table([pool], self.fields)
            return read_labels([pool], table, self.rule).is_right(0, table.answers[0][0])
        except DemurError:  # what was given is no answer by this relation
            return None


def by_weight(words: Sequence[Feedback], *, callers: bool = False) -> list[Feedback]:
    """The words on one decision that count, the one that counts most first: of reviewers, the later before the earlier.

    Callers could move a promise by what they say of their own requests. Their words count with `callers` alone, and
    after those of reviewers.
    """
    counted = (word for word in words if callers or word.source == "review")
    return sorted(counted, key=lambda word: (word.source == "review", word.feedback), reverse=True)


def winner_of(made: Decision) -> str | None:
    """What won the vote; a stand-in where it was not kept, None where there was nothing to vote for."""
    if made.winner is not None:
        return made.winner
    return _NOT_KEPT if made.document.get("votes") else None
