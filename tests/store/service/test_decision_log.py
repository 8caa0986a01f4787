"""The log of decisions: what goes in comes out, once, by page, and what is old can be forgotten."""

from __future__ import annotations

import json
import math
import random
from dataclasses import fields, replace

import pytest
from sqlalchemy import text

from demur.errors import InvalidValue, StoreError
from demur.store.service import Decision, ServiceStore, decisions
from service_rows import PATHS, at_once, decision, fill, review

from demur.store.service import canaries, events, feedback, keys, policies, review_queue  # isort: skip

EVERYTHING = decision(
    "everything", 1_790_000_000_000, alpha="1/20", guarantee="P ≤ 0.05", caller="k1", question="What is 2 + 2?",
    asked={"options": ["3", "4"], "passages": []}, outcome="answered", cause=None, answer="4", winner="4",
    confidence=0.1 + 0.2, vote_key=(0.1 + 0.2, -1e-300, -math.inf), drawn=4, tokens_in=2**40, tokens_out=12, audit=True,
    reported_model="m-1", system_fingerprint="fp", document={"votes": {"4": 0.75}}, idempotency="abc", paths=PATHS,
)  # fmt: skip


def test_everything_about_a_decision_comes_back(store):
    store.decisions.add([EVERYTHING, decision("plain")])
    assert store.decisions.get("everything") == EVERYTHING
    assert store.decisions.get("plain") == decision("plain")
    assert store.decisions.get("nothing") is None


@pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan])
def test_a_number_that_json_does_not_have_is_null_in_the_store(store, odd):
    path = replace(PATHS[0], scores={"judge": odd})
    store.decisions.add([decision("r", document={"votes": [{"share": odd}]}, asked={"n": (odd, 1)}, paths=(path,))])
    back = store.decisions.get("r")
    assert (back.document, back.asked, back.paths[0].scores) == (
        {"votes": [{"share": None}]},
        {"n": [None, 1]},
        {"judge": None},
    )
    with store.engine.connect() as connection:
        for column in ("document", "asked"):
            json.loads(
                connection.execute(text(f"SELECT {column} FROM demur_decisions")).scalar(), parse_constant=pytest.fail
            )


def test_a_decision_saved_twice_is_there_once_as_it_was_first(store):
    store.decisions.add([EVERYTHING], [review("everything")])
    store.decisions.add([replace(EVERYTHING, answer="5", paths=())], [review("everything", reason="both")])
    assert store.decisions.get("everything") == EVERYTHING
    assert store.decisions.tally().answered == 1
    assert [item.reason for item in store.reviews.queue()] == ["abstained"]


def test_a_thousand_decisions_go_in_with_one_commit(store):
    from sqlalchemy import event

    commits = []
    event.listen(store.engine, "commit", commits.append)
    store.decisions.add(
        [replace(EVERYTHING, request=f"r{k}") for k in range(1000)], [review(f"r{k}") for k in range(1000)]
    )
    assert len(commits) == 1
    assert store.decisions.tally().answered == store.reviews.counts().open == 1000
    back = store.decisions.search(limit=2000, with_paths=True)
    assert [made.paths for made in back] == [PATHS] * 1000


def test_one_decision_that_cannot_be_saved_takes_its_batch_with_it_and_says_why(store):
    with pytest.raises(InvalidValue, match="outcome must be one of answered, abstained, failed, got 'guessed'"):
        store.decisions.add([decision("good"), decision("bad", outcome="guessed")])
    assert store.decisions.get("good") is None


@pytest.mark.parametrize(
    "odd",
    [
        {"request": ""}, {"request": "a\x00b"}, {"request": "\ud800"}, {"request": "x" * 201}, {"at": -1},
        {"at": 2**63}, {"at": 1.5}, {"at": True}, {"policy": 2**31}, {"confidence": float("nan")},
        {"confidence": "0.5"}, {"vote_key": [float("inf")]}, {"vote_key": [math.nan]}, {"vote_key": "0.5"},
        {"audit": 1},
        {"document": {"a": {1, 2}}}, {"document": []}, {"question": b"bytes"}, {"drawn": None}, {"n_paths": "4"},
    ],
)  # fmt: skip
def test_values_of_another_kind_are_refused_in_one_line(store, odd):
    with pytest.raises(InvalidValue) as refused:
        store.decisions.add([replace(decision("r"), **odd)])
    assert next(iter(odd)) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "odd", ["\x00", "a\ud800b", "‮", "", " \n", "😀", "'; DROP TABLE demur_decisions; --", "x" * 10**5]
)
def test_whatever_a_caller_or_a_model_writes_can_be_stored(store, odd):
    path = replace(PATHS[0], answer=odd, text=odd, scores={odd: 1.0})
    made = decision("r", question=odd, asked={"options": [odd]}, answer=odd, document={odd: odd}, paths=(path,))
    store.decisions.add([made])
    back = store.decisions.get("r")
    assert (back.asked, back.document, back.paths[0].text) == (made.asked, made.document, odd)
    assert back.question == odd.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")


@pytest.mark.parametrize("odd", ["", "a\x00b", "\ud800", "x" * 10**6])
def test_names_that_cannot_be_stored_are_found_nowhere(store, odd):
    assert store.decisions.get(odd) is None
    assert store.decisions.several([odd, "r"]) == {}
    assert store.reviews.get(odd) is None
    assert store.feedback.latest([odd]) == {}
    assert store.feedback.history(odd) == []
    assert store.keys.find(odd) is None
    assert store.logins.find(odd, 1) is None
    assert store.reviews.claim("me", request=odd) is None
    assert store.reviews.renew(odd, odd) is False
    assert store.reviews.held(odd) == []
    store.reviews.release(odd, odd)
    with pytest.raises(InvalidValue):
        store.feedback.give(odd, "me", 1, verdict="right")


