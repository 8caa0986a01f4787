"""All that the report's page shows, computed beforehand: the page looks numbers up and calculates none.

Rates are those of the calibration evidence; where labelled questions are there that did not calibrate, what happened
on them stands beside. Operating points are given on a fine grid of alphas, for the page's slider.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from demur.calibration import Rule, forecast
from demur.calibration.guarantee import without_infinity
from demur.evaluation.comparison import compare_scores, shared_rows
from demur.evaluation.resampling import DRAWS
from demur.evaluation.verdicts import verdict_of
from demur.evidence import AccuracyBand, Evidence, Frontier, Hazards, Separability, Strata
from demur.policy.groups import group_warnings
from demur.policy.label_notes import label_notes
from demur.policy.outliers import outlier_notes, without_outliers
from demur.policy.policy import Policy
from demur.policy.weighing import refuse_weighted
from demur.pools.parts import some_of
from demur.pools.source import PoolSource
from demur.pools.splits import Rows
from demur.pools.voted_pools import VotedPools
from demur.reports.answer_sets import set_facts
from demur.reports.group_facts import by_kind, group_rows, kinds_of
from demur.reports.guarantees import Family, families_of, family_facts, plain_of, point_facts
from demur.reports.key_facts import confidence_facts, key_facts
from demur.reports.questions import MOST_LISTED, listed_facts, listed_rows, path_facts, question_facts
from demur.reports.verdicts import label_facts
from demur.version import __version__
from demur.voting.rows import KeyRows

GRID = tuple(step / 200 for step in range(1, 101))
_CURVE = 400
_BINS = 12
_FINE = 2000
"""Levels of confidence that are told one by one; a multiple of the bins that the page draws."""


def report_facts(
    source: PoolSource, voted: VotedPools, policy: Policy, *, title: str, texts: bool = True, most: int = MOST_LISTED
) -> dict[str, Any]:
    """The facts of one set of pools under one policy. Labels may be absent; then nothing is said of what happened.

    All figures are of all questions. `most` questions are listed at most: see `listed_rows`.
    """
    refuse_weighted(policy, "a report shows one threshold for all questions", "use `demur decide` and `demur audit`")
    policy.refuse_other_labels(voted)
    seen, counted = voted.seen_by(policy.seen), voted.counted
    fresh = counted[~seen[counted]] if voted.correct is not None else counted[:0]
    inside = without_outliers(policy, voted)
    test = None if not len(fresh) else Strata.of(inside.votes.cases.take(fresh), voted.labelled[fresh])
    families, scores = families_of(policy), _scores(source, voted, policy)
    listed = listed_rows(voted, most)
    shown, pools = (voted, source.pools) if listed is None else (voted.take(listed), some_of(source.pools, listed))
    rows = np.arange(len(voted)) if listed is None else listed
    return {
        "title": title,
        "demur": __version__,
        "run": _run(policy),
        "key": list(policy.recipe.names),
        "confidence": confidence_facts(policy),
        "n_paths": [min(policy.sizes), max(policy.sizes)],
        "n": policy.n,
        "labelled": policy.n - policy.evidence.n_unlabelled,
        "unit": policy.unit,
        "n_test": len(fresh),
        "vote_accuracy": policy.evidence.vote_accuracy,
        "chosen": sorted({point.alpha for point in policy.points}),
        "families": family_facts(policy, families, shown.votes.cases),
        "points": [
            point for at, family in enumerate(families) for point in _points(policy, at, family, test, inside, fresh)
        ],
        "curves": _curves(policy.evidence, None if test is None else test.pooled),
        "hazards": _hazards(policy.evidence),
        "evidence": _counts(policy.evidence),
        "test": None if test is None else _counts(test.pooled),
        "frontier": _policy_frontier(scores, policy),
        "scores": scores,
        "compared": {**_compared(scores), "by": _yields_by(policy, families)},
        "without_answer": _without_answer(voted),
        "labels": label_facts(voted, policy),
        "baselines": _baselines(source, voted),
        "unanimous": _unanimous(policy.evidence),
        "warnings": [
            *label_notes(policy),
            *outlier_notes(policy),
            *voted.score_warnings(),
            *_doubts(scores, voted),
            *policy.size_warnings(),
            *group_warnings(policy),
            *_per_question(policy),
        ],
        "answer_sets": set_facts(policy, shown.votes),
        "listed": None if listed is None else listed_facts(voted, listed),
        "questions": {**question_facts(pools, shown, policy, seen[rows]), "key": key_facts(inside.votes.take(rows))},
        "paths": path_facts(pools, shown, texts=texts),
    }


def _points(
    policy: Policy, at: int, family: Family, test: Strata | None, voted: VotedPools, fresh: Rows
) -> list[dict[str, Any]]:
    """One guarantee on the grid and at all calibrated alphas, with what is expected and what happened."""
    calibrated = family.by_alpha()
    evidence, sizes, kinds = policy.strata, sorted(set(voted.votes.n_paths.tolist())), kinds_of(voted)
    points = []
    for alpha in sorted({*GRID, *(rule.alpha for rule in policy.points)}):
        chosen = alpha in calibrated
        guarantee: Any = calibrated.get(alpha) or family.at(alpha)
        rule = policy.settled(guarantee)
        expected = forecast(evidence, rule)
        right, wrong = rule.answered(evidence)
        unlabelled = rule.answered_unlabelled(evidence)
        thresholds = rule.n_thresholds  # each was set by the data: the band must hold for all of them
        margin = thresholds * math.sqrt(math.log(4 * thresholds / 0.05) / (2 * policy.n))
        half = margin / expected.answered if expected.answered else math.nan
        accuracy = expected.selective_accuracy
        points.append(
            {
                **rule.document(),
                "alpha": rule.alpha,
                "family": at,
                **by_kind(rule, kinds, sizes),
                "by_size": None if rule.needs_groups else _by_size(rule, sizes),
                "rare_sizes": [] if rule.needs_groups else [size for size in sizes if not rule.takes(size)],
                "groups": group_rows(policy, rule, voted, fresh, chosen=chosen),
                "chosen": chosen,
                **point_facts(policy, rule, promised=chosen or family.every_alpha),
                "feasible": rule.feasible,
                "among_answers": rule.among_answers,
                "promise": rule.promise,
                "answered": expected.answered,
                "accuracy": expected.selective_accuracy_corrected,
                "accuracy_at_least": expected.accuracy_at_least,
                "band": [max(0.0, accuracy - half), min(1.0, accuracy + half)] if expected.answered else [None, None],
                "expected_confident_error": expected.expected_confident_error,
                "false_abstention": expected.false_abstention,
                "right_above": right,
                "wrong_above": wrong - unlabelled,
                "unlabelled_above": unlabelled,
                "observed": None if test is None else _observed(test, rule, policy, chosen=chosen),
            }
        )
    return points


def _by_size(rule: Rule, sizes: Sequence[int]) -> dict[str, Any] | None:
    """The threshold of each size that these pools have; None where it is the same for all."""
    keys = {size: rule.threshold_of(size) for size in sizes}
    if set(keys.values()) == {rule.threshold_key}:
        return None
    return {str(size): without_infinity(key) for size, key in keys.items()}


def _without_answer(voted: VotedPools) -> list[int]:
    """How many paths have no answer, and how many paths there are."""
    answers: Any = () if voted.table is None else voted.table.answers
    if isinstance(answers, KeyRows):
        return [int(answers.paths_of[-1]), len(answers.flat)]
    return [sum(pool.count(None) for pool in answers), sum(map(len, answers))]


def _observed(test: Strata, rule: Rule, policy: Policy, *, chosen: bool) -> dict[str, Any]:
    right, wrong = rule.answered(test)
    law = policy.law_on(rule, {stratum: part.n for stratum, part in test.parts.items()})
    given = right + wrong
    judged = rule.judged(given, test.n)
    p_value = law.upper_tail(wrong, judged)
    return {
        "answered": given / test.n,
        "accuracy": right / given if given else math.nan,
        "errors": wrong,
        "confident_error": wrong / test.n,
        "false_abstention": (test.n_right - right) / test.n,
        # Ties and scarce errors make errors fewer than the law without ties has them: only its upper end says anything.
        "usual_at_most": law.usual_at_most(judged) / test.n,
        "p_value": p_value,
        # A verdict is for alphas chosen beforehand; looking for one by moving the slider would find some by chance.
        "verdict": verdict_of(p_value, len(policy.points)) if chosen else None,
    }


def _run(policy: Policy) -> dict[str, Any]:
    """How the votes were made, in a few words."""
    known = policy.description
    parts = {
        "model": known.sampling.get("model"),
        "task": known.answers.get("task"),
        "temperature": known.sampling.get("temperature"),
        "score": policy.score,
        **{name: known.vote.get(name) for name in ("normaliser", "weight")},
        "tie_break": policy.recipe.told_ties,
        "relation": known.answers.get("relation"),
    }
    return {name: _shown(value) for name, value in parts.items()}


def _curves(evidence: Evidence, test: Evidence | None) -> dict[str, Any]:
    """Survival, gap and accuracy at each distinct confidence; a few hundred of them where there are more."""
    every = np.union1d([0.0], evidence.by_confidence.levels[:, 0])
    at = every[np.unique(np.linspace(0, len(every) - 1, min(len(every), _CURVE)).round().astype(int))]
    table, band = Separability.of(evidence, at), AccuracyBand.of(evidence, threshold=at)
    curves = {
        "threshold": at,
        "survival_right": table.survival_right,
        "survival_wrong": table.survival_wrong,
        "gap": table.separability_gap,
        "answered": table.answered,
        "accuracy": table.selective_accuracy,
        "lower": band.lower,
        "upper": band.upper,
    }
    if test is not None:
        curves["observed"] = Separability.of(test, at).selective_accuracy
    return {name: values.tolist() for name, values in curves.items()}


def _hazards(evidence: Evidence) -> dict[str, Any]:
    lowest = min(float(evidence.levels[0, 0]), 0.0)
    edges = np.concatenate([[lowest - 1e-9], np.linspace(0, 1, _BINS + 1)[1:]])
    table = Hazards.binned(evidence, edges)
    return {"edges": edges.tolist(), "gap": table.hazard_gap.tolist()}


def _counts(evidence: Evidence) -> dict[str, Any]:
    by_nu = evidence.by_confidence
    confidence, right, wrong = by_nu.levels[:, 0], by_nu.right, by_nu.wrong
    if len(confidence) > _FINE:  # in cells (a, b] of which the page's bins are made, under their upper end
        cells = np.clip(np.ceil(confidence * _FINE - 1e-9), 1, _FINE).astype(np.intp)
        confidence = np.arange(1, _FINE + 1) / _FINE
        right, wrong = (np.bincount(cells, counts, _FINE + 1)[1:].astype(np.int64) for counts in (right, wrong))
    return {"confidence": confidence.tolist(), "right": right.tolist(), "wrong": wrong.tolist()}


def _frontier(curve: Frontier) -> dict[str, Any]:
    kept = np.unique(np.linspace(0, len(curve.answered) - 1, min(len(curve.answered), _CURVE)).round().astype(int))
    columns = {"answered": curve.answered, "accuracy": curve.selective_accuracy}
    return {name: [round(value, 6) for value in column[kept].tolist()] for name, column in columns.items()}


def _policy_frontier(scores: Sequence[dict[str, Any]], policy: Policy) -> dict[str, Any]:
    """The policy's own curve: on the questions that all votes are compared on or, failing that, on its own."""
    own = next((score["frontier"] for score in scores if score["own"] and score["frontier"]), None)
    if own is not None:
        return {**own, "on": "compared"}
    return {**_frontier(Frontier.of(policy.evidence)), "on": "calibration"}


