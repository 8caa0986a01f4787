"""Abstaining on outliers behind a threshold: P(answered and wrong) stays promised, P(wrong given answered) does not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import demur as dm

ALPHA = DELTA = 0.1
LEVEL = 0.45
CALIBRATIONS = 60
ODD = 0.4
SLACK = 0.01
"""Four hundred new questions are not all, though nothing is drawn of their labels."""
LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


def ask(rng, n, odd=ODD):
    """Questions of one form and, now and then, of random words; on those the model is sure and right."""
    is_odd = rng.random(n) < odd
    return [
        " ".join("".join(rng.choice(LETTERS, rng.integers(2, 9))) for _ in range(rng.integers(3, 15)))
        if strange
        else f"What is {rng.integers(10**9)} plus {rng.integers(10**9)}?"
        for strange in is_odd
    ], is_odd


def vote_on(rng, texts, is_odd):
    """Ten paths each, and how likely each answer is wrong: the less the more agree, and hardly ever if it is odd."""
    agree = np.where(is_odd, rng.integers(8, 11, len(texts)), rng.integers(4, 11, len(texts)))
    answers = np.where(np.arange(10) < agree[:, None], 0, np.arange(10) + 1)
    return dm.vote(answers, questions=texts), np.where(is_odd, 0.001, 0.45 - 0.03 * agree)


def labelled(rng, n, odd=ODD):
    """Votes and labels."""
    votes, wrong = vote_on(rng, *ask(rng, n, odd))
    return votes, rng.random(n) >= wrong


def worlds(seed, guarantee):
    """Over calibration sets: P(answered and wrong), P(wrong given answered) and the yield, on new questions; without a
    gate behind the threshold, and with one.

    The gate is that of a policy on the same questions; one whose promise is about answers would refuse it.
    """
    rng, rows = np.random.default_rng(seed), []
    for _ in range(CALIBRATIONS):
        votes, right = labelled(rng, 600)
        policy = dm.calibrate(votes, right, guarantee=guarantee)
        gate = dm.calibrate(votes, right, alpha=0.5, outlier_level=LEVEL).outliers
        texts, is_odd = ask(rng, 400)
        votes, wrong = vote_on(rng, texts, is_odd)
        answered = policy.decide_votes(votes).answered
        rows.append([_rates(wrong, answered), _rates(wrong, answered & ~gate.closes(texts))])
    without, behind = np.array(rows).transpose(1, 2, 0)
    return without, behind


def _rates(wrong, answered):
    given = wrong[answered]
    return given.sum() / len(wrong), given.mean() if len(given) else 0.0, answered.mean()


@pytest.mark.parametrize("guarantee", [dm.Marginal(ALPHA), dm.HighProbability(ALPHA, DELTA)], ids=lambda one: one.name)
def test_the_promise_about_all_questions_survives(guarantee):
    without, (rates, _, answered) = worlds(1, guarantee)
    assert (rates <= without[0]).all()  # calibration by calibration
    if guarantee.name == "marginal":
        assert rates.mean() <= ALPHA + 4 * rates.std(ddof=1) / np.sqrt(len(rates))
    else:
        failed = int((rates > ALPHA + SLACK).sum())
        assert stats.binomtest(failed, len(rates), DELTA, alternative="greater").pvalue > 1e-6
    assert answered.mean() > 0.15  # abstaining always would keep it too


def test_the_promise_about_the_answers_given_breaks_and_is_refused_for_that():
    """The negative control: the gate takes away the answers that were right, and leaves the wrong ones."""
    (_, kept, answered), (_, broken, _) = worlds(2, dm.Selective(ALPHA, DELTA))
    failed = int((kept > ALPHA + SLACK).sum())
    assert stats.binomtest(failed, len(kept), DELTA, alternative="greater").pvalue > 1e-6
    assert answered.mean() > 0.15
    assert (broken > ALPHA + SLACK).mean() > 0.5


def test_of_questions_like_the_calibration_ones_no_more_than_the_level_are_abstained_on():
    """By the policy itself; what it turns away is near the level, for to turn none away would keep it too."""
    rng, away = np.random.default_rng(3), []
    for _ in range(60):
        policy = dm.calibrate(*labelled(rng, 200), alpha=ALPHA, outlier_level=0.1)
        away.append(policy.decide_votes(vote_on(rng, *ask(rng, 100))[0]).outliers.mean())
    error = np.std(away, ddof=1) / np.sqrt(len(away))
    assert np.mean(away) <= 0.1 + 4 * error
    assert np.mean(away) > 0.1 - 1 / 101 - 4 * error


def test_shifted_traffic_is_abstained_on():
    rng = np.random.default_rng(4)
    policy = dm.calibrate(*labelled(rng, 200, odd=0.0), alpha=ALPHA, outlier_level=0.05)
    assert policy.decide_votes(vote_on(rng, *ask(rng, 100, odd=1.0))[0]).outliers.all()
