"""Replicas that share a threshold which audits move: each audit and each label counts once, whatever ends midway."""

from __future__ import annotations

import random
from functools import partial
from types import SimpleNamespace

import pytest

import demur as dm
from demur.errors import InvalidValue, StoreError
from demur.server.alarms import online
from demur.server.alarms.online import OnlineWatching, refuse_nothing_to_move
from demur.server.alarms.watched import WatchedPolicy
from demur.server.served import Served
from demur.store.service import ServiceStore
from service_rows import at_once
from watching import audited

STEP = 0.05
KIND = "online 0.1 marginal"


@pytest.fixture
def store(place):
    with ServiceStore(place, create=True) as opened:
        yield opened


@pytest.fixture
def served(sums_policy, store):
    row = store.policies.register("sums", sums_policy.document(), sums_policy.fingerprint, 1)
    return Served("sums", sums_policy, None, row.version, row.policy)


@pytest.fixture
def watching(store, served):
    made = watch(store, served)
    made.look(1, 7)  # begins
    return made


def watch(store, served):
    return OnlineWatching(store, served, served.policy.point(), STEP)


def rows(served, names, **facts):
    """Audits that were answered, one per second."""
    known = {"policy": served.number, "outcome": "answered", "winner": "1", **facts}
    return [audited(name, int(name[1:]) * 1000, (0.9, 0.5), **known) for name in names]


def names_of(first, n):
    return [f"r{number:04}" for number in range(first, first + n)]


def turns(store, served):
    while store.audits.give_turns(served.number, 2**50):
        pass


def test_replicas_at_once_count_each_audit_and_each_label_once(store, served):
    replicas = [WatchedPolicy(store, served, STEP) for _ in range(3)]
    replicas[0].look(1, 0, 7)
    rng, wrong = random.Random(1), 0
    for start in range(1, 121, 30):
        names = names_of(start, 30)
        answered, not_answered = names[::2], names[1::2]
        store.decisions.add([*rows(served, answered), *rows(served, not_answered, outcome="abstained")])
        for name in rng.sample(answered, 12):
            verdict = rng.choice(["right", "wrong"])
            wrong += verdict == "wrong"
            store.feedback.give(name, "ann", 1, verdict=verdict, source="review")
        results = at_once(*(partial(one.look, 200_000, 0, 7) for one in replicas * 2))
        assert [error for error in results if error is not None] == []
    for replica in replicas:
        replica.look(200_000, 0, 7)
        state = replica.online[0].state()
        assert (state.n, state.answered, state.labelled, state.errors) == (120, 60, 48, wrong)
        assert len(state.awaited) == 12
        assert state.document() == replicas[0].online[0].state().document()


def test_who_stores_second_takes_nothing(store, served, watching):
    store.decisions.add(rows(served, ["r0001"]))
    turns(store, served)
    slow, hear = watch(store, served), OnlineWatching.hear

    def overtaken(self, watch, now, label_days):
        watching.look(2000, 7)
        return hear(self, watch, now, label_days)

    slow.hear = partial(overtaken, slow)
    assert not slow.look(2000, 7)
    assert watching.state().n == 1
    assert watch(store, served).state().n == 1


