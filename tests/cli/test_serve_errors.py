"""What `demur serve` refuses at start, in one line, before anything listens."""

from __future__ import annotations

import socket
import sqlite3

import pytest

from demur.store.service import ServiceStore
from serving import PROBLEMS, adder, adding_pipeline


@pytest.fixture
def policy_file(server, tmp_path):
    server.behave = adder
    policy = adding_pipeline(server.url).run(PROBLEMS[:40], tmp_path / "run.db").calibrate(alpha=0.3)
    policy.save(tmp_path / "sums.json")
    return "sums.json"


@pytest.fixture
def serve(demur, server, policy_file):
    def run(*options, model="adder"):
        return demur("serve", "--base-url", server.url, "--model", model, "--port", 0, *options)

    return run


def refused(ran, *words):
    assert ran.code not in (0, 130)
    assert ran.out == ""
    assert "Traceback" not in ran.err
    last = ran.err.strip().splitlines()[-1]
    for word in words:
        assert word in last, ran.err


def test_no_policy_or_two_of_one_name(serve):
    refused(serve(), "name at least one policy")
    refused(serve("--policy", "sums.json", "--policy", "sums=other.json"), "two policies are named 'sums'")
    refused(serve("--policy", "a b=sums.json"), "'a b' is no name of a model")
    refused(serve("--policy", "none.json"), "none.json")


def test_another_model_than_the_calibrated_one(serve):
    ran = serve("--policy", "sums.json", model="other")
    assert ran.code not in (0, 130)
    assert "'adder'" in ran.err
    assert "'other'" in ran.err
    assert "Traceback" not in ran.err


def test_a_policy_that_does_not_say_how_its_paths_were_made(serve, demur, tmp_path):
    pools = [
        f'{{"id": "q{k}", "gold": "1", "paths": [{{"answer": "{k % 2}"}}, {{"answer": "{k % 2}"}}]}}' for k in range(60)
    ]
    (tmp_path / "pools.jsonl").write_text("\n".join(pools))
    assert demur("calibrate", "pools.jsonl", "--alpha", 0.6, "-o", "plain.json").code == 0
    refused(serve("--policy", "plain.json"), "does not say how its paths were sampled")


def test_aliases_of_nothing_and_alphas_that_were_not_calibrated(serve):
    refused(serve("--policy", "sums.json", "--alias", "x=other"), "there is no model 'other'")
    refused(serve("--policy", "sums.json", "--alias", "x=sums@0.05"), "not calibrated for alpha")
    refused(serve("--policy", "sums.json", "--alias", "x"), "--alias takes NAME=VALUE")
    refused(serve("--policy", "sums.json", "--alias", "sums=sums"), "is the name of a policy")


@pytest.mark.parametrize("share", ["0", "-0.5", "1.01", "nan"])
def test_a_share_of_audits_that_is_none(serve, share):
    refused(serve("--policy", "sums.json", "--audit-share", share), "share of audits must lie in (0, 1]")


def test_a_port_that_is_taken(demur, server, policy_file):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = demur(
            "serve", "--policy", policy_file, "--base-url", server.url, "--model", "adder", "--port", port, "--no-log"
        )
        refused(ran, f"nothing can listen on 127.0.0.1:{port}")


def test_a_store_of_a_newer_version_or_none_at_all(serve, tmp_path):
    ServiceStore(tmp_path / "service.db", create=True).close()
    connection = sqlite3.connect(tmp_path / "service.db")
    with connection:
        connection.execute("UPDATE demur_meta SET value = '99' WHERE name = 'schema'")
    connection.close()
    refused(serve("--policy", "sums.json", "--store", "service.db"), "has schema 99, and this demur reads up to")
    (tmp_path / "text.db").write_text("no database")
    refused(serve("--policy", "sums.json", "--store", "text.db"), "text.db")
