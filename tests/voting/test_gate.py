"""The gate in the key: closed votes have no confidence and promises keep; one applied afterwards breaks some."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import demur as dm
from demur.errors import CalibrationLeak, InvalidValue
from demur.evidence.counts import Evidence
from demur.voting.gate import Gated
from demur.voting.key import Component, MeanScore, Share, parse_component

USUAL = [f"Ann has {number} apples and buys {number % 7} more. How many has she?" for number in range(1000, 1400)]
ODD = [f"Qui régnait à Rome en {year} avant notre ère, et où ?" for year in range(60)]


@pytest.fixture(scope="module")
def gate():
    return dm.OutlierGate.fit(USUAL[:200])


def vote(texts, gate, **more):
    answers = [["a", "a", "a", "b"] if row % 3 else ["a", "b", "c", "a"] for row in range(len(texts))]
    return dm.vote(answers, questions=texts, gate=gate, **more)


def test_votes_on_outliers_lose_their_confidence_and_others_keep_theirs(gate):
    texts = [*USUAL[200:240], *ODD[:5]]
    votes, plain = vote(texts, gate), vote(texts, None)
    closed = gate.closes(texts)
    assert closed[-5:].all()
    assert not closed[:-5].all()
    assert (votes.key[closed, 0] == 0).all()
    assert (votes.key[~closed] == plain.key[~closed]).all()
    assert (votes.confidence == plain.confidence).all()  # ν stays, for display


def test_the_gate_is_stored_with_the_key_and_read_back(gate):
    part = Gated(MeanScore("judge"), gate)
    again = parse_component(part.document())
    assert isinstance(again, Gated)
    assert again.spec == part.spec
    assert again.inner.spec == part.inner.spec
    with pytest.raises(InvalidValue, match="a key has one gate"):
        parse_component({"component": "gated", "of": part.document(), "gate": gate.document()})
    with pytest.raises(InvalidValue, match="holds a gate and what it is before"):
        parse_component({"component": "gated", "gate": gate.document()})


def test_a_gate_looks_at_all_that_what_is_behind_it_looks_at(gate):
    """Whatever a component says of itself, but for its name."""
    inner = MeanScore("judge")
    told = [name for name in Component.__annotations__ if name not in ("name", "spec")]
    assert [getattr(Gated(inner, gate), name) for name in told] == [getattr(inner, name) for name in told]


def test_a_policy_says_that_a_question_is_unlike_and_decides_alike_from_a_file(gate, tmp_path):
    texts, rng = USUAL[200:], np.random.default_rng(1)
    policy = dm.calibrate(vote(texts, gate), rng.random(len(texts)) < 0.9, alpha=0.2)
    policy.save(tmp_path / "policy.json")
    loaded = dm.Policy.load(tmp_path / "policy.json")
    new = [*USUAL[:20], *ODD[:5]]
    decided = loaded.decide_votes(vote(new, gate))
    assert not decided.answered[-5:].any()
    assert decided.answered[:-5].any()
    assert decided.gated[-5:].all()
    assert any("unlike the reference questions" in note for note in decided.notes())
    for row, text in enumerate(new):
        answers = ["a", "a", "a", "b"] if row % 3 else ["a", "b", "c", "a"]
        alone = loaded.decide(answers, question=text)
        assert alone.abstained == (not decided.answered[row])
        assert ("unlike" in alone.explanation) == bool(decided.gated[row])
    assert loaded.decide(["a"] * 4, id="nameless").abstained  # without its text nothing says that it is alike


def test_votes_of_another_gate_or_none_are_refused(gate):
    policy = dm.calibrate(vote(USUAL[200:], gate), [True, False] * 100, alpha=0.5)
    other = dm.OutlierGate.fit(USUAL[:100], level=0.1)
    for made in (vote(USUAL[:50], None), vote(USUAL[:50], other)):
        with pytest.raises(dm.errors.PipelineMismatch, match=r"vote\.confidence"):
            policy.decide_votes(made)


def test_reference_questions_cannot_calibrate(gate):
    with pytest.raises(CalibrationLeak, match="the gate and its p-values were fitted on calibration problems"):
        dm.calibrate(vote(USUAL[150:], gate), [True] * 250, alpha=0.1)
    with pytest.raises(InvalidValue, match="1 of 3 calibration votes have no question text"):
        dm.calibrate(vote([*USUAL[200:202], None], gate, ids="abc"), [True] * 3, alpha=0.1)
    with pytest.raises(InvalidValue, match="none are known"):
        dm.vote([["a"]], gate=gate)


# --- promises ----------------------------------------------------------------------------------------------------

ALPHA = DELTA = 0.1


def draw(rng, n):
    """Confidences, labels, and which questions the gate is closed to: it takes away votes that are sure and right."""
    nu, closed = rng.random(n), rng.random(n) < 0.5
    nu = np.where(closed, 0.5 + nu / 2, nu)
    return nu, rng.random(n) < np.where(closed, 0.999, 0.6 + 0.39 * nu), closed


def rates(rule_of, gate_of, seed, sets=300, n=800):
    """Over calibration sets: wrong ones among the answers, of all questions, and the yield, on many new questions."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(sets):
        nu, right, closed = draw(rng, n)
        threshold = rule_of(np.where(closed, gate_of(nu), nu), right).threshold
        nu, right, closed = draw(rng, 4000)
        answered = (nu > threshold) & ~closed
        wrong = (answered & ~right).sum()
        rows.append((wrong / max(answered.sum(), 1), wrong / 4000, answered.mean()))
    return np.array(rows).T


