"""`demur study` on the command line: sampled cells, exit codes, files."""

from __future__ import annotations

import json

import pytest

from cli.test_sampling_verbs import sums

TOML = """
[study]
name = "mine"
n_cal = 30
splits = 5
alphas = [0.2]
compute = ["self-consistency"]

[[cells]]
dataset = "sums"
model = "adder"
questions = "builtin:addition"
store = "run.db"
paths = 4
limit = 80
base_url = "URL"
greedy = "sample"
"""


@pytest.fixture
def study(demur, server, tmp_path):
    server.behave = sums
    (tmp_path / "study.toml").write_text(TOML.replace("URL", server.url))
    return tmp_path / "study.toml"


def test_a_cell_is_sampled_scored_and_evaluated_and_a_second_time_costs_nothing(demur, study, server):
    ran = demur("study", "study.toml", "--no-figures")
    assert ran.code == 0, ran.err
    assert "self-consistency" in ran.out
    assert "greedy" in ran.out
    paid = len(server.requests)
    again = demur("study", "study.toml", "--no-figures", "--json")
    assert again.code == 0
    assert len(server.requests) == paid
    assert again.json["cells"] == ["sums / adder"]
    timed = json.loads((study.parent / "results/mine/tables/time-sampling.json").read_text())
    assert timed["rows"][0]["Dataset"] == "sums"


def test_an_interrupted_study_says_how_to_go_on(demur, study, server, monkeypatch):
    """Ctrl-C while a cell is sampled ends the study; the next one goes on from there."""
    import os
    import signal

    def once(number, body, request):
        if number == 30:
            os.kill(os.getpid(), signal.SIGINT)
        return sums(number, body, request)

    server.behave = once
    ran = demur("study", "study.toml", "--no-figures")
    assert ran.code == 130
    assert "Run the same command again to go on" in ran.err
    assert demur("study", "study.toml", "--no-figures").code == 0


def test_a_failing_cell_makes_exit_code_1(demur, study):
    study.write_text(study.read_text() + '\n[[cells]]\ndataset = "x"\nmodel = "y"\npools = "none.jsonl"\n')
    ran = demur("study", "study.toml", "--no-figures")
    assert ran.code == 1
    assert "failed: x / y: " in ran.out
    assert "Wrote" in ran.out


def test_bad_input_gets_one_line(demur, study):
    for arguments, said in (
        (("nothing.toml",), "cannot be read"),
        (("study.toml", "--format", "gif"), "figures come as svg, png, pdf"),
    ):
        ran = demur("study", *arguments)
        assert ran.code == 2
        assert said in ran.err
        assert ran.err.count("\n") == 1


def test_evaluate_draws_a_small_plot(demur, pools):
    ran = demur("evaluate", pools, "--score", "simulated", "--alpha", 0.1)
    assert "of the answered, right" in ran.out
    assert "A: alpha 0.1" in ran.out
    plot = [line for line in ran.out.splitlines() if "│" in line]
    assert sum("·" in line for line in plot) > 3
    assert sum("A" in line for line in plot) == 1
