"""Labels that come in by accident are refused, in whatever they are held and through whichever door."""

from fractions import Fraction

import numpy as np
import pytest

import demur as dm
from demur.errors import CalibrationLeak, InvalidValue
from demur.pools.fields import FieldChoice
from demur.pools.source import PoolSource, vote_pools
from demur.pools.voted_pools import VotedPools
from demur.records import Path, Pool, Problem
from demur.voting.key import Column, Component, Share
from demur.voting.recipe import Recipe
from demur.voting.weights import Exponential

ANSWERS = [["a", "b"], ["a", "a"]]
LABELS = [[True, False], [True, True]]
RIGHT = np.arange(60) % 3 > 0
POOLS = [["a", "a", "b"]] * 60
IDS = [f"q{row}" for row in range(60)]


def ragged():
    column = np.empty(2, dtype=object)
    column[:] = LABELS
    return column


def frame():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(LABELS)


def nullable_frame():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(LABELS).astype("boolean")


HELD = {
    "lists": lambda: LABELS,
    "tuples": lambda: tuple(map(tuple, LABELS)),
    "array": lambda: np.array(LABELS),
    "object array": lambda: np.array(LABELS, dtype=object),
    "array of lists": ragged,
    "list of arrays": lambda: [np.array(pool) for pool in LABELS],
    "list of object arrays": lambda: [np.array(pool, dtype=object) for pool in LABELS],
    "among numbers": lambda: [[0.5, 1.0], [0.25, True]],
    "numpy's own": lambda: [[np.bool_(True), np.bool_(False)], [0.5, 0.5]],
    "DataFrame": frame,
    "nullable DataFrame": nullable_frame,
}


@pytest.mark.parametrize("held", HELD)
def test_booleans_are_no_scores_whatever_holds_them(held):
    with pytest.raises(InvalidValue, match="scores must be numbers, got booleans"):
        dm.vote(ANSWERS, HELD[held]())
    with pytest.raises(InvalidValue, match="scores must be numbers, got booleans"):
        dm.baselines.best_of_m(ANSWERS, HELD[held]())


def test_booleans_are_no_scores_of_pools_that_differ_in_size_and_in_generators():
    for scores in ([[True, False], [True]], (pool for pool in [[0.5, 0.5], [True]])):
        with pytest.raises(InvalidValue, match="scores must be numbers, got booleans"):
            dm.vote([["a", "b"], ["a"]], scores)


@pytest.mark.parametrize("scores", [[True, False], (1.0, True), np.array([True, False], dtype=object)])
def test_booleans_are_no_scores_of_one_pool(scores):
    policy = dm.calibrate(dm.vote(POOLS, np.random.default_rng(0).random((60, 3))), RIGHT, alpha=0.2)
    with pytest.raises(InvalidValue, match="scores must be numbers, got booleans"):
        policy.decide(["a", "b"], scores)


@pytest.mark.parametrize("labels", [[True, False], np.array([True, False]), np.array([True, False], dtype=object)])
def test_booleans_break_no_ties(labels):
    with pytest.raises(InvalidValue, match="tie_break must be numbers, got booleans"):
        dm.vote(ANSWERS, tie_break=labels)


def test_numbers_of_every_kind_are_still_numbers():
    expected = dm.vote(ANSWERS, [[0.0, 1.0], [2.0, 3.0]]).confidence
    for scores in (
        [[0, 1], [2, 3]],
        np.arange(4).reshape(2, 2),
        np.arange(4).reshape(2, 2).astype(object),
        [np.arange(2), np.arange(2, 4)],
        [[np.float32(0), 1], [np.int8(2), 3.0]],
    ):
        assert (dm.vote(ANSWERS, scores).confidence == expected).all()


@pytest.mark.parametrize("scores", [object(), 5, "0.5", b"0.5", [object()], [["x", "y"]]])
def test_what_holds_no_numbers_at_all_is_refused_as_scores(scores):
    with pytest.raises(InvalidValue, match="scores must"):
        dm.vote([["a", "b"]], scores)


