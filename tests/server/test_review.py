"""The review queue over HTTP: one item for one person, blind audits, verdicts, undo, second opinions."""

from __future__ import annotations

import time

import pytest
import requests
from sqlalchemy import text

from demur.server.reviews import review
from demur.store.service import ServiceStore
from reviewing import Person, ask, nasty, reviewed_app
from service_rows import at_once, decision
from service_rows import review as waiting
from serving import listening

NONE_AUDITED = 1e-9


@pytest.fixture
def store(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as opened:
        yield opened


@pytest.fixture
def abstentions(upstream, sums_policy, store):
    """A service with three abstentions that nobody marked for audit."""
    with listening(reviewed_app(upstream.url, sums_policy, store, audit_share=NONE_AUDITED)) as address:
        ask(address, 1, 2, 5, 13)
        yield address


@pytest.fixture
def audits(upstream, sums_policy, store):
    """A service that marks every request for audit: two are answered, two abstained from."""
    with listening(reviewed_app(upstream.url, sums_policy, store, audit_share=1.0)) as address:
        ask(address, 1, 2, 5, 4)
        yield address


def people(store, *names, roles=("review",)):
    return [store.keys.create(name, list(roles), 1)[1] for name in names]


def test_the_queue_says_what_waits_and_what_for(abstentions):
    told = Person(abstentions).get("queue").json()
    assert [item["question"] for item in told["items"]] == [f"What is {k} + 1?" for k in (1, 5, 13)]
    assert told["counts"] == {"abstained": 3, "audit": 0, "most": 1000}
    assert {item["reason"] for item in told["items"]} == {"abstained"}
    assert [policy["name"] for policy in told["policies"]] == ["sums:v1"]
    assert Person(abstentions).get("queue", reason="audit").json()["items"] == []


def test_pages_follow_one_another(abstentions):
    person = Person(abstentions)
    first = person.get("queue", limit=2).json()
    rest = person.get("queue", limit=2, after=first["items"][-1]["request"]).json()
    assert (len(first["items"]), first["more"], len(rest["items"]), rest["more"]) == (2, True, 1, False)


@pytest.mark.parametrize(
    ("query", "names"),
    [({"since": 20}, ["b", "c"]), ({"until": 20}, ["a"]), ({"policy": 2}, ["c"]),
     ({"order": "contested"}, ["b", "a", "c"]), ({"reason": "audit"}, ["b", "c"]), ({"reason": "abstained"}, ["a"])],
)  # fmt: skip
def test_filters_and_orders_are_those_of_the_queue(upstream, sums_policy, store, query, names):
    rows = [("a", 10, "abstained", 0.5, 1), ("b", 20, "audit", 0.9, 1), ("c", 30, "both", 0.1, 2)]
    store.decisions.add(
        [decision(name, at, policy=policy) for name, at, _, _, policy in rows],
        [waiting(name, at, reason=why, contested=far, policy=policy) for name, at, why, far, policy in rows],
    )
    with listening(reviewed_app(upstream.url, sums_policy, store)) as address:
        person = Person(address)
        assert [item["request"] for item in person.get("queue", **query).json()["items"]] == names
        claimed = [item["request"] for _ in names if (item := person.claim(**query))]
        assert claimed == names
        assert person.claim(**query) is None


def test_two_people_never_get_one_item(abstentions):
    claimed = at_once(*[lambda: Person(abstentions).claim() for _ in range(6)])
    names = [item["request"] for item in claimed if item is not None]
    assert len(names) == len(set(names)) == 3


def test_an_abstention_is_shown_with_its_vote_and_every_path(abstentions):
    item = Person(abstentions).claim()
    assert (item["question"], item["blind"], item["reason"]) == ("What is 1 + 1?", False, "abstained")
    assert item["policy"]["name"] == "sums:v1"
    assert sum(answer["paths"] for answer in item["answers"]) == len(item["paths"]) == 5
    assert all(path["scores"] for path in item["paths"])
    assert item["vote"]["outcome"] == "abstained"
    assert item["vote"]["threshold"] > 0


def test_an_audit_is_shown_without_anything_that_tells_the_vote(audits):
    person = Person(audits)
    for _ in range(4):
        item = person.claim()
        assert (item["blind"], item["vote"], item["reason"]) == (True, None, "audit")
        assert all(set(answer) == {"answer"} for answer in item["answers"])
        assert all(set(path) == {"answer", "text"} for path in item["paths"])
        answers = [path["answer"] for path in item["paths"]]
        assert answers == sorted(set(answers)), "one path for each answer, in an order that says nothing"
        assert item["more_paths"] == 5 - len(item["paths"])


def test_blindness_is_chosen_and_can_be_given_up(audits):
    person = Person(audits)
    assert person.claim(blind="never")["vote"] is not None
    item = person.claim(blind="always")
    seen = person.post("show", request=item["request"], token=item["token"]).json()["item"]
    assert (len(seen["paths"]), seen["vote"]["winner"] is not None) == (5, True)
    assert person.post("show", request=item["request"], token="forged").status_code == 409


def test_a_verdict_closes_the_item_and_tells_the_vote(audits, store):
    person = Person(audits)
    item = person.claim()
    told = person.judge(item, answer=item["answers"][0]["answer"]).json()
    winner = store.decisions.get(item["request"]).winner
    assert told["verdict"] == ("right" if item["answers"][0]["answer"] == winner else "wrong")
    assert told["vote"]["winner"] == winner
    (word,) = store.feedback.history(item["request"])
    assert (word.verdict, word.answer, word.source) == (told["verdict"], item["answers"][0]["answer"], "review")
    assert person.get("queue").json()["counts"]["audit"] == 3


def test_the_true_answer_says_whether_the_vote_is_right(abstentions, store):
    person = Person(abstentions)
    first, second, third = person.claim(), person.claim(), person.claim()
    assert person.judge(first, answer="2").json()["verdict"] == "wrong"
    assert person.judge(second, answer=second["vote"]["winner"]).json()["verdict"] == "right"
    other_words = f"{third['vote']['winner']}.0"  # the same number, as the policy compares answers
    assert person.judge(third, answer=other_words).json()["verdict"] == "right"


def test_what_contradicts_itself_or_says_nothing_is_refused(abstentions):
    person = Person(abstentions)
    item = person.claim()
    assert person.judge(item, verdict="wrong", answer=item["vote"]["winner"]).status_code == 400
    assert person.judge(item).status_code == 400
    assert person.judge(item, verdict="perhaps").status_code == 400
    assert person.judge(item, verdict="wrong", answer="").status_code == 400
    assert person.judge(item, verdict="wrong", answer=" ").status_code == 400
    unread = person.judge(item, answer="\u200b")  # no answer by the policy's rule, so neither right nor wrong by it
    assert (unread.status_code, unread.json()["error"]["code"]) == (400, "not_comparable")
    assert person.get("queue").json()["counts"]["abstained"] == 3


def test_a_vote_that_there_was_not_is_not_right(upstream, sums_policy, store):
    made = decision("r", outcome="failed", question="What?", drawn=0)
    store.decisions.add([made], [waiting("r")])
    with listening(reviewed_app(upstream.url, sums_policy, store)) as address:
        person = Person(address)
        item = person.claim()
        assert (item["answers"], item["paths"]) == ([], [])
        refused = person.judge(item, verdict="right")
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "verdict")
        assert person.judge(item, answer="4").json()["verdict"] == "wrong"


