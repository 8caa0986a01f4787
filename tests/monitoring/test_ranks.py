"""Online ranks: against counting, with ties, over many blocks; and draws that can be drawn again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import InvalidValue
from demur.monitoring import ranks
from demur.monitoring.earlier_keys import smaller_before
from demur.monitoring.ranks import OnlineRanks, ordered_bytes
from demur.monitoring.uniforms import Uniforms

ENTRY = st.sampled_from([-np.inf, -2.5, -1e-300, -0.0, 0.0, 5e-324, 0.5, 1.0, 1e300])


def counted(before, key):
    return sum(other > key for other in before), before.count(key), len(before)


@given(st.lists(st.tuples(ENTRY, ENTRY)), st.lists(st.tuples(ENTRY, ENTRY), min_size=1))
def test_ranks_are_what_counting_says(first, then):
    online = OnlineRanks(ordered_bytes(np.array(first).reshape(-1, 2)))
    before = list(first)
    for key, packed in zip(then, ordered_bytes(np.array(then)), strict=True):
        assert tuple(online.add(packed)) == counted(before, key)
        before.append(key)
    assert list(online) == sorted(ordered_bytes(np.array(before)))


@pytest.mark.parametrize("distinct", [2, 30, 10**6])
def test_ranks_hold_over_many_blocks_and_ties_that_fill_several(distinct, monkeypatch):
    monkeypatch.setattr(ranks, "_LONGEST", 8)
    stream = np.random.default_rng(distinct).integers(distinct, size=1500)
    online = OnlineRanks(ordered_bytes(stream[:300, None].astype(float)))
    for at, packed in enumerate(ordered_bytes(stream[300:, None].astype(float)), start=300):
        before = stream[:at]
        expected = int((before > stream[at]).sum()), int((before == stream[at]).sum()), at
        assert tuple(online.add(packed)) == expected
    assert len(online) == 1500


@given(st.lists(st.tuples(ENTRY, ENTRY)), st.lists(st.lists(st.tuples(ENTRY, ENTRY), max_size=40)))
def test_many_keys_at_once_stand_where_each_would_stand_by_itself(first, batches):
    """Batches that are few beside the keys before them, and batches that are many."""
    at_once = OnlineRanks(ordered_bytes(np.array(first).reshape(-1, 2)))
    one_by_one = OnlineRanks(at_once)
    for batch in batches:
        rows = np.array(batch).reshape(-1, 2)
        places = at_once.add_many(rows)
        assert list(zip(*(column.tolist() for column in places), strict=True)) == [
            tuple(one_by_one.add(key)) for key in ordered_bytes(rows)
        ]
        assert list(at_once) == list(one_by_one)


@pytest.mark.parametrize("distinct", [2, 30, 10**6])
def test_few_keys_at_once_find_their_places_among_many_blocks(distinct, monkeypatch):
    monkeypatch.setattr(ranks, "_LONGEST", 8)
    stream = np.random.default_rng(distinct).integers(distinct, size=1500)[:, None].astype(float)
    online, one_by_one = (OnlineRanks(ordered_bytes(stream[:600])) for _ in range(2))
    for start in range(600, 1500, 90):
        places = online.add_many(stream[start : start + 90])
        expected = [one_by_one.add(key) for key in ordered_bytes(stream[start : start + 90])]
        assert np.array_equal(np.column_stack(places), np.array(expected))
    assert max(map(len, online._blocks)) <= 8


@given(st.permutations(range(37)), st.integers(0, 37))
def test_smaller_ones_before_are_what_counting_says(values, n):
    order = np.argsort(np.argsort(values[:n]))
    expected = [int((order[:at] < value).sum()) for at, value in enumerate(order)]
    assert smaller_before(order).tolist() == expected


def test_keys_may_be_given_as_columns_lie_in_memory():
    rows = np.asfortranarray([[1.0, 2.0], [1.0, -3.0]])
    assert ordered_bytes(rows) == ordered_bytes(np.ascontiguousarray(rows))
    assert ordered_bytes(rows)[0] > ordered_bytes(rows)[1]


@pytest.mark.parametrize(("first", "count"), [(0, 0), (0, 1), (1023, 2), (5, 3000), (4096, 1024)])
def test_several_draws_are_those_that_come_one_by_one(first, count):
    assert Uniforms(7).some(first, count).tolist() == [Uniforms(7)[at] for at in range(first, first + count)]


def test_draws_are_the_same_in_any_order_and_spread_evenly():
    forward, backward = Uniforms(7), Uniforms(7)
    assert [forward[at] for at in range(3000)] == [backward[at] for at in reversed(range(3000))][::-1]
    assert Uniforms(8)[0] != Uniforms(7)[0]
    bins = np.histogram([forward[at] for at in range(3000)], bins=10, range=(0, 1))[0]
    assert abs(bins - 300).max() < 5 * np.sqrt(270)


@pytest.mark.parametrize("seed", [1.5, "1", True, None])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InvalidValue, match="a seed must be a whole number, got"):
        Uniforms(seed)
