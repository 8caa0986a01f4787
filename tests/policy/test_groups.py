"""Policies with a threshold per group: what they decide, say, keep in their file and refuse."""

from __future__ import annotations

import json

import numpy as np
import pytest

import demur as dm
from demur.descriptions import digest
from demur.errors import InfeasibleWarning, InvalidValue, PolicyFileError
from demur.policy.groups import group_warnings
from demur.records import Problem

ALPHA = 0.1


def pool(for_a, of=10):
    return ["a"] * for_a + [f"other {path}" for path in range(of - for_a)]


def drawn(n, seed=0, rare=4):
    """Easy questions, hard ones, some of both kinds, a few of a rare kind and a few of none."""
    rng = np.random.default_rng(seed)
    kinds = [("easy",), ("hard",), ("easy", "new language"), ("hard", "new language"), ()]
    groups = [kinds[kind] for kind in rng.choice(5, n - rare, p=[0.45, 0.3, 0.1, 0.1, 0.05])] + [("rare",)] * rare
    hard = np.array(["hard" in own for own in groups])
    right = rng.random(n) < np.where(hard, 0.5, 0.93)
    pools = [pool(int(votes)) for votes in np.minimum(10, rng.integers(3, 10, n) + right)]
    return pools, groups, right


def voted(n=300, seed=0, **how):
    pools, groups, right = drawn(n, seed)
    return dm.vote(
        pools, groups=groups, tie_break=dm.jitter(0), ids=[f"{seed}/{row}" for row in range(n)], **how
    ), right


@pytest.fixture(scope="module")
def policy():
    votes, right = voted()
    marginal = dm.Marginal(ALPHA)
    return dm.calibrate(
        votes, right, guarantee=[marginal, dm.Grouped(marginal), dm.Grouped(dm.Marginal(0.2), 9, "pooled")]
    )


def reseal(path, change):
    """Edit a policy file, and make its digest fit again."""
    document = json.loads(path.read_text())
    change(document)
    document.pop("digest")
    document["digest"] = digest(document)
    path.write_text(json.dumps(document))


def test_several_guarantees_of_one_alpha_are_told_apart_by_their_names(policy):
    assert [(rule.alpha, rule.guarantee.name) for rule in policy.points] == [
        (0.1, "grouped_marginal"), (0.1, "marginal"), (0.2, "grouped_marginal"),
    ]  # fmt: skip
    assert policy.point(0.1, "marginal").guarantee == dm.Marginal(0.1)
    with pytest.raises(InvalidValue, match="several guarantees"):
        policy.point(0.1)


@pytest.mark.parametrize("alpha", [0.1, 0.2])
def test_one_question_is_decided_as_in_a_table(policy, alpha):
    votes, _ = voted(120, seed=5)
    which = {"alpha": alpha, "guarantee": "grouped_marginal"}
    table = policy.decide_votes(votes, **which)
    pools, groups, _ = drawn(120, seed=5)
    for row, answers in enumerate(pools):
        one = policy.decide(answers, group=groups[row], id=f"5/{row}", **which)
        assert (one.answer, one.threshold_key) == (table[row].answer, table[row].threshold_key)
        assert one.p_value == table.p_value[row]
        assert one.explanation == table[row].explanation
        assert (one.answer is not None) == (one.p_value <= alpha)
        assert one.groups == groups[row]
        given = policy.decide(answers, question=Problem("x", group=groups[row] or None), id=f"5/{row}", **which)
        assert given.answer == one.answer
    assert table.of_small_group.sum() == (0 if alpha == 0.2 else sum(not g or g == ("rare",) for g in groups))
    assert any("of no group that enough" in note for note in table.notes()) == (alpha == 0.1)


def test_explanations_name_the_group_that_is_too_small_and_the_threshold_that_stands_in(policy):
    which = {"alpha": 0.1, "guarantee": "grouped_marginal", "id": "x"}
    assert "4 calibration questions are of the group 'rare', where alpha = 0.1 needs 9" in (
        policy.decide(pool(10), group="rare", **which).explanation
    )
    assert "0 calibration questions are of the group 'unseen'" in (
        policy.decide(pool(10), group=["easy", "unseen"], **which).explanation
    )
    assert "this question is of no group" in policy.decide(pool(10), group=(), **which).explanation
    stands_in = policy.decide(pool(10), group="rare", alpha=0.2, id="x")
    assert "The group 'rare' has no threshold of its own, so that of all calibration questions" in stands_in.explanation
    assert group_warnings(policy) == [
        "questions of the groups rare (4) are not answered at alpha = 0.1: fewer than 9 calibrated each",
        "questions of the groups rare (4) take the threshold of all questions together at alpha = 0.2: fewer than 9 "
        "calibrated each",
    ]
    assert all(note in policy.summary() for note in group_warnings(policy))


