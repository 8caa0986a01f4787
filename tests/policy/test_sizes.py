"""Pools of different sizes: the promise holds for each size by itself, and sizes that are too rare are not answered."""

from __future__ import annotations

import json
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import demur as dm
from demur.calibration import exact_alpha
from demur.descriptions import digest
from demur.errors import InfeasibleWarning, InsufficientCalibration, PipelineMismatch, PolicyFileError
from demur.evidence.laws import ErrorLaw
from demur.records import Path, Pool, Problem
from demur.reports.facts import report_facts

ragged = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.booleans()).map(
        lambda p: (max(p[0], p[1]), min(p[0], p[1]), p[2])
    ),
    min_size=2,
    max_size=12,
)  # (paths, paths for the winner, right)


def answers_of(bag):
    return [["a"] * won + [f"other {path}" for path in range(paths - won)] for paths, won, _ in bag]


def calibrated(bag, alpha, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfeasibleWarning)
        return dm.calibrate(dm.vote(answers_of(bag)), [right for *_, right in bag], alpha=alpha, **how)


def losses_by_size(bag, alpha, **how):
    """For each size, how many of its pools are answered wrongly by the policy calibrated on all the others."""
    losses = dict.fromkeys({paths for paths, *_ in bag}, 0)
    for held_out, (paths, _, right) in enumerate(bag):
        policy = calibrated([one for row, one in enumerate(bag) if row != held_out], alpha, **how)
        if policy.strata.knows(paths):  # else it is refused
            losses[paths] += not policy.decide(answers_of(bag)[held_out]).abstained and not right
    return losses


@settings(max_examples=150)
@given(ragged, st.sampled_from([0.1, 0.25, 0.3, 0.5]))
def test_the_average_held_out_loss_is_at_most_alpha_for_each_size_and_for_all(bag, alpha):
    losses = losses_by_size(bag, alpha)
    for size, errors in losses.items():
        assert Fraction(errors, sum(paths == size for paths, *_ in bag)) <= exact_alpha(alpha)
    assert Fraction(sum(losses.values()), len(bag)) <= exact_alpha(alpha)


@settings(max_examples=100)
@given(ragged, st.sampled_from([0.1, 0.25, 0.3, 0.5]))
def test_sizes_that_vary_by_chance_share_one_threshold_and_the_promise_holds_for_all_together(bag, alpha):
    losses = losses_by_size(bag, alpha, sizes_by_chance=True)
    assert Fraction(sum(losses.values()), len(bag)) <= exact_alpha(alpha)


def test_one_threshold_for_all_sizes_breaks_the_promise_of_a_size():
    """The negative control: what the policy did before. Small pools agree by chance, and are wrong more often."""
    bag = [(2, 2, row % 4 != 0) for row in range(20)] + [(3, 3, True)] * 100
    small = losses_by_size(bag, 0.1, sizes_by_chance=True)[2]
    assert small / 20 > 0.1
    assert losses_by_size(bag, 0.1)[2] == 0


NEW = [f"new-{row}" for row in range(300)]


@pytest.fixture
def mostly_ten():
    """400 pools of ten paths, and four that lost five of theirs."""
    drawn = dm.simulate_pools(404, n_paths=10, seed=3)
    answers = [pool[:5] if row < 4 else pool for row, pool in enumerate(drawn.answers.astype(str).tolist())]
    votes = dm.vote(answers, ids=[f"q{row}" for row in range(404)])
    return dm.calibrate(votes, votes.answer == drawn.gold.astype(str), alpha=0.1)


def test_pools_cut_to_a_size_that_calibration_hardly_saw_are_not_answered(mostly_ten):
    fresh = dm.simulate_pools(300, n_paths=10, seed=4).answers.astype(str)
    decisions = mostly_ten.decide_votes(dm.vote(fresh[:, :5].tolist(), ids=NEW[:300]))
    assert not decisions.answered.any()
    assert decisions.of_rare_size.all()
    assert mostly_ten.sizes == {5: 4, 10: 400}
    told = decisions[0].explanation
    assert "this pool has 5 paths, and 4 calibration pools had as many, where alpha = 0.1 needs 9" in told
    assert "sample again to draw the rest" in told
    assert decisions.notes()[0].startswith("300 pools have 5 paths")
    assert mostly_ten.decide(fresh[0, :5].tolist(), id=NEW[0]) == decisions[0]
    whole = mostly_ten.decide_votes(dm.vote(fresh.tolist(), ids=NEW[:300]))
    assert whole.answered.mean() > 0.3
    assert not whole.of_rare_size.any()
    assert whole.notes() == []


