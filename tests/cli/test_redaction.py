"""No secret is shown or stored, however a server echoes it."""

from __future__ import annotations

import base64
import json
import re
import time
from urllib.parse import quote, quote_plus

import pytest
from aiohttp import web

from demur.backends import OpenAI
from demur.backends.redaction import Secrets, redacted, secrets_of, shown_address
from demur.cli import output
from loopback import choice, reply

KEY = 'sk-Å/e+7"f=&x\\9-0123456789'
PLAIN = "sk-abc/def+ghi=jkl-0123456789"


def spellings(secret: str) -> dict[str, str]:
    basic = base64.b64encode(f"me:{secret}".encode()).decode()
    return {
        "as it is": secret,
        "percent": quote(secret, safe=""),
        "percent, small": re.sub("%..", lambda code: code.group().lower(), quote(secret, safe="")),
        "form": quote_plus(secret),
        "json": json.dumps(secret)[1:-1],
        "json, slashes": json.dumps(secret)[1:-1].replace("/", "\\/"),
        "base64": base64.b64encode(secret.encode()).decode(),
        "base64, safe": base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
        "basic": basic,
        "header": base64.b64encode(f"Authorization: Bearer {secret}\r\n".encode()).decode(),
        "second": base64.b64encode(f"x{secret}y".encode()).decode(),
    }


@pytest.mark.parametrize("secret", [KEY, PLAIN])
@pytest.mark.parametrize("how", spellings(""))
def test_a_known_secret_is_found_in_every_spelling(secret, how):
    said = f"before {spellings(secret)[how]} after"
    hidden = Secrets(secret)
    for told in (hidden.out_of(said), hidden.out_of_body(said.encode()).decode()):
        assert "[secret]" in told
        left = re.sub(r"^before | after$", "", told).replace("[secret]", "")
        assert not any(secret[at : at + 6] in left for at in range(len(secret) - 6))
        # Base64 may keep the characters that hold bits of neighbours too.
        assert len(spellings(secret)[how]) - len(left) >= len(secret) - 3


