"""The queue: its pages, leases that no two people hold at once, verdicts, second opinions, and taking things back."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from itertools import chain

import pytest
from sqlalchemy import text

from demur.errors import InvalidValue, StoreError
from demur.store.service import Agreement, ReviewCounts, ReviewFilter, ServiceStore, family
from processes import Process
from service_rows import at_once, decision, fill, review


def judge(store, who, verdict="right", **how):
    """Claim an item and settle it; its request."""
    item = store.reviews.claim(who, **how)
    assert store.reviews.settle(item.request, item.lease_token, 1, verdict=verdict)
    return item.request


def test_pages_hold_what_a_plain_search_finds_in_both_orders(store):
    rng = random.Random(0)
    items = [
        review(
            f"r{k}", rng.randrange(9), reason=rng.choice(["abstained", "audit", "both"]), policy=rng.choice([1, 2]),
            contested=rng.choice([0.1, 0.2, 0.3]), second=rng.random() < 0.2,
        )
        for k in range(90)
    ]  # fmt: skip
    store.decisions.add([decision(item.request) for item in items], items)
    for _ in range(30):
        choices = {"reason": ["audit", "both"], "policy": [1, 2], "second": [True, False], "since": range(9)}
        choices["audited"] = [True, False]
        wanted = {name: rng.choice(values) for name, values in choices.items() if rng.random() < 0.4}
        order = rng.choice(["oldest", "contested"])
        kept = [
            item for item in items
            if all(getattr(item, name) == value for name, value in wanted.items() if name not in ("since", "audited"))
            and item.at >= wanted.get("since", 0)
            and wanted.get("audited") in (None, item.reason != "abstained")
        ]  # fmt: skip
        by_time, by_contest = (lambda item: (item.at, item.request)), (lambda item: (item.contested, item.request))
        kept.sort(key=by_time if order == "oldest" else by_contest, reverse=order == "contested")
        pages, last = [], None
        while page := store.reviews.queue(ReviewFilter(**wanted), order=order, after=last, limit=8):
            pages += page
            last = page[-1]
        assert [item.request for item in pages] == [item.request for item in kept]
        assert store.reviews.counts(ReviewFilter(**wanted)).open == len(kept)


def test_counts_go_no_further_than_asked(store):
    fill(store, 12)
    assert store.reviews.counts(most=5) == ReviewCounts(5, 0, 0, most=5)
    assert store.reviews.counts() == ReviewCounts(12, 0, 0, most=1000)


def test_an_order_that_there_is_not_is_refused(store):
    with pytest.raises(InvalidValue, match="orders oldest and contested, not 'newest'"):
        store.reviews.queue(order="newest")
    with pytest.raises(InvalidValue, match="reason must be one of abstained, audit, both"):
        store.reviews.queue(ReviewFilter(reason="bored"))


def test_an_item_is_given_to_one_person_and_waits_for_their_verdict(store):
    fill(store, 2)
    mine, yours = store.reviews.claim("me"), store.reviews.claim("you")
    assert (mine.request, yours.request, store.reviews.claim("third")) == ("r000", "r001", None)
    assert [item.request for item in store.reviews.held("me")] == ["r000"]
    assert store.reviews.settle("r000", mine.lease_token, 5, verdict="wrong", answer="7", note="seen")
    done = store.reviews.get("r000")
    assert (done.state, done.first_by, done.lease_token) == ("done", "me", None)
    (word,) = store.feedback.history("r000")
    assert (word.who, word.verdict, word.answer, word.source, word.note) == ("me", "wrong", "7", "review", "seen")
    assert [item.request for item in store.reviews.queue()] == ["r001"]
    assert [item.request for item in store.reviews.queue(ReviewFilter(state="done"))] == ["r000"]


def test_a_verdict_settled_twice_is_one_verdict(store):
    fill(store, 1)
    item = store.reviews.claim("me")
    assert store.reviews.settle("r000", item.lease_token, 1, verdict="right")
    assert store.reviews.settle("r000", item.lease_token, 2, verdict="right")
    assert len(store.feedback.history("r000")) == 1


def test_a_lease_that_ran_out_goes_to_the_next_and_its_first_holder_is_told(store):
    fill(store, 1)
    mine = store.reviews.claim("me", seconds=0.05)
    time.sleep(0.1)
    assert store.reviews.held("me") == []
    yours = store.reviews.claim("you")
    assert yours.request == mine.request
    assert not store.reviews.renew("r000", mine.lease_token)
    assert not store.reviews.settle("r000", mine.lease_token, 1, verdict="right")
    store.reviews.release("r000", mine.lease_token)
    assert [item.request for item in store.reviews.held("you")] == ["r000"]
    assert store.feedback.history("r000") == []


def test_a_verdict_after_the_lease_counts_as_long_as_nobody_else_took_the_item(store):
    fill(store, 1)
    mine = store.reviews.claim("me", seconds=0.05)
    time.sleep(0.1)
    assert store.reviews.settle("r000", mine.lease_token, 1, verdict="right")


def test_a_lease_can_be_renewed_and_given_back(store):
    fill(store, 1)
    mine = store.reviews.claim("me", seconds=0.3)
    assert store.reviews.renew("r000", mine.lease_token, seconds=60)
    time.sleep(0.4)
    assert store.reviews.claim("you") is None
    store.reviews.release("r000", mine.lease_token)
    store.reviews.release("r000", mine.lease_token)
    assert store.reviews.claim("you").request == "r000"


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), 10**6])
def test_a_lease_of_no_or_endless_length_is_refused(store, seconds):
    with pytest.raises(InvalidValue, match="a lease lasts from 0 to 86400 seconds"):
        store.reviews.claim("me", seconds=seconds)


def test_a_clock_that_was_set_back_holds_no_item_for_ever(store):
    fill(store, 1)
    mine = store.reviews.claim("me")
    with store.engine.begin() as connection:
        years = family.lease_clock(connection) + 10**11
        connection.execute(text("UPDATE demur_reviews SET lease_until = :late"), {"late": years})
    assert store.reviews.claim("you").request == mine.request


def test_items_that_are_skipped_are_left_for_others(store):
    fill(store, 3)
    mine = store.reviews.claim("me", skipping=["r000", "r001", "unknown", "\x00"])
    assert (mine.request, store.reviews.claim("me", skipping=["r000", "r001"])) == ("r002", None)
    assert store.reviews.claim("you").request == "r000"


def test_audits_are_found_by_their_own_index_however_few_they_are(store):
    if store.place.startswith("postgresql"):
        pytest.skip("PostgreSQL chooses by what it counted of a table")
    with store.reviews.reading() as connection:
        plan = connection.execute(
            text(
                "explain query plan select * from demur_reviews where state = 'open' and reason != 'abstained' "
                "order by at, request limit 20"
            )
        ).all()
    assert "demur_reviews_of_audits" in str(plan)
    assert "TEMP B-TREE" not in str(plan)


def test_only_the_item_asked_for_is_given(store):
    fill(store, 3)
    assert store.reviews.claim("me", request="r002").request == "r002"
    assert store.reviews.claim("you", request="r002") is None
    assert store.reviews.claim("you", order="contested").request == "r001"


def test_a_second_opinion_comes_from_somebody_else_and_agreement_is_counted(store):
    fill(store, 3, second=True)
    assert judge(store, "me") == "r000"
    assert store.reviews.get("r000").state == "open"
    assert store.reviews.claim("me", request="r000") is None
    judge(store, "you", request="r000")
    assert store.reviews.get("r000").state == "done"
    judge(store, "me", "wrong", request="r001")
    judge(store, "you", "right", request="r001")
    judge(store, "me", request="r002")
    assert store.reviews.agreement() == Agreement(judged_twice=2, agreed=1)


def test_true_answers_without_a_verdict_agree_where_they_are_the_same(store):
    fill(store, 2, second=True)
    for request, answers in {"r000": ("4", "4"), "r001": ("4", "5")}.items():
        for who, answer in zip(("me", "you"), answers, strict=True):
            item = store.reviews.claim(who, request=request)
            store.reviews.settle(request, item.lease_token, 1, answer=answer)
    assert store.reviews.agreement() == Agreement(2, 1)


def test_a_verdict_taken_back_opens_the_item_again(store):
    fill(store, 1)
    judge(store, "me")
    assert store.reviews.undo("r000", "me", 2).state == "open"
    assert store.reviews.undo("r000", "me", 3).state == "open"
    assert store.feedback.latest(["r000"]) == {}
    assert [word.taken_back for word in store.feedback.history("r000")] == [False, True]
    judge(store, "me", "wrong")
    assert store.feedback.latest(["r000"])["r000"][0].verdict == "wrong"


@pytest.mark.parametrize(("who", "left"), [("me", "you"), ("you", "me")])
def test_of_two_opinions_each_can_be_taken_back_and_given_anew(store, who, left):
    fill(store, 1, second=True)
    judge(store, "me")
    judge(store, "you", "wrong")
    item = store.reviews.undo("r000", who, 2)
    assert (item.state, item.first_by, item.second_by, item.agree) == ("open", left, None, None)
    assert store.reviews.agreement() == Agreement(0, 0)
    assert store.reviews.claim(left) is None
    judge(store, who, "wrong" if left == "you" else "right")
    assert store.reviews.agreement() == Agreement(1, 1)


def test_nothing_can_be_taken_back_that_was_not_said(store):
    fill(store, 1)
    store.feedback.give("r000", "me", 1, verdict="right")
    with pytest.raises(StoreError, match="'me' gave no verdict on 'r000' that could be taken back"):
        store.reviews.undo("r000", "me", 1)
    with pytest.raises(StoreError, match="there is no decision on a request 'other'"):
        store.reviews.undo("other", "me", 1)


def test_a_verdict_without_words_is_refused_and_the_item_stays(store):
    fill(store, 1)
    item = store.reviews.claim("me")
    with pytest.raises(InvalidValue, match="neither a verdict nor the true answer"):
        store.reviews.settle("r000", item.lease_token, 1)
    with pytest.raises(InvalidValue, match="verdict must be one of"):
        store.reviews.settle("r000", item.lease_token, 1, verdict="maybe")
    assert store.reviews.held("me") == [item]


def test_many_people_at_once_get_every_item_and_none_twice(place, store):
    names = fill(store, 60)

    def work(who):
        mine = []
        with ServiceStore(place) as own:
            while (item := own.reviews.claim(who)) is not None:
                mine.append(item.request)
        return mine

    results = at_once(*(lambda who=who: work(who) for who in ("a", "b", "c", "d")))
    assert sorted(chain.from_iterable(results)) == names


def test_many_processes_at_once_judge_every_item_once(place, store):
    names = fill(store, 60)
    program = (
        "import json, sys; from demur.store.service import ServiceStore\n"
        "done, store = [], ServiceStore(sys.argv[1])\n"
        "while (item := store.reviews.claim(sys.argv[2])) is not None:\n"
        "    assert store.reviews.settle(item.request, item.lease_token, 1, verdict='right')\n"
        "    done.append(item.request)\n"
        "print(json.dumps(done))"
    )
    running = [
        Process([sys.executable, "-c", program, place, who], stdout=subprocess.PIPE, text=True)
        for who in ("a", "b", "c")
    ]
    done = [json.loads(process.communicate(timeout=300)[0]) for process in running]
    assert sorted(chain.from_iterable(done)) == names
    assert store.reviews.counts().open == 0
    assert all(len(words) == 1 for words in store.feedback.latest(names).values())


def test_leases_that_run_out_under_many_hands_lead_to_one_verdict_each(place, store):
    """Everybody is too slow now and then; whose lease was taken over is refused."""
    names = fill(store, 12)

    def work(who):
        rng, accepted = random.Random(who), []
        with ServiceStore(place) as own:
            deadline = time.monotonic() + 300
            while own.reviews.counts().open and time.monotonic() < deadline:
                if (item := own.reviews.claim(who, seconds=0.1)) is not None:
                    time.sleep(rng.choice([0, 0, 0.15]))
                    if own.reviews.settle(item.request, item.lease_token, 1, verdict="right"):
                        accepted.append(item.request)
        return accepted

    results = at_once(*(lambda who=who: work(who) for who in ("a", "b", "c")))
    assert sorted(chain.from_iterable(results)) == names
    assert [len(store.feedback.history(name)) for name in names] == [1] * len(names)