def matching(made, policy=None, outcome=None, audit=None, caller=None, since=None, until=None):
    wanted = {"policy": policy, "outcome": outcome, "audit": audit, "caller": caller}
    kept = [one for one in made if all(value in (None, getattr(one, name)) for name, value in wanted.items())]
    kept = [one for one in kept if (since is None or one.at >= since) and (until is None or one.at < until)]
    return sorted(kept, key=lambda one: (one.at, one.request), reverse=True)


def test_pages_hold_what_a_plain_search_finds_whatever_is_asked_for(store):
    rng = random.Random(0)
    made = [
        decision(
            f"r{k}", rng.randrange(12), policy=rng.choice([1, 2]),
            outcome=rng.choice(["answered", "abstained", "failed"]), audit=rng.random() < 0.3,
            caller=rng.choice([None, "k1", "k2"]),
        )
        for k in range(120)
    ]  # fmt: skip
    store.decisions.add(made)
    for _ in range(40):
        choices = {
            "policy": [1, 2], "outcome": ["answered", "failed"], "audit": [True, False], "caller": ["k1"],
            "since": range(12), "until": range(12),
        }  # fmt: skip
        wanted = {name: rng.choice(values) for name, values in choices.items() if rng.random() < 0.4}
        pages, last = [], None
        while page := store.decisions.search(**wanted, after=last, limit=7):
            pages += page
            last = page[-1]
        assert pages == matching(made, **wanted)
    tally = store.decisions.tally(policy=1, since=3, until=9)
    mine = matching(made, policy=1, since=3, until=9)
    assert tally.failed == sum(one.outcome == "failed" for one in mine)
    assert tally.drawn == sum(one.drawn for one in mine)


def test_writers_of_the_same_decisions_at_once_do_not_stand_in_each_others_way(place, store):
    batch = [replace(EVERYTHING, request=f"r{k}") for k in range(50)]

    def write(step):
        with ServiceStore(place) as mine:
            for _ in range(5):
                mine.decisions.add(batch[::step], [review(one.request) for one in batch[::step]])

    assert at_once(*(lambda step=step: write(step) for step in (1, -1, 1, -1))) == [None] * 4
    assert store.decisions.tally().answered == store.reviews.counts().open == 50


def test_texts_are_forgotten_and_what_was_decided_stays(store):
    old, new = replace(EVERYTHING, request="old", at=10), replace(EVERYTHING, request="new", at=20)
    store.decisions.add([old, new, decision("bare", 5)], [review("old"), review("new")])
    assert store.retention.forget_texts(20) == 1
    assert store.retention.forget_texts(20) == 0
    bare = tuple(replace(path, text=None) for path in PATHS)
    assert store.decisions.get("old") == replace(old, question=None, asked=None, paths=bare)
    assert store.decisions.get("new") == new
    assert [item.request for item in store.reviews.queue()] == ["new"]


def test_decisions_are_forgotten_with_all_that_belongs_to_them(store):
    names = fill(store, 1203)
    store.feedback.give(names[0], "me", 1, verdict="right")
    store.feedback.give(names[-1], "me", 1, verdict="right")
    assert store.retention.forget(1202) == 1202
    assert store.decisions.tally().abstained == store.reviews.counts().open == 1
    assert list(store.feedback.latest(names)) == [names[-1]]
    with store.engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM demur_feedback")).scalar() == 1


def test_two_who_forget_at_once_forget_everything_once(place, store):
    fill(store, 1500)

    def forget():
        with ServiceStore(place) as mine:
            return mine.retention.forget(10_000)

    assert sum(at_once(forget, forget)) == 1500
    assert store.decisions.tally().abstained == 0


DAMAGE = {
    "outcome": "'guessed'", "document": "'[1]'", "asked": "'{'", "vote_key": "'[\"a\"]'", "audit": "7", "at": "-5",
    "confidence": "'NaN'",
}  # fmt: skip


@pytest.mark.parametrize("column", DAMAGE)
def test_a_damaged_row_is_one_line_that_says_so(store, column):
    store.decisions.add([EVERYTHING])
    with store.engine.begin() as connection:
        connection.execute(text(f"UPDATE demur_decisions SET {column} = {DAMAGE[column]}"))
    for look in (lambda: store.decisions.get("everything"), store.decisions.search):
        with pytest.raises(StoreError, match=f"is damaged: it holds what demur never wrote: {column} is"):
            look()


def test_a_damaged_text_of_a_path_is_one_line_too(store):
    store.decisions.add([EVERYTHING])
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE demur_decision_paths SET text = :odd"), {"odd": b"not deflated"})
    with pytest.raises(StoreError, match="is damaged"):
        store.decisions.get("everything")


@pytest.mark.parametrize(
    ("record", "kinds", "further"),
    [
        (Decision, decisions._KINDS, {"paths"}),
        (decisions.DecisionPath, decisions._PATH_KINDS, set()),
        (feedback.Feedback, feedback._KINDS, set()),
        (review_queue.NewReview, review_queue._NEW, set()),
        (review_queue.ReviewItem, review_queue._KINDS, set()),
        (policies.PolicyRow, policies._KINDS, set()),
        (keys.ApiKey, keys._KINDS, set()),
        (events.Event, events._KINDS, set()),
        (canaries.Canary, canaries._KINDS, set()),
    ],
)
def test_every_field_of_a_row_is_of_a_stated_kind(record, kinds, further):
    assert {field.name for field in fields(record)} == {*kinds} | further
