"""Promises in combination: each question of small bags held out in turn, whatever labels are missing and why.

Sizes of pools, groups that overlap, weights, and labels that stop by what they say: all at once, and with ties.
Given the bag, the new question is each of its questions alike, or in proportion to its weight; so these sums are exact.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import demur as dm
from demur.calibration import settle_by_size
from demur.evidence.strata import Strata
from demur.voting.cases import Cases, GroupColumn

KINDS = [(), ("a",), ("b",), ("a", "b"), ("c",)]
BAGS = 150


def bag(rng):
    """Up to twelve votes with ties; sometimes all wrong, all right, or one question alone."""
    n, levels = int(rng.integers(1, 13)), int(rng.integers(1, 5))
    keys = np.stack([rng.integers(0, levels + 1, n) / levels, rng.integers(0, 2, n) * 1.0], axis=1)
    right = [np.zeros(n, bool), np.ones(n, bool), rng.random(n) < 0.5, rng.random(n) < keys[:, 0]][rng.integers(4)]
    sizes = rng.choice([4, 6], n) if rng.random() < 0.5 else np.full(n, 4)
    groups = [KINDS[kind] for kind in rng.integers(0, len(KINDS), n)]
    return keys, right, sizes, groups, rng.integers(0, 4, n).astype(float)


def labels_so_far(rng, right, keys):
    """Which votes have a label: all, some by chance, or from the top until so many are found wrong."""
    if (how := rng.integers(3)) < 2:
        return None if how == 0 else rng.random(len(right)) < 0.5
    known, errors, enough = np.zeros(len(right), bool), 0, rng.integers(0, 3)
    for row in np.lexsort(keys.T[::-1])[::-1]:
        if errors >= enough:
            break
        known[row], errors = True, errors + (not right[row])
    return known


def held_out(rng, guarantee, keys, right, sizes, groups, weights, *, by_chance):
    """Which questions are answered wrongly by a rule from all others, and for which those stand in for a group."""
    cases = Cases(
        keys,
        sizes,
        GroupColumn.of(groups) if isinstance(guarantee, dm.Grouped) else None,
        weights if isinstance(guarantee, dm.Shifted) else None,
    )
    wrong, stands_in = np.zeros(len(keys), bool), np.zeros(len(keys), bool)
    for row in range(len(keys)):
        others = np.flatnonzero(np.arange(len(keys)) != row)
        if not len(others) or (isinstance(guarantee, dm.Shifted) and not weights[others].any()):
            continue
        known = labels_so_far(rng, right[others], keys[others])
        labels = right[others] if known is None else right[others] & known
        evidence = Strata.of(cases.take(others), labels, known, by_chance=by_chance)
        rule = settle_by_size(guarantee, evidence)
        answered = evidence.knows(int(sizes[row])) and bool(rule.answers(cases.take(np.array([row])))[0])
        wrong[row] = answered and not right[row]
        stands_in[row] = bool(rule.stand_in(groups[row]))
    return wrong, stands_in


def level(rng):
    return Fraction(int(rng.integers(1, 10)), int(rng.integers(10, 21)))


@pytest.mark.parametrize("by_chance", [False, True])
@pytest.mark.parametrize("fallback", ["abstain", "pooled"])
def test_every_group_keeps_its_promise_for_every_size_and_what_stands_in_keeps_that_of_all(fallback, by_chance):
    rng, spent = np.random.default_rng(1), 0
    for _ in range(BAGS):
        keys, right, sizes, groups, weights = bag(rng)
        alpha = level(rng)
        guarantee = dm.Grouped(dm.Marginal(alpha), int(rng.integers(1, 4)), fallback)
        wrong, stands_in = held_out(rng, guarantee, keys, right, sizes, groups, weights, by_chance=by_chance)
        for name in "abc":
            mine = np.array([name in kind for kind in groups])
            parts = [mine] if by_chance else [mine, mine & (sizes == 4), mine & (sizes == 6)]
            for part in parts:
                errors = int((wrong & part & ~stands_in).sum())
                assert errors <= alpha * int(part.sum())
                spent += errors
        assert int((wrong & stands_in).sum()) <= alpha * len(keys)
    assert spent > BAGS / 10


@pytest.mark.parametrize("by_chance", [False, True])
def test_weighted_errors_are_few_among_all_and_for_every_size(by_chance):
    rng, spent = np.random.default_rng(2), 0.0
    for _ in range(BAGS):
        keys, right, sizes, groups, weights = bag(rng)
        alpha = level(rng)
        guarantee = dm.Shifted(dm.Marginal(alpha))
        wrong, _ = held_out(rng, guarantee, keys, right, sizes, groups, weights, by_chance=by_chance)
        every = np.ones(len(keys), bool)
        for part in [every] if by_chance else [every, sizes == 4, sizes == 6]:
            assert weights[wrong & part].sum() <= float(alpha) * weights[part].sum() + 1e-9
        spent += weights[wrong].sum()
    assert spent > BAGS / 10
