"""Ridge logistic regression, against a general optimiser and against fits that really leave a row out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from demur.evaluation.ridge_logistic import fit_ridge_logistic


def example(seed, rows=80, columns=6):
    rng = np.random.default_rng(seed)
    table = np.concatenate([np.ones((rows, 1)), rng.normal(size=(rows, columns - 1))], axis=1)
    weights = rng.normal(size=columns)
    labels = rng.random(rows) < 1 / (1 + np.exp(-table @ weights))
    return table, labels, np.array([1e-6, *rng.uniform(0.5, 20, columns - 1)])


@pytest.mark.parametrize("seed", range(5))
def test_the_weights_minimise_the_penalised_loss(seed):
    table, labels, penalties = example(seed)

    def objective(weights):
        odds = table @ weights
        return np.logaddexp(0, odds).sum() - odds[labels].sum() + penalties @ weights**2 / 2

    best = minimize(objective, np.zeros(table.shape[1]), method="BFGS", options={"gtol": 1e-8})
    fit = fit_ridge_logistic(table, labels, penalties)
    assert objective(fit.weights) <= best.fun + 1e-9
    assert fit.weights == pytest.approx(best.x, abs=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_left_out_log_odds_are_those_of_fits_without_the_row(seed):
    table, labels, penalties = example(seed)
    fit = fit_ridge_logistic(table, labels, penalties)
    inside = table @ fit.weights
    for row in range(len(table)):
        others = np.arange(len(table)) != row
        refitted = table[row] @ fit_ridge_logistic(table[others], labels[others], penalties).weights
        assert abs(fit.left_out[row] - refitted) < 0.02 + 0.1 * abs(inside[row] - refitted)


def test_rows_that_can_be_told_apart_perfectly_have_finite_weights():
    table = np.array([[1.0, -2.0], [1.0, -1.0], [1.0, 1.0], [1.0, 2.0]] * 5)
    fit = fit_ridge_logistic(table, table[:, 1] > 0, np.array([1e-6, 1e-3]))
    assert np.isfinite(fit.weights).all()
    assert np.isfinite(fit.losses).all()
