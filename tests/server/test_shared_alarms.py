"""Replicas on one store: each audit counts once, in the order of arrival, whatever clocks and processes do."""

from __future__ import annotations

import random
from functools import partial

import pytest

import demur as dm
from demur.monitoring import DriftMonitor
from demur.server.alarms.watched import Alarm, WatchedPolicy
from demur.server.served import Served
from demur.store.service import ServiceStore
from service_rows import at_once
from watching import audited


@pytest.fixture
def store(place):
    with ServiceStore(place, create=True) as opened:
        yield opened


@pytest.fixture
def served(sums_policy, store):
    row = store.policies.register("sums", sums_policy.document(), sums_policy.fingerprint, 1)
    return Served("sums", sums_policy, None, row.version, row.policy)


def rows(served, n, first=0, **facts):
    """Audits with keys that a seed draws, one per second."""
    rng = random.Random(first)
    width = served.policy.evidence.levels.shape[1]
    made = []
    for at in range(first, first + n):
        key = (round(rng.random(), 3), *(rng.random() for _ in range(width - 1)))
        made.append(audited(f"r{at:04}", at * 1000, key, policy=served.number, outcome="abstained", **facts))
    return made


def test_two_replicas_at_once_count_each_audit_once(store, served, sums_policy):
    made = rows(served, 200)
    replicas = [WatchedPolicy(store, served) for _ in range(3)]
    for start in range(0, 200, 50):
        store.decisions.add(made[start : start + 50])
        results = at_once(*(partial(one.look, (start + 50) * 1000, 0, 7) for one in replicas * 2))
        assert [error for error in results if error is not None] == []
    for replica in replicas:
        replica.look(300_000, 0, 7)
        whole = DriftMonitor(sums_policy, delta=0.01).update([one.vote_key for one in made])
        assert replica.drift.read()[1].monitor.document() == whole.document()
        assert replica.errors[0].read()[1].monitor.n == 200


def test_an_earlier_arrival_that_is_committed_later_is_not_skipped(store, served):
    made = rows(served, 6)
    watched = WatchedPolicy(store, served)
    store.decisions.add([made[0], made[3]])
    watched.look(4000, 2.5, 7)  # what arrived in the last 2.5 seconds may still be under way
    assert [audit.request for audit in store.audits.after(served.number, 0)] == ["r0000"]
    store.decisions.add([made[1], made[2]])
    watched.look(7000, 2.5, 7)
    assert [audit.request for audit in store.audits.after(served.number, 0)] == ["r0000", "r0001", "r0002", "r0003"]
    straggler = audited("s", 500, made[0].vote_key, policy=served.number)
    store.decisions.add([straggler, *made[4:]])
    watched.look(20_000, 2.5, 7)
    turns = store.audits.after(served.number, 0)
    assert [audit.request for audit in turns][4:] == ["s", "r0004", "r0005"]
    assert [audit.turn for audit in turns] == [1, 2, 3, 4, 5, 6, 7]
    assert watched.drift.read()[1].monitor.n == 7


def test_a_clock_that_is_set_back_loses_and_doubles_nothing(store, served):
    before, after = rows(served, 20, first=5000), rows(served, 20, first=100)
    watched = WatchedPolicy(store, served)
    store.decisions.add(before)
    watched.look(5010_000, 0, 7)
    assert watched.drift.read()[1].monitor.n == 10
    store.decisions.add(after)  # the clock was set back by more than an hour
    for now in range(100_000, 130_000, 3000):
        watched.look(now, 0, 7)
    assert watched.drift.read()[1].monitor.n == 30
    watched.look(5020_000, 0, 7)  # it has come round again
    watched.look(5020_000, 0, 7)
    assert watched.drift.read()[1].monitor.n == 40
    assert len({audit.request for audit in store.audits.after(served.number, 0)}) == 40


def test_a_question_that_was_audited_before_is_no_new_one(store, served):
    made = rows(served, 5, question_digest="same")
    store.decisions.add([*made, audited("other", 9000, made[0].vote_key, policy=served.number)])
    watched = WatchedPolicy(store, served)
    watched.look(20_000, 0, 7)
    assert watched.drift.read()[1].monitor.n == 2
    assert store.audits.without_turn(served.number) == (0, 4)


