"""The whole of it with real processes: traffic, reviews, `demur recalibrate`, two workers that both swap."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import requests
from test_versions import ask, policy_in, until

from demur.store.service import ServiceStore
from loopback import obliging
from processes import Process
from reviewing import Person
from serving import adder


@contextmanager
def serving(folder, url, *flags):
    """The address of `demur serve` as a process, and what it said at first."""
    command = [sys.executable, "-m", "demur", "serve", "--policy", "sums=policy.json", "--base-url", url]
    command += ["--model", "adder", "--store", "service.db", "--port", "0", "--audit-share", "1", "--json", *flags]
    how = {"cwd": folder, "stdout": subprocess.PIPE, "text": True}
    with (folder / "lines.jsonl").open("w") as lines, Process(command, stderr=lines, **how) as process:
        try:
            told = json.loads(process.stdout.readline() or "{}")
            assert told, (folder / "lines.jsonl").read_text()
            told["root"] = told["address"].removesuffix("/v1")
            assert until(lambda: _ready(told["root"]), 300)
            yield told
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(300)


def adds_or_greets(number, body, request):
    """The adding model, which says something to whoever asks whether it is there."""
    asked = "What is" in body["messages"][-1]["content"]
    return (adder if asked else obliging)(number, body, request)


def _ready(root):
    try:
        return requests.get(f"{root}/healthz", timeout=5).ok
    except requests.RequestException:
        return False


def demur(folder, *arguments):
    command = [sys.executable, "-m", "demur", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, env={**os.environ, "COLUMNS": "80"}
    )


def recalibrate(folder, *arguments):
    ran = demur(folder, "recalibrate", "--policy-name", "sums", "--json", *arguments)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def review(root, k):
    reply = ask(root, f"What is {k} + 1?").json()["demur"]
    said = {"verdict": "right" if k % 2 == 0 else "wrong"} if k % 3 else {"answer": str(k + 1)}
    careless = {"request_id": reply["request_id"], "verdict": "right"}
    assert requests.post(f"{root}/v1/feedback", json=careless, timeout=300).json()["by"] == "caller"
    person = Person(root)
    assert person.judge(person.claim(request=reply["request_id"]), **said).status_code == 200


def test_traffic_reviews_recalibration_shadow_and_swap(upstream, sums_policy, tmp_path):
    sums_policy.save(tmp_path / "policy.json")
    upstream.behave = adds_or_greets
    with serving(tmp_path, upstream.url, "--workers", "2", "--fan-out", "2000") as told:
        root = told["root"]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda k: review(root, k), range(100, 180)))
        dry = recalibrate(tmp_path)
        assert (dry["new_version"], dry["audits"]["questions"], dry["audits"]["labelled"]) == (None, 80, 80)
        made = recalibrate(tmp_path, "--shadow")
        assert (made["new_version"], made["state"]) == (2, "shadow")

        def shadowed():
            request = ask(root, "What is 4 + 1?").json()["demur"]["request_id"]
            with ServiceStore(tmp_path / "service.db") as store:
                return "shadow" in store.decisions.get(request).document

        assert until(lambda: all(shadowed() for _ in range(10)), 300)
        beside = recalibrate(tmp_path, "--compare")
        assert beside["audited"]["requests"] >= 10
        with ThreadPoolExecutor(200) as pool:
            asked = [pool.submit(ask, root, f"What is {k} + 1?") for k in range(1_000, 1_220)]
            assert recalibrate(tmp_path, "--activate", "v2")["versions"] == {"1": "retired", "2": "active"}
            replies = [one.result() for one in asked]
        assert {reply.status_code for reply in replies} == {200}
        assert all(reply.json()["demur"]["paths"]["drawn"] == 5 for reply in replies)
        assert until(lambda: all(policy_in(ask(root, "What is 6 + 1?")) == "sums:v2" for _ in range(20)), 300)
        assert policy_in(ask(root, "What is 6 + 1?", "sums:v1")) == "sums:v1"
    with serving(tmp_path, upstream.url) as told:  # with the old file
        assert told["versions"] == {"sums": 2}
        assert policy_in(ask(told["root"], "What is 6 + 1?")) == "sums:v2"
    with ServiceStore(tmp_path / "service.db") as store:
        kinds = [event.words for event in store.events.latest(kind="version")]
    assert kinds[-1].startswith("Version 2 of sums, recalibrated on 80 audited questions, decides beside")
