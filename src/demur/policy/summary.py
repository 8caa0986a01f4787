"""A policy in words: what it promises, what to expect of it, and what is the matter with it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from demur.calibration import Rule, forecast
from demur.policy.groups import group_warnings
from demur.policy.label_notes import label_notes
from demur.policy.outliers import outlier_notes
from demur.policy.replaced import replaced_note
from demur.policy.set_notes import set_note
from demur.policy.stopped import told_stopping
from demur.policy.system_prompts import system_note
from demur.policy.weighing import weight_notes

if TYPE_CHECKING:
    from demur.policy.policy import Policy

_MUCH_UNSPENT = 0.1
"""The share of alpha from which on it is said that ties leave it unspent."""


def summary_of(policy: Policy) -> str:
    """The promise and the forecast of each operating point, in words."""
    lines = [f"{policy.n} calibration {policy.unit}s, vote accuracy {as_percent(policy.evidence.vote_accuracy)}"]
    lines += [] if policy.labels.is_plain else [f"right: {policy.labels.told}"]
    lines += [*label_notes(policy), *weight_notes(policy), *outlier_notes(policy)]
    for rule in policy.points:
        expected = forecast(policy.strata, rule)
        lines.append(f"alpha {rule.alpha:g} ({rule.guarantee.name.replace('_', ' ')}): {rule.promise}")
        if not rule.feasible:
            lines.append(f"  never answers: needs {rule.guarantee.n_needed()} calibration {policy.unit}s")
            continue
        lines.append(
            f"  {rule.told}: expect {as_percent(expected.answered)} answered, "
            f"{as_percent(expected.selective_accuracy_corrected)} of those right "
            f"(at least {as_percent(expected.accuracy_at_least)} with 95 % confidence), "
            f"{as_percent(expected.expected_confident_error)} of all {policy.unit}s answered wrongly, "
            f"{as_percent(expected.false_abstention)} right but withheld"
        )
        if policy.every_question is not None:
            every = forecast(policy.every_question, rule)
            questions = f"of all {policy.every_question.n} questions in these clusters"
            lines.append(f"  {questions}, {as_percent(every.confident_error)} are answered wrongly")
        if policy.sets:
            lines.append(f"  on abstaining: {set_note(policy, rule)}")
    ties = (tie_note(policy, rule) for rule in policy.points)
    sizes = (size_note(policy), *size_warnings(policy), replaced_note(policy))
    lines += [note for note in (*ties, *sizes, *group_warnings(policy), system_note(policy)) if note]
    return "\n".join(lines)


def tie_note(policy: Policy, rule: Rule) -> str:
    """That a good part of alpha is not spent because votes tie at a rule's threshold, in words; blank where not."""
    unspent = forecast(policy.strata, rule).unspent_by_ties
    if unspent < _MUCH_UNSPENT * rule.alpha:
        return ""
    allowed = f"of the {as_percent(rule.alpha)} that alpha = {rule.alpha:g} allows unspent:"
    left = f"Ties leave {as_percent(unspent)} {allowed}"
    if rule.needs_groups:
        return f"{left} in some groups votes share the confidence of the threshold; a tie-break would tell them apart."
    pooled, key = policy.strata.pooled, rule.threshold_key
    tied = int((pooled.levels == key).all(axis=1) @ (pooled.right + pooled.not_right))
    shared = f"{tied} calibration votes share the confidence {rule.threshold:.4g}"
    return f"{left} {shared}, and are answered together or not at all; a tie-break would tell them apart."


def size_note(policy: Policy) -> str:
    """How many pools have how many paths, in words; blank where all have as many."""
    if len(policy.sizes) == 1 and policy.stopping is None:
        return ""
    told = ", ".join(f"{size} ({pools})" for size, pools in policy.sizes.items())
    if policy.stopping is not None:
        return f"{told_stopping(policy)} Paths per pool (pools): {told}."
    if policy.strata.by_chance:
        return f"Paths per pool (pools): {told}. They vary by chance in use as here, so one threshold serves all."
    alone = all(rule.among_answers for rule in policy.points)
    passed = "Each size has a threshold of its own." if alone else "Each size has to pass its own threshold too."
    return f"Paths per pool (pools): {told}. {passed}"


def size_warnings(policy: Policy) -> list[str]:
    """Which sizes are not answered, and why."""
    notes = []
    for rule in policy.points:
        needed, rare = rule.needed_per_size, [str(size) for size in policy.sizes if not rule.takes(size)]
        if rare and rule.feasible and not rule.needs_groups:
            notes.append(
                f"pools of {', '.join(rare)} paths are not answered at alpha = {rule.alpha:g}: fewer than {needed} "
                "calibrated each; where paths are missing because sampling failed, sample again to draw the rest"
            )
    return notes


def as_percent(rate: float) -> str:
    return "–" if math.isnan(rate) else f"{100 * rate:.1f} %"
