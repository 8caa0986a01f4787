"""Which of a policy's operating points is meant; a simultaneous promise has one for every alpha."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.calibration import Level, Rule, Simultaneous, exact_alpha
from demur.errors import InvalidValue

if TYPE_CHECKING:
    from demur.policy.policy import Policy


def point_of(policy: Policy, alpha: Level | None, guarantee: str | None) -> Rule:
    """See `Policy.point`."""
    if not isinstance(alpha, float | None):
        return _found(policy, alpha, guarantee)
    rule = policy.points_asked.get((alpha, guarantee))
    if rule is None:
        rule = _found(policy, alpha, guarantee)
        if any(rule is known for known in policy.points):  # others are as many as the alphas that are asked for
            policy.points_asked[alpha, guarantee] = rule
    return rule


def _found(policy: Policy, alpha: Level | None, guarantee: str | None) -> Rule:
    wanted = None if alpha is None else float(exact_alpha(alpha))
    fitting = (rule for rule in policy.points if wanted in (None, rule.alpha))
    left = [rule for rule in fitting if guarantee in (None, rule.guarantee.name)]
    if alpha is not None and not left and guarantee in (None, Simultaneous.name):
        left = _late_point(policy, alpha)
    named = {f"alpha = {alpha}": alpha, f"guarantee {guarantee!r}": guarantee}
    asked = " and ".join(text for text, value in named.items() if value is not None)
    known = ", ".join(f"{rule.alpha:g} ({rule.guarantee.name})" for rule in policy.points)
    if not left:
        raise InvalidValue(f"this policy was not calibrated for {asked}; it holds {known}")
    if alpha is not None and len(left) > 1:
        raise InvalidValue(f"this policy holds several guarantees for {asked}: {known}", "name one as {guarantee}")
    return left[0]


def held_at_once(policy: Policy) -> Simultaneous | None:
    """The promise of every alpha at once, where the policy holds it."""
    return next((rule.guarantee for rule in policy.points if isinstance(rule.guarantee, Simultaneous)), None)


def _late_point(policy: Policy, alpha: Level) -> list[Rule]:
    """The rule of an alpha that the policy does not name and promises all the same; none where it does not."""
    held = held_at_once(policy)
    if held is None:
        return []
    guarantee = held.at(alpha)
    if guarantee not in policy.late_points:
        policy.late_points[guarantee] = policy.settled(guarantee)
    return [policy.late_points[guarantee]]
