"""Sizes that vary by chance are compared with calibration's; no label is needed."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

import demur as dm
from demur.evidence.counts import Evidence
from demur.evidence.strata import SIZE_LEVEL, Strata
from demur.policy.decisions import size_shift_note


def strata_of(sizes, *, by_chance=True):
    """Evidence of so many pools of each size."""
    return Strata(
        {((), size): Evidence.of(np.full((n, 1), 0.5), np.ones(n, bool)) for size, n in sizes.items()}, by_chance
    )


def votes_of(sizes, **how):
    rng = np.random.default_rng(len(sizes))
    return dm.vote([["ab"[int(path > 0.7)] for path in rng.random(size)] for size in sizes], **how)


def policy_of(sizes=(4, 8), n=200, **how):
    sizes = np.resize(sizes, n).tolist()
    votes = votes_of(sizes, questions=[f"Question {row}?" for row in range(n)])
    return dm.calibrate(votes, np.arange(n) % 5 > 0, alpha=0.2, **{"sizes_by_chance": True, **how})


def test_the_p_value_is_that_of_the_permutation_test_read_literally():
    """All divisions of 5 + 4 pools, each statistic by its definition."""
    calibration, batch = [2] * 4 + [3], [2, 3, 3, 5]
    every = calibration + batch

    def statistic(some):
        here, both = Counter(some), Counter(every)
        return sum((here[size] - m * len(some) / 9) ** 2 / (m * len(some) / 9) for size, m in both.items())

    divisions = [statistic([every[at] for at in rows]) for rows in combinations(range(9), 4)]
    exact = np.mean(np.array(divisions) >= statistic(batch) - 1e-9)
    found = strata_of(Counter(calibration)).size_p_value(Counter(batch), level=0.0001)
    assert abs(found - exact) < 4 * math.sqrt(exact * (1 - exact) / 200_000)


def test_at_most_the_level_of_batches_of_the_same_law_is_warned_about():
    rng, warned, rounds = np.random.default_rng(3), 0, 600
    for _ in range(rounds):
        there, here = (Counter(rng.choice([3, 5, 8], p=[0.2, 0.5, 0.3], size=n).tolist()) for n in (200, 80))
        warned += bool(size_shift_note(strata_of(there), here))
    assert warned <= rounds * SIZE_LEVEL + 3 * math.sqrt(rounds * SIZE_LEVEL)


@pytest.mark.parametrize(
    ("there", "here", "differs"),
    [
        ({4: 100, 8: 100}, {4: 100}, True),
        ({4: 100, 8: 100}, {4: 5}, False),  # too few to tell
        ({4: 100, 8: 100}, {4: 50, 8: 50}, False),
        ({4: 100, 8: 100}, {4: 75, 8: 25}, True),
        ({4: 100, 8: 100}, {5: 100}, True),  # of a size in between
        ({4: 100}, {4: 1000}, False),
        ({1: 5, 2: 95, 3: 100}, {2: 95, 3: 105}, False),
        ({1: 5, 2: 95, 3: 100}, {1: 60, 2: 40}, True),
    ],
)
def test_other_sizes_are_noticed_and_the_same_are_not(there, here, differs):
    assert bool(size_shift_note(strata_of(there), here)) is differs
    assert size_shift_note(strata_of(there, by_chance=False), here) == ""


def test_a_batch_of_the_small_size_is_warned_about_in_one_line():
    policy = policy_of()
    [note] = policy.decide_votes(votes_of([4] * 100, questions=[f"New {row}" for row in range(100)])).notes()
    assert note.startswith("pool sizes differ from calibration's (p = 0.0005, level 0.01): 100.0% of these 100 pools ")
    assert "have 4 paths, 50.0% in calibration" in note
    assert "\n" not in note
    same = votes_of([4, 8] * 50, questions=[f"New {row}" for row in range(100)])
    assert policy.decide_votes(same).notes() == []


def test_without_the_declaration_nothing_is_said_of_sizes():
    policy = policy_of(sizes_by_chance=False)
    votes = votes_of([4] * 100, questions=[f"New {row}" for row in range(100)])
    assert policy.decide_votes(votes).notes() == []


def test_an_audit_compares_the_fresh_pools_alone():
    policy = policy_of()
    for sizes, differ in (([4] * 100, True), ([4, 8] * 50, False)):
        votes = votes_of(sizes, questions=[f"New {row}" for row in range(100)])
        audit = dm.audit_policy(policy, votes, np.arange(100) % 5 > 0, questions=[f"New {row}" for row in range(100)])
        assert bool(audit.size_shift) is differ


def test_a_selection_from_a_batch_says_so_too():
    votes = votes_of([4] * 100, questions=[f"New {row}" for row in range(100)])
    assert "pool sizes differ" in " ".join(policy_of().select(votes, fdr=0.2).notes())
