"""The vote: the definition read literally, its invariances, and the cases that break naive code."""

from __future__ import annotations

from collections import deque
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import demur as dm
from brute_force import literal_vote
from demur.errors import InvalidValue, NoJitterWarning
from demur.records import question_digest
from demur.voting.key import Share
from demur.voting.normalisers import none, pool_minmax, pool_z, rank
from demur.voting.recipe import Recipe
from demur.voting.votes import vote_again

A, B, C = "A", "B", "C"


def pools(min_paths: int = 1, max_paths: int = 9):
    """Small pools of (answer, score); scores on a coarse grid, so that ties are common."""
    path = st.tuples(st.sampled_from([A, B, C, None]), st.integers(-3, 3))
    return st.lists(path, min_size=min_paths, max_size=max_paths)


def vote_one(answers, scores=None, **how):
    return dm.vote([list(answers)], None if scores is None else [list(scores)], **how)[0]


def test_the_fixture_of_the_theory_weighted():
    vote = vote_one([A, A, B, B, None], [0, np.log(2), np.log(3), 0, 0])
    assert vote.answer == B
    assert vote.confidence == 0.5  # 4 / (3 + 4 + 1): the path without an answer counts below the line
    assert {a: round(3 * v, 9) for a, v in vote.tally.items()} == {B: 4, A: 3}  # in units of the largest weight, 3
    assert vote.support == {B: 2, A: 2}
    assert round(3 * vote.total, 9) == 8


def test_the_fixture_of_the_theory_uniform_tie_goes_to_the_smaller_key():
    vote = vote_one([A, A, B, B, None])
    assert (vote.answer, vote.confidence, vote.unanimous) == (A, 0.4, False)


def test_a_pool_without_any_answer_has_confidence_zero():
    for scores in (None, [1.0, 2.0]):
        vote = vote_one([None, None], scores)
        assert (vote.answer, vote.confidence, vote.unanimous, vote.tally) == (None, 0.0, False, {})


@given(pools())
def test_uniform_votes_agree_with_the_definition(pool):
    answers = [a for a, _ in pool]
    literal = literal_vote(answers, [Fraction(1)] * len(answers))
    vote = vote_one(answers)
    assert vote.answer == literal.answer
    assert vote.confidence == round(float(literal.confidence), 12)
    assert vote.tally == {a: float(v) for a, v in literal.tally.items()}


@given(pools())
def test_linear_votes_agree_with_the_definition_in_fractions(pool):
    answers, scores = [a for a, _ in pool], [s + 3 for _, s in pool]
    weights = [Fraction(s) for s in scores]
    if not any(weights):
        weights = [Fraction(1)] * len(weights)  # a pool of equal scores votes uniformly, zeros included
    literal = literal_vote(answers, weights)
    vote = vote_one(answers, scores, weight=dm.linear())
    assert vote.answer == literal.answer
    assert vote.confidence == pytest.approx(float(literal.confidence), abs=1e-12)


@given(pools())
def test_exponential_votes_agree_with_the_definition_for_weights_that_are_powers_of_two(pool):
    answers, scores = [a for a, _ in pool], [s for _, s in pool]
    literal = literal_vote(answers, [Fraction(2) ** s for s in scores])
    vote = vote_one(answers, scores, weight=dm.exponential(float(np.log(2))))
    assert vote.answer == literal.answer
    assert vote.confidence == pytest.approx(float(literal.confidence), abs=1e-12)


@given(pools(min_paths=2), st.randoms(use_true_random=False), st.sampled_from([none, pool_z, pool_minmax, rank]))
def test_the_order_of_paths_never_matters_to_the_last_bit(pool, random, normaliser):
    shuffled = random.sample(pool, len(pool))

    def cast(paths):
        scores = [s / 7 for _, s in paths]
        return vote_one([a for a, _ in paths], scores, normaliser=normaliser, tie_break=dm.mean_score())

    first, second = cast(pool), cast(shuffled)
    assert (first.answer, first.confidence, first.unanimous, first.key, first.tally) == (
        second.answer, second.confidence, second.unanimous, second.key, second.tally,
    )  # fmt: skip