def test_the_summary_says_which_sizes_are_not_answered(mostly_ten):
    told = mostly_ten.summary()
    assert "Paths per pool (pools): 5 (4), 10 (400)" in told
    assert "pools of 5 paths are not answered at alpha = 0.1: fewer than 9 calibrated each" in told


@pytest.mark.parametrize("seen", [8, 9])
def test_a_size_is_answered_from_as_many_pools_on_as_the_promise_needs(seen):
    bag = [(2, 2, True)] * seen + [(4, 4, True)] * 40
    assert calibrated(bag, 0.1).decide(["a", "a"]).abstained == (seen < 9)


def test_single_pools_of_unseen_sizes_abstain_among_others_and_are_refused_alone(mostly_ten):
    mixed = mostly_ten.decide_votes(dm.vote([["1"] * 10, ["1"] * 7, ["1"] * 12], ids=NEW[:3]))
    assert mixed.answered.tolist() == [True, False, False]
    assert mixed.p_value.tolist()[1:] == [1.0, 1.0]
    with pytest.raises(PipelineMismatch, match="n_paths is 5 or 10 in the policy, 7 in this pool"):
        mostly_ten.decide(["1"] * 7)
    with pytest.raises(PipelineMismatch, match="n_paths is 5 or 10 in the policy, 7 in pool 'new-0'"):
        mostly_ten.decide_votes(dm.vote([["1"] * 7, ["1"] * 12], ids=NEW[:2]))


def test_many_sizes_are_told_by_the_smallest_and_the_largest():
    policy = calibrated([(size, size, True) for size in (3, 4, 7, 9) for _ in range(20)], 0.2)
    assert policy.told_sizes == "3 to 9"
    assert calibrated([(size, size, True) for size in (3, 4, 7) for _ in range(20)], 0.2).told_sizes == "3 to 7"
    with pytest.raises(PipelineMismatch, match="n_paths is 3 to 9 in the policy, 12 in this pool"):
        policy.decide(["a"] * 12)


@pytest.mark.parametrize("by_chance", [False, True])
def test_a_policy_of_one_size_answers_no_other_among_its_own(by_chance):
    policy = calibrated([(4, 4, True)] * 30, 0.1, sizes_by_chance=by_chance)
    mixed = policy.decide_votes(dm.vote([["a"] * size for size in (3, 4, 5)]))
    assert mixed.answered.tolist() == [False, True, False]
    assert mixed.of_rare_size.tolist() == [True, False, True]
    assert mixed.p_value.tolist() == [1.0, pytest.approx(1 / 31), 1.0]
    assert list(policy.point().sizes) == [4]


def test_each_size_takes_the_larger_of_the_pooled_and_its_own_threshold():
    rng = np.random.default_rng(1)
    sizes = rng.choice([4, 6, 9], 300, p=[0.2, 0.3, 0.5])
    won = [int(rng.integers(1, size + 1)) for size in sizes]
    bag = [(int(size), top, bool(rng.random() < top / size)) for size, top in zip(sizes, won, strict=True)]
    policy = calibrated(bag, 0.2)
    rule, votes = policy.point(), dm.vote(answers_of(bag))
    right = np.array([one[2] for one in bag])
    apart = {size: dm.calibrate(votes.take(sizes == size), right[sizes == size], alpha=0.2) for size in (4, 6, 9)}
    pooled = calibrated(bag, 0.2, sizes_by_chance=True).threshold
    assert {size: rule.threshold_of(size)[0] for size in apart} == {
        size: max(pooled, alone.threshold) for size, alone in apart.items()
    }
    assert len({rule.threshold_of(size) for size in apart}) > 1
    # The p-value says the same: a marginal promise is kept exactly where p ≤ alpha.
    decisions = policy.decide_votes(votes)
    np.testing.assert_array_equal(decisions.answered, decisions.p_value <= 0.2)
    for row in range(0, 300, 7):
        assert policy.decide(answers_of(bag)[row]) == decisions[row]
    right_above, wrong_above = rule.answered(policy.strata)
    assert right_above == int((decisions.answered & right).sum())
    assert wrong_above == int((decisions.answered & ~right).sum())


