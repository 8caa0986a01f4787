"""A writer that is killed, a server that goes away, a commit that nobody hears of: what was told is there, once."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest
from sqlalchemy import event
from sqlalchemy.engine import make_url

from demur.errors import StoreUnreachable
from demur.store.service import ServiceStore
from patience import wait_until
from postgres_servers import running_postgres
from processes import Process
from service_rows import decision, fill, review

WRITER = """
import sys, threading
from demur.store.service import Decision, DecisionPath, NewReview, ServiceStore
store, told = ServiceStore(sys.argv[1]), threading.Lock()

def write(thread):
    number = 0
    while True:
        names = [f"{sys.argv[2]}-{thread}-{number + k}" for k in range(5)]
        number += 5
        paths = tuple(DecisionPath(k, "4", "so it is 4 " * 50, {"judge": 0.5}, 9) for k in range(4))
        made = [Decision(name, 1, 1, "m", "d", "abstained", 4, 4, 3, question="?", paths=paths) for name in names]
        store.decisions.add(made, [NewReview(name, "abstained", 1, 0.5, 1) for name in names])
        store.feedback.give(names[0], "me", 1, verdict="right")
        with told:
            print(*names, flush=True)

for thread in range(4):
    threading.Thread(target=write, args=[thread]).start()
"""


def test_every_acknowledged_decision_is_there_after_writers_are_killed(place, store):
    acknowledged = []
    for attempt in range(2):
        running = [
            Process([sys.executable, "-c", WRITER, place, f"w{attempt}{k}"], stdout=subprocess.PIPE, text=True)
            for k in range(2)
        ]
        acknowledged += [process.stdout.readline().split() for process in running for _ in range(5)]
        for process in running:
            process.send_signal(signal.SIGKILL)
        for process in running:
            acknowledged += [line.split() for line in process.communicate(timeout=120)[0].splitlines(keepends=True)]
    whole = [names for names in acknowledged if len(names) == 5]
    assert len(whole) > 8
    names = [name for batch in whole for name in batch]
    there = store.decisions.several(names, with_paths=True)
    assert there.keys() == set(names)
    assert all(len(made.paths) == 4 for made in there.values())
    assert all(store.reviews.get(name) is not None for name in names[:50])
    assert store.feedback.latest(batch[0] for batch in whole).keys() == {batch[0] for batch in whole}


def every_write(store):
    """One of each write, and what it must have led to however often it was done."""
    key, _ = store.keys.create("web", ["ask"], 1)
    policy = store.policies.register("math", {"n": 1}, "f", 1)
    policy = store.policies.propose("math", {"n": 2}, "f", 1, shadow=True)
    store.policies.activate(policy.policy)
    store.decisions.add([decision("r"), decision("s")], [review("r", second=True), review("s")])
    store.feedback.give("s", "me", 1, verdict="wrong")
    for who in ("me", "you"):
        item = store.reviews.claim(who, request="r")
        assert store.reviews.renew("r", item.lease_token)
        assert store.reviews.settle("r", item.lease_token, 1, verdict="right")
    assert store.reviews.undo("r", "you", 2).state == "open"
    item = store.reviews.claim("you")
    store.reviews.release(item.request, item.lease_token)
    assert store.spending.spend(key.key, 0, 16, 100, most_paths=16).granted
    assert store.repeats.begin("k", "d", "b", "r", 1).whose == "mine"
    assert store.repeats.finish("k", "d", "r")
    assert store.monitors.replace(1, "drift", {"n": 1}, 0)
    assert store.monitors.replace(1, "drift", {"n": 2}, 1)
    store.events.note(1, "alarm", "words")
    canary = store.canaries.claim_next(1, ["a", "b"], 1)
    assert store.canaries.settle(1, "a", canary.lease_token, answered=True)
    _, token = store.logins.begin(key.key, 100)

    assert [(row.version, row.state) for row in store.policies.all()] == [(1, "retired"), (2, "active")]
    assert store.decisions.tally().abstained == 2
    assert [word.verdict for word in store.feedback.history("r")] == ["right", "right", None]
    assert len(store.feedback.history("s")) == 1
    assert (store.spending.spent(key.key, 0).paths, store.spending.spent(key.key, 0).tokens) == (16, 100)
    assert store.monitors.read(1, "drift").version == 2
    assert len(store.events.latest()) == len(store.canaries.all(1)) == len(store.keys.all()) == 1
    assert store.logins.find(token, 50) is not None


def test_no_commit_whose_outcome_nobody_learns_is_made_twice(postgres_url):
    """The server commits each time, and the connection breaks before it can say so."""
    with ServiceStore(postgres_url, create=True) as store:
        done = []

        @event.listens_for(store.engine, "commit")
        def commit_and_break(connection):
            done.append(len(done))
            if len(done) % 2:  # the next try goes through
                raw = connection.connection.driver_connection
                raw.commit()
                raw.close()

        store.patience.seconds = 60
        every_write(store)
        assert store.patience.retries > 20
        store.retention.forget(100)
        assert store.decisions.tally().abstained == 0


def test_every_write_does_what_it_says_where_nothing_breaks(store):
    every_write(store)


@pytest.fixture(scope="module")
def server_of_its_own(tmp_path_factory):
    """A server that may be stopped: no other test uses it."""
    with running_postgres(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture
def database(server_of_its_own):
    server_of_its_own.start()
    name = f"d{time.monotonic_ns()}"
    server_of_its_own.psql(f"CREATE DATABASE {name};")
    return make_url(server_of_its_own.get_uri()).set(database=name).render_as_string(hide_password=False)


def test_a_server_that_goes_away_and_comes_back_loses_and_doubles_nothing(database, server_of_its_own):
    with ServiceStore(database, create=True) as store:
        stop, acknowledged = threading.Event(), []

        def write(thread):
            number = 0
            while not stop.is_set():
                name = f"{thread}-{number}"
                store.decisions.add([decision(name)], [review(name)])
                store.spending.spend("k", 0, 1)
                acknowledged.append(name)
                number += 1

        threads = [threading.Thread(target=write, args=[k]) for k in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            kept, missed = len(acknowledged), store.patience.retries
            wait_until(lambda kept=kept: len(acknowledged) > kept + 20)
            server_of_its_own.stop()
            wait_until(lambda missed=missed: store.patience.retries > missed)
            server_of_its_own.start()
        stop.set()
        for thread in threads:
            thread.join(120)
        assert store.decisions.several(acknowledged).keys() == set(acknowledged)
        assert store.decisions.tally().abstained == store.spending.spent("k", 0).paths == len(acknowledged)


def test_a_server_that_stays_away_is_an_error_when_patience_is_over(database, server_of_its_own):
    with ServiceStore(database, create=True, patience=0.4) as store:
        fill(store, 2)
        server_of_its_own.stop()
        for work in (lambda: store.decisions.add([decision("r")]), lambda: store.reviews.claim("me")):
            with pytest.raises(StoreUnreachable, match="went away or cannot be reached"):
                work()
        server_of_its_own.start()
        assert store.reviews.claim("me").request == "r000"
        assert store.decisions.get("r") is None