def test_a_look_that_ends_before_it_is_stored_is_as_if_it_had_not_been(store, served, watching, monkeypatch):
    store.decisions.add(rows(served, names_of(1, 5)))
    turns(store, served)
    store.feedback.give("r0003", "ann", 1, verdict="wrong", source="review")
    monkeypatch.setattr(store.monitors, "_replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        watching.look(9000, 7)
    monkeypatch.undo()
    for one in (watching, watch(store, served)):
        one.look(9000, 7)
        state = one.state()
        assert (state.n, state.errors, len(state.awaited)) == (5, 1, 4)


def test_each_version_has_a_threshold_of_its_own(store, served, watching):
    row = store.policies.register("other", served.policy.document(), served.policy.fingerprint, 1)
    other = watch(store, Served("other", served.policy, None, row.version, row.policy))
    store.decisions.add(rows(served, ["r0001"]))
    turns(store, served)
    store.feedback.give("r0001", "ann", 1, verdict="wrong", source="review")
    for one in (watching, other):
        one.look(9000, 7)
    assert (watching.state().errors, other.state().errors) == (1, 0)


def test_more_labels_than_can_be_awaited_make_audits_wait(store, served, watching, monkeypatch):
    monkeypatch.setattr(online, "MOST_AWAITED", 3)
    names = names_of(1, 6)
    store.decisions.add(rows(served, names))
    turns(store, served)
    watching.look(9000, 7)
    assert list(watching.state().awaited) == names[:3]
    store.feedback.give(names[1], "ann", 1, verdict="wrong", source="review")
    for _ in range(2):
        watching.look(9000, 7)
    assert list(watching.state().awaited) == [names[0], *names[2:4]]
    assert watching.state().n == 4


@pytest.mark.parametrize("known", [5, -1, "2", None, 2.0, True])
def test_an_answer_by_a_state_that_is_not_known_counts_as_by_the_first(store, served, watching, known):
    store.decisions.add(rows(served, ["r0001"], document={"known_errors": known}))
    turns(store, served)
    watching.look(9000, 7)
    assert watching.state().awaited["r0001"].known_errors == 0


def test_what_was_forgotten_is_given_up_in_its_time(store, served, watching):
    store.decisions.add(rows(served, ["r0001", "r0002"]))
    turns(store, served)
    watching.look(9000, 7)
    store.feedback.give("r0001", "ann", 1, verdict="wrong", source="review")
    store.retention.forget(1500)
    watching.look(9000, 7)
    assert (watching.state().errors, len(watching.state().awaited)) == (0, 2)
    watching.look(9000 + 8 * 24 * 3_600_000, 7)
    assert (watching.state().errors, watching.state().given_up) == (0, 2)


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: kept["monitor"]["state"].update(errors=4),
        lambda kept: kept["monitor"]["state"].pop("awaited"),
        lambda kept: kept["monitor"].update(policy="another"),
        lambda kept: kept.update(monitor=None),
        lambda kept: kept.update(monitor=[]),
        lambda kept: kept.update(turn=-1),
        lambda kept: kept.clear(),
    ],
)
def test_a_state_that_demur_never_wrote_is_refused_in_one_line(store, served, watching, damage):
    kept = store.monitors.read(served.number, KIND)
    document = dict(kept.document)
    damage(document)
    store.monitors.replace(served.number, KIND, document, kept.version)
    with pytest.raises(StoreError, match=f"^the monitor {KIND} of sums:v1 in the store ") as caught:
        WatchedPolicy(store, served, STEP).look(9000, 0, 7)
    assert "\n" not in str(caught.value)


def grouped(*more):
    votes = dm.vote([["a"] * 4 + ["b"]] * 100, groups=["x"] * 50 + ["y"] * 50)
    return dm.calibrate(votes, [True] * 99 + [False], guarantee=[dm.Grouped(dm.Marginal(0.2)), *more])


def test_a_point_that_cannot_be_moved_is_said_and_stays_calibrated(store):
    policy = grouped(dm.Marginal(0.2))
    row = store.policies.register("grouped", policy.document(), policy.fingerprint, 1)
    watched = WatchedPolicy(store, Served("grouped", policy, None, row.version, row.policy), STEP)
    assert [one.rule.guarantee.name for one in watched.online] == ["marginal"]
    [note] = [note for note in watched.notes if note.startswith("The threshold")]
    assert note.startswith("The threshold at alpha 0.2 (grouped_marginal) is not moved by audits: the guarantee ")


def test_where_no_point_can_be_moved_nothing_starts(store):
    served = Served("grouped", grouped(), None)
    models = SimpleNamespace(all=[served])
    with pytest.raises(
        InvalidValue, match=r"no threshold here can follow audits \(grouped:v1 at alpha 0.2: the guaran"
    ):
        refuse_nothing_to_move(models, STEP, logged=True)
