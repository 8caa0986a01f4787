"""What the verbs say of runs that are shared: who is at work, what is spent, which endpoints were asked."""

from __future__ import annotations

import json

import pytest
from aiohttp import web

from cli.test_sampling_verbs import sums as only_sums
from demur.store import Store
from loopback import Loopback, obliging

DEAD = "http://127.0.0.1:9/v1"
SAMPLE = ("sample", "builtin:addition", "--limit", 10, "-m", 4, "--model", "adder", "-o", "run.db")


def sums(number, body, request):
    """Adds, and says anything to anything else."""
    asked = str(body.get("messages", ""))
    return (only_sums if "+" in asked else obliging)(number, body, request)


@pytest.fixture(autouse=True)
def no_endpoints(monkeypatch):
    for tail in ("BASE_URL", "API_KEY", "MODEL"):
        monkeypatch.delenv(f"OPENAI_{tail}", raising=False)


@pytest.fixture
def servers(server):
    other = Loopback(behave=sums).start()
    server.behave = sums
    yield server, other
    other.stop()


def under_the_name(model):
    """Adds, and calls itself so."""

    def behave(number, body, request):
        return web.json_response(json.loads(sums(number, body, request).body) | {"model": model})

    return behave


def test_a_budget_that_is_spent_ends_it_like_an_interruption_and_says_how_to_go_on(demur, servers):
    flags = (*SAMPLE, "--base-url", servers[0].url)
    ran = demur(*flags, "--budget-paths", 18)
    assert ran.code == 130
    assert "The budget of this run is used up: 16 of 18 paths, and the next problem needs 4; raise it with " in ran.out
    assert "raise it with --budget-paths to go on." in ran.out
    kept = demur(*flags)  # the limit is the run's
    assert (kept.code, kept.out.count("is used up: 16 of 18 paths")) == (130, 1)
    assert "Budget of run: 16 of 18 paths." in demur("runs", "run.db").out
    told = demur("runs", "run.db", "--json").json["runs"][0]["budget"]
    assert (told["spent"]["paths"], told["limits"]) == (16, {"paths": 18, "tokens": None, "seconds": None})
    more = demur(*flags, "--budget-paths", 40, "--json")
    assert (more.code, more.json["saved"], more.json["budget_spent"]) == (0, 24, None)
    assert demur(*flags, "--limit", 12, "--budget-paths", "none").code == 0


@pytest.mark.parametrize(
    ("flag", "value", "told"),
    [
        ("--budget-paths", "0", "a budget of paths is a whole number above 0"),
        ("--budget-paths", "1.5", "a budget of paths is a whole number above 0"),
        ("--budget-tokens", "-3", "a budget of tokens is a whole number above 0"),
        ("--budget-seconds", "nan", "neither a number nor `none`"),
        ("--budget-seconds", "soon", "neither a number nor `none`"),
        ("--base-url", "0:http://127.0.0.1:9/v1", "the weight of an endpoint is a number above 0"),
        ("--base-url", "x:http://127.0.0.1:9/v1", "the weight of an endpoint is a number above 0"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(demur, flag, value, told):
    ran = demur(*SAMPLE, *(() if flag == "--base-url" else ("--base-url", DEAD)), flag, value)
    assert ran.code == 2
    assert told in " ".join(ran.err.replace("│", " ").split())


def test_runs_shows_who_is_at_work(demur, servers):
    assert demur(*SAMPLE, "--base-url", servers[0].url, "--budget-paths", 20).code == 130
    with Store("run.db") as store:
        worker = store.run().at_work("sample", 4)
        worker.claim({7: 4, 8: 4}, 2, 4)
        shown, told = demur("runs", "run.db").out, demur("runs", "run.db", "--json").json["runs"][0]
        worker.end()
    name = told["workers"][0]["worker"]
    assert name in shown
    assert "At work" in shown
    assert "run, sample: no pace yet." in shown
    assert (told["workers"][0]["task"], told["workers"][0]["state"]) == ("sample", "at work")
    assert "At work" not in demur("runs", "run.db").out


def test_several_endpoints_share_a_run_that_is_the_same_as_with_one(demur, servers):
    one, other = servers
    ran = demur(*SAMPLE, "--base-url", one.url, "--base-url", f"2:{other.url}", "--json")
    assert (ran.code, ran.json["saved"], ran.json["events"]) == (0, 40, [])
    assert f"the model is asked at {one.url}, {other.url} (weight 2)" in ran.err
    assert len(one.requests) > 2
    assert len(other.requests) > 2
    again = demur(*SAMPLE, "--base-url", one.url)  # no difference in the pipeline
    assert again.code == 0, again.err
    with Store("run.db") as store:
        assert "127.0.0.1" not in json.dumps(store.run().summary()["pipeline"])


def test_a_dead_endpoint_among_several_is_said_and_costs_nothing(demur, servers):
    ran = demur(*SAMPLE, "--base-url", servers[0].url, "--base-url", DEAD)
    assert ran.code == 0
    assert f"{DEAD} is set aside: the endpoint {DEAD} cannot be reached" in ran.out
    noted = demur("runs", "run.db", "--run", "run", "--json").json["runs"][0]["commands"][0]
    assert noted["events"][0].startswith(f"{DEAD} is set aside")


def test_an_endpoint_that_serves_another_model_is_refused_in_one_line(demur, servers):
    one, other = servers
    one.behave, other.behave = under_the_name("adder"), under_the_name("subtracter")
    ran = demur(*SAMPLE, "--base-url", one.url, "--base-url", other.url)
    assert ran.code == 2
    told = ran.err.strip().splitlines()[-1]
    assert told.startswith("error: the endpoints do not serve the same model: model: 'adder' at")
    assert "'subtracter' at" in told
    assert told.endswith("name those that do as --base-url")


def test_a_policy_is_asked_of_several_endpoints_too(demur, servers):
    one, other = servers
    urls = ("--base-url", one.url, "--base-url", other.url)
    assert demur(*SAMPLE, "--limit", 60, *urls).code == 0
    assert demur("calibrate", "run.db", "--score", "perplexity", "--alpha", 0.3, "-o", "policy.json").code == 0
    ran = demur("ask", "What is 12 + 7?", "--policy", "policy.json", "--model", "adder", *urls)
    assert ran.code in (0, 3), ran.err


def test_doctor_asks_one_endpoint_at_a_time(demur):
    ran = demur("doctor", "--base-url", DEAD, "--base-url", "http://127.0.0.1:19/v1", "--model", "m")
    assert (ran.code, ran.err.strip().endswith("name one as --base-url")) == (2, True)