def test_a_verdict_sent_twice_is_kept_once_and_another_is_refused(abstentions, store):
    person = Person(abstentions)
    item = person.claim()
    replies = [person.judge(item, verdict="wrong", answer="2") for _ in range(3)]
    assert [reply.status_code for reply in replies] == [200] * 3
    assert len(store.feedback.history(item["request"])) == 1
    other = person.judge(item, verdict="unsure")
    assert (other.status_code, other.json()["error"]["code"]) == (409, "judged_already")
    another = person.judge(item, verdict="wrong", answer="3")
    assert (another.status_code, another.json()["error"]["code"]) == (409, "judged_already")


def test_a_lease_that_ran_out_goes_to_the_next_person_and_the_first_is_told(abstentions, store, monkeypatch):
    monkeypatch.setattr(review, "LEASE_SECONDS", 0.05)
    slow, quick = Person(abstentions), Person(abstentions)
    item = slow.claim()
    time.sleep(0.1)
    taken = quick.claim()
    assert taken["request"] == item["request"]
    for late in (slow.judge(item, verdict="right"), slow.post("renew", request=item["request"], token=item["token"])):
        assert (late.status_code, late.json()["error"]["code"]) == (409, "lease_lost")
    assert quick.judge(taken, verdict="wrong").status_code == 200
    assert [word.verdict for word in store.feedback.history(item["request"])] == ["wrong"]


def test_a_lease_that_is_renewed_is_kept(abstentions, store):
    person = Person(abstentions)
    item = person.claim()
    for _ in range(3):
        with store.engine.begin() as connection:  # as if so many seconds had passed
            aged = "UPDATE demur_reviews SET lease_until = lease_until - :ms"
            connection.execute(text(aged), {"ms": int(800 * review.LEASE_SECONDS)})
        assert person.post("renew", request=item["request"], token=item["token"]).status_code == 200
        assert Person(abstentions).claim(request=item["request"]) is None


def test_what_is_given_back_or_skipped_is_there_for_others(abstentions):
    me, you = Person(abstentions), Person(abstentions)
    item = me.claim()
    assert me.post("release", request=item["request"], token=item["token"]).status_code == 200
    assert me.claim(skipping=[item["request"]])["request"] != item["request"]
    assert you.claim()["request"] == item["request"]


