"""What a choice that was made late costs: answers that the same labels would give had it been made before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.calibration import Guarantee, HighProbability, Rule, Selective, Simultaneous, forecast
from demur.calibration.choices import choices_of
from demur.calibration.marginal import Marginal

if TYPE_CHECKING:
    from demur.policy.policy import Policy


def price_of(policy: Policy, rule: Rule) -> tuple[float, str] | None:
    """The yield that is lost in calibration, and in words against what; None where nothing was chosen late."""
    cheaper = _without_choice(rule.guarantee)
    if cheaper is None:
        return None
    before = policy.settled(cheaper)
    answered = forecast(policy.strata, before).answered
    lost = answered - forecast(policy.strata, rule).answered
    late = [f"one of {choices_of(rule.guarantee)} ways to vote"] if choices_of(rule.guarantee) > 1 else []
    late += ["alpha"] if isinstance(rule.guarantee, Simultaneous) else []
    return lost, (
        f"Choosing {' and '.join(late)} by these labels costs {100 * lost:.1f} points of yield at alpha = "
        f"{rule.alpha:g}: chosen beforehand, the same would answer {100 * answered:.1f} %."
    )


def _without_choice(guarantee: Guarantee) -> Guarantee | None:
    """The same promise for one way to vote and an alpha, both fixed beforehand."""
    if isinstance(guarantee, Simultaneous):
        return HighProbability(guarantee.level, guarantee.delta_level)  # type: ignore[arg-type]
    if choices_of(guarantee) == 1:
        return None
    if isinstance(guarantee, Marginal):
        return Marginal(guarantee.level)  # type: ignore[arg-type]
    if isinstance(guarantee, (HighProbability, Selective)):
        return type(guarantee)(guarantee.level, guarantee.delta_level)  # type: ignore[arg-type]
    return None