def test_a_list_that_holds_itself_ends():
    circle: list = []
    circle.append(circle)
    with pytest.raises(InvalidValue, match="scores must be numbers"):
        dm.vote([["a"]], circle)


def test_labels_written_as_numbers_break_no_ties_once_labels_are_known():
    column = dm.vote(POOLS, tie_break=RIGHT.astype(float), ids=IDS)
    for use in (lambda: dm.calibrate(column, RIGHT, alpha=0.2), lambda: dm.evaluate(column, RIGHT, alpha=0.2)):
        with pytest.raises(InvalidValue, match="is the label itself; labels cannot break ties"):
            use()


def test_a_column_that_only_resembles_the_labels_is_let_through():
    nearly = RIGHT.astype(float)
    nearly[0] = 1 - nearly[0]
    dm.calibrate(dm.vote(POOLS, tie_break=nearly), RIGHT, alpha=0.2)
    dm.calibrate(dm.vote(POOLS, tie_break=np.arange(60.0)), RIGHT, alpha=0.2)


def test_a_few_votes_may_fall_as_their_labels_do():
    with pytest.warns(UserWarning, match="too few"):
        dm.calibrate(dm.vote(POOLS[:6], tie_break=RIGHT[:6].astype(float)), RIGHT[:6], alpha=0.01)


def pools_of_file():
    return [
        Pool(
            Problem(name, f"question {name}", ("a",) if right else ("z",), extra={"margin": float(right)}),
            (Path("a", scores={"s": 0.1 * row}), Path("b", scores={"s": 0.5})),
        )
        for row, (name, right) in enumerate(zip(IDS, RIGHT, strict=True))
    ]


def test_files_pass_the_same_guard():
    recipe = Recipe(key=(Share(), Column([], "margin")))
    with pytest.raises(InvalidValue, match="'margin' is the label itself"):
        vote_pools(PoolSource(pools_of_file()), FieldChoice(), recipe)


def test_problems_that_a_score_or_column_was_fitted_on_calibrate_nothing():
    learned = np.linspace(0, 1, 60)
    for leaked in (
        dm.vote(POOLS, tie_break=learned, ids=IDS, fitted_on=["q7", "elsewhere"]),
        dm.vote(POOLS, np.repeat(learned[:, None], 3, axis=1), ids=IDS, fitted_on={"q59"}),
        vote_pools(PoolSource(pools_of_file()), FieldChoice(score="s"), Recipe(Exponential()), fitted_on=["q7"]),
    ):
        labels = None if isinstance(leaked, dm.VotedPools) else RIGHT
        with pytest.raises(
            CalibrationLeak, match=r"fitted on 1 of the calibration problems \(the first is 'q(7|59)'\)"
        ):
            dm.calibrate(leaked, labels, alpha=0.2)
        with pytest.raises(CalibrationLeak, match="tune split"):
            dm.evaluate(leaked, labels, alpha=0.2)


def test_a_column_fitted_elsewhere_calibrates_and_its_problems_do_not_audit():
    votes = dm.vote(POOLS, tie_break=np.linspace(0, 1, 60), ids=IDS, fitted_on=["tune-1"])
    policy = dm.calibrate(votes, RIGHT, alpha=0.2)
    assert policy.seen.rows(["tune-1", "q0", "new"]) == [0, 1]
    assert dm.calibrate(votes.take(np.arange(40)), RIGHT[:40], alpha=0.2).seen.rows(["tune-1"]) == [0]


def test_fitted_votes_need_names():
    with pytest.raises(InvalidValue, match="needs votes with ids"):
        dm.calibrate(dm.vote(POOLS, tie_break=np.linspace(0, 1, 60), fitted_on=["t"]), RIGHT, alpha=0.2)
    with pytest.raises(InvalidValue, match="fitted_on must hold the ids"):
        dm.vote(POOLS, fitted_on="q7")


