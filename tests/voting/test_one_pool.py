"""One pool voted on by itself: every number, to the last bit, is the table's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import demur as dm
from demur.errors import InvalidValue
from demur.voting.one_pool import vote_one
from demur.voting.recipe import Recipe
from demur.voting.votes import vote_again

normalisers = dm.normalisers
WEIGHTS = [dm.uniform(), dm.exponential(), dm.exponential(5), dm.exponential(0.1)]
NORMALISERS = [normalisers.none, normalisers.pool_z, normalisers.pool_minmax, normalisers.rank]
TIE_BREAKS = [None, dm.mean_score(), dm.jitter(3)]

# Few answers and few scores, so that ties of every kind happen often; and scores of every size.
answers = st.sampled_from([None, "a", "b", "c", "10", "9", 3, 3.0, 2, float("nan")])
scores = st.one_of(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), st.floats(-700, 700, allow_subnormal=False))
pools = st.lists(st.tuples(answers, scores), min_size=1, max_size=20)


@given(pools, st.sampled_from(WEIGHTS), st.sampled_from(NORMALISERS), st.sampled_from(TIE_BREAKS))
def test_a_pool_alone_is_that_pool_in_a_table(pool, weight, normaliser, tie_break):
    recipe = Recipe(weight, normaliser, tie_break)
    keys, values = [answer for answer, _ in pool], [score for _, score in pool]
    alone = vote_one(recipe, keys, values, id="q")
    among = vote_again(recipe, [["a"], keys], [[0.0], values], ids=["p", "q"])[1]
    assert alone == among
    assert list(alone.tally) == list(among.tally)


@given(st.lists(st.integers(-1, 3), min_size=1, max_size=12), st.integers(0, 99))
def test_codes_too(codes, seed):
    values = np.random.default_rng(seed).normal(size=len(codes))
    recipe = Recipe(dm.exponential(), normalisers.pool_z, dm.mean_score(), coded=True)
    table = vote_again(recipe, np.array([codes]), values[None])[0]
    for form in (codes, np.array(codes)):
        assert vote_one(recipe, form, values) == table
        assert vote_one(recipe, form, values.tolist()) == table


def test_recorded_sizes_and_random_scores_agree():
    drawn = dm.simulate_pools(300, n_paths=41, seed=5, missing=0.2)
    recipe = Recipe(dm.exponential(2), normalisers.pool_z, dm.mean_score(), coded=True)
    table = vote_again(recipe, drawn.answers, drawn.scores)
    for row in range(300):
        assert vote_one(recipe, drawn.answers[row], drawn.scores[row]) == table[row]


def test_the_comparison_would_notice_another_tie_rule():
    """Negative control: with the larger key in place of the smaller one, a plain tie already differs."""
    recipe = Recipe()
    alone = vote_one(recipe, ["b", "a"])
    assert alone.answer == "a"
    assert replace(alone, answer="b") != vote_again(recipe, [["b", "a"]])[0]


@pytest.mark.parametrize(
    ("keys", "values", "said"),
    [
        ([], None, "at least one path"),
        (["a"], [1.0, 2.0], "one number per path, 1 of them"),
        (["a", "b"], [1.0, float("inf")], "must be finite; pool 0 has inf at path 1"),
        (["a", "b"], ["x", 1.0], "must be numbers"),
        ([["a"]], [1.0], "a string, a number or None"),
        (["a"], np.array([True]), "look like labels"),
        (["a"], None, "weights need scores"),
    ],
)
def test_bad_input_is_named(keys, values, said):
    with pytest.raises(InvalidValue, match=said):
        vote_one(Recipe(dm.exponential()), keys, values)


def test_one_key_has_the_p_value_that_a_table_of_keys_has():
    drawn = dm.simulate_pools(200, n_paths=8, seed=2)
    for tie_break in TIE_BREAKS:
        votes = dm.vote(drawn.answers, drawn.scores, tie_break=tie_break, ids=range(200))
        evidence = dm.Evidence.of(votes.key, votes.answer == drawn.gold)
        table = evidence.p_value(votes.key)
        assert [evidence.p_value_of(tuple(key)) for key in votes.key.tolist()] == table.tolist()
