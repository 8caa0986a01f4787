"""Policies under shift: from votes to a file and back, one question like many, audits, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import demur as dm
from demur.descriptions import digest
from demur.errors import CalibrationLeak, InvalidValue, PolicyFileError
from demur.policy import file

PLACES = ["France", "Peru", "Kenya", "Norway", "Japan"]


def ask(rng, share, n):
    """Questions of which this share is about capitals, which are hard, and the rest sums; and which are which."""
    hard = rng.random(n) < share
    return [
        f"What is the capital of {rng.choice(PLACES)} number {rng.integers(10**9)}?"
        if place
        else f"Ann has {rng.integers(10**9)} apples and buys {rng.integers(99)} more. How many has she?"
        for place in hard
    ], hard


def vote_on(rng, texts, hard, weights):
    """Pools of eight paths: right paths are fewer on hard questions."""
    paths = rng.random((len(texts), 8)) < np.where(hard, 0.55, 0.9)[:, None] * rng.uniform(0.6, 1, (len(texts), 1))
    answers = np.where(paths, 0, rng.integers(1, 4, paths.shape))
    votes = dm.vote(answers, questions=texts, importance=weights)
    return votes, votes.winners == 0


@pytest.fixture(scope="module")
def ratio():
    rng = np.random.default_rng(1)
    return dm.fit_shift(ask(rng, 0.7, 500)[0], ask(rng, 0.2, 500)[0])


@pytest.fixture(scope="module")
def calibrated(ratio):
    rng = np.random.default_rng(2)
    texts, hard = ask(rng, 0.2, 400)
    return dm.calibrate(
        *vote_on(rng, texts, hard, ratio.weights(texts)),
        guarantee=[dm.Shifted(dm.Marginal(alpha), ratio) for alpha in (0.1, 0.2)],
    )


def test_a_policy_read_from_its_file_decides_alike_and_finds_weights_by_the_question(calibrated, ratio, tmp_path):
    calibrated.save(tmp_path / "policy.json")
    loaded = dm.Policy.load(tmp_path / "policy.json")
    assert loaded.shift.fingerprint == ratio.fingerprint
    assert [rule.promise for rule in loaded.points] == [rule.promise for rule in calibrated.points]
    rng = np.random.default_rng(3)
    texts, hard = ask(rng, 0.7, 60)
    votes, _ = vote_on(rng, texts, hard, ratio.weights(texts))
    many = loaded.decide_votes(votes, alpha=0.1)
    assert 0 < many.answered.sum() < 60
    for row in range(60):
        answers = votes._answers.codes[row]
        one = loaded.decide(answers, question=texts[row], alpha=0.1)
        assert one.abstained == (not many.answered[row])
        assert one.p_value == pytest.approx(many.p_value[row])
        assert one.threshold_key == many[row].threshold_key
        assert "its weight" in one.explanation
        assert (one.p_value <= 0.1) == (not one.abstained)


def test_the_promise_says_approximately_where_weights_are_fitted_and_not_where_they_are_known(calibrated):
    assert "approximately at most 0.1" in calibrated.point(0.1).promise
    assert "cut at 10" in calibrated.point(0.1).promise
    known = dm.Shifted(dm.Marginal(0.1)).promise(200)
    assert "approximately" not in known
    assert "as much more often in use" in known
    for promise in (known, calibrated.point(0.1).promise):
        assert "nothing is promised once the same question is answered otherwise" in promise
    assert "effective sample size" in calibrated.summary()


def test_shifted_traffic_is_answered_wrongly_no_more_than_promised_where_plain_control_breaks(ratio):
    rng, plain, weighted, given = np.random.default_rng(4), [], [], []
    for _ in range(60):
        texts, hard = ask(rng, 0.2, 300)
        votes, right = vote_on(rng, texts, hard, ratio.weights(texts))
        policy = dm.calibrate(votes, right, guarantee=[dm.Marginal(0.1), dm.Shifted(dm.Marginal(0.1), ratio)])
        texts, hard = ask(rng, 0.7, 300)
        votes, right = vote_on(rng, texts, hard, ratio.weights(texts))
        for name, errors in (("marginal", plain), ("shifted", weighted)):
            answered = policy.decide_votes(votes, alpha=0.1, guarantee=name).answered
            errors.append((answered & ~right).mean())
        given.append(answered.mean())
    spread = np.std(weighted, ddof=1) / np.sqrt(len(weighted))
    assert np.mean(weighted) <= 0.1 + 0.01 + 4 * spread  # weights are estimates: a part in ten beyond chance
    assert np.mean(given) > 0.2
    assert np.mean(plain) > 0.13


def test_an_audit_says_what_errors_are_compared_with(calibrated, ratio):
    rng = np.random.default_rng(5)
    texts, hard = ask(rng, 0.7, 300)
    votes, right = vote_on(rng, texts, hard, ratio.weights(texts))
    audit = dm.audit_policy(calibrated, votes, right)
    assert audit[0].consistent
    assert "No exact law is known under weights" in audit[0].verdict
    broken = dm.audit_policy(calibrated, votes, np.zeros(300, dtype=bool))
    assert not broken[1].consistent


def test_questions_that_weights_were_fitted_on_cannot_calibrate(ratio):
    rng = np.random.default_rng(1)
    texts, hard = (column[:100] for column in ask(rng, 0.7, 500))  # the first of the traffic
    votes, right = vote_on(rng, texts, hard, ratio.weights(texts))
    with pytest.raises(CalibrationLeak, match="the weights were fitted on calibration problems"):
        dm.calibrate(votes, right, guarantee=dm.Shifted(dm.Marginal(0.1), ratio))
    nameless = dm.vote([["a"]] * 3, importance=[1, 1, 1])
    with pytest.raises(InvalidValue, match="the weights need votes with questions"):
        dm.calibrate(nameless, [True] * 3, guarantee=dm.Shifted(dm.Marginal(0.5), ratio))


def test_known_weights_are_given_with_each_question(tmp_path):
    rng = np.random.default_rng(6)
    texts, hard = ask(rng, 0.2, 300)
    weights = np.where(hard, 3.5, 0.375)
    policy = dm.calibrate(*vote_on(rng, texts, hard, weights), guarantee=dm.Shifted(dm.Marginal(0.1), "share"))
    policy.save(tmp_path / "policy.json")
    loaded = dm.Policy.load(tmp_path / "policy.json")
    assert loaded.shift is None
    light, heavy = (loaded.decide(np.zeros(8, dtype=int), question="new?", weight=weight) for weight in (0.375, 3.5))
    assert light.threshold_key <= heavy.threshold_key
    problem = dm.Problem("q", "new?", extra={"share": 3.5})
    assert loaded.decide(np.zeros(8, dtype=int), question=problem).threshold_key == heavy.threshold_key
    assert "too rare" in loaded.decide(np.zeros(8, dtype=int), question="new?", weight=1e6).explanation
    for bad in (-1.0, np.inf, np.nan):
        with pytest.raises(InvalidValue, match="finite and not negative"):
            loaded.decide(np.zeros(8, dtype=int), question="new?", weight=bad)
    with pytest.raises(InvalidValue, match="that of this one is not known; give weight"):
        loaded.decide(np.zeros(8, dtype=int), question="new?")
    with pytest.raises(InvalidValue, match="these votes have none"):
        loaded.decide_votes(dm.vote(np.zeros((2, 8), dtype=int), questions=["a", "b"]))


def test_a_batch_is_refused_where_all_promises_are_by_weight(calibrated, ratio):
    rng = np.random.default_rng(7)
    texts, hard = ask(rng, 0.7, 20)
    votes, _ = vote_on(rng, texts, hard, ratio.weights(texts))
    with pytest.raises(InvalidValue, match="a batch needs questions that are exchangeable"):
        calibrated.select(votes, fdr=0.1)


def test_two_ways_to_weight_do_not_go_into_one_policy(ratio):
    rng = np.random.default_rng(8)
    texts, hard = ask(rng, 0.2, 30)
    both = [dm.Shifted(dm.Marginal(0.1), ratio), dm.Shifted(dm.Marginal(0.2))]
    with pytest.raises(InvalidValue, match="in one way"):
        dm.calibrate(*vote_on(rng, texts, hard, np.ones(30)), guarantee=both)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda document: document["points"][0].update(threshold=[0.01, 0.5]), "does not follow from its evidence"),
        (lambda document: document["evidence"][0]["weights"][5].__setitem__(2, 1e9), "do not fit their sums"),
        (lambda document: document["evidence"][0]["weights"][5].__setitem__(0, -1.0), "none of them negative"),
        (lambda document: document["evidence"][0]["weights"].pop(), "three numbers for each row"),
        (lambda document: document["points"][0].update(weights="guessed"), "given in a field, or fitted"),
        (lambda document: document.pop("shift"), "given in a field, or fitted"),
        (lambda document: document["shift"].update(clip=-1), "clip must be a number"),
        (lambda document: document["shift"]["coefficients"].pop(), "coefficients"),
    ],
)
def test_a_file_that_was_tampered_with_and_sealed_again_is_refused(calibrated, tmp_path, change, told):
    calibrated.save(tmp_path / "policy.json")
    document = json.loads((tmp_path / "policy.json").read_text())
    document.pop("digest")
    change(document)
    document["digest"] = digest(document)
    (tmp_path / "policy.json").write_text(json.dumps(document))
    assert file.read(tmp_path / "policy.json")  # the seal holds
    with pytest.raises(PolicyFileError, match=told):
        dm.Policy.load(tmp_path / "policy.json")


def test_what_takes_all_questions_for_alike_refuses_a_policy_by_weights(calibrated):
    with pytest.raises(InvalidValue, match="must be alike, and this policy promises about questions by their weights"):
        dm.monitoring.DriftMonitor(calibrated)
    with pytest.raises(InvalidValue, match="no exact law of errors is known"):
        dm.monitoring.ErrorMonitor(calibrated, alpha=0.1)
    with pytest.raises(InvalidValue, match="repeated splits compare with an exact law"):
        dm.evaluate(dm.vote([["a"]] * 40), [True] * 40, guarantee=dm.Shifted(dm.Marginal(0.1)), n_cal=20)


def test_questions_that_the_weights_were_fitted_to_are_not_new(calibrated, ratio):
    """The classifier has seen them as traffic, and gives them more weight than others like them."""
    rng = np.random.default_rng(1)
    texts, hard = ask(rng, 0.7, 500)
    with pytest.raises(CalibrationLeak, match="500 of 500 problems shaped the weights"):
        dm.audit_policy(calibrated, *vote_on(rng, texts, hard, ratio.weights(texts)))
