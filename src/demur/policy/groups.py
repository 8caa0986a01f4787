"""A promise per group: which groups a question is of, and which of them are not answered."""

from __future__ import annotations

from collections.abc import Iterable

from demur.calibration import GroupedRule, Rule
from demur.errors import InvalidValue
from demur.policy.document import PolicyParts
from demur.records import Groups, Problem, group_in_file, groups_of


def groups_asked(
    policy: PolicyParts, rule: Rule, question: str | Problem | None, group: str | Iterable[str] | None
) -> Groups:
    """The groups of one question: as they are given, or as its problem has them."""
    if group is None and isinstance(question, Problem):
        name = policy.upstream.answers.get("group_field")
        return question.groups if name is None else groups_of(group_in_file(question.extra.get(name), "a question"))
    if group is None and rule.needs_groups:
        raise InvalidValue(
            f"the guarantee {rule.guarantee.name} is for groups of questions",
            "say of which this one is with {group}, be it (), or name a guarantee that needs none as {guarantee}",
        )
    return groups_of(group)


def group_warnings(policy: PolicyParts) -> list[str]:
    """Which groups are not answered, or take the threshold of all together, and why."""
    notes = []
    for rule in policy.points:
        if isinstance(rule, GroupedRule) and rule.feasible and rule.small_groups:
            told = ", ".join(f"{name} ({rule.group_sizes[name]})" for name in rule.small_groups)
            fate = "are not answered" if rule.pooled is None else "take the threshold of all questions together"
            notes.append(
                f"questions of the groups {told} {fate} at alpha = {rule.alpha:g}: fewer than "
                f"{rule.guarantee.n_needed()} calibrated each"
            )
    return notes