@given(st.lists(pools(min_paths=3), min_size=1, max_size=8), st.sampled_from([none, pool_z, pool_minmax, rank]))
def test_a_pool_votes_the_same_alone_and_in_any_table(table, normaliser):
    answers = [[a for a, _ in pool] for pool in table]
    scores = [[s / 7 for _, s in pool] for pool in table]
    votes = dm.vote(answers, scores, normaliser=normaliser, tie_break=dm.mean_score())
    for row in range(len(table)):
        alone = vote_one(answers[row], scores[row], normaliser=normaliser, tie_break=dm.mean_score())
        assert votes[row] == alone


@pytest.mark.parametrize("normaliser", [none, pool_z])
@pytest.mark.parametrize("weighted", [True, False])
def test_votes_one_after_the_other_are_those_of_single_rows_to_the_last_bit(monkeypatch, normaliser, weighted):
    """Sizes, answers and scores of all kinds; records are made a few at a time."""
    monkeypatch.setattr("demur.voting.votes._AT_ONCE", 7)
    rng = np.random.default_rng(0)
    sizes = np.repeat(rng.integers(1, 7, 20), rng.integers(1, 6, 20)).tolist()
    answers = [[[None, A, B, C][code] for code in rng.integers(0, 4, size)] for size in sizes]
    scores = [rng.normal(size=size).tolist() for size in sizes] if weighted else None
    how = {"normaliser": normaliser} if weighted else {}
    votes = dm.vote(answers, scores, ids=[f"q{k}" for k in range(len(sizes))], **how)
    alone = [dm.vote([pool], None if scores is None else [scores[row]], ids=[f"q{row}"], **how)[0]
             for row, pool in enumerate(answers)]  # fmt: skip
    assert list(votes) == [votes[row] for row in range(len(votes))] == alone
    assert (votes.tally, votes.support) == ([vote.tally for vote in alone], [vote.support for vote in alone])
    coded = dm.vote(rng.integers(-1, 3, (30, 4)), rng.normal(size=(30, 4)))
    assert list(coded) == [coded[row] for row in range(30)]


def test_large_random_tables_vote_like_each_of_their_rows():
    rng = np.random.default_rng(0)
    answers, scores = rng.integers(-1, 6, (20_000, 11)), rng.standard_normal((20_000, 11))
    votes = dm.vote(answers, scores)
    for row in rng.integers(0, 20_000, 300):
        alone = dm.vote(answers[row : row + 1], scores[row : row + 1])
        assert alone.answer[0] == votes.answer[row]
        assert alone.confidence[0] == votes.confidence[row]


@given(pools(), st.floats(-1000, 1000), st.floats(1e-3, 1e3))
def test_confidence_ignores_a_shift_of_exponential_and_the_scale_of_linear_weights(pool, shift, scale):
    answers, scores = [a for a, _ in pool], np.array([s for _, s in pool], dtype=float)
    shifted = vote_one(answers, scores + shift)
    assert shifted.confidence == pytest.approx(vote_one(answers, scores).confidence, abs=1e-9)
    positive = scores + 3
    scaled = vote_one(answers, positive * scale, weight=dm.linear())
    assert scaled.confidence == pytest.approx(vote_one(answers, positive, weight=dm.linear()).confidence, abs=1e-11)


@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.sampled_from([np.float32, np.float64]))
def test_unanimous_pools_have_confidence_exactly_one(paths, seed, kind):
    scores = np.random.default_rng(seed).normal(scale=10, size=(1, paths)).astype(kind)
    for normaliser in (none, pool_z, pool_minmax, rank):
        votes = dm.vote(np.zeros((1, paths), dtype=int), scores, normaliser=normaliser)
        assert votes.confidence[0] == 1.0
        assert votes.unanimous[0]


def test_full_confidence_without_unanimity_is_not_called_unanimous():
    vote = vote_one([A, B], [0.0, -1000.0])  # the second weight underflows
    assert (vote.confidence, vote.unanimous) == (1.0, False)


def test_a_path_without_an_answer_ends_unanimity_but_a_lone_answer_still_wins():
    vote = vote_one([A, A, None])
    assert (vote.answer, vote.unanimous) == (A, False)
    assert vote.confidence == round(2 / 3, 12)


def test_raw_rewards_of_a_thousand_neither_overflow_nor_lose_the_vote():
    vote = vote_one([A, B, B], [1000.0, 999.0, -1000.0])
    assert vote.answer == A
    assert vote.confidence == pytest.approx(1 / (1 + np.exp(-1)))