@pytest.mark.parametrize("kind", [int, float, Fraction, str])
def test_labels_of_paths_as_numbers_are_no_scores_on_arrays_either(kind):
    rng = np.random.default_rng(3)
    right = rng.random((60, 4)) < 0.5
    answers = np.where(right, "a", "b").tolist()
    votes = dm.vote(answers, [[kind(int(label)) for label in row] for row in right.tolist()])
    with pytest.raises(InvalidValue, match="the scores are the labels"):
        dm.calibrate(votes, votes.answer == "a", alpha=0.1)
    coarse = dm.vote(answers, (rng.random((60, 4)) < 0.5).astype(float))  # two values, which are no labels
    dm.calibrate(coarse, coarse.answer == "a", alpha=0.1)


class Told(Component):
    """A tie-break of one's own that gives what it was told."""

    name, spec = "told", "told@1"

    def __init__(self, values):
        self.values = values

    def of(self, counted):
        return self.values


def test_a_tie_break_of_ones_own_gives_no_labels():
    answers = np.tile([0, 0, 1], (40, 1))
    correct = np.arange(40) % 3 > 0
    for held in (correct, correct.tolist(), correct.astype(object)):
        with pytest.raises(InvalidValue, match="tie_break must be numbers, got booleans"):
            dm.vote(answers, tie_break=Told(held))
    votes = dm.vote(answers, tie_break=Told(correct * 1.0))
    with pytest.raises(InvalidValue, match="the tie-break told@1 is the label itself"):
        VotedPools.of(votes, correct)
    for wrong in (np.zeros(39), np.zeros((40, 1)), np.where(correct, np.nan, 1.0)):
        with pytest.raises(InvalidValue, match="one number per pool, 40 of them"):
            dm.vote(answers, tie_break=Told(wrong))
    whole = dm.vote(answers, tie_break=Told(np.arange(40))).key[:, 1]
    assert (whole.dtype, whole.tolist()) == (float, list(range(40)))


def test_the_bare_constructor_of_voted_pools_has_the_same_guards():
    answers = np.tile([0, 0, 1], (40, 1))
    correct = np.arange(40) % 3 > 0
    with pytest.raises(InvalidValue, match="is the label itself"):
        VotedPools(dm.vote(answers, tie_break=correct * 1.0), correct)
    with pytest.raises(InvalidValue, match="the scores are the labels"):
        VotedPools(dm.vote(answers, np.repeat(correct * 1.0, 3).reshape(40, 3)), correct)
    with pytest.raises(InvalidValue, match="one label per vote"):
        VotedPools(dm.vote(answers), correct[1:])
    with pytest.raises(InvalidValue, match="correct must hold booleans"):
        VotedPools(dm.vote(answers), correct * 2)
    with pytest.raises(InvalidValue, match="clusters must hold one entry per vote"):
        VotedPools(dm.vote(answers), correct, clusters=["a"])
    empty = answers.copy()
    empty[7] = -1
    with pytest.raises(InvalidValue, match="vote 7 has no answer"):
        VotedPools(dm.vote(empty), np.ones(40, dtype=bool))


def test_scores_that_only_resemble_labels_are_let_through():
    right = np.arange(40) % 2 > 0
    clean = np.repeat(right[:, None], 3, axis=1).astype(float)
    answers = [["a", "a", "b"]] * 40
    once = clean.copy()
    once[0, 0] = 1 - once[0, 0]  # one winning path of 40 pools has the other value
    third = clean.copy()
    third[:, 2] = 0.5  # of losing paths: three values in all
    late = np.concatenate([np.tile(clean, (4, 1)), third])  # a third value, only after the first hundred pools
    losing = np.where([True, True, False], 0.25, clean)  # of losing paths only
    for scores in (once, third, late, losing):
        pools = len(scores) // 40
        VotedPools(dm.vote(answers * pools, scores), np.tile(right, pools))
    for pools in (1, 5):
        with pytest.raises(InvalidValue, match="the scores are the labels"):
            VotedPools(dm.vote(answers * pools, np.tile(clean, (pools, 1))), np.tile(right, pools))


