"""The reason of an abstention is the one that decided, whichever paths were drawn: never a comparison that is false."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

import demur as dm
from demur.policy.curtail import Curtailment
from demur.server.outcomes import Outcome

WORDS = ["ann", "ben", "coins", "pens", "books", "how", "many", "are", "left", "after", "giving", "to", "a", "friend"]
UNANIMOUS = ["a"] * 8
ODD = "zqx ∂∫ vkk wxq"


def text(name):
    drawn = random.Random(name)
    return f"{' '.join(drawn.choices(WORDS, k=12))} {name}?"


def policy_of(gate=None, groups=None, **how):
    """Eight paths, every seventh vote wrong and contested."""
    pools = [UNANIMOUS if row % 7 else ["b"] * 5 + ["c"] * 3 for row in range(120)]
    votes = dm.vote(pools, questions=[text(f"c{row}") for row in range(120)], gate=gate, groups=groups)
    return dm.calibrate(votes, votes.answer == "a", **(how or {"alpha": 0.1}))


def reasons(policy, question, group=None):
    """Of the whole pool, and of the first paths that settle it."""
    known = {"question": question, "group": group}
    curtailment = Curtailment(policy, **known)
    early = next(found for drawn in range(1, 8) if (found := curtailment.early(UNANIMOUS[:drawn])) is not None)
    asked = SimpleNamespace(rule=policy.point())
    decisions = [
        (policy.decide_keys(UNANIMOUS, **known), None),
        (curtailment.decision(early, UNANIMOUS[: early.n_paths]), early),
    ]
    made = [Outcome("r", asked, 0, SimpleNamespace(decision=one, early=stop)) for one, stop in decisions]
    return [outcome.reason for outcome in made]


@pytest.mark.parametrize(
    ("how", "question", "why"),
    [
        ({"alpha": 0.1, "outlier_level": 0.1}, ODD, "this question is unlike the calibration questions: its p-value"),
        ({"gate": dm.OutlierGate.fit([text(f"r{row}") for row in range(60)])}, ODD, "reference questions of the"),
        ({"groups": ["x"] * 120, "guarantee": dm.Grouped(dm.Marginal(0.1))}, "new?", "are of the group 'y', where"),
    ],
    ids=["behind the threshold", "in the key", "unknown group"],
)
def test_what_closes_a_question_is_its_reason_after_one_path_as_after_all(how, question, why):
    whole, early = reasons(policy_of(**how), question, "y" if "groups" in how else None)
    assert whole == early
    assert whole.startswith("Not answered: ")
    assert why in whole
    assert "confidence" not in whole
    assert "the probability of" not in whole  # the promise stands beside it
