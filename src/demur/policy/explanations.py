"""The sentence that goes with a decision: what was decided and why, what is promised and what is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from demur.calibration.choices import choices_of
from demur.calibration.guarantee import NOWHERE_FEW_ENOUGH, Rule
from demur.evidence.strata import Strata
from demur.records import Early, Groups, Vote
from demur.voting.gate import GATED

NOT_PROMISED = (
    "This is not a promise about this one question, nor that this share of the given answers is right, "
    "nor about questions of another kind."
)
NOT_PROMISED_OF_ANSWERS = (
    "This is not a promise about this one answer, nor about any few of them, nor about questions of another kind."
)
UNLIKE = "this question is unlike the reference questions of the policy's gate, or has no text to tell by"


@dataclass(frozen=True)
class About:
    """What is known of a question besides its vote."""

    names: Sequence[str]
    """What the numbers of its key are."""
    groups: Groups = ()
    weight: float | None = None
    """How much it counts, where that matters."""
    likeness: float | None = None
    """Its p-value among the calibration questions, where the policy abstains on outliers as well."""
    unlike: bool = False
    """Whether it is one."""


def _on_p_value(rule: Rule, p_value: float, *, answered: bool) -> str:
    """What a p-value has to do with the decision, where one may think otherwise; blank where they agree."""
    if (choices := choices_of(rule.guarantee)) > 1:
        return (
            f" The p-value {p_value:.4g} is that of one way to vote fixed beforehand: it does not pay for the choice "
            f"from {choices} by the same labels, as the threshold does."
        )
    if answered == (p_value <= rule.alpha):
        return ""
    return (
        f" The p-value {p_value:.4g} alone would say otherwise: it belongs to the marginal guarantee, and this policy "
        f"holds the {rule.guarantee.name.replace('_', '-')} one."
    )


def _confidence(vote: Vote, names: Sequence[str]) -> str:
    """What leads its key: the confidence, or one that is not the winner's share."""
    if names[0].removeprefix(GATED) == "share":
        return f"confidence {vote.confidence:.4g}"
    return f"{names[0].replace('_', ' ')} confidence {vote.key[0]:.4g} (share of the vote {vote.confidence:.4g})"


def comparison(
    first: str,
    key: Sequence[float],
    threshold: Sequence[float],
    names: Sequence[str],
    *,
    answered: bool,
    form: str = ".4g",
) -> str:
    """How a key compares with a threshold: by its first number, told by `first`, or by the one that breaks a tie."""
    beyond = "above" if answered else "not above"
    at = next((at for at, bound in enumerate(threshold) if key[at] != bound), len(threshold) - 1)
    if at == 0 or math.isinf(threshold[at]):  # what nothing exceeds breaks no tie
        return f"{first} is {beyond} the threshold {threshold[0]:{form}}"
    tie = f"its {names[at].replace('_', ' ')} {key[at]:{form}} is {beyond} {threshold[at]:{form}}"
    return f"{first} ties with the threshold, and {tie}"


def compared_early(early: Early, key: Sequence[float], threshold: Sequence[float], names: Sequence[str]) -> str:
    """Why the missing paths change nothing."""
    answered = early.answer is not None
    others = "the last path says" if early.left == 1 else f"the other {early.left} say"
    wins = f"whatever {others}, this answer wins, and its" if answered else f"whatever {others}, the winner's"
    if answered and threshold[0] == 0:
        return f"whatever {others}, this answer wins, and at this alpha the policy always answers"
    kind = names[0].removeprefix(GATED)
    which = "" if kind == "share" else f"{kind.replace('_', ' ')} "
    bound = bound_shown(key[0], threshold[0], least=answered)
    beyond = "above" if answered else "not above"
    if key[0] != threshold[0] or len(threshold) == 1 or math.isinf(threshold[1]):
        return f"{wins} {which}confidence, {bound}, is {beyond} the threshold {threshold[0]:.4g}"
    at = next((at for at, limit in enumerate(threshold) if key[at] != limit), len(threshold) - 1)
    tie = f"its {names[at].replace('_', ' ')} {key[at]:.4g} is {beyond} {threshold[at]:.4g}"
    side = "below" if answered else "above"
    return f"{wins} {which}confidence, {bound}, is not {side} the threshold, and should the two tie, {tie}"


