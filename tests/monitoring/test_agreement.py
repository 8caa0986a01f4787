"""Two pools of one question: the law of how far they agree, against dealing the paths out in every way."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from demur.monitoring.agreement import agreement_law, agreement_p_value


def pairs(old, new):
    return sum(one == other for one in old for other in new)


@pytest.mark.parametrize("paths", ["aabb", "aaaabb", "abcdef", "aaabbc", "aaaaaa", "aabbccdd", "aaaaabbc"])
def test_the_law_is_that_of_dealing_the_paths_out_in_every_way(paths):
    every = Counter()
    for dealt in itertools.combinations(range(len(paths)), len(paths) // 2):
        rest = [path for at, path in enumerate(paths) if at not in dealt]
        every[pairs([paths[at] for at in dealt], rest)] += 1
    assert agreement_law(tuple(sorted(Counter(paths).values()))) == every


def test_p_is_uniform_where_all_paths_are_drawn_alike_exactly():
    """Over all dealings and a fine grid of draws: the mean of any bet on it is what the bet costs."""
    paths, total, weight = "aaabbc", Fraction(0), 0
    for dealt in itertools.permutations(range(6), 3):
        old = [paths[at] for at in dealt]
        new = [path for at, path in enumerate(paths) if at not in dealt]
        for draw in (np.arange(200) + 0.5) / 200:
            total += Fraction(2 * (1 - agreement_p_value(old, new, draw)))
            weight += 1
    assert float(total / weight) == pytest.approx(1, abs=1e-9)


def test_pools_that_answer_otherwise_have_small_p_and_equal_ones_large():
    assert agreement_p_value("aaaaaaaa", "bbbbbbbb", 0.5) < 1e-3
    assert agreement_p_value("aaaabbbb", "aaaabbbb", 0.5) > 0.5
    assert agreement_p_value("aaaa", "aaaa", 0.3) == 0.3  # nothing can be told
    assert agreement_p_value([None] * 4, ["a"] * 4, 0.0) == 0.0


def test_the_order_of_paths_and_of_pools_does_not_matter():
    assert agreement_p_value("aabc", "cbbb", 0.4) == agreement_p_value("caba", "bbcb", 0.4)
    assert agreement_p_value("aabc", "cbbb", 0.4) == agreement_p_value("cbbb", "aabc", 0.4)


def test_p_is_uniform_on_questions_of_any_kind():
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(3000):
        chances = rng.dirichlet([0.4] * 6)
        p_values.append(agreement_p_value(*rng.choice(6, (2, 8), p=chances).tolist(), rng.random()))
    assert stats.kstest(p_values, "uniform").pvalue > 1e-4
