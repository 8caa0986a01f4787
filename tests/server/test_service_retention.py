"""What is too old is forgotten, by one process at a time."""

from __future__ import annotations

import pytest

from demur.errors import InvalidValue
from demur.server.versions.retention import Retention
from demur.store.service import ServiceStore
from service_rows import decision

DAY = 24 * 3600 * 1000
NOW = 100 * DAY


@pytest.fixture
def store(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as opened:
        opened.decisions.add(
            [decision(f"r{days}", NOW - days * DAY, question="What?", asked={}) for days in (1, 10, 40)]
        )
        yield opened


def test_decisions_and_texts_are_forgotten_when_they_are_too_old(store):
    assert Retention(keep_days=30, keep_text_days=5).forget(store, NOW) == {"decisions": 1, "texts": 1}
    kept = {name: one.question for name, one in store.decisions.several(["r1", "r10", "r40"]).items()}
    assert kept == {"r1": "What?", "r10": None}


def test_with_the_texts_go_notes_and_what_failures_quote(store):
    quoting = decision(
        "r20", NOW - 20 * DAY, question="What?", outcome="failed", cause="upstream_failed: cannot take What?"
    )
    store.decisions.add([quoting])
    store.feedback.give("r20", "anna", NOW, verdict="wrong", note="it asked What?")
    Retention(keep_text_days=5).forget(store, NOW)
    assert store.decisions.get("r20").cause == "upstream_failed"
    assert [(said.verdict, said.note) for said in store.feedback.history("r20")] == [("wrong", None)]


def test_without_days_nothing_is_forgotten(store):
    assert Retention().forget(store, NOW) == {"decisions": 0, "texts": 0}


def test_logins_that_are_over_go(store):
    key, _ = store.keys.create("anna", ["review"], 1)  # without a key a login is found at no time
    (_, over), (_, holds) = (store.logins.begin(key.key, until) for until in (NOW, NOW + 1))
    assert store.logins.find(over, NOW - 5) is not None
    Retention().forget(store, NOW)
    assert store.logins.find(over, NOW - 5) is None
    assert store.logins.find(holds, NOW) is not None


def test_processes_take_turns(store):
    first = Retention(keep_days=30)
    assert first.forget_in_turn(store, NOW, every=3600) == {"decisions": 1, "texts": 0}
    assert first.forget_in_turn(store, NOW + 1000, every=3600) is None
    assert first.forget_in_turn(store, NOW + 3600 * 1000, every=3600) is not None
    assert first.forget_in_turn(store, NOW - DAY, every=3600) is not None  # the clock was set back


@pytest.mark.parametrize("days", [0, -1, float("nan"), float("inf")])
def test_days_are_numbers_above_nought(days):
    with pytest.raises(InvalidValue, match="keep_days"):
        Retention(keep_days=days)


def test_texts_are_not_kept_longer_than_decisions():
    with pytest.raises(InvalidValue, match="texts cannot be kept"):
        Retention(keep_days=3, keep_text_days=4)


def test_decisions_are_kept_until_their_labels_are_given_up():
    Retention(keep_days=8).refuse_within(7)
    Retention(keep_text_days=2).refuse_within(7)
    with pytest.raises(InvalidValue, match="forgotten after 7 days where an audited answer waits 7 days"):
        Retention(keep_days=7).refuse_within(7)
