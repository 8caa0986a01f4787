"""The tutorials and the page of plots, executed from their own text."""

from __future__ import annotations

import json
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pages import Block, blocks

from loopback import Loopback, choice, reply

DOCS = Path(__file__).resolve().parents[1] / "docs"
ADDRESS = "http://localhost:8000/v1"


def one_step(number, body, request):
    """A model that does one step of addition or subtraction, and slips now and then."""
    asked = body.get("messages", [{"content": str(body.get("prompt"))}])[-1]["content"]
    told = re.search(r"has (\d+) .*? (buys|gives away) (\d+)", asked)
    first, second = (int(told[1]), int(told[3])) if told else (1, 1)
    right = first + second if told and told[2] == "buys" else first - second
    said = []
    for k in range(body.get("n", 1)):
        rng = random.Random(f"{asked}{body.get('seed', number)}{k}")
        slipped = rng.random() < 0.3
        said.append(choice(f"The answer is {right + slipped * rng.choice((1, 1, 10))}.", [-rng.random() - slipped / 2]))
    return reply(*said)


@pytest.fixture
def model():
    running = Loopback(one_step).start()
    yield running
    running.stop()


def command(line, folder, address):
    arguments = shlex.split(line.removeprefix("$ ").replace(ADDRESS, address))
    assert arguments[0] == "demur", line
    ran = subprocess.run(
        [sys.executable, "-m", "demur", *arguments[1:]], cwd=folder, capture_output=True, text=True, check=False
    )
    allowed = (0, 3) if arguments[1] == "ask" else (0,)  # 3: it would rather not answer
    assert ran.returncode in allowed, f"{line}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def follow(page, folder, monkeypatch, address=ADDRESS):
    """Do what a page says, block by block; the names its Python leaves, and what its commands printed."""
    monkeypatch.chdir(folder)
    names, printed = {"__name__": page.stem}, []
    for block in blocks(page):
        if block.language == "python":
            code = "\n" * (block.line - 1) + block.text.replace(ADDRESS, address)
            exec(compile(code, str(page), "exec"), names)
        elif block.language == "console":
            printed += [command(line, folder, address) for line in block.text.splitlines()]
        elif block.title is not None:
            (folder / block.title).write_text(block.text, encoding="utf-8")
    return names, printed


def test_a_table_of_answers(tmp_path, monkeypatch, capsys):
    names, printed = follow(DOCS / "tutorials" / "table.md", tmp_path, monkeypatch)
    told = capsys.readouterr().out
    assert "the vote is right on" in told
    assert told.count("surprising above") == 2
    decided = [json.loads(line)["decision"] for line in (tmp_path / "decisions.jsonl").read_text().splitlines()]
    assert len(decided) == 200
    assert decided.count("answer") == int(names["decided"].answered.sum())  # the command line says what Python says
    assert "Consistent with the promise" in printed[1]


def test_a_model_behind_a_server(model, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    _, printed = follow(DOCS / "tutorials" / "server.md", tmp_path, monkeypatch, model.url)
    assert "Saved 2400 of 2400 paths" in printed[1]
    assert (tmp_path / "report.html").is_file()
    assert capsys.readouterr().out.strip() in ("9", "I would rather not answer.", "10", "19")
    questions = [json.loads(line) for line in (tmp_path / "questions.jsonl").read_text().splitlines()]
    assert [question["gold"] for question in questions] == ["84", "24"]


def test_a_paper_to_reproduce(tmp_path, monkeypatch, capsys):
    pytest.importorskip("altair", reason="figures need the extra report")
    follow(DOCS / "tutorials" / "paper.md", tmp_path, monkeypatch)
    assert "ce-simulated" in capsys.readouterr().out
    assert (tmp_path / "results" / "results.md").is_file()


def test_the_page_of_planning(tmp_path, monkeypatch, capsys):
    names, printed = follow(DOCS / "planning.md", tmp_path, monkeypatch)
    told = capsys.readouterr().out
    assert f"{names['row'].n} labels in all" in told
    assert "needs 19 labels (marginal)" in printed[0]
    assert "A guess" in printed[1]
    assert len((DOCS / "planning.md").read_text().splitlines()) <= 60


def test_the_page_of_plots_draws_each_figure_that_it_shows(tmp_path, monkeypatch):
    pytest.importorskip("altair", reason="figures need the extra report")
    page, names, drawn = DOCS / "plots.md", {}, set()
    for block in blocks(page):
        exec(block.text, names)
        if block.title is not None:
            assert names.pop("chart").to_dict()["$schema"]
            drawn.add(block.title)
    shown = set(re.findall(r"assets/plots/([\w-]+)\.svg", page.read_text()))
    assert shown == drawn == {path.stem for path in (DOCS / "assets" / "plots").glob("*.svg")}


def test_blocks_are_read_as_they_stand(tmp_path):
    page = tmp_path / "page.md"
    page.write_text('# A\n\n```python\nx = 1\n```\n\n```json title="a.json"\n{"a": 1}\n```\n')
    assert list(blocks(page)) == [Block("python", None, "x = 1\n", 4), Block("json", "a.json", '{"a": 1}\n', 8)]
