"""The shape of the package: size, imports, types, flags and what a verb loads, for the core and for the whole.

    python tools/shape.py            print the values
    python tools/shape.py --check    also fail, with a line per value, if one passes its limit in LIMITS
    python tools/shape.py --json     print them as JSON

The core is what a reader of the paper must understand; `WINGS` lists what it works without.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import mean, median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "demur"

WINGS = ("server", "monitoring", "study", "reports", "plot", "shown", "questions", "pools.neighbours", "engine.ray")
ANSWERS = "answers"

LIMITS: dict[str, dict[str, float]] = {}
"""The most that each value may be, by part and name; a later change may lower these, and raises none but lines."""


@dataclass(frozen=True)
class File:
    """One file of the package, read once."""

    module: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def import_lines(self) -> int:
        statements = [node for node in ast.walk(self.tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        return len({line for node in statements for line in range(node.lineno, (node.end_lineno or 0) + 1)})

    @property
    def uses_of_any(self) -> int:
        return len(re.findall(r"\bAny\b", self.text))

    @property
    def classes(self) -> list[str]:
        return [node.name for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]

    @property
    def function_lines(self) -> list[int]:
        kinds = ast.FunctionDef | ast.AsyncFunctionDef
        return [(node.end_lineno or 0) - node.lineno + 1 for node in ast.walk(self.tree) if isinstance(node, kinds)]


def files() -> list[File]:
    """Every file of the package, in order of module name."""
    read = []
    for path in SOURCE.rglob("*.py"):
        module = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
        read.append(File(module, path.read_text()))
    return sorted(read, key=lambda file: file.module)


def in_core(file: File) -> bool:
    """Whether a file belongs to no wing and is not the reader of answers, which has a size of its own."""
    inner = file.module.removeprefix("demur").lstrip(".")
    return not any(inner == other or inner.startswith(f"{other}.") for other in (*WINGS, ANSWERS))


def _statements(body: list[ast.stmt], *, lazy: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports of a module's body; with `lazy` also those in functions and for type checkers."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif lazy or not _is_lazy(node):
            for name in ("body", "orelse", "finalbody", "handlers"):
                yield from _statements(getattr(node, name, []), lazy=lazy)


def _is_lazy(node: ast.stmt) -> bool:
    """Whether what a statement imports is not imported with its module."""
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def imports(read: list[File], *, lazy: bool) -> dict[str, set[str]]:
    """The modules of the package that each module imports."""
    names = {file.module for file in read}

    def targets(file: File) -> Iterator[str]:
        for node in _statements(file.tree.body, lazy=lazy):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            else:
                members = [f"{node.module}.{alias.name}" for alias in node.names]
                yield from (member if member in names else str(node.module) for member in members)

    return {file.module: (names & set(targets(file))) - {file.module} for file in read}


def longest_chain(graph: dict[str, set[str]]) -> tuple[str, ...]:
    """The longest way along imports; a cycle is an error."""
    under_way: set[str] = set()

    @cache
    def chain(module: str) -> tuple[str, ...]:
        if module in under_way:
            raise ValueError(f"{module} imports itself through others")
        under_way.add(module)
        rest = max((chain(other) for other in sorted(graph[module] & graph.keys())), key=len, default=())
        under_way.discard(module)
        return (module, *rest)

    return max((chain(module) for module in sorted(graph)), key=len, default=())


def measure(read: list[File], graph: dict[str, set[str]], lazy_graph: dict[str, set[str]]) -> dict[str, float]:
    """The values of one part of the package; imports are counted among all its modules."""
    lines = sum(file.lines for file in read)
    modules = {file.module for file in read}
    functions = [length for file in read for length in file.function_lines]
    repeated = [name for name, count in Counter(name for file in read for name in file.classes).items() if count > 1]
    return {
        "lines": lines,
        "files": len(read),
        "median file": median(file.lines for file in read),
        "largest file": max(file.lines for file in read),
        "95 % of functions": sorted(functions)[len(functions) * 95 // 100],
        "longest chain": len(longest_chain({name: graph[name] & modules for name in modules})),
        "fan-out": round(mean(len(lazy_graph[name]) for name in modules), 2),
        "import lines, %": round(100 * sum(file.import_lines for file in read) / lines, 2),
        "Any per 1,000 lines": round(1000 * sum(file.uses_of_any for file in read) / lines, 2),
        "class names used twice": len(repeated),
    }


def flags() -> dict[str, int]:
    """How many options each verb has."""
    import typer.main

    from demur.cli import app

    group: Any = typer.main.get_command(app)
    return {
        name: sum(option.param_type_name == "option" for option in verb.params)
        for name, verb in sorted(group.commands.items())
    }


class _Model(BaseHTTPRequestHandler):
    """A model that gives every request the same answer."""

    def do_GET(self) -> None:
        self._reply({"object": "list", "data": [{"id": "shape", "object": "model"}]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = {"role": "assistant", "content": "The answer is 4."}
        choices = [{"index": i, "message": message, "finish_reason": "stop"} for i in range(asked.get("n") or 1)]
        usage = {"prompt_tokens": 9, "completion_tokens": 6, "total_tokens": 15}
        self._reply({"id": "1", "object": "chat.completion", "model": "shape", "choices": choices, "usage": usage})

    def _reply(self, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing: the table is all that is printed."""


