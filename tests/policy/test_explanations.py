"""What a policy tells people, word for word: of one decision, of a table of them, and of itself."""

from __future__ import annotations

import numpy as np
import pytest

import demur as dm
from demur.cli.ask import show
from demur.cli.decide import decision_line
from demur.errors import InfeasibleWarning
from demur.policy.explanations import NOT_PROMISED, comparison

PROMISE = (
    "On a new question exchangeable with the 40 calibration questions, the probability of answering it wrongly is at "
    "most 0.1, averaged over calibration sets."
)


def pool(for_a, of=10):
    return ["a"] * for_a + [f"other {path}" for path in range(of - for_a)]


@pytest.fixture(scope="module")
def ten():
    """Forty pools of ten paths: k = 4, and the fourth most confident error has seven votes of ten."""
    errors = [9, 8, 7, 7, 6, 5]
    bag = [(10, True)] * 20 + [(9, True)] * 14 + [(votes, False) for votes in errors]
    return dm.calibrate(dm.vote([pool(votes) for votes, _ in bag]), [right for _, right in bag], alpha=0.1)


def test_an_answer_and_an_abstention_word_for_word(ten):
    assert ten.threshold == 0.7
    assert ten.decide(pool(8)).explanation == (
        f"Answered: confidence 0.8 is above the threshold 0.7. {PROMISE} {NOT_PROMISED}"
    )
    assert ten.decide(pool(7)).explanation == (
        f"Abstained: confidence 0.7 is not above the threshold 0.7. {PROMISE} {NOT_PROMISED}"
    )
    assert ten.decide([None] * 10).explanation == f"Abstained: no path has an answer. {PROMISE}"


def test_a_p_value_of_just_alpha_agrees_with_the_answer():
    policy = dm.calibrate(dm.vote([pool(10)] * 18 + [pool(9)]), [True] * 18 + [False], alpha=0.1)
    decision = policy.decide(pool(9))
    assert (decision.answer, decision.p_value) == ("a", 0.1)  # one error of nineteen is allowed, and it is this one
    assert "alone would say otherwise" not in decision.explanation


def test_a_tie_with_the_threshold_word_for_word():
    column = np.linspace(0, 1, 30)
    policy = dm.calibrate(dm.vote([["a", "a"]] * 30, tie_break=column), column > 0.2, alpha=0.1)
    low, high = (policy.decide(["a", "a"], tie_break=value) for value in (0.01, 0.9))
    bound = policy.point().threshold_key[1]
    for decision, verdict in ((low, f"its column 0.01 is not above {bound:.4g}"), (high, "its column 0.9 is above")):
        assert f"confidence 1 ties with the threshold, and {verdict}" in decision.explanation
        assert decision.threshold_key == (1.0, bound)
    assert (low.key[1], high.key[1]) == (0.01, 0.9)


def test_the_p_value_that_says_otherwise_is_explained_by_the_name_of_the_promise():
    rng = np.random.default_rng(0)
    answers = [pool(k, of=40) for k in rng.integers(21, 41, 200)]
    policy = dm.calibrate(dm.vote(answers), rng.random(200) < 0.6, guarantee=dm.HighProbability(0.2, 0.05))
    decision = policy.decide(pool(int(40 * policy.threshold), of=40))
    assert (
        f"The p-value {decision.p_value:.4g} alone would say otherwise: it belongs to the marginal guarantee, and this "
        "policy holds the high-probability one."
    ) in decision.explanation


def test_shares_are_rounded_to_twelve_places(ten):
    thirds = dm.calibrate(dm.vote([["a", "a", "a"]] * 30), [True] * 30, alpha=0.1).decide(["a", "b", None])
    assert thirds.shares == {"a": 0.333333333333, "b": 0.333333333333}
    assert ten.decide(pool(10)).shares == {"a": 1.0}


@pytest.fixture(scope="module")
def three_sizes():
    """Pools of 4 and 8 paths, errors among which set thresholds of their own, and a few of 2 and 3."""
    bag = [(4, row % 5 > 0) for row in range(100)] + [(8, row % 10 > 0) for row in range(200)]
    bag += [(2, True)] * 3 + [(3, True)] * 2
    votes = dm.vote([["a"] * size for size, _ in bag], tie_break=np.linspace(0, 1, len(bag))[::-1])
    return dm.calibrate(votes, [right for _, right in bag], alpha=[0.05, 0.1])


def test_each_size_is_told_its_own_threshold(three_sizes):
    rule = three_sizes.point(0.1)
    assert set(rule.by_size) == {4}
    for size in (4, 8):
        key = rule.threshold_of(size)
        decision = three_sizes.decide(["a"] * size, alpha=0.1, tie_break=0.5)
        assert decision.threshold_key == key
        above = "above" if decision.key[1] > key[1] else "not above"
        assert f"its column 0.5 is {above} {key[1]:.4g}" in decision.explanation


def test_sizes_that_are_not_answered_are_told_of_a_table_and_of_each_of_its_pools(three_sizes):
    sizes = [8, 2, 3, 3, 5]
    votes = dm.vote([["a"] * size for size in sizes], tie_break=[0.999] * 5)
    decisions = three_sizes.decide_votes(votes, alpha=0.1)
    assert decisions.notes() == [
        "4 pools have 2, 3, 5 paths, which too few calibration pools have for alpha = 0.1: not answered; if paths are "
        "missing because sampling failed, sample again to draw the rest"
    ]
    for decision, size, seen in zip(list(decisions)[1:], sizes[1:], (3, 2, 2, 0), strict=True):
        assert f"this pool has {size} paths, and {seen} calibration pools had as many, where alpha = 0.1 needs 9" in (
            decision.explanation
        )


