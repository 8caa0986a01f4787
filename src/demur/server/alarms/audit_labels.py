"""What is known of an audited decision: was it answered, and wrongly?"""

from __future__ import annotations

from collections.abc import Sequence

from demur.calibration import Rule
from demur.monitoring import AuditedQuestion
from demur.pipeline.spoken_labels import by_weight
from demur.server.served import Served
from demur.store.service import Decision, Feedback

_DAY = 24 * 3_600_000


def is_at(rule: Rule, decision: Decision) -> bool:
    """Whether a decision was made at an operating point."""
    return decision.alpha == f"{rule.alpha:g}" and decision.guarantee == rule.guarantee.name


def is_too_late(at: int, now: int, label_days: float) -> bool:
    """Whether the label of what was asked at a time is given up."""
    return now - at > label_days * _DAY


def audited_question(
    served: Served, decision: Decision, words: Sequence[Feedback], now: int, label_days: float
) -> AuditedQuestion:
    """An audit as monitors take it.

    The word that counts most of those that say something: right, wrong, or the true answer. `unsure` says nothing. An
    answer that nobody has judged after `label_days` is given up.
    """
    if decision.outcome != "answered":
        return AuditedQuestion(answered=False)
    verdicts = (is_wrong(served, decision, word) for word in by_weight(words))
    wrong = next((verdict for verdict in verdicts if verdict is not None), None)
    return AuditedQuestion(True, wrong, given_up=wrong is None and is_too_late(decision.at, now, label_days))


def is_wrong(served: Served, decision: Decision, word: Feedback) -> bool | None:
    """Whether somebody's word makes an answer wrong; None where it does not say."""
    right = served.spoken.of_word(decision, word).right
    return None if right is None else not right
