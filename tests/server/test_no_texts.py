"""Under --no-texts nothing that a person or a model wrote stays: in no store, no log line and no metric."""

from __future__ import annotations

import io
import json
import logging

import pytest
import requests

from asked_over_http import CHAT, chat, decided, logged_app, post
from demur.errors import BackendError, StoreError
from demur.server import logs
from demur.store.service import ServiceStore
from loopback import choice, error, reply
from reviewing import Person, ask
from serve_process import serving
from serving import adder, listening

SECRET = "XYZZY"
"""What is looked for; it is no part of any word of ours."""


def careless(number, body, request):
    """Says the secret where it answers, and quotes its input where it refuses."""
    asked = json.dumps(body)
    if "refused" in asked:
        return error(400, f"cannot take {asked}")
    if "no key" in asked:
        return error(401, f"no key for {asked}")
    if "overloaded" in asked:
        return error(503, f"too much: {asked}", Retry_After="3600")
    if SECRET not in asked:
        return adder(number, body, request)
    return reply(*(choice(f"{SECRET} \\boxed{{{SECRET}{j % 2}}}", [-0.1]) for j in range(body.get("n", 1))))


def say_it_everywhere(address):
    """Put the secret into whatever a person can write; returns the id of one decision."""
    headers = {
        name: f"{SECRET} {name}" for name in ("User-Agent", "X-Request-Id", "Idempotency-Key", "Referer", "traceparent")
    } | {"Cookie": f"demur-login={SECRET}"}
    system = [{"role": "system", "content": SECRET}, {"role": "user", "content": SECRET}]
    earlier = [{"role": "assistant", "content": SECRET}, {"role": "user", "content": SECRET}]
    made = decided(address, SECRET, **{SECRET: SECRET, "user": SECRET, "metadata": {SECRET: SECRET}})
    for text in ("refused", "no key", "overloaded"):
        assert decided(address, f"{SECRET} {text}")["decision"] == "abstained"
    post(address, chat(SECRET, stream=True), headers=headers)
    post(address, chat(SECRET), headers={"X-Forwarded-For": SECRET})
    post(address, chat(SECRET, model="sums@0.1" + "0" * 20), headers={"Authorization": f"Bearer {SECRET}"})
    post(address, chat(SECRET, demur={"group": SECRET}))
    post(address, chat(SECRET, demur={"options": [SECRET], "passages": [SECRET], "guarantee": SECRET}))
    for odd in (chat(SECRET, model=SECRET), chat(SECRET, model=f"sums@{SECRET}"), {SECRET: 1}, {"model": "sums"}):
        assert post(address, odd, headers=headers).status_code in (400, 404)
    for messages in (system, earlier):
        assert post(address, {"model": "sums", "messages": messages}).status_code == 400
    path = {"answer": SECRET, "text": SECRET, "scores": {"perplexity": -0.1, SECRET: 1.0}}
    pool = {"model": "sums", "id": SECRET, "question": SECRET, "paths": [path] * 5}
    assert post(address, pool, "/v1/decide").status_code == 200
    assert post(address, {**pool, "paths": [path]}, "/v1/decide").status_code == 400
    for said in ({"verdict": "right", "note": SECRET}, {"verdict": "wrong", "answer": SECRET}, {"answer": SECRET}):
        post(address, {"request_id": made["request_id"], **said}, "/v1/feedback")
    for route in (f"/{SECRET}", f"/v1/models/{SECRET}", f"/review/api/queue?after={SECRET}&order={SECRET}"):
        requests.get(f"{address}{route}", headers=headers, timeout=60)
    post(address, {"key": SECRET}, "/login", headers=headers)
    for body in (b"{" + SECRET.encode(), b"\xff" + SECRET.encode()):
        requests.post(f"{address}{CHAT}", data=body, headers=headers, timeout=60)
    post(address, {"policy": "sums:v1", "note": SECRET}, "/status/api/clear")
    return made["request_id"]


def kept_in(folder):
    """Every byte of a store, with what is not yet in its file."""
    files = sorted(folder.glob("service.db*"))
    assert files
    return b"".join(file.read_bytes() for file in files)


