"""The paper's protocol on one cell: repeated splits of every method, baselines, frontiers, ablations.

Beside each realised error rate stands its exact expectation: over random splits of this file (ties and all), and on
fresh data without ties. A mean is compared with the former by its exact law, corrected for the number of comparisons in
the whole study: agreement checks the code, for random splits are exchangeable by construction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from demur.calibration import Marginal
from demur.errors import InvalidValue
from demur.evaluation.comparison import JITTERED
from demur.evaluation.repeated_splits import SplitResult, evaluate_splits
from demur.evaluation.resampling import LabelledVotes, Redrawn
from demur.evaluation.summaries import Summary
from demur.evidence.counts import Evidence, Floats
from demur.evidence.frontier import Frontier, common_auc
from demur.evidence.predictor import AccuracyBand
from demur.evidence.separability import Hazards, Separability
from demur.scoring.factory import SELF_CONSISTENCY
from demur.study.cells import TIED, Cell
from demur.study.description import StudyDescription

SCARCE = 0.01
"""A yield below this is marked: its accuracy is that of a handful of questions."""
CHECKS = 400
"""Splits over which realised means are compared with their exact expectations."""
SWEEP = tuple(step / 100 for step in range(1, 41))
_LEVEL = 0.01
_DRAWS = 100


@dataclass(frozen=True)
class Curves:
    """One method on one fixed split: predicted on the calibration part, observed on the rest."""

    band: AccuracyBand
    observed: Floats
    gap: Floats
    """Δ, like the observed accuracy, at the thresholds of the band."""
    hazards: Hazards
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
    votes: LabelledVotes = field(repr=False)


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
    errors: dict[str, tuple[float, float]]
    """By method, the standard errors of its frontier AUC and of `common_auc`, over questions."""
    notes: list[str]

    @property
    def name(self) -> str:
        return self.cell.name

    def method(self, name: str) -> Method | None:
        return next((method for method in self.methods if method.name == name), None)


def evaluate_cell(cell: Cell, study: StudyDescription) -> CellResult:
    """Every method, baseline and ablation of one cell."""
    study = replace(study, n_cal=cell.description.n_cal or study.n_cal)
    if cell.n <= study.n_cal:
        raise InvalidValue(
            f"{cell.n} questions cannot be split into {study.n_cal} for calibration and some for a test; "
            + (f"set n_cal below {cell.n}" if cell.n > 1 else "it needs more questions")
        )
    methods = [_method(cell, name, study) for name in cell.methods]
    try:
        shared = dict(zip(cell.methods, common_auc([method.frontier for method in methods]), strict=True))
    except InvalidValue:  # they share no yield
        shared = {}
    redrawn = Redrawn.of([method.votes for method in methods], draws=_DRAWS, seed=study.seed)
    drawn = {name: redrawn.errors(at) for at, name in enumerate(cell.methods)}
    errors = {name: (area, shared_area) for name, (_, area, shared_area) in drawn.items()}
    variations, notes = _vary(cell, study)
    return CellResult(cell, cell.baselines(), methods, variations, shared, errors, [*cell.notes, *notes])


def _method(cell: Cell, name: str, study: StudyDescription) -> Method:
    votes, correct = cell.votes(name)
    cells, n_cal = {name: (votes, correct)}, study.n_cal
    every = sorted({*study.alphas, *SWEEP})
    few = evaluate_splits(cells, alpha=every, n_cal=n_cal, splits=study.splits, seed=study.seed)
    many = max(CHECKS, study.splits)
    checked = evaluate_splits(cells, alpha=study.alphas, n_cal=n_cal, splits=many, seed=study.seed + 1)
    checks = {check.alpha: check for check in checked}  # they come in the order of their alphas
    by_alpha = dict(zip(every, few, strict=True))
    labelled = LabelledVotes.of(votes.key, correct)
    evidence = labelled.evidence
    # Rows are in a drawn order, so the first ones are a random part.
    calibration = Evidence.of(votes.key[:n_cal], correct[:n_cal])
    test = Evidence.of(votes.key[n_cal:], correct[n_cal:])
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
        votes=labelled,
    )


def _curves(calibration: Evidence, test: Evidence, guarantee: Marginal) -> Curves:
    at = np.linspace(0, 1, 51)[:-1]
    band = AccuracyBand.of(calibration, threshold=at)
    lowest = min(float(calibration.levels[0, 0]), 0.0) - 1e-9
    hazards = Hazards.binned(calibration, np.concatenate([[lowest], np.linspace(0, 1, 11)[1:]]))
    observed, gap = Separability.of(test, at).selective_accuracy, Separability.of(calibration, at).separability_gap
    return Curves(band, observed, gap, hazards, guarantee.settle(calibration).threshold)


def _vary(cell: Cell, study: StudyDescription) -> tuple[list[Variation], list[str]]:
    """The ablations of one cell; values that its data do not reach are noted and left out."""
    wanted = study.ablations
    if wanted.cells is not None and cell.name not in wanted.cells:
        return [], []
    notes = []
    score = wanted.score or next(iter(cell.scores), None)
    if score is not None and score not in cell.scores:
        notes.append(f"no score {score!r} to vary; the jittered majority vote is varied instead, and no weights")
        score = None
    method = score or JITTERED
    of_pool = cell.source.scorers.get(score or "", {}).get("scorer") == SELF_CONSISTENCY
    if of_pool and wanted.m:
        notes.append(f"{score} depends on the whole pool, so the jittered majority vote stands for fewer paths")
    guarantee = Marginal(study.alphas[0] if wanted.alpha is None else wanted.alpha)

    def result(what: str, value: str, n_cal: int, method: str = method, **how: object) -> Variation:
        votes, correct = cell.votes(method, **how)  # type: ignore[arg-type]
        (point,) = evaluate_splits(
            {cell.name: (votes, correct)}, guarantee=guarantee, n_cal=n_cal, splits=study.splits, seed=study.seed
        )
        return Variation(what, value, method, votes.recipe.normaliser.name, float(correct.mean()), point)

    variations = []
    for m in wanted.m:
        if m > cell.n_paths[0]:
            notes.append(f"pools have {cell.n_paths[0]} paths, so m = {m} is left out")
        else:
            variations.append(result("m", str(m), study.n_cal, JITTERED if of_pool else method, m=m))
    for n_cal in wanted.n_cal:
        if n_cal >= cell.n:
            notes.append(f"{cell.n} questions, so n_cal = {n_cal} is left out")
        else:
            variations.append(result("n_cal", str(n_cal), n_cal))
    if score is not None:
        variations += [result("weight", weight, study.n_cal, weight=weight) for weight in wanted.weights]
    return variations, [f"{cell.name}: {note}" for note in notes]


def comparisons(results: Iterable[CellResult]) -> int:
    """How many realised means the study compares with their exact expectations."""
    return sum(len(method.checks) for result in results for method in result.methods)


def fresh_law(method: Method, result: SplitResult) -> Summary:
    """Mean and standard deviation of the error rate on as many fresh questions, without ties: the k-th of n errors sets
    the threshold, and there are no more errors than wrong votes with any confidence."""
    law, cap = result.guarantee.law(result.n_cal), method.evidence.confident_wrong
    return Summary(law.mean(cap), law.sd(cap, fresh=result.n - result.n_cal), math.nan)


def inconsistent(results: Sequence[CellResult]) -> list[tuple[str, SplitResult]]:
    """Means that lie further from their expectation than chance allows, given how many are compared."""
    level = _LEVEL / max(1, comparisons(results))
    return [
        (f"{result.name}, {method.name}", point)
        for result in results
        for method in result.methods
        for point in method.checks
        if point.p_value < level
    ]


def shared_problems(cells: Sequence[Cell]) -> list[str]:
    """Which cells have questions in common: their results are then not independent of each other."""
    asked = [{digest for digest in cell.table.digests if digest is not None} for cell in cells]
    return [
        f"{one.name} and {other.name} share {len(mine & theirs)} questions: their results are not independent"
        for (one, mine), (other, theirs) in combinations(zip(cells, asked, strict=True), 2)
        if mine & theirs
    ]
