"""One pool voted on by itself: every number, to the last bit, is the table's."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import demur as dm
from demur.errors import InvalidValue, NoJitterWarning
from demur.voting._exact_sums import grid, row_sums
from demur.voting.key import Column, Share
from demur.voting.one_pool import vote_one
from demur.voting.recipe import Recipe
from demur.voting.sources import sources_of
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
    recipe = Recipe(weight, normaliser, (Share(), *([] if tie_break is None else [tie_break])))
    keys, values = [answer for answer, _ in pool], [score for _, score in pool]
    alone = vote_one(recipe, keys, values, id="q")
    among = vote_again(recipe, [["a"], keys], [[0.0], values], ids=["p", "q"])[1]
    assert alone == among
    assert list(alone.tally) == list(among.tally)


@given(st.lists(st.integers(-1, 3), min_size=1, max_size=12), st.integers(0, 99))
def test_codes_too(codes, seed):
    values = np.random.default_rng(seed).normal(size=len(codes))
    recipe = Recipe(dm.exponential(), normalisers.pool_z, (Share(), dm.mean_score()), coded=True)
    table = vote_again(recipe, np.array([codes]), values[None])[0]
    for form in (codes, np.array(codes)):
        assert vote_one(recipe, form, values) == table
        assert vote_one(recipe, form, values.tolist()) == table


def test_recorded_sizes_and_random_scores_agree():
    drawn = dm.simulate_pools(300, n_paths=41, seed=5, missing=0.2)
    recipe = Recipe(dm.exponential(2), normalisers.pool_z, (Share(), dm.mean_score()), coded=True)
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


small = st.lists(st.tuples(st.sampled_from([None, "a", "b", 3]), st.integers(0, 3)), min_size=1, max_size=6)


@given(small, st.sampled_from([None, "question", "other"]), st.sampled_from([None, "id"]))
def test_full_of_ties_and_whatever_breaks_them_a_pool_alone_is_that_pool_in_a_table(pool, question, name):
    """Linear weights of whole numbers tie by every rule; jitter comes of the question, a column from the caller."""
    keys, values = [answer for answer, _ in pool], [float(score) for _, score in pool]
    for tie_break in (dm.jitter(3), Column([0.25]), dm.mean_score()):
        recipe = Recipe(dm.linear(), normalisers.none, (Share(), tie_break))
        alone = vote_one(recipe, keys, values, id=name, question=question)
        ids = None if name is None else [name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoJitterWarning)
            among = vote_again(recipe, [keys], [values], 0.25, ids=ids, questions=[question])[0]
        assert alone == among
        assert list(alone.tally) == list(among.tally)
        assert alone.answer == next(iter(alone.tally), None)  # the winner comes first


def test_the_winner_comes_first_though_another_has_as_much():
    alone = vote_one(Recipe(dm.linear()), ["a", "a", "b", "b"], [2.0, 2.0, 3.0, 1.0])
    assert list(alone.tally) == list(alone.support) == ["b", "a"]


def test_behind_the_winner_answers_come_by_tally_then_by_paths_then_by_key():
    keys = ["a", "b", "c", "d", "d", "e", "w"]
    alone = vote_one(Recipe(dm.linear()), keys, [0.5, 0.75, 0.5, 0.25, 0.25, 0.25, 1.0])
    assert list(alone.tally) == list(alone.support) == ["w", "b", "d", "a", "c", "e"]


@pytest.mark.parametrize(("less", "winner"), [(40, "a"), (42, "b")])
def test_tallies_that_differ_by_just_the_width_of_a_tie_are_tied(less, winner):
    one = grid(4)  # the whole number that stands for the largest weight
    nothing = 4e13 - (2 * one - less)  # so that all weights add up to 4e13, of which 1e-12 is 40
    weights = np.array([(one - less) / 2, (one - less) / 2, one, nothing]) / one
    keys = ["a", "a", "b", None]  # where they are tied, the answer with more paths wins
    assert vote_one(Recipe(dm.linear()), keys, weights.tolist()).answer == winner
    assert dm.vote([keys], [weights], weight=dm.linear()).answer[0] == winner


def test_the_smallest_weight_there_is_wins_a_tie_against_none():
    keys, values = [None, "a", "b"], [1.0, 0.0, 1 / grid(3)]
    assert vote_one(Recipe(dm.linear()), keys, values).answer == "b"
    assert dm.vote([keys], [values], weight=dm.linear()).answer[0] == "b"


def test_what_is_no_code_is_named_and_so_are_scores_that_overflow():
    for answer in ("a", 1.5):
        with pytest.raises(InvalidValue, match="an answer must be an integer code, got"):
            vote_one(Recipe(coded=True), [answer])
    with pytest.raises(InvalidValue, match="an answer must be a string, a number or None, got"):
        vote_one(Recipe(), [["a"]])
    with pytest.raises(InvalidValue, match=r"overflows on the scores of pool 0 \(path 0\)"):
        vote_one(Recipe(dm.exponential(), normalisers.pool_z), ["a", "b"], [1e308, -1e308])


def test_questions_and_ids_that_do_not_belong_together_draw_no_jitter():
    for questions, ids in ((["q"], None), (None, ["x"]), (["q", "r"], ["x"])):
        with pytest.raises(ValueError, match="one entry per pool, 2 of them, got 1"):
            sources_of(2, questions, ids)


def test_sums_are_exact_to_the_44th_bit_and_up_to_the_largest_floats():
    assert row_sums(np.array([[1 + 2.0**-43, 1.0, -1.0]])).tolist() == [[1 + 2.0**-43]]
    assert row_sums(np.array([[1.75 * 2.0**1023, -1.75 * 2.0**1023, 2.0**1000]])).tolist() == [[2.0**1000]]
    assert row_sums(np.zeros((1, 3))).tolist() == [[0.0]]
