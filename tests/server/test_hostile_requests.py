"""Requests that want to do harm: bodies that are no requests, and texts that want to be more than texts."""

from __future__ import annotations

import gzip
import http.client
import io
import json
import logging

import pytest
import requests
from aiohttp import web

from asked_over_http import CHAT, chat, decided, logged_app, post, told
from demur.server import logs
from demur.server.app import make_app
from demur.store.service import ServiceStore
from loopback import choice, reply
from patience import wait_until
from serving import listening, service_of

EVIL = 'x\n{"event": "forged"}\r\n\x1b[31m<script>alert(1)</script>\u2028\u202e\'; DROP TABLE demur_decisions; --'
OK = b'{"model": "sums", "messages": [{"role": "user", "content": "What is 4 + 1?"}]'


@pytest.mark.parametrize(
    ("raw", "status", "reason"),
    [
        (b"", 400, "not JSON"),
        (b"[]", 400, "must be a JSON object"),
        (b"null", 400, "must be a JSON object"),
        (OK, 400, "not JSON"),
        (OK + b', "model": "sums"}', 400, "'model' stands twice"),
        (OK + b', "temperature": NaN}', 400, "NaN is not JSON"),
        (OK + b', "temperature": -Infinity}', 400, "Infinity is not JSON"),
        (OK + b', "seed": ' + b"9" * 5000 + b"}", 400, "too many digits"),
        (OK + b', "x": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", 400, "nested too deeply"),
        (OK + b', "x": ' + b'{"a":' * 200 + b"1" + b"}" * 200 + b"}", 400, "nested too deeply"),
        (OK + b', "x": "\\ud800"}', 400, "surrogate"),
        (OK + b', "\\udfff": 1}', 400, "surrogate"),
        (b'{"model": "\xff\xfe"}', 400, "not UTF-8"),
        (OK.decode().encode("utf-16"), 400, "not UTF-8"),
        (b'{"model": "' + b"x" * 1_100_000 + b'"}', 413, "1,000,000 bytes"),
        (b'{"model": "sums", "messages": []}', 400, "messages"),
        (b'{"model": 5, "messages": [{}]}', 400, "model"),
        (b'{"model": "sums", "messages": [[]]}', 400, "messages.0"),
        (b'{"model": "sums", "messages": [{"role": "user", "content": "a\\u0000b"}]}', 400, "which is no text"),
        (OK + b', "stream": "yes"}', 400, "stream"),
        (OK + b', "stream": true, "stream_options": 5}', 400, "stream_options"),
    ],
)
def test_a_body_that_is_no_request_is_refused_in_one_line(address, upstream, raw, status, reason):
    answer = requests.post(f"{address}{CHAT}", data=raw, headers={"Content-Type": "application/json"}, timeout=300)
    got, error = told(answer)
    assert got == status
    assert reason in error["message"]
    assert len(error["message"]) < 400
    assert upstream.requests == []


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_only_json_is_taken(address, kind):
    answer = requests.post(f"{address}{CHAT}", data=OK + b"}", headers={"Content-Type": kind}, timeout=300)
    assert told(answer)[0] == 415


def test_a_compressed_body_is_told_so(address):
    packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = requests.post(f"{address}{CHAT}", data=gzip.compress(OK + b"}"), headers=packed, timeout=300)
    assert (answer.status_code, told(answer)[1]["message"]) == (415, "the body must not be compressed, got 'gzip'")


def test_groups_count_as_part_of_a_question(address):
    status, error = told(post(address, chat(demur={"group": ["x" * 200_001]})))
    assert (status, error["code"]) == (400, "context_length_exceeded")


@pytest.mark.parametrize("sent", [{"Host": "["}, {"Host": "[::1"}, {"Origin": "http://["}, {"Host": "example.org"}])
def test_hosts_and_origins_that_are_none_are_refused(address, sent):
    answer = post(address, chat(), headers=sent)
    assert told(answer)[0] == 403


def test_no_redirect_repeats_the_host_that_a_request_names(address):
    for route in ("/review/", "/healthz/", f"{CHAT}/"):
        answer = requests.get(f"{address}{route}", headers={"Host": "example.org"}, timeout=300, allow_redirects=False)
        assert (answer.status_code, "location" in answer.headers) == (404, False)


def test_probes_may_ask_for_the_head_alone(address):
    for route in ("/healthz", "/readyz"):
        answer = requests.head(f"{address}{route}", timeout=300)
        assert (answer.status_code, answer.content) == (200, b"")


def test_a_body_that_says_it_is_small_and_is_not_is_cut_off(address):
    """Chunks, which say nothing of their sum beforehand."""
    parts = (b" " * 100_000 for _ in range(50))
    answer = requests.post(f"{address}{CHAT}", data=parts, headers={"Content-Type": "application/json"}, timeout=300)
    assert told(answer)[0] == 413


@pytest.mark.parametrize(
    "route",
    [
        "/v1/models/../../../../etc/passwd",
        "/v1/models/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/..%2f..%2fetc/passwd",
        "/%00",
        "/v1/models/%0d%0aSet-Cookie:%20x=1",
        "/v1/models/%ff%fe",
        "//etc/passwd",
        "/pages/..%2f..%2fapp.py",
        "/static/../app.py",
        "/" + "a" * 5000,
    ],
)
def test_no_path_leads_out(address, route):
    host = address.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=300)
    connection.request("GET", route)  # as it stands: requests would tidy it up
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 404
    assert answer.getheader("set-cookie") is None
    assert b"root:" not in body
    assert len(json.loads(body)["error"]["message"]) < 400
    connection.close()