def bound_shown(share: float, threshold: float, *, least: bool) -> str:
    """A bound in words, rounded to the side where it stays true, and never across a threshold."""
    rounded = (math.floor if least else math.ceil)(share * 1e4) / 1e4
    same_side = (rounded > threshold) == (share > threshold) and (rounded == threshold) == (share == threshold)
    return f"{'at least' if least else 'at most'} {rounded if same_side else share:.12g}"


def without_vote(vote: Vote) -> str | None:
    """Why there is nothing to be answered, whatever the threshold; None where there is something."""
    if vote.unscored:
        return "a path of this pool has no score"
    if vote.answer is None:
        return "no path has an answer"
    return "the paths that have an answer have no weight" if vote.confidence == 0 else None


def is_gated(vote: Vote, names: Sequence[str]) -> bool:
    """Whether a vote has lost its confidence to a gate."""
    return names[0].startswith(GATED) and vote.key[0] == 0 < vote.confidence


def _outlier(rule: Rule, p_value: float) -> str:
    """Why a question is abstained on whose vote has no say."""
    if p_value == 0:
        return "this question has no text to tell by whether it is like the calibration questions"
    return (
        f"this question is unlike the calibration questions: its p-value among them, {p_value:.4g}, is not above "
        f"{rule.outlier_level}"
    )


def explain(
    vote: Vote,
    rule: Rule,
    p_value: float,
    *,
    answered: bool,
    seen: Strata,
    about: About,
    early: Early | None = None,
) -> str:
    """What was decided, what is promised and what is not.

    Where it was certain `early`, the vote is that of the whole pool as far as it is known: bounds.
    """
    if not rule.feasible:
        return f"Abstained: {rule.too_few}; until then the policy abstains always."
    if rule.among_answers and rule.never_answers:
        return f"Abstained: {NOWHERE_FEW_ENOUGH} {rule.promise}"
    if (nothing := without_vote(vote)) is not None and (early is None or vote.unscored):
        return f"Abstained: {nothing}. {rule.promise}"
    names, groups, weight = about.names, about.groups, about.weight
    if is_gated(vote, names):
        return f"Abstained: {UNLIKE}. {rule.promise}"
    if about.unlike:
        return f"Abstained: {_outlier(rule, about.likeness or 0.0)}. {rule.promise}"
    if (refusal := rule.refused_weight(weight) or rule.refusal(groups)) is not None:
        return f"Abstained: {refusal}. {rule.promise}"
    threshold = rule.threshold_of(vote.n_paths, groups, weight)
    if not rule.takes(vote.n_paths, groups):
        alike = seen.of_group(groups[0]) if rule.needs_groups and groups else seen
        of_group = f" of the group {groups[0]!r:.60}" if rule.needs_groups and groups else ""
        return (
            f"Abstained: this pool has {vote.n_paths} paths, and {alike.sizes.get(vote.n_paths, 0)} calibration pools"
            f"{of_group} had as many, where alpha = {rule.alpha:g} needs {rule.needed_per_size}; if paths are missing "
            f"because sampling failed, sample again to draw the rest. {rule.promise}"
        )
    head = "Answered" if answered else "Abstained"
    if early is not None:
        head = f"{head} after {early.n_paths} of {early.of} paths"
        compared = compared_early(early, vote.key, threshold, names)
    else:
        compared = comparison(_confidence(vote, names), vote.key, threshold, names, answered=answered)
        if answered and threshold[0] == 0:
            compared = f"{_confidence(vote, names)}, and at this alpha the policy always answers"
    aside = rule.weight_note(weight) + (f" {told}" if (told := rule.stand_in(groups)) else "")
    aside += "" if early is not None else _on_p_value(rule, p_value, answered=answered)
    not_promised = NOT_PROMISED_OF_ANSWERS if rule.among_answers else NOT_PROMISED
    return f"{head}: {compared}.{aside} {rule.promise} {not_promised}"
