"""What `demur serve` refuses at start, in one line, before anything listens."""

from __future__ import annotations

import socket
import sqlite3

import pytest

from demur.backends import OpenAI
from demur.pipeline.pipeline import Pipeline
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


def test_a_step_of_the_threshold_that_means_nothing_or_has_no_audits(serve):
    policy = ("--policy", "sums.json")
    refused(serve(*policy, "--online-step", 1.5), "online_step must lie strictly between 0 and 1, got 1.5")
    refused(serve(*policy, "--online-step", 0.01, "--no-log"), "needs the log that they are in; leave --no-log out")


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
    refused(demur("serve", "--policy", "plain.json"), "does not say how its paths were sampled; calibrate on a run")


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


@pytest.mark.parametrize(
    "wrong",
    [
        ("--policy", "a b=sums.json"),
        ("--policy", "sums.json", "--alias", "x=other"),
        ("--policy", "sums.json", "--host", "0.0.0.0"),
        ("--policy", "sums.json", "--host", "127.0.0.300"),
        ("--policy", "sums.json", "--canaries", "none.db"),
    ],
)
def test_what_does_not_start_leaves_the_store_as_it_was(serve, tmp_path, wrong):
    """Else other servers on this store would go over to a version that was refused."""
    ServiceStore(tmp_path / "service.db", create=True).close()
    refused(serve(*wrong))
    with ServiceStore(tmp_path / "service.db") as store:
        assert store.policies.all() == []


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--grace", "nan"), "--grace takes 0 to 3600 seconds, got nan"),
        (("--grace", "-1"), "--grace takes 0 to 3600 seconds, got -1"),
        (("--request-seconds", "0"), "give another --request-seconds"),
        (("--canary-rate", "0"), "give another --canary-rate"),
        (("--fan-out", "0"), "give more --fan-out"),
        (("--keep-days", "0"), "leave --keep-days out to forget nothing"),
        (("--at", "other.model=x"), "--at other.model=x names 'other', and there are sums"),
        (("--at", "sums.colour=x"), "--at sums.colour=x: there is no setting 'colour' here, but base_url, model"),
    ],
)
def test_values_out_of_range_are_told_by_their_flags(serve, flags, words):
    refused(serve("--policy", "sums.json", *flags), words)


def test_canaries_of_another_model_name_their_run(serve, server, tmp_path):
    Pipeline(OpenAI(server.url, "subtractor"), n_paths=5).run(PROBLEMS[:2], tmp_path / "other.db")
    ran = serve("--policy", "sums.json", "--canaries", "other.db")
    refused(ran, "the questions of other.db were not put as the policy's: sampling.model is 'adder'", "--canaries the")


def test_a_store_of_a_newer_version_or_none_at_all(serve, tmp_path):
    ServiceStore(tmp_path / "service.db", create=True).close()
    connection = sqlite3.connect(tmp_path / "service.db")
    with connection:
        connection.execute("UPDATE demur_meta SET value = '99' WHERE name = 'schema'")
    connection.close()
    refused(serve("--policy", "sums.json", "--store", "service.db"), "has schema 99, and this demur reads up to")
    (tmp_path / "text.db").write_text("no database")
    refused(serve("--policy", "sums.json", "--store", "text.db"), "text.db")