def test_a_look_that_ends_before_it_is_stored_is_as_if_it_had_not_been(store, served, monkeypatch):
    store.decisions.add(rows(served, 30))
    dying = WatchedPolicy(store, served)
    monkeypatch.setattr(store.monitors, "_replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        dying.look(100_000, 0, 7)
    monkeypatch.undo()
    for watched in (dying, WatchedPolicy(store, served)):
        watched.look(100_000, 0, 7)
        assert watched.drift.read()[1].monitor.n == 30


def test_a_failed_audit_has_no_key_and_is_no_error(store, served):
    [failed] = rows(served, 1)
    store.decisions.add([audited("f", 5000, None, policy=served.number, outcome="failed", cause="too_slow: x"), failed])
    watched = WatchedPolicy(store, served)
    watched.look(10_000, 0, 7)
    assert watched.drift.read()[1].monitor.n == 1
    assert watched.errors[0].read()[1].monitor.n == 2


def test_a_state_that_demur_never_wrote_is_refused(store, served):
    store.monitors.replace(served.number, "drift", {"turn": -1}, 0)
    with pytest.raises(Exception, match="the monitor drift of sums:v1 in the store cannot be read"):
        WatchedPolicy(store, served).look(1, 0, 7)


def test_what_cannot_be_watched_is_said_and_still_counted(store):
    answers = [["a"] * 4 + ["b"]] * 100
    votes = dm.vote(answers, groups=["x"] * 50 + ["y"] * 50)
    policy = dm.calibrate(votes, [True] * 99 + [False], guarantee=[dm.Grouped(dm.Marginal(0.2)), dm.Marginal(0.2)])
    row = store.policies.register("grouped", policy.document(), policy.fingerprint, 1)
    watched = WatchedPolicy(store, Served("grouped", policy, None, row.version, row.policy))
    assert [note.partition(":")[0] for note in watched.notes] == [
        "Errors at alpha 0.2 (grouped_marginal) are counted, no more"
    ]
    deltas = {watching.rule.guarantee.name: watching.delta for watching in watched.errors}
    assert deltas == {"grouped_marginal": None, "marginal": 0.03}
    facts = {"policy": row.policy, "outcome": "abstained", "alpha": "0.2", "guarantee": "grouped_marginal"}
    store.decisions.add([audited("r", 1, (0.8,), **facts)])
    watched.look(1000, 0, 7)
    counted = {watching.rule.guarantee.name: watching.read()[1].counts["abstained"] for watching in watched.errors}
    assert counted == {"grouped_marginal": 1, "marginal": 0}


def test_a_question_that_calibrated_the_policy_tests_nothing(store, served):
    seen = sorted(served.policy.seen.questions)[0]
    made = rows(served, 3)
    store.decisions.add([*made[:2], audited("again", 1500, (1.0, 0.5), policy=served.number, question_digest=seen)])
    watched = WatchedPolicy(store, served)
    watched.look(10_000, 0, 7)  # nobody has judged it, and nobody needs to
    assert [one.read()[1].turn for one in (watched.drift, *watched.errors)] == [3, 3, 3]
    assert [one.read()[1].monitor.n for one in (watched.drift, watched.errors[0])] == [2, 2]


def test_an_audit_that_was_forgotten_while_it_waited_is_no_error(store, served):
    """Left out, right answers that nobody judges would be missing beside wrong ones that somebody complains of."""
    waiting = audited("waiting", 1000, (0.9, 0.5), policy=served.number, outcome="answered")
    wrong = audited("wrong", 9000, (0.9, 0.5), policy=served.number, outcome="answered")
    store.decisions.add([waiting, wrong])
    store.feedback.give("wrong", "ann", 1, verdict="wrong", source="review")
    watched = WatchedPolicy(store, served)
    watched.look(20_000, 0, 7)
    assert watched.errors[0].read()[1].monitor.n == 0
    store.retention.forget(5000)
    watched.look(20_000, 0, 7)
    monitor = watched.errors[0].read()[1].monitor
    assert (monitor.n, monitor.errors) == (2, 1)


@pytest.mark.parametrize(
    ("days_before", "told"),
    [(0, "20 canaries of that time show no change"), (6, "20 canaries of that time"), (8, "no canary was asked")],
)
def test_canaries_that_were_asked_long_ago_do_not_name_the_questions(store, served, days_before, told):
    """Each is asked once: when they have run out, a drift alarm may be about the model again."""
    day, names = 24 * 3_600_000, [f"c{number}" for number in range(20)]
    for number in range(20):
        canary = store.canaries.claim_next(served.number, names, (100 - days_before) * day + number)
        store.canaries.settle(served.number, canary.problem, canary.lease_token, answered=True)
    watched = WatchedPolicy(store, served)
    assert told in watched.diagnosis([Alarm("drift", 100 * day, 0, "drift", "")]).sentence


def test_that_clusters_of_requests_are_not_known_is_said(store):
    clusters = [f"c{row // 2}" for row in range(60)]
    policy = dm.calibrate(dm.vote([["a"]] * 60), [row % 5 > 0 for row in range(60)], alpha=0.3, clusters=clusters)
    row = store.policies.register("pairs", policy.document(), policy.fingerprint, 1)
    [note] = WatchedPolicy(store, Served("pairs", policy, None, row.version, row.policy)).notes
    assert note.startswith("Calibration counted clusters of questions, and requests do not say of which they are")
