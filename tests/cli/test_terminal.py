"""Nothing that a file, a server or a model says can command the terminal, through any verb."""

from __future__ import annotations

import io
import json
import re
import sys

import pytest

from demur.cli.progress import Meter
from demur.engine.progress import Progress
from loopback import choice, error, reply

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\x08\x7f\u202eabc\u2066\u200f\x85\u2028"
_ALLOWED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def harmless(ran) -> bool:
    """No control character but the ends of lines, and no control of direction."""
    return not _ALLOWED.search(ran.out + ran.err)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "JUDGE_BASE_URL", "JUDGE_MODEL"):
        monkeypatch.delenv(name, raising=False)


def write_pools(path, n=60):
    """Every text of every field is hostile."""
    score = f"s{EVIL}"
    with path.open("w") as stream:
        for number in range(n):
            paths = [
                {
                    "answer": f"{EVIL}{number if k else k}",
                    "text": f"so {EVIL}",
                    "scores": {score: 0.1 * k + number},
                }
                for k in range(3)
            ]
            problem = {"id": f"{number}{EVIL}", "question": f"What{EVIL} is {number}?", "gold": f"{EVIL}{number}"}
            stream.write(json.dumps({**problem, "model": f"m{EVIL}", "task": f"t{EVIL}", "paths": paths}) + "\n")


def test_every_verb_on_files(demur, tmp_path, monkeypatch):
    write_pools(tmp_path / "pools.jsonl")
    monkeypatch.setattr(sys, "stdin", io.StringIO("p\ny\nn\ns\nu\n" * 20))
    score = f"s{EVIL}"
    verbs = [
        ["calibrate", "pools.jsonl", "--score", EVIL],
        ["calibrate", "pools.jsonl", "--alpha", 0.2, "-o", "p.json"],
        ["label", "pools.jsonl", "--alpha", 0.2, "--by", EVIL, "-o", "labels.jsonl"],
        ["label", "pools.jsonl", "-o", "labels.jsonl", "--in-sheet", f"{EVIL}.csv"],
        ["decide", "pools.jsonl", "--policy", "p.json"],
        ["audit", "pools.jsonl", "--policy", "p.json"],
        ["evaluate", "pools.jsonl", "--alpha", 0.2, "--splits", 2],
        ["report", "pools.jsonl", "--alpha", 0.2],
        ["answers", "pools.jsonl", "-o", f"classed{EVIL.replace('/', '')}.jsonl"],
        ["answers", "--explain", EVIL, f"1{EVIL}"],
        ["import", "pools.jsonl", "-o", "run.db", "--run", EVIL],
        ["runs", "run.db"],
        ["runs", "run.db", "--run", EVIL],
        ["score", "run.db", "--list"],
        ["score", "pools.jsonl", "--list"],
        ["score", "run.db", "--score", "self-consistency"],
        ["score", "run.db", "--score", EVIL],
        ["score", "run.db", "--score", "judge"],
        ["score", "run.db", "--forget", EVIL],
        ["export", "run.db", "-o", "out.jsonl"],
        ["sample", "pools.jsonl", "--task", "math", "--dry-run", "-o", "other.db"],
        ["sample", EVIL, "-o", "other.db"],
        ["ask", EVIL, "--policy", "p.json"],
        ["study", EVIL],
        [EVIL],
        ["runs", "--" + EVIL],
    ]
    for verb in verbs:
        for more in ([], ["--json"]):
            ran = demur(*verb, *more)
            assert harmless(ran), (verb, ran.out, ran.err)
            assert "Traceback" not in ran.err
    assert score not in demur("runs", "run.db", "--json").out
    assert any(score in run["scores"] for run in demur("runs", "run.db", "--json").json["runs"])


@pytest.mark.parametrize("toml", ["[{}]", "[model]\n{} = 1", "[sampling]\nprompt = {}"])
def test_configurations_and_studies(demur, tmp_path, toml):
    (tmp_path / "demur.toml").write_text(toml.format(json.dumps(EVIL.replace("\x7f", ""))), encoding="utf-8")
    for verb in (["sample", "builtin:addition", "-o", "x.db"], ["study", "demur.toml"], ["doctor"]):
        ran = demur(*verb)
        assert ran.code == 2
        assert harmless(ran), ran.err


def test_every_verb_on_servers(demur, server):
    flags = ["--base-url", server.url, "--model", EVIL]
    sampled = ["sample", "builtin:addition", "-m", 2, "--limit", 40, "-o", "run.db", *flags]
    for status in (400, 401, 404):
        server.behave = lambda *_, status=status: error(status, EVIL)
        assert harmless(demur(*sampled))
        assert harmless(demur("doctor", *flags))
    server.behave = lambda n, body, r: reply(
        *(choice(f"\\boxed{{{(body['seed'] + k) % 2}{EVIL}}}", finish_reason=EVIL[:3]) for k in range(body.get("n", 1)))
    )
    for verb in (
        sampled,
        ["calibrate", "run.db", "--score", "perplexity", "--alpha", 0.3, "-o", "p.json"],
        ["decide", "run.db", "--policy", "p.json"],
        ["ask", "What is 1 + 1?", "--policy", "p.json", *flags],
        ["runs", "run.db", "--run", "run"],
        ["doctor", *flags],
    ):
        for more in ([], ["--json"]):
            assert harmless(demur(*verb, *more)), verb
    server.behave = lambda n, body, r: error(500, EVIL)
    judge = ["--set", f"judge.base_url={server.url}", "--set", "judge.model=m", "--set", "judge.patience=0"]
    assert harmless(demur("score", "run.db", "--score", "judge", *judge))


def test_the_bar_shows_trouble_as_it_is_written(monkeypatch, capsys):
    """What looks like markup is neither obeyed nor an error."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    progress = Progress(10, 5, saved=1, retries=1, trouble=f"[/red][link=file:///x]{EVIL}")
    with Meter() as meter:
        meter(progress)
        meter._bar.refresh()
        shown = meter._bar.get_renderable()
        from rich.console import Console

        console = Console(width=300, file=sys.stdout)
        console.print(shown)
    told = capsys.readouterr().out
    assert "[/red][link=" in told
    assert not re.search(r"[\x07\x08\x9b\u202e]", told)