def test_without_a_group_a_promise_per_group_decides_nothing(policy):
    with pytest.raises(InvalidValue, match="is for groups of questions") as refused:
        policy.decide(pool(10), alpha=0.1, guarantee="grouped_marginal")
    assert "{group}" in refused.value.remedy
    pools, _, right = drawn(40)
    with pytest.raises(InvalidValue, match="these votes have none"):
        policy.decide_votes(
            dm.vote(pools, tie_break=dm.jitter(0), ids=range(40)), alpha=0.1, guarantee="grouped_marginal"
        )
    with pytest.raises(InvalidValue, match="none has one") as none:
        dm.calibrate(dm.vote(pools), right, guarantee=dm.Grouped(dm.Marginal(0.1)))
    assert "{group_field}" in none.value.remedy
    assert policy.decide(pool(10), alpha=0.1, guarantee="marginal", id="x").groups == ()


@pytest.mark.parametrize(
    ("groups", "complaint"),
    [
        ([1, 2], "the group of vote 0 must be a text or a list of texts, got 1"),
        ([["a", 3], None], "the groups of vote 0 must be texts that are not blank"),
        ([["a", ""], None], "must be texts that are not blank"),
        ([{"a": 1}, None], "must be a text or a list of texts"),
        (["a"], "one entry per pool, 2 of them, got 1"),
        ("ab", "one entry per pool, 2 of them, got 'ab'"),
        (7, "one entry per pool"),
    ],
)
def test_groups_that_are_no_texts_are_refused(groups, complaint):
    with pytest.raises(InvalidValue, match=complaint):
        dm.vote([["a"], ["b"]], groups=groups)


@pytest.mark.parametrize("weights", [[-1, 1], [np.inf, 1], [np.nan, 1], [0, 0], [1], ["x", "y"]])
def test_importance_is_finite_not_negative_and_not_all_nothing(weights):
    with pytest.raises(InvalidValue, match=r"weights must|importance must hold one number per pool"):
        dm.vote([["a"], ["b"]], importance=weights)


def test_nothing_in_tables_is_no_group():
    votes = dm.vote([["a"]] * 5, groups=[None, float("nan"), "", "x", np.array(["y", "x", "y"])])
    assert list(votes.groups) == [(), (), (), ("x",), ("x", "y")]
    assert list(votes.take([4, 3]).groups) == [("x", "y"), ("x",)]


def test_a_policy_keeps_its_groups_in_its_file_and_computes_every_threshold_again(policy, tmp_path):
    path = tmp_path / "policy.json"
    policy.save(path)
    loaded = dm.Policy.load(path)
    assert [rule.document() for rule in loaded.points] == [rule.document() for rule in policy.points]
    assert loaded.strata.groups == policy.strata.groups
    document = json.loads(path.read_text())
    assert document["evidence"][1]["groups"] == ["easy"]
    assert set(document["points"][0]["by_group"]) == {"easy", "hard", "new language"}
    votes, right = voted()
    plain = dm.calibrate(votes, right, alpha=0.1)  # a promise about all questions keeps no groups
    plain.save(path)
    assert isinstance(json.loads(path.read_text())["evidence"], dict)


def moved(document):
    document["points"][0]["by_group"]["hard"]["threshold"][0] = 0.2


def renamed(document):
    document["evidence"][1]["groups"] = ["hard"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (moved, "does not follow from its evidence"),
        (lambda d: d["points"][0]["by_group"].pop("hard"), "does not follow from its evidence"),
        (lambda d: d["points"][0].update(smallest=200), "does not follow from its evidence"),
        (lambda d: d["points"][0].update(smallest=0), "smallest must be a number"),
        (lambda d: d["points"][0].update(fallback="guess"), "fallback must be one of"),
        (lambda d: d["points"][0].update(fallback=3), "fallback must be one of"),
        (lambda d: d["points"][0].pop("fallback"), "does not take"),
        (renamed, "in order"),
        (lambda d: d["evidence"][1].update(groups=[3]), "groups must be texts"),
        (lambda d: d["evidence"][1].update(groups=["b", "a"]), "each once and in order"),
        (lambda d: d["evidence"][1].update(groups="easy"), "groups must be texts"),
        (lambda d: d["evidence"][1].update(n_paths=0), "must be a number of paths"),
        (lambda d: d["evidence"][1].update(n_paths="10"), "must be a number of paths"),
        (lambda d: d["evidence"][1].update(more=1), "must hold strata"),
        (lambda d: d["evidence"].append(3), "must hold strata"),
        (lambda d: d["evidence"][1].update(weights=[]), "three numbers for each row"),
        (
            lambda d: d["evidence"][1].update(weights=[[-1, 0, 1]] * len(d["evidence"][1]["rows"])),
            "none of them negative",
        ),
        (lambda d: d["evidence"][1].update(weights=[[1, 1, 2]] * len(d["evidence"][1]["rows"])), "0 where no vote is"),
        (
            lambda d: d["evidence"][1].update(weights=[[0, 0, 0]] * len(d["evidence"][1]["rows"])),
            "have weights or none",
        ),
    ],
)
def test_edited_groups_are_refused_even_with_a_fresh_digest(policy, tmp_path, change, complaint):
    path = tmp_path / "policy.json"
    policy.save(path)
    reseal(path, change)
    with pytest.raises(PolicyFileError, match=complaint):
        dm.Policy.load(path)


