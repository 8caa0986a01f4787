"""The paper's protocol on one cell: repeated splits of every method, baselines, frontiers, ablations.

Beside each realised error rate stands its exact expectation: over random splits of this file (ties and all), and
k/(n+1) for fresh data without ties. A mean is compared with the former by its standard error, corrected for the number
of comparisons in the whole study: agreement checks the code, for random splits are exchangeable by construction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import betainc, betaincc, stdtr

from demur.calibration import Marginal
from demur.comparison import JITTERED
from demur.errors import InvalidValue
from demur.evaluation import SplitResult, Summary, evaluate_splits
from demur.evidence import Evidence
from demur.exact_sums import Floats
from demur.frontier import Frontier, common_auc
from demur.scoring.families import SELF_CONSISTENCY
from demur.separability import AccuracyBand, Hazards, Separability
from demur.study.cells import TIED, Cell
from demur.study.description import StudyDescription

SCARCE = 0.01
"""A yield below this is marked: its accuracy is that of a handful of questions."""
CHECKS = 400
"""Splits over which realised means are compared with their exact expectations."""
SWEEP = tuple(step / 100 for step in range(1, 41))
_LEVEL = 0.01


@dataclass(frozen=True)
class Curves:
    """One method on one fixed split: predicted on the calibration part, observed on the rest."""

    threshold: Floats
    predicted: Floats
    lower: Floats
    upper: Floats
    observed: Floats
    gap: Floats
    hazard_edges: Floats
    hazard_gap: Floats
    calibrated: float
    """λ̂ at the first alpha."""


@dataclass(frozen=True)
class Method:
    """One way of voting on one cell."""

    name: str
    vote_accuracy: float
    best_of_m: float
    points: list[SplitResult]
    """One per alpha of the study."""
    checks: list[SplitResult]
    """The same over many more splits: what a few give is too uncertain to compare with an exact law."""
    sweep: list[SplitResult]
    """One per alpha of a fine grid."""
    frontier: Frontier
    curves: Curves
    evidence: Evidence = field(repr=False)


@dataclass(frozen=True)
class Variation:
    """One value of what is varied."""

    what: str
    value: str
    method: str
    normaliser: str
    vote_accuracy: float
    result: SplitResult


@dataclass(frozen=True)
class CellResult:
    """All that is found on one cell."""

    cell: Cell
    baselines: dict[str, float]
    methods: list[Method]
    variations: list[Variation]
    common_auc: dict[str, float]
    notes: list[str]

    @property
    def name(self) -> str:
        return self.cell.name

    def method(self, name: str) -> Method | None:
        return next((each for each in self.methods if each.name == name), None)


def evaluate_cell(cell: Cell, study: StudyDescription) -> CellResult:
    """Every method, baseline and ablation of one cell."""
    study = replace(study, n_cal=cell.description.n_cal or study.n_cal)
    if cell.n <= study.n_cal:
        raise InvalidValue(
            f"{cell.n} questions cannot be split into {study.n_cal} for calibration and some for a test; "
            + (f"set n_cal below {cell.n}" if cell.n > 1 else "it needs more questions")
        )
    methods = [_method(cell, name, study) for name in cell.methods]
    frontiers = [each.frontier for each in methods]
    try:
        shared = dict(zip((each.name for each in methods), common_auc(frontiers), strict=True))
    except InvalidValue:  # they share no yield
        shared = {}
    variations, notes = _vary(cell, study)
    return CellResult(cell, cell.baselines(), methods, variations, shared, [*cell.notes, *notes])


def _method(cell: Cell, name: str, study: StudyDescription) -> Method:
    votes, correct = cell.votes(name)
    every = sorted({*study.alphas, *SWEEP})
    found = evaluate_splits(
        {name: (votes, correct)}, alpha=every, n_cal=study.n_cal, splits=study.splits, seed=study.seed
    )
    many = evaluate_splits(
        {name: (votes, correct)}, alpha=study.alphas, n_cal=study.n_cal, splits=max(CHECKS, study.splits),
        seed=study.seed + 1,
    )  # fmt: skip
    checks = {check.alpha: check for check in many}  # they come in the order of their alphas
    by_alpha = dict(zip(every, found, strict=True))
    evidence = Evidence.of(votes.key, correct)
    calibration, test = (
        Evidence.of(votes.key[part], correct[part]) for part in (slice(None, study.n_cal), slice(study.n_cal, None))
    )  # rows are in a drawn order, so the first ones are a random part
    return Method(
        name=name,
        vote_accuracy=float(correct.mean()),
        best_of_m=cell.best_of_m(name.removesuffix(TIED)) if name.removesuffix(TIED) in cell.scores else math.nan,
        points=[by_alpha[alpha] for alpha in study.alphas],
        checks=[checks[alpha] for alpha in study.alphas],
        sweep=[by_alpha[alpha] for alpha in SWEEP],
        frontier=Frontier.of(evidence),
        curves=_curves(calibration, test, Marginal(study.alphas[0])),
        evidence=evidence,
    )


def _curves(calibration: Evidence, test: Evidence, guarantee: Marginal) -> Curves:
    at = np.linspace(0, 1, 51)[:-1]
    band = AccuracyBand.of(calibration, threshold=at)
    lowest = min(float(calibration.levels[0, 0]), 0.0) - 1e-9
    hazards = Hazards.binned(calibration, np.concatenate([[lowest], np.linspace(0, 1, 11)[1:]]))
    return Curves(
        threshold=at, predicted=band.predicted, lower=band.lower, upper=band.upper,
        observed=Separability.of(test, at).selective_accuracy, gap=Separability.of(calibration, at).separability_gap,
        hazard_edges=hazards.edges, hazard_gap=hazards.hazard_gap,
        calibrated=calibration.threshold(guarantee.rank(calibration.n))[0],
    )  # fmt: skip


def _vary(cell: Cell, study: StudyDescription) -> tuple[list[Variation], list[str]]:
    """The ablations of one cell; values that its data do not reach are noted and left out."""
    wanted = study.ablations
    if wanted.cells is not None and cell.name not in wanted.cells:
        return [], []
    notes = []
    score = wanted.score or next(iter(cell.scores), None)
    if score is not None and score not in cell.scores:
        notes.append(
            f"{cell.name}: no score {score!r} to vary; the jittered majority vote is varied instead, and no weights"
        )
        score = None
    method = score or JITTERED
    of_pool = cell.source.scorers.get(score or "", {}).get("scorer") == SELF_CONSISTENCY
    if of_pool and wanted.m:
        notes.append(
            f"{cell.name}: {score} depends on the whole pool, so the jittered majority vote stands for fewer paths"
        )
    guarantee = Marginal(study.alphas[0] if wanted.alpha is None else wanted.alpha)

    def result(what: str, value: str, n_cal: int, method: str = method, **how: object) -> Variation:
        votes, correct = cell.votes(method, **how)  # type: ignore[arg-type]
        (found,) = evaluate_splits(
            {cell.name: (votes, correct)}, guarantee=guarantee, n_cal=n_cal, splits=study.splits, seed=study.seed
        )
        normaliser = votes.recipe.normaliser.name
        return Variation(what, value, method, normaliser, float(correct.mean()), found)

    found = []
    for m in wanted.m:
        if m > cell.n_paths[0]:
            notes.append(f"{cell.name}: pools have {cell.n_paths[0]} paths, so m = {m} is left out")
        else:
            found.append(result("m", str(m), study.n_cal, JITTERED if of_pool else method, m=m))
    for n_cal in wanted.n_cal:
        if n_cal >= cell.n:
            notes.append(f"{cell.name}: {cell.n} questions, so n_cal = {n_cal} is left out")
        else:
            found.append(result("n_cal", str(n_cal), n_cal))
    if score is not None:
        found += [result("weight", weight, study.n_cal, weight=weight) for weight in wanted.weights]
    return found, notes


def comparisons(results: Iterable[CellResult]) -> int:
    """How many realised means the study compares with their exact expectations."""
    return sum(len(method.checks) for result in results for method in result.methods)


def fresh_law(method: Method, result: SplitResult) -> Summary:
    """Mean and standard deviation of the error rate on as many fresh questions, without ties: the k-th of n errors sets
    the threshold, and there are no more errors than wrong votes (theory 3.1)."""
    n, fresh = result.n_cal, result.n - result.n_cal
    k, wrong = result.guarantee.rank(n), 1 - method.vote_accuracy
    if k == 0:
        return Summary(0.0, 0.0, math.nan)
    a, b = k, n + 1 - k
    mean = a / (a + b) * float(betainc(a + 1, b, wrong)) + wrong * float(betaincc(a, b, wrong))
    sd = math.sqrt(a * b * (a + b + fresh) / (fresh * (a + b) ** 2 * (a + b + 1)))
    return Summary(mean, sd, math.nan)


def p_value(result: SplitResult) -> float:
    """Two-sided, of the mean over splits against its exact expectation; NaN where all splits agree."""
    if math.isnan(result.z):
        return math.nan
    return float(2 * stdtr(result.splits - 1, -abs(result.z)))


def inconsistent(results: Sequence[CellResult]) -> list[tuple[str, SplitResult]]:
    """Means that lie further from their expectation than chance allows, given how many are compared."""
    level = _LEVEL / max(1, comparisons(results))
    return [
        (f"{result.name}, {method.name}", point)
        for result in results
        for method in result.methods
        for point in method.checks
        if p_value(point) < level
    ]


def shared_problems(cells: Sequence[Cell]) -> list[str]:
    """Which cells have questions in common: their results are then not independent of each other."""
    notes = []
    for position, one in enumerate(cells):
        for other in cells[position + 1 :]:
            mine, theirs = (
                {" ".join(question.split()) for question in cell.table.questions if question} for cell in (one, other)
            )
            common = len(mine & theirs)
            if common:
                notes.append(f"{one.name} and {other.name} share {common} questions: their results are not independent")
    return notes
