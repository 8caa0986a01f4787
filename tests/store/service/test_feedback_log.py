"""Feedback: said twice it is there once, a changed mind is history, and the last word counts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from sqlalchemy import text

from demur.errors import InvalidValue, StoreError
from demur.store.service import ServiceStore
from service_rows import at_once, decision


@pytest.fixture(autouse=True)
def decided(store):
    store.decisions.add([decision("r"), decision("s")])


def test_what_is_said_twice_is_there_once(store):
    first = store.feedback.give("r", "me", 1, verdict="right", answer="4", note="sure")
    assert store.feedback.give("r", "me", 2, verdict="right", answer="4", note="sure") == first
    assert store.feedback.history("r") == [first]


def test_a_changed_mind_is_kept_as_history_and_may_change_back(store):
    for at, verdict in enumerate(["right", "wrong", "wrong", "right"]):
        store.feedback.give("r", "me", at, verdict=verdict)
    history = store.feedback.history("r")
    assert [(word.verdict, word.at, word.turn) for word in history] == [
        ("right", 0, 0),
        ("wrong", 1, 1),
        ("right", 3, 2),
    ]
    assert store.feedback.latest(["r", "s"]) == {"r": (history[-1],)}


def test_each_persons_last_word_counts_in_the_order_they_were_said(store):
    store.feedback.give("r", "me", 1, verdict="right")
    store.feedback.give("r", "you", 2, verdict="unsure")
    store.feedback.give("r", "me", 3, answer="5")
    (words,) = store.feedback.latest(["r"]).values()
    assert [(word.who, word.verdict, word.answer) for word in words] == [("you", "unsure", None), ("me", None, "5")]


def test_feedback_on_an_unknown_request_or_without_words_is_refused(store):
    with pytest.raises(StoreError, match="there is no decision on a request 'other'"):
        store.feedback.give("other", "me", 1, verdict="right")
    with pytest.raises(InvalidValue, match="neither a verdict nor the true answer was given; give one of right, wrong"):
        store.feedback.give("r", "me", 1)
    with pytest.raises(InvalidValue, match="verdict must be one of right, wrong, unsure, got 'RIGHT'"):
        store.feedback.give("r", "me", 1, verdict="RIGHT")
    assert store.feedback.history("r") == []


def test_many_who_say_the_same_at_once_for_one_person_say_it_once(place, store):
    def say():
        with ServiceStore(place) as mine:
            return mine.feedback.give("r", "me", 1, verdict="right")

    words = at_once(*[say] * 6)
    assert len(set(words)) == 1
    assert store.feedback.history("r") == [words[0]]


def test_many_who_change_their_minds_at_once_leave_turns_that_follow_each_other(place, store):
    def say(verdict):
        with ServiceStore(place) as mine:
            for _ in range(6):
                mine.feedback.give("r", "me", 1, verdict=verdict)

    assert at_once(lambda: say("right"), lambda: say("wrong"), lambda: say("unsure")) == [None] * 3
    history = store.feedback.history("r")
    assert [word.turn for word in history] == list(range(len(history)))
    assert all(one.verdict != other.verdict for one, other in pairwise(history))


def test_odd_answers_and_notes_are_kept_as_far_as_a_database_can(store):
    store.feedback.give("r", "me", 1, answer="a\x00\ud800<b>", note="=1+1")
    assert store.feedback.give("r", "me", 2, answer="a\x00\ud800<b>", note="=1+1").at == 1
    (word,) = store.feedback.history("r")
    assert (word.answer, word.note) == ("a\ufffd\ufffd<b>", "=1+1")


def test_a_damaged_verdict_is_one_line(store):
    store.feedback.give("r", "me", 1, verdict="right")
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE demur_feedback SET verdict = 'perhaps'"))
    with pytest.raises(StoreError, match=r"is damaged: .*verdict is 'perhaps', not one of right, wrong, unsure"):
        store.feedback.latest(["r"])
    with pytest.raises(StoreError, match="is damaged"):
        store.feedback.give("r", "me", 1, verdict="right")
