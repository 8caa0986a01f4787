"""Every table of every verb, at 80 and 120 columns, on simulated and on recorded pools."""

from __future__ import annotations

import json

import pytest

from demur.store import Store
from demur.store.rows import PathScore
from loopback import choice, reply

LONG = "organisation/Some-Reward-Model-V2-with-a-Long-Name-8B"
WIDTHS = [80, 120]


def tables_in(text):
    """The lines of each table: from its titles to the blank line behind it."""
    lines = text.splitlines()
    rules = [number for number, line in enumerate(lines) if line and set(line) == {"─"}]
    tables = []
    for rule in rules:
        first = next(number for number in range(rule, -1, -1) if not lines[number].strip()) + 1
        last = next(number for number in range(rule, len(lines)) if not lines[number].strip())
        tables.append(lines[first:last])
    return tables


def fits(ran, width, *, tables=1):
    assert ran.code in (0, 3), ran.err
    found = tables_in(ran.out)
    assert len(found) >= tables, ran.out
    for table in found:
        assert all(len(line) <= width for line in table), "\n".join(table)
    return ran.out


@pytest.fixture(params=WIDTHS)
def width(request, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(request.param))
    return request.param


@pytest.fixture
def run(demur, pools):
    """A run with many scores, two of them with long names."""
    assert demur("import", pools, "-o", "run.db").code == 0
    with Store("run.db") as store:
        run = store.run()
        numbers = run.numbers()
        for name, sign in (("judge", 1.0), (LONG, -1.0), (LONG.replace("V2", "V3"), 0.5)):
            scores = [
                PathScore(numbers[pool.problem.id], place, sign * path.scores["simulated"], "floor" if place else None)
                for pool in run.pools()
                for place, path in enumerate(pool.paths)
            ]
            run.save_scores(name, {"scorer": "judge", "normaliser": "pool_z"}, scores)
    return "run.db"


def test_calibrate_decide_and_audit(demur, run, width):
    alphas = ["--alpha", 0.001, "--alpha", 0.05, "--alpha", 0.1, "--alpha", 0.9]
    flags = ["--score", LONG, "--tie-break", "mean_score", "--hold-out", 0.5, "-o", "policy.json"]
    text = fits(demur("calibrate", run, *flags, *alphas), width)
    assert "always answers" in text
    assert "never answers" in text
    fits(demur("audit", run, "--policy", "policy.json"), width)
    for alpha in (0.001, 0.1, 0.9):
        fits(demur("decide", run, "--policy", "policy.json", "--alpha", alpha), width)


def test_evaluate(demur, run, width):
    alphas = ["--alpha", 0.001, "--alpha", 0.1]
    fits(demur("evaluate", run, "--score", "simulated", "--splits", 5, *alphas), width, tables=2)


def test_plan(demur, run, width):
    alphas = ["--alpha", 0.01, "--alpha", 0.1, "--delta", 0.1]
    fits(demur("plan", *alphas), width)
    fits(demur("plan", *alphas, "--accuracy", 0.8), width)
    fits(demur("plan", run, "--score", LONG, *alphas), width)


def test_score_list_names_long_scores_in_full_beneath(demur, run, width):
    text = fits(demur("score", run, "--list"), width)
    assert LONG in text
    short = [line.partition(" is ") for line in text.splitlines() if " is organisation/" in line]
    assert all(text.count(cut) >= 2 for cut, _, _ in short)
    assert len(short) == 2


def test_runs_and_answers(demur, run, width):
    fits(demur("runs", run), width)
    fits(demur("answers", run), width)


def test_a_study(demur, run, width, tmp_path):
    (tmp_path / "s.toml").write_text(
        '[study]\nname = "s"\nalphas = [0.05, 0.1]\nsplits = 3\n\n'
        f'[[cells]]\ndataset = "simulated"\nmodel = "{LONG}"\nstore = "run.db"\n'
    )
    fits(demur("study", "s.toml", "--no-figures", "-o", "results"), width)


def test_doctor(demur, server, width):
    server.behave = lambda n, body, r: reply(*(choice("7") for _ in range(body.get("n", 1))))
    ran = demur("doctor", "--base-url", server.url, "--model", LONG)
    fits(ran, width)


def test_clusters_and_several_sizes(demur, width, tmp_path):
    with (tmp_path / "pools.jsonl").open("w") as stream:
        for number in range(120):
            paths = [{"answer": str(number % 3 if path else 1)} for path in range(4 + number % 2)]
            record = {"id": f"question-{number:064d}", "gold": "1", "cluster": str(number // 2), "paths": paths}
            stream.write(json.dumps({**record, "question": f"Q{number}?"}) + "\n")
    flags = ["--alpha", 0.3, "--tie-break", "jitter:0"]
    fits(demur("calibrate", "pools.jsonl", *flags, "--hold-out", 0.5, "-o", "policy.json"), width)
    fits(demur("audit", "pools.jsonl", "--policy", "policy.json"), width)
    fits(demur("evaluate", "pools.jsonl", *flags, "--splits", 3), width, tables=2)
    text = fits(demur("decide", "pools.jsonl", "--policy", "policy.json"), width)
    assert f"question-{0:064d}" in text


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("smollm2_cap", ["--task", "qa"]),
        ("smollm2_add1", ["--task", "math"]),
        ("qwen25math_rm_math100", []),
        ("wisdom_gpt35_nlu_asdiv_single_answer", ["--answer-field", "answer_x"]),
    ],
)
def test_recorded_pools(demur, recorded_pools, width, name, flags):
    pools = recorded_pools / f"{name}.jsonl.gz"
    fits(demur("calibrate", pools, *flags, "--alpha", 0.2, "--hold-out", 0.5, "-o", "policy.json"), width)
    fits(demur("evaluate", pools, *flags, "--alpha", 0.2, "--splits", 3), width, tables=2)
    fits(demur("plan", pools, *flags, "--alpha", 0.2), width)
    fits(demur("score", pools, *flags, "--list"), width)
    fits(demur("decide", pools, "--policy", "policy.json"), width)
    fits(demur("audit", pools, "--policy", "policy.json"), width)
    fits(demur("answers", pools, *flags), width)


def test_a_pipe_has_no_width_to_fit_into(demur, run, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    text = fits(demur("calibrate", run, "--score", "judge"), 160)
    assert "alpha  answers above  answered  of those right  at least (95 %)" in text