def test_the_summary_word_for_word(ten):
    expected = ten.forecast()
    assert ten.summary().split("\n") == [
        "40 calibration questions, vote accuracy 85.0 %",
        f"alpha 0.1 (marginal): {PROMISE}",
        f"  answers above 0.7: expect 90.0 % answered, {100 * expected.selective_accuracy_corrected:.1f} % of those "
        f"right (at least {100 * expected.accuracy_at_least:.1f} % with 95 % confidence), 7.3 % of all questions "
        "answered wrongly, 0.0 % right but withheld",
        "Ties leave 2.4 % of the 10.0 % that alpha = 0.1 allows unspent: 2 calibration votes share the confidence 0.7, "
        "and are answered together or not at all; a tie-break would tell them apart.",
    ]
    assert ten.size_note() == ""
    assert ten.size_warnings() == []


def test_the_summary_of_several_sizes_and_promises_tells_of_each(three_sizes):
    told = three_sizes.summary().split("\n")
    assert [line.split(":")[0] for line in told if line.startswith("alpha")] == [
        "alpha 0.05 (marginal)",
        "alpha 0.1 (marginal)",
    ]
    assert (
        told[-3]
        == "Paths per pool (pools): 2 (3), 3 (2), 4 (100), 8 (200). Each size has to pass its own threshold too."
    )
    for line, alpha, needed in ((told[-2], 0.05, 19), (told[-1], 0.1, 9)):
        assert line == (
            f"pools of 2, 3 paths are not answered at alpha = {alpha}: fewer than {needed} calibrated each; where "
            "paths are missing because sampling failed, sample again to draw the rest"
        )


def test_an_alpha_that_is_never_met_does_not_silence_the_others():
    votes = dm.vote([["a", "a"]] * 30)
    wanted = [dm.Marginal(0.01), dm.HighProbability(0.02, 0.1), dm.Marginal(0.1)]
    with pytest.warns(InfeasibleWarning):
        policy = dm.calibrate(votes, [True] * 15 + [False] * 15, guarantee=wanted)
    told = policy.summary().split("\n")
    assert told[2] == "  never answers: needs 99 calibration questions"
    assert told[3].startswith("alpha 0.02 (high probability): For all but a share 0.1")
    assert told[4] == "  never answers: needs 114 calibration questions"
    # All votes tie, and half of them are wrong: nothing is above the threshold, and no accuracy can be told.
    assert told[6] == (
        "  never answers: expect 0.0 % answered, – of those right (at least – with 95 % confidence), 0.0 % of all "
        "questions answered wrongly, 50.0 % right but withheld"
    )
    assert policy.size_warnings() == []


@pytest.mark.parametrize(
    ("key", "threshold", "told"),
    [
        ((0.9, 0.1), (0.8, 0.5), "c is above the threshold 0.80"),
        ((1.0, 0.7), (1.0, 0.5), "c ties with the threshold, and its jitter 0.70 is above 0.50"),
        ((1.0, 0.3), (1.0, 0.5), "c ties with the threshold, and its jitter 0.30 is not above 0.50"),
        ((1.0, 0.5), (1.0, 0.5), "c ties with the threshold, and its jitter 0.50 is not above 0.50"),
        ((1.0, 0.3), (1.0, np.inf), "c is not above the threshold 1.00"),
        ((0.0, 0.3), (0.0, np.inf), "c is not above the threshold 0.00"),
        ((0.7,), (0.7,), "c is not above the threshold 0.70"),
    ],
)
def test_what_decides_is_what_is_told(key, threshold, told):
    assert comparison("c", key, threshold, ["share", "jitter"], answered=key > threshold, form=".2f") == told


def test_a_question_that_is_asked_is_told_what_broke_its_tie(capsys):
    """Every unanimous vote has confidence 1: "1 is above the threshold 1" would be no reason."""
    ids = [f"q{row}" for row in range(100)]
    policy = dm.calibrate(dm.vote([["a", "a"]] * 100, ids=ids), np.arange(100) > 20, alpha=0.1)
    told = set()
    for row in range(40):
        decision = policy.decide(["a", "a"], id=f"new-{row}")
        show(decision_line(decision, policy.recipe.names))
        said = capsys.readouterr().out
        assert "confidence 1.000 ties with the threshold, and its jitter" in said
        assert ("is not above" in said) == decision.abstained
        told.add(decision.abstained)
    assert told == {True, False}


def test_a_question_that_a_gate_closes_is_not_told_that_its_confidence_is_too_low(capsys):
    words = ["how many pens are left", "how many coins are left", "who has the book", "where is the garden"]
    questions = [f"{words[row % 4]} {row}?" for row in range(80)]
    votes = dm.vote([["a"] * 4 if row % 7 else ["b", "b", "b", "c"] for row in range(80)], questions=questions)
    policy = dm.calibrate(votes, votes.answer == "a", alpha=0.1, outlier_level=0.1)
    decision = policy.decide_keys(["a"] * 4, question="zqx ∂∫ vkk wxq")
    show(decision_line(decision, policy.recipe.names))
    told = capsys.readouterr().out
    assert decision.key > decision.threshold_key
    assert "is not above the threshold" not in told
    assert "this question is unlike the calibration questions" in told
