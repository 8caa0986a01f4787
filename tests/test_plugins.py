"""Plugins: a package brings a task, a scorer and a backend; its code runs when the user names it, and not before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import demur as dm
from demur.errors import InvalidValue, PluginError

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder into which pip has installed the example."""
    folder = tmp_path_factory.mktemp("site")
    installed = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
         "--disable-pip-version-check", "--target", str(folder), str(ROOT / "examples" / "plugin")],
        capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip
    assert installed.returncode == 0, installed.stderr
    return folder


@pytest.fixture
def run(site, tmp_path):
    """`demur …` in a process that has the plugin."""

    def demur(*arguments, path=str(site), code=0):
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        ran = subprocess.run(
            [sys.executable, "-m", "demur", *map(str, arguments)],
            capture_output=True, text=True, cwd=tmp_path, env=environment, check=False,
        )  # fmt: skip
        assert ran.returncode == code, ran.stderr + ran.stdout
        return ran

    return demur


def write_questions(folder, task=None):
    rows = [
        {"id": f"q{k}", "question": f"{k} + {2 * k}", "gold": str(3 * k)} | ({} if task is None else {"task": task})
        for k in range(1, 121)
    ]
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))


def test_the_command_line_samples_scores_calibrates_and_asks_by_a_plugin(run, tmp_path):
    write_questions(tmp_path)
    sampled = ("--task", "sums", "--backend", "abacus", "--backend-set", "slips=0.1", "-m", 5, "--no-logprobs")
    run("sample", "questions.jsonl", *sampled, "-o", "run.db")
    run("score", "run.db", "--score", "brevity")
    run("calibrate", "run.db", "--score", "brevity", "--task", "sums", "--alpha", 0.1, "-o", "policy.json")
    asking = ("ask", "30 + 12", "--policy", "policy.json", "--alpha", 0.1)
    told = run(*asking, "--backend", "abacus", "--backend-set", "slips=0.1", "--task", "sums", "--score", "brevity",
               "--json")  # fmt: skip
    assert json.loads(told.stdout)["answer"] == "42"
    assert "name it yourself: --task sums" in run(*asking, "--backend", "abacus", code=2).stderr
    unnamed = run(*asking, "--backend", "abacus", "--backend-set", "slips=0.1", "--task", "sums", code=2)
    assert "no file may make demur run a function; name it yourself: --score demur_sums:brevity" in unnamed.stderr
    assert "name it yourself: --task sums" in run("decide", "run.db", "--policy", "policy.json", code=2).stderr
    run("decide", "run.db", "--policy", "policy.json", "--task", "sums")


def test_no_file_loads_a_plugin(run, tmp_path):
    pools = [{"id": "q", "task": "sums", "gold": "1", "paths": [{"answer": "1"}]}]
    (tmp_path / "pools.jsonl").write_text("\n".join(map(json.dumps, pools)))
    assert "name it yourself: --task sums" in run("calibrate", "pools.jsonl", code=2).stderr
    (tmp_path / "demur.toml").write_text('[model]\nplugin = "abacus"\n')
    write_questions(tmp_path, "math")
    assert "plugin" in run("sample", "questions.jsonl", "-o", "run.db", code=2).stderr
    (tmp_path / "demur.toml").unlink()
    (tmp_path / "study.toml").write_text(
        '[study]\ncompute = ["brevity"]\n[score.brevity]\n[[cells]]\nmodel = "m"\ndataset = "d"\nstore = "run.db"\n'
    )
    assert (
        "no file may make demur run a plugin; name it yourself: --compute brevity"
        in run("study", "study.toml", code=2).stderr
    )


def test_doctor_lists_what_packages_bring(run):
    told = json.loads(run("doctor", "--plugins", "--json").stdout)["plugins"]
    assert [(row["kind"], row["name"], row["package"], row["works"]) for row in told] == [
        ("backend", "abacus", "demur-sums 0.1.0", True),
        ("scorer", "brevity", "demur-sums 0.1.0", True),
        ("task", "sums", "demur-sums 0.1.0", True),
    ]
    assert "abacus" in run("doctor", "--plugins").stdout


def test_python_uses_them_by_name(site, tmp_path):
    code = """
import demur as dm
backend = dm.backends.backend_named("abacus", slips="0")
task = dm.tasks.chosen("sums")
assert task.origin == "demur-sums 0.1.0", task.origin
pipeline = dm.Pipeline(backend, n_paths=3, score="brevity")
problems = [dm.Problem(f"q{k}", f"{k} + {k}", (str(2 * k),), extra={"task": "sums"}) for k in range(30)]
policy = pipeline.run(problems, "run.db").calibrate(alpha=0.1)
print(pipeline.ask("20 + 22", policy).decision.answer)
"""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False,
        env={**os.environ, "PYTHONPATH": str(site)},
    )  # fmt: skip
    assert ran.stdout.strip() == "42", ran.stderr


