"""What the report says of labels: the rule, and what a judge and people said of which answers."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import demur as dm
from demur.evidence import Interval
from demur.pools.label_rule import LabelRule
from demur.pools.verdicts import Verdict, Verdicts
from demur.records import Path, Pool, Problem
from demur.reports.facts import report_facts
from demur.reports.page import page_of
from reports.test_facts import NASTY

SAID = ["Paris", "city of light", "Rome", "Lutetia"]


def pools(n=80):
    return [
        Pool(
            Problem(f"q{i}", f"Where is painting {i}?", ("Paris",), extra={"task": "qa"}),
            tuple(Path(SAID[(i + j // 3) % len(SAID)]) for j in range(5)),
        )
        for i in range(n)
    ]


def verdicts(of, judge="openai:m agreement@1"):
    """Yes to the city of light, neither to Lutetia, no to Rome; people checked some, and overruled one."""
    rows = []
    for pool in of:
        about = pool.problem.digest, pool.problem.question
        for answer, agrees in (("city of light", True), ("Rome", False), ("Lutetia", None)):
            rows.append(Verdict(*about, answer, ("Paris",), agrees, judge, id=pool.problem.id))
    for at in (3, 4):  # of the second problem, whose paths say both
        rows[at] = replace(rows[at], person=True, drawn=True)
    return Verdicts(rows)


def facts_of(judge="openai:m agreement@1", n=80):
    source = dm.PoolSource(pools(n))
    voted = dm.vote_pools(source, correct=LabelRule(verdicts=verdicts(source.pools, judge)))
    return report_facts(source, voted, dm.calibrate(voted, alpha=0.3, hold_out=0.5), title="A report"), voted


def test_counts_are_those_of_the_answers_that_were_judged():
    facts, voted = facts_of()
    judged = facts["labels"]["judged"]
    found = [verdict for answers in voted.labels.judged for verdict in answers.values()]
    assert judged["of"] == len(found) == judged["agree"] + judged["disagree"] + judged["neither"]
    assert judged["agree"] == sum(verdict.agrees is True for verdict in found)
    assert judged["neither"] == sum(verdict.agrees is None for verdict in found)
    assert (judged["without"], judged["checked"], judged["confirmed"], judged["overruled"]) == (0, 2, 1, 1)
    interval = Interval.exact(1, 2)
    assert judged["interval"] == [interval.lower, interval.upper]


def test_what_people_spoke_on_stands_first_and_the_table_is_short():
    facts, _ = facts_of()
    shown = facts["labels"]["judged"]["shown"]
    assert len(shown) == 60
    assert {(row["judge"], row["person"], row["right"]) for row in shown[:2]} == {
        (True, True, True),
        (False, True, True),
    }
    assert shown[2]["judge"] is None


def test_the_promise_names_the_judge():
    facts, _ = facts_of()
    assert facts["labels"]["wrong"] in facts["points"][0]["promise"]
    assert "which people confirmed on 1 of 2 verdicts checked at random" in facts["labels"]["wrong"]


@pytest.mark.parametrize("rule", [None, LabelRule(containment=True), LabelRule(tolerance="0.01")])
def test_without_a_judge_there_is_a_rule_and_no_table(rule):
    source = dm.PoolSource(pools())
    voted = dm.vote_pools(source, correct=rule)
    labels = report_facts(source, voted, dm.calibrate(voted, alpha=0.3), title="x")["labels"]
    assert labels["judged"] is None
    assert labels["told"] == (rule or LabelRule()).told
    assert labels["wrong"] == (rule or LabelRule()).wrong


def test_a_judge_of_a_nasty_name_cannot_leave_its_place():
    facts, _ = facts_of(NASTY)
    page = page_of(facts)
    assert page.count("<script") == 2
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert NASTY in data["labels"]["judged"]["judge"]
