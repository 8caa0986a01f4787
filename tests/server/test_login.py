"""Login: a cookie that scripts and other sites cannot use, a token with every change, pages from a fixed list."""

from __future__ import annotations

import time

import pytest
import requests

from demur.server import page_files
from demur.server.access.failures import Failures
from demur.store.service import ServiceStore
from guarded import CHAT, guarded_app, question
from serving import listening


@pytest.fixture
def store(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as opened:
        yield opened


@pytest.fixture
def secret(store):
    return store.keys.create("anna", ["ask", "review"], 1)[1]


@pytest.fixture
def guarded(upstream, sums_policy, store, secret):
    with listening(guarded_app(upstream.url, sums_policy, store)) as url:
        yield url


@pytest.fixture
def browser():
    with requests.Session() as made:
        yield made


def log_in(browser, address, secret, **headers):
    return browser.post(f"{address}/login", json={"key": secret}, headers=headers)


def ask(browser, address, **headers):
    return browser.post(address + CHAT, json=question(), headers=headers)


def test_whoever_logs_in_may_ask_with_their_token_and_log_out(browser, guarded, secret):
    assert browser.get(f"{guarded}/login/state").json() == {"keys_asked_for": True, "logged_in": False}
    told = log_in(browser, guarded, secret).json()
    assert (told["name"], told["roles"]) == ("anna", ["ask", "review"])
    assert browser.get(f"{guarded}/login/state").json() == told
    csrf = {"x-demur-csrf": told["csrf"]}
    assert ask(browser, guarded, **csrf).status_code == 200
    cookie = browser.cookies["demur-login"]
    assert browser.post(f"{guarded}/logout", headers=csrf).status_code == 200
    assert "demur-login" not in browser.cookies
    replayed = requests.post(guarded + CHAT, json=question(), headers={"Cookie": f"demur-login={cookie}", **csrf})
    assert replayed.status_code == 401


def test_nothing_is_changed_without_the_token_of_the_login(browser, guarded, secret, upstream):
    log_in(browser, guarded, secret)
    with requests.Session() as other:
        foreign = log_in(other, guarded, secret).json()["csrf"]
    for headers in ({}, {"x-demur-csrf": ""}, {"x-demur-csrf": foreign}, {"x-demur-csrf": "\u00e9".encode("latin-1")}):
        for path in (CHAT, "/v1/feedback", "/logout"):
            refused = browser.post(guarded + path, json=question(), headers=headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "csrf_missing")
    assert upstream.requests == []
    assert browser.get(f"{guarded}/v1/models").status_code == 200  # reading changes nothing


def test_the_page_of_another_site_cannot_use_a_login_or_make_one(browser, guarded, secret):
    csrf = log_in(browser, guarded, secret).json()["csrf"]
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        assert ask(browser, guarded, **headers, **{"x-demur-csrf": csrf}).status_code == 403
        assert log_in(requests, guarded, secret, **headers).status_code == 403
    form = requests.post(f"{guarded}/login", data={"key": secret})
    assert (form.status_code, "set-cookie" in form.headers) == (415, False)


@pytest.mark.parametrize(("scheme", "name"), [("http", "demur-login"), ("https", "__Host-demur-login")])
def test_the_cookie_is_kept_from_scripts_and_other_sites(guarded, secret, scheme, name):
    told = log_in(requests, guarded, secret, **{"X-Forwarded-Proto": scheme}).headers["set-cookie"]
    value, *flags = told.split("; ")
    assert value.startswith(f"{name}=")
    assert len(value) > 40
    assert secret not in told
    assert {flag.lower() for flag in flags} == {
        "httponly", "samesite=strict", "path=/", "max-age=43200", *(["secure"] if scheme == "https" else []),
    }  # fmt: skip


def test_a_login_ends_with_its_key_and_with_its_time(browser, guarded, secret, store):
    log_in(browser, guarded, secret)
    login = store.logins.find(browser.cookies["demur-login"], 0)
    now = time.time() * 1000
    assert now + 11.9 * 3_600_000 < login.until < now + 12.1 * 3_600_000
    _, token = store.logins.begin(login.key, int(now) - 1)
    assert requests.get(f"{guarded}/v1/models", cookies={"demur-login": token}).status_code == 401
    store.keys.revoke(login.key, 2)
    assert browser.get(f"{guarded}/v1/models").status_code == 401


@pytest.mark.parametrize("cookie", ["", "x", "A" * 43, "x" * 5000])
def test_a_forged_cookie_is_none(guarded, cookie):
    assert requests.get(f"{guarded}/v1/models", cookies={"demur-login": cookie}).status_code == 401


def test_whoever_tries_many_keys_waits(guarded, secret):
    refused = [log_in(requests, guarded, f"demur-{place}").status_code for place in range(11)]
    assert refused == [401] * 10 + [429]
    late = log_in(requests, guarded, secret)
    assert late.status_code == 429
    assert 1 <= int(late.headers["retry-after"]) <= 61


def test_failures_are_forgotten_after_a_while_and_for_others():
    now = [0.0]
    failures = Failures(most=2, seconds=60, clock=lambda: now[0])
    failures.add("a")
    assert failures.wait("a") == 0
    now[0] = 10
    failures.add("a")
    assert (failures.wait("a"), failures.wait("b")) == (50, 0)
    now[0] = 60
    assert failures.wait("a") == 0
    for place in range(20_000):
        failures.add(str(place))
    assert len(failures._times) == 10_000


# Pages.


def test_the_login_page_uses_files_of_this_service_alone(guarded):
    page = requests.get(f"{guarded}/login")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for name, kind in {"login.js": "text/javascript", "access.js": "text/javascript", "base.css": "text/css"}.items():
        file = requests.get(f"{guarded}/pages/{name}")
        assert (file.status_code, file.headers["content-type"].partition(";")[0]) == (200, kind)


@pytest.mark.parametrize(
    "path",
    ["/login", "/pages/login.js", "/v1/models", "/nowhere", "/v1/chat/completions", "/login/state", "/openapi.json"],
)
def test_every_response_has_the_headers_that_browsers_heed(guarded, path):
    headers = requests.get(guarded + path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/pages/../access.py",
        "/pages/%2e%2e/access.py",
        "/pages/..%2faccess.py",
        "/pages/....//access.py",
        "/pages/%2fetc%2fpasswd",
        "/pages//etc/passwd",
        "/pages/login.js%00.css",
        "/pages/LOGIN.JS",
        "/pages/login.html",
        "/pages/",
        "/pages/.",
        "/pages/..\\access.py",
        "/..%2f..%2fetc/passwd",
    ],
)
def test_no_path_leads_out_of_the_pages(guarded, path):
    made = requests.Request("GET", guarded).prepare()
    made.url = guarded + path  # as it is: nothing is tidied up on the way
    with requests.Session() as browser:
        found = browser.send(made, allow_redirects=False)
    assert found.status_code == 404
    assert "import" not in found.text


def test_a_page_that_needs_a_role_leads_to_the_login(guarded, secret, browser, store, monkeypatch):
    monkeypatch.setitem(page_files.FILES, "review.html", b"<!doctype html>")
    away = requests.get(f"{guarded}/review?x=1", allow_redirects=False)
    assert (away.status_code, away.headers["location"]) == (303, "/login?then=review")
    with requests.Session() as other:
        log_in(other, guarded, store.keys.create("asks", ["ask"], 1)[1])
        time.sleep(0.3)
        assert other.get(f"{guarded}/review", allow_redirects=False).status_code == 303
    log_in(browser, guarded, secret)
    assert browser.get(f"{guarded}/review", allow_redirects=False).text == "<!doctype html>"


def test_a_page_that_is_not_there_is_not_found(guarded, monkeypatch):
    monkeypatch.delitem(page_files.FILES, "status.html", raising=False)
    assert requests.get(f"{guarded}/status").status_code == 404