def selective(keys, right):
    return dm.Selective(ALPHA, DELTA).settle(Evidence.of(keys, right))


def marginal(keys, right):
    return dm.Marginal(ALPHA).settle(Evidence.of(keys, right))


def test_a_gate_in_the_key_keeps_the_promise_about_answers_and_one_applied_afterwards_breaks_it():
    in_key, _, answered = rates(selective, lambda nu: 0.0, 21)
    slack = 0.012  # new questions are many, not all
    assert stats.binomtest(int((in_key > ALPHA + slack).sum()), len(in_key), DELTA, alternative="greater").pvalue > 1e-6
    afterwards, _, _ = rates(selective, lambda nu: nu, 21)
    assert (afterwards > ALPHA + slack).mean() > 0.5  # the negative control
    assert answered.mean() > 0.05  # abstaining always would keep it too


def test_errors_among_all_questions_survive_a_gate_in_the_key_and_one_applied_afterwards():
    for gate_of in (lambda nu: 0.0, lambda nu: nu):
        _, errors, answered = rates(marginal, gate_of, 22)
        assert errors.mean() <= ALPHA + 4 * errors.std(ddof=1) / np.sqrt(len(errors))
        assert answered.mean() > 0.2  # abstaining always would keep it too


def test_a_batch_behind_a_gate_in_the_key_keeps_its_share_of_wrong_answers():
    def pears(trial):
        return [f"Ann has {trial}{number} pears and buys {number} more. How many has she?" for number in range(160)]

    rng, shares, given = np.random.default_rng(23), [], []
    gate = dm.OutlierGate.fit([*pears(101), *pears(3)], level=0.2)
    for trial in range(4, 84):
        texts = pears(trial)
        nu = rng.integers(0, 5, 160)
        answers = [["a"] * (4 + int(k)) + ["b"] * (4 - int(k)) for k in nu]
        right = rng.random(160) < 0.5 + nu / 9
        votes = dm.vote(answers, questions=texts, gate=gate)
        policy = dm.calibrate(votes.take(np.arange(100)), right[:100], alpha=ALPHA)
        selected = policy.select(votes.take(np.arange(100, 160)), fdr=0.2)
        shares.append((selected.answered & ~right[100:]).sum() / max(selected.answered.sum(), 1))
        given.append(selected.answered.mean())
    assert np.mean(shares) <= float(Fraction(1, 5)) + 4 * np.std(shares, ddof=1) / np.sqrt(len(shares))
    assert np.mean(given) > 0.1


def test_reference_questions_can_neither_be_audited_nor_selected_from_nor_calibrate_a_cascade(gate):
    """The gate has ranked their own distance, so that it shuts out fewer of them than of new questions."""
    votes, right = vote(USUAL[200:320], gate), np.arange(120) % 9 > 0
    policy = dm.calibrate(votes, right, alpha=0.2)
    again, labels = vote([*USUAL[320:350], *USUAL[5:10]], gate), np.ones(35, dtype=bool)
    with pytest.raises(CalibrationLeak, match="5 of 35 problems shaped the gate"):
        dm.audit_policy(policy, again, labels)
    with pytest.raises(CalibrationLeak, match="5 of 35 problems shaped the gate"):
        policy.select(again, fdr=0.2)
    assert dm.audit_policy(policy, again.take(np.arange(30)), labels[:30]).n == 30
    plain = vote([*USUAL[320:350], *USUAL[5:10]], None)
    stages = [dm.Stage("cheap", plain, labels), dm.Stage("strong", again, labels)]
    with pytest.raises(CalibrationLeak, match="the gate and its p-values were fitted on calibration problems"):
        dm.calibrate_cascade(stages, alpha=0.2)


def test_a_gate_before_the_share_needs_nothing_else(gate):
    assert Gated(Share(), gate).name == "gated_share"