def test_a_verdict_can_be_taken_back_and_given_anew(abstentions, store):
    person = Person(abstentions)
    item = person.claim()
    person.judge(item, verdict="wrong")
    assert person.post("undo", request=item["request"]).json()["state"] == "open"
    again = person.claim(request=item["request"])
    assert person.judge(again, verdict="unsure").json()["verdict"] == "unsure"
    assert [word.verdict for word in store.feedback.history(item["request"])] == ["wrong", None, "unsure"]
    never = person.post("undo", request=person.claim()["request"])
    assert (never.status_code, never.json()["error"]["code"]) == (409, "nothing_to_undo")
    assert person.post("undo", request="none").status_code == 404


def test_second_opinions_come_from_another_person_who_does_not_see_the_first(upstream, sums_policy, store):
    ann, bob = people(store, "ann", "bob")
    app = reviewed_app(upstream.url, sums_policy, store, audit_share=NONE_AUDITED, second_opinions=1.0)
    asker = store.keys.create("asker", ["ask"], 1)[1]
    with listening(app) as address:
        ask(address, 1, 5, Authorization=f"Bearer {asker}")
        first, second = Person(address, ann), Person(address, bob)
        for verdict in ("wrong", "right"):
            item = first.claim()
            told = first.judge(item, verdict="wrong").json()
            assert (told["agree"], told["waits_for_second"]) == (None, True)
            assert first.claim(request=item["request"]) is None, "nobody gives the second opinion on their own first"
            again = second.claim(request=item["request"])
            assert "wrong" not in str({name: again[name] for name in again if name not in ("vote", "paths")})
            told = second.judge(again, verdict=verdict).json()
            assert (told["agree"], told["waits_for_second"]) == (verdict == "wrong", False)
        told = second.get("queue", state="done").json()
        assert told["agreement"] == {"judged_twice": 2, "agreed": 1}
        assert [[word["verdict"] for word in item["said"]] for item in told["items"]] == [
            ["wrong", "wrong"], ["wrong", "right"],
        ]  # fmt: skip
        assert [word["mine"] for word in told["items"][0]["said"]] == [False, True]


def test_only_reviewers_review_and_a_lease_is_of_its_holder_alone(upstream, sums_policy, store):
    ann, bob = people(store, "ann", "bob")
    (asker,) = people(store, "asker", roles=("ask",))
    with listening(reviewed_app(upstream.url, sums_policy, store, audit_share=NONE_AUDITED)) as address:
        ask(address, 1, Authorization=f"Bearer {asker}")
        every = [("GET", "queue"), ("GET", "labelled"), *(("POST", name) for name in ("claim", "show", "renew"))]
        every += [("POST", name) for name in ("release", "verdict", "undo")]
        for method, name in every:
            for key, status in ((None, 401), ("forged", 401), (asker, 403)):
                headers = {} if key is None else {"Authorization": f"Bearer {key}"}
                reply = requests.request(method, f"{address}/review/api/{name}", json={}, headers=headers, timeout=300)
                assert reply.status_code == status, name
        item = Person(address, ann).claim()
        stolen = Person(address, bob).judge(item, verdict="right")
        assert (stolen.status_code, stolen.json()["error"]["code"]) == (409, "lease_lost")


def test_a_login_changes_nothing_without_its_csrf_token(upstream, sums_policy, store):
    (ann,) = people(store, "ann", roles=("ask", "review"))
    with listening(reviewed_app(upstream.url, sums_policy, store, audit_share=NONE_AUDITED)) as address:
        ask(address, 1, Authorization=f"Bearer {ann}")
        person = Person(address)
        told = person.session.post(f"{address}/login", json={"key": ann}, timeout=300).json()
        assert person.get("queue").status_code == 200
        assert person.post("claim").status_code == 403
        person.session.headers["x-demur-csrf"] = told["csrf"]
        item = person.claim()
        del person.session.headers["x-demur-csrf"]
        assert person.judge(item, verdict="right").status_code == 403
        assert person.get("queue").json()["items"][0]["held"]


def test_without_a_log_there_is_nothing_to_review(address):
    assert Person(address).get("queue").json()["error"]["code"] == "no_log"
    assert Person(address).get("labelled").json()["error"]["code"] == "no_log"


@pytest.mark.parametrize(
    "query", [{"order": "newest"}, {"limit": 0}, {"policy": "x"}, {"since": -1}, {"reason": "both"}]
)
def test_queries_of_no_sense_get_one_line(abstentions, query):
    reply = Person(abstentions).get("queue", **query)
    (name,) = query
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, name)


def test_a_conversation_options_and_passages_are_shown_for_what_they_are(upstream, sums_policy, store):
    made, item = nasty("r", "<script>", options=["red", "blue"], passages=["first", "second"], groups=["hard"])
    store.decisions.add([made], [item])
    with listening(reviewed_app(upstream.url, sums_policy, store)) as address:
        shown = Person(address).claim()
    assert shown["options"] == [{"letter": "A", "text": "red"}, {"letter": "B", "text": "blue"}]
    assert [part["text"] for part in shown["beside"]] == ["first", "second"]
    assert (shown["question"], shown["groups"]) == ("<script>", ["hard"])