def test_weights_are_summed_by_level_and_kept_in_the_file(tmp_path):
    rng = np.random.default_rng(1)
    weights = rng.random(300)
    votes, right = voted(importance=weights)
    policy = dm.calibrate(votes, right, guarantee=[dm.Marginal(0.1), dm.Grouped(dm.Marginal(0.1))])
    assert policy.evidence.weighted
    assert policy.evidence.right_weight.sum() == pytest.approx(weights[right].sum())
    assert policy.evidence.not_right_weight.sum() == pytest.approx(weights[~right].sum())
    order = rng.permutation(300)
    shuffled = dm.calibrate(votes.take(order), right[order], guarantee=dm.Grouped(dm.Marginal(0.1)))
    for stratum, part in policy.strata.parts.items():  # to the last bit, whatever the order of rows
        np.testing.assert_array_equal(shuffled.strata.parts[stratum].not_right_weight, part.not_right_weight)
    policy.save(tmp_path / "policy.json")
    loaded = dm.Policy.load(tmp_path / "policy.json")
    np.testing.assert_array_equal(loaded.evidence.right_weight, policy.evidence.right_weight)


def test_an_audit_judges_each_group_by_its_own_law(policy):
    votes, right = voted(400, seed=9)
    good = dm.audit_policy(policy, votes, right)
    assert [group.group for group in good[0].groups] == ["easy", "hard", "new language", "(others)"]
    assert good[0].consistent
    assert good[0].groups[-1].answered == 0
    assert sum(group.n for group in good[0].groups) > good.n  # some are of two groups
    assert good[1].groups == []
    assert [group["group"] for group in good[2].document()["groups"]][-1] == "(others)"


def test_an_audit_finds_the_one_group_that_breaks_its_promise():
    """Its errors are few among all questions, which alone would seem consistent."""
    n, rng = 1000, np.random.default_rng(2)

    def draw(share_wrong, seed):
        names = np.where(np.arange(n) % 20 == 0, "small", "large")
        right = rng.random(n) > np.where(names == "small", share_wrong, 0.08)
        pools = [pool(10 if row % 2 else 9) for row in range(n)]
        ids = [f"{seed}/{row}" for row in range(n)]
        return dm.vote(pools, groups=names.tolist(), tie_break=dm.jitter(0), ids=ids), right

    policy = dm.calibrate(*draw(0.08, "calibration"), guarantee=dm.Grouped(dm.Marginal(0.1)))
    audit = dm.audit_policy(policy, *draw(0.8, "drifted"))[0]
    assert not audit.consistent
    assert audit.verdict.startswith("Not consistent with the promise in 1 of 2 groups")
    assert "small" in audit.verdict
    assert {group.group: group.consistent for group in audit.groups} == {"small": False, "large": True}
    assert dm.audit_policy(policy, *draw(0.08, "alike"))[0].consistent


def test_an_outlook_is_of_the_groups_that_calibration_had(policy):
    ahead = dm.audit_outlook(policy, 200, alpha=0.1, guarantee="grouped_marginal")
    assert ahead.n == 200
    assert ahead.counts.sum() == pytest.approx(1)
    assert 0 < ahead.surprising_above < 60


def test_groups_that_are_all_too_small_give_a_policy_that_abstains_and_says_so():
    pools, _, right = drawn(30)
    votes = dm.vote(pools, groups=[f"g{row % 10}" for row in range(30)])
    with pytest.warns(InfeasibleWarning, match="the largest has 3"):
        policy = dm.calibrate(votes, right, guarantee=dm.Grouped(dm.Marginal(0.1)))
    assert not policy.feasible
    assert policy.decide(pool(10), group="g1").explanation.startswith("Abstained: no group has enough")


def test_forecasts_are_given_for_each_group(policy):
    told = policy.forecast_by_group(0.1, "grouped_marginal")
    assert list(told) == ["easy", "hard", "new language", "rare"]
    assert told["rare"].answered == 0
    assert told["hard"].threshold > told["easy"].threshold
    assert all(one.expected_confident_error <= 0.12 for one in told.values())


def test_questions_of_two_groups_that_share_no_number_of_paths_are_refused_in_words():
    """Each group has its promise for pools of its own size, and a question of both has neither."""
    answers = [["a"] * 6 for _ in range(60)] + [["a"] * 8 for _ in range(60)]
    groups = [["six"]] * 60 + [["eight"]] * 60
    votes = dm.vote(answers, ids=[str(row) for row in range(120)], groups=groups)
    policy = dm.calibrate(votes, np.arange(120) % 15 > 0, guarantee=dm.Grouped(dm.Marginal(0.1)))
    new = dm.vote([["a"] * 6, ["a"] * 8], ids=["x", "y"], groups=[["six", "eight"]] * 2)
    decided = policy.decide_votes(new)
    assert not decided.answered.any()
    assert "saw no number of paths often enough in each of its groups" in decided[0].explanation
    assert decided.of_small_group.all()
