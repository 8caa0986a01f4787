"""Evidence: counts per level, thresholds and p-values, for one column and for lexicographic keys."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import demur as dm
from demur.errors import InvalidValue
from demur.evidence.counts import Evidence, exceeds
from demur.evidence.strata import Strata
from demur.voting.cases import Cases

NU = [0.95, 0.9, 0.8, 0.7, 0.65, 0.6, 0.5, 0.45, 0.3]
WRONG = np.array([0, 1, 0, 0, 1, 0, 0, 1, 1], dtype=bool)

rows = st.lists(st.tuples(st.integers(0, 6), st.integers(-2, 2), st.booleans()), min_size=1, max_size=25)


def columns(table):
    return (
        np.array([r[0] / 6 for r in table]),
        np.array([float(r[1]) for r in table]),
        np.array([r[2] for r in table], dtype=bool),
    )


def test_the_p_values_of_the_fixture():
    evidence = Evidence.of(NU, ~WRONG)
    np.testing.assert_allclose(evidence.p_value(NU), [0.1, 0.2, 0.2, 0.2, 0.3, 0.3, 0.3, 0.4, 0.5])


@given(rows)
def test_counts_add_up_and_levels_ascend(table):
    nu, second, correct = columns(table)
    for key in (nu, np.stack([nu, second], axis=1)):
        evidence = Evidence.of(key, correct)
        assert (evidence.n_right, evidence.n_wrong) == (correct.sum(), (~correct).sum())
        levels = [tuple(level) for level in evidence.levels.tolist()]
        assert levels == sorted(set(levels))
        keys = [tuple(np.atleast_1d(k)) for k in key]
        assert evidence.right.tolist() == [
            sum(k == level and c for k, c in zip(keys, correct, strict=True)) for level in levels
        ]


@given(rows)
def test_one_column_and_a_constant_second_column_agree(table):
    nu, _, correct = columns(table)
    one = Evidence.of(nu, correct)
    two = Evidence.of(np.stack([nu, np.zeros_like(nu)], axis=1), correct)
    np.testing.assert_array_equal(one.levels[:, 0], two.levels[:, 0])
    np.testing.assert_array_equal(one.wrong, two.wrong)
    np.testing.assert_array_equal(one.p_value(nu), two.p_value(np.stack([nu, np.zeros_like(nu)], axis=1)))


@given(rows, st.integers(0, 30))
def test_the_threshold_is_the_kth_largest_wrong_key_read_literally(table, k):
    nu, second, correct = columns(table)
    evidence = Evidence.of(np.stack([nu, second], axis=1), correct)
    wrong = sorted(((v, s) for v, s, c in zip(nu, second, correct, strict=True) if not c), reverse=True)
    threshold = evidence.threshold(k)
    if k == 0:
        assert threshold == (1.0, np.inf)
    elif len(wrong) < k or wrong[k - 1][0] == 0:
        assert threshold == (0.0, np.inf)
    else:
        assert threshold == wrong[k - 1]


@given(rows)
def test_p_values_count_wrong_keys_at_least_as_large_and_never_rise_with_the_key(table):
    nu, second, correct = columns(table)
    keys = np.stack([nu, second], axis=1)
    evidence = Evidence.of(keys, correct)
    wrong = [tuple(k) for k, c in zip(keys, correct, strict=True) if not c]
    expected = [(1 + sum(w >= tuple(k) for w in wrong)) / (len(nu) + 1) for k in keys]
    p = evidence.p_value(keys)
    np.testing.assert_allclose(p, expected)
    order = np.lexsort([second, nu])
    assert (np.diff(p[order]) <= 0).all()


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_rows_never_matters(table, random):
    shuffled = random.sample(table, len(table))
    for pick in (lambda t: columns(t)[0], lambda t: np.stack(columns(t)[:2], axis=1)):
        first = Evidence.of(pick(table), columns(table)[2])
        second = Evidence.of(pick(shuffled), columns(shuffled)[2])
        np.testing.assert_array_equal(first.levels, second.levels)
        np.testing.assert_array_equal(first.right, second.right)
        np.testing.assert_array_equal(first.wrong, second.wrong)


def test_exceeding_is_strict_and_lexicographic():
    keys = np.array([[0.5, 1.0], [0.5, 2.0], [0.5, 3.0], [0.6, -9.0], [0.4, 99.0]])
    assert exceeds(keys, (0.5, 2.0)).tolist() == [False, False, True, True, False]


def test_minus_zero_is_zero():
    assert Evidence.of([-0.0, 0.0], [True, False]).levels.tolist() == [[0.0]]


def test_secondary_keys_sum_out():
    evidence = Evidence.of([[0.5, 1], [0.5, 2], [0.7, 0]], [True, False, False])
    assert evidence.by_confidence.levels[:, 0].tolist() == [0.5, 0.7]
    assert evidence.by_confidence.wrong.tolist() == [1, 1]


@given(rows)
def test_summing_out_secondary_keys_is_counting_without_them(table):
    nu, second, correct = columns(table)
    summed, counted = Evidence.of(np.stack([nu, second], axis=1), correct).by_confidence, Evidence.of(nu, correct)
    for name in ("levels", "right", "wrong"):
        np.testing.assert_array_equal(getattr(summed, name), getattr(counted, name))


def test_only_wrong_votes_with_some_confidence_can_be_confident_errors():
    evidence = Evidence.of([[0.0, 5.0], [0.0, 6.0], [0.5, -1.0], [1.0, 0.0]], [False, True, False, False])
    assert evidence.confident_wrong == 2 / 4


@pytest.mark.parametrize(
    ("labels", "rule"),
    [
        ([1, 2], "must hold booleans, or 0 and 1, or yes and no, got int64"),
        (["yes", "maybe"], "must hold booleans"),
        ([True, None], "must hold booleans"),
        ([True], "one label per vote, 2 of them"),
        (np.array([True, "no"], dtype=object), "in several ways"),
        (np.ma.array([True, False], mask=[False, True]), "^correct must not be a masked array"),
    ],
)
def test_labels_that_are_not_booleans_are_refused(labels, rule):
    with pytest.raises(InvalidValue, match=rule):
        Evidence.of([0.5, 0.6], labels)


@pytest.mark.parametrize("held", [list, tuple, np.array, lambda labels: np.array(labels, dtype=object)])
def test_booleans_are_labels_in_whatever_they_are_held(held):
    evidence = Evidence.of([0.5, 0.6], held([True, np.False_]))
    assert (evidence.right.tolist(), evidence.wrong.tolist()) == ([1, 0], [0, 1])


def test_empty_calibration_and_confidences_outside_the_unit_interval_are_refused():
    with pytest.raises(InvalidValue, match="at least one labelled vote"):
        Evidence.of([], np.array([], dtype=bool))
    for bad in (1.5, -0.1, float("nan")):
        with pytest.raises(InvalidValue, match=r"lie in \[0, 1\]"):
            dm.Evidence.of([bad], [True])


def test_keys_of_three_numbers_are_compared_one_behind_the_other():
    keys = np.array([[0.5, 1, 9], [0.5, 2, 2], [0.5, 2, 3], [0.5, 2, 4], [0.4, 2, 9], [0.6, 0, 0]])
    assert exceeds(keys, (0.5, 2.0, 3.0)).tolist() == [False, False, False, True, False, True]
    with pytest.raises(ValueError, match="zip"):
        exceeds(keys, (0.5, 2.0))


@given(rows, st.lists(st.integers(1, 4), min_size=25, max_size=25), st.integers(0, 2**20))
def test_the_p_value_of_a_vote_is_the_larger_of_all_votes_and_those_of_its_size(table, paths, seed):
    """Read literally, of one vote and of many; sizes that vary by chance count together, unknown ones never pass."""
    nu, second, correct = columns(table)
    sizes, keys = np.array(paths[: len(table)]), np.stack([nu, second], axis=1)
    asked = keys[np.random.default_rng(seed).integers(0, len(table), 6)]

    def literal(key, rows):
        return (1 + sum(not correct[row] and tuple(keys[row]) >= key for row in rows)) / (len(rows) + 1)

    for by_chance in (False, True):
        strata = Strata.of(Cases(keys, sizes), correct, by_chance=by_chance)
        for size in range(6):
            own = [row for row in range(len(table)) if sizes[row] == size]
            known = sizes.min() <= size <= sizes.max() if by_chance else own
            expected = []
            for key in map(tuple, asked.tolist()):
                everyone = literal(key, range(len(table)))
                expected.append(1.0 if not known else everyone if by_chance else max(everyone, literal(key, own)))
            assert [strata.p_value_of(key, size) for key in map(tuple, asked.tolist())] == expected
            np.testing.assert_array_equal(strata.p_value(Cases(asked, np.full(6, size))), expected)


@pytest.mark.parametrize("kind", [np.float32, np.float16, int, Fraction])
def test_confidences_of_every_kind_of_number_are_counted_alike(kind):
    nu, correct = [0, 1, 0.5, 1, 0.5][: 2 if kind is int else 5], [True, False, True, True, False]
    held = [kind(value) for value in nu]
    for key in (held, np.array(held)):
        counted, plain = Evidence.of(key, correct[: len(nu)]), Evidence.of(np.array(nu, float), correct[: len(nu)])
        assert counted.levels.tolist() == plain.levels.tolist()
        assert (counted.right.tolist(), counted.wrong.tolist()) == (plain.right.tolist(), plain.wrong.tolist())


def test_confidences_that_differ_in_the_last_bit_are_two_levels():
    for value in (0.5, 0.25, 0.7, 1e-300):
        pair = [value, np.nextafter(value, 1)]
        for correct in ([True, True], [False, False], [True, False], [False, True]):
            evidence = Evidence.of(pair, correct)
            assert evidence.levels[:, 0].tolist() == pair
            assert evidence.right.tolist() == [int(label) for label in correct]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.sampled_from([True, False, None])), min_size=1))
def test_unlabelled_votes_are_counted_apart_and_are_wrong_for_thresholds(rows):
    keys = np.array([(level / 4, second) for level, second, _ in rows])
    known = np.array([label is not None for _, _, label in rows])
    right = np.array([label is True for _, _, label in rows])
    as_wrong, half = Evidence.of(keys, right), len(rows) // 2
    parts = [Evidence.of(keys[at], right[at], known[at]) for at in (slice(half), slice(half, None)) if len(keys[at])]
    for evidence in (Evidence.of(keys, right, known), Evidence.merged(parts)):
        assert (evidence.n, evidence.n_right) == (len(rows), int(right.sum()))
        assert evidence.n_unlabelled == int((~known).sum())
        assert evidence.n_wrong == int((known & ~right).sum())
        assert all(evidence.threshold(k) == as_wrong.threshold(k) for k in range(len(rows) + 2))
        assert (evidence.p_value(keys) == as_wrong.p_value(keys)).all()
        assert evidence.p_value_of(tuple(keys[0].tolist())) == as_wrong.p_value_of(tuple(keys[0].tolist()))
        by_nu = evidence.by_confidence
        assert by_nu.n_unlabelled == evidence.n_unlabelled
        assert by_nu.labelled.n == int(known.sum())
        for k in range(1, len(rows) + 1):
            threshold = evidence.threshold(k)
            assert evidence.above(threshold) == as_wrong.above(threshold)
            assert evidence.unlabelled_above(threshold) <= evidence.above(threshold)[1]
