"""Repeated splits group by group: against the exact law where there is one, and on recorded questions by category."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import demur as dm
from demur.errors import InvalidValue
from demur.evaluation.group_splits import ALL, evaluate_groups
from demur.pools.jsonl import read_pools
from demur.pools.source import PoolSource


def voted(groups, n=120, seed=0):
    rng = np.random.default_rng(seed)
    right = rng.random(n) < 0.7
    votes = np.minimum(8, rng.integers(2, 8, n) + right)
    pools = [["a"] * int(most) + [f"other {path}" for path in range(8 - most)] for most in votes]
    return dm.VotedPools.of(dm.vote(pools, groups=groups(n)), right)


def two(n):
    return ["x" if row % 3 else "y" for row in range(n)]


def test_means_lie_within_exact_standard_errors_of_the_exact_mean():
    results = evaluate_groups(voted(two), [dm.Grouped(dm.Marginal(0.2)), dm.Marginal(0.2)], n_cal=60, splits=300)
    assert [(one.guarantee.name, one.group) for one in results] == [
        ("grouped_marginal", "x"), ("grouped_marginal", "y"), ("grouped_marginal", ALL),
        ("marginal", "x"), ("marginal", "y"), ("marginal", ALL),
    ]  # fmt: skip
    for one in results[:2]:
        assert abs(one.z) < 4
        assert 0 < one.exact_mean <= 0.2
        assert one.answered.mean > 0.1
    assert all(math.isnan(one.exact_mean) for one in results[2:])


def test_the_exact_mean_is_that_of_all_splits():
    """Enumerated: every way to draw the calibration part of a small file."""
    some, alpha, n_cal = voted(two, n=9, seed=3), 0.5, 5
    votes, labels, groups = some.votes, some.correct, two(9)
    rates = []
    for calibration in itertools.combinations(range(9), n_cal):
        test = [row for row in range(9) if row not in calibration and groups[row] == "x"]
        own = [row for row in calibration if groups[row] == "x"]
        if not test:
            continue
        k = int((len(own) + 1) * alpha)
        wrong = sorted((float(votes.confidence[row]) for row in own if not labels[row]), reverse=True)
        threshold = 1.0 if k == 0 else wrong[k - 1] if len(wrong) >= k else 0.0
        answered = [row for row in test if len(own) >= 1 and votes.confidence[row] > threshold]
        rates.append(sum(not labels[row] for row in answered) / len(test))
    (one, *_) = evaluate_groups(some, [dm.Grouped(dm.Marginal(alpha))], n_cal=n_cal, splits=4000)
    assert one.confident_error.mean == pytest.approx(np.mean(rates), abs=4 * np.std(rates) / 4000**0.5)
    assert one.exact_mean == pytest.approx(np.mean(rates), abs=0.02)  # how many calibrate is as drawn


@pytest.mark.parametrize(
    ("groups", "guarantee"),
    [
        (lambda n: [("x", "y") if row % 2 else ("x",) for row in range(n)], dm.Grouped(dm.Marginal(0.2))),
        (two, dm.Grouped(dm.Marginal(0.2), fallback="pooled")),
    ],
)
def test_where_there_is_no_exact_law_none_is_claimed(groups, guarantee):
    for one in evaluate_groups(voted(groups), [guarantee], n_cal=60, splits=10):
        assert math.isnan(one.exact_mean)
        assert math.isnan(one.z)
        assert one.document()["confident_error"]["se"] >= 0


def test_evaluate_measures_each_group_beside_the_promise_without_groups():
    some = voted(two)
    evaluation = dm.evaluate(some, guarantee=dm.Grouped(dm.Marginal(0.2)), splits=20)
    assert [point.guarantee.name for point in evaluation.points] == ["marginal"]
    assert {one.guarantee.name for one in evaluation.groups} == {"marginal", "grouped_marginal"}
    overall = next(one for one in evaluation.groups if (one.guarantee.name, one.group) == ("marginal", ALL))
    assert overall.confident_error == evaluation.points[0].confident_error
    with pytest.raises(InvalidValue, match="needs the groups"):
        dm.evaluate(dm.vote([["a"]] * 40), np.ones(40, dtype=bool), guarantee=dm.Grouped(dm.Marginal(0.2)))
    with pytest.raises(InvalidValue, match="measured group by group"):
        dm.evaluate_splits({"": some}, guarantee=dm.Grouped(dm.Marginal(0.2)), n_cal=60)


@pytest.mark.real_data
def test_categories_of_recorded_questions_keep_the_promise_with_a_threshold_each_and_not_with_one(recorded_pools):
    source = PoolSource(read_pools(recorded_pools / "mmlupro_text_1in8.jsonl.gz"))
    some = dm.vote_pools(source, dm.FieldChoice(group_field="category"), source.recipe(tie_break="jitter:0"))
    results = evaluate_groups(some, [dm.Marginal(0.1), dm.Grouped(dm.Marginal(0.1))], n_cal=700, splits=60)
    own = [one for one in results if one.guarantee.name == "grouped_marginal" and one.group != ALL]
    pooled = {one.group: one for one in results if one.guarantee.name == "marginal"}
    assert len(own) == 14
    for one in own:
        assert one.exact_mean <= 0.1
        assert abs(one.z) < 4
        assert one.answered.mean > 0.1  # abstaining always would keep the promise, and is not what happens
    assert max(one.confident_error.mean for one in pooled.values()) > 0.18
    assert pooled[ALL].confident_error.mean == pytest.approx(0.1, abs=0.02)
