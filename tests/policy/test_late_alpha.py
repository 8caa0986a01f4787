"""Policies whose alpha, or whose way to vote, was chosen by the labels that calibrated them."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import demur as dm
from demur.descriptions import digest
from demur.errors import InvalidValue, PolicyFileError
from demur.evaluation.audit import audit_policy
from demur.policy.prices import price_of


def labelled_votes(pools=300, seed=0, sizes=None):
    simulated = dm.simulate_pools(pools, n_paths=8, seed=seed)
    answers, scores = list(simulated.answers), list(simulated.scores)
    if sizes is not None:
        answers = [row[: sizes[at % len(sizes)]] for at, row in enumerate(answers)]
        scores = [row[: sizes[at % len(sizes)]] for at, row in enumerate(scores)]
    ids = [f"{seed}-{row}" for row in range(pools)]
    votes = dm.vote([row.tolist() for row in answers], [row.tolist() for row in scores], ids=ids)
    return votes, np.array([bool(a == g) for a, g in zip(votes.answer, simulated.gold.tolist(), strict=True)])


@pytest.fixture(scope="module")
def policy():
    return dm.calibrate(*labelled_votes(), guarantee=dm.Simultaneous(0.1, 0.1))


def test_any_alpha_may_be_asked_for_late(policy):
    for alpha in (0.05, 0.0731, Fraction(1, 7), 0.3):
        rule = policy.point(alpha)
        assert rule == dm.calibrate(*labelled_votes(), guarantee=dm.Simultaneous(alpha, 0.1)).point()
        assert rule.guarantee.level == Fraction(str(alpha))
    assert policy.point(0.0731).promise.count("at most 0.0731") == 1


def test_a_late_alpha_decides_as_it_would_have(policy):
    votes, _ = labelled_votes(seed=1)
    decided = policy.decide_votes(votes, alpha=0.2)
    assert (decided.answered == (votes.confidence > policy.point(0.2).threshold)).all()
    assert decided.rule.alpha == 0.2


def test_an_alpha_that_nobody_promised_is_refused_where_each_stands_alone():
    votes, right = labelled_votes()
    alone = dm.calibrate(votes, right, guarantee=dm.HighProbability(0.1, 0.1))
    with pytest.raises(InvalidValue, match=r"not calibrated for alpha = 0.2"):
        alone.point(0.2)
    with pytest.raises(InvalidValue, match="each alpha by itself"):
        alone.bounds()
    both = dm.calibrate(votes, right, guarantee=[dm.Marginal(0.2), dm.Simultaneous(0.1, 0.1)])
    assert both.point(0.2).guarantee.name == "marginal"
    assert both.point(0.2, "simultaneous").guarantee.name == "simultaneous"
    with pytest.raises(InvalidValue, match="guarantee 'selective'"):
        both.point(0.3, "selective")


def test_too_small_an_alpha_is_never_answered_and_says_so(policy):
    rule = policy.point(0.001)
    assert not rule.feasible
    assert "300 calibration questions are too few for alpha = 0.001" in rule.too_few


def test_the_frontier_has_a_bound_at_every_step(policy):
    columns = policy.bounds().columns()
    assert columns["alpha"] == sorted(columns["alpha"])
    assert columns["answered"] == sorted(columns["answered"])
    assert columns["answered"][-1] == pytest.approx(1.0)
    assert all(error < alpha for error, alpha in zip(columns["confident_error"], columns["alpha"], strict=True))
    assert len(policy.bounds([0.05, 0.1])) == 2
    with pytest.raises(InvalidValue, match="at least one alpha"):
        policy.bounds([])


def test_pools_of_several_sizes_keep_every_alpha_for_each(tmp_path):
    votes, right = labelled_votes(400, sizes=(5, 8))
    mixed = dm.calibrate(votes, right, guarantee=dm.Simultaneous(0.2, 0.1))
    late = mixed.point(0.15)
    for size in (5, 8):
        of_size = votes.n_paths == size
        own = dm.Simultaneous(0.15, 0.1).settle(dm.Evidence.of(votes.key[of_size], right[of_size])).threshold_key
        assert late.threshold_of(size) >= own
    mixed.save(tmp_path / "policy.json")
    assert dm.Policy.load(tmp_path / "policy.json").point(0.15) == late


@pytest.mark.parametrize(
    "guarantee",
    [
        dm.Simultaneous(0.1, 0.1),
        dm.Simultaneous(0.1, 0.1, choices=3),
        dm.Marginal(0.1, choices=4),
        dm.HighProbability(0.1, 0.1, choices=4),
        dm.Selective(0.3, 0.3, choices=2),
    ],
)
def test_a_file_brings_the_promise_back(guarantee, tmp_path):
    policy = dm.calibrate(*labelled_votes(), guarantee=guarantee)
    policy.save(tmp_path / "policy.json")
    loaded = dm.Policy.load(tmp_path / "policy.json")
    assert loaded.points == policy.points
    assert loaded.point().promise == policy.point().promise


def forged(path, change):
    document = json.loads(path.read_text())
    document.pop("digest")
    change(document["points"][0])
    document["digest"] = digest(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda point: point.pop("choices"), "does not follow from its evidence"),
        (lambda point: point.update(choices=2), "does not follow from its evidence"),
        (lambda point: point.update(choices=0), "choices must be a whole number"),
        (lambda point: point.update(choices=1.5), "choices must be a whole number"),
        (lambda point: point.update(choices="3"), "must be numbers"),
    ],
)
def test_a_file_whose_choices_were_edited_is_refused(change, said, tmp_path):
    dm.calibrate(*labelled_votes(), guarantee=dm.Marginal(0.1, choices=4)).save(tmp_path / "policy.json")
    forged(tmp_path / "policy.json", change)
    with pytest.raises(PolicyFileError, match=said):
        dm.Policy.load(tmp_path / "policy.json")


def test_files_without_a_choice_stay_as_they_were(tmp_path):
    dm.calibrate(*labelled_votes(), alpha=0.1).save(tmp_path / "policy.json")
    assert "choices" not in (tmp_path / "policy.json").read_text()


def test_the_price_of_a_late_choice_is_told(policy):
    lost, told = price_of(policy, policy.point())
    beforehand = dm.calibrate(*labelled_votes(), guarantee=dm.HighProbability(0.1, 0.1)).forecast().answered
    assert lost == pytest.approx(beforehand - policy.forecast().answered)
    assert lost > 0
    assert told.startswith(f"Choosing alpha by these labels costs {100 * lost:.1f} points of yield at alpha = 0.1")
    chosen = dm.calibrate(*labelled_votes(), guarantee=dm.Marginal(0.1, choices=5))
    assert "one of 5 ways to vote" in price_of(chosen, chosen.point())[1]
    assert price_of(*(lambda plain: (plain, plain.point()))(dm.calibrate(*labelled_votes(), alpha=0.1))) is None


def test_a_batch_has_no_correction_for_a_choice():
    chosen = dm.calibrate(*labelled_votes(), guarantee=dm.Marginal(0.1, choices=5))
    with pytest.raises(InvalidValue, match="chosen from 5 by the labels that calibrated it"):
        chosen.select(labelled_votes(seed=1)[0], fdr=0.1)


def test_a_decision_says_that_the_way_to_vote_was_chosen():
    chosen = dm.calibrate(*labelled_votes(), guarantee=dm.Marginal(0.1, choices=50))
    votes, _ = labelled_votes(seed=1)
    decided = chosen.decide_votes(votes)
    odd = np.flatnonzero((decided.p_value <= 0.1) & ~decided.answered)
    for row in (int(odd[0]), int(np.argmin(decided.p_value))):  # where they disagree, and where they do not
        said = (
            f"The p-value {decided.p_value[row]:.4g} is that of one way to vote fixed beforehand: it does not pay for"
        )
        assert f"{said} the choice from 50 by the same labels" in decided[row].explanation


def test_audits_and_monitors_allow_for_the_choice():
    votes, right = labelled_votes()
    chosen = dm.calibrate(votes, right, guarantee=dm.Marginal(0.1, choices=10))
    k = chosen.point().law.k
    fresh, truth = labelled_votes(seed=1)
    audited = audit_policy(chosen, fresh, truth).points[0]
    plain = replace(chosen.point().law, choices=1)
    assert audited.p_value == pytest.approx(min(1, 10 * plain.upper_tail(audited.errors, len(fresh))))
    monitor = dm.monitoring.ErrorMonitor(chosen)
    from scipy.stats import beta

    assert monitor.level == pytest.approx(beta.isf(monitor.delta / 2 / 10, k, 301 - k), rel=1e-6)


def test_an_audit_takes_any_alpha_of_a_promise_that_is_kept_at_every_one(policy):
    fresh, truth = labelled_votes(seed=1)
    for alpha in ("1/7", 0.23):
        (point,) = audit_policy(policy, fresh, truth, alpha=alpha)
        rule = policy.point(alpha)
        answered = policy.decide_votes(fresh, alpha=alpha).answered
        assert point.rule is rule
        assert point.errors == int((answered & ~truth).sum())
        # Whoever chose alpha may have chosen it by the audit: the law allows for every rank that is looked at.
        plain = replace(rule.law, choices=1)
        assert point.p_value == pytest.approx(min(1, rule.law.choices * plain.upper_tail(point.errors, len(fresh))))
        assert point.outlook.rule is rule
    with pytest.raises(InvalidValue, match=r"not calibrated for alpha = 0\.2"):
        audit_policy(dm.calibrate(*labelled_votes(), alpha=0.1), fresh, truth, alpha=0.2)


def test_labels_from_the_top_reach_the_same_rule():
    votes, right = labelled_votes()
    for guarantee in (dm.Simultaneous(0.1, 0.1), dm.Marginal(0.1, choices=7)):
        queue = dm.LabelQueue(dm.VotedPools.of(votes), [guarantee])
        while (row := queue.next) is not None:
            queue.label(row, right=bool(right[row]))
        partly = dm.calibrate(queue.labelled_votes(), guarantee=guarantee, partly_labelled=True)
        full = dm.calibrate(votes, right, guarantee=guarantee)
        assert partly.point().threshold_key == full.point().threshold_key
        assert queue.n_labelled < len(votes)