def labels_as_scores_of_ragged_pools(low, high):
    """Winning paths have one value where the vote is right and the other where it is not; losing ones have either."""
    right = np.arange(40) % 2 > 0
    answers = [["a"] * (3 + row % 3) + ["b"] for row in range(40)]
    scores = [[high if label else low] * (3 + row % 3) + [low if row % 5 else high] for row, label in enumerate(right)]
    return dm.vote(answers, scores), right


def test_labels_as_scores_are_found_out_in_pools_of_different_sizes_and_by_the_winning_paths_alone():
    with pytest.raises(InvalidValue, match="the scores are the labels"):
        VotedPools(*labels_as_scores_of_ragged_pools(0.0, 1.0))


@pytest.mark.parametrize(("low", "high"), [(1.0, 2.0), (-2.0, -1.0)])
def test_what_fills_up_smaller_pools_is_no_third_value_that_would_hide_the_labels(low, high):
    with pytest.raises(InvalidValue, match="the scores are the labels"):
        VotedPools(*labels_as_scores_of_ragged_pools(low, high))


def test_labels_as_scores_are_found_out_where_they_only_break_ties():
    scores = np.repeat(RIGHT[:, None] * 1.0, 3, axis=1)
    with pytest.raises(InvalidValue, match="the scores are the labels"):
        dm.calibrate(dm.vote(POOLS, scores, weight=dm.uniform(), tie_break=dm.mean_score()), RIGHT, alpha=0.2)


def test_scores_without_a_say_may_be_anything():
    scores = np.repeat(RIGHT[:, None] * 1.0, 3, axis=1)
    without = dm.calibrate(dm.vote(POOLS), RIGHT, alpha=0.2)
    idle = dm.vote(POOLS, scores, weight=dm.uniform(), tie_break="none")
    assert dm.calibrate(idle, RIGHT, alpha=0.2).threshold == without.threshold
    with pytest.raises(InvalidValue, match="the scores are the labels"):  # where none is named, they break ties
        dm.calibrate(dm.vote(POOLS, scores, weight=dm.uniform()), RIGHT, alpha=0.2)


def test_the_majority_vote_weighs_all_paths_alike_though_scores_break_its_ties():
    huge = [[1e308, -1e308, 0.0]]  # what no normaliser takes, were it asked
    how = {"weight": dm.uniform(), "normaliser": dm.normalisers.pool_z}
    votes = dm.vote([["a", "a", "b"]], huge, tie_break=dm.mean_score(), **how)
    assert votes.weights(0) == [1.0, 1.0, 1.0]
    assert votes[0].tally == {"a": 2.0, "b": 1.0}


@pytest.mark.parametrize("votes", [19, 20])
@pytest.mark.parametrize("unanswered", [0, 3])
def test_from_twenty_answered_votes_on_labels_are_no_coincidence(votes, unanswered):
    right = np.arange(votes + unanswered) % 2 > 0
    right[votes:] = False
    pools = [["a", "a"]] * votes + [[None, None]] * unanswered
    held = (
        dm.vote(pools, np.repeat(right[:, None] * 1.0, 2, axis=1)),
        dm.vote(pools, tie_break=right * 1.0),
    )
    for leaking in held:
        if votes < 20:
            VotedPools(leaking, right)
        else:
            with pytest.raises(InvalidValue, match=r"the scores are the labels|is the label itself"):
                VotedPools(leaking, right)


def test_a_column_that_is_one_number_for_wrong_votes_alone_is_no_label():
    VotedPools(dm.vote(POOLS, tie_break=np.where(RIGHT, np.arange(60.0), -1.0)), RIGHT)
    VotedPools(dm.vote(POOLS, tie_break=np.where(RIGHT, -1.0, np.arange(60.0))), RIGHT)
    VotedPools(dm.vote(POOLS, tie_break=np.ones(60)), RIGHT)


def test_the_same_few_questions_draw_the_same_jitter_and_that_is_no_label():
    questions = ["Which one?" if right else "And which other?" for right in RIGHT]
    VotedPools(dm.vote(POOLS, tie_break=dm.jitter(1), questions=questions), RIGHT)
