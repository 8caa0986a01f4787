"""The page on serving, followed from its own text: a run, a policy, `demur serve`, clients, feedback, keys."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import blocks
from typer.main import get_command

from asked_over_http import IGNORED
from demur.cli import app
from demur.server import outcomes
from demur.server.api import asking, replies
from demur.server.api.metrics import Metrics
from loopback import Loopback
from processes import Process
from test_tutorials import DOCS, command, one_step

pytest.importorskip("openai", reason="the page uses the official client")
PAGE = DOCS / "serving.md"
MODEL, SERVICE = "http://localhost:8000/v1", "http://localhost:8080"


@pytest.fixture
def model():
    running = Loopback(one_step).start()
    yield running
    running.stop()


class Reader:
    """Does what the page says, with a model and a service on ports of their own."""

    def __init__(self, folder: Path, model: str) -> None:
        self.folder, self.model, self.service = folder, model, SERVICE
        self.serving: Process[str] | None = None
        self.names: dict[str, object] = {"__name__": "serving"}
        self.printed: list[str] = []

    def python(self, block) -> None:
        code = "\n" * (block.line - 1) + block.text.replace(SERVICE, self.service)
        exec(compile(code, str(PAGE), "exec"), self.names)

    def console(self, line: str) -> None:
        words = shlex.split(line.removeprefix("$ ").replace(SERVICE, self.service))
        if words[:2] == ["demur", "serve"]:
            self.serve(words[2:])
        elif words[0] == "curl":
            if shutil.which("curl") is None:
                return
            ran = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
            self.printed.append(ran.stdout)
        else:
            self.printed.append(command(line, self.folder, self.model))

    def serve(self, flags: list[str]) -> None:
        told = [word.replace(MODEL, self.model) for word in flags]
        with (self.folder / "service.log").open("w") as lines:
            self.serving = Process(
                [sys.executable, "-m", "demur", "serve", *told, "--port", "0", "--json"],
                cwd=self.folder, stdout=subprocess.PIPE, stderr=lines, text=True,
            )  # fmt: skip
        line = self.serving.stdout.readline()
        assert line, (self.folder / "service.log").read_text()
        self.service = json.loads(line)["address"].removesuffix("/v1")
        subprocess.run(
            ["curl", "-s", "--retry", "50", "--retry-connrefused", "--retry-delay", "1", f"{self.service}/healthz"],
            capture_output=True, check=True,
        )  # fmt: skip

    def end(self) -> int:
        self.serving.terminate()
        code = self.serving.wait(300)
        self.serving.stdout.close()
        return code


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl")
def test_the_page_on_serving(model, tmp_path, monkeypatch, capsys):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    reader = Reader(tmp_path, model.url)
    try:
        for block in blocks(PAGE):
            if block.language == "python":
                reader.python(block)
            elif block.language == "console":
                for line in block.text.splitlines():
                    reader.console(line)
    finally:
        if reader.serving is not None:
            reader.end()
    told = capsys.readouterr().out
    assert "0.2 ['temperature']" in told
    assert '"verdict":"right"' in told
    (curled,) = [text for text in reader.printed if text.startswith("{")]
    assert json.loads(curled)["demur"]["policy"] == "policy:v1"
    assert "billing" in reader.printed[-1]
    lines = [json.loads(line) for line in (tmp_path / "service.log").read_text().splitlines() if line.startswith("{")]
    assert len([line for line in lines if line["event"] == "decided"]) == 3
    assert "coins" not in json.dumps(lines)


def rows(heading: str) -> str:
    """The part of the page under a heading, as far as the next of any level."""
    return re.split(r"^#{2,3} ", PAGE.read_text().split(f"{heading}\n", 1)[1], flags=re.MULTILINE)[0]


def test_the_page_names_every_metric_and_no_other():
    named = set(re.findall(r"`(demur_\w+)`", rows("### Metrics")))
    counted = {"counter": "_total"}
    assert named == {
        family.name + counted.get(family.type, "") for family in Metrics().registry.collect() if family.name
    }


def test_the_page_names_every_cause_and_every_refusal():
    page = PAGE.read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", page.split("| cause |")[1].split("\n\n")[0], re.MULTILINE)) == set(
        outcomes.CAUSES
    )
    refused = rows("## 5. What is refused and what is ignored")
    for name in asking._REFUSED:
        assert f"`{name}`" in refused, name
    assert not set(re.findall(r"`(\w+)`", refused.split("Everything else")[0])) & set(IGNORED)


def test_the_page_names_what_a_reply_holds():
    told = rows("## 4. What comes back")
    source = Path(replies.__file__).read_text()
    for name in set(re.findall(r'^ {4,8}"(\w+)":|told\["(\w+)"\]', source.split("def usage")[0], re.MULTILINE)):
        (field,) = filter(None, name)
        assert f"`{field}`" in told, field
    for header in re.findall(r'"(x-demur-[\w-]+)"', source):
        assert f"`{header}`" in told, header


def test_the_flags_of_the_page_are_flags():
    known = {flag for verb in get_command(app).commands.values() for option in verb.params for flag in option.opts}
    text = re.sub(r"```sh.*?```", "", PAGE.read_text(), flags=re.DOTALL)
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) <= known | {"--scale"}


def test_what_the_page_types_into_shells_are_commands_of_demur():
    shell = "".join(block.text for block in blocks(PAGE) if block.language == "sh")
    typed = re.findall(r"(?:demur/bin/demur|-T demur|^demur) ((?:keys|serve) [^>\n]*)", shell, re.MULTILINE)
    assert len(typed) == 4
    for line in typed:
        verb, *arguments = shlex.split(line)
        assert get_command(app).commands[verb].make_context(verb, arguments).params["store"]