def _scores(source: PoolSource, voted: VotedPools, policy: Policy) -> list[dict[str, Any]]:
    """Every score side by side; a report is about pools, so the vote has a table."""
    assert voted.table is not None
    summaries, rule = [], None if voted.labels is None else voted.labels.rule
    guarantees = _yielding(policy)
    compared = compare_scores(
        source, voted.table.fields, correct=rule, own=voted.votes.recipe, guarantees=list(guarantees.values())
    )
    for summary in compared:
        plain = {item.name: getattr(summary, item.name) for item in fields(summary) if item.name != "frontier"}
        plain["missing"] = len(summary.missing)
        plain["answered"] = [summary.answered.get(alpha) for alpha in guarantees]
        summaries.append({**plain, "frontier": None if summary.frontier is None else _frontier(summary.frontier)})
    return summaries


def _yielding(policy: Policy) -> dict[float, Any]:
    """The guarantee that votes are compared by at each calibrated alpha: the first of the policy, without groups."""
    first: dict[float, Any] = {}
    for rule in sorted(policy.points, key=lambda rule: rule.alpha):
        first.setdefault(rule.alpha, plain_of(rule.guarantee))
    return first


def _yields_by(policy: Policy, families: Sequence[Family]) -> str:
    """What yields of compared votes are by, in words; blank where it is the one guarantee of the policy."""
    if len(families) == 1 and plain_of(families[0].guarantee) is families[0].guarantee:
        return ""
    names = dict.fromkeys(one.name.replace("_", " ") for one in _yielding(policy).values())
    return f"Yields are those of one threshold for all questions ({' or '.join(names)})."


