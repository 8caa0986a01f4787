"""What the page says of groups: the threshold of each, what to expect in it and what happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from demur.calibration import GroupedRule, Rule, forecast_of_group
from demur.calibration.guarantee import without_infinity
from demur.evaluation.group_audit import audit_groups
from demur.policy.policy import Policy
from demur.pools.voted_pools import VotedPools
from demur.records import Groups


def kinds_of(voted: VotedPools) -> list[Groups]:
    """The groups that questions have together, in the order of their codes; one kind where none are known."""
    return [()] if voted.votes.groups is None else list(voted.votes.groups.kinds)


def kind_codes(voted: VotedPools) -> list[int]:
    """The kind of each question."""
    return [0] * len(voted) if voted.votes.groups is None else voted.votes.groups.codes.tolist()


def by_kind(rule: Rule, kinds: Sequence[Groups], sizes: Sequence[int]) -> dict[str, Any]:
    """The threshold of each kind and size, and why none of a kind is answered; nothing where groups do not matter."""
    if not rule.needs_groups:
        return {}
    keys = [{str(size): without_infinity(rule.threshold_of(size, kind)) for size in sizes} for kind in kinds]
    return {
        "threshold": without_infinity(rule.threshold_key),
        "by_kind": keys,
        "refusals": [rule.refusal(kind) for kind in kinds],
    }


def group_rows(
    policy: Policy, rule: Rule, voted: VotedPools, fresh: Any, *, chosen: bool
) -> list[dict[str, Any]] | None:
    """A row per group of calibration, with what happened to its new questions; None where groups do not matter."""
    if not isinstance(rule, GroupedRule):
        return None
    audits = _audits(policy, rule, voted, fresh) if chosen else {}
    rows = []
    for name, n in policy.strata.groups.items():
        told, own = forecast_of_group(policy.strata, rule, name), rule.of_kind((name,))
        found = audits.get(name)
        rows.append(
            {
                "group": name,
                "n": n,
                "threshold": without_infinity(own.threshold_key),
                "answers": own.feasible,
                "stand_in": bool(rule.stand_in((name,))),
                "answered": told.answered,
                "accuracy": told.selective_accuracy_corrected,
                "expected_confident_error": told.expected_confident_error,
                "observed": None if found is None else found.document(),
            }
        )
    return rows


def _audits(policy: Policy, rule: GroupedRule, voted: VotedPools, fresh: Any) -> dict[str, Any]:
    if not len(fresh):
        return {}
    cases = voted.votes.cases.take(fresh)
    answered, right = rule.answers(cases), voted.labelled[fresh]
    found = audit_groups(rule, policy.strata, cases, answered, right, len(policy.points))
    return {audit.group: audit for audit in found}
