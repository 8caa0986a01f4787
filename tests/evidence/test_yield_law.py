"""What calibrating on n votes brings: against calibration sets drawn from the population that the law describes."""

from __future__ import annotations

import numpy as np
import pytest

import demur as dm
from demur.evidence import yield_law
from demur.evidence.laws import ErrorLaw
from demur.evidence.yield_law import Expected, YieldLaw

DRAWS = 4000


def evidence_of(n, *, n_paths=8, ties=True, missing=0.02, seed=0):
    pools = dm.simulate_pools(n, n_paths=n_paths, missing=missing, seed=seed)
    votes = dm.vote(pools.answers) if ties else dm.vote(pools.answers, pools.scores, tie_break=dm.mean_score())
    return dm.Evidence.of(votes.key, votes.answer == pools.gold)


class Population:
    """Places on a line, the most confident first: a key that votes share is a point, one of a single wrong vote a
    stretch over which it and the right votes above it are spread."""

    def __init__(self, evidence):
        first, last, wrong, at, waiting = [], [], [], 0, 0
        for level, right, bad in zip(evidence.levels[::-1], evidence.right[::-1], evidence.wrong[::-1], strict=True):
            if level[0] == 0:
                continue
            if not bad:
                waiting += right
                continue
            shared = right + bad > 1
            ends = (at, at) if shared else (at, at + 1)
            points = [(*ends, False)] * waiting + ([(at + 1, at + 1, False)] * right if shared else [])
            points += [(at + 1, at + 1, True) if shared else (*ends, True)] * bad
            at, waiting = at + (2 if shared else 1), 0
            for one in points:
                first.append(one[0])
                last.append(one[1])
                wrong.append(one[2])
        rest = evidence.n - len(first) - waiting
        self.end = at + 2  # behind all that has confidence
        first += [at + 1] * waiting + [self.end] * rest
        last += [at + 1] * waiting + [self.end] * rest
        self.first, self.last = np.array(first, dtype=float), np.array(last, dtype=float)
        self.wrong = np.array([*wrong, *[False] * waiting, *[True] * rest])

    def calibrated(self, k, n, rng):
        """Yield, error rate, and labels until k errors are found, after one calibration on n votes."""
        drawn = rng.integers(0, len(self.first), n)
        place = self.first[drawn] + (self.last - self.first)[drawn] * rng.random(n)
        order = np.lexsort([rng.random(n), place])
        errors = np.flatnonzero(self.wrong[drawn][order] & (place[order] < self.end))
        at, labels = (place[order][errors[k - 1]], errors[k - 1] + 1) if len(errors) >= k else (self.end, n)
        width = np.where(self.last > self.first, self.last - self.first, 1.0)
        mass = np.where(self.last > self.first, np.clip((at - self.first) / width, 0, 1), self.first < at)
        return mass.mean(), mass[self.wrong].sum() / len(mass), labels

    def repeated(self, k, n, seed=1, draws=DRAWS):
        rng = np.random.default_rng(seed)
        return np.array([self.calibrated(k, n, rng) for _ in range(draws)]).T


def distances(columns, expected):
    """How many standard errors the means of draws lie from what is expected, and how the spreads compare."""
    means = (expected.answered, expected.confident_error, expected.labels)
    far = [
        (column.mean() - mean) / (column.std() / np.sqrt(len(column)) + 1e-9)
        for column, mean in zip(columns, means, strict=True)
    ]
    return np.abs(far)


CASES = [
    ({"n": 150, "n_paths": 16, "ties": False}, 5, 99),
    ({"n": 150, "n_paths": 5, "missing": 0.3}, 10, 99),
    ({"n": 400, "n_paths": 5}, 20, 199),
    ({"n": 60, "n_paths": 8, "ties": False}, 2, 39),
    ({"n": 60, "n_paths": 8, "ties": False, "missing": 0.5}, 12, 39),  # often there are not so many errors
    ({"n": 300, "n_paths": 1, "missing": 0.2}, 3, 19),  # all keys are one
    ({"n": 40, "n_paths": 4, "ties": False}, 1, 9),
]


@pytest.mark.parametrize(("how", "k", "n"), CASES)
def test_means_and_spreads_are_those_of_drawn_calibration_sets(how, k, n):
    evidence = evidence_of(**how)
    (expected,) = YieldLaw.of(evidence).expect([(k, n)])
    columns = Population(evidence).repeated(k, n)
    assert distances(columns, expected).max() < 4  # three figures, seven cases: one in a thousand beyond
    for column, sd in ((columns[0], expected.answered_sd), (columns[2], expected.labels_sd)):
        assert column.std() == pytest.approx(sd, rel=0.08, abs=1e-3)


@pytest.mark.parametrize("shift", [1, -1])
def test_a_rank_off_by_one_is_seen(shift):
    evidence = evidence_of(150, n_paths=16, ties=False)
    (mutant,) = YieldLaw.of(evidence).expect([(5 + shift, 99)])
    assert distances(Population(evidence).repeated(5, 99), mutant).min() > 8