def test_sizes_declared_to_vary_by_chance_are_answered_between_the_smallest_and_the_largest():
    bag = [(4, 4, True)] * 30 + [(8, 8, True)] * 30 + [(6, 2, False)] * 3
    policy = calibrated(bag, 0.2, sizes_by_chance=True)
    answers = [["a"] * size for size in (3, 4, 5, 6, 7, 8, 9)]
    assert policy.decide_votes(dm.vote(answers)).answered.tolist() == [False, True, True, True, True, True, False]
    assert policy.decide(["a"] * 5).answer == "a"
    assert "vary by chance" in policy.summary()


def test_policies_of_ragged_pools_are_files_too(mostly_ten, tmp_path):
    mostly_ten.save(tmp_path / "p.json")
    loaded = dm.Policy.load(tmp_path / "p.json")
    assert loaded.points == mostly_ten.points
    assert loaded.sizes == mostly_ten.sizes
    assert loaded.n_paths == mostly_ten.n_paths == 10
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "p.json").read_bytes()


def as_schema_1(path, n_paths):
    """A policy as the first schema had it: evidence of all sizes in one list, and the range of sizes."""
    document = json.loads(path.read_text())
    for name in ("digest", "unit", "sizes_by_chance", "unscored"):
        document.pop(name)
    rows = next(iter(document["evidence"].values()))
    document |= {"schema": 1, "n_paths": n_paths, "evidence": rows}
    for point in document["points"]:
        point.pop("by_size", None)
    path.write_text(json.dumps({**document, "digest": digest(document)}))


def test_policies_of_the_first_schema_load_where_all_pools_had_one_size(tmp_path):
    votes = dm.vote([["a"] * 4, ["a", "a", "a", "b"]] * 30)
    policy = dm.calibrate(votes, [True, False] * 30, alpha=0.2)
    policy.save(tmp_path / "p.json")
    as_schema_1(tmp_path / "p.json", [4, 4])
    loaded = dm.Policy.load(tmp_path / "p.json")
    assert loaded.sizes == {4: 60}
    assert loaded.decide(["a"] * 4) == policy.decide(["a"] * 4)
    policy.save(tmp_path / "p.json")
    as_schema_1(tmp_path / "p.json", [3, 4])
    with pytest.raises(PolicyFileError, match=r"3 to 4 paths, and it does not say how many.*calibrate again"):
        dm.Policy.load(tmp_path / "p.json")


def test_a_high_probability_promise_asks_its_own_number_of_pools_of_each_size():
    bag = [(2, 2, True)] * 21 + [(4, 4, True)] * 60
    votes, right = dm.vote(answers_of(bag)), [True] * 81
    policy = dm.calibrate(votes, right, guarantee=dm.HighProbability(0.1, 0.1))  # needs 22
    assert policy.decide(["a", "a"]).abstained
    assert policy.decide(["a"] * 4).answer == "a"


def test_an_audit_of_one_size_is_held_against_the_law_of_that_size():
    """Few pools of a size make a threshold that errs more or less by chance: the law of all sizes would cry wolf."""
    rng = np.random.default_rng(5)
    alarms = wolves = 0
    for _ in range(200):
        calibration = dm.vote([["a"] * 4] * 20 + [["a"] * 8] * 400, tie_break=rng.random(420))
        right = np.concatenate([rng.random(20) < 0.5, np.ones(400, dtype=bool)])
        policy = dm.calibrate(calibration, right, alpha=0.1)
        fresh = dm.vote([["a"] * 4] * 300, tie_break=rng.random(300))
        audit = dm.audit_policy(policy, fresh, rng.random(300) < 0.5)
        alarms += audit[0].p_value < 0.01
        wolves += policy.point().law.upper_tail(audit[0].errors, 300) < 0.01
    assert alarms <= 8  # 200 · 0.01 and four standard errors
    assert wolves > 8


def test_a_policy_that_can_answer_no_size_is_not_feasible():
    votes = dm.vote([["a"] * (2 + row % 8) for row in range(48)])
    with pytest.warns(
        InfeasibleWarning, match=r"48 calibration questions are too few.*needs 9 of each number of paths"
    ):
        policy = dm.calibrate(votes, [True] * 48, alpha=0.1)
    assert not policy.feasible
    assert policy.decide(["a"] * 4).abstained
    with pytest.raises(InsufficientCalibration):
        dm.calibrate(votes, [True] * 48, alpha=0.1, strict=True)


