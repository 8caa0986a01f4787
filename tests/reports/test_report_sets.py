"""The report's facts about answer sets: those of the policy, question by question."""

from __future__ import annotations

import demur as dm
from demur.policy.set_notes import set_note
from demur.pools.source import PoolSource
from demur.reports.facts import report_facts
from reports.test_facts import pools


def made(alpha=0.3, n=300):
    """A report on a policy that has answer sets."""
    source = PoolSource(pools(n=n))
    voted = dm.vote_pools(source, dm.FieldChoice(score="s"))
    policy = dm.calibrate(voted, alpha=[0.05, 0.1], answer_sets=dm.AnswerSets(alpha), hold_out=0.4)
    return voted, policy, report_facts(source, voted, policy, title="Sets")


def test_each_point_has_the_sets_of_what_it_abstains_from():
    voted, policy, facts = made()
    assert [point["alpha"] for point in facts["answer_sets"]] == [0.05, 0.1]
    for rule, point in zip(policy.points, facts["answer_sets"], strict=True):
        decided = policy.decide_votes(voted.votes, alpha=rule.alpha)
        assert point["note"] == set_note(policy, rule)
        for decision, held in zip(decided, point["sets"], strict=True):
            assert (held is None) == (decision.answer_set is None)
            if held is not None:
                assert [*held["answers"], *([dm.OTHER] if held["other"] else [])] == list(decision.answer_set)


def test_a_policy_without_sets_has_none_in_its_report():
    source = PoolSource(pools(n=60))
    voted = dm.vote_pools(source, dm.FieldChoice(score="s"))
    facts = report_facts(source, voted, dm.calibrate(voted, alpha=0.1), title="None")
    assert facts["answer_sets"] == []
