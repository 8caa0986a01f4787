"""All that the report's page shows, computed beforehand: the page looks numbers up and calculates none.

Rates are those of the calibration evidence; where labelled questions are there that did not calibrate, what happened
on them stands beside. Operating points are given on a fine grid of alphas, for the page's slider.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.baselines import best_of_m, oracle, single_path
from quorate.calibration import Guarantee, Marginal, set_point
from quorate.comparison import compare_scores, frontier_of
from quorate.electorate import Electorate, Source
from quorate.evidence import Evidence, exceeds
from quorate.forecast import forecast
from quorate.frontier import Frontier
from quorate.laws import error_count_interval, upper_tail
from quorate.policy import Policy
from quorate.records import Pool
from quorate.separability import AccuracyBand, Hazards, Separability
from quorate.splits import one_per_unit
from quorate.version import __version__
from quorate.voting import vote

GRID = tuple(step / 200 for step in range(1, 101))
_CURVE = 400
_BINS = 12
TEXT_BUDGET = 24_000_000
"""Characters of paths that a page may hold; beyond, each path is cut to its share."""


def report_facts(
    source: Source, voted: Electorate, policy: Policy, *, title: str, texts: bool = True
) -> dict[str, Any]:
    """The facts of one set of pools under one policy. Labels may be absent; then nothing is said of what happened."""
    seen = np.zeros(len(voted.votes), dtype=np.bool_)
    seen[policy.seen.rows(voted.table.ids, voted.table.questions, voted.table.clusters)] = True
    fresh = _fresh(voted, seen)
    test = None if not len(fresh) else Evidence.of(voted.votes.key[fresh], voted.correct()[fresh])
    pipeline = policy.pipeline
    return {
        "title": title,
        "quorate": __version__,
        "run": {
            name: _shown(pipeline.get(name))
            for name in ("model", "task", "temperature", "score", "normaliser", "weight", "tie_break", "relation")
        },
        "n_paths": list(policy.n_paths),
        "n": policy.n,
        "n_test": len(fresh),
        "vote_accuracy": policy.evidence.vote_accuracy,
        "guarantee": {"name": policy.points[0].guarantee.name, **policy.points[0].guarantee.parameters()},
        "chosen": [point.alpha for point in policy.points],
        "promises": [point.guarantee.promise(policy.n) for point in policy.points],
        "points": _points(policy, test),
        "curves": _curves(policy.evidence, test),
        "hazards": _hazards(policy.evidence),
        "evidence": _counts(policy.evidence),
        "test": None if test is None else _counts(test),
        "frontier": _frontier(Frontier.of(policy.evidence)),
        "auroc": Frontier.of(policy.evidence).auroc,
        "scores": _scores(source),
        "baselines": _baselines(voted),
        "unanimous": _unanimous(policy.evidence),
        "warnings": voted.score_warnings(),
        "questions": _questions(voted, policy, seen),
        "paths": _paths(source.pools, voted, texts=texts),
    }


def _fresh(voted: Electorate, seen: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Labelled rows that had no part in calibration, one of each unit."""
    if voted.labels is None:
        return np.zeros(0, dtype=np.intp)
    unit = voted.units()
    touched = np.isin(unit, unit[seen])
    kept = one_per_unit(voted.table.ids, unit)
    return kept[~touched[kept]]


def _points(policy: Policy, test: Evidence | None) -> list[dict[str, Any]]:
    """Operating points on the grid and at the calibrated alphas, with what is expected and what happened."""
    held = {point.alpha: point.guarantee for point in policy.points}
    found = []
    for alpha in sorted({*GRID, *held}):
        point = set_point(held.get(alpha) or _like(policy.points[0].guarantee, alpha), policy.evidence)
        expected = forecast(policy.evidence, point)
        band = AccuracyBand.of(policy.evidence, threshold=[point.threshold])
        found.append({
            "alpha": alpha, "chosen": alpha in held, "feasible": point.feasible, "k": point.k,
            "n_needed": point.guarantee.n_needed(),
            "threshold": [bound if math.isfinite(bound) else None for bound in point.threshold_key],
            "answered": expected.answered, "accuracy": expected.selective_accuracy_corrected,
            "accuracy_at_least": expected.accuracy_at_least,
            "band": [float(band.lower[0]), float(band.upper[0])],
            "confident_error": expected.expected_confident_error, "false_abstention": expected.false_abstention,
            "observed": None if test is None else _observed(test, point),
        })  # fmt: skip
    return found


def _like(guarantee: Guarantee, alpha: float) -> Guarantee:
    """The same promise at another alpha; the marginal one where a guarantee drew at random."""
    try:
        return replace(guarantee, alpha=alpha)  # type: ignore[type-var]
    except (TypeError, ValueError):
        return Marginal(alpha)


def _observed(test: Evidence, point: Any) -> dict[str, Any]:
    right, wrong = test.above(point.threshold_key)
    low, high = error_count_interval(test.n, point.k, point.n)
    given = right + wrong
    return {
        "answered": given / test.n, "accuracy": right / given if given else math.nan, "errors": wrong,
        "confident_error": wrong / test.n, "false_abstention": (test.n_right - right) / test.n,
        # Where errors are too scarce to set a threshold, few of them are nothing unusual.
        "usual": [low / test.n if point.threshold > 0 else 0.0, high / test.n],
        "p_value": upper_tail(wrong, test.n, point.k, point.n),
    }  # fmt: skip