def test_ties_go_to_more_paths_then_to_the_larger_single_weight_then_to_the_smaller_key():
    assert vote_one([B, A, A], [2.0, 1.0, 1.0], weight=dm.linear()).answer == A  # two paths beat one
    assert vote_one([A, A, B, B], [2.0, 2.0, 3.0, 1.0], weight=dm.linear()).answer == B  # 3 beats 2
    assert vote_one([B, A], [1.0, 1.0], weight=dm.linear()).answer == A


def test_weights_that_differ_by_more_than_rounding_are_no_tie():
    assert vote_one([A, B, B], [1.0 + 1e-10, 0.5, 0.5], weight=dm.linear()).answer == A


def test_counts_and_sums_fit_their_types_at_every_width():
    from demur.voting._exact_sums import grid

    for width in (1, 2, 126, 127, 150, 200, 512, 513, 5000):
        assert grid(width) * width <= 2**53
        assert dm.vote(np.zeros((1, width), dtype=int)).confidence[0] == 1.0


def test_a_pool_without_an_answer_ranks_below_all_others_whatever_its_column():
    assert dm.vote([[None], ["a"]], tie_break=[5.0, 1.0]).key[:, 1].tolist() == [-np.inf, 1.0]


def test_weights_that_differ_only_by_rounding_are_a_tie():
    # 0.1 + 0.2 and 0.3 differ in the last bit as floats; as tallies they are equal.
    vote = vote_one([B, B, A], [0.1, 0.2, 0.3], weight=dm.linear())
    assert vote.answer == B  # tied, and B has more paths


@given(st.lists(pools(min_paths=4, max_paths=4), min_size=2, max_size=12), st.permutations([0, 1, 2]))
def test_renaming_answers_renames_the_winner_unless_a_tie_went_by_key(table, renaming):
    codes = {A: 0, B: 1, C: 2, None: -1}
    answers = np.array([[codes[a] for a, _ in pool] for pool in table])
    scores = np.array([[s for _, s in pool] for pool in table], dtype=float)
    renamed = np.where(answers < 0, -1, np.array([*renaming, 0])[answers])
    before, after = dm.vote(answers, scores), dm.vote(renamed, scores)
    np.testing.assert_array_equal(before.confidence, after.confidence)
    for row, (old, new) in enumerate(zip(before.answer, after.answer, strict=True)):
        counts = {a: (answers[row] == a).sum() for a in range(3)}
        if old >= 0 and renaming[old] != new:  # only a tie in tally and paths may fall to the key
            tally = before[row].tally
            back = renaming.index(new)
            assert tally[back] == pytest.approx(tally[old])
            assert counts[back] == counts[old]


def test_permuting_which_answer_is_gold_never_changes_a_vote():
    """The label leak of an argmax that favours index 0: accuracy must not depend on how gold is coded."""
    drawn = dm.simulate_pools(4000, n_paths=4, seed=5, missing=0.0)
    codes = np.random.default_rng(1).permuted(np.tile(np.arange(8), (4000, 1)), axis=1)
    recoded = np.take_along_axis(codes, drawn.answers, axis=1)
    gold_recoded = codes[np.arange(4000), drawn.gold]
    first = dm.vote(drawn.answers)
    second = dm.vote(recoded)
    np.testing.assert_array_equal(first.confidence, second.confidence)
    accuracy = [np.mean(first.answer == drawn.gold), np.mean(second.answer == gold_recoded)]
    # Ties go by key, which is random with respect to gold here, so both accuracies estimate one number.
    assert abs(accuracy[0] - accuracy[1]) < 4 * np.sqrt(0.25 / 4000)


def test_a_tie_rule_that_favours_gold_would_be_caught():
    """Negative control: coding gold as the smallest key inflates the accuracy of tied votes."""
    drawn = dm.simulate_pools(4000, n_paths=4, seed=5, missing=0.0)
    gold_first = np.where(drawn.answers == drawn.gold[:, None], 0, drawn.answers + 1)
    honest = np.mean(dm.vote(drawn.answers).answer == drawn.gold)
    leaked = np.mean(dm.vote(gold_first).answer == 0)
    assert leaked > honest + 0.02


def test_integer_arrays_strings_and_ragged_lists_vote_alike():
    codes = np.array([[0, 0, 1, -1], [2, 1, 2, 2]])
    named = [[None if c < 0 else "abc"[c] for c in row] for row in codes.tolist()]
    coded, keyed = dm.vote(codes), dm.vote(named)
    assert ["abc"[c] for c in coded.answer] == keyed.answer.tolist()
    np.testing.assert_array_equal(coded.confidence, keyed.confidence)
    ragged = dm.vote([named[0], named[1][:2], named[1]])
    assert ragged.n_paths.tolist() == [4, 2, 4]
    assert ragged.answer.tolist() == ["a", "b", "c"]
    assert ragged.confidence.tolist() == [0.5, 0.5, 0.75]


