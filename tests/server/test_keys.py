"""Keys: who brings none, or a forged, revoked or truncated one, gets nothing; and no key is written anywhere."""

from __future__ import annotations

import http.client
import json
import logging
import subprocess
import sys
import time
from urllib.parse import urlsplit

import openai
import pytest
import requests

from demur.server.app import make_app
from demur.store.service import ServiceStore
from guarded import CHAT, bearer, guarded_app, question
from patience import wait_until
from serving import listening


@pytest.fixture
def store(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as opened:
        yield opened


@pytest.fixture
def guarded(upstream, sums_policy, store):
    with listening(guarded_app(upstream.url, sums_policy, store)) as url:
        yield url


@pytest.fixture
def secret(store):
    return store.keys.create("billing", ["ask"], 1)[1]


def ask(address, headers=None, **beside):
    return requests.post(address + CHAT, json=question(**beside), headers=headers or {})


def test_the_official_client_is_let_in_with_its_key(secret, guarded, store):
    with openai.OpenAI(base_url=f"{guarded}/v1", api_key=secret, max_retries=0) as client:
        reply = client.chat.completions.create(**question())
    assert reply.choices[0].message.content == "5"
    kept = store.decisions.get(reply.model_extra["demur"]["request_id"])
    assert kept.caller == store.keys.find(secret).key


def test_the_official_client_names_what_is_wrong_with_a_key(secret, guarded):
    client = openai.OpenAI(base_url=f"{guarded}/v1", api_key="demur-forged", max_retries=0)
    with client, pytest.raises(openai.AuthenticationError) as caught:
        client.models.list()
    assert caught.value.code == "invalid_api_key"


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer demur-" + "A" * 43,
        "Bearer {cut}",
        "Bearer {secret}x",
        "Bearer {secret} {secret}",
        "Bearer {digest}",
        "Bearer {id}",
        "Basic {secret}",
        "{secret}",
        "Bearer " + "x" * 5000,
        "Bearer \u00e9\u00e9",
    ],
)
def test_what_is_no_key_is_refused(secret, guarded, store, upstream, header):
    key = store.keys.find(secret)
    digest = next(iter(store.keys.by_digest()))
    told = header.format(cut=secret[:-1], secret=secret, digest=digest, id=key.key)
    refused = ask(guarded, {"Authorization": told.encode("latin-1")})
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert refused.json()["error"]["type"] == "authentication_error"
    assert secret not in refused.text
    assert upstream.requests == []


def test_without_a_key_every_route_is_closed(secret, guarded):
    for method, path in [
        ("GET", "/v1/models"),
        ("GET", "/v1/models/sums"),
        ("POST", CHAT),
        ("POST", "/v1/decide"),
        ("POST", "/v1/feedback"),
    ]:
        refused = requests.request(method, guarded + path, json={})
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "missing_api_key"), path


def test_a_revoked_key_is_refused_within_seconds_and_opens_nothing_when_it_was_the_last(secret, guarded, store):
    assert ask(guarded, bearer(secret)).status_code == 200
    store.keys.revoke(store.keys.find(secret).key, 2)
    wait_until(lambda: ask(guarded, bearer(secret)).status_code == 401)
    assert ask(guarded).status_code == 401


def test_with_the_first_key_keys_are_asked_for_without_a_restart(guarded, store):
    assert ask(guarded).status_code == 200
    secret = store.keys.create("first", ["ask"], 1)[1]
    time.sleep(0.3)
    assert ask(guarded).status_code == 401
    assert ask(guarded, bearer(secret)).status_code == 200


def test_keys_may_be_required_before_there_are_any(upstream, sums_policy, store):
    with listening(guarded_app(upstream.url, sums_policy, store, require_keys=True)) as address:
        assert ask(address).status_code == 401


def test_a_key_does_what_its_roles_allow(guarded, store):
    asks, reviews, admin = (store.keys.create(role, [role], 1)[1] for role in ("ask", "review", "admin"))
    assert ask(guarded, bearer(asks)).status_code == 200
    refused = ask(guarded, bearer(reviews))
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "role_missing")
    assert refused.json()["error"]["type"] == "permission_error"
    assert ask(guarded, bearer(admin)).status_code == 200


ROUTES = {"/v1/models": "ask", "/status/api": "review", "/review/api/queue": "review", "/metrics": "metrics"}


