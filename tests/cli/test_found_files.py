"""A file that lies in the folder decides nothing dangerous: no function, and no address that gets a key."""

from __future__ import annotations

import sys

import pytest

from loopback import choice, error, reply
from vllm import Vllm

KEYS = ("OPENAI_API_KEY", "JUDGE_API_KEY", "REWARD_API_KEY", "PERPLEXITY_API_KEY", "STRICT_API_KEY")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Keys, and no addresses."""
    for name in KEYS:
        monkeypatch.setenv(name, "sk-of-the-environment")
        monkeypatch.delenv(name.replace("API_KEY", "BASE_URL"), raising=False)
        monkeypatch.delenv(name.replace("API_KEY", "MODEL"), raising=False)


@pytest.fixture
def trap(tmp_path, monkeypatch):
    """A module that leaves a mark when it is imported."""
    (tmp_path / "trap.py").write_text(
        "open('sprung', 'w').close()\ndef spring(given):\n    return [0.0] * len(getattr(given, 'paths', '')) or '7'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "sprung"
    sys.modules.pop("trap", None)


@pytest.fixture
def run(demur, server, monkeypatch):
    """A small run, sampled without a key."""
    server.behave = lambda number, body, request: reply(*(choice(f"\\boxed{{{k}}}") for k in range(body.get("n", 1))))
    asked = ["--base-url", server.url, "--model", "m", "-o", "run.db", "--limit", 3, "-m", 2]
    assert demur("sample", "builtin:addition", *asked).code == 0
    server.headers.clear()
    return "run.db"


def sent(server) -> set[str | None]:
    return {headers.get("Authorization") for headers in server.headers}


def config(tmp_path, text):
    (tmp_path / "demur.toml").write_text(text)


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_configuration_makes_nothing_run(demur, trap, tmp_path, server, more):
    config(tmp_path, f"[model]\nbase_url = '{server.url}'\nmodel = 'm'\n[sampling]\nextract = 'trap:spring'\n")
    ran = demur("sample", "builtin:addition", "-o", "run.db", *more)
    assert ran.code == 2
    assert len(ran.err.splitlines()[-1:]) == 1
    assert "--extract trap:spring" in ran.err
    assert not trap.exists()


def test_a_function_that_the_user_names_runs_whatever_the_configuration_says(demur, trap, tmp_path, server):
    config(tmp_path, f"[model]\nbase_url = '{server.url}'\nmodel = 'm'\n[sampling]\nextract = 'trap:spring'\n")
    server.behave = lambda *_: reply(choice("whatever"))
    ran = demur("sample", "builtin:addition", "--extract", "trap:spring", "-m", 1, "--limit", 1, "-o", "run.db")
    assert ran.code == 0, ran.err
    assert trap.exists()


def test_a_pattern_of_a_configuration_still_reads_answers(demur, tmp_path, server):
    config(tmp_path, f"[model]\nbase_url = '{server.url}'\nmodel = 'm'\n[sampling]\nextract = 'is (.*)'\n")
    server.behave = lambda *_: reply(choice("it is 12"))
    assert demur("sample", "builtin:addition", "-m", 1, "--limit", 1, "-o", "run.db").code == 0
    assert demur("runs", "run.db", "--json").json["runs"][0]["with_answer"] == 1


@pytest.mark.parametrize("where", ["[study]\ncompute = ['trap:spring']\n", ""])
def test_a_study_makes_nothing_run_unless_the_user_names_it(demur, run, trap, tmp_path, where):
    cell = "" if where else "compute = ['trap:spring']\n"
    (tmp_path / "s.toml").write_text(
        f"{where}[[cells]]\ndataset = 'd'\nmodel = 'm'\nstore = 'run.db'\nn_cal = 1\n{cell}"
    )
    ran = demur("study", "s.toml", "--no-figures")
    assert ran.code == 2
    assert "--compute trap:spring" in ran.err
    assert not trap.exists()
    demur("study", "s.toml", "--no-figures", "--compute", "trap:spring")
    assert trap.exists()
    assert "spring" in demur("score", "run.db", "--list").out


@pytest.mark.parametrize("confirmed", ["not", "--base-url", "--trust-address", "OPENAI_BASE_URL"])
def test_a_key_goes_to_a_files_address_only_once_it_is_confirmed(demur, tmp_path, server, monkeypatch, confirmed):
    config(tmp_path, f"[model]\nbase_url = '{server.url}'\nmodel = 'm'\n")
    flags = [confirmed, server.url + "/"] if confirmed.startswith("--") else []
    if confirmed.endswith("URL"):
        monkeypatch.setenv(confirmed, server.url)
    ran = demur("sample", "builtin:addition", "-m", 1, "--limit", 2, "-o", "run.db", *flags)
    assert ran.code == 0, ran.err
    assert sent(server) == ({None} if confirmed == "not" else {"Bearer sk-of-the-environment"})
    assert server.url in ran.err
    assert ("OPENAI_API_KEY is not sent there" in ran.err) == (confirmed == "not")
    server.headers.clear()
    checked = demur("doctor", *flags)
    assert sent(server) == ({None} if confirmed == "not" else {"Bearer sk-of-the-environment"})
    assert server.url in checked.err


def test_the_key_that_was_not_sent_is_told_where_it_is_wanted(demur, tmp_path, server):
    config(tmp_path, f"[model]\nbase_url = '{server.url}'\nmodel = 'm'\n")
    server.behave = lambda *_: error(401, "who are you?")
    ran = demur("sample", "builtin:addition", "-m", 1, "--limit", 1, "-o", "run.db")
    assert ran.code == 2
    assert f"--trust-address {server.url}" in ran.err


def test_another_address_that_looks_alike_is_not_the_one_confirmed(demur, tmp_path, server):
    config(tmp_path, f"[model]\nbase_url = '{server.url}'\nmodel = 'm'\n")
    for other in (f"http://127.0.0.1:{server.port}@example.invalid/v1", "http://127.0.0.1/v1", "127.0.0.1", "", "*"):
        demur("sample", "builtin:addition", "-m", 1, "--limit", 1, "-o", f"{len(other)}.db", "--trust-address", other)
    assert sent(server) == {None}


@pytest.mark.parametrize("score", ["judge", "reward", "perplexity", "strict"])
def test_a_scorers_key_goes_to_a_files_address_only_once_it_is_confirmed(demur, run, server, tmp_path, score):
    server.behave = Vllm()
    kind = "kind = 'judge'\n" if score == "strict" else ""
    config(tmp_path, f"[score.{score}]\n{kind}base_url = '{server.url}'\nmodel = 'm'\n")
    ran = demur("score", "run.db", "--score", score)
    assert ran.code == 0, ran.err
    assert sent(server) == {None}
    assert server.url in ran.err
    for flags in (["--trust-address", server.url], ["--set", f"{score}.base_url={server.url}"]):
        server.headers.clear()
        demur("score", "run.db", "--forget", score)
        assert demur("score", "run.db", "--score", score, *flags).code == 0
        assert sent(server) == {"Bearer sk-of-the-environment"}


def test_a_studys_addresses_get_no_key_until_they_are_confirmed(demur, server, tmp_path):
    server.behave = lambda number, body, request: reply(*(choice(f"\\boxed{{{k}}}") for k in range(body.get("n", 1))))
    (tmp_path / "s.toml").write_text(
        f"[[cells]]\ndataset = 'd'\nmodel = 'm'\nstore = 'study.db'\nquestions = 'builtin:addition'\nlimit = 4\n"
        f"paths = 2\nn_cal = 2\nbase_url = '{server.url}'\n"
    )
    ran = demur("study", "s.toml", "--no-figures", "--json")
    assert ran.code == 0, ran.err
    assert server.url in ran.err
    assert sent(server) == {None}
    server.headers.clear()
    (tmp_path / "study.db").unlink()
    assert demur("study", "s.toml", "--no-figures", "--trust-address", server.url).code == 0
    assert sent(server) == {"Bearer sk-of-the-environment"}


def test_a_studys_database_is_confirmed_before_a_password_could_go_there(demur, server, tmp_path):
    place = f"postgresql://me@127.0.0.1:{server.port}/runs"
    (tmp_path / "s.toml").write_text(f"[[cells]]\ndataset = 'd'\nmodel = 'm'\nstore = '{place}'\n")
    ran = demur("study", "s.toml", "--no-figures", "--json")
    assert "trust_address=postgresql://127.0.0.1" in ran.json["failed"]["d / m"]
    trusted = demur("study", "s.toml", "--no-figures", "--json", "--trust-address", place)
    assert "received invalid response" in trusted.json["failed"]["d / m"]


def test_a_redirect_takes_no_key_along(demur, server):
    from aiohttp import web

    from loopback import Loopback

    other = Loopback().start()
    try:
        server.behave = lambda n, body, request: web.Response(
            status=307, headers={"Location": other.url + request.path}
        )
        ran = demur("sample", "builtin:addition", "--base-url", server.url, "--model", "m", "-o", "run.db")
        assert ran.code == 2
        assert "redirect" in ran.err
        assert not other.requests
    finally:
        other.stop()


def test_no_proxy_of_the_environment_sees_a_request(demur, server, monkeypatch):
    from loopback import Loopback

    proxy = Loopback().start()
    try:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        flags = ["--base-url", server.url, "--model", "m", "-o", "run.db", "-m", 1, "--limit", 1]
        assert demur("sample", "builtin:addition", *flags).code == 0
        assert not proxy.requests
    finally:
        proxy.stop()