def test_any_negative_code_means_no_answer_and_codes_may_be_large_or_small():
    for offset in (0, 1000, 10**6, 10**12):
        answers = np.array([[-1, -7, 3, 3]]) + np.array([[0, 0, offset, offset]])
        vote = dm.vote(answers)[0]
        assert (vote.answer, vote.confidence) == (3 + offset, 0.5)
    assert dm.vote(np.array([[200, 200, 100]], dtype=np.uint8)).answer.tolist() == [200]


def test_keys_may_be_numbers_and_strings_together_and_negative_numbers_are_answers_in_lists():
    assert vote_one([-5, -5, "x"]).answer == -5
    assert vote_one([6, 6.0, "6"]).support == {6: 2, "6": 1}
    assert vote_one([float("nan"), " ", "x"]).confidence == round(1 / 3, 12)


def test_pools_of_more_than_512_paths_still_sum_exactly():
    rng = np.random.default_rng(3)
    for paths in (127, 128, 300, 1500):
        answers, scores = rng.integers(0, 3, (2, paths)), rng.standard_normal((2, paths))
        order = rng.permutation(paths)
        first, second = dm.vote(answers, scores), dm.vote(answers[:, order], scores[:, order])
        np.testing.assert_array_equal(first.confidence, second.confidence)
        weights = np.exp(scores)
        share = [max(weights[i][answers[i] == a].sum() for a in range(3)) / weights[i].sum() for i in range(2)]
        np.testing.assert_allclose(first.confidence, share, atol=1e-11)
        assert dm.vote(answers).confidence[0] == round(max(np.bincount(answers[0])) / paths, 12)


def test_take_keeps_tallies_ids_and_recipe():
    votes = dm.vote([["a", "b"], ["c"], ["d", "d"]], [[0, 1], [2], [3, 3]], ids=["x", "y", "z"])
    part = votes.take([2, 0])
    assert [v.id for v in part] == ["z", "x"]
    assert part[1] == votes[0]
    assert part.recipe is votes.recipe
    assert votes.take(np.array([False, True, False]))[0] == votes[1]


def test_mean_score_is_that_of_the_winning_paths_and_minus_infinity_without_any():
    votes = dm.vote([["a", "a", "b"], [None, None, None]], [[1.0, 3.0, 9.0], [1, 1, 1]], weight=dm.uniform(),
                    tie_break=dm.mean_score())  # fmt: skip
    assert votes.key[:, 1].tolist() == [2.0, -np.inf]


@given(st.lists(pools(), min_size=1, max_size=6))
def test_mean_scores_are_those_of_the_winning_paths_read_literally(table):
    """Pools of every size together, single winning paths and pools without an answer among them; to twelve places."""
    answers, scores = ([[path[at] for path in pool] for pool in table] for at in (0, 1))
    votes = dm.vote(answers, scores, weight=dm.uniform(), tie_break=dm.mean_score())
    for pool, winner, secondary in zip(table, votes.answer, votes.key[:, 1], strict=True):
        won = [Fraction(score) for answer, score in pool if winner is not None and answer == winner]
        assert secondary == (round(float(sum(won) / len(won)), 12) if won else -np.inf)


def test_means_that_are_equal_are_equal_to_the_last_bit_however_their_sums_round():
    scores = [[0.1, 0.2, 0.3], [0.2, 0.2, 0.2], [0.3, 0.2, 0.1], [0.6, 0.0, 0.0]]
    assert len({np.mean(row) for row in np.array(scores)}) > 1  # floats alone tell them apart
    votes = dm.vote([["a", "a", "a"]] * 4, scores, weight=dm.uniform(), tie_break=dm.mean_score())
    assert votes.key[:, 1].tolist() == [0.2] * 4
    policy = dm.calibrate(votes, [False, True, True, True], alpha=0.25)
    assert policy.point().threshold_key == (1.0, 0.2)
    for row in scores:  # all tie with the threshold, and none is above it
        assert policy.decide(["a", "a", "a"], row).abstained


