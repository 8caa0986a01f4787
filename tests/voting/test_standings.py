"""How answers stand to the winner: one pool and a table of them, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

import demur as dm
from demur.voting.standings import NOT_FIRST, standings_in


@pytest.mark.parametrize("weight", [dm.uniform(), dm.linear(), dm.exponential(3)], ids=lambda weight: weight.name)
@pytest.mark.parametrize("ragged", [False, True])
def test_one_pool_stands_as_it_does_within_a_table(weight, ragged):
    rng = np.random.default_rng(7)
    sizes = rng.integers(1, 9, 300) if ragged else np.full(300, 7)
    pools = [[None if a == 5 else f"k{a}" for a in rng.integers(0, 6, size).tolist()] for size in sizes]
    scores = [rng.choice([0.0, 0.3, 0.7, 1.1], size).tolist() for size in sizes]
    votes = dm.vote(pools, scores, weight=weight)
    rows = rng.permutation(300)[:200]
    table = votes.standings(rows)
    for place, row in enumerate(rows.tolist()):
        nearness, novelty = standings_in(votes[row])
        of_path = table.nearness[place, : sizes[row]].tolist()
        first = {key: at for at, key in reversed(list(enumerate(pools[row]))) if key is not None}
        assert {key: of_path[at] for key, at in first.items()} == nearness
        assert all(of_path[at] == NOT_FIRST for at in range(sizes[row]) if at not in first.values())
        assert table.novelty[place] == novelty
        assert max(nearness.values(), default=1.0) in (1.0, 0.0)


def test_codes_stand_as_keys_do():
    codes = np.array([[3, 3, 1, -1, 2], [0, 0, 0, 0, 0], [-1, -1, -1, -1, -1]])
    stand = dm.vote(codes).standings(np.arange(3))
    assert stand.nearness.tolist() == [[1, -1, 0.125, -1, 0.125], [1, -1, -1, -1, -1], [-1] * 5]
    assert stand.novelty.tolist() == [0.6, 0, 1]


def test_answers_without_weight_are_as_far_from_a_winner_as_can_be():
    vote = dm.vote([["a", "b", None]], [[0.0, 0.0, 1.0]], weight=dm.linear())
    assert standings_in(vote[0]) == ({"a": 0.0, "b": 0.0}, 1.0)
    assert vote.standings(np.array([0])).nearness.tolist() == [[0.0, 0.0, -1.0]]


def test_of_no_pools_there_are_no_standings():
    stand = dm.vote([["a"], ["b", "b"]]).standings(np.arange(0))
    assert len(stand.novelty) == len(stand.nearness) == 0
