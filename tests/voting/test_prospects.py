"""What is certain of a vote before all paths are there holds of the whole pool, whatever comes."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.voting import Recipe, exponential, linear, normalisers, uniform
from demur.voting.one_pool import vote_one
from demur.voting.prospects import NOTHING_KNOWN, Prospects, prospects
from demur.voting.reach import ANY_NUMBER, reach, unbounded

ANSWERS = ("a", "b", "c", None)
EVERY_WAY = [
    *((uniform(), kind) for kind in (normalisers.none, normalisers.pool_z)),
    *(
        (exponential(beta), kind)
        for beta in (0.1, 1.0, 7.0)
        for kind in (
            normalisers.none, normalisers.pool_z, normalisers.pool_minmax, normalisers.rank,
            normalisers.fixed_affine(0.3, 0.5), normalisers.fixed_sigmoid(0.3, 0.5),
        )
    ),
    *(
        (linear(), kind)
        for kind in (
            normalisers.none, normalisers.pool_minmax, normalisers.rank, normalisers.fixed_affine(0.0, 0.5),
            normalisers.fixed_sigmoid(0.3, 0.5),
        )
    ),
]  # fmt: skip
RECIPES = [Recipe(weight, kind) for weight, kind in EVERY_WAY]
NAMES = [f"{recipe.weight.spec} {recipe.normaliser.name}" for recipe in RECIPES]
SCORES = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0.0, 1.0))
ANY_PATHS = st.lists(st.tuples(st.sampled_from(ANSWERS), SCORES), min_size=1, max_size=9)


def holds(found: Prospects, recipe: Recipe, answers, scores) -> None:
    vote = vote_one(recipe, answers, scores)
    assert vote.confidence <= found.most
    if found.leader is not None:
        assert vote.answer == found.leader
        assert vote.confidence >= found.least


@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
@given(paths=ANY_PATHS, later=ANY_PATHS)
def test_what_is_certain_holds_of_the_whole_pool_whatever_comes(recipe, paths, later):
    answers, scores = map(list, zip(*paths, strict=True))
    more, numbers = map(list, zip(*later, strict=True))
    for within in ((0.0, 1.0), (0.0, math.inf), ANY_NUMBER):
        found = prospects(recipe, answers, scores, len(later), within)
        holds(found, recipe, answers + more, scores + numbers)


@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
def test_it_holds_of_paths_that_are_as_far_out_as_a_score_can_be(recipe):
    """The worst that may come: one answer for all, scores at the ends of their range or far beyond the others."""
    rng = random.Random(5)
    lowest = 0.0 if recipe.weight == linear() else -1e6
    for _ in range(400):
        drawn, left = rng.randint(1, 12), rng.randint(1, 5)
        answers = rng.choices(ANSWERS, weights=[5, 2, 1, 1], k=drawn)
        scores = [rng.choice([rng.random(), 0.0, 0.4]) for _ in range(drawn)]
        bounded = rng.random() < 0.5
        found = prospects(recipe, answers, scores, left, (0.0, 1.0) if bounded else (lowest, math.inf))
        ends = [0.0, 1.0] if bounded else [lowest, 1.0, 3.0, 1e3, 1e6]
        for one in ("a", "b", "c", "0", "z", None):
            last = [rng.choice(ends) for _ in range(left)]
            holds(found, recipe, answers + [one] * left, scores + last)


@given(paths=ANY_PATHS, left=st.integers(1, 3))
def test_of_a_majority_vote_everything_is_told_that_is_certain(paths, left):
    """Against every pool that may come: bounds are reached, and whoever must win is named."""
    answers = [answer for answer, _ in paths][:6]
    found = prospects(Recipe(), answers, None, left)
    votes = [vote_one(Recipe(), answers + list(more)) for more in all_later(left)]
    winners = {vote.answer for vote in votes}
    assert found.most == max(vote.confidence for vote in votes)
    if len(winners) == 1 and winners != {None}:
        assert found.leader == winners.pop()
        assert found.least == min(vote.confidence for vote in votes)
    else:
        assert found.leader is None


def all_later(left: int):
    """Every way that so many paths may come: known answers, one before and one after them, and none."""
    pools = [()]
    for _ in range(left):
        pools = [(*pool, answer) for pool in pools for answer in ("A", *ANSWERS, "z")]
    return pools


def test_a_tie_that_the_smaller_key_wins_is_certain_and_one_that_an_unknown_key_may_win_is_not():
    assert prospects(Recipe(), ["a", "a", "b"], None, 1) == Prospects("a", 0.5, 0.75)
    assert prospects(Recipe(), ["b", "b", "a"], None, 1).leader is None
    assert prospects(Recipe(), ["a", "a"], None, 2).leader is None
    assert prospects(Recipe(coded=True), [2, 2, 10], None, 1).leader == 2


def test_paths_without_an_answer_keep_their_weight():
    assert prospects(Recipe(), [None, None, None], None, 1) == Prospects(None, 0.0, 0.25)
    assert prospects(Recipe(), ["a", None, "a"], None, 1) == Prospects("a", 0.5, 0.75)


def test_scores_that_leave_their_range_bound_nothing():
    recipe = Recipe(exponential())
    assert prospects(recipe, ["a"] * 9, [-3.0] * 9, 1, (-math.inf, 0.0)).leader is None
    assert prospects(recipe, ["a"] * 9, [-0.1] * 9, 1, (-math.inf, 0.0)).leader == "a"
    assert prospects(recipe, ["a"] * 9, [0.1] * 9, 1, (-math.inf, 0.0)) == NOTHING_KNOWN
    assert prospects(recipe, ["a"] * 9, [-0.1] * 9, 1) == NOTHING_KNOWN


def test_a_standardised_score_of_a_missing_path_reaches_its_bound():
    """k paths far above t equal ones: the k-th is √(m(t + k) / kt) above their mean, where all of them are alike."""
    for drawn, left in ((15, 1), (12, 4), (3, 3)):
        recipe, many = Recipe(exponential(), normalisers.pool_z), drawn + left
        bounds = reach(recipe, [0.0] * drawn, left)
        largest = math.sqrt(many * (drawn + left) / (left * drawn))
        standard = normalisers.pool_z(__import__("numpy").array([[0.0] * drawn + [1e9] * left]))[0]
        assert standard[-1] - standard[0] == pytest.approx(largest)
        assert math.log(bounds.rest / bounds.least[0]) >= largest


def test_scores_so_far_from_nought_that_digits_are_lost_bound_nothing():
    recipe = Recipe(exponential(), normalisers.pool_z)
    assert reach(recipe, [1e9, 1e9 + 1e-3], 1) is None
    assert reach(recipe, [1e200, -1e200], 1) is None
    assert reach(recipe, [1.0, 1.1], 1) is not None


@pytest.mark.parametrize(
    ("recipe", "within", "reason"),
    [
        (Recipe(), ANY_NUMBER, ""),
        (Recipe(exponential()), ANY_NUMBER, "exponential weights with the normaliser none have no bound"),
        (Recipe(exponential()), (-math.inf, 0.0), ""),
        (Recipe(exponential()), (2.0, 5.0), ""),
        (Recipe(exponential(), normalisers.pool_z), ANY_NUMBER, ""),
        (Recipe(exponential(), normalisers.fixed_sigmoid(0.0, 1.0)), ANY_NUMBER, ""),
        (Recipe(linear(), normalisers.rank), ANY_NUMBER, ""),
        (Recipe(linear(), normalisers.pool_minmax), ANY_NUMBER, "linear weights behind pool_minmax"),
        (Recipe(linear(), normalisers.pool_minmax), (0.0, 1.0), ""),
        (Recipe(linear()), (0.0, math.inf), "linear weights with the normaliser none have no bound"),
    ],
)
def test_where_a_weight_has_no_bound_the_reason_is_told(recipe, within, reason):
    told = unbounded(recipe, within)
    assert told.startswith(reason)
    assert bool(told) == bool(reason)


def test_weights_and_normalisers_that_demur_does_not_know_bound_nothing():
    class Own:
        name, spec = "own", "own"

        def __call__(self, scores):
            return scores / scores.max(axis=1, keepdims=True)

    assert prospects(replace(Recipe(), weight=Own()), ["a"] * 9, [1.0] * 9, 1, (0.0, 1.0)) == NOTHING_KNOWN
    assert unbounded(replace(Recipe(), weight=Own()), (0.0, 1.0)).startswith("own weights")


def test_a_greedy_bound_differs():
    """The control: the share so far, taken for certain, is not what the whole pool has."""
    rng, differ = random.Random(0), 0
    for _ in range(200):
        answers = rng.choices("ab", weights=[3, 2], k=9)
        so_far, whole = vote_one(Recipe(), answers[:5]), vote_one(Recipe(), answers)
        differ += so_far.answer != whole.answer
    assert differ > 10