def test_jitter_depends_on_the_question_and_the_seed_alone():
    questions = [f"What is {row} + {row}?" for row in range(2000)]
    one = dm.vote([["a"]] * 2000, tie_break=dm.jitter(1), questions=questions, ids=range(2000))
    other = dm.vote([["a", "b"]] * 2000, tie_break=dm.jitter(1), questions=questions[::-1], ids=range(5000, 7000))
    np.testing.assert_array_equal(one.key[:, 1], other.key[:, 1][::-1])
    assert len(set(one.key[:, 1].tolist())) == 2000
    assert not np.array_equal(
        one.key[:, 1], dm.vote([["a"]] * 2000, tie_break=dm.jitter(2), questions=questions).key[:, 1]
    )
    spaced = dm.vote([["a"]], tie_break=dm.jitter(1), questions=["  What is\n0 + 0? "])
    assert spaced.key[:, 1][0] == one.key[:, 1][0]


def test_without_a_question_jitter_depends_on_the_id_and_with_neither_there_is_none_and_that_is_said():
    mixed = dm.vote([["a"]] * 3, tie_break=dm.jitter(1), questions=["Why?", None, " "], ids=["x", "y", "z"])
    by_id = dm.vote([["a"]] * 3, tie_break=dm.jitter(1), ids=["x", "y", "z"])
    assert mixed.key[:, 1][0] != by_id.key[:, 1][0]
    assert mixed.key[:, 1][1:].tolist() == by_id.key[:, 1][1:].tolist()
    with pytest.warns(NoJitterWarning, match="1 pools have neither a question nor an id"):
        some = dm.vote([["a"]] * 3, tie_break=dm.jitter(1), questions=["Why?", None, "How?"])
    assert some.key[:, 1][0] >= 0
    assert some.key[:, 1][1] < 0  # last among its equals, so never answered where another is not


def test_jitter_without_questions_depends_on_the_id_and_the_seed_alone():
    ids = [f"q{i}" for i in range(2000)]
    one = dm.vote([["a"]] * 2000, tie_break=dm.jitter(1), ids=ids)
    back = dm.vote([["a"]] * 2000, tie_break=dm.jitter(1), ids=ids[::-1])
    np.testing.assert_array_equal(one.key[:, 1], back.key[:, 1][::-1])
    assert not np.array_equal(one.key[:, 1], dm.vote([["a"]] * 2000, tie_break=dm.jitter(2), ids=ids).key[:, 1])
    assert one.key[:, 1].min() >= 0
    assert one.key[:, 1].max() < 1
    assert abs(one.key[:, 1].mean() - 0.5) < 4 * np.sqrt(1 / 12 / 2000)


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda: dm.vote([[A, B]], [[1.0, float("nan")]]), r"finite; pool 0 has nan at path 1"),
        (lambda: dm.vote([[A], [A]], [[1.0], [float("inf")]]), r"finite; pool 1 has inf at path 0"),
        (lambda: dm.vote([[A, B]], [[1.0]]), r"the shape of answers, \(1, 2\), got \(1, 1\)"),
        (lambda: dm.vote([[A, B], [A]], np.ones((2, 2))), r"\(2, 2\) with pools of different size, got \(2, 2\)"),
        (lambda: dm.vote([[A, B], [A]], [[1.0, 2.0], [1.0, 2.0]]), r"one number per path"),
        (lambda: dm.vote([[A, B]], [["x", "y"]]), r"scores must be numbers"),
        (lambda: dm.vote([[A, B]], [[-1.0, 1.0]], weight=dm.linear()), r"linear weights.*pool_minmax or rank"),
        (lambda: dm.vote([[A, B]], weight=dm.exponential()), r"exponential weights need scores"),
        (lambda: dm.exponential(0), r"beta must be"),
        (lambda: dm.exponential(float("nan")), r"beta must be"),
        (lambda: dm.vote([]), r"at least one pool"),
        (lambda: dm.vote([[A], []]), r"pool 1 has none"),
        (lambda: dm.vote(np.empty((0, 4), dtype=int)), r"at least one pool"),
        (lambda: dm.vote([[["nested"]]]), r"a string, a number or None"),
        (lambda: dm.vote([[object()]]), r"a string, a number or None"),
        (lambda: dm.vote(["abc"]), r"each pool must be a sequence"),
        (lambda: dm.vote([[A], [B]], ids=["x"]), r"ids must name each of the 2 pools, got 1"),
        (lambda: dm.vote([[A], [B]], ids=["x", "x"]), r"ids must differ; 'x'"),
        (lambda: dm.vote([[A], [B], [C]], ids=["x", "y", "y"]), r"ids must differ; 'y'"),
        (lambda: dm.vote([[A]], tie_break=dm.mean_score()), r"mean_score needs scores"),
        (lambda: dm.vote([[A]], tie_break=dm.jitter(1), questions=["a", "b"]), r"one entry per pool, 1 of them, got 2"),
        (lambda: dm.vote([[A]], tie_break=[1.0, 2.0]), r"one number per pool"),
        (lambda: dm.vote([[A]], tie_break=[float("nan")]), r"tie_break must be finite; pool 0"),
        (lambda: dm.vote([[A, B]], [[1e308, -1e308]], normaliser=pool_z), r"pool_z overflows"),
        (lambda: dm.vote([[A, B]], [[1e308, -1e308]], normaliser=pool_minmax), r"pool_minmax overflows"),
        (lambda: dm.vote(np.array([[2**63]], dtype=np.uint64)), r"below 2\*\*63"),
        (lambda: dm.vote(np.array([[2**63 - 1, 5]])), r"below 2\*\*63"),
        (lambda: dm.vote(np.ma.array([[1, 2]], mask=[[True, False]])), r"masked array"),
        (lambda: dm.vote([[A]], np.ma.array([[1.0]])), r"^scores must not be a masked array"),
        (lambda: dm.vote([[A, B]], np.array([[True, False]])), r"look like labels"),
        (lambda: dm.vote([[A]], [[10**400]]), r"scores must be numbers"),
        (lambda: dm.vote([[A]], [[1.0]], weight="linear"), r"weight must be uniform\(\)"),
        (lambda: dm.vote([[A]], [[1.0]], normaliser="pool_z"), r"normaliser must be one of"),
        (lambda: dm.vote([[A]], tie_break="x"), r"unknown tie-break 'x'"),
        (lambda: dm.vote([[A]], tie_break=object()), r"tie_break must be"),
        (lambda: dm.vote([[A]], tie_break="none,jitter:1"), r"nothing comes behind jitter or `none`"),
        (lambda: dm.vote([[A]], tie_break=("jitter:1", "none", "jitter:2")), r"nothing comes behind jitter or `none`"),
        (lambda: dm.vote([[A]], tie_break=dm.mean_score("judge")), r"needs 'judge' of every path"),
        (lambda: dm.vote([[A]], tie_break="mean_score:j", columns={"j": [[1, 2]]}), r"j must hold one number per path"),
        (lambda: dm.vote(None), r"answers must be"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, rule):
    with pytest.raises(InvalidValue, match=rule):
        call()


