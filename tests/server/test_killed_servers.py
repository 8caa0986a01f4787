"""Servers that are killed, told to end, or lose their database: what was acknowledged is kept, and others go on."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import threading
import time
from contextlib import ExitStack, closing
from itertools import pairwise

import aiohttp
import psutil
import pytest
import requests
from sqlalchemy.engine import make_url

from asked_over_http import CHAT, chat, logged_app, post, told
from demur.store.service import ServiceStore
from loopback import drop, error, hang, reply, when
from patience import wait_until
from postgres_servers import running_postgres
from serve_process import serving, wait_until_it_serves
from serving import adder, listening


@pytest.fixture(scope="module")
def policy_file(sums_policy, tmp_path_factory):
    file = tmp_path_factory.mktemp("policy") / "sums.json"
    sums_policy.save(file)
    return file


class Load:
    """Threads that ask and give feedback, and keep what was acknowledged."""

    def __init__(self, *addresses):
        self.decided, self.fed_back, self.failed = [], [], []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(k, one)) for k, one in enumerate(addresses)]

    def _work(self, number, address):
        with requests.Session() as session:
            k = number
            while not self._stop.is_set():
                k += 7
                try:
                    answer = session.post(f"{address}{CHAT}", json=chat(f"What is {k} + 1?"), timeout=300)
                    if answer.status_code != 200:
                        self.failed.append(answer.status_code)
                        continue
                    request = answer.json()["demur"]["request_id"]
                    self.decided.append((address, request))
                    said = session.post(
                        f"{address}/v1/feedback", json={"request_id": request, "verdict": "right"}, timeout=300
                    )
                    if said.status_code == 200:
                        self.fed_back.append(request)
                except requests.RequestException:
                    self.failed.append(address)
                    return

    def wait_for(self, n, address=None):
        until = time.monotonic() + 120
        while sum(address in (None, one) for one, _ in self.decided) < n:
            assert time.monotonic() < until, self.failed
            time.sleep(0.02)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join(120)


def test_what_was_acknowledged_is_there_after_kill_9(upstream, policy_file, tmp_path):
    place = str(tmp_path / "service.db")
    with serving(policy_file, upstream.url, place, tmp_path) as server:
        wait_until_it_serves(server.address)
        with Load(*[server.address] * 8) as load:
            load.wait_for(150)
            server.process.kill()
    with ServiceStore(place) as store:
        names = [request for _, request in load.decided]
        assert store.decisions.several(names).keys() == set(names)
        assert store.feedback.latest(load.fed_back).keys() == set(load.fed_back)
    assert len(load.fed_back) > 50


def test_of_two_replicas_on_one_database_one_is_killed_and_the_other_goes_on(
    upstream, policy_file, postgres_url, tmp_path
):
    with ExitStack() as stack:
        both = [stack.enter_context(serving(policy_file, upstream.url, postgres_url, tmp_path)) for _ in range(2)]
        for server in both:
            wait_until_it_serves(server.address)
        killed, other = both
        with Load(*[server.address for server in both] * 4) as load:
            load.wait_for(40, killed.address)
            killed.process.kill()
            killed.process.wait(300)
            load.wait_for(len(load.decided) + 100, other.address)
        assert {one for one in load.failed if isinstance(one, int)} == set()
        assert other.address not in load.failed
        # Feedback on what the killed one decided is taken by the other.
        orphan = next(request for one, request in load.decided if one == killed.address)
        said = post(other.address, {"request_id": orphan, "verdict": "wrong"}, "/v1/feedback")
        assert said.status_code == 200
    with ServiceStore(postgres_url) as store:
        names = [request for _, request in load.decided]
        assert store.decisions.several(names).keys() == set(names)
        assert store.feedback.latest(load.fed_back).keys() == set(load.fed_back)
        assert [row.version for row in store.policies.all()] == [1]


def test_told_to_end_it_lets_requests_finish_or_abstain_and_ends_with_0(upstream, policy_file, tmp_path):
    """One request is nearly done, another never would be."""

    told_to_end = threading.Event()

    def two_kinds(number, body, request):
        text = body["messages"][-1]["content"]
        if "999" in text:
            return hang(600)
        return (
            when(told_to_end.is_set, adder)(number, body, request) if "4 + 1" in text else adder(number, body, request)
        )

    upstream.behave = two_kinds
    place = str(tmp_path / "service.db")
    with serving(policy_file, upstream.url, place, tmp_path, "--grace", "4") as server:
        wait_until_it_serves(server.address)
        answers = {}

        def ask(k):
            answers[k] = post(server.address, chat(f"What is {k} + 1?"))

        threads = [threading.Thread(target=ask, args=[k]) for k in (4, 999)]
        for thread in threads:
            thread.start()
        wait_until(lambda: upstream.busy == 2)
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: any("ending: " in line for line in server.lines))
        told_to_end.set()
        try:
            late = post(server.address, chat("What is 6 + 1?"))
            assert late.status_code == 503
        except requests.ConnectionError:
            pass  # it listens no more
        for thread in threads:
            thread.join(300)
        assert server.process.wait(300) == 0
        lines = [json.loads(line) for line in server.lines if line.startswith("{")]
        assert not [line for line in server.lines if "Traceback" in line and not line.startswith("{")]
    assert answers[4].json()["demur"]["answer"] == "5"
    ended = answers[999].json()["demur"]
    assert (ended["decision"], ended["cause"]) == ("abstained", "shutting_down")
    ending = "ending: 2 questions under way have 4 seconds to finish, and then abstain"
    assert [line["event"] for line in lines] == [ending, "decided", "decided"]
    with ServiceStore(place) as store:
        assert {store.decisions.get(answers[k].json()["demur"]["request_id"]).outcome for k in answers} == {
            "answered",
            "failed",
        }


def test_memory_and_sockets_stay_flat(upstream, policy_file, tmp_path):
    """Good and bad requests to a model that fails now and then."""

    def unsteady(number, body, request):
        if number % 50 == 7:
            return error(500)
        if number % 50 == 23:
            drop(request)
            return reply()
        return adder(number, body, request)

    upstream.behave = unsteady
    with serving(policy_file, upstream.url, str(tmp_path / "service.db"), tmp_path) as server:
        wait_until_it_serves(server.address)
        process = psutil.Process(server.process.pid)

        async def ask(session, k, results):
            body = chat(f"What is {k} + 1?", stream=k % 3 == 0)
            if k % 10 == 9:
                body["model"] = f"unknown-{k}"
            async with session.post(f"{server.address}{CHAT}", json=body) as answer:
                await answer.read()
                results.append(answer.status)

        async def drive(numbers):
            results = []
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=32)) as session:
                for at in range(0, len(numbers), 100):
                    await asyncio.gather(*(ask(session, k, results) for k in numbers[at : at + 100]))
            return results

        def used():
            upstream.requests.clear()
            upstream.headers.clear()
            return process.memory_info().rss / 2**20, process.num_fds()

        # What leaks grows each time; what is only taken when it is first needed does not.
        memory, files = [], []
        for turn in range(4):
            assert set(asyncio.run(drive(range(300 * turn, 300 * turn + 300)))) == {200, 404}
            more_memory, more_files = used()
            memory.append(more_memory)
            files.append(more_files)
        assert min(after - before for before, after in pairwise(memory)) < 4, memory
        assert min(after - before for before, after in pairwise(files)) <= 0, files
        metrics = requests.get(f"{server.address}/metrics", timeout=300).text
        assert "unknown-" not in metrics
        assert len(metrics) < 50_000


def test_a_store_that_another_process_holds_is_not_ready_and_is_not_waited_for_a_minute(
    upstream, sums_policy, tmp_path
):
    place = tmp_path / "service.db"
    with ServiceStore(place, create=True, patience=1.0) as store, ExitStack() as held:
        holding = held.enter_context(closing(sqlite3.connect(place, isolation_level=None)))
        app = logged_app(upstream.url, sums_policy, store)
        with listening(app) as address:
            assert requests.get(f"{address}/readyz", timeout=300).status_code == 200
            holding.execute("BEGIN EXCLUSIVE")
            held_ = ["the store cannot be written"]
            wait_until(lambda: requests.get(f"{address}/readyz", timeout=300).json()["troubles"] == held_)
            asked = len(upstream.requests)
            reply = requests.post(f"{address}{CHAT}", json=chat("What is 4 + 1?"), timeout=300)
            assert reply.json()["error"]["code"] == "store_unavailable"
            assert len(upstream.requests) == asked  # no path was paid for
            holding.execute("ROLLBACK")
            wait_until(lambda: post(address, chat("What is 4 + 1?")).status_code == 200)


@pytest.fixture
def database_of_its_own(tmp_path_factory):
    """A PostgreSQL server that may be stopped."""
    with running_postgres(tmp_path_factory.mktemp("served")) as running:
        running.psql("CREATE DATABASE served;")
        yield running, make_url(running.get_uri()).set(database="served").render_as_string(hide_password=False)


def test_a_database_that_goes_away_and_comes_back(upstream, sums_policy, database_of_its_own):
    database, place = database_of_its_own
    with ExitStack() as stack:
        store = stack.enter_context(ServiceStore(place, create=True, patience=1))
        address = stack.enter_context(listening(logged_app(upstream.url, sums_policy, store)))
        before = post(address, chat()).json()["demur"]["request_id"]
        database.stop()
        drawn = len([body for body in upstream.requests if body])
        for body, route in (
            (chat(), CHAT),
            ({"request_id": before, "verdict": "right"}, "/v1/feedback"),
        ):
            status, said = told(post(address, body, route))
            assert (status, said["code"], said["type"]) == (503, "store_unavailable", "server_error")
        assert requests.get(f"{address}/healthz", timeout=300).status_code == 200
        assert requests.get(f"{address}/readyz", timeout=300).status_code == 503
        for _ in range(3):  # as clients do that try again
            assert post(address, chat("What is 6 + 1?")).status_code == 503
        assert len([body for body in upstream.requests if body]) <= drawn + 1  # what the last commit spoke for
        database.start()
        after = wait_until(lambda: (reply := post(address, chat())).ok and reply)
        said = post(address, {"request_id": before, "verdict": "right"}, "/v1/feedback")
        assert said.status_code == 200
        assert store.decisions.get(after.json()["demur"]["request_id"]) is not None


@pytest.mark.parametrize("options", [(), ("--workers", "2")])
@pytest.mark.parametrize("signals", [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM)])
def test_a_second_signal_ends_it_whatever_the_grace(upstream, policy_file, tmp_path, options, signals):
    upstream.behave = lambda number, body, request: (
        hang(600) if "What is" in body["messages"][-1]["content"] else adder(number, body, request)
    )
    place, grace = str(tmp_path / "service.db"), ("--grace", "3600")
    with serving(policy_file, upstream.url, place, tmp_path, *grace, *options) as server:
        wait_until_it_serves(server.address)
        failed = []

        def ask():
            try:
                failed.append(post(server.address, chat()).json()["demur"]["cause"])
            except requests.ConnectionError:
                failed.append("shutting_down")

        asking = threading.Thread(target=ask)
        asking.start()
        wait_until(lambda: upstream.busy == 1)
        server.process.send_signal(signals[0])
        wait_until(lambda: any("ending: " in line for line in server.lines))
        assert server.process.poll() is None
        server.process.send_signal(signals[1])
        assert server.process.wait(300) == 0
        asking.join(300)
        assert failed == ["shutting_down"]
        assert not [line for line in server.lines if "Traceback" in line]
