"""The guarantees of a policy as the page shows them: one at a time, each at every alpha of the slider."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from demur.calibration import Grouped, JudgedGuarantee, Rule, Simultaneous
from demur.calibration.choices import choices_of
from demur.calibration.grouped import POOLED
from demur.calibration.guarantee import NOWHERE_FEW_ENOUGH
from demur.policy.policy import Policy
from demur.policy.prices import price_of

_AT_ONE_ALPHA = frozenset({"alpha", "seed", "share"})
"""What guarantees that promise the same at different alphas may differ in."""


@dataclass(frozen=True)
class Family:
    """The rules of a policy that promise the same, each at its alpha."""

    rules: tuple[Rule, ...]

    @property
    def guarantee(self) -> Any:
        return self.rules[0].guarantee

    @property
    def told(self) -> str:
        """Its name and what sets it apart, in a few words."""
        known, choices = self.guarantee.parameters(), choices_of(self.guarantee)
        parts = [
            self.guarantee.name.replace("_", " "),
            *([f"delta = {known['delta']}"] if "delta" in known else []),
            *([f"one of {choices} ways to vote"] if choices > 1 else []),
            *([f"groups of {known['smallest']} or more"] if known.get("smallest", 1) > 1 else []),
            *(["smaller ones by the threshold of all"] if known.get("fallback") == POOLED else []),
        ]
        return ", ".join(parts)

    @property
    def every_alpha(self) -> bool:
        """Whether every alpha is promised, chosen beforehand or not."""
        return isinstance(self.guarantee, Simultaneous)

    def by_alpha(self) -> dict[float, Any]:
        """The guarantees that were asked for."""
        return {rule.alpha: rule.guarantee for rule in self.rules}

    def at(self, alpha: float) -> Any:
        """The same promise at another alpha."""
        guarantee = self.guarantee
        return guarantee.at(alpha) if hasattr(guarantee, "at") else replace(guarantee, alpha=alpha)


def families_of(policy: Policy) -> list[Family]:
    """In the order of the policy."""
    found: dict[tuple[Any, ...], list[Rule]] = {}
    for rule in policy.points:
        known = rule.guarantee.parameters()
        kind = rule.guarantee.name, *sorted((name, known[name]) for name in known.keys() - _AT_ONE_ALPHA)
        found.setdefault(kind, []).append(rule)
    return [Family(tuple(rules)) for rules in found.values()]


def family_facts(policy: Policy, families: list[Family], cases: Any) -> list[dict[str, Any]]:
    """Each guarantee by name, the alphas it was calibrated for, and p-values where they are not those of the first."""
    first = families[0].rules[0]
    facts = []
    for family in families:
        rule = family.rules[0]
        alike = rule.needs_groups == first.needs_groups
        known = {"told": family.told, "chosen": sorted(family.by_alpha()), "every_alpha": family.every_alpha}
        facts.append({**known, "p_value": None if alike else rule.p_value(policy.strata, cases).tolist()})
    return facts


def point_facts(policy: Policy, rule: Rule, *, promised: bool) -> dict[str, Any]:
    """What an operating point needs to answer at all, and what a late choice costs."""
    price = price_of(policy, rule) if promised else None
    return {
        "promised": promised,
        "needs": _needs(rule),
        "nowhere": NOWHERE_FEW_ENOUGH if rule.feasible and rule.among_answers and rule.never_answers else "",
        "judged": isinstance(rule.guarantee, JudgedGuarantee),
        "choices": choices_of(rule.guarantee),
        "price": "" if price is None else price[1],
    }


def _needs(rule: Rule) -> str:
    """How many calibration votes, in words."""
    if isinstance(rule.guarantee, JudgedGuarantee):
        return f"calibration {rule.unit}s, {rule.guarantee.needed()}"
    needed = rule.needed_per_size if rule.law.answers else rule.guarantee.n_needed()
    of = " of a group" if rule.needs_groups else " of each number of paths" if rule.law.answers else ""
    return f"{needed} calibration {rule.unit}s{of}"


def plain_of(guarantee: Any) -> Any:
    """The same promise of one threshold for all questions, by labels that are what they say."""
    if isinstance(guarantee, JudgedGuarantee):
        return guarantee.plain
    return guarantee.guarantee if isinstance(guarantee, Grouped) else guarantee