def test_votes_without_jitter_cannot_calibrate_for_others_would_pass_them_by_it():
    rng = np.random.default_rng(1)
    right = rng.random(200) < 0.7
    with pytest.warns(NoJitterWarning):
        votes = dm.vote([["a", "a"]] * 200, tie_break=dm.jitter(0))
    for use in (dm.calibrate, dm.evaluate):
        with pytest.raises(InvalidValue, match="200 of 200 calibration votes have neither a question nor an id") as no:
            use(votes, right, alpha=0.1)
        assert no.value.remedy == "give {questions} or {ids} when voting, or break ties otherwise"
    named = dm.vote([["a", "a"]] * 200, tie_break=dm.jitter(0), ids=range(200))
    policy = dm.calibrate(named, right, alpha=0.1)
    nameless = policy.decide(["a", "a"])  # the harmless way round: it comes last among its equals
    assert nameless.abstained
    assert "It has no jitter" in nameless.explanation


@pytest.mark.parametrize("paths", [2, 3, 5, 8])
def test_every_pool_of_a_large_table_full_of_ties_votes_as_the_definition_says(paths):
    """Winner, confidence, tally and support of each row, in fractions; weights 0 to 3, so every tie rule is met."""
    rng = np.random.default_rng(paths)
    codes, scores = rng.integers(-1, 4, (600, paths)), rng.integers(0, 4, (600, paths))
    scores[scores.max(axis=1) == 0, 0] = 1
    keyed = [[None if code < 0 else "abcd"[code] for code in row] for row in codes.tolist()]
    for answers, nothing in ((codes, -1), (keyed, None)):
        votes = dm.vote(answers, scores, weight=dm.linear())
        for row, pool in enumerate(codes.tolist() if answers is codes else keyed):
            weights = [Fraction(int(score)) for score in scores[row]]
            literal = literal_vote([None if answer in (-1, None) else answer for answer in pool], weights)
            winner = nothing if literal.answer is None else literal.answer
            assert votes.answer[row] == winner
            assert votes.confidence[row] == pytest.approx(float(literal.confidence), abs=1e-12)
            assert votes.unanimous[row] == (len(set(pool)) == 1 and winner == pool[0] and winner != nothing)
            largest = max(weights)
            vote = votes[row]
            assert vote.tally == pytest.approx({a: float(v / largest) for a, v in literal.tally.items()}, abs=1e-12)
            assert vote.support == {answer: pool.count(answer) for answer in literal.tally}
            assert not vote.tally or next(iter(vote.tally)) == winner  # the winner first, ties included