def bring(folder, entries, **modules):
    """A package in a folder, as pip leaves it."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    info = folder / f"{folder.name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {folder.name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)
    return folder


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """A plugin that does everything wrong: fails on import, claims names, gives what is none."""
    folder = tmp_path / "wrong"
    folder.mkdir()
    entries = (
        "[demur.tasks]\nmath = falls:MATH\nfallen = falls:TASK\nodd = wrong_parts:ODD\nother = wrong_parts:OTHER\n"
        "[demur.scorers]\njudge = falls:judge\nfalling = falls:score\nseven = wrong_parts:SEVEN\n"
        "[demur.backends]\nopenai = falls:OpenAI\nhollow = wrong_parts:Hollow\nlost = wrong_parts:missing\n"
    )
    parts = (
        "import demur as dm\nODD = 7\nSEVEN = 7\nOTHER = dm.tasks.Task('another', dm.answers.plain)\n"
        "class Hollow:\n    def __init__(self, size='1'):\n        self.size = int(size)\n"
    )
    bring(folder, entries, falls="raise RuntimeError('no\\nluck')", wrong_parts=parts)
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in ("falls", "wrong_parts"):
        sys.modules.pop(name, None)


def test_a_plugin_that_fails_breaks_nothing_that_does_not_use_it(broken, run, tmp_path):
    assert dm.tasks.task_named("math") is dm.tasks.MATH
    assert dm.tasks.chosen("math") is dm.tasks.MATH
    assert dm.scoring.make_scorer("perplexity").name == "perplexity"
    run("simulate", "-o", "pools.jsonl", "-n", 60, path=str(broken))
    run("calibrate", "pools.jsonl", "--alpha", 0.1, "--task", "math", path=str(broken))
    run("--help", path=str(broken))


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda: dm.tasks.chosen("fallen"), r"'fallen' of the package wrong 1.0 cannot be loaded: RuntimeError: no l"),
        (lambda: dm.tasks.chosen("odd"), "is no demur.tasks.Task of that name, but 7"),
        (lambda: dm.tasks.chosen("other"), "but the task 'another'"),
        (lambda: dm.scoring.make_scorer("falling"), "the scorer 'falling' of the package wrong 1.0 cannot be loaded"),
        (lambda: dm.scoring.make_scorer("seven"), "neither a scorer nor a function of a pool"),
        (lambda: dm.backends.backend_named("hollow"), "it has no concurrency, describe, sample, close"),
        (lambda: dm.backends.backend_named("hollow", size="x"), "cannot be made: ValueError"),
        (lambda: dm.backends.backend_named("hollow", colour="red"), "cannot be made: TypeError"),
        (lambda: dm.backends.backend_named("lost"), "cannot be loaded: AttributeError"),
    ],
)  # fmt: skip
def test_a_plugin_that_does_wrong_is_told_in_one_line_when_it_is_used(broken, use, said):
    with pytest.raises(PluginError, match=said) as told:
        use()
    assert "\n" not in str(told.value)


def test_a_name_of_demurs_own_is_never_taken_and_doctor_says_so(broken, run):
    with pytest.raises(InvalidValue, match="'openai' is one of demur's own backends"):
        dm.backends.backend_named("openai")
    rows = json.loads(run("doctor", "--plugins", "--json", path=str(broken)).stdout)["plugins"]
    why = {(row["kind"], row["name"]): row["why"] for row in rows}
    for taken in (("task", "math"), ("scorer", "judge"), ("backend", "openai")):
        assert "demur's own" in why[taken]
    assert all(why.values()) or [key for key, told in why.items() if not told] == [("backend", "hollow")]


def test_a_name_that_two_packages_claim_is_nobodys(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        bring(tmp_path / name, f"[demur.tasks]\nsame = {name}:TASK\n")
        monkeypatch.syspath_prepend(str(tmp_path / name))
    with pytest.raises(PluginError, match=r"several packages bring a task 'same': one 1.0 and two 1.0; uninstall one"):
        dm.tasks.chosen("same")


def test_an_unknown_name_lists_what_plugins_bring(broken):
    with pytest.raises(InvalidValue, match="plugins bring fallen, math, odd, other"):
        dm.tasks.chosen("unheard-of")
    with pytest.raises(InvalidValue, match=r"package.module:function; plugins bring falling, judge, seven"):
        dm.scoring.make_scorer("unheard-of")
    with pytest.raises(InvalidValue, match="there is: hollow, lost, openai"):
        dm.backends.backend_named("unheard-of")


def test_settings_of_a_backend_are_told_apart(run, tmp_path):
    write_questions(tmp_path, "math")
    for flags, said in (
        (("--backend-set", "slips=1"), "--backend-set is for a backend that --backend names"),
        (("--backend", "abacus", "--backend-set", "slips"), "--backend-set takes KEY=VALUE, got 'slips'"),
        (("--backend", "nobody"), "no installed package brings a backend 'nobody'; there is: abacus"),
    ):
        assert said in run("sample", "questions.jsonl", "-o", "run.db", *flags, code=2).stderr
