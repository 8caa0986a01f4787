"""The report's facts: each number the page shows against the statistics it comes from, and a page nothing can break."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from demur.calibration import HighProbability, JudgeHighProbability, JudgeMarginal, Marginal, Selective
from demur.evaluation.audit import audit_policy
from demur.evidence.counts import exceeds
from demur.policy.calibrate import calibrate
from demur.pools.fields import FieldChoice
from demur.pools.simulated import simulate_pools
from demur.pools.source import PoolSource, vote_pools
from demur.records import Path, Pool, Problem
from demur.reports.facts import report_facts
from demur.reports.page import page_of

NASTY = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>\u202e\u2028&amp;"


def pools(n=240, m=6, seed=3, gold=True):
    table = simulate_pools(n, n_paths=m, seed=seed)
    return [
        Pool(
            Problem(f"q{i}", f"Question {i}?", (str(right),) if gold else ()),
            tuple(
                Path(None if a is None else str(a), f"text {i}", {"s": float(q)})
                for a, q in zip(row, scores, strict=True)
            ),
        )
        for i, (row, scores, right) in enumerate(zip(table.answers, table.scores, table.gold, strict=True))
    ]  # fmt: skip


TWO = (Marginal(0.05), Marginal(0.1))


def made(guarantees=TWO, tie_break=None, score="s", **more):
    source = PoolSource(pools(**more))
    recipe = source.recipe(score, normaliser="pool_z" if score else None, tie_break=tie_break)
    voted = vote_pools(source, FieldChoice(score=score), recipe)
    return source, voted, calibrate(voted, guarantee=list(guarantees), hold_out=0.5)


@pytest.fixture(scope="module")
def case():
    source, voted, policy = made()
    return source, voted, policy, report_facts(source, voted, policy, title="A report")


def test_points_are_those_of_the_policy_and_of_the_grid(case):
    _, _, policy, facts = case
    alphas = [point["alpha"] for point in facts["points"]]
    assert alphas == sorted(alphas)
    assert {0.005, 0.05, 0.1, 0.5} <= set(alphas)
    for point in facts["points"]:
        if point["chosen"]:
            held = policy.point(point["alpha"])
            expected = policy.forecast(point["alpha"])
            assert point["threshold"] == list(held.threshold_key)
            assert point["answered"] == expected.answered
            assert point["expected_confident_error"] == expected.expected_confident_error
    assert [p["alpha"] for p in facts["points"] if p["chosen"]] == [0.05, 0.1]


def test_what_happened_is_counted_on_questions_that_did_not_calibrate(case):
    _, voted, policy, facts = case
    seen = set(policy.seen.rows(voted.table.ids, voted.table.questions, voted.table.clusters))
    fresh = [row for row in range(len(voted.votes)) if row not in seen]
    assert facts["n_test"] == len(fresh) == 120
    for point in facts["points"]:
        held = tuple(np.inf if bound is None else bound for bound in point["threshold"])
        answered = exceeds(voted.votes.key[fresh], held)
        wrong = answered & ~voted.correct[fresh]
        assert point["observed"]["errors"] == int(wrong.sum())
        assert point["observed"]["answered"] == pytest.approx(answered.mean())
    for audited in audit_policy(policy, voted):
        (point,) = (point for point in facts["points"] if point["alpha"] == audited.rule.alpha)
        assert point["expected_confident_error"] == audited.expected_confident_error
        for name in ("answered", "errors", "confident_error", "false_abstention", "usual_at_most", "p_value"):
            assert point["observed"][name] == getattr(audited, name), name
        assert point["observed"]["accuracy"] == audited.selective_accuracy


def test_each_path_has_its_share_of_the_weight(case):
    _, voted, _, facts = case
    for row in (0, 100, 200):
        vote = voted.votes[row]
        shares = facts["paths"][row]["share"]
        assert sum(shares) == pytest.approx(1, abs=1e-3)
        keys, won = voted.table.answers[row], voted.votes.winners[row]
        winner = sum(share for share, key in zip(shares, keys, strict=True) if key == won)
        assert winner == pytest.approx(vote.confidence, abs=1e-3)


def test_what_breaks_ties_is_part_of_threshold_and_questions():
    source, voted, policy = made(tie_break="mean_score")
    facts = report_facts(source, voted, policy, title="x")
    assert all(len(point["threshold"]) == 3 for point in facts["points"])
    assert [len(key) for key in facts["questions"]["key"]] == [3] * 240
    assert facts["questions"]["tie"] == [key[1] for key in facts["questions"]["key"]]
    assert facts["key"] == ["share", "mean_score", "jitter"]


def test_a_promise_with_high_probability_keeps_its_delta_on_the_slider():
    source, voted, policy = made(guarantees=[HighProbability(0.1, 0.2)])
    facts = report_facts(source, voted, policy, title="x")
    for point in facts["points"]:
        assert point["k"] == HighProbability(point["alpha"], 0.2).rank(policy.n)


def test_a_checked_judge_is_told_on_the_page():
    source, voted, _ = made()
    drawn = np.random.default_rng(0).random(len(voted)) < 0.5
    said = np.where(drawn, voted.labelled, None)
    for guarantee in (Marginal(0.1), JudgeMarginal(0.1), JudgeHighProbability(0.1, 0.1)):
        policy = calibrate(voted, guarantee=guarantee, checked=said)
        facts = report_facts(source, voted.with_labels(voted.labelled), policy, title="x")
        assert any('false "right"' in warning for warning in facts["warnings"])
        assert facts["n"] == policy.n


def test_labels_may_be_absent():
    policy = made()[2]
    bare = PoolSource(pools(gold=False))
    again = vote_pools(bare, FieldChoice(score="s"), policy.recipe, labelled=False)
    facts = report_facts(bare, again, policy, title="x")
    assert facts["test"] is None
    assert facts["questions"]["right"] is None
    assert facts["baselines"] == {}
    page_of(facts)


def test_a_majority_vote_without_scores_has_a_report_too():
    source, voted, policy = made(score=None)
    facts = report_facts(source, voted, policy, title="x")
    assert facts["paths"][0]["score"] is None
    assert facts["paths"][0]["share"] == pytest.approx([1 / 6] * 6, abs=1e-4)


def test_nothing_in_the_data_can_end_the_script_it_stands_in():
    source, voted, policy = made()
    hostile = [
        Pool(
            Problem(pool.problem.id, NASTY, pool.problem.gold),
            tuple(Path(path.answer, NASTY, path.scores) for path in pool.paths),
        )
        for pool in source.pools
    ]
    facts = report_facts(PoolSource(hostile), voted, policy, title=NASTY)
    page = page_of(facts)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1)
    assert "<" not in data
    assert "\u2028" not in data
    assert json.loads(data)["title"] == NASTY


def test_the_page_asks_the_network_for_nothing():
    source, voted, policy = made()
    page = page_of(report_facts(source, voted, policy, title="x"))
    template = page.replace("http://www.w3.org/2000/svg", "")
    assert "http://" not in template
    assert "https://" not in template
    assert "default-src 'none'" in page


def test_the_page_is_assembled_before_its_data_are_put_in():
    page = page_of({"title": "@@STYLE@@ @@SCRIPT@@ @@DATA@@"})
    assert page.count("@@") == 6
    assert page.count("<style>") == page.count("<script>") == page.count("<script type=") == 1


def test_long_texts_are_cut_to_a_budget(monkeypatch):
    from demur.reports import questions as module

    monkeypatch.setattr(module, "TEXT_BUDGET", 240 * 6 * 100)
    source, voted, policy = made()
    long = [Pool(p.problem, tuple(Path(x.answer, "y" * 5000, x.scores) for x in p.paths)) for p in source.pools]
    facts = report_facts(PoolSource(long), voted, policy, title="x")
    assert len(facts["paths"][0]["text"][0]) < 120
    assert "[…]" in facts["paths"][0]["text"][0]


def test_all_curves_are_on_the_questions_that_have_every_score(case):
    facts = case[-1]
    assert facts["compared"] == {"n": 240, "left_out": 0, "draws": 400, "by": ""}
    assert facts["frontier"]["on"] == "compared"
    own = next(score for score in facts["scores"] if score["own"])
    assert own["name"] == "s"
    assert facts["frontier"]["accuracy"] == own["frontier"]["accuracy"]
    assert own["frontier"]["accuracy"][-1] == pytest.approx(own["vote_accuracy"], abs=1e-6)
    assert facts["baselines"]["weighted vote"] == pytest.approx(own["vote_accuracy"])
    assert [score["n"] for score in facts["scores"]] == [240] * 3
    assert [len(score["answered"]) for score in facts["scores"]] == [2] * 3


def test_where_a_question_lacks_a_score_the_baselines_leave_it_out_too():
    given = pools()
    first = given[0]
    lacking = [Pool(first.problem, tuple(Path(p.answer, p.text, {"s": p.scores["s"]}) for p in first.paths))]
    lacking += [
        Pool(pool.problem, tuple(Path(p.answer, p.text, {**p.scores, "t": 1 - p.scores["s"]}) for p in pool.paths))
        for pool in given[1:]
    ]
    source = PoolSource(lacking)
    voted = vote_pools(source, FieldChoice(score="s"))
    facts = report_facts(source, voted, calibrate(voted, alpha=0.1, hold_out=0.5), title="x")
    assert facts["compared"]["left_out"] == 1
    assert facts["compared"]["n"] == 239
    right = voted.correct[1:].mean()
    assert facts["baselines"]["weighted vote"] == pytest.approx(right)
    assert next(score for score in facts["scores"] if score["own"])["vote_accuracy"] == pytest.approx(right)


def test_without_labels_the_curve_is_that_of_calibration():
    policy = made()[2]
    bare = PoolSource(pools(gold=False))
    again = vote_pools(bare, FieldChoice(score="s"), policy.recipe, labelled=False)
    facts = report_facts(bare, again, policy, title="x")
    assert facts["frontier"]["on"] == "calibration"
    assert facts["compared"]["n"] == 0


def test_a_promise_about_answers_is_told_as_one_and_judged_by_them():
    source, voted, policy = made((Selective(0.1, 0.1),))
    facts = report_facts(source, voted, policy, title="A report")
    (point,) = [point for point in facts["points"] if point["chosen"]]
    audit = audit_policy(policy, voted)[0]
    assert point["among_answers"]
    assert "of the answers given" in point["promise"]
    assert point["observed"]["p_value"] == audit.p_value
    assert point["observed"]["usual_at_most"] == audit.usual_at_most
    page_of(facts)


PER_QUESTION = ("questions", "paths", "listed", "title")


def without_questions(facts):
    """As text, in which NaN is equal to NaN."""
    return {name: json.dumps(fact) for name, fact in facts.items() if name not in PER_QUESTION}


def test_all_figures_are_of_all_questions_whatever_is_listed(case):
    source, voted, policy, whole = case
    facts = report_facts(source, voted, policy, title="A report", most=50)
    assert without_questions(facts) == without_questions(whole)
    assert (whole["listed"], facts["listed"]) == (None, {"of": 240, "wrong": 5})
    assert len(facts["questions"]["id"]) == len(facts["paths"]) == 50


def test_listed_are_the_surest_wrong_votes_and_others_drawn_at_random(case):
    source, voted, policy, whole = case
    facts = report_facts(source, voted, policy, title="x", most=50)
    place = {name: row for row, name in enumerate(whole["questions"]["id"])}
    rows = [place[name] for name in facts["questions"]["id"]]
    assert rows == sorted(set(rows))
    for name, column in facts["questions"].items():
        assert column is None or column == [whole["questions"][name][row] for row in rows], name
    assert facts["paths"] == [whole["paths"][row] for row in rows]
    wrong = [row for row in range(240) if not voted.labelled[row] and voted.votes.has_answer[row]]
    surest = sorted(wrong, key=lambda row: tuple(voted.votes.key[row]), reverse=True)[:5]
    assert set(surest) <= set(rows)
    others = np.array([row for row in rows if row not in surest])
    assert abs(others.mean() - 120) < 4 * 240 / np.sqrt(12 * len(others))  # four standard errors of a uniform draw
    again = report_facts(source, voted, policy, title="x", most=50)
    assert again["questions"]["id"] == facts["questions"]["id"]


def test_without_labels_all_that_is_listed_is_drawn_at_random():
    policy = made()[2]
    bare, again = PoolSource(pools(gold=False)), policy.vote(PoolSource(pools(gold=False)), labelled=False)
    facts = report_facts(bare, again, policy, title="x", most=50)
    assert facts["listed"] == {"of": 240, "wrong": 0}
    assert len(facts["paths"]) == 50


def test_very_many_levels_of_confidence_are_told_in_cells_that_the_bins_are_made_of(monkeypatch):
    from demur.evidence import Evidence
    from demur.reports import facts as told

    draw = np.random.default_rng(5)
    confidence = np.concatenate([draw.random(5000), np.arange(21) / 20])
    right = draw.random(len(confidence)) < confidence
    evidence = Evidence.of(confidence, right)
    cells = told._counts(evidence)
    monkeypatch.setattr(told, "_FINE", 10**6)
    whole = told._counts(evidence)
    assert (len(cells["confidence"]), len(whole["confidence"])) == (2000, 5021)
    assert binned(cells) == binned(whole)


def binned(counts, bins=20):
    """As the page makes bins of levels."""
    made = [[0, 0] for _ in range(bins)]
    for confidence, right, wrong in zip(counts["confidence"], counts["right"], counts["wrong"], strict=True):
        part = made[min(bins - 1, max(0, int(np.ceil(confidence * bins - 1e-9)) - 1))]
        part[0] += right
        part[1] += wrong
    return made
