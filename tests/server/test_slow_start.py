"""`demur serve` listens at once, whether the model's server answers or not, and says what it waits for."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading

import pytest
import requests

from asked_over_http import chat, post, told
from demur.store.service import ServiceStore
from loopback import error, when
from patience import wait_until
from processes import Process
from serving import adder


@pytest.fixture
def start(sums_policy, tmp_path):
    """Starts the service; gives the process and the address that it says it listens on."""
    sums_policy.save(tmp_path / "sums.json")

    def begun(upstream, *options):
        errors = tmp_path / "errors.txt"
        command = [sys.executable, "-m", "demur", "serve", "--policy", "sums.json", "--model", "adder", "--port", "0"]
        with errors.open("w") as written:
            process = Process(
                [*command, "--base-url", upstream.url, *options],
                stdout=subprocess.PIPE, stderr=written, text=True, cwd=tmp_path,
            )  # fmt: skip

        def address():
            assert process.poll() is None, errors.read_text()
            return re.search(r"until then (http://\S+)/readyz and all requests get status 503\n", errors.read_text())

        return process, wait_until(address).group(1)

    return begun


@pytest.mark.parametrize("options", [(), ("--workers", "2")])
def test_it_listens_before_the_model_answers_and_serves_once_it_does(start, upstream, options):
    answers = threading.Event()
    upstream.behave = when(answers.is_set, adder)
    process, root = start(upstream, *options)
    assert requests.get(f"{root}/healthz", timeout=300).json() == {"status": "ok"}
    ready = requests.get(f"{root}/readyz", timeout=300)
    waiting = f"waiting for the first answer of {upstream.url}"
    assert (ready.status_code, ready.json()) == (503, {"ready": False, "troubles": [waiting]})
    early = post(root, chat())
    status, refused = told(early)
    assert (status, refused["code"], refused["message"]) == (503, "starting", f"the service is starting: {waiting}")
    assert int(early.headers["Retry-After"]) > 0
    assert process.poll() is None

    answers.set()
    assert process.stdout.readline() == "model sums\n"
    wait_until(lambda: requests.get(f"{root}/readyz", timeout=300).status_code == 200)
    assert post(root, chat()).json()["demur"]["answer"] == "5"


def test_a_model_that_turns_out_to_be_another_ends_it(start, upstream, tmp_path):
    answers = threading.Event()
    upstream.behave = when(answers.is_set, lambda *_: error(404, "The model `adder` does not exist."))
    process, _ = start(upstream)
    answers.set()
    out, _ = process.communicate(timeout=300)
    assert (process.returncode, out) == (2, "")
    last = (tmp_path / "errors.txt").read_text().splitlines()[-1]
    assert last.startswith("error: ")
    assert "The model `adder` does not exist." in last
    with ServiceStore(tmp_path / "service.db") as store:
        assert store.policies.all() == []  # else other servers on this store would go over to it


@pytest.mark.parametrize("told_to", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_waits_no_longer(start, upstream, told_to, tmp_path):
    upstream.behave = when(lambda: False)
    process, _ = start(upstream)
    process.send_signal(told_to)
    assert process.wait(300) == 0
    assert (tmp_path / "errors.txt").read_text().splitlines()[-1].endswith("requests get status 503")
