"""Where the pages are is said at start, and the address alone leads to them."""

from __future__ import annotations

import subprocess
import sys

import pytest
import requests

from loopback import obliging
from processes import Process
from serving import adder


def test_the_address_alone_leads_to_the_status_page(address):
    led = requests.get(f"{address}/", allow_redirects=False, timeout=300)
    assert (led.status_code, led.headers["location"]) == (303, "/status")
    assert "<title>Status" in requests.get(address, timeout=300).text


@pytest.mark.parametrize("logged", [True, False])
def test_the_start_says_where_the_pages_are(upstream, sums_policy, tmp_path, logged):
    sums_policy.save(tmp_path / "policy.json")
    upstream.behave = lambda n, body, request: (adder if "What is" in str(body) else obliging)(n, body, request)
    command = [sys.executable, "-m", "demur", "serve", "--policy", "sums=policy.json", "--base-url", upstream.url]
    command += ["--model", "adder", "--port", "0", *([] if logged else ["--no-log"])]
    with (tmp_path / "errors").open("w") as errors:
        process = Process(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=errors, text=True)
    said = []
    while not said or not said[-1].startswith(("no keys", "keys are")):
        said.append(process.stdout.readline())
        assert said[-1], (tmp_path / "errors").read_text()
    (root,) = [line.split()[-1].removesuffix("/v1") for line in said if line.startswith("listening on ")]
    pages = [line.strip() for line in said if line.startswith("page ")]
    assert pages == ([f"page {root}/status", f"page {root}/review"] if logged else [])
