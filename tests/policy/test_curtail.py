"""Fewer paths, the same decision: what is called certain after some paths is what all of them decide."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import demur as dm
from demur.errors import InfeasibleWarning, InvalidValue, PipelineMismatch
from demur.policy.curtail import Curtailment, never_early, savings_note
from demur.records import Early

PATHS = 8
ALPHAS = [0.02, 0.05, 0.1, 0.2, 0.3, 0.45]
UNIT = (0.0, 1.0)
WAYS = {
    "majority": {},
    "majority, jitter": {"tie_break": "jitter:3"},
    "majority, no tie-break": {"tie_break": "none"},
    "majority, ties by mean score": {"weight": dm.uniform(), "tie_break": "mean_score"},
    "exponential": {"weight": dm.exponential(2.0)},
    "linear": {"weight": dm.linear()},
    "gentle pool_z": {"weight": dm.exponential(0.15), "normaliser": dm.normalisers.pool_z},
    "pool_z": {"normaliser": dm.normalisers.pool_z},
    "pool_minmax": {"normaliser": dm.normalisers.pool_minmax},
    "linear pool_minmax": {"weight": dm.linear(), "normaliser": dm.normalisers.pool_minmax},
    "rank": {"normaliser": dm.normalisers.rank},
    "linear rank": {"weight": dm.linear(), "normaliser": dm.normalisers.rank},
    "fixed_affine": {"normaliser": dm.normalisers.fixed_affine(0.2, 0.4)},
    "fixed_sigmoid": {"normaliser": dm.normalisers.fixed_sigmoid(0.5, 0.2)},
    "learned": {"confidence": dm.Learned(-1.0, {"confidence": 4.0, "margin": 1.0})},
}


def simulated(n, seed, *, n_paths=PATHS, coarse=True):
    """Pools with missing answers and, where `coarse`, many equal scores; and their questions and gold."""
    table = dm.simulate_pools(n, n_paths=n_paths, seed=seed, missing=0.1, n_answers=4)
    answers = [[None if code < 0 else f"n:{code}" for code in row] for row in table.answers.tolist()]
    scores = 1 / (1 + np.exp(-table.scores))
    scores = np.round(scores * 4) / 4 if coarse else scores
    questions = [f"What is {seed} to the {row}?" for row in range(n)]
    return answers, scores.tolist(), questions, [f"n:{gold}" for gold in table.gold]


def calibrated(how, *, seed=1, n=300, **kind):
    answers, scores, questions, gold = simulated(n, seed, **kind)
    wants_scores = not (how.keys() <= {"tie_break", "confidence"} and how.get("tie_break") != "mean_score")
    votes = dm.vote(answers, scores if wants_scores else None, questions=questions, **how)
    right = [answer == truth for answer, truth in zip(votes.answer, gold, strict=True)]
    return dm.calibrate(votes, right, alpha=ALPHAS), wants_scores


def agrees(policy, answers, scores, *, within=UNIT, **known):
    """How many paths settle a decision, having seen that each prefix which does says what the whole pool says."""
    whole = policy.decide_keys(answers, scores, **known)
    curtailment = Curtailment(policy, n_paths=len(answers), within=within, **known)
    settled = len(answers)
    for drawn in range(len(answers) - 1, 0, -1):
        some = None if scores is None else scores[:drawn]
        early = curtailment.early(answers[:drawn], some)
        if early is None:
            continue
        settled = drawn
        assert early.answer == whole.answer
        assert whole.confidence <= early.most
        assert whole.abstained or whole.confidence >= early.least
        decision = curtailment.decision(early, answers[:drawn], some)
        assert decision.answer == whole.answer
        assert decision.threshold_key == whole.threshold_key
        assert decision.n_paths == drawn
        if not decision.abstained:
            assert decision.key > decision.threshold_key
            assert decision.p_value >= whole.p_value
    return settled


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("coarse", [True, False], ids=["many ties", "few ties"])
def test_every_prefix_that_settles_a_decision_says_what_the_whole_pool_says(name, coarse):
    policy, scored = calibrated(WAYS[name], coarse=coarse)
    answers, scores, questions, _ = simulated(120, 7, coarse=coarse)
    paths = []
    for alpha in ALPHAS:
        for pool, numbers, question in zip(answers, scores, questions, strict=True):
            known = {"alpha": alpha, "question": question}
            paths.append(agrees(policy, pool, numbers if scored else None, **known))
    if name.startswith("majority"):
        assert np.mean(paths) < 0.9 * PATHS  # power: going on to the end always would fail
    if name == "learned":  # nothing is certain but who wins, where everything is answered
        assert set(paths[: 3 * 120]) == {PATHS}


@given(
    pool=st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from([0.0, 0.3, 0.5, 1.0])),
                  min_size=PATHS, max_size=PATHS),
    name=st.sampled_from([name for name in WAYS if name != "learned"]),
    alpha=st.sampled_from(ALPHAS),
)  # fmt: skip
def test_any_pool_is_decided_alike_by_every_wave(pool, name, alpha):
    policy, scored = (
        POLICIES.setdefault(name, None) or POLICIES.update({name: calibrated(WAYS[name])}) or POLICIES[name]
    )
    answers, scores = map(list, zip(*pool, strict=True))
    agrees(policy, answers, scores if scored else None, alpha=alpha, question=f"{pool}")


POLICIES: dict[str, tuple[dm.Policy, bool]] = {}


def in_waves(curtailment, answers, size):
    """The decision after the first wave that settles it."""
    for drawn in range(size, len(answers), size):
        if (early := curtailment.early(answers[:drawn])) is not None:
            return early.answer, drawn
    return None


def test_waves_of_every_size_bring_the_same_answers_and_small_ones_the_fewest_paths():
    policy, _ = calibrated(WAYS["majority, jitter"])
    answers, _, questions, _ = simulated(200, 11)
    used = dict.fromkeys(range(1, PATHS + 1), 0)
    for pool, question in zip(answers, questions, strict=True):
        whole = policy.decide_keys(pool, question=question, alpha=0.1).answer
        curtailment = Curtailment(policy, question=question, alpha=0.1)
        for size in used:
            answer, drawn = in_waves(curtailment, pool, size) or (whole, PATHS)
            assert answer == whole
            used[size] += drawn
    assert used[1] < used[2] < used[4] < used[8] == 200 * PATHS


def test_a_rule_that_is_too_greedy_differs():
    """The control: stopping where the vote so far is above the threshold, or cannot be lost, is another decision."""
    policy, _ = calibrated(WAYS["majority, jitter"])
    answers, _, questions, _ = simulated(300, 11)
    threshold, differ = policy.point(0.1).threshold, 0
    for pool, question in zip(answers, questions, strict=True):
        whole = policy.decide_keys(pool, question=question, alpha=0.1)
        so_far = dm.vote([pool[:5]], questions=[question])[0]
        differ += (so_far.answer if so_far.confidence > threshold else None) != whole.answer
    assert differ > 20


def test_by_hand():
    """λ = 0.5 of 8 paths, no tie-break: 5 votes answer; 4 do not, and neither does what can no longer have 5."""
    votes = dm.vote([["a"] * 4 + ["b"] * 4] * 50 + [["a"] * 8] * 50, tie_break="none")
    policy = dm.calibrate(votes, [False] * 50 + [True] * 50, alpha=0.1)
    assert policy.threshold == 0.5
    certain = Curtailment(policy)
    assert certain.early(["a"] * 4) is None
    assert certain.early(["a"] * 5) == Early("a", 5, 8, 0.625, 1.0)
    assert certain.early(["a", "b", "c", "a", "b"]) is None
    assert certain.early(["a", "b", "c", "a", "b", "c"]) == Early(None, 6, 8, 0.0, 0.5)
    assert certain.early([None] * 4) == Early(None, 4, 8, 0.0, 0.5)
    assert certain.early(["a"] * 8) is None  # then the pool decides
    answered = certain.decision(certain.early(["a"] * 5), ["a"] * 5)
    assert answered.explanation.startswith(
        "Answered after 5 of 8 paths: whatever the other 3 say, this answer wins, and its confidence, at least 0.625, "
        "is above the threshold 0.5. "
    )
    assert (answered.confidence, dict(answered.support), answered.n_paths) == (0.625, {"a": 5}, 5)
    some = ["a", "b", "c", "a", "b", "c", "d"]
    abstained = certain.decision(certain.early(some), some)
    assert abstained.explanation.startswith(
        "Abstained after 7 of 8 paths: whatever the last path says, the winner's confidence, at most 0.375, is not "
        "above the threshold 0.5. "
    )


def test_where_the_threshold_may_be_met_exactly_a_draw_that_is_known_beforehand_decides():
    ties = [["a"] * 4 + ["b"] * 4] * 100
    questions = [f"q{row}" for row in range(100)]
    votes = dm.vote(ties + [["a"] * 8] * 100, questions=questions + [f"r{row}" for row in range(100)])
    policy = dm.calibrate(votes, [row % 2 == 0 for row in range(100)] + [True] * 100, alpha=0.1)
    threshold = policy.point().threshold_key
    assert threshold[0] == 0.5
    above = next(question for question in (f"x{k}" for k in range(50)) if drawn(policy, question) > threshold[1])
    below = next(question for question in (f"x{k}" for k in range(50)) if drawn(policy, question) < threshold[1])
    pool = ["a"] * 4 + ["b"] * 3
    assert Curtailment(policy, question=above).early(["b", "a", "b", "a", "b", "a", "b"]) is None  # who wins is open
    lucky, unlucky = Curtailment(policy, question=above), Curtailment(policy, question=below)
    assert lucky.early(pool).answer == policy.decide_keys([*pool, "b"], question=above).answer == "a"
    assert (
        "is not below the threshold, and should the two tie, its jitter"
        in lucky.decision(lucky.early(pool), pool).explanation
    )
    pool = ["a", "b"] * 3 + [None]
    assert unlucky.early(pool).answer is None
    told = unlucky.decision(unlucky.early(pool), pool).explanation
    assert (
        "the winner's confidence, at most 0.5, is not above the threshold, and should the two tie, its jitter" in told
    )


def drawn(policy, question):
    return policy.decide_keys(["a"] * 8, question=question).key[1]


def test_a_tie_that_a_score_breaks_is_open_until_the_last_path():
    votes = dm.vote(
        [["a"] * 4 + ["b"] * 4] * 60 + [["a"] * 8] * 60, [[0.1 * (row % 7)] * 8 for row in range(120)],
        weight=dm.uniform(), tie_break="mean_score,none",
    )  # fmt: skip
    policy = dm.calibrate(votes, [row % 2 == 0 for row in range(60)] + [True] * 60, alpha=0.1)
    assert policy.threshold == 0.5
    assert policy.point().threshold_key[1] > 0
    certain = Curtailment(policy)
    assert certain.early(["a"] * 4 + ["b"] * 3, [0.9] * 7) is None
    assert certain.early(["a"] * 5 + ["b"], [0.0] * 6).answer == "a"
    assert certain.early(["a"] * 3 + ["b"] * 3 + [None] * 2, [0.0] * 8) is None
    assert certain.early(["a"] * 3 + ["b"] * 2 + [None] * 2, [0.0] * 7) is None  # it may still tie
    assert certain.early(["a"] * 2 + ["b"] * 2 + [None] * 3, [0.0] * 7).answer is None


def test_questions_that_are_never_answered_are_settled_by_the_first_path():
    with pytest.warns(InfeasibleWarning):
        policy, _ = calibrated(WAYS["majority, jitter"], n=30)
    early = Curtailment(policy, alpha=0.02, question="q").early(["a"])
    assert early.answer is None
    assert (
        Curtailment(policy, alpha=0.02, question="q")
        .decision(early, ["a"])
        .explanation.startswith("Abstained: 30 calibration questions are too few")
    )


def test_a_gate_closes_before_a_path_is_drawn_and_says_so():
    asked = [f"What is {a} plus {b}?" for a in range(20) for b in range(20)]
    answers, _, _, gold = simulated(300, 1)
    votes = dm.vote(answers, questions=asked[:300], gate=dm.OutlierGate.fit(asked[300:], level=0.05))
    right = [answer == truth for answer, truth in zip(votes.answer, gold, strict=True)]
    policy = dm.calibrate(votes, right, alpha=0.2)
    strange = "Wherefore art thou Romeo, and who sings in Verona tonight?"
    certain = Curtailment(policy, question=strange)
    early = certain.early(["n:0"])
    assert early.answer is None
    assert "unlike the reference questions" in certain.decision(early, ["n:0"]).explanation
    for pool in answers[:40]:
        agrees(policy, pool, None, question=strange)
        agrees(policy, pool, None, question=asked[5])


def test_a_question_unlike_the_calibration_ones_is_settled_by_the_first_path():
    asked = [f"What is {a} plus {b}?" for a in range(20) for b in range(20)]
    answers, _, _, gold = simulated(400, 1)
    votes = dm.vote(answers, questions=asked)
    right = [answer == truth for answer, truth in zip(votes.answer, gold, strict=True)]
    policy = dm.calibrate(votes, right, alpha=0.2, outlier_level=0.05)
    strange = "Wherefore art thou Romeo, and who sings in Verona tonight?"
    certain = Curtailment(policy, question=strange)
    assert "unlike the calibration questions" in certain.decision(certain.early(["a"]), ["a"]).explanation
    for pool in answers[:60]:
        assert agrees(policy, pool, None, question=strange) == 1
        agrees(policy, pool, None, question=asked[7])


def test_groups_weights_and_sizes_have_thresholds_of_their_own():
    answers, _, questions, gold = simulated(400, 1)
    groups = ["easy" if row % 3 else "hard" for row in range(400)]
    rng = random.Random(2)
    votes = dm.vote(answers, questions=questions, groups=groups, importance=[rng.choice([1, 2, 5]) for _ in answers])
    right = [answer == truth for answer, truth in zip(votes.answer, gold, strict=True)]
    promises = [dm.Grouped(dm.Marginal(0.1)), dm.Shifted(dm.Marginal(0.1)), dm.HighProbability(0.1, delta=0.1)]
    policy = dm.calibrate(
        votes, right, guarantee=[*promises, dm.Selective(0.2, delta=0.1), dm.Simultaneous(0.1, delta=0.1)]
    )
    for pool, question in zip(*simulated(60, 9)[::2], strict=False):
        for rule in policy.points:
            for weight in (0.5, 1, 5, 1e6):
                known = {"alpha": rule.alpha, "guarantee": rule.guarantee.name, "question": question}
                group = rng.choice(["easy", "hard", "unknown", ("easy", "hard")])
                agrees(policy, pool, None, group=group, weight=weight, **known)
        agrees(policy, pool, None, alpha=0.17, guarantee="simultaneous", question=question)


def test_pools_of_several_sizes():
    small, _, asked, gold = simulated(200, 1, n_paths=5)
    large, _, others, more = simulated(200, 2, n_paths=9)
    votes = dm.vote(small + large, questions=asked + others)
    right = [answer == truth for answer, truth in zip(votes.answer, gold + more, strict=True)]
    policy = dm.calibrate(votes, right, alpha=[0.1, 0.3])
    for n_paths in (5, 9):
        for pool, question in zip(*simulated(80, 5, n_paths=n_paths)[::2], strict=False):
            agrees(policy, pool, None, alpha=0.1, question=question)
            agrees(policy, pool, None, alpha=0.3, question=question)
    with pytest.raises(PipelineMismatch, match="n_paths is 5 or 9 in the policy, 7 here"):
        Curtailment(policy, n_paths=7, alpha=0.1)


def test_answer_sets_need_the_whole_pool_so_that_only_answers_stop():
    policy = dm.calibrate(dm_voted(500, 1), alpha=0.1, answer_sets=dm.AnswerSets(0.2, share=0.4))
    outcomes = set()
    for pool in dm_voted(150, 2).votes._answers.pools:
        certain = Curtailment(policy, question="q")
        for size in range(1, 12):
            early = certain.early(pool[:size])
            if early is not None:
                outcomes.add(early.answer is None)
                assert policy.decide_keys(pool, question="q").answer == early.answer
    assert outcomes == {False}


def dm_voted(n, seed):
    from demur.pools.simulated import simulate_pools

    return dm.vote_pools(dm.PoolSource(simulate_pools(n, n_paths=12, seed=seed).pools()))


def test_a_path_without_a_score_settles_a_pool_that_is_dropped_for_it_and_may_still_come():
    policy, _ = calibrated(WAYS["exponential"])
    dropping = type(policy)(**{**vars_of(policy), "upstream": with_unscored(policy, "drop")})
    scores = [0.9] * 7
    assert Curtailment(policy, within=UNIT, alpha=0.45, question="q").early(["a"] * 7, scores).answer == "a"
    careful = Curtailment(dropping, within=UNIT, alpha=0.45, question="q")
    assert careful.early(["a"] * 7, scores) is None
    assert Curtailment(dropping, within=UNIT, alpha=0.45, question="q", all_scored=True).early(["a"] * 7, scores)
    lacking = careful.early(["a"] * 3, [0.9, None, 0.9])
    assert lacking.answer is None
    told = careful.decision(lacking, ["a"] * 3, [0.9, None, 0.9])
    assert told.explanation.startswith("Abstained: a path of this pool has no score.")
    stands_in = type(policy)(**{**vars_of(policy), "upstream": with_unscored(policy, 3.0)})
    assert Curtailment(stands_in, within=UNIT, alpha=0.45, question="q").early(["a"] * 7, scores) is None
    answers, numbers, questions, _ = simulated(60, 3)
    rng = random.Random(0)
    for pool, row, question in zip(answers, numbers, questions, strict=True):
        gaps = [None if rng.random() < 0.1 else score for score in row]
        agrees(dropping, pool, gaps, alpha=0.3, question=question)
        agrees(stands_in, pool, gaps, alpha=0.3, question=question)


def vars_of(policy):
    from dataclasses import fields

    return {field.name: getattr(policy, field.name) for field in fields(policy)}


def with_unscored(policy, value):
    from dataclasses import replace

    return replace(policy.upstream, score={**policy.upstream.score, "unscored": value})


@pytest.mark.parametrize(
    ("name", "within", "reason"),
    [
        ("majority", (-math.inf, math.inf), ""),
        ("majority, ties by mean score", (-math.inf, math.inf), ""),
        ("exponential", (-math.inf, math.inf), "exponential weights with the normaliser none have no bound"),
        ("exponential", UNIT, ""),
        ("pool_z", UNIT, "the normaliser pool_z moves all weights as paths come, and one more may weigh up to"),
        ("gentle pool_z", UNIT, ""),
        ("learned", UNIT, "the learned confidence looks at the whole pool"),
    ],
)
def test_where_nothing_can_be_saved_the_reason_is_told(name, within, reason):
    policy, _ = calibrated(WAYS[name])
    told = savings_note(policy, alpha=0.1, within=within)
    assert told.startswith(reason)
    assert bool(told) == bool(reason)


def test_a_score_that_looks_at_the_whole_pool_saves_nothing_where_it_makes_the_weights():
    policy, _ = calibrated(WAYS["rank"])
    assert never_early(policy, alpha=0.1, needs_whole_pool="self-consistency").startswith(
        "the score self-consistency looks at the whole pool"
    )
    ties, _ = calibrated(WAYS["majority, ties by mean score"])
    assert never_early(ties, alpha=0.1, needs_whole_pool="self-consistency") == ""


def test_a_tie_break_that_is_no_number_is_refused():
    votes = dm.vote([["a"] * 8, ["a", "b"] * 4] * 50, tie_break=np.linspace(0, 1, 100))
    policy = dm.calibrate(votes, [True, False] * 50, alpha=0.3)
    with pytest.raises(InvalidValue, match="tie_break must be a finite number"):
        Curtailment(policy, tie_break=math.nan)
    for value in (0.0, 0.5, 1.0):
        for pool in simulated(40, 4)[0]:
            agrees(policy, pool, None, tie_break=value)