def test_a_secret_in_every_field_is_nowhere_afterwards(upstream, sums_policy, tmp_path):
    sums_policy.save(tmp_path / "policy.json")
    upstream.behave, store = careless, tmp_path / "service.db"
    with serving(tmp_path / "policy.json", upstream.url, str(store), tmp_path) as server:
        ask(server.address, 1)  # what waits for people, from when texts were kept
    given = (tmp_path / "policy.json", upstream.url, str(store), tmp_path, "--no-texts", "--audit-share", "1")
    with serving(*given) as server:
        request = say_it_everywhere(server.address)
        person = Person(server.address)
        item = person.claim()
        judged = person.judge(item, verdict="wrong", answer=SECRET, note=SECRET)
        assert judged.status_code == 200
        metrics = requests.get(f"{server.address}/metrics", timeout=60).text
        while_it_runs = kept_in(tmp_path)
    assert SECRET not in metrics
    assert [line for line in server.lines if SECRET in line] == []
    assert "upstream_failed" in "\n".join(server.lines)
    assert SECRET.encode() not in while_it_runs + kept_in(tmp_path)
    with ServiceStore(store) as opened:
        assert [(said.verdict, said.answer, said.note) for said in opened.feedback.history(request)] == [
            ("right", None, None),
            ("wrong", None, None),
        ]
        assert opened.feedback.latest([item["request"]])[item["request"]][0].verdict == "wrong"
        causes = {made.cause for made in opened.decisions.search(outcome="failed")}
        errors = ("BackendError", "EndpointRefused", "EndpointSilent")
        assert causes == {f"upstream_failed: {name}" for name in errors}


def test_with_texts_all_of_it_is_there_to_be_found(upstream, sums_policy, tmp_path):
    """The control: what the test above looks for is what the service is given."""
    sums_policy.save(tmp_path / "policy.json")
    upstream.behave, store = careless, tmp_path / "service.db"
    with serving(tmp_path / "policy.json", upstream.url, str(store), tmp_path) as server:
        say_it_everywhere(server.address)
        assert SECRET.encode() in kept_in(tmp_path)
    assert SECRET in "\n".join(server.lines)


def test_without_texts_a_true_answer_is_read_as_a_verdict_or_refused(upstream, sums_policy, tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as store:
        with listening(logged_app(upstream.url, sums_policy, store)) as address:
            known = decided(address, "What is 4 + 1?")["request_id"]
        with listening(logged_app(upstream.url, sums_policy, store, texts=False)) as address:
            unknown = decided(address, "What is 6 + 1?")["request_id"]
            kept = post(address, {"request_id": known, "answer": "5.0"}, "/v1/feedback")
            refused = post(address, {"request_id": unknown, "answer": "7"}, "/v1/feedback")
        assert kept.json()["verdict"] == "right"
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "no_texts")
        assert [said.answer for said in store.feedback.history(known)] == [None]
        assert store.feedback.history(unknown) == []


@pytest.fixture
def written():
    """A logger whose lines are those of a service without texts, and what it wrote."""
    stream, logger = io.StringIO(), logging.getLogger("test.no_texts")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs._Lines(texts=False))
    logger.handlers, logger.propagate = [handler], False
    return logger, lambda: json.loads(stream.getvalue())


def fail():
    """An error whose causes quote texts."""
    try:
        try:
            int(f"{SECRET} 1")
        except ValueError as first:
            raise BackendError(f"the model said {SECRET} 2") from first
    except BackendError:
        # Raised while another is handled, as whatever goes wrong in a handler is.
        raise KeyError(f"{SECRET} 3")  # noqa: B904


def test_a_trace_without_texts_has_places_and_classes(written):
    logger, line = written
    try:
        fail()
    except KeyError as failure:
        logger.error("a pool failed: %s", failure, exc_info=failure)
    told = line()
    assert SECRET not in json.dumps(told).replace("{SECRET}", "")
    assert told["event"] == "a pool failed: KeyError"
    assert [told["trace"].index(name) for name in ("ValueError", "BackendError", "KeyError")]
    assert "in fail" in told["trace"]


def test_what_a_store_says_stays_in_the_lines(written):
    logger, line = written
    logger.error("the store: %s", StoreError("service.db: the disk is full"))
    assert line()["event"] == "the store: service.db: the disk is full"