def test_linear_weights_of_one_pool_do_not_depend_on_the_others():
    """A pool of tiny scores beside one of large ones: scaled by the table's largest, it would round to nothing."""
    votes = dm.vote([[A, B, B]] * 2, [[3e-30, 1e-30, 1e-30], [1.0, 2.0, 3.0]], weight=dm.linear())
    assert votes.answer.tolist() == [A, B]
    assert votes.confidence.tolist() == [pytest.approx(0.6), pytest.approx(5 / 6)]
    assert dm.uniform()(np.array([[0.3, 7.0]])).tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("hold", [np.array, deque, iter, lambda pool: dict.fromkeys(pool).keys()])
def test_a_pool_may_be_held_in_anything_that_can_be_gone_through(hold):
    for pool, winner in ((["x", "y"], "x"), ([7, 3], 3)):
        votes = dm.vote([hold(pool), hold(pool)])
        assert votes.answer.tolist() == [winner] * 2
        assert [type(answer) for answer in votes.answer] == [type(winner)] * 2  # as they were given, not numpy's
    with pytest.raises(InvalidValue, match="each pool must be a sequence of answers; pool 1 is 5"):
        dm.vote([hold(["x"]), 5])


def test_votes_are_counted_from_either_end_and_no_further():
    votes = dm.vote([["a"], ["b"]])
    assert (votes[-2], votes[-1]) == (votes[0], votes[1])
    for row in (2, -3):
        with pytest.raises(IndexError, match=f"vote {row} of 2"):
            votes[row]


def test_the_record_of_a_vote_holds_plain_values():
    vote = dm.vote(np.array([[2, 2, -1]]), np.ones((1, 3)), tie_break=dm.mean_score())[0]
    assert [type(value) for value in (vote.answer, vote.confidence, vote.unanimous, vote.key, vote.n_paths)] == [
        int, float, bool, tuple, int,
    ]  # fmt: skip
    assert [type(value) for value in vote.key] == [float, float]


def test_the_columns_of_votes_are_arrays_of_their_kind():
    votes = dm.vote([["a", "a"], ["a", "b"]], tie_break=[0, 1])
    assert (votes.unanimous.dtype, votes.confidence.dtype, votes.key.dtype) == (bool, float, float)
    assert votes.answer[votes.unanimous].tolist() == ["a"]


def test_tallies_and_supports_are_those_of_each_vote():
    votes = dm.vote([["b", "a", "a"], ["c", None]], [[2.0, 1.0, 0.0], [0.0, 1.0]], weight=dm.linear())
    assert votes.tally == [vote.tally for vote in votes] == [{"b": 1.0, "a": 0.5}, {"c": 0.0}]
    assert votes.support == [vote.support for vote in votes] == [{"b": 1, "a": 2}, {"c": 1}]


def test_a_warning_points_at_the_line_that_votes():
    with pytest.warns(NoJitterWarning) as told:
        dm.vote([["a"]], tie_break=dm.jitter(1))
    with pytest.warns(NoJitterWarning) as told_again:
        vote_again(Recipe(key=(Share(), dm.jitter(1))), [["a"]])
    assert [warning.filename for warning in (*told, *told_again)] == [__file__] * 2


def test_an_offending_score_is_named_by_its_pool_whatever_the_sizes():
    sizes = [1, 2, 3, 2, 1, 2]
    answers = [["a"] * size for size in sizes]
    for pool, size in enumerate(sizes):
        scores = [[0.5] * size for size in sizes]
        scores[pool][-1] = float("inf")
        with pytest.raises(InvalidValue, match=f"pool {pool} has inf at path {size - 1}"):
            dm.vote(answers, scores)
    scores = [[0.5] * size for size in sizes]
    scores[3] = [1e308, -1e308]
    with pytest.raises(InvalidValue, match=r"pool_z overflows on the scores of pool 3"):
        dm.vote(answers, scores, normaliser=pool_z)
    with pytest.raises(InvalidValue, match=r"tie_break must be finite; pool 1 has inf"):
        dm.vote([["a"]] * 3, tie_break=[0.0, float("inf"), 1.0])


