"""Normalisers: the formula by hand, floors, ranges, names that come back, and what may be fitted where."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import demur as dm
from demur.errors import CalibrationLeak, InvalidValue
from demur.voting.key import Share, parse_component
from demur.voting.normalisers import (
    FixedAffine,
    FixedSigmoid,
    none,
    parse_normaliser,
    pool_minmax,
    pool_z,
    rank,
)
from demur.voting.recipe import Recipe
from demur.voting.weights import parse_weight

tables = arrays(float, st.tuples(st.integers(1, 4), st.integers(1, 6)), elements=st.floats(-100, 100))


def test_pool_z_by_hand_with_its_floor():
    np.testing.assert_allclose(pool_z(np.array([[1.0, 3.0]])), [[-1, 1]])
    np.testing.assert_allclose(pool_z(np.array([[0.0, 0.2]])), [[-1, 1]])  # a spread of 0.1 is well above the floor
    tiny = pool_z(np.array([[0.0, 1e-6]]))
    assert np.abs(tiny).max() < 1e-4  # differences far below the floor are not blown up to full range
    np.testing.assert_array_equal(pool_z(np.array([[5.0, 5.0, 5.0]])), np.zeros((1, 3)))


def test_pool_minmax_by_hand_with_its_floor():
    np.testing.assert_allclose(pool_minmax(np.array([[1.0, 3.0, 2.0]])), [[0, 1, 0.5]])
    assert pool_minmax(np.array([[0.0, 1e-6]])).max() < 1e-4


def test_rank_shares_ranks_among_equals():
    np.testing.assert_allclose(rank(np.array([[10.0, 20.0, 20.0, -5.0]])), [[2 / 4, 3.5 / 4, 3.5 / 4, 1 / 4]])


def test_fixed_normalisers_by_hand():
    np.testing.assert_allclose(FixedAffine(1.0, 2.0)(np.array([[3.0]])), [[1.0]])
    np.testing.assert_allclose(FixedSigmoid(0.0, 1.0)(np.array([[0.0, -1e6]])), [[0.5, 0.0]])


@given(tables)
def test_ranges(scores):
    assert (pool_minmax(scores) >= 0).all()
    assert (pool_minmax(scores) <= 1).all()
    assert (rank(scores) > 0).all()
    assert (rank(scores) <= 1).all()
    np.testing.assert_array_equal(none(scores), scores)


@given(tables)
def test_normalisers_keep_the_order_within_a_pool(scores):
    for normaliser in (pool_z, pool_minmax, rank, FixedAffine(3.0, 2.0)):
        out = normaliser(scores)
        for raw, done in zip(scores, out, strict=True):
            order = np.argsort(raw, kind="stable")
            assert (np.diff(done[order]) >= 0).all()


@pytest.mark.parametrize(
    "normaliser", [none, pool_z, pool_minmax, rank, FixedAffine(0.25, 2.0), FixedSigmoid(-1.0, 0.5)]
)
def test_a_description_reads_back_as_the_same_object(normaliser):
    assert parse_normaliser(normaliser.spec) == normaliser
    assert "@1" in normaliser.spec


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("zscore", "unknown normaliser 'zscore'"),
        ("pool_z@9", "this demur has version 1"),
        ("pool_z:0.5", "takes no constants"),
        ("fixed_affine", "needs two numbers"),
        ("fixed_affine:1", "needs two numbers"),
        ("fixed_affine:0,0", "scale > 0"),
        ("fixed_sigmoid:nan,1", "finite center"),
    ],
)
def test_bad_descriptions_are_named(text, rule):
    with pytest.raises(InvalidValue, match=rule):
        parse_normaliser(text)


def test_constants_fitted_on_a_tune_split_are_used_and_its_problems_refused_in_calibration():
    scores = np.array([[0.0, 2.0], [4.0, 6.0], [1.0, 1.0]])
    answers = [["a", "b"], ["a", "a"], ["b", "b"]]
    fitted = FixedAffine.fit(scores[:1], ids=["t1"])
    assert (fitted.center, fitted.scale) == (1.0, 1.0)
    unseen = dm.vote(answers[1:], scores[1:], normaliser=fitted, ids=["c1", "c2"])
    with pytest.warns(UserWarning, match="too few"):
        policy = dm.calibrate(unseen, [True, False], alpha=0.1)
    assert policy.seen.rows(["t1", "c1", "new"]) == [0, 1]
    leaked = dm.vote(answers, scores, normaliser=fitted, ids=["t1", "c1", "c2"])
    with pytest.raises(CalibrationLeak, match=r"'t1'.*tune split"):
        dm.calibrate(leaked, [True, True, False], alpha=0.1)


def test_fitting_needs_scores_and_ids():
    with pytest.raises(InvalidValue, match="at least one score"):
        FixedAffine.fit([], ids=["a"])
    with pytest.raises(InvalidValue, match="needs the ids"):
        FixedAffine.fit([1.0, 2.0], ids=[])


def test_fixed_normalisers_divide_by_their_scale():
    assert FixedSigmoid(1.0, 4.0)(np.array([[5.0, 1.0]]))[0] == pytest.approx([1 / (1 + np.exp(-1.0)), 0.5])
    assert FixedAffine(1.0, 4.0)(np.array([[5.0, 1.0]]))[0].tolist() == [1.0, 0.0]
    fitted = FixedAffine.fit([[0, 0], [4, 4]], ids=["t"])
    assert (fitted.center, fitted.scale) == (2.0, 2.0)
    assert FixedAffine.fit([3.0, 3.0], ids=["t"]).scale == 1.0


def test_linear_weights_are_scaled_pool_by_pool():
    scores = [[1.0, 2.0, 4.0], [100.0, 50.0, 0.0]]
    votes = dm.vote([["a", "b", "c"]] * 2, scores, weight=dm.linear())
    assert [votes.weights(row) for row in range(2)] == [[0.25, 0.5, 1.0], [1.0, 0.5, 0.0]]
    assert votes.tally == [{"c": 1.0, "b": 0.5, "a": 0.25}, {"a": 1.0, "b": 0.5, "c": 0.0}]


def test_what_is_unknown_is_told_with_what_there_is():
    with pytest.raises(InvalidValue, match=r"expected one of none, pool_z, .*fixed_affine:CENTER,SCALE"):
        parse_normaliser("zscore")
    with pytest.raises(InvalidValue, match=r"weight 'exponential:steep': "):
        parse_weight("exponential:steep")
    with pytest.raises(InvalidValue, match=r"weight 'exponential:-1': beta must be"):
        parse_weight("exponential:-1")
    with pytest.raises(InvalidValue, match=r"unknown weight 'cubic'; expected uniform, linear or exponential:BETA"):
        parse_weight("cubic")


@pytest.mark.parametrize(
    ("text", "spec"),
    [("mean_score", "mean_score@1"), ("mean_score@1", "mean_score@1"), ("jitter", "jitter@3:0"),
     ("jitter:5", "jitter@3:5"), ("jitter@2:5", "jitter@2:5"), ("jitter@3:5", "jitter@3:5"),
     ("column:margin", "column:margin"),
     ("column:a:b", "column:a:b"), ("mean_score:judge", "mean_score@1:judge"), ("share", "share@1")],
)  # fmt: skip
def test_a_tie_break_reads_back_as_itself(text, spec):
    assert parse_component(text).spec == spec
    assert parse_component(spec).spec == spec


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("jitter@1:5", r"jitter@1 was drawn from ids, .*; calibrate again$"),
        ("jitter@1", r"jitter@1 was drawn from ids"),
        ("jitter:x", r"tie-break 'jitter:x': the seed must be a whole number"),
        ("jitter@4:1", r"unknown tie-break 'jitter@4:1'; expected mean_score, mean_score:SCORE, jitter:SEED"),
        ("mean_score@2", "unknown tie-break 'mean_score@2'"),
        ("column", "unknown tie-break 'column'"),
        ("column:", "unknown tie-break 'column:'"),
        ("median", "unknown tie-break 'median'"),
        ("median:x", "unknown tie-break 'median:x'"),
        ("", "unknown tie-break ''"),
    ],
)
def test_bad_tie_breaks_are_named(text, rule):
    with pytest.raises(InvalidValue, match=rule):
        parse_component(text)


def test_numbers_of_ones_own_are_called_a_column():
    votes = dm.vote([["a"]], tie_break=[1.0])
    assert votes.description.vote["tie_break"] == "column:column"


@pytest.mark.parametrize("part", ["weight", "normaliser", "tie_rule", "answers"])
def test_a_recipe_names_the_part_that_is_no_text(part):
    stage = Recipe(dm.exponential(2), pool_z, (Share(), dm.jitter(4)), coded=True).describe()
    assert Recipe.of(stage).describe() == stage
    for wrong in (3, None):
        with pytest.raises(InvalidValue, match=rf"vote\.{part} must be a string, got {wrong}"):
            Recipe.of({**stage, part: wrong})
