"""Online ranks: against counting, with ties, over many blocks; and draws that can be drawn again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import InvalidValue
from demur.monitoring import ranks
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


def test_keys_may_be_given_as_columns_lie_in_memory():
    rows = np.asfortranarray([[1.0, 2.0], [1.0, -3.0]])
    assert ordered_bytes(rows) == ordered_bytes(np.ascontiguousarray(rows))
    assert ordered_bytes(rows)[0] > ordered_bytes(rows)[1]


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
