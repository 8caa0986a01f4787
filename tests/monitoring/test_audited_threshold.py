"""The threshold that audits move: its bound on every sequence of labels, delays and processes that lag behind."""

from __future__ import annotations

import copy
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import demur as dm
from demur.errors import InfeasibleWarning, InvalidValue, MonitorFileError
from demur.monitoring import AuditedThreshold
from monitored import drawn, keys, policy_of, same

POLICY = policy_of(*drawn(0))
TOP = (1.0, 2.0)
"""A key above all of calibration: answered as long as anything is."""


class Process:
    """Decides by the state that it last read."""

    def __init__(self, policy, audited):
        self.calibrated = policy.point().threshold_key
        self.read(audited)

    def read(self, audited):
        self.raised, self.known = audited.raised_key, audited.known_errors

    def answers(self, key):
        return tuple(key) > self.calibrated and (self.raised is None or tuple(key) > self.raised)


def small_policy():
    """Ten calibration keys and an alpha of 1/5: few steps lead anywhere."""
    return policy_of(np.arange(10) / 10, ~np.isin(np.arange(10), [5, 7]), alpha=0.2)


def at_most(audited, furthest_behind=None):
    """What the theory says of all audits so far, written out."""
    behind = audited.furthest_behind if furthest_behind is None else furthest_behind
    without = len(audited.awaited) + audited.given_up
    alpha, slack = audited.alpha, (1 - audited.start) / audited.step
    return alpha * audited.n + slack + (behind + without) * (1 - alpha)


ACTIONS = ("ask", "ask behind", "read", "first wrong", "last wrong", "first right", "give up")


def act(audited, processes, action):
    """Do one of the actions, and what λ must be then by the rule read literally; None where it cannot be done."""
    threshold, names = audited.threshold, list(audited.awaited)
    move = None
    if action == "read":
        processes[1].read(audited)
    elif action.startswith("ask"):
        process = processes[action == "ask behind"]
        processes[0].read(audited)
        answered = process.answers(TOP)
        audited.enter(f"q{audited.n}", answered=answered, known_errors=process.known)
        move = None if answered else 0
    elif not names:
        return None
    elif action == "give up":
        audited.give_up(names[0])
    else:
        move = action.endswith("wrong")
        audited.update(names[0 if action.startswith("first") else -1], move)
    if move is None:
        return threshold
    return max(threshold + audited.step * (int(move) - audited.alpha), audited.start)


def every_state(audited, processes, depth):
    """All states that so many actions lead to."""
    yield audited
    if not depth:
        return
    for action in ACTIONS:
        state, deciding = copy.copy(audited), [copy.copy(process) for process in processes]
        state.awaited = dict(audited.awaited)
        literal = act(state, deciding, action)
        if literal is not None:
            assert state.threshold == literal
            yield from every_state(state, deciding, depth - 1)


@pytest.mark.parametrize("step", [Fraction(1, 5), Fraction(9, 10)])
def test_no_sequence_of_questions_labels_and_delays_exceeds_the_bound(step):
    policy = small_policy()
    begun = AuditedThreshold(policy, step=step)
    processes = [Process(policy, begun) for _ in range(2)]
    closest, ignoring_lag = [], 0
    for state in every_state(begun, processes, 6):
        errors = state.errors + len(state.awaited) + state.given_up  # whatever the others would turn out to be
        assert errors <= at_most(state)
        assert state.most_errors == min(state.n, at_most(state))
        assert state.start <= state.threshold <= 1 + state.furthest_behind * step * (1 - state.alpha)
        closest.append(at_most(state) - errors)
        ignoring_lag += errors > at_most(state, min(1, state.furthest_behind))
    if step > Fraction(1, 2):  # in few actions
        assert min(closest[1:]) < 1  # attained but for less than one error
        assert ignoring_lag  # the negative control: as if each answer were decided by the newest state


