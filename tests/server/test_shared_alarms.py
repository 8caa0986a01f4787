"""Replicas on one store: each audit counts once, in the order of arrival, whatever clocks and processes do."""

from __future__ import annotations

import random
from functools import partial

import pytest

import demur as dm
from demur.monitoring import DriftMonitor
from demur.server.alarms.watched import WatchedPolicy
from demur.server.alarms.watches import CanaryWatching
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


def drifting(served, change, n=160):
    """Audits with keys of calibration, one per second; from one of them on, of its lower half."""
    levels, rng = served.policy.evidence.levels.tolist(), random.Random(1)
    key = [tuple(rng.choice(levels if at < change else levels[: len(levels) // 2])) for at in range(n)]
    return [audited(f"d{at:04}", at * 1000, key[at], policy=served.number, outcome="abstained") for at in range(n)]


def compare(store, served, names, first, otherwise=0.0):
    """Canaries, one per second, of which every other key is higher, and those between are what is said."""
    watching, width = CanaryWatching(store, served), served.policy.evidence.levels.shape[1]
    for number, name in enumerate(names):
        canary = store.canaries.claim_next(served.number, names, first + 1000 * number)
        old = [0.4, *[0.5] * (width - 1)]
        new = [0.4 + (otherwise if number % 2 else 0.1), *[0.5] * (width - 1)]
        watching.compare(name, (old, new), None, first + 1000 * number)
        store.canaries.settle(served.number, name, canary.lease_token, answered=True)


def test_only_canaries_asked_after_the_change_began_speak_for_the_model(store, served):
    """However many are quiet, those before show it as it was; and replicas that look later know when it began."""
    store.decisions.add(drifting(served, 80))
    compare(store, served, [f"c{number:02}" for number in range(24)], 0, otherwise=-0.1)
    WatchedPolicy(store, served).look(60_000, 0, 7)
    replica = WatchedPolicy(store, served)
    replica.look(300_000, 0, 7)
    drift = replica.drift.read()[1]
    began = drift.monitor.change_from
    assert (drift.monitor.change, drift.changed) == ("lower", (began - 1) * 1000)
    assert 60 <= began <= 100
    alarms = replica.alarms()
    assert "because no canary was asked since then." in replica.diagnosis(alarms).sentence
    compare(store, served, [f"d{number:02}" for number in range(8)], drift.changed + 1)
    few = WatchedPolicy(store, served).diagnosis(alarms).sentence
    assert "not known yet which; of 8 canaries asked since then, the keys of 4 are higher and of 0 lower" in few
    compare(store, served, [f"e{number:02}" for number in range(8)], drift.changed + 9000)
    enough = WatchedPolicy(store, served).diagnosis(alarms).sentence
    assert "Questions changed (drift alarm of " in enough
    assert "of 16 canaries asked since then, the keys of 8 are higher and of 0 lower" in enough


def test_a_store_from_before_takes_the_alarm_for_the_beginning(store, served):
    store.decisions.add(drifting(served, 0))
    watched = WatchedPolicy(store, served)
    watched.look(300_000, 0, 7)
    kept = store.monitors.read(served.number, "drift")
    document = {name: value for name, value in kept.document.items() if name != "asked"}
    del document["monitor"]["state"]["leans"]
    assert store.monitors.replace(served.number, "drift", document, kept.version)
    compare(store, served, [f"c{number:02}" for number in range(16)], 200_000)
    later = WatchedPolicy(store, served)
    assert later.drift.read()[1].changed == later.drift.read()[1].since == 300_000
    assert "because no canary was asked since then." in later.diagnosis(later.alarms()).sentence


def test_that_clusters_of_requests_are_not_known_is_said(store):
    clusters = [f"c{row // 2}" for row in range(60)]
    policy = dm.calibrate(dm.vote([["a"]] * 60), [row % 5 > 0 for row in range(60)], alpha=0.3, clusters=clusters)
    row = store.policies.register("pairs", policy.document(), policy.fingerprint, 1)
    [note] = WatchedPolicy(store, Served("pairs", policy, None, row.version, row.policy)).notes
    assert note.startswith("Calibration counted clusters of questions, and requests do not say of which they are")