_COUNTED = (
    "import atexit, sys\n"
    "def count():\n"
    "    with open({out!r}, 'w') as out:\n"
    "        print(sum(name.split('.')[0] == 'demur' for name in list(sys.modules)), file=out)\n"
    "atexit.register(count)\n"
    "from demur.cli import main\n"
    "sys.argv = ['demur', *{arguments!r}]\n"
    "main()\n"
)


def loaded_by(arguments: list[str], folder: Path) -> int:
    """How many modules of the package one command loads until it ends."""
    out = folder / "modules"
    program = _COUNTED.format(out=str(out), arguments=arguments)
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent), "OPENAI_API_KEY": "none"}
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if ran.returncode not in (0, 1, 3):
        raise RuntimeError(f"demur {' '.join(arguments)}: {ran.stderr}")
    return int(out.read_text())


def loaded() -> dict[str, int]:
    """The modules that everyday verbs load, each run once on something small."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    model = ["--base-url", f"http://127.0.0.1:{server.server_port}/v1", "--model", "shape"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        questions = [{"id": str(i), "question": f"What is {i} + {4 - i}?", "gold": "4"} for i in range(4)]
        (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, questions)))
        policy = ["--policy", "policy.json"]
        commands: dict[str, list[str]] = {
            "simulate": ["simulate", "-o", "pools.jsonl", "-n", "400"],
            "calibrate": ["calibrate", "pools.jsonl", "--score", "simulated", "-o", "policy.json"],
            "evaluate": ["evaluate", "pools.jsonl", "--score", "simulated"],
            "decide": ["decide", "pools.jsonl", *policy, "-o", "decisions.jsonl"],
            "plan": ["plan"],
            "report": ["report", "pools.jsonl", "--score", "simulated", "-o", "report.html"],
            "sample": [
                "sample",
                "questions.jsonl",
                "--task",
                "math",
                "-m",
                "4",
                "-o",
                "run.db",
                "--no-logprobs",
                *model,
            ],
        }
        counts = {verb: loaded_by(arguments, folder) for verb, arguments in commands.items()}
    server.shutdown()
    return counts


def shape() -> dict[str, dict[str, float]]:
    """Every value, by part."""
    sys.path.insert(0, str(SOURCE.parent))
    read = files()
    graph, lazy_graph = imports(read, lazy=False), imports(read, lazy=True)
    options = flags()
    parts: dict[str, Callable[[File], bool]] = {"whole": lambda _: True, "core": in_core}
    values: dict[str, dict[str, float]] = {
        part: measure([file for file in read if belongs(file)], graph, lazy_graph) for part, belongs in parts.items()
    }
    values["whole"] |= {"verbs": len(options), "flags": sum(options.values()), "flags of a verb": max(options.values())}
    values["modules loaded"] = dict(loaded())
    values["flags"] = dict(options)
    return values


def passed(values: dict[str, dict[str, float]]) -> list[str]:
    """A line for each value that is over its limit."""
    return [
        f"{part}: {name} is {values[part][name]:g}, the limit is {limit:g}"
        for part, limits in LIMITS.items()
        for name, limit in limits.items()
        if values[part][name] > limit
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if a value passes its limit")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    values = shape()
    if given.json:
        print(json.dumps(values, indent=1))
    else:
        for part, by_name in values.items():
            print(f"{part}\n" + "\n".join(f"  {name:24} {value:>9,.10g}" for name, value in by_name.items()))
    if given.check and (lines := passed(values)):
        sys.exit("\n".join(lines))


if __name__ == "__main__":
    main()
