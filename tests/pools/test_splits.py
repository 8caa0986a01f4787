"""Splits: what belongs together stays together, and neither row order nor labels decide anything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import InvalidValue
from demur.pools.splits import in_drawn_order, one_per_unit, repeated, split, units

rows = st.lists(
    st.tuples(st.sampled_from([None, "", "c1", "c2"]), st.sampled_from([None, " ", "Q?", "Q ?", "R?"])),
    min_size=1, max_size=20,
)  # fmt: skip


def test_clusters_and_question_texts_join_rows_however_indirectly():
    clusters = ["x", None, "x", None, None]
    questions = ["one", "two", "two ", " ", None]
    assert units(list("abcde"), clusters, questions).tolist() == [0, 0, 0, 3, 4]


def test_blank_questions_and_clusters_join_nothing():
    assert len(set(units(["a", "b", "c"], ["", None, ""], ["", " ", None]).tolist())) == 3
    assert len(set(units(["a", "b"], np.array([np.nan, np.nan]), None).tolist())) == 2


@given(rows, st.integers(0, 50), st.sampled_from([0, 0.3, 0.5]), st.sampled_from([0, 0.2, 0.45]))
def test_every_row_lands_on_one_side_and_units_are_never_torn(table, seed, tune, test):
    ids = [f"q{i}" for i in range(len(table))]
    unit = units(ids, [c for c, _ in table], [q for _, q in table])
    parts = split(ids, clusters=[c for c, _ in table], questions=[q for _, q in table], seed=seed, tune=tune, test=test)
    sides = [parts.tune, parts.calibration, parts.test]
    assert sorted(np.concatenate(sides).tolist()) == list(range(len(table)))
    homes = [set(unit[side].tolist()) for side in sides]
    assert sum(map(len, homes)) == len(set.union(*homes))
    n_units = len(set(unit.tolist()))
    assert [len(home) for home in homes][::2] == [round(n_units * tune), round(n_units * test)]


@given(rows, st.integers(0, 50), st.randoms(use_true_random=False))
def test_shuffling_the_rows_changes_neither_the_split_nor_the_representatives(table, seed, random):
    def names(order):
        ids = [f"q{i}" for i in order]
        unit = units(ids, [table[i][0] for i in order], [table[i][1] for i in order])
        clusters, questions = [table[i][0] for i in order], [table[i][1] for i in order]
        held = split(ids, clusters=clusters, questions=questions, seed=seed, test=0.5).test
        return {ids[row] for row in held}, {ids[row] for row in one_per_unit(ids, unit)}

    order = list(range(len(table)))
    assert names(order) == names(random.sample(order, len(order)))


def test_the_seed_decides():
    ids = [f"q{i}" for i in range(200)]
    first, again, other = (split(ids, seed=s, test=0.5).test.tolist() for s in (1, 1, 2))
    assert first == again
    assert first != other


def test_repeated_splits_are_permutations_and_leave_both_sides_something():
    calibration, test = repeated(10, 4, 7, seed=3)
    assert calibration.shape == (7, 4)
    for c, t in zip(calibration, test, strict=True):
        assert sorted([*c, *t]) == list(range(10))
    for bad in (0, 10, 11, -1):
        with pytest.raises(InvalidValue, match="n_cal must leave"):
            repeated(10, bad, 7, seed=3)
    for splits, seed in [(0, 3), (5, -1)]:
        with pytest.raises(InvalidValue, match="splits must be"):
            repeated(10, 5, splits, seed=seed)


def test_shares_that_leave_nothing_for_calibration_are_refused():
    for tune, test in [(0.5, 0.5), (-0.1, 0.2), (0, 1.0), (float("nan"), 0)]:
        with pytest.raises(InvalidValue, match="leave some for calibration"):
            split(["a", "b"], seed=0, tune=tune, test=test)


def test_the_drawn_order_depends_on_ids_alone():
    ids = [f"q{i}" for i in range(50)]
    shuffled = list(reversed(ids))
    assert [ids[row] for row in in_drawn_order(ids)] == [shuffled[row] for row in in_drawn_order(shuffled)]


def test_large_units_are_no_likelier_to_land_on_either_side():
    ids = [f"q{i}" for i in range(60)]
    clusters = ["big"] * 30 + [None] * 30
    in_test = sum(0 in split(ids, clusters=clusters, seed=seed, test=0.5).test for seed in range(600))
    assert abs(in_test / 600 - 0.5) < 4 * np.sqrt(0.25 / 600)


def test_blank_space_is_part_of_a_clusters_name_and_not_of_a_question():
    names = ["a b", "a  b", "a b "]
    assert len(set(units(["x", "y", "z"], clusters=names).tolist())) == 3
    assert len(set(units(["x", "y", "z"], questions=names).tolist())) == 1


def test_what_is_not_asked_for_is_not_set_aside():
    ids = [f"q{i}" for i in range(10)]
    whole = split(ids, seed=1)
    assert [len(part) for part in (whole.tune, whole.calibration, whole.test)] == [0, 10, 0]
    assert [len(part) for part in vars(split(ids, seed=1, tune=0.3)).values()] == [3, 7, 0]


def test_a_seed_draws_the_same_rows_in_every_version():
    """What was held out of a calibration must be found again years later."""
    ids = [f"q{i}" for i in range(12)]
    parts = split(ids, seed=1, tune=0.25, test=0.5)
    assert (parts.tune.tolist(), parts.test.tolist()) == ([5, 9, 10], [0, 1, 2, 7, 8, 11])
    assert in_drawn_order(ids).tolist() == [9, 4, 10, 0, 1, 11, 5, 8, 7, 3, 2, 6]
    assert one_per_unit(ids, np.arange(12) // 4).tolist() == [0, 4, 9]


def test_one_split_and_one_row_are_enough():
    calibration, test = repeated(5, 1, 1, seed=0)
    assert (calibration.shape, test.shape) == ((1, 1), (1, 4))