@pytest.mark.parametrize("role", ["ask", "review", "metrics", "admin"])
def test_what_can_be_read_with_each_role(guarded, store, role):
    secret = store.keys.create(role, [role], 1)[1]
    wait_until(lambda: requests.get(f"{guarded}/metrics", timeout=300).status_code == 401)
    for route, needed in ROUTES.items():
        status = requests.get(guarded + route, headers=bearer(secret), timeout=300).status_code
        assert (status == 200) == (role in (needed, "admin")), (route, status)


def test_a_key_for_metrics_opens_nothing_else_and_is_made_by_the_command(tmp_path):
    made = demur("keys", "add", "prometheus", "--role", "metrics", "--json", cwd=tmp_path)
    assert json.loads(made.stdout)["roles"] == ["metrics"]


def test_no_key_is_asked_of_the_store_for_every_request(secret, upstream, sums_policy, store):
    app = guarded_app(upstream.url, sums_policy, store)
    app.state.access.ring.fresh = 60
    reads = []
    read = store.keys.by_digest
    store.keys.by_digest = lambda: reads.append(1) or read()
    with listening(app) as address:
        for _ in range(20):
            assert requests.get(f"{address}/v1/models", headers=bearer(secret)).status_code == 200
            assert requests.get(f"{address}/v1/models", headers=bearer("demur-forged")).status_code == 401
    assert len(reads) == 1


def test_keys_that_cannot_be_read_let_nobody_in(secret, upstream, sums_policy, store, monkeypatch):
    app = guarded_app(upstream.url, sums_policy, store)
    monkeypatch.setattr("demur.server.access.key_ring._LONGEST_READ", 0.2)
    monkeypatch.setattr(store.keys, "by_digest", lambda: time.sleep(1) or {})
    with listening(app) as address:
        assert ask(address, bearer(secret)).status_code == 503
        assert ask(address).status_code == 503


def test_the_use_of_a_key_is_noted(secret, guarded, store):
    ask(guarded, bearer(secret))
    time.sleep(0.3)
    ask(guarded, bearer(secret))
    assert store.keys.find(secret).last_used is not None


def test_feedback_on_the_request_of_another_key_is_as_on_none(guarded, store):
    mine, others, reviewers = (store.keys.create(name, roles, 1)[1] for name, roles in
                               [("a", ["ask"]), ("b", ["ask"]), ("c", ["review"])])  # fmt: skip
    request = ask(guarded, bearer(mine)).json()["demur"]["request_id"]

    def say(secret, named=request):
        return requests.post(
            f"{guarded}/v1/feedback", json={"request_id": named, "verdict": "right"}, headers=bearer(secret)
        )

    foreign, unknown = say(others), say(others, "req_" + "0" * 32)
    assert foreign.status_code == unknown.status_code == 404
    assert foreign.json()["error"]["code"] == unknown.json()["error"]["code"] == "request_not_found"
    assert say(mine).status_code == say(reviewers).status_code == 200


def test_keys_stand_in_no_log_and_no_store(secret, guarded, store, tmp_path, caplog):
    with caplog.at_level(logging.DEBUG):
        ask(guarded, bearer(secret))
        ask(guarded, bearer(secret + "x"))
        requests.post(f"{guarded}/login", json={"key": secret})
    store.close()
    raw = b"".join(file.read_bytes() for file in tmp_path.glob("service.db*"))
    assert secret.encode() not in raw
    assert secret not in caplog.text


def test_no_header_or_field_chooses_another_upstream(secret, guarded, upstream):
    from loopback import Loopback

    other = Loopback(behave=upstream.behave).start()
    try:
        names = ("X-ITS-Endpoint", "X-ITS-API-Key", "X-Base-Url", "X-Upstream", "X-Forwarded-Host", "X-OpenAI-Base-Url")
        headers = dict.fromkeys(names, other.url)
        fields = dict.fromkeys(("base_url", "endpoint", "api_base", "optillm_approach", "upstream"), other.url)
        reply = ask(guarded, {**bearer(secret), **headers}, **fields)
        assert reply.status_code == 200
        assert other.requests == []
        assert len(upstream.requests) > 0
        inside = question(demur={"base_url": other.url})
        assert requests.post(guarded + CHAT, json=inside, headers=bearer(secret)).status_code == 400
    finally:
        other.stop()


# Without keys: this machine alone.


def raw_request(address, method, path, headers, body=None):
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=300)
    connection.putrequest(method, path, skip_host="Host" in headers)
    sent = json.dumps(body or {}).encode()
    for name, value in {"Content-Type": "application/json", "Content-Length": str(len(sent)), **headers}.items():
        connection.putheader(name, value)
    connection.endheaders(sent)
    response = connection.getresponse()
    said = response.read()
    connection.close()
    return response.status, json.loads(said)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "10.0.0.1", "[::2]"]
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/models"), ("POST", CHAT), ("GET", "/login/state")])
def test_a_foreign_name_for_this_machine_is_refused(address, host, method, path):
    status, said = raw_request(address, method, path, {"Host": host})
    assert (status, said["error"]["code"]) == (403, "only_this_machine")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.1.2.3:8080", "[::1]:8080"])
