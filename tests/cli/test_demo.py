"""The demo, with a scripted model in place of the real one: what it shows, by which rule, and as JSON."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import scripted_demur
from demur.cli.demo import ALPHAS, PATHS
from demur.store.service import ServiceStore


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setattr("demur.pipeline.config.Config.backend", scripted_demur.backend)
    monkeypatch.setattr("demur.cli.demo_service.DEMUR", (sys.executable, str(Path(scripted_demur.__file__))))


def test_the_demo_shows_what_weights_help_with_and_where_it_abstains(demur, model, tmp_path):
    ran = demur("demo", "--questions", 60)
    assert ran.code == 0, ran.err
    assert "60 questions are whole now" in ran.out
    steps = [ran.out.index(f"{step}. ") for step in range(1, 7)]
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


def test_the_service_answers_one_question_leaves_one_and_has_it_judged(demur, model, tmp_path):
    service = demur("demo", "--questions", 60, "--json").json["service"]
    *_, last = service["asked"]
    assert {reply["decision"] for reply in service["asked"]} == {"answered", "abstained"}
    assert all((reply["refusal"] is None) == (reply["decision"] == "answered") for reply in service["asked"])
    left = next(reply for reply in service["asked"] if reply["decision"] == "abstained")
    assert service["review"]["request_id"] == left["request_id"]
    assert service["log"]["answered"] + service["log"]["abstained"] == len(service["asked"])
    with ServiceStore(tmp_path / "demo" / "service.db") as store:
        (said,) = store.feedback.history(left["request_id"])
        assert (said.source, said.verdict, said.answer) == (
            "review",
            service["review"]["verdict"],
            service["review"]["answer"],
        )
        assert store.reviews.get(left["request_id"]).state == "done"
        assert store.decisions.get(last["request_id"]) is not None


def test_without_the_packages_of_the_service_the_demo_goes_on(demur, model, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "demur.server.app", None)
    ran = demur("demo", "--questions", 60)
    assert ran.code == 0, ran.err
    assert "6. The same as a service is left out: the service needs packages that are not here" in ran.out
    assert "Everything is in demo" in ran.out


def test_a_service_that_does_not_start_is_told_with_the_place_of_its_words(demur, model, monkeypatch):
    monkeypatch.setattr("demur.cli.demo_service.DEMUR", (sys.executable, "-c", "raise SystemExit(3)"))
    ran = demur("demo", "--questions", 60)
    assert ran.code == 2
    assert "the service did not start; demo/service.log says why" in ran.err
