"""A cascade's thresholds: the definition, leave-one-out, the law of errors, and what breaks the promise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta, kstest

from demur.calibration import Marginal
from demur.calibration.cascade import JointVotes, as_shares, ranks_of
from demur.errors import InvalidValue
from demur.evidence.counts import Evidence, exceeds

HALVES = as_shares([1, 1], 2)


def joint(keys: list, right: list) -> JointVotes:
    arrays = tuple(np.asarray(key, dtype=float).reshape(len(key), -1) for key in keys)
    labels = tuple(np.asarray(good, dtype=bool) for good in right)
    return JointVotes(arrays, labels, tuple(np.full(len(key), 4) for key in keys))


def drawn(rng: np.random.Generator, n: int, stages: int = 2, levels: int | None = None, width: int = 1) -> JointVotes:
    """Questions of different difficulty; later stages are better. With `levels`, keys have so many values and tie."""
    hard = rng.random(n)
    keys, right = [], []
    for stage in range(stages):
        key = np.clip(1 - hard * 0.6 + rng.normal(0, 0.25, (width, n)), 0, 1).T
        key = key if levels is None else np.round(key * levels) / levels
        good = rng.random(n) < np.clip(0.2 + 0.15 * stage + 0.8 * key[:, 0] * (1 - hard * 0.5), 0, 1)
        keys.append(key)
        right.append(good & (key[:, 0] > 0))
    return joint(keys, right)


def is_wrong(votes: JointVotes, thresholds: list, row: int) -> bool:
    for key, right, threshold in zip(votes.keys, votes.right, thresholds, strict=True):
        if tuple(key[row]) > tuple(threshold):
            return not right[row]
    return False


def errors_when_left_out(votes: JointVotes, ranks: list[int]) -> int:
    every = np.arange(votes.n)
    return sum(is_wrong(votes, votes.thresholds(ranks), row) for row, votes in
               ((row, _Left(votes, every[every != row])) for row in every))  # fmt: skip


class _Left:
    """All votes to be judged, thresholds from those that are left."""

    def __init__(self, votes: JointVotes, rows: np.ndarray) -> None:
        self.keys, self.right, self._some = votes.keys, votes.right, votes.take(rows)

    def thresholds(self, ranks: list[int]) -> list:
        return self._some.thresholds(ranks)


def by_definition(votes: JointVotes, ranks: list[int]) -> list[tuple[float, ...]]:
    """Plain Python: sort the wrong ones that get to a stage and are not used up, take the k-th."""
    rows, thresholds = list(range(votes.n)), []
    stages = len(ranks)
    gone: set[int] = set()
    for stage, k in enumerate(ranks):

        def rank(row: int, stage: int = stage) -> tuple:
            own = tuple(votes.keys[stage][row])
            own = own if own[0] > 0 else (0.0,) * len(own)
            later = tuple(
                (not votes.right[s][row], tuple(votes.keys[s][row]) if not votes.right[s][row] else ())
                for s in range(stage + 1, stages)
            )
            return own, later

        width = votes.keys[stage].shape[1]
        never, always = (1.0, *[np.inf] * (width - 1)), (0.0, *[np.inf] * (width - 1))
        wrong = sorted((r for r in rows if r not in gone and not votes.right[stage][r]), key=rank, reverse=True)
        if k == 0:
            thresholds.append(never)
            continue
        top = wrong[:k]
        gone.update(top)
        last = tuple(votes.keys[stage][top[-1]]) if len(top) == k else always
        thresholds.append(last if last[0] > 0 else always)
        rows = [r for r in rows if not tuple(votes.keys[stage][r]) > thresholds[-1]]
    return thresholds


@pytest.mark.parametrize("levels", [None, 3, 8])
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_thresholds_are_the_definition_read_literally(stages: int, levels: int | None) -> None:
    rng = np.random.default_rng(7)
    for _ in range(150):
        votes = drawn(rng, int(rng.integers(1, 25)), stages, levels, width=int(rng.integers(1, 3)))
        ranks = rng.integers(0, 5, stages).tolist()
        assert votes.thresholds(ranks) == by_definition(votes, ranks)


def test_one_stage_is_the_rank_guarantee() -> None:
    votes = drawn(np.random.default_rng(0), 200)
    assert joint([votes.keys[0]], [votes.right[0]]).thresholds([20]) == [
        Evidence.of(votes.keys[0], votes.right[0]).threshold(20)
    ]


@pytest.mark.parametrize("levels", [None, 2, 5])
@pytest.mark.parametrize("stages", [2, 3])
def test_of_n_plus_1_questions_left_out_in_turn_at_most_k_are_answered_wrongly(stages: int, levels: int | None) -> None:
    rng = np.random.default_rng(11)
    most = 0
    for _ in range(200):
        ranks = rng.integers(0, 4, stages).tolist()
        votes = drawn(rng, int(rng.integers(2, 18)), stages, levels)
        errors = errors_when_left_out(votes, ranks)
        assert errors <= sum(ranks)
        most = max(most, errors - sum(ranks))
    assert most == 0  # and the bound is reached


def test_errors_follow_the_law_of_one_threshold_of_rank_k() -> None:
    rng, n, k = np.random.default_rng(3), 60, 12
    fresh = drawn(rng, 10_000)
    rates = []
    for _ in range(300):
        thresholds = drawn(rng, n).thresholds(ranks_of(k, HALVES))
        reached = fresh.reached(thresholds)
        wrong = sum(
            int((before & ~after & ~right).sum())
            for before, after, right in zip(reached, reached[1:], fresh.right, strict=False)
        )
        rates.append(wrong / fresh.n)
    assert kstest(rates, beta(k, n + 1 - k).cdf).pvalue > 0.01


def simulated_errors(rule, alpha: float, n: int = 99, sets: int = 4000) -> tuple[float, float, float]:
    """Mean errors, answers and the tolerance of the first: three standard errors of independent new questions."""
    rng = np.random.default_rng(14)
    wrong = answered = 0
    for _ in range(sets):
        votes = drawn(rng, n + 1)
        thresholds = rule(votes.take(np.arange(n)), alpha)
        wrong += is_wrong(votes, thresholds, n)
        answered += any(exceeds(key[n:], t)[0] for key, t in zip(votes.keys, thresholds, strict=True))
    return wrong / sets, answered / sets, 3 * np.sqrt(alpha * (1 - alpha) / sets)


def in_shares(votes: JointVotes, alpha: float) -> list:
    return votes.thresholds(ranks_of(Marginal(alpha).rank(votes.n), HALVES))


def strong_alone(votes: JointVotes, alpha: float) -> list:
    return votes.thresholds([0, Marginal(alpha).rank(votes.n)])


def alpha_at_each_stage(votes: JointVotes, alpha: float) -> list:
    k = Marginal(alpha).rank(votes.n)
    return [Evidence.of(key, right).threshold(k) for key, right in zip(votes.keys, votes.right, strict=True)]


def test_one_promise_holds_for_both_stages_and_is_spent() -> None:
    wrong, answered, tolerance = simulated_errors(in_shares, 0.1)
    assert abs(wrong - 0.1) <= tolerance  # abstaining always, or half of it unspent, would fail
    assert answered > 0.25


@pytest.mark.parametrize("levels", [None, 4])
def test_the_envelope_of_the_results_is_its_definition_and_valid(levels: int | None) -> None:
    """The smallest threshold, the same at all stages, at which few enough questions are wrong there or higher."""
    from cascade_results import envelope

    rng, alpha = np.random.default_rng(2), 0.3
    for _ in range(60):
        votes = drawn(rng, int(rng.integers(4, 16)), 2, levels)
        grid = sorted({0.0, *np.concatenate(votes.keys).ravel().tolist()})
        wrong = [[is_wrong(votes, [(t,), (t,)], row) for t in grid] for row in range(votes.n)]
        counts = [sum(any(row[at:]) for row in wrong) for at in range(len(grid))]
        allowed = int((votes.n + 1) * Fraction(3, 10)) - 1
        smallest = next((t for t, count in zip(grid, counts, strict=True) if count <= allowed), 1.0)
        (threshold,) = set(envelope(votes, alpha))
        same = [is_wrong(votes, [threshold, threshold], row) for row in range(votes.n)]
        assert threshold == (smallest,) or (allowed < 0 and threshold == (1.0,))
        assert sum(same) <= max(allowed, 0)
        every = np.arange(votes.n)
        errors = sum(is_wrong(votes, envelope(votes.take(every[every != row]), alpha), row) for row in every)
        assert errors <= int(votes.n * Fraction(3, 10))


def test_alpha_at_each_stage_breaks_the_promise() -> None:
    wrong, _, tolerance = simulated_errors(alpha_at_each_stage, 0.1)
    assert wrong > 0.1 + 2 * tolerance


def test_shares_that_were_chosen_by_the_labels_break_the_promise() -> None:
    """The best of all splits by calibration's own yield, errors equal: what `curve` must not be used for."""

    def best(votes: JointVotes, alpha: float) -> list:
        k = Marginal(alpha).rank(votes.n)
        found = [votes.thresholds([first, k - first]) for first in range(k + 1)]
        return max(found, key=lambda thresholds: 1 - votes.reached(thresholds)[-1].mean())

    def guessed(rng: np.random.Generator, n: int) -> JointVotes:
        """Confidence says nothing, so that all that differs between splits is luck."""
        return joint([rng.random(n), rng.random(n)], [rng.random(n) < 0.5, rng.random(n) < 0.5])

    rng, n, alpha = np.random.default_rng(5), 39, 0.1
    fresh, rates = guessed(rng, 20_000), []
    for _ in range(400):
        reached = fresh.reached(best(guessed(rng, n), alpha))
        rates.append(
            sum(float((a & ~b & ~r).mean()) for a, b, r in zip(reached, reached[1:], fresh.right, strict=False))
        )
    assert np.mean(rates) > alpha + 3 * np.std(rates) / np.sqrt(len(rates))


def test_ranks_add_up_to_k_whatever_the_shares() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        stages, k = int(rng.integers(1, 5)), int(rng.integers(0, 40))
        shares = as_shares([int(part) for part in rng.integers(1, 9, stages)], stages)
        ranks = ranks_of(k, shares)
        assert sum(ranks) == k
        assert min(ranks) >= 0
    assert ranks_of(5, HALVES) == [2, 3]
    assert as_shares(["1/3", 0.1], 2) == (Fraction(10, 13), Fraction(3, 13))


@pytest.mark.parametrize("shares", [[1], [1, -1], [0, 0], ["x", 1], "11", [float("nan"), 1]])
def test_shares_that_are_none_are_refused(shares: object) -> None:
    with pytest.raises(InvalidValue, match="shares must"):
        as_shares(shares, 2)  # type: ignore[arg-type]