def _curves(evidence: Evidence, test: Evidence | None) -> dict[str, Any]:
    """Survival, gap and accuracy at each distinct confidence; a few hundred of them where there are more."""
    every = np.union1d([0.0], evidence.by_confidence.levels[:, 0])
    at = every[np.unique(np.linspace(0, len(every) - 1, min(len(every), _CURVE)).round().astype(int))]
    table, band = Separability.of(evidence, at), AccuracyBand.of(evidence, threshold=at)
    found = {
        "threshold": at, "survival_right": table.survival_right, "survival_wrong": table.survival_wrong,
        "gap": table.separability_gap, "answered": table.answered, "accuracy": table.selective_accuracy,
        "lower": band.lower, "upper": band.upper,
    }  # fmt: skip
    if test is not None:
        found["observed"] = Separability.of(test, at).selective_accuracy
    return {name: values.tolist() for name, values in found.items()}


def _hazards(evidence: Evidence) -> dict[str, Any]:
    lowest = min(float(evidence.levels[0, 0]), 0.0)
    edges = np.concatenate([[lowest - 1e-9], np.linspace(0, 1, _BINS + 1)[1:]])
    table = Hazards.binned(evidence, edges)
    return {"edges": edges.tolist(), "gap": table.hazard_gap.tolist()}


def _counts(evidence: Evidence) -> dict[str, Any]:
    by_nu = evidence.by_confidence
    return {"confidence": by_nu.levels[:, 0].tolist(), "right": by_nu.right.tolist(), "wrong": by_nu.wrong.tolist()}


def _frontier(curve: Frontier) -> dict[str, Any]:
    kept = np.unique(np.linspace(0, len(curve.answered) - 1, min(len(curve.answered), _CURVE)).round().astype(int))
    return {"answered": curve.answered[kept].tolist(), "accuracy": curve.selective_accuracy[kept].tolist()}


def _scores(source: Source) -> list[dict[str, Any]]:
    found = []
    for each in compare_scores(source):
        curve = frontier_of(source, each)
        found.append({**asdict(each), "frontier": None if curve is None else _frontier(curve)})
    return found


def _baselines(voted: Electorate) -> dict[str, float]:
    if voted.labels is None:
        return {}
    table, labels = voted.table, voted.labels
    paths = labels.of_paths(table)
    found = {"single path": single_path(paths), "majority vote": float(labels.of_votes(vote(table.answers)).mean())}
    if table.scores is not None:
        found["best of m"] = float(labels.of_answers(best_of_m(table.answers, table.scores).tolist()).mean())
        found["weighted vote"] = float(voted.correct().mean())
    return {**found, "oracle": oracle(paths)}


def _unanimous(evidence: Evidence) -> dict[str, float]:
    """How many votes have full confidence, and how many of all are wrong with it."""
    top = evidence.by_confidence
    if top.levels[-1, 0] < 1:
        return {"share": 0.0, "wrong": 0.0}
    return {"share": int(top.right[-1] + top.wrong[-1]) / evidence.n, "wrong": int(top.wrong[-1]) / evidence.n}


def _questions(voted: Electorate, policy: Policy, seen: NDArray[np.bool_]) -> dict[str, Any]:
    table, votes = voted.table, voted.votes
    answers = votes.answer.tolist()
    return {
        "id": table.ids,
        "question": [_cut(question, 2000) for question in table.questions],
        "group": table.groups,
        "calibrated": seen.astype(int).tolist(),
        "answer": [None if key is None else table.written[row].get(key, key) for row, key in enumerate(answers)],
        "confidence": votes.confidence.tolist(),
        "secondary": None if votes.secondary is None else [_finite(value) for value in votes.secondary.tolist()],
        "p_value": policy.evidence.p_value(votes.key).tolist(),
        "unanimous": votes.unanimous.astype(int).tolist(),
        "right": None if voted.labels is None else voted.correct().astype(int).tolist(),
    }


def _paths(pools: Sequence[Pool], voted: Electorate, *, texts: bool) -> list[dict[str, Any]]:
    """Per question, columns over its paths."""
    table = voted.table
    right = None if voted.labels is None else voted.labels.of_paths(table)
    count = max(1, sum(len(pool.paths) for pool in pools))
    most = max(40, TEXT_BUDGET // count)
    found = []
    for row, pool in enumerate(pools):
        keys = table.answers[row]
        found.append({
            "answer": [None if key is None else table.written[row].get(key, key) for key in keys],
            "share": _shares(voted, row),
            "score": None if table.scores is None else table.scores[row],
            "right": None if right is None else [int(each) for each in right[row]],
            "text": [_cut(path.text, most) for path in pool.paths] if texts else None,
        })  # fmt: skip
    return found


def _shares(voted: Electorate, row: int) -> list[float]:
    """Each path's share of its pool's weight."""
    weights = voted.votes.weights(row)
    total = math.fsum(weights)
    return [float(f"{weight / total:.4g}") for weight in weights]


def _cut(text: str | None, most: int) -> str | None:
    if text is None or len(text) <= most:
        return text
    return text[: most // 2] + " […] " + text[-most // 2 :]


def _shown(value: Any) -> Any:
    return value if isinstance(value, (str, int, float)) or value is None else str(value)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def decided(voted: Electorate, threshold: Sequence[float]) -> NDArray[np.bool_]:
    """Which questions a threshold answers; the page's own rule must agree with it."""
    return exceeds(voted.votes.key, tuple(threshold))
