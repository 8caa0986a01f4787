"""The law of a rule's errors on given new votes: what an audit compares them with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from demur.calibration.grouped import GroupedRule
from demur.calibration.guarantee import RankGuarantee, Rule
from demur.evidence.laws import CountLaw, ErrorLaw, SumLaw, UnionLaw
from demur.evidence.strata import Strata, Stratum

NewVotes = Mapping[int, int] | Mapping[Stratum, int]
"""How many new votes there are of each number of paths, or of each stratum."""
_NEVER = ErrorLaw(0, 0)


def by_stratum(fresh: NewVotes) -> dict[Stratum, int]:
    """New votes by stratum; where only their number of paths is given, they are of no group."""
    return {((), stratum) if isinstance(stratum, int) else stratum: votes for stratum, votes in fresh.items()}


def law_on(rule: Rule, evidence: Strata, fresh: Mapping[Stratum, int]) -> CountLaw:
    """The law of a rule's errors on new votes, so many of each stratum.

    Where thresholds were calibrated apart, each on new votes of its own, it is that of the sum. Groups that overlap
    share votes, and so do those that take the threshold of all; there a bound is taken that holds whatever they share.
    A promise about the answers given is judged by them alone, of whatever group they are.
    """
    if rule.among_answers:
        return rule.law
    if not isinstance(rule, GroupedRule):
        return _by_size(rule, evidence, _sizes(fresh))
    parts = [(law, votes) for law, votes in laws_by_group(rule, evidence, fresh).values() if votes]
    shared = any(len(groups) > 1 or rule.takes_pooled(groups) for groups, _ in fresh)
    return UnionLaw(tuple(parts)) if shared else SumLaw(tuple(parts))


def laws_by_group(
    rule: GroupedRule, evidence: Strata, fresh: Mapping[Stratum, int]
) -> dict[str | None, tuple[CountLaw, int]]:
    """For each group of new votes, the law of its errors and how many votes it is about; groups in order.

    Under None those that take the threshold of all: of them it is known only that with it no more errors are to be
    expected than its law allows among all new votes.
    """
    names = sorted({name for groups, _ in fresh for name in groups if name in rule.by_group})
    laws: dict[str | None, tuple[CountLaw, int]] = {}
    for name in names:
        sizes = _sizes({stratum: votes for stratum, votes in fresh.items() if name in stratum[0]})
        laws[name] = _by_size(rule.by_group[name], evidence.of_group(name), sizes), sum(sizes.values())
    rest = {stratum: votes for stratum, votes in fresh.items() if not any(name in rule.by_group for name in stratum[0])}
    if rule.pooled is not None and any(rule.takes_pooled(groups) for groups, _ in fresh):
        laws[None] = _by_size(rule.pooled, evidence, _sizes(fresh)), sum(fresh.values())
    elif rest:
        laws[None] = _NEVER, sum(rest.values())
    return laws


def _by_size(rule: Rule, evidence: Strata, sizes: Mapping[int, int]) -> CountLaw:
    guarantee = rule.guarantee
    if not isinstance(guarantee, RankGuarantee) or evidence.by_chance or len(evidence.sizes) == 1:
        return rule.law
    laws = {size: guarantee.law(evidence.sizes[size]) if rule.takes(size) else _NEVER for size in sizes}
    return SumLaw(tuple((law, sizes[size]) for size, law in laws.items()))


def _sizes(fresh: Mapping[Stratum, int]) -> dict[int, int]:
    """How many new votes there are of each size."""
    sizes: dict[int, int] = defaultdict(int)
    for (_, size), votes in fresh.items():
        sizes[size] += votes
    return dict(sizes)