def test_without_ties_the_error_rate_is_the_capped_beta():
    evidence = evidence_of(200, ties=False)
    pairs = [(1, 19), (5, 99), (30, 99), (95, 99), (100, 99)]
    for (k, n), expected in zip(pairs, YieldLaw.of(evidence).expect(pairs), strict=True):
        mean = ErrorLaw(k, n).mean(evidence.confident_wrong)
        assert expected.confident_error == pytest.approx(mean, abs=1e-12), (k, n)


def test_two_keys_by_hand():
    # At the top 6 right and 2 wrong, below them 1 right and 1 wrong: V above .2 passes the first key, above .3 both.
    evidence = dm.Evidence(np.array([[0.5], [1.0]]), np.array([1, 6]), np.array([1, 2]))
    (expected,) = YieldLaw.of(evidence).expect([(1, 1)])  # V is uniform
    assert expected.answered == pytest.approx(0.2 * 0 + 0.1 * 0.8 + 0.7 * 1)
    assert expected.confident_error == pytest.approx(0.1 * 0.2 + 0.7 * 0.3)
    assert (expected.found, expected.labels) == (pytest.approx(0.3), pytest.approx(1))


def test_nothing_is_answered_by_rank_0_and_everything_by_a_rank_above_n():
    law = YieldLaw.of(evidence_of(100))
    none, every = law.expect([(0, 10), (11, 10)])
    assert none == Expected(0, 0, 0, 0, 0, 0)
    assert (every.answered, every.labels) == (pytest.approx(law.right + law.wrong), 10)
    assert law.expect([]) == []


def test_without_errors_all_is_answered_and_all_labelled():
    (expected,) = YieldLaw.of(dm.Evidence.of([0.5, 0.9, 1.0], [True] * 3)).expect([(2, 39)])
    assert (expected.answered, expected.confident_error, expected.labels) == (1, 0, 39)


def test_the_limit_is_what_many_labels_bring():
    for ties in (True, False):
        law = YieldLaw.of(evidence_of(300, n_paths=16, ties=ties))
        for alpha in (0.033, 0.08, 0.15):
            (expected,) = law.expect([(int(alpha * 10**7), 10**7 - 1)])
            error, answered = law.in_the_limit(alpha)
            assert (expected.confident_error, expected.answered) == (
                pytest.approx(error, abs=2e-3),
                pytest.approx(answered, abs=4e-3),
            )


def test_stretches_that_are_drawn_together_change_next_to_nothing(monkeypatch):
    evidence = evidence_of(20_000, n_paths=16, ties=False)
    pairs = [(1, 19), (10, 199), (50, 499)]
    coarse = YieldLaw.of(evidence)
    assert len(coarse.ends) <= 3 * yield_law._FINEST
    monkeypatch.setattr(yield_law, "_FINEST", 10**9)
    fine = YieldLaw.of(evidence)
    assert len(fine.ends) == np.count_nonzero(evidence.wrong)
    for one, other in zip(coarse.expect(pairs), fine.expect(pairs), strict=True):
        assert one.answered == pytest.approx(other.answered, abs=1e-3)
        assert one.labels == pytest.approx(other.labels, rel=1e-3)


def test_a_large_pilot_foretells_calibrations_on_fresh_questions():
    """Not drawn from the pilot: other questions of the same simulator, calibrated by the library itself."""
    pilot = evidence_of(20_000, n_paths=16, ties=False, seed=5)
    (expected,) = YieldLaw.of(pilot).expect([(5, 99)])
    pools = dm.simulate_pools(99 * 400, n_paths=16, seed=6)
    votes = dm.vote(pools.answers, pools.scores, tie_break=dm.mean_score())
    right = votes.answer == pools.gold
    answered, labels = [], []
    for rows in np.arange(99 * 400).reshape(400, 99):
        policy = dm.calibrate(votes.take(rows), right[rows], alpha=0.05)
        answered.append(sum(pilot.above(policy.points[0].threshold_key)) / pilot.n)
        order = np.lexsort(votes.key[rows].T[::-1])[::-1]
        errors = np.flatnonzero(~right[rows][order])
        labels.append(errors[4] + 1 if len(errors) > 4 else 99)
    for column, mean, sd in (
        (answered, expected.answered, expected.answered_sd),
        (labels, expected.labels, expected.labels_sd),
    ):
        # 4 standard errors: of 400 calibrations, and of a pilot that is worth 20 000 / 99 of them
        assert abs(np.mean(column) - mean) < 4 * sd * np.sqrt(1 / 400 + 99 / 20_000)
        assert np.std(column) == pytest.approx(sd, rel=0.15)


def test_mixed_laws_have_the_spread_between_them_too():
    low, high = Expected(0.4, 0.1, 0.02, 10, 1, 1), Expected(0.6, 0.1, 0.04, 20, 1, 1)
    mixed = Expected.mixed([(0.5, low), (0.5, high)])
    assert (mixed.answered, mixed.confident_error, mixed.labels) == (pytest.approx(0.5), pytest.approx(0.03), 15)
    assert mixed.answered_sd == pytest.approx(np.sqrt(0.1**2 + 0.1**2))
    assert mixed.labels_sd == pytest.approx(np.sqrt(1 + 25))
