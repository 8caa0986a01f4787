"""The command of the compose file, as a process: PostgreSQL, keys, several workers, Prometheus, an orderly end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from processes import Process

yaml = pytest.importorskip("yaml", reason="PyYAML comes with the tools of the tests")
COMPOSE = Path(__file__).resolve().parents[2] / "deploy" / "compose.yaml"
DEMUR = [sys.executable, "-m", "demur"]


def made_key(name, *flags, store, folder):
    added = [*DEMUR, "keys", "add", name, *flags, "--store", store]
    return subprocess.run(added, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def deployed(upstream, sums_policy, postgres_url, tmp_path):
    """What compose starts, but for the address of the database and a free port; and two workers."""
    sums_policy.save(tmp_path / "policy.json")
    (tmp_path / "demur.toml").write_text((COMPOSE.parent / "demur.toml").read_text())
    command = yaml.safe_load(COMPOSE.read_text())["services"]["demur"]["command"]
    command[command.index("--store") + 1], command[command.index("--port") + 1] = postgres_url, "0"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    environment["OPENAI_BASE_URL"] = upstream.url
    with (tmp_path / "lines").open("w") as lines:
        process = Process(
            [*DEMUR, *command, "--workers", "2", "--json"],
            cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=lines, text=True,
        )  # fmt: skip
    line = process.stdout.readline()
    assert line, (tmp_path / "lines").read_text()
    url = re.sub(r"0\.0\.0\.0", "127.0.0.1", json.loads(line)["address"]).removesuffix("/v1")
    until, ready = time.monotonic() + 300, False
    while not ready and time.monotonic() < until:
        try:
            ready = requests.get(f"{url}/readyz", timeout=5).ok
        except requests.RequestException:
            time.sleep(0.1)
    assert ready, (tmp_path / "lines").read_text()
    yield process, url
    if process.poll() is None:
        process.terminate()
        process.wait(300)
    process.stdout.close()


def test_what_compose_starts_asks_for_keys_and_is_scraped_and_ends_in_order(deployed, postgres_url, tmp_path):
    process, url = deployed
    asked = {"model": "policy", "messages": [{"role": "user", "content": "What is 4 + 1?"}]}
    assert requests.post(f"{url}/v1/chat/completions", json=asked, timeout=300).status_code == 401
    of_client = made_key("billing", store=postgres_url, folder=tmp_path)
    of_prometheus = made_key("prometheus", "--role", "metrics", store=postgres_url, folder=tmp_path)
    asks, scrapes = ({"Authorization": f"Bearer {key}"} for key in (of_client, of_prometheus))
    until = time.monotonic() + 300  # replicas read new keys within seconds
    while not requests.get(f"{url}/v1/models", headers=asks, timeout=300).ok and time.monotonic() < until:
        time.sleep(0.2)
    time.sleep(3)
    for _ in range(8):
        reply = requests.post(f"{url}/v1/chat/completions", json=asked, headers=asks, timeout=300)
        assert reply.json()["choices"][0]["message"]["content"] == "5"
    assert requests.get(f"{url}/metrics", headers=asks, timeout=300).status_code == 403
    scraped = requests.get(f"{url}/metrics", headers=scrapes, timeout=300)
    families = {family.name: family for family in text_string_to_metric_families(scraped.text)}
    answered = [one.value for one in families["demur_requests"].samples if one.labels.get("decision") == "answered"]
    assert sum(answered) == 8  # of both workers
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 0
