"""Policies whose key is learned, from the command line: `decide`, `audit` and `report` follow them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import demur as dm
from demur.cli import app
from demur.pools.jsonl import read_pools
from demur.pools.source import PoolSource

SKILL = np.array([0.9, 0.85, 0.4, 0.4, 0.35, 0.35, 0.3, 0.3])


def lines(first, n, seed):
    rng = np.random.default_rng(seed)
    made = []
    for row in range(first, first + n):
        right = rng.random(len(SKILL)) < 1 / (1 + np.exp(-np.log(SKILL / (1 - SKILL)) - rng.normal()))
        answers = np.where(right, row, row + rng.integers(1, 4, len(SKILL)))
        paths = [{"answer": str(answer), "text": f"So {answer}.", "src": f"m{j}"} for j, answer in enumerate(answers)]
        made.append(json.dumps({"id": f"p{row}", "question": f"What is {row}?", "gold": str(row), "paths": paths}))
    return "\n".join(made) + "\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learned")
    for name, first, n in (("tune", 0, 150), ("cal", 1000, 150), ("new", 2000, 80)):
        (folder / f"{name}.jsonl").write_text(lines(first, n, first), encoding="utf-8")
    tune, cal = (PoolSource(read_pools(folder / f"{name}.jsonl")) for name in ("tune", "cal"))
    recipe = tune.recipe(tie_break="jitter:0")
    fit = dm.fit_learned(dm.vote_pools(tune, recipe=recipe))
    assert fit.better
    dm.calibrate(dm.vote_pools(cal, recipe=recipe.led_by(fit.key)), alpha=0.1).save(folder / "policy.json")
    return folder


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_decide_ranks_by_the_learned_confidence_and_says_so(files):
    done = run("decide", files / "new.jsonl", "--policy", files / "policy.json", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert 0 < told["n_answered"] < told["problems"]
    for line in told["decisions"]:
        assert list(line["key"]) == ["learned", "jitter"]
        above = [line["key"]["learned"], line["key"]["jitter"]] > line["threshold_key"]
        assert (line["decision"] == "answer") == above
        assert "learned confidence" in line["explanation"]
    assert run("decide", files / "new.jsonl", "--policy", files / "policy.json").exit_code == 0


@pytest.mark.parametrize("verb", [("audit",), ("decide", "--fdr", "0.2")])
def test_other_verbs_follow_the_policy(files, verb):
    done = run(verb[0], files / "new.jsonl", "--policy", files / "policy.json", *verb[1:])
    assert done.exit_code == 0, done.output


def test_report_follows_the_policy(files, tmp_path):
    done = run("report", files / "new.jsonl", "--policy", files / "policy.json", "-o", tmp_path / "report.html")
    assert done.exit_code == 0, done.output


def test_pools_without_the_sources_of_the_key_are_refused_in_one_line(files, tmp_path):
    bare = [json.loads(line) for line in (files / "new.jsonl").read_text(encoding="utf-8").splitlines()]
    for record in bare:
        for path in record["paths"]:
            del path["src"]
    (tmp_path / "bare.jsonl").write_text("\n".join(map(json.dumps, bare)), encoding="utf-8")
    done = run("decide", tmp_path / "bare.jsonl", "--policy", files / "policy.json")
    assert done.exit_code != 0
    assert "no path from any of the 8 sources that the learned key knows" in str(done.exception)