def test_answers_that_are_entered_as_if_decided_by_the_newest_state_break_the_bound():
    """The negative control of `known_errors`: ten wrong answers of one moment, each labelled before the next enters."""
    policy = small_policy()
    honest, false = (AuditedThreshold(policy, step=0.9) for _ in range(2))
    for number in range(10):
        honest.enter(f"q{number}", answered=True, known_errors=0).update(f"q{number}", True)
        false.enter(f"q{number}", answered=True, known_errors=false.known_errors).update(f"q{number}", True)
    assert (honest.furthest_behind, false.furthest_behind) == (10, 1)
    assert false.most_errors < 10 <= honest.most_errors


QUESTION = st.tuples(st.floats(0, 1), st.booleans(), st.integers(0, 2), st.integers(0, 9))


@given(st.lists(QUESTION, min_size=1, max_size=120), st.sampled_from(["0.005", "0.05", "0.5"]), st.integers(0, 99))
def test_the_bound_holds_with_processes_behind_pauses_and_new_beginnings(questions, step, seed):
    rng = np.random.default_rng(seed)
    audited = AuditedThreshold(POLICY, step=Fraction(step))
    processes = [Process(POLICY, audited) for _ in range(3)]
    wrong, entered = {}, []
    for number, (second, is_wrong, which, event) in enumerate(questions):
        name, process = f"q{number}", processes[which]
        answered = process.answers((1.0, second))
        assert not answered or (1.0, second) > POLICY.point().threshold_key
        wrong[name] = answered and is_wrong
        entered.append(name)
        audited.enter(name, answered=answered, known_errors=process.known)
        if event < 3:
            processes[event].read(audited)
        for label in [label for label in audited.awaited if rng.random() < 0.3]:
            _ = audited.give_up(label) if rng.random() < 0.1 else audited.update(label, wrong[label])
        if event == 8:
            audited = AuditedThreshold.of_document(audited.document(), POLICY)
        if event == 9 and rng.random() < 0.3:  # cleared; answers decided before are still to come
            audited, entered = AuditedThreshold(POLICY, step=Fraction(step), earlier_errors=audited.known_errors), []
        assert sum(wrong[name] for name in entered) <= at_most(audited)


@pytest.mark.parametrize("behind", [0, 7])
def test_the_bound_holds_against_someone_who_makes_every_answer_wrong(behind):
    audited = AuditedThreshold(POLICY, step=0.05)
    process, errors = Process(POLICY, audited), 0
    for number in range(2000):
        answered = process.answers(TOP)
        audited.enter(f"q{number}", answered=answered, known_errors=process.known)
        errors += answered
        if answered:
            audited.update(f"q{number}", True)
        if number % (behind + 1) == 0:
            process.read(audited)
    assert errors <= audited.most_errors
    assert errors >= audited.most_errors - behind - 2  # so nearly attained
    assert audited.bound() < 0.13


