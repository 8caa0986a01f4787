"""What to expect of one audit, said before anybody looks at it.

A promise is about the average over calibration sets and questions, so about half of all single audits find more than
alpha answered wrongly although it holds. People who have not been told so take the first such audit for a failure.

Where no two votes tie at the threshold, the law used here is the one that audits are judged by. Where votes tie there,
or where all of them are answered, errors are fewer than the promise allows: as many as calibration had above the
threshold, and one more. A promise about the answers given says nothing of how many there are: its outlook is of as many
answers as calibration leads to expect, or as there were.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from demur.calibration import Level, RankGuarantee, Rule
from demur.calibration.choices import choices_of
from demur.calibration.guarantee import NOWHERE_FEW_ENOUGH
from demur.calibration.laws_on import NewVotes, by_stratum
from demur.errors import InvalidValue
from demur.evidence.counts import Floats
from demur.evidence.laws import AnswerLaw, BoundLaw, CountLaw, ErrorLaw, SumLaw
from demur.evidence.strata import Strata, Stratum
from demur.policy.policy import Policy
from demur.records import Groups


@dataclass(frozen=True, eq=False)
class Outlook:
    """How many wrong answers audits of one size find, if the promise of a rule holds."""

    rule: Rule
    n: int
    """Audited questions; where the promise is about answers, how many of those."""
    unit: str
    counts: Floats
    """P(J = 0), …, P(J = n) of the number J of questions answered wrongly."""
    surprising_above: int
    """At least 95 % of such audits find no more, whatever ties."""

    @property
    def above_alpha(self) -> float:
        """The share of such audits that find more than alpha answered wrongly, though the promise holds."""
        allowed = math.floor(self.rule.guarantee.level * self.n)  # the largest count whose rate does not exceed alpha
        return min(1.0, float(self.counts[allowed + 1 :].sum()))

    @property
    def sentence(self) -> str:
        if not self.rule.feasible:
            return f"Nothing will be answered: {self.rule.too_few}."
        if self.rule.never_answers and self.rule.among_answers:
            return f"Nothing will be answered: {NOWHERE_FEW_ENOUGH}"
        share = 100 * self.above_alpha
        often = "fewer than 1" if share < 0.5 else f"about {share:.0f}"
        bound = isinstance(self.rule.law, BoundLaw) or choices_of(self.rule.guarantee) > 1
        bound |= self.rule.outlier_level is not None
        often = f"at most {often}" if bound and not self.rule.among_answers and share >= 0.5 else often
        if self.rule.among_answers:
            return (
                f"Of 100 audits with {self.n} answers {often} would find more than alpha = {self.rule.alpha:g} of "
                "them wrong though the promise holds: it is about the long run. "
                f"One is surprising above {self.surprising_above} wrong "
                f"({self.surprising_above / max(self.n, 1):.1%} of the answers)."
            )
        return (
            f"Of 100 audits of {self.n} {self.unit}s {often} would find more than alpha = {self.rule.alpha:g} answered "
            "wrongly though the promise holds: it is about the average. "
            f"One is surprising above {self.surprising_above} wrong ({self.surprising_above / self.n:.1%})."
        )

    def document(self) -> dict[str, Any]:
        """As plain values."""
        names = ("n", "unit", "above_alpha", "surprising_above", "sentence")
        return {name: getattr(self, name) for name in names}


def audit_outlook(
    policy: Policy,
    n: int | NewVotes,
    *,
    alpha: Level | None = None,
    guarantee: str | None = None,
    answered: int | None = None,
) -> Outlook:
    """What to expect of an audit on n new questions, or on so many of each number of paths, or of each stratum.

    Where each group has its own promise, n questions are of the groups that calibration had, as often as there.
    Of a promise about the answers given, on as many answers as are `answered`, or else as calibration foretells.
    """
    rule = policy.point(alpha, guarantee)
    new = _as_in_calibration(policy, rule, n) if isinstance(n, int) else by_stratum(n)
    fresh = sum(new.values())
    if fresh < 1:
        raise InvalidValue(f"an audit needs at least one question, got {n!r}")
    if isinstance(rule.law, AnswerLaw):
        return _of_answers(policy, rule, rule.law, fresh, answered)
    limit = policy.law_on(rule, new).usual_at_most(fresh)
    return Outlook(rule, fresh, rule.unit, _law(policy, rule, new).counts(fresh), limit)


def _as_in_calibration(policy: Policy, rule: Rule, n: int) -> dict[Stratum, int]:
    """n new questions: of the usual size, and of the groups of calibration where these matter."""
    if not rule.needs_groups or n < 1:
        return {((), policy.n_paths): n}
    strata = {stratum: part.n for stratum, part in policy.strata.parts.items()}
    ends = np.round(np.cumsum(list(strata.values())) * n / policy.n).astype(int)
    return dict(zip(strata, np.diff(ends, prepend=0).tolist(), strict=True))


def _of_answers(policy: Policy, rule: Rule, law: AnswerLaw, fresh: int, answered: int | None) -> Outlook:
    """Of a promise about answers: with the errors of calibration and one more, but no more than the promise allows."""
    right, wrong = rule.answered(policy.strata)
    given = round(fresh * (right + wrong) / policy.n) if answered is None else answered
    expected = AnswerLaw(min(law.rate, (1 + wrong) / (1 + right + wrong)))
    return Outlook(rule, given, "answer", expected.counts(given), law.usual_at_most(given))


def _law(policy: Policy, rule: Rule, new: Mapping[Stratum, int]) -> CountLaw:
    """The law of what is to be expected; kinds of questions that have thresholds of their own apart."""
    if not rule.needs_groups:
        return _law_of(rule, policy.strata, new)
    kinds = {kind: {stratum: votes for stratum, votes in new.items() if stratum[0] == kind} for kind, _ in new}
    parts = [(_law_of(rule.of_kind(kind), _compared(policy, rule, kind), own), own) for kind, own in kinds.items()]
    return SumLaw(tuple((law, sum(own.values())) for law, own in parts))


def _compared(policy: Policy, rule: Rule, kind: Groups) -> Strata:
    """The votes that set the threshold of a kind of questions: all, where those stand in for its groups, or else those
    of the smallest of its groups."""
    if rule.stand_in(kind) or not rule.of_kind(kind).feasible:
        return policy.strata.without_groups()
    return policy.strata.of_group(min(kind, key=lambda name: policy.strata.groups[name]))


def _law_of(rule: Rule, strata: Strata, new: Mapping[Stratum, int]) -> CountLaw:
    guarantee, law = rule.guarantee, rule.law
    if not (isinstance(guarantee, RankGuarantee) and isinstance(law, ErrorLaw)):
        return law
    if not rule.feasible:
        return ErrorLaw(0, 0)
    if strata.by_chance or len(strata.sizes) == 1:
        return _lowered(guarantee, strata.n, rule.answered(strata)[1])
    sizes: Counter[int] = Counter()
    for (_, size), votes in new.items():
        sizes[size] += votes
    laws = {size: ErrorLaw(0, 0) for size in sizes}
    for size, evidence in strata.by_size.items():
        if size in sizes and rule.takes(size):
            laws[size] = _lowered(guarantee, evidence.n, evidence.above(rule.threshold_of(size))[1])
    return SumLaw(tuple((law, sizes[size]) for size, law in laws.items()))


def _lowered(guarantee: RankGuarantee, n: int, wrong: int) -> ErrorLaw:
    """Its law with the rank that the errors above the threshold have: a lower one where votes tie or all are answered.

    Of an alpha that may be chosen late, it is that of one that was not.
    """
    law = guarantee.law(n)
    return replace(law, k=min(law.k, wrong + 1), choices=guarantee.choices)
