"""What the report says of guarantees: each by itself, at every alpha, with its price; and of what ranks votes."""

from __future__ import annotations

import numpy as np
import pytest

import demur as dm
from demur.calibration import (
    Grouped,
    HighProbability,
    JudgeHighProbability,
    JudgeMarginal,
    Marginal,
    Selective,
    Simultaneous,
    Smoothed,
)
from demur.calibration.guarantee import without_infinity
from demur.errors import InvalidValue
from demur.policy.calibrate import calibrate
from demur.policy.explanations import UNLIKE
from demur.pools.fields import FieldChoice
from demur.pools.source import PoolSource, vote_pools
from demur.reports.facts import report_facts
from reports.test_facts import made, pools

SEVERAL = (Marginal(0.05), Marginal(0.1), HighProbability(0.1, 0.1), Selective(0.1, 0.1), Smoothed(0.1, seed=3))


def with_learned_key(n=450):
    """Votes led by a key that the first third fitted, and a policy that the second calibrated."""
    source = PoolSource(pools(n=n))
    voted = vote_pools(source, FieldChoice(score="s"))
    fit = dm.fit_learned(voted.take(np.arange(n // 3)))
    led = vote_pools(source, FieldChoice(score="s"), voted.votes.recipe.led_by(fit.key))
    policy = calibrate(led.take(np.arange(n // 3, 2 * n // 3)), alpha=[0.05, 0.1])
    return source, led, policy


def test_every_guarantee_of_a_policy_has_its_points():
    source, voted, policy = made(SEVERAL)
    facts = report_facts(source, voted, policy, title="x")
    told = [family["told"] for family in facts["families"]]
    assert told == ["marginal", "high probability, delta = 0.1", "selective, delta = 0.1", "smoothed"]
    assert [family["chosen"] for family in facts["families"]] == [[0.05, 0.1], [0.1], [0.1], [0.1]]
    assert {len([point for point in facts["points"] if point["family"] == at]) for at in range(4)} == {100}
    for rule in policy.points:
        (point,) = [
            point
            for point in facts["points"]
            if point["chosen"] and (point["alpha"], point["guarantee"]) == (rule.alpha, rule.guarantee.name)
        ]
        assert point["threshold"] == without_infinity(rule.threshold_key)
        assert point["promise"] == rule.promise
        assert point["answered"] == policy.forecast(rule.alpha, rule.guarantee.name).answered
    assert sum(point["chosen"] for point in facts["points"]) == len(policy.points)
    assert [len(score["answered"]) for score in facts["scores"]] == [len(facts["chosen"])] * 3


def test_yields_of_compared_votes_are_those_of_their_own_alpha():
    source, voted, policy = made((Marginal(0.05), HighProbability(0.05, 0.1), Marginal(0.3)))
    facts = report_facts(source, voted, policy, title="x")
    own = next(score for score in facts["scores"] if score["own"])
    assert facts["chosen"] == [0.05, 0.3]
    assert own["answered"][0][0] < own["answered"][1][0]


def test_groups_compare_votes_by_one_threshold_for_all():
    some = [dm.Pool(dm.Problem(p.problem.id, p.problem.question, p.problem.gold, group="ab"[i % 2]), p.paths)
            for i, p in enumerate(pools())]  # fmt: skip
    source = PoolSource(some)
    voted = vote_pools(source, FieldChoice(score="s"))
    facts = report_facts(source, voted, calibrate(voted, guarantee=Grouped(Marginal(0.1)), hold_out=0.5), title="x")
    assert all(score["answered"][0][0] > 0.3 for score in facts["scores"])
    assert facts["compared"]["by"] == "Yields are those of one threshold for all questions (marginal)."


def test_every_alpha_is_promised_where_all_are_together_and_else_only_those_that_were_asked_for():
    source, voted, policy = made((Simultaneous(0.1, 0.1), Marginal(0.1)), n=400)
    facts = report_facts(source, voted, policy, title="x")
    together = {family["told"]: family["every_alpha"] for family in facts["families"]}
    assert together == {"marginal": False, "simultaneous, delta = 0.1": True}
    for point in facts["points"]:
        if point["guarantee"] == "marginal":
            assert point["promised"] == point["chosen"] == (point["alpha"] == 0.1)
            assert point["price"] == ""
            continue
        rule = policy.point(point["alpha"], "simultaneous")
        assert point["promised"]
        assert point["promise"] == rule.promise
        assert point["threshold"] == without_infinity(rule.threshold_key)
        assert point["price"].startswith("Choosing alpha by these labels costs ")


def test_a_choice_among_ways_to_vote_has_its_price():
    source, voted, policy = made((Marginal(0.1, choices=12),), n=400)
    (point,) = [point for point in report_facts(source, voted, policy, title="x")["points"] if point["chosen"]]
    assert point["choices"] == 12
    assert point["price"].startswith("Choosing one of 12 ways to vote by these labels costs ")


def test_labels_by_a_judge_are_counted_with_its_false_right():
    source, voted, _ = made(n=400)
    rng, truth = np.random.default_rng(5), voted.labelled
    drawn, said = rng.random(400) < 0.5, np.where(rng.random(400) < 0.1, ~truth, truth)
    for guarantee in (Marginal(0.1), JudgeMarginal(0.1), JudgeHighProbability(0.1, 0.1)):
        policy = calibrate(voted.with_labels(said), guarantee=guarantee, checked=np.where(drawn, truth, None))
        facts = report_facts(source, voted.with_labels(said), policy, title="x")
        checked = facts["labels"]["checked"]
        assert (checked["votes"], checked["drawn"]) == (400, int(drawn.sum()))
        assert checked["false_right"] == int((drawn & said & ~truth).sum())
        assert checked["alone"] == isinstance(guarantee, Marginal)
        (point,) = [point for point in facts["points"] if point["chosen"]]
        assert point["judged"] != checked["alone"]
        assert "calibration questions" in point["needs"]


def test_a_learned_confidence_is_called_so_and_stands_beside_the_share():
    source, voted, policy = with_learned_key()
    facts = report_facts(source, voted, policy, title="x")
    assert facts["confidence"]["told"] == "learned confidence"
    assert "fitted on 150 labelled problems" in facts["confidence"]["made"]
    assert facts["questions"]["lead"] == voted.votes.key[:, 0].tolist()
    assert facts["questions"]["confidence"] == voted.votes.confidence.tolist()
    assert facts["n_test"] == 150


def test_the_share_needs_no_second_column_and_a_gate_does():
    source, voted, policy = made(n=300)
    facts = report_facts(source, voted, policy, title="x")
    assert facts["questions"]["lead"] is None
    assert facts["confidence"] == {
        "told": "confidence", "made": "the winner's share of the vote", "is_share": True, "unlike": None
    }  # fmt: skip
    gate = dm.OutlierGate.fit([f"Question {i}?" for i in range(1000, 1200)], level=0.1)
    gated = vote_pools(source, FieldChoice(score="s"), voted.votes.recipe.gated(gate))
    facts = report_facts(source, gated, calibrate(gated, alpha=0.1, hold_out=0.5), title="x")
    assert facts["confidence"]["unlike"] == UNLIKE
    assert facts["questions"]["lead"] == gated.votes.key[:, 0].tolist()


def test_a_report_by_people_leaves_gold_out_and_one_of_a_cascade_is_refused():
    source, voted, _ = made(n=300)
    drawn = np.random.default_rng(0).random(len(voted)) < 0.5
    by_people = calibrate(voted, guarantee=Marginal(0.1), checked=np.where(drawn, voted.labelled, None))
    assert "what people said who saw the answers" in dm.report(source, by_people).html
    cascade = dm.calibrate_cascade([dm.Stage("cheap", voted), dm.Stage("strong", voted)], guarantee=Marginal(0.1))
    with pytest.raises(InvalidValue, match="a report shows one policy, got a Cascade"):
        dm.report(source, cascade)