@pytest.fixture
def lines():
    """What the service logs, line by line."""
    written, before = io.StringIO(), (logs.logger.handlers, logs.logger.propagate, logs.logger.level)
    handler = logging.StreamHandler(written)
    handler.setFormatter(logs._Lines())
    logs.logger.handlers, logs.logger.propagate = [handler], False
    logs.logger.setLevel(logging.INFO)
    yield lambda: written.getvalue().splitlines()
    logs.logger.handlers, logs.logger.propagate = before[:2]
    logs.logger.setLevel(before[2])


def evil_words(number, body, request):
    said = [f"{EVIL} \\boxed{{{EVIL[:30]}{j}}}" for j in range(body.get("n", 1))]
    return reply(*(choice(text, [-0.1]) for text in said))


def test_one_event_is_one_line_whatever_is_in_it(upstream, sums_policy, tmp_path, lines):
    upstream.behave = evil_words
    with ServiceStore(tmp_path / "service.db", create=True) as store:
        app = logged_app(upstream.url, sums_policy, store)
        service = app.state.service
        service.observers = (*service.observers, logs.RequestLines(texts=True))
        with listening(app) as address:
            made = decided(address, f"What is 3 + 1? {EVIL}", user=EVIL)
            post(address, chat(model=EVIL))
            said = {"request_id": made["request_id"], "answer": EVIL, "note": EVIL}
            assert post(address, said, "/v1/feedback").status_code == 200
            kept = store.decisions.get(made["request_id"])
        assert EVIL in kept.question
        assert store.feedback.history(kept.request)[0].answer == EVIL
    events = [json.loads(line) for line in lines()]
    assert [event["event"] for event in events] == ["decided", "refused"]
    assert all(character.isprintable() for line in lines() for character in line)


def test_questions_are_not_in_the_log_lines_unless_asked_for(upstream, sums_policy, lines):
    service = service_of(upstream.url, sums_policy)
    service.observers = (logs.RequestLines(),)
    with listening(make_app(service)) as address:
        decided(address, "What is 4444 + 1?")
        upstream.behave = evil_words
        decided(address, "What is 3333 + 1?")
    assert len(lines()) == 2
    assert not [line for line in lines() if "4444" in line or "3333" in line or "forged" in line]


def test_half_a_character_of_a_model_reaches_caller_reviewer_and_status(upstream, sums_policy, tmp_path):
    """Models leave half of a surrogate pair now and then, and servers may call themselves anything."""

    def halves(number, body, request):
        said = [choice(f"\ud83d \\boxed{{\udfff{j}}}", [-0.1]) for j in range(body.get("n", 1))]
        names = {"model": f"\ud800\0{number}", "system_fingerprint": f"\udfff\0{number}"}
        return web.json_response({"choices": said, **names})

    upstream.behave = halves
    with ServiceStore(tmp_path / "service.db", create=True) as store:
        app = logged_app(upstream.url, sums_policy, store, audit_share=1.0, watch_seconds=0.05)
        with listening(app) as address:
            for question in ("What is 1 + 1?", "What is 3 + 1?"):
                made = decided(address, question)
                streamed = post(address, chat(f"{question} ", stream=True))
                assert (streamed.status_code, b"[DONE]" in streamed.content) == (200, True)
            assert {vote["answer"] for vote in made["votes"]} == {f"\ufffd{j}" for j in range(5)}
            item = post(address, {}, "/review/api/claim").json()["item"]
            assert item["paths"][0]["text"].startswith("\ufffd")
            verdict = {"request": item["request"], "token": item["token"]}
            winner = store.decisions.get(item["request"]).winner
            judged = post(address, {**verdict, "answer": winner}, "/review/api/verdict")
            assert (judged.status_code, judged.json()["verdict"]) == (200, "right")
            wait_until(lambda: store.events.latest(kind="reported"))
            told_of = requests.get(f"{address}/status/api", timeout=300)
            assert (told_of.status_code, "reports another" in told_of.text) == (200, True)


def test_headers_choose_nothing(address, upstream):
    """No header names a server, a key or an id."""
    sent = {
        "X-ITS-Endpoint": "http://127.0.0.1:9/v1",
        "X-Forwarded-Host": "example.org",
        "OpenAI-Organization": "x",
        "X-Request-Id": "mine",
        "Authorization": "Bearer sk-someone-elses-key-that-must-not-go-on",
        "Idempotency-Key": "k" * 50,
    }
    answer = post(address, chat(base_url="http://127.0.0.1:9/v1", api_key="x"), headers=sent)
    assert answer.json()["demur"]["decision"] == "answered"
    assert {"api_key", "base_url"} <= set(answer.json()["demur"]["ignored"])
    assert answer.headers["x-demur-request-id"] != "mine"
    assert not [seen for seen in upstream.headers if "sk-someone" in str(seen)]


def test_replies_tell_browsers_what_not_to_do(address):
    for answer in (post(address, chat()), requests.get(f"{address}/no", timeout=300), post(address, {})):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["content-type"] == "application/json"
        assert "server" not in answer.headers or "uvicorn" in answer.headers["server"]


def test_a_thousand_unknown_fields_cost_no_more_than_their_bytes(address):
    made = decided(address, **{f"field_{k}": k for k in range(1000)})
    assert len(made["ignored"]) == 1000


def test_what_serves_reads_no_file_that_a_request_names(address, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("do not tell")
    for value in (str(secret), f"file://{secret}", f"@{secret}"):
        for body in (
            chat(model=value),
            chat(response_format={"type": "json_schema", "json_schema": {"schema": {"$ref": value}}}),
        ):
            answer = post(address, body)
            assert answer.status_code in (400, 404)
            assert "do not tell" not in answer.text
