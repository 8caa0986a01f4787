"""Fitting a density ratio: a logistic classifier between traffic and reference questions, regularised by its own tests.

With both sides weighing as much, the log-odds of a classifier are the logarithm of the ratio of densities. Its strength
of regularisation is the one that does best on questions left out, five parts in turn; where none does better than
chance, all weights are 1. Neither side has labels, and questions of neither may calibrate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.questions.asked import Asked, texts_of
from demur.questions.density_ratio import DensityRatio, checked_clip
from demur.questions.features import PLACES, SIZE, Floats, features
from demur.questions.weighing import effective_size

FEWEST = 20
"""Questions on either side below which nothing can be fitted."""
_STRENGTHS = (30.0, 10.0, 3.0, 1.0, 0.3)
_PARTS = 5
_CLIP = 10.0

Flags = NDArray[np.bool_]


def fit_shift(traffic: Iterable[Asked], reference: Iterable[Asked], *, clip: float = _CLIP) -> DensityRatio:
    """Fit how much more often questions occur in the traffic than among the reference.

    The reference must be drawn as the calibration questions are, and calibrate nothing. Questions are texts, or
    problems of which the text is looked at; one that stands twice counts once. Weights above `clip` are cut, the mean
    of the reference being 1.
    """
    clip = checked_clip(clip)
    here, there = (
        texts_of(side, name, FEWEST) for side, name in ((traffic, "the traffic"), (reference, "the reference"))
    )
    if shared := sorted(set(here) & set(there)):
        raise InvalidValue(
            f"{len(shared)} questions are in the traffic and in the reference too, such as {here[shared[0]][:60]!r}",
            "leave them out of one of the two",
        )
    texts = [*here.values(), *there.values()]
    new, table = np.arange(len(texts)) < len(here), features(texts)
    scores = _tested(table, new, np.append(np.arange(len(here)), np.arange(len(there))) % _PARTS)
    best = min(_STRENGTHS, key=lambda strength: _loss(scores[strength], new))
    intercept, coefficients = fit_logistic(table, new, [best])[0]
    if _loss(scores[best], new) >= math.log(2):
        intercept, coefficients = 0.0, np.zeros(SIZE)
    intercept -= math.log(np.exp(np.clip(intercept + table[~new] @ coefficients, -600, 600)).mean())
    weights = np.exp(np.clip(intercept + table @ coefficients, -600, 600))
    auroc, error = area(scores[best][~new], scores[best][new])
    return DensityRatio(
        intercept=float(intercept),
        coefficients=np.round(coefficients, 9),
        clip=clip,
        traffic=len(here),
        reference=len(there),
        fitted_on=frozenset([*here, *there]),
        auroc=auroc,
        auroc_error=error,
        effective_share=effective_size(np.minimum(weights[~new], clip)) / len(there),
        clipped_traffic=float((weights[new] > clip).mean()),
        clipped_reference=float((weights[~new] > clip).mean()),
    )


def fit_logistic(table: Floats, new: Flags, strengths: Sequence[float]) -> list[tuple[float, Floats]]:
    """Intercept and coefficients of P(new) = 1 / (1 + exp(−a − b·φ)), both sides weighing as much; L2-regularised.

    For each strength, of which each starts where the one before ended. Features are centred and scaled first, all
    places alike, so that rare words get no more of a say than others.
    """
    from scipy.optimize import minimize

    centre, spread = table.mean(axis=0), table.std(axis=0)
    spread[:PLACES] = math.sqrt(float((spread[:PLACES] ** 2).mean()))
    scale = np.where(spread > 0, spread, 1.0)
    scaled = (table - centre) / scale
    sign = np.where(new, 1.0, -1.0)
    share = np.where(new, 0.5 / max(new.sum(), 1), 0.5 / max((~new).sum(), 1))

    def objective(parameters: Floats, strength: float) -> tuple[float, Floats]:
        margin = sign * (parameters[0] + scaled @ parameters[1:])
        slope = -share * sign * np.exp(-np.logaddexp(0, margin))
        loss = share @ np.logaddexp(0, -margin) + strength / 2 * parameters[1:] @ parameters[1:]
        return float(loss), np.append(slope.sum(), slope @ scaled + strength * parameters[1:])

    fits, parameters = [], np.zeros(SIZE + 1)
    for strength in strengths:
        settings = {"jac": True, "method": "L-BFGS-B", "options": {"maxiter": 200, "ftol": 1e-7}}
        parameters = minimize(objective, parameters, args=(strength,), **settings).x
        coefficients = parameters[1:] / scale
        fits.append((float(parameters[0] - centre @ coefficients), coefficients))
    return fits


def area(low: Floats, high: Floats) -> tuple[float, float]:
    """AUROC, the chance that one of `high` exceeds one of `low`, ties counted half; and its standard error (DeLong)."""

    def below(values: Floats, others: Floats) -> Floats:
        ordered = np.sort(others)
        ranks = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
        return np.asarray(ranks / (2 * len(others)))

    of_high, of_low = below(high, low), below(low, high)
    variance = of_high.var(ddof=1) / len(high) + of_low.var(ddof=1) / len(low)
    return float(of_high.mean()), float(math.sqrt(variance))


def _tested(table: Floats, new: Flags, part: NDArray[np.intp]) -> dict[float, Floats]:
    """For each strength, the log-odds of every question by a classifier that did not see it."""
    scores = {strength: np.empty(len(table)) for strength in _STRENGTHS}
    for out in range(_PARTS):
        left_out = part == out
        fits = fit_logistic(table[~left_out], new[~left_out], _STRENGTHS)
        for strength, (intercept, coefficients) in zip(_STRENGTHS, fits, strict=True):
            scores[strength][left_out] = intercept + table[left_out] @ coefficients
    return scores


def _loss(scores: Floats, new: Flags) -> float:
    """The mean of −log P(side), both sides weighing as much; log 2 is no better than chance."""
    return float((np.logaddexp(0, -scores[new]).mean() + np.logaddexp(0, scores[~new]).mean()) / 2)