def _baselines(source: PoolSource, voted: VotedPools) -> dict[str, float]:
    """Accuracies without abstention, on the questions that all votes are compared on."""
    assert voted.table is not None
    shared, _ = shared_rows(source, range(len(voted)), voted.table.fields.score)
    rows = voted.voting(voted.counted[np.isin(voted.counted, shared)])
    return {name.replace("_", " "): rate for name, rate in voted.accuracies(rows).items()} if len(rows) else {}


def _compared(scores: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How many questions all votes are compared on and how many lack a score, and how often they were drawn again."""
    n, left_out = (max((score[name] for score in scores), default=0) for name in ("n", "left_out"))
    return {"n": n, "left_out": left_out, "draws": DRAWS}


def _doubts(scores: Sequence[dict[str, Any]], voted: VotedPools) -> list[str]:
    """What labels say against this report's own score; what needs none is said already."""
    said = set(voted.score_warnings())
    name = voted.votes.upstream.score.get("name")
    own = [score for score in scores if score["name"] is not None and score["name"] == name]
    return [warning for score in own for warning in score["warnings"] if warning not in said]


def _per_question(policy: Policy) -> list[str]:
    """Where clusters are counted: what their promise does not say of all questions."""
    if policy.every_question is None:
        return []
    rates = []
    for rule in policy.points:
        counted = policy.forecast(rule.alpha, rule.guarantee.name).confident_error
        every = forecast(policy.every_question, rule).confident_error
        rates.append(f"{counted:.1%} of clusters and {every:.1%} of questions at alpha = {rule.alpha:g}")
    told = "; ".join(rates)
    return [f"The promise counts one question of each cluster. Answered wrongly in calibration: {told}."]


def _unanimous(evidence: Evidence) -> dict[str, float]:
    """How many votes have full confidence, and how many of all are wrong with it."""
    top = evidence.by_confidence
    if top.levels[-1, 0] < 1:
        return {"share": 0.0, "wrong": 0.0}
    return {"share": int(top.right[-1] + top.not_right[-1]) / evidence.n, "wrong": int(top.wrong[-1]) / evidence.n}


def _shown(value: Any) -> Any:
    return value if isinstance(value, (str, int, float)) or value is None else str(value)
