"""Intervals of what is compared: against their definitions, and how often they hold what they should."""

from __future__ import annotations

import math

import numpy as np
import pytest

from demur.calibration import Marginal
from demur.evaluation.resampling import NO_INTERVAL, LabelledVotes, Redrawn, clustered_auroc, exact
from demur.evidence.counts import Evidence
from demur.evidence.frontier import Frontier, common_auc


def labelled(rng, n, sharpness=1.0, columns=1):
    right = rng.random(n) < 0.7
    nu = np.clip(0.5 + 0.2 * sharpness * (right - 0.5) + 0.2 * rng.normal(size=n), 0.0, 1.0).round(2)
    keys = [nu, rng.integers(0, 3, n).astype(float)][:columns]
    return np.stack(keys, axis=1), right


@pytest.mark.parametrize("columns", [1, 2])
def test_a_draw_is_the_evidence_of_the_rows_drawn(columns):
    rng = np.random.default_rng(1)
    key, right = labelled(rng, 80, columns=columns)
    questions = rng.integers(0, 80, 80)
    drawn, plain = LabelledVotes.of(key, right).drawn(questions), Evidence.of(key[questions], right[questions])
    for name in ("levels", "right", "wrong"):
        assert np.array_equal(getattr(drawn, name), getattr(plain, name)), name


def test_figures_are_those_of_the_votes_and_differences_are_paired():
    rng = np.random.default_rng(2)
    votes = [LabelledVotes.of(*labelled(rng, 200, sharpness)) for sharpness in (2.0, 0.5)]
    redrawn = Redrawn.of(votes, [Marginal(0.1)], draws=60)
    frontiers = [Frontier.of(one.evidence) for one in votes]
    assert redrawn.figures[:, 1].tolist() == [frontier.auc for frontier in frontiers]
    assert redrawn.figures[:, 2].tolist() == common_auc(frontiers)
    difference, lower, upper = redrawn.difference(0, 1)
    apart = redrawn.draws[:, 0, 2] - redrawn.draws[:, 1, 2]
    assert (lower, upper) == tuple(np.percentile(apart, [2.5, 97.5]))
    assert lower < difference < upper
    assert redrawn.difference(0, 0) == (0.0, math.nan, math.nan) or math.isnan(redrawn.difference(0, 0)[1])
    assert redrawn.best == int(np.argmax(redrawn.figures[:, 2]))


def test_the_same_seed_draws_the_same_intervals():
    votes = [LabelledVotes.of(*labelled(np.random.default_rng(3), 100))]
    one, other = Redrawn.of(votes, draws=30), Redrawn.of(votes, draws=30)
    assert one.intervals(0) == other.intervals(0)
    assert one.intervals(0) != Redrawn.of(votes, draws=30, seed=1).intervals(0)


def test_where_all_draws_agree_there_is_no_interval():
    key = np.linspace(0.1, 1, 40)[:, None]
    redrawn = Redrawn.of([LabelledVotes.of(key, np.ones(40, dtype=bool))], draws=20)
    assert redrawn.intervals(0)[0] == NO_INTERVAL or math.isnan(redrawn.intervals(0)[0][0])
    assert exact(1.0, 40)[0] == pytest.approx(0.025 ** (1 / 40))


def test_the_intervals_hold_the_mean_over_common_yields_about_as_often_as_they_say():
    """94 of 100 means would be within two standard errors of 95 %; the bootstrap of 150 questions is a little short."""
    rng = np.random.default_rng(4)
    truth = common_auc([Frontier.of(Evidence.of(*labelled(rng, 400_000, 2.0)))])[0]
    held = 0
    for _ in range(100):
        redrawn = Redrawn.of([LabelledVotes.of(*labelled(rng, 150, 2.0))], draws=100)
        lower, upper = redrawn.intervals(0)[2]
        held += lower <= truth <= upper
    assert held >= 85


def test_the_auroc_of_one_path_per_question_has_delongs_variance():
    rng = np.random.default_rng(5)
    scores, right = rng.normal(size=60).round(1), rng.random(60) < 0.5
    area, (lower, upper) = clustered_auroc([[s] for s in scores], [[bool(r)] for r in right])
    above, below = scores[right], scores[~right]
    wins = (above[:, None] > below[None, :]) + 0.5 * (above[:, None] == below[None, :])
    assert area == pytest.approx(wins.mean())
    delong = wins.mean(axis=1).var(ddof=1) / len(above) + wins.mean(axis=0).var(ddof=1) / len(below)
    assert (upper - lower) / (2 * 1.959964) == pytest.approx(math.sqrt(delong), rel=0.03)


def test_paths_of_one_question_count_together():
    """Each path ten times over says no more than once."""
    rng = np.random.default_rng(6)
    scores, right = rng.normal(size=60), rng.random(60) < 0.5
    once = clustered_auroc([[s] for s in scores], [[bool(r)] for r in right])
    tenfold = clustered_auroc([[s] * 10 for s in scores], [[bool(r)] * 10 for r in right])
    assert tenfold[0] == pytest.approx(once[0])
    assert tenfold[1] == pytest.approx(once[1])


def test_there_is_no_auroc_of_one_label_and_no_interval_of_one_question():
    assert math.isnan(clustered_auroc([[1.0], [2.0]], [[True], [True]])[0])
    area, between = clustered_auroc([[1.0, 2.0]], [[False, True]])
    assert area == 1
    assert math.isnan(between[0])