def test_keys_that_stand_for_nothing_spoil_nothing():
    for dummy in ("x", "1", "-", "EMPTY", "none", "index"):
        body = b'{"choices": [{"index": 1, "text": "x EMPTY none 1"}]}'
        assert Secrets(dummy).out_of_body(body) == body
    assert Secrets("x").out_of("max 12 x") == "max 12 [secret]"
    assert Secrets("", "").out_of("all is well") == "all is well"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cannot reach http://me:pw@host:8000/v1", "cannot reach http://host:8000/v1"),
        ("HTTPS://token@host/v1", "HTTPS://host/v1"),
        ("postgresql://me:pw@host/db", "postgresql://host/db"),
        ("it looks like postgresql://user@host/database", "it looks like postgresql://user@host/database"),
        ("http://h/v1?api-key=abc&x=1", "http://h/v1?api-key=[secret]&x=1"),
        ("http://h/v1?x=1&KEY=abc'", "http://h/v1?x=1&KEY=[secret]'"),
        ("http://h/v1?access_token=a.b.c#d", "http://h/v1?access_token=[secret]#d"),
        ("http://h/v1?subscription-key=abc and more", "http://h/v1?subscription-key=[secret] and more"),
        ("http://h/f?code=abc", "http://h/f?code=[secret]"),
        ("got Authorization: Basic bWU6aHVudGVyMjI=!", "got Authorization: Basic [secret]!"),
        ("got 'bearer sk-0123456789abcdef'", "got 'bearer [secret]'"),
        ("Basic authentication is wanted, a bearer token is not", None),
        ("the key = 7 is no address", None),
    ],
)
def test_what_looks_like_a_secret_is_hidden_wherever_it_comes_from(text, told):
    assert redacted(text) == (told or text)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("http://me:secret@host:8000/v1?key=x#y", "http://host:8000/v1"),
        ("me:secret@host:8000/v1?key=x", "host:8000/v1"),
        ("me:secret@host", "host"),
        ("http://me:secret@[::1", "http://…"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_its_secrets(address, told):
    assert shown_address(address) == told


def test_the_secrets_of_an_address():
    address = "https://me:p%40ss@h/v1?api-version=2024-02-01&api-key=k1&long=0123456789abcdef"
    assert set(secrets_of(address)) == {"me:p%40ss", "me:p@ss", "p@ss", "k1", "0123456789abcdef"}


def test_hiding_takes_linear_work():
    """Twice the text, about twice the work: never four times."""
    hidden = Secrets(PLAIN)
    for hostile in ("?" + "key" * 8, "a.", "://", "x://y:", "Bearer ", "?auth", PLAIN[:-1], "&key"):
        for _ in range(5):  # what a busy machine disturbs is measured again
            took = []
            for times in (20_000, 80_000):
                text, started = hostile * times, time.process_time()
                hidden.out_of(text)
                took.append(time.process_time() - started)
            if took[1] < 12 * took[0] + 0.2:
                break
        else:
            pytest.fail(hostile)


ECHO = {
    "error": lambda said: web.json_response({"error": {"message": f"no such key: {said}"}}, status=400),
    "plain": lambda said: web.Response(status=400, text=f"no such key: {said}"),
    "later": lambda said: web.Response(status=500, text=f"no such key: {said}"),
    "refused": lambda said: web.json_response({"detail": f"no such key: {said}"}, status=401),
    "redirect": lambda said: web.Response(
        status=302, headers={"Location": f"http://127.0.0.1:1/{quote(said, safe='')}"}
    ),
    "text": lambda said: reply(choice(f"\\boxed{{1}} {said}")),
}


@pytest.mark.parametrize("how", spellings(""))
@pytest.mark.parametrize("answer", ECHO)
def test_no_verb_shows_or_stores_what_a_server_echoes(demur, server, monkeypatch, tmp_path, answer, how):
    """In an error, in a completion, in a redirect: on the terminal, in --json, and in the store."""
    monkeypatch.setenv("OPENAI_API_KEY", PLAIN)
    said = spellings(PLAIN)[how]
    server.behave = lambda *_: ECHO[answer](said)
    flags = ["--base-url", server.url, "--model", "m", "--patience", 0]
    told = [demur("sample", "builtin:addition", "-m", 1, "--limit", 1, "-o", "run.db", *flags, *more)
            for more in ([], ["--json"])]  # fmt: skip
    told += [demur("doctor", *flags[:-2])] if how == "as it is" else []
    told.append(demur("export", "run.db", "-o", "pools.jsonl", "--unfinished"))
    shown = "".join(ran.out + ran.err for ran in told)
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    long = re.findall(r"[\w+/%=-]{9,}", said) or [said]
    assert not any(part in shown or part.encode() in kept for part in long)
    assert PLAIN not in shown


def test_logins_and_parameters_of_an_address_are_hidden_too(demur, server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    address = server.url.replace("://", "://me:hunter2x@") + "?api-key=abcdefgh12"
    basic = base64.b64encode(b"me:hunter2x").decode()
    server.behave = lambda n, body, request: web.Response(
        status=400, text=f"{request.headers['Authorization']} {request.url} me:hunter2x"
    )
    ran = demur(
        "sample", "builtin:addition", "-m", 1, "--limit", 1, "-o", "r.db", "--base-url", address, "--model", "m"
    )
    seen = demur("doctor", "--base-url", address, "--model", "m", "--json")
    shown = ran.out + ran.err + seen.out + seen.err
    assert f"Basic {basic}" in server.headers[0]["Authorization"]
    assert "answered 400" in shown
    for secret in ("hunter2x", "abcdefgh12", basic):
        assert secret not in shown


@pytest.mark.parametrize("key", ["sk-1\n", "sk\r\n-1", "sk-\x00", "sk-\x1b[31m", "sk-é"])
def test_a_key_that_no_header_can_carry_is_told_without_repeating_it(demur, server, monkeypatch, key):
    if "\0" not in key:  # no environment holds one
        monkeypatch.setenv("OPENAI_API_KEY", key)
        ran = demur("doctor", "--base-url", server.url, "--model", "m")
        assert ran.code == 2
        assert "OPENAI_API_KEY holds a line break" in ran.err
        assert key.strip() not in ran.err
        assert not server.requests


def test_no_description_holds_an_address(server):
    made = OpenAI(server.url.replace("://", "://me:hunter2x@") + "?key=abcdefgh12", "m")
    assert made.describe() == {"backend": "openai", "model": "m"}
    assert "hunter2x" not in output.visible(made.endpoint.told, 500)