def test_own_names_of_this_machine_are_taken(address, host):
    assert raw_request(address, "GET", "/v1/models", {"Host": host})[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example", "Content-Type": "text/plain"},
    ],
)
def test_the_page_of_another_site_cannot_ask(address, upstream, headers):
    status, said = raw_request(address, "POST", CHAT, headers, question())
    assert (status, said["error"]["code"]) == (403, "other_site")
    assert upstream.requests == []


def test_a_page_of_this_service_can_ask(address):
    for headers in ({"Sec-Fetch-Site": "same-origin"}, {"Origin": address}):
        assert raw_request(address, "POST", CHAT, headers, question())[0] == 200


# `demur keys` and `demur serve`.


def demur(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "demur", *arguments], capture_output=True, text=True, cwd=cwd, timeout=300, check=False
    )


def test_a_key_is_shown_once_and_revoked_by_name(tmp_path):
    made = demur("keys", "add", "billing", "--role", "ask", "--role", "review", "--paths-per-day", "100", cwd=tmp_path)
    assert made.returncode == 0
    secret = made.stdout.strip()
    assert secret.startswith("demur-")
    assert secret not in made.stderr
    listed = demur("keys", "list", "--json", cwd=tmp_path)
    assert secret not in listed.stdout
    (key,) = json.loads(listed.stdout)["keys"]
    assert (key["name"], key["roles"], key["limits"]) == ("billing", ["ask", "review"], {"paths_per_day": 100})
    assert "billing" in demur("keys", "list", cwd=tmp_path).stdout
    assert json.loads(demur("keys", "revoke", "billing", "--json", cwd=tmp_path).stdout)["revoked"] is not None
    with ServiceStore(tmp_path / "service.db") as store:
        assert store.keys.find(secret) is None
    again = demur("keys", "add", "billing", "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["key"] != secret


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["drop", "x"], "keys are added, listed or revoked"),
        (["add"], "`demur keys add` needs the name of a key"),
        (["list", "x"], "`demur keys list` takes no name"),
        (["add", "x", "--role", "root"], "a key has some of the roles ask, review, metrics, admin"),
        (["add", "x", "--paths-per-day", "0"], "greater than or equal to 1"),
        (["add", "x" * 300], "name must be a text of 1 to 200 characters"),
        (["list"], "there is no store service.db"),
        (["revoke", "x"], "there is no store service.db"),
        (["list", "--role", "ask"], "--role belongs to `demur keys add`"),
        (["revoke", "x", "--at-once", "2"], "--at-once belongs to `demur keys add`"),
    ],
)
def test_what_keys_cannot_do_is_said_in_one_line(tmp_path, arguments, said):
    told = demur("keys", *arguments, cwd=tmp_path)
    assert told.returncode == 2
    assert said in told.stderr
    assert len(told.stderr.splitlines()) == 1


def test_a_name_in_use_and_one_that_is_not(tmp_path):
    demur("keys", "add", "x", cwd=tmp_path)
    assert "there is a key 'x' already" in demur("keys", "add", "x", cwd=tmp_path).stderr
    assert "there is no key 'y' in force" in demur("keys", "revoke", "y", cwd=tmp_path).stderr


def test_other_machines_are_served_with_keys_only(tmp_path, sums_policy, upstream):
    sums_policy.save(tmp_path / "sums.json")
    serve = ["serve", "--policy", "sums.json", "--base-url", upstream.url, "--model", "adder", "--host", "0.0.0.0"]
    refused = demur(*serve, cwd=tmp_path)
    assert refused.returncode == 2
    assert "without keys the service listens on this machine alone" in refused.stderr
    assert "demur keys add NAME --store service.db" in refused.stderr
    refused = demur(*serve, "--no-log", cwd=tmp_path)
    assert "leave --no-log out" in refused.stderr
    assert "--require-keys needs a store" in demur(*serve, "--no-log", "--require-keys", cwd=tmp_path).stderr


def test_an_application_without_a_store_is_for_this_machine(service):
    with listening(make_app(service)) as address:
        assert ask(address).status_code == 200
        assert raw_request(address, "POST", "/login", {}, {"key": "demur-x"})[0] == 401