def test_what_to_expect_counts_one_error_for_each_threshold():
    bag = [(4, 4, row % 5 > 0) for row in range(100)] + [(8, 8, row % 10 > 0) for row in range(200)]
    votes = dm.vote(answers_of(bag), tie_break=np.linspace(0, 1, 300)[::-1])
    policy = dm.calibrate(votes, [right for *_, right in bag], alpha=0.1)
    rule, expected = policy.point(), 0.0
    for size, own in policy.strata.by_size.items():
        _, wrong = own.above(rule.threshold_of(size))
        expected += own.n * (1 + wrong) / (own.n + 1)
    assert set(rule.by_size) == {4}  # the other takes the pooled threshold
    assert policy.forecast().expected_confident_error == pytest.approx(expected / 300)


def test_repeated_splits_say_that_they_vary_sizes_by_chance():
    votes = dm.vote([["a"] * (4 + row % 2) for row in range(100)])
    warned = dm.evaluate(votes, [True] * 100, alpha=0.1).warnings
    assert "pools have 4 to 5 paths" in warned[0]
    assert dm.evaluate(dm.vote([["a"] * 4] * 100), [True] * 100, alpha=0.1).warnings == []


def test_the_report_and_the_audit_expect_the_same_of_pools_of_different_sizes():
    records = [
        Pool(
            Problem(f"q{row}", f"Question {row}", ("a",)),
            tuple(Path("a" if path or row % 3 else "b") for path in range(4 + row % 2)),
        )
        for row in range(300)
    ]
    source = dm.PoolSource(records)
    voted = dm.vote_pools(source, dm.FieldChoice(), source.recipe(tie_break="jitter:0"))
    policy = dm.calibrate(voted, alpha=0.1, hold_out=0.5)
    audit = dm.audit_policy(policy, voted)[0]
    observed = next(p for p in report_facts(source, voted, policy, title="t")["points"] if p["chosen"])["observed"]
    assert observed["usual_at_most"] == audit.usual_at_most
    assert (observed["p_value"], observed["errors"]) == (audit.p_value, audit.errors)


def test_sizes_that_are_not_answered_make_no_errors_whatever_the_draw_of_a_smoothed_rank():
    votes = dm.vote([["a"] * 2] * 3 + [["a"] * 4] * 200)
    for seed in range(40):
        policy = dm.calibrate(votes, [True] * 203, guarantee=dm.Smoothed(0.1, seed=seed))
        law = policy.law_on(policy.point(), {2: 50, 4: 100})
        assert law.counts(150)[101:].sum() == 0


@pytest.mark.parametrize(
    "n_paths", [None, 4, "44", [], [4], [4, 4, 4], [0, 0], [-4, 4], [5, 4], [4, True], ["4", "4"], [4.0, 4.0], {"4": 4}]
)
def test_policies_of_the_first_schema_say_their_sizes_or_are_refused(tmp_path, n_paths):
    dm.calibrate(dm.vote([["a"] * 4] * 30), [True] * 30, alpha=0.2).save(tmp_path / "p.json")
    as_schema_1(tmp_path / "p.json", n_paths)
    with pytest.raises(PolicyFileError, match="n_paths must be the smallest and the largest number of paths, got"):
        dm.Policy.load(tmp_path / "p.json")


def test_policies_of_the_first_schema_of_single_paths_load_and_declare_nothing(tmp_path):
    dm.calibrate(dm.vote([["a"]] * 30), [True] * 30, alpha=0.2).save(tmp_path / "p.json")
    as_schema_1(tmp_path / "p.json", [1, 1])
    loaded = dm.Policy.load(tmp_path / "p.json")
    assert (loaded.sizes, loaded.strata.by_chance, loaded.unit, loaded.unscored) == ({1: 30}, False, "question", 0)


def test_errors_of_sizes_that_vary_by_chance_have_the_law_of_one_threshold():
    bag = [(2, 2, True)] * 30 + [(4, 4, True)] * 30
    for by_chance in (False, True):
        policy = calibrated(bag, 0.1, sizes_by_chance=by_chance)
        rule = policy.point()
        law = policy.law_on(rule, {2: 5, 4: 10})
        together = rule.law.counts(15)
        apart = np.convolve(ErrorLaw(3, 30).counts(5), ErrorLaw(3, 30).counts(10))
        np.testing.assert_allclose(law.counts(15), together if by_chance else apart, rtol=1e-12)
