"""Half-sampled runs: what is missing may not be missing at random, so nothing is promised without a word."""

from __future__ import annotations

import pytest

import demur as dm
from demur.descriptions import Description
from demur.errors import StoreError
from demur.records import Path, Problem
from demur.store import PathScore, PlacedPath, Store

WHOLE, LACKING = 60, 7


@pytest.fixture
def half(demur, tmp_path):
    """A run in which five problems have no path and two have one of three."""
    problems = [Problem(f"q{k}", f"What is {k}?", (str(k),), extra={"task": "math"}) for k in range(WHOLE + LACKING)]
    with Store("run.db", create=True) as store:
        run = store.open_run("run", Description(sampling={"model": "m"}), 3)
        run.add_problems(problems)
        placed = [(k, j) for k in range(WHOLE) for j in range(3)] + [(WHOLE, 0), (WHOLE + 1, 2)]
        answers = [str(k + (j == 2 or k % 7 == 0)) for k, j in placed]
        paths = [Path(answer, "text", extra={"extraction": "boxed"}) for answer in answers]
        run.save([PlacedPath(k, j, path) for (k, j), path in zip(placed, paths, strict=True)])
        run.save_scores("s", {"scorer": "imported"}, [PathScore(k, j, float(-j)) for k, j in placed])
    (tmp_path / "study.toml").write_text(
        '[study]\nalphas = [0.2]\nn_cal = 30\nsplits = 3\n[[cells]]\ndataset = "d"\nmodel = "m"\nstore = "run.db"\n'
    )
    return "run.db"


VERBS = {
    "calibrate": ["calibrate", "run.db", "--alpha", 0.2],
    "evaluate": ["evaluate", "run.db", "--alpha", 0.2],
    "plan": ["plan", "run.db", "--alpha", 0.2],
    "audit": ["audit", "run.db", "--policy", "policy.json"],
    "report": ["report", "run.db", "--alpha", 0.2, "-o", "page.html"],
    "report on a policy": ["report", "run.db", "--policy", "policy.json", "-o", "page.html"],
    "score --list": ["score", "run.db", "--list"],
}


@pytest.mark.parametrize("arguments", VERBS.values(), ids=VERBS)
def test_what_prints_a_promise_or_its_figures_wants_to_be_told(demur, half, arguments):
    calibrated = demur("calibrate", half, "--alpha", 0.2, "--hold-out", 0.5, "--partial", "-o", "policy.json")
    assert calibrated.code == 0, calibrated.err
    ran = demur(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("error: 7 of 67 problems of the run 'run' lack paths; what is missing may not be missing")
    assert "the same `demur sample` command again, or leave it out with --partial" in ran.err
    ran = demur(*arguments, "--partial")
    assert ran.code == 0, ran.err
    assert "note: 7 of 67 problems of the run 'run' lack paths and are left out" in ran.err


@pytest.mark.parametrize("verb", ["calibrate", "evaluate", "plan"])
def test_how_many_were_left_out_is_told_to_machines_too(demur, half, verb):
    assert demur(*VERBS[verb], "--partial", "--json").json["left_out"] == 7


def test_a_study_names_the_cell_and_goes_on_when_told(demur, half):
    ran = demur("study", "study.toml", "--no-figures")
    assert ran.code == 1
    assert "d / m: 7 of 67 problems of the run 'run' lack paths" in ran.out
    assert demur("study", "study.toml", "--no-figures", "--partial").code == 0


def test_decisions_are_made_on_what_is_whole_and_say_so(demur, half):
    demur("calibrate", half, "--alpha", 0.2, "--hold-out", 0.5, "--partial", "-o", "policy.json")
    ran = demur("decide", half, "--policy", "policy.json", "--json")
    assert (ran.code, ran.json["problems"]) == (0, WHOLE)
    assert "7 of 67 problems" in ran.err


def test_a_whole_run_and_a_file_need_no_word(demur, half, pools):
    with Store(half) as store:
        run = store.run()
        run.save([PlacedPath(k, j, Path("1", "")) for k in range(WHOLE, WHOLE + LACKING) for j in range(3)])
    ran = demur("calibrate", half, "--alpha", 0.2)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("Answers are compared by mathematics@3: 201 numbers.\n")
    assert demur("calibrate", pools, "--partial").code == 0


def test_python_wants_to_be_told_too(half):
    with pytest.raises(StoreError, match=r"7 of 67 problems.* with partial=True"):
        dm.read_pools(half)
    assert dm.read_pools(half, partial=True).left_out == 7
