"""What a policy is and what to expect of it, as plain values."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import demur
from demur.cli import output

if TYPE_CHECKING:
    from demur.calibration import Rule

_OFFERED = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
"""Alphas that are shown where each may be chosen."""


def set_sizes(policy: demur.Policy, voted: demur.VotedPools) -> list[str]:
    """How large the answer sets of this file are at each operating point, in words; no label has a say in that."""
    rules = policy.points if policy.sets else ()
    decided = [policy.decide_votes(voted.votes, alpha=rule.alpha, guarantee=rule.guarantee.name) for rule in rules]
    return [decisions.set_note() for decisions in decided]


def audits_ahead(policy: demur.Policy, kept_back: demur.VotedPools) -> list[dict[str, Any]]:
    """What an audit of the problems that were kept back may find."""
    cases = kept_back.votes.cases.take(kept_back.counted)
    audits = []
    for rule in policy.points:
        if rule.feasible:
            counts = (cases if rule.needs_groups else cases.without_groups()).counts()
            audits.append(demur.audit_outlook(policy, counts, alpha=rule.alpha, guarantee=rule.guarantee.name))
    return [audit.document() for audit in audits]


def gate_facts(voted: demur.VotedPools) -> dict[str, Any]:
    """How many of the questions a gate turns away, where there is one."""
    votes = voted.votes
    if votes.recipe.gate is None:
        return {}
    return {"gated": int(((votes.key[:, 0] == 0) & (votes.confidence > 0)).sum())}


def policy_facts(policy: demur.Policy) -> dict[str, Any]:
    """What a policy is, and what to expect of it."""
    from demur.policy.label_notes import label_notes
    from demur.policy.outliers import outlier_notes
    from demur.policy.points import held_at_once
    from demur.policy.prices import price_of
    from demur.policy.weighing import weight_notes

    evidence = policy.evidence
    gaps, top = demur.Separability.of(evidence), evidence.by_confidence
    gap = gap_at = math.nan
    if evidence.n_right and evidence.n_wrong and not evidence.n_unlabelled:
        widest = int(gaps.separability_gap.argmax())
        gap, gap_at = float(gaps.separability_gap[widest]), float(gaps.threshold[widest])
    points = []
    for rule in policy.points:
        forecast = asdict(policy.forecast(rule.alpha, rule.guarantee.name))
        rates = {name: rate for name, rate in forecast.items() if name not in ("alpha", "threshold")}
        known = {"feasible": rule.feasible, "n_needed": rule.guarantee.n_needed(), "threshold": rule.threshold}
        promised = {"threshold_key": list(rule.threshold_key), "promise": rule.promise, "forecast": rates}
        every = policy.forecast_per_question(rule.alpha, rule.guarantee.name)
        if every is not None:
            promised["per_question"] = {"answered": every.answered, "confident_error": every.confident_error}
        promised |= {"told": rule.told, "tie_note": policy.tie_note(rule)}
        known |= {"among_answers": rule.among_answers}
        promised |= {"answer_sets": _set_facts(policy, rule)} if policy.sets else {}
        if (price := price_of(policy, rule)) is not None:
            known |= {"price": price[0]}
            promised |= {"price_note": price[1]}
        if rule.needs_groups:
            promised["groups"] = _group_facts(policy, rule)
        points.append(rule.document() | {"alpha": rule.alpha} | known | promised)
    return {
        "n": policy.n,
        "unit": policy.unit,
        "sizes": policy.sizes,
        "sizes_by_chance": policy.strata.by_chance,
        "size_note": policy.size_note(),
        "unscored": policy.unscored,
        "labelled": policy.n - evidence.n_unlabelled,
        "label_notes": label_notes(policy),
        "effective_size": evidence.effective_size,
        "weight_notes": weight_notes(policy),
        **({} if policy.outliers is None else {"outlier_level": policy.outliers.level}),
        "outlier_notes": outlier_notes(policy),
        "key": list(policy.recipe.names),
        **({} if policy.judge is None else {"judge": policy.judge.facts()}),
        "pipeline": policy.pipeline,
        "labels": policy.labels.describe(),
        "fingerprint": policy.fingerprint,
        "vote_accuracy": evidence.vote_accuracy,
        **output.frontier_facts(demur.Frontier.of(evidence)),
        "separability_gap": gap,
        "separability_gap_at": gap_at,
        "confident_and_wrong": int(top.not_right[-1]) / evidence.n if top.levels[-1, 0] == 1 else 0.0,
        "points": points,
        **({} if held_at_once(policy) is None else {"bounds": policy.bounds(_OFFERED).columns()}),
    }


def _set_facts(policy: demur.Policy, rule: Rule) -> dict[str, Any]:
    """What is known of the answer sets of one operating point."""
    from demur.policy.set_notes import set_note

    sets = policy.sets_of(rule)
    assert sets is not None
    counts = {"n": sets.n, "n_needed": sets.needed, "questions": sets.questions}
    return {"alpha": sets.alpha, **counts, "note": set_note(policy, rule)}


def _group_facts(policy: demur.Policy, rule: Rule) -> list[dict[str, Any]]:
    """What to expect in each group, small ones too."""
    rows = []
    for name, told in policy.forecast_by_group(rule.alpha, rule.guarantee.name).items():
        own, part = rule.of_kind((name,)), policy.strata.of_group(name)
        right, wrong = rule.answered(part)
        rows.append(
            {
                "group": name,
                "n": part.n,
                "threshold": own.threshold,
                "threshold_key": list(own.threshold_key),
                "told": own.told,
                "stand_in": bool(rule.stand_in((name,))),
                "n_answered": right + wrong,
                "n_wrong": wrong,
                "forecast": {key: value for key, value in asdict(told).items() if key not in ("alpha", "threshold")},
            }
        )
    return rows
