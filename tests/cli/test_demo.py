"""The demo, with a scripted model in place of the real one: what it shows, by which rule, and as JSON."""

from __future__ import annotations

import random
import re

import pytest

from demur.backends import Completion, Scripted
from demur.cli.demo import ALPHAS, PATHS


def sometimes_right(prompt, wanted):
    """Sums that get harder with their size; right ones are surer, so that weights help."""
    first, second = map(int, re.findall(r"\d+", prompt.problem)[-2:])
    rng = random.Random(f"{prompt.problem} {wanted.path}")
    right = rng.random() > (first + second) / 30
    said = first + second if right else first + second + rng.choice((1, 1, 10))
    return Completion(wanted.path, f"The answer is {said}.", "stop", (-0.2 if right else -rng.random(),))


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setattr("demur.pipeline.config.Config.backend", lambda *_: Scripted(sometimes_right))


def test_the_demo_shows_what_weights_help_with_and_where_it_abstains(demur, model, tmp_path):
    ran = demur("demo", "--questions", 60)
    assert ran.code == 0, ran.err
    assert "60 questions are whole now" in ran.out
    steps = [ran.out.index(f"{step}. ") for step in range(1, 6)]
    assert steps == sorted(steps)
    assert "the one it is surest of: What is" in ran.out
    assert "It abstains rather than err" in ran.out
    assert ran.out.count("the right answer is") >= 2
    assert ran.out.index("Of 100 audits of 30 questions") < ran.out.index("4. What happened")
    assert "▲ this audit" in ran.out
    assert (tmp_path / "demo" / "report.html").is_file()
    again = demur("demo", "--questions", 60)
    assert "all 60 questions were there already" in again.out


def test_the_examples_are_chosen_by_rule_and_the_counts_add_up(demur, model):
    facts = demur("demo", "--questions", 80, "--json").json
    helped, restraint = facts["weighting"], facts["restraint"]
    assert helped["questions"] == 80
    example = helped["example"]
    (right,) = [vote for vote in example["votes"] if vote["right"]]
    assert right == example["votes"][0]
    assert right["answer"] == example["gold"] != example["by_count"]
    assert example["confidence"] == pytest.approx(right["share"])
    abstained = restraint["example"]
    assert not abstained["votes"][0]["right"]
    assert abstained["confidence"] <= abstained["threshold"]
    one_path, majority, best, *policies = facts["held_out"]
    assert [row["answered"] for row in (one_path, majority, best)] == [1, 1, 1]
    assert len(policies) == len(facts["forecast"]) == len(ALPHAS)
    given = restraint["wrong_votes"] - restraint["withheld"]
    assert policies[-1]["wrong"] * 40 == pytest.approx(given)
    assert {line["decision"] for line in facts["asked"]} <= {"answer", "abstain"}
    assert all(sum(line["support"].values()) <= PATHS for line in facts["asked"])
