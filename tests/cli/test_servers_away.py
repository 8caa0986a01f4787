"""What the verbs say of servers that are away, busy, slow or mute, and how a run goes on and grows."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web

from cli.test_sampling_verbs import sums
from demur.store import Store
from loopback import Loopback, choice, error, reply

DEAD = "http://127.0.0.1:9/v1"
SAMPLE = ("sample", "builtin:addition", "--limit", 10, "--model", "adder", "-o", "run.db")


@pytest.fixture(autouse=True)
def no_endpoints(monkeypatch):
    for name in ("OPENAI", "JUDGE", "REWARD", "PERPLEXITY"):
        for tail in ("BASE_URL", "API_KEY", "MODEL"):
            monkeypatch.delenv(f"{name}_{tail}", raising=False)


@pytest.fixture
def sampled(demur, server):
    server.behave = sums
    ran = demur(*SAMPLE, "-m", 4, "--base-url", server.url)
    assert ran.code == 0, ran.err
    return ran


def mute(share_of):
    """Adds, without log-probabilities for some requests."""

    def behave(number, body, request):
        answer = sums(number, body, request)
        if share_of(number, body):
            told = json.loads(answer.body)
            return reply(*({**one, "logprobs": None} for one in told["choices"]))
        return answer

    return behave


def test_doctor_says_once_that_a_server_is_dead(demur):
    ran = demur("doctor", "--base-url", DEAD, "--model", "m")
    assert ran.code == 1
    assert len(ran.out.strip().splitlines()) == 1
    assert "It cannot be sampled from: the endpoint http://127.0.0.1:9/v1 cannot be reached" in ran.out
    told = demur("doctor", "--base-url", DEAD, "--model", "m", "--json").json
    assert (told["usable"], told["probes"]) == (False, {})
    assert "cannot be reached" in told["why"]


def test_doctor_goes_on_where_only_the_list_of_models_is_missing(demur, server):
    def behave(number, body, request):
        if request.path.endswith("/models"):
            request.transport.abort()
        return sums(number, body, request) if "2 + 2" in str(body) else reply(*[choice("7")] * body.get("n", 1))

    server.behave = behave
    ran = demur("doctor", "--base-url", server.url, "--model", "m", "--json")
    assert (ran.code, ran.json["usable"], ran.json["probes"]["models"]["works"]) == (0, True, False)


@pytest.mark.parametrize("score", ["judge", "reward"])
def test_a_dead_scorer_ends_in_one_line_that_says_the_way_out(demur, sampled, score):
    settings = ("--set", f"{score}.model=x", "--set", f"{score}.base_url={DEAD}")
    ran = demur("score", "run.db", "--score", score, *settings)
    assert ran.code == 2
    where, told = ran.err.splitlines()
    assert where == f"the score {score} is asked at {DEAD}"
    assert told.startswith("error: the endpoint")
    assert "cannot be reached" in told
    assert f"--set {score}.patience=3600" in ran.err


def test_a_run_with_nothing_to_score_asks_nobody(demur, server):
    server.behave = lambda *_: error(401, "no")
    assert demur(*SAMPLE, "-m", 4, "--base-url", server.url).code == 2
    ran = demur("score", "run.db", "--score", "judge", "--set", "judge.model=x", "--set", f"judge.base_url={DEAD}")
    assert (ran.code, ran.err) == (
        2,
        "error: the run 'run' has no whole pool to score; `demur sample` goes on with it\n",
    )


def test_a_judge_that_trickles_has_a_deadline(demur, sampled):
    async def trickle(number, body, request):
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(300):
            await response.write(b" ")
            await asyncio.sleep(0.1)
        return response

    judge = Loopback(behave=trickle).start()
    settings = {"model": "x", "base_url": judge.url, "answer_seconds": 0.3, "patience": 0.5}
    flags = [part for name, value in settings.items() for part in ("--set", f"judge.{name}={value}")]
    ran = demur("score", "run.db", "--score", "judge", *flags)
    judge.stop()
    assert ran.code == 2
    assert "did not end its answer within 0.3 s" in ran.err


@pytest.mark.parametrize("seconds", ["0", "-1"])
def test_a_deadline_of_nothing_is_refused(demur, server, sampled, seconds):
    ran = demur(*SAMPLE, "-m", 4, "--base-url", server.url, "--answer-seconds", seconds)
    assert (ran.code, "answer_seconds" in ran.err) == (2, True)
    assert demur("score", "run.db", "--score", "judge", "--set", f"judge.answer_seconds={seconds}").code == 2


def test_a_wait_beyond_the_patience_is_one_line_with_the_flag(demur, server):
    server.behave = lambda *_: error(429, "daily quota", Retry_After="7200")
    ran = demur(*SAMPLE, "-m", 4, "--base-url", server.url)
    assert ran.code == 2
    assert "daily quota; it asks for a wait of 7200 s, longer than the patience of 300 s; come back then" in ran.err
    assert "--patience 7260" in ran.err


def test_more_paths_are_added_to_a_run_and_fewer_are_refused(demur, server, sampled):
    plan = demur(*SAMPLE, "-m", 10, "--base-url", server.url, "--dry-run", "--json").json
    assert plan["missing_paths"] == 60
    assert "Saved 60 of 60 paths" in demur(*SAMPLE, "-m", 10, "--base-url", server.url).out
    ran = demur(*SAMPLE, "-m", 4, "--base-url", server.url)
    assert ran.code == 2
    assert "has problems with 10 paths, more than the 4 asked for" in ran.err
    with Store("run.db") as store:
        assert (store.run().n_paths, {len(pool.paths) for pool in store.run().pools()}) == (10, {10})
    assert demur("calibrate", "run.db", "--score", "perplexity", "--alpha", 0.4).code == 0


def test_what_had_to_be_tried_again_is_said_at_the_end(demur, server):
    server.behave = lambda n, body, r: error(500, "oops") if n % 4 == 1 else sums(n, body, r)
    ran = demur(*SAMPLE, "-m", 4, "--base-url", server.url)
    assert ran.code == 0, ran.err
    assert "requests had to be tried again, and may have been paid for twice; the last: the endpoint answered 500" in (
        ran.out
    )


def test_paths_without_log_probabilities_are_drawn_again_by_the_same_command_and_counted(demur, server):
    odd = set()

    def some(number, body):
        if number in (3, 5):
            odd.add(body["seed"])
        return number in (3, 5)

    server.behave = mute(some)
    asked = (*SAMPLE, "-m", 4, "--base-url", server.url, "--concurrency", 1)
    ran = demur(*asked)
    assert ran.code == 1
    assert "2 problems could not be scored: path 0 of problem" in ran.out
    assert "Run the same command again to have such paths drawn again" in ran.out
    assert "demur calibrate run.db --score perplexity --drop-unscored" in ran.out
    assert demur("calibrate", "run.db", "--score", "perplexity").code == 2
    before = len(server.requests)
    assert demur(*asked, "--dry-run", "--json").json["drawn_again"] == 8
    server.behave = sums
    ran = demur(*asked)
    assert ran.code == 0, ran.err
    assert "8 paths had come without log-probabilities and were drawn again; none of them still have none." in ran.out
    assert {body["seed"] for body in server.requests[before:]} >= odd
    assert demur("calibrate", "run.db", "--score", "perplexity", "--alpha", 0.4).code == 0
    with Store("run.db") as store:
        assert [noted.get("drawn_again") for noted in store.run().summary()["commands"]] == [0, None, 8, None]


def test_a_run_sampled_without_log_probabilities_on_purpose_is_left_as_it_is(demur, server):
    server.behave = mute(lambda number, body: "logprobs" not in body)
    asked = (*SAMPLE, "-m", 4, "--base-url", server.url)
    assert demur(*asked, "--no-logprobs").code == 0
    before = len(server.requests)
    ran = demur(*asked)
    assert (ran.code, len(server.requests)) == (2, before)
    assert "drawn again (but none of a run sampled with --no-logprobs)" in ran.err
    assert "--drop-unscored" in ran.err


def test_a_server_without_log_probabilities_is_paid_for_three_paths(demur, server):
    server.behave = mute(lambda *_: True)
    ran = demur(*SAMPLE, "-m", 16, "--base-url", server.url)
    assert ran.code == 2
    assert "the first 3 paths came without token log-probabilities" in ran.err
    assert sum(body.get("n", 1) for body in server.requests) == 3
    server.behave = sums
    assert "3 paths had come without log-probabilities" in demur(*SAMPLE, "-m", 16, "--base-url", server.url).out


@pytest.mark.parametrize("status", [401, 500])
def test_doctor_draws_no_conclusions_from_a_server_that_serves_nothing(demur, server, status):
    server.behave = lambda *_: error(status, "no entry")
    ran = demur("doctor", "--base-url", server.url, "--model", "m")
    assert ran.code == 1
    for conclusion in ("one by one", "seeds", "re-scored", "cannot judge"):
        assert conclusion not in ran.out
    if status == 401:
        assert ran.out.count("no entry") == 1
        assert len(server.requests) <= 2