def shifted(seed, n=12_000):
    """Questions of which, from the middle on, more are wrong."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(n) < np.where(np.arange(n) < n // 2, 0.2, 0.75)
    return rng.random(n), wrong


def served(second, wrong, audited, marked, delay=40, look=25):
    """Three processes that take turns and look now and then; the questions that were answered."""
    processes = [Process(POLICY, audited) for _ in range(3)]
    answered, due = np.zeros(len(second), dtype=bool), {}
    for at, key in enumerate(keys(second)):
        process = processes[at % 3]
        answered[at] = process.answers(key)
        if marked[at]:
            audited.enter(f"q{at}", answered=bool(answered[at]), known_errors=process.known)
            if answered[at]:
                due.setdefault(at + delay, []).append((f"q{at}", bool(wrong[at])))
        for name, label in due.pop(at, ()):
            audited.update(name, label)
        if at % look == 0:
            processes[at // look % 3].read(audited)
    return answered


def test_after_a_shift_the_rate_comes_back_to_alpha_where_the_fixed_threshold_does_not():
    second, wrong = shifted(1)
    marked = np.random.default_rng(5).random(len(second)) < 0.5
    audited = AuditedThreshold(POLICY, step=0.02)
    answered = served(second, wrong, audited, marked)
    fixed = second > POLICY.point().threshold_key[1]
    assert not (answered & ~fixed).any()  # never more than the calibrated threshold answers
    assert (answered == fixed)[:6000].mean() > 0.9  # where errors are few, about as many
    assert (fixed & wrong)[8000:].mean() > 0.15
    for part in (marked, ~marked):
        assert abs((answered & wrong)[8000:][part[8000:]].mean() - 0.1) < 0.025
    assert answered[8000:].mean() > 0.1  # a threshold that never answers has no errors either
    assert (answered & wrong)[marked].sum() <= audited.most_errors


def over_all(marks):
    """Errors among all requests in excess of alpha, weighted by the share of audits, beside the slack; means."""
    excess, slacks = [], []
    for seed in range(15):
        second, wrong = (half[3000:] for half in shifted(seed, n=6000))
        audited = AuditedThreshold(POLICY, step=0.05)
        answered = served(second, wrong, audited, marks(np.random.default_rng(seed), second))
        excess.append(0.3 * ((answered & wrong).sum() - 0.1 * len(second)))
        slacks.append(float(at_most(audited) - audited.alpha * audited.n))
    return np.mean(excess), np.mean(slacks)


def test_over_all_requests_the_bound_holds_in_expectation():
    excess, slack = over_all(lambda rng, second: rng.random(len(second)) < 0.3)
    assert excess <= slack
    assert excess > -0.2 * 0.3 * 0.1 * 3000  # nearly as many as alpha allows: who never answers makes none


def test_audits_that_are_chosen_by_what_is_asked_break_it():
    """The negative control of the mark: as many audits, none of them of what is answered with the most confidence."""
    excess, slack = over_all(lambda rng, second: (rng.random(len(second)) < 0.3 / 0.5) & (second < 0.5))
    assert excess > slack


def test_it_begins_as_the_policy_whatever_that_does():
    assert AuditedThreshold(POLICY).raised_key is None
    all_right = policy_of(drawn(0)[0], np.ones(200, dtype=bool))
    assert AuditedThreshold(all_right).start == Fraction(-1, 400)
    with pytest.warns(InfeasibleWarning):
        never = policy_of(*drawn(0, n=5))
    audited = AuditedThreshold(never)
    assert (audited.start, audited.raised_key) == (1, None)
    audited.enter("q", answered=False)
    assert audited.raised_key is None


def test_it_falls_back_to_the_calibrated_threshold_and_no_lower():
    audited = AuditedThreshold(POLICY, step=0.05).enter("q", answered=True).update("q", True)
    raised = audited.raised_key
    assert audited.threshold == audited.start + Fraction(5, 100) * Fraction(9, 10)
    assert raised > POLICY.point().threshold_key
    for number in range(9):
        assert audited.raised_key is not None or number > 5
        audited.enter(f"r{number}", answered=False)
    assert (audited.threshold, audited.raised_key) == (audited.start, None)  # exactly, after 9 times 1/10
    audited.enter("s", answered=False)
    assert audited.threshold == audited.start


def test_a_step_within_one_calibration_key_takes_nothing_away():
    audited = AuditedThreshold(POLICY, step=0.0001).enter("q", answered=True).update("q", True)
    assert audited.threshold > audited.start
    assert audited.raised_key is None


def test_what_is_given_up_moves_nothing_and_is_never_forgotten():
    audited = AuditedThreshold(POLICY).enter("q", answered=True, at=5)
    most = audited.most_errors
    assert audited.give_up("q").threshold == audited.start
    assert (audited.without_label, audited.most_errors) == (1, most)
    with pytest.raises(InvalidValue, match="no label of 'q' is awaited"):
        audited.update("q", True)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda audited: audited.enter("a", answered=True), "the label of 'a' is awaited already; enter each audit"),
        (lambda audited: audited.enter("b", answered=True, known_errors=1), "was decided by 1 known errors, and there"),
        (lambda audited: audited.enter("b", answered=True, known_errors=-1), "known_errors must be a count"),
        (lambda audited: audited.update("a", 1), "a label must be True where the answer is wrong, else False, got 1"),
        (lambda audited: audited.update("b", True), "no label of 'b' is awaited"),
        (lambda _: AuditedThreshold(POLICY, step=0), "step must lie strictly between 0 and 1, got 0"),
        (lambda _: AuditedThreshold(POLICY, step=math.nan), "step must be a number strictly between 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    audited = AuditedThreshold(POLICY).enter("a", answered=True)
    with pytest.raises(InvalidValue, match=words):
        call(audited)
    assert (audited.n, list(audited.awaited)) == (1, ["a"])


def test_points_that_one_threshold_cannot_stand_for_are_refused():
    answers = [["a"] * 4 + ["b"]] * 100
    right = [True] * 99 + [False]
    grouped = dm.calibrate(
        dm.vote(answers, groups=["x"] * 50 + ["y"] * 50), right, guarantee=dm.Grouped(dm.Marginal(0.2))
    )
    with pytest.raises(InvalidValue, match="is about each group by itself"):
        AuditedThreshold(grouped)
    among = dm.calibrate(dm.vote(answers), right, guarantee=dm.Selective(0.2, delta=0.1))
    with pytest.raises(InvalidValue, match="is about the answers given"):
        AuditedThreshold(among)


def moved():
    audited = AuditedThreshold(POLICY, step="1/30", earlier_errors=3)
    for number in range(40):
        audited.enter(f"q{number}", answered=number % 2 == 0, known_errors=number % 4, at=number)
    for number in range(0, 20, 2):
        audited.update(f"q{number}", number % 4 == 0)
    return audited.give_up("q20")


def test_it_goes_on_from_a_file_as_it_was(tmp_path):
    audited = moved()
    audited.save(tmp_path / "online.json")
    again = AuditedThreshold.load(tmp_path / "online.json", POLICY)
    assert same(audited, again)
    assert (again.threshold, again.most_errors, again.awaited) == (
        audited.threshold,
        audited.most_errors,
        audited.awaited,
    )
    with pytest.raises(MonitorFileError, match="another policy of the same pipeline"):
        AuditedThreshold.load(tmp_path / "online.json", policy_of(*drawn(1)))


@pytest.mark.parametrize(
    "change",
    [
        {"n": 3},
        {"errors": 11},
        {"given_up": 0},
        {"furthest_behind": 0},
        {"furthest_behind": 6},
        {"errors_since": 0},
        {"settled_since": 50},
        {"errors_since": 6, "settled_since": 6},
        {"awaited": [["q22", 0, 1]] * 2},
        {"awaited": [["q22", 99, 1]]},
        {"awaited": [["q22", 0]]},
        {"awaited": {}},
        {"step": "2"},
        {"step": None},
        {"labelled": 10.0},
        {"extra": 1},
    ],
)
def test_a_state_that_audits_cannot_lead_to_is_refused(change):
    document = moved().document()
    document["state"] |= change
    with pytest.raises(MonitorFileError, match="is not a usable monitor"):
        AuditedThreshold.of_document(document, POLICY)


def test_it_claims_no_more_than_its_bound():
    audited = AuditedThreshold(POLICY)
    assert audited.bound() == 1.0
    assert audited.sentence == "The calibrated threshold is in force. No audit has moved it yet."
    raised = moved()
    assert raised.sentence.startswith("The threshold is raised: it leaves ")
    assert "20 of 40 audits were answered, 5 of 10 labels wrong, 9 awaited, 1 given up." in raised.sentence
    told = float(raised.sentence.partition("At most ")[2].partition("%")[0]) / 100
    assert raised.bound() <= told < raised.bound() + 0.0011
    assert raised.sentence.endswith("Nothing is promised of a single question.")
