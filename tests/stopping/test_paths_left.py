"""What a rule will still want, reckoned from the pools that it looked at: by hand, and against what is drawn."""

from __future__ import annotations

import random

import pytest

from demur.errors import InvalidValue
from demur.stopping import agreement, beta
from demur.stopping.paths_left import PathsLeft

RULE = agreement(2, wave=2).at_most(6)  # looks at 2, 4 and 6


def keys(text):
    return dict(enumerate(text))


def test_where_nothing_was_looked_at_all_paths_are_expected():
    left = PathsLeft(RULE)
    for pool in range(3):
        left.note(pool, {})
    assert left.expected == 18
    left.note(0, keys("a"))
    assert left.expected == 17


def test_of_pools_that_are_to_come_to_a_look_the_share_goes_on_that_went_on():
    """Three of four ended at 2 paths and the other at 4: a new pool is expected to have 2 + 1/4 · 2."""
    left = PathsLeft(RULE)
    for pool, text in enumerate(["aa", "bb", "cc", "abcc"]):
        left.note(pool, keys(text))
    assert left.expected == 0
    left.note(4, {})
    assert left.expected == 2.5
    left.note(4, keys("a"))
    assert left.expected == 1.5
    left.note(4, keys("ab"))  # it goes on, so that two of five did
    assert left.expected == 2
    left.note(5, {})
    assert left.expected == pytest.approx(2 + 2 + 2 / 5 * 2)


def test_pools_that_go_on_count_where_they_passed_a_look():
    """The first to end are the short ones: by them alone, 2 paths each would seem enough for all."""
    left = PathsLeft(RULE)
    for pool, text in enumerate(["aa", "ab", "ab", "ab"]):
        left.note(pool, keys(text))
    left.note(4, {})
    assert left.expected == 3 * 4 + 2 + 3 / 4 * 4


def test_a_pool_that_ended_is_looked_at_once():
    left = PathsLeft(RULE)
    for _ in range(3):
        left.note(0, keys("aa"))
        left.note(1, keys("ab"))
    left.note(2, {})
    assert left.expected == 4 + 2 + 1 / 2 * 4


def test_what_is_expected_half_way_is_what_is_drawn_in_the_end():
    """1000 pools, of which the first 500 are drawn: the others cost what is expected, to 4 standard errors."""
    rule, rng = beta(0.95, wave=4).at_most(16), random.Random(2)
    pools = [keys("".join(rng.choices("abc", (p, 1 - p, (1 - p) / 2), k=16))) for p in [0.5, 0.7, 0.95, 0.99] * 250]
    sizes = [rule.size(list(pool.values())) for pool in pools]
    left = PathsLeft(rule)
    for number, (pool, size) in enumerate(zip(pools, sizes, strict=True)):
        left.note(number, {path: pool[path] for path in range(size)} if number < 500 else {})
    assert left.expected == pytest.approx(sum(sizes[500:]), abs=4 * 500**0.5 * 5 * 2**0.5)
    assert 500 * 4 < left.expected < 500 * 16


def test_a_rule_must_say_how_many_paths_there_are_at_most():
    with pytest.raises(InvalidValue, match="up to a number of paths"):
        PathsLeft(agreement(2))
