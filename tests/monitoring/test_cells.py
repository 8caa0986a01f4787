"""Cells between calibration keys: against counting, with few and many; and draws that can be drawn again."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import InvalidValue
from demur.monitoring import cells
from demur.monitoring.cells import Cells, ordered_bytes
from demur.monitoring.uniforms import Uniforms

ENTRY = st.sampled_from([-np.inf, -2.5, -1e-300, -0.0, 0.0, 5e-324, 0.5, 1.0, 1e300])


@given(st.lists(st.tuples(ENTRY, ENTRY), min_size=1))
def test_bytes_compare_as_rows_do(rows):
    ordered = sorted(zip(ordered_bytes(np.array(rows)), rows, strict=True))
    for (packed, row), (after, larger) in pairwise(ordered):
        assert row <= larger
        assert (packed == after) == (row == larger)


@pytest.mark.parametrize("most", [1, 2, 7, 256])
@pytest.mark.parametrize("n", [0, 1, 5, 40, 300])
def test_places_are_what_counting_says(n, most, monkeypatch):
    monkeypatch.setattr(cells, "MOST_CELLS", most)
    rng = np.random.default_rng(n)
    calibration, stream = np.sort(rng.random(n)), rng.random(200)
    counted, before = Cells(rng.permutation(calibration)[:, None]), []
    edges = np.concatenate([[0.0], [calibration[at - 1] for at in np.cumsum(counted.gaps)[:-1]], [1.0]])
    assert len(counted.gaps) == min(n + 1, most)
    assert max(counted.gaps) - min(counted.gaps) <= 1
    for key, packed in zip(stream.tolist(), ordered_bytes(stream[:, None]), strict=True):
        low, high = edges[edges < key].max(), edges[edges > key].min()
        above = sum(one > high for one in (*calibration, *before)) + (high < 1)
        within = counted.gaps[int((edges < key).sum()) - 1] + sum(low < one < high for one in before)
        assert tuple(counted.add(packed)) == (above, within, n + 1 + len(before))
        before.append(key)
    assert sum(counted.counts) == 200


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


def test_draws_have_numbers_below_zero_too():
    assert Uniforms(7)[-1] == Uniforms(7)[-1] != Uniforms(7)[1]


@pytest.mark.parametrize("seed", [1.5, "1", True, None])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InvalidValue, match="a seed must be a whole number, got"):
        Uniforms(seed)


@pytest.mark.parametrize(("first", "count"), [(0, 0), (0, 1), (1023, 2), (5, 3000), (4096, 1024), (-700, 700)])
def test_several_draws_are_those_that_come_one_by_one(first, count):
    assert Uniforms(7).some(first, count).tolist() == [Uniforms(7)[at] for at in range(first, first + count)]