def test_a_recipe_takes_codes_for_codes_and_keys_for_keys_and_says_which_it_met():
    coded, keyed = Recipe(coded=True), Recipe()
    listed = vote_again(coded, [[-1, 2, 2], [-1, -1, 0]])
    assert listed.answer.tolist() == [2, 0]
    assert listed.confidence.tolist() == [round(2 / 3, 12), round(1 / 3, 12)]  # −1 is no answer, in lists too
    assert [vote_again(recipe, answers).description.vote["answers"] for recipe, answers in (
        (coded, [[1, 2]]), (coded, [["a", "b"]]), (keyed, [["a", "b"]]), (keyed, np.array([[1, 2]])),
    )] == ["codes", "keys", "keys", "codes"]  # fmt: skip
    assert vote_again(coded, [["a", None]]).has_answer.tolist() == [True]


def test_pools_voted_on_again_draw_their_jitter_from_their_questions():
    asked = [f"Question {row}" for row in range(20)]
    digests = {"questions": list(map(question_digest, asked))}
    digests["folded"] = [question_digest(question, fold=True) for question in asked]
    again = vote_again(Recipe(key=(Share(), dm.jitter(3))), [["a"]] * 20, ids=list(map(str, range(20))), **digests)
    first = dm.vote([["a"]] * 20, tie_break=dm.jitter(3), questions=[f"Question {row}" for row in range(20)])
    assert again.key[:, 1].tolist() == first.key[:, 1].tolist()
    assert list(again.questions) == list(first.questions) == digests["questions"]


def test_jitter_is_the_same_in_every_version():
    """What a policy was calibrated with must be drawn again years later: the numbers themselves are the promise."""
    asked = {"questions": ["What is 2 + 2?", None], "ids": ["x", "y"]}
    votes = [dm.vote([["a"]] * 2, tie_break=name, **asked) for name in ("jitter@2:7", "jitter@3:7", dm.jitter(7))]
    assert votes[0].key[:, 1].tolist() == [0.9698166731513501, 0.540562830184791]
    assert votes[1].key[:, 1].tolist() == votes[2].key[:, 1].tolist() == [0.012547640977101593, 0.540562830184791]


@pytest.mark.parametrize("highest", [126, 127, 128, 254, 255, 32766, 32767, 32768, 2**31 - 2, 2**31 - 1, 2**63 - 2])
@pytest.mark.parametrize("lowest", [-1, -2, -129, -200, -32769, -(2**31) - 7])
def test_codes_at_the_ends_of_every_integer_type_are_told_apart(highest, lowest):
    """As an answer, tied with another, and beside a code far below zero, which is no answer whatever it wraps to."""
    answers = np.array([[highest, highest, 3, lowest], [highest, lowest, highest - 1, lowest], [lowest] * 4])
    for votes in (dm.vote(answers), dm.vote(answers, np.ones((3, 4)))):
        assert votes.answer.tolist() == [highest, highest - 1, -1]
        assert votes.confidence.tolist() == [0.5, 0.25, 0.0]


@pytest.mark.parametrize("paths", [126, 127, 128, 254, 255, 256, 257])
def test_pools_as_wide_as_a_byte_can_count_vote_as_the_definition_says(paths):
    rng = np.random.default_rng(paths)
    codes = rng.integers(-1, 3, (20, paths))
    codes[0], codes[1] = 0, -1
    codes[2, :-1], codes[2, -1] = -1, 2  # the last path alone has an answer
    scores = rng.integers(0, 3, (20, paths)) + 1
    for how in ({}, {"scores": scores, "weight": dm.linear()}):
        votes = dm.vote(codes, **how)
        for row, pool in enumerate(codes.tolist()):
            weights = [Fraction(int(score)) for score in (scores[row] if how else np.ones(paths))]
            literal = literal_vote([None if code < 0 else code for code in pool], weights)
            assert votes.answer[row] == (-1 if literal.answer is None else literal.answer)
            assert votes.confidence[row] == pytest.approx(float(literal.confidence), abs=1e-12)
