"""Promises about the answers given: `Policy.select`, and policies that hold `Selective`."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import demur as dm
from demur.calibration.batch import cut_off
from demur.errors import CalibrationLeak, InvalidValue, PipelineMismatch, PolicyFileError
from demur.evidence.counts import exceeds
from demur.policy.document import from_document, to_document

GUARANTEE = dm.Selective(0.1, 0.1)


def labelled(n, seed, *, n_paths=16, **known):
    """Votes with ids of their own, and whether each is right."""
    pools = dm.simulate_pools(n, n_paths=n_paths, seed=seed)
    ids = [f"{seed}-{row}" for row in range(n)]
    votes = dm.vote(pools.answers, pools.scores, tie_break=dm.jitter(0), ids=ids, **known)
    return votes, votes.answer == pools.gold


@pytest.fixture(scope="module")
def policy():
    return dm.calibrate(*labelled(300, 1), guarantee=[dm.Marginal(0.1), GUARANTEE])


# --- batch selection ---------------------------------------------------------------------------------------------


def test_what_is_answered_is_what_benjamini_and_hochberg_reject(policy):
    votes, _ = labelled(500, 2)
    chosen = policy.select(votes, fdr=0.1)
    p_values = policy.p_value(votes)
    ordered = np.sort(p_values)
    passed = np.flatnonzero(ordered <= 0.1 * np.arange(1, 501) / 500 + 1e-12)
    assert chosen.answered.tolist() == (p_values <= ordered[passed[-1]]).tolist()
    assert chosen.cut_off == pytest.approx(ordered[passed[-1]])
    assert chosen.fdr == 0.1
    assert 0 < chosen.answered.sum() == passed[-1] + 1


def test_the_mean_share_of_wrong_answers_is_at_most_q_and_many_are_answered():
    shares, answered = [], []
    for seed in range(60):
        votes, correct = labelled(1000, 100 + seed)
        policy = dm.calibrate(votes.take(np.arange(200)), correct[:200], alpha=0.1)
        rest = np.arange(200, 1000)
        chosen = policy.select(votes.take(rest), fdr=0.1).answered
        shares.append((chosen & ~correct[rest]).sum() / max(1, chosen.sum()))
        answered.append(chosen.mean())
    error = np.std(shares, ddof=1) / np.sqrt(len(shares))
    assert np.mean(shares) <= 0.1 + 4 * error
    assert np.mean(shares) > 0.06  # one that abstains makes no errors
    assert np.mean(answered) > 0.3


def test_each_decision_tells_its_p_value_the_cut_off_and_the_promise(policy):
    votes, _ = labelled(200, 3)
    chosen = policy.select(votes, fdr=0.1)
    for row, decision in enumerate(chosen):
        assert decision.abstained != chosen.answered[row]
        assert "the cut-off of this batch" in decision.explanation
        assert "expected share that is wrong is at most 0.1" in decision.explanation
        assert "batch of 200 questions" in decision.explanation
        assert "exchangeable with the 300 calibration questions" in decision.explanation
    assert repr(chosen).startswith("Selection(200 pools, ")
    assert set(chosen.columns()) >= {"answer", "answered", "p_value", "threshold"}


def test_a_batch_of_which_nothing_is_answered_says_so(policy):
    votes, _ = labelled(200, 3)
    doubtful = votes.take(np.flatnonzero(policy.p_value(votes) > 0.1))
    chosen = policy.select(doubtful, fdr=0.1)
    assert (chosen.answered.any(), chosen.cut_off) == (False, 0.0)
    assert "no vote of this batch" in chosen[0].explanation


def test_too_few_calibration_votes_are_named():
    policy = dm.calibrate(*labelled(30, 20), alpha=0.1)
    chosen = policy.select(labelled(40, 21)[0], fdr=0.01)
    assert not chosen.answered.any()
    assert "30 calibration questions are too few for an fdr of 0.01, which needs 99" in chosen.notes()[0]
    assert "too few for an fdr" in chosen[0].explanation


def test_what_is_answered_depends_on_the_rest_of_the_batch(policy):
    votes, _ = labelled(400, 4)
    p_values = policy.p_value(votes)
    confident = np.flatnonzero(p_values <= np.quantile(p_values, 0.3))
    alone = policy.select(votes.take(confident), fdr=0.1)
    together = policy.select(votes, fdr=0.1)
    assert alone.cut_off != together.cut_off


@pytest.mark.parametrize("value", [0, 1, -0.5, 2, "many"])
def test_an_fdr_outside_of_0_and_1_is_refused(policy, value):
    with pytest.raises(InvalidValue, match="fdr"):
        policy.select(labelled(20, 5)[0], fdr=value)


def test_calibration_problems_other_pipelines_and_nothing_are_refused(policy):
    pools = dm.simulate_pools(30, seed=6)
    ids = ["1-0", "1-7", *(f"new-{row}" for row in range(28))]
    with pytest.raises(CalibrationLeak, match="2 of 30 problems calibrated this policy"):
        policy.select(dm.vote(pools.answers, pools.scores, tie_break=dm.jitter(0), ids=ids), fdr=0.1)
    with pytest.raises(PipelineMismatch, match="tie_break"):
        policy.select(dm.vote(pools.answers, pools.scores), fdr=0.1)
    with pytest.raises(PipelineMismatch, match="n_paths"):
        policy.select(labelled(30, 6, n_paths=5)[0], fdr=0.1)
    with pytest.raises(InvalidValue, match="at least one vote"):
        policy.select(labelled(30, 6)[0].take(np.arange(0)), fdr=0.1)


def test_one_of_each_cluster_is_selected_from(policy):
    votes, _ = labelled(100, 7)
    clusters = [str(row // 2) for row in range(100)]
    chosen = policy.select(dm.VotedPools.of(votes, clusters=clusters), fdr=0.2)
    assert chosen.counted.sum() == 50
    assert not chosen.answered[~chosen.counted].any()
    assert chosen.answered.any()
    assert chosen.notes() == ["50 problems share a cluster or question with another of the batch: not answered"]
    assert "one of each counts" in chosen[int(np.flatnonzero(~chosen.counted)[0])].explanation


def test_votes_without_confidence_are_never_selected():
    confident = dm.vote([["a"] * 4] * 40, ids=[str(row) for row in range(40)])
    policy = dm.calibrate(confident, np.ones(40, bool), alpha=0.1)
    batch = dm.vote([["a"] * 4, [None] * 4], ids=["x", "y"])
    assert policy.select(batch, fdr=0.5).answered.tolist() == [True, False]
    assert "no path has an answer" in policy.select(batch, fdr=0.5)[1].explanation


# --- selective error ---------------------------------------------------------------------------------------------


def test_the_policy_holds_both_promises_and_each_says_what_it_is_about(policy):
    marginal, selective = policy.points
    assert (marginal.guarantee.name, selective.guarantee.name) == ("marginal", "selective")
    assert (marginal.among_answers, selective.among_answers) == (False, True)
    assert "of the answers given to new questions like them at most a share 0.1 is wrong" in selective.promise
    votes, _ = labelled(50, 8)
    decided = policy.decide_votes(votes, guarantee="selective")
    assert all("nor that this share of the given answers" not in decision.explanation for decision in decided)
    assert "at most a share 0.1 is wrong" in policy.summary()


def test_a_stored_policy_is_computed_again_and_a_changed_threshold_refused(policy, tmp_path):
    policy.save(tmp_path / "policy.json")
    loaded = dm.Policy.load(tmp_path / "policy.json")
    assert loaded.points == policy.points
    document = json.loads((tmp_path / "policy.json").read_text())
    stored = next(point for point in document["points"] if point["guarantee"] == "selective")
    assert set(stored) == {"guarantee", "alpha", "delta", "threshold"}
    changed = to_document(policy)
    changed["points"][1]["threshold"][0] -= 0.01
    with pytest.raises(ValueError, match="does not follow from its evidence"):
        from_document(changed)
    lost = to_document(policy)
    del lost["points"][1]["delta"]
    with pytest.raises(ValueError, match="selective guarantee does not take"):
        from_document(lost)
    (tmp_path / "policy.json").write_text(json.dumps(document).replace('"delta": 0.1', '"delta": 0.2'))
    with pytest.raises(PolicyFileError):
        dm.Policy.load(tmp_path / "policy.json")


def test_an_audit_judges_the_answers_and_says_so(policy):
    votes, correct = labelled(400, 9)
    _, point = dm.audit_policy(policy, votes, correct)
    answered = policy.decide_votes(votes, guarantee="selective").answered
    wrong = int((answered & ~correct).sum())
    assert (point.errors, point.answered) == (wrong, answered.mean())
    assert f"among {answered.sum()} answers" in point.verdict
    assert point.consistent
    assert point.p_value == pytest.approx(binom.sf(wrong - 1, answered.sum(), 0.1))
    assert point.outlook.n == answered.sum()
    assert "answers" in point.outlook.sentence
    assert "answered wrongly" not in point.outlook.sentence


def test_an_audit_of_answers_most_of_which_are_wrong_is_not_consistent(policy):
    votes, _ = labelled(400, 10)
    _, point = dm.audit_policy(policy, votes, np.zeros(400, bool))
    assert not point.consistent
    assert "unless calibration was one of the few" in point.verdict


def test_two_numbers_do_not_tell_how_many_were_answered(policy):
    from demur.evaluation.audit import Consistency

    rule = policy.point(0.1, "selective")
    with pytest.raises(InvalidValue, match="how many of the 100 questions were answered"):
        Consistency.of(rule, 3, 100)
    with pytest.raises(InvalidValue, match="no more than the 2"):
        Consistency.of(rule, 3, 100, answered=2)
    assert Consistency.of(rule, 3, 100, answered=40).consistent
    assert Consistency.of(rule, 0, 100, answered=0).p_value == 1


def test_what_is_expected_of_an_audit_is_of_answers(policy):
    ahead = dm.audit_outlook(policy, 400, alpha=0.1, guarantee="selective")
    expected = policy.forecast(0.1, "selective").answered
    assert ahead.n == round(400 * expected)
    assert ahead.unit == "answer"
    assert len(ahead.counts) == ahead.n + 1


def test_repeated_splits_refuse_a_promise_without_an_exact_law():
    votes, correct = labelled(100, 11)
    with pytest.raises(InvalidValue, match="exact law, which the selective guarantee does not have"):
        dm.evaluate(votes, correct, guarantee=GUARANTEE)


def test_errors_everywhere_abstain_and_say_why():
    votes, _ = labelled(100, 12)
    policy = dm.calibrate(votes, np.zeros(100, bool), guarantee=GUARANTEE)
    rule = policy.point()
    assert (rule.feasible, rule.never_answers, rule.told) == (True, True, "never answers")
    fresh, correct = labelled(60, 13)
    assert not policy.decide_votes(fresh).answered.any()
    assert "at no threshold are calibration errors few enough" in policy.decide_votes(fresh)[0].explanation
    assert "Abstains always" in dm.audit_policy(policy, fresh, correct)[0].verdict
    assert "Nothing will be answered" in dm.audit_outlook(policy, 50).sentence


def test_each_number_of_paths_has_its_own_threshold_and_a_part_of_delta():
    """A larger threshold need not have a smaller rate among answers, so thresholds are not shared between sizes."""
    pools = [dm.simulate_pools(300, n_paths=16, seed=14), dm.simulate_pools(80, n_paths=4, seed=15)]
    answers = [row.tolist() for part in pools for row in part.answers]
    gold = np.concatenate([part.gold for part in pools])
    votes = dm.vote(answers, tie_break=dm.jitter(0), ids=[str(row) for row in range(380)])
    policy = dm.calibrate(votes, votes.answer == gold, guarantee=GUARANTEE)
    rule = policy.point()
    assert set(rule.by_size) == {4, 16}
    alone = dm.Selective(0.1, "1/20")
    for size, part in policy.strata.by_size.items():
        assert rule.threshold_of(size) == alone.settle(part).threshold_key
    rare = dm.calibrate(votes.take(np.arange(310)), (votes.answer == gold)[:310], guarantee=GUARANTEE)
    assert not rare.point().takes(4)
    assert f"fewer than {alone.n_needed()}" in rare.size_warnings()[0]
    by_chance = dm.calibrate(votes, votes.answer == gold, guarantee=GUARANTEE, sizes_by_chance=True)
    assert by_chance.point().threshold_key == GUARANTEE.settle(by_chance.evidence).threshold_key
    assert rule.document()["by_size"].keys() == {"4", "16"}


# --- on recorded pools -------------------------------------------------------------------------------------------


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "field", "least_selected", "least_selective"),
    [
        ("faithfulcot_gsm8k_pool", "answer", 0.85, 0.7),
        ("wisdom_gpt35_nlu_asdiv_single_answer", "answer_x", 0.85, 0.7),
        ("mmlupro_text_1in8", "answer", 0.1, 0.0),
    ],
)
def test_both_promises_hold_on_pools_of_real_models(recorded_pools, name, field, least_selected, least_selective):
    """Calibration sets are drawn with replacement, so that the file is the population and true rates are known."""
    fields = dm.FieldChoice(field, missing=("None",))
    source = dm.read_pools(recorded_pools / f"{name}.jsonl.gz", facts=field != "answer")
    recipe = source.recipe(None, None, None, "jitter:0")
    voted = dm.vote_pools(source, fields, recipe, correct=dm.LabelRule())
    key, right = voted.votes.key[voted.in_order], voted.labelled[voted.in_order]
    rng = np.random.default_rng(0)
    violated, yields, shares, chosen = 0, [], [], []
    for _ in range(200):
        rows = rng.integers(0, len(right), 200)
        rule = dm.Selective(0.1, 0.1).settle(dm.Evidence.of(key[rows], right[rows]))
        answered = exceeds(key, rule.threshold_key)
        yields.append(answered.mean())
        violated += (answered & ~right).sum() > 0.1 * answered.sum()
        batch = rng.integers(0, len(right), 500)
        p_values = dm.Evidence.of(key[rows], right[rows]).p_value(key[batch])
        picked = p_values <= float(cut_off(p_values, Fraction(1, 10), 200)) + 1e-12
        chosen.append(picked.mean())
        shares.append((picked & ~right[batch]).sum() / max(1, picked.sum()))
    assert violated <= binom.isf(1e-6, 200, 0.1)
    assert np.mean(shares) <= 0.1 + 4 * np.std(shares, ddof=1) / np.sqrt(200)
    assert np.mean(yields) >= least_selective
    assert np.mean(chosen) >= least_selected
