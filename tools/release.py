"""Build the wheel and the source distribution, and try each as a stranger would, on every supported Python at hand.

    python tools/release.py

In a new environment per Python and package: install it, run the three-line example, use the command line from pools
to an audit, and type-check a strict consumer. What passed lies in dist/ with its SHA-256.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
OLDEST = (3, 11)
COMMANDS = (
    ("--version",),
    ("simulate", "-o", "pools.jsonl", "--problems", "400"),
    ("calibrate", "pools.jsonl", "--score", "simulated", "--alpha", "0.1", "--hold-out", "0.5", "-o", "policy.json"),
    ("audit", "pools.jsonl", "--policy", "policy.json"),
    ("answers", "--explain", "1/2", "So the answer is 0.50."),
)


class Failed(Exception):
    """A step that did not do what it should."""


def run(*command: object, folder: Path, **environment: str) -> str:
    """What a command printed; Failed, with its last lines, where it did not end well."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**outside, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{last}")
    return done.stdout


def version() -> str:
    """The version, which the changelog must have a dated chapter of."""
    namespace: dict[str, str] = {}
    exec((ROOT / "src" / "demur" / "version.py").read_text(), namespace)
    number = namespace["__version__"]
    if not re.search(rf"(?m)^## {re.escape(number)} \(\d{{4}}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text()):
        raise Failed(f"CHANGELOG.md has no chapter `## {number} (YEAR-MONTH-DAY)`")
    return number


def build(number: str) -> list[Path]:
    """The wheel and the source distribution."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", DIST, folder=ROOT)
    built = [DIST / f"demur-{number}-py3-none-any.whl", DIST / f"demur-{number}.tar.gz"]
    if missing := [path.name for path in built if not path.is_file()]:
        raise Failed(f"hatchling built no {' and no '.join(missing)}")
    return built


def pythons() -> dict[tuple[int, int], Path]:
    """One interpreter of each supported version: this one, those on the path, and those of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [Path(sys.executable), *sorted(pyenv.glob("3.*/bin/python"), reverse=True)]
    candidates += [Path(found) for minor in range(OLDEST[1], 20) if (found := shutil.which(f"python3.{minor}"))]
    found: dict[tuple[int, int], Path] = {}
    for candidate in candidates:
        try:
            told = run(candidate, "-c", "import sys, ensurepip; print(*sys.version_info[:2])", folder=ROOT)
        except (Failed, OSError):
            continue
        major, minor = map(int, told.split())
        if (major, minor) >= OLDEST:
            found.setdefault((major, minor), candidate)
    return dict(sorted(found.items()))


def try_out(python: Path, package: Path) -> None:
    """Install a package into a new environment, far from the tree, and use it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(python, "-m", "venv", folder / "venv", folder=folder)
        inside = folder / "venv" / "bin" / "python"
        run(inside, "-m", "pip", "install", "--quiet", package, "mypy", folder=folder)
        where = run(inside, "-c", "import demur; print(demur.__file__)", folder=folder).strip()
        if not Path(where).is_relative_to(folder.resolve()) and not Path(where).is_relative_to(folder):
            raise Failed(f"demur came from {where}, not from {package.name}")
        shutil.copy(ROOT / "examples" / "01_three_lines.py", folder)
        if "confidence" not in run(inside, "01_three_lines.py", folder=folder):
            raise Failed("the three-line example printed no decision")
        for command in COMMANDS:
            run(folder / "venv" / "bin" / "demur", *command, folder=folder)
        shutil.copy(ROOT / "tests" / "consumer.py", folder)
        run(inside, "-m", "mypy", "--strict", "consumer.py", folder=folder)


def tried(python: Path, package: Path) -> float:
    """How many seconds it took to try a package."""
    started = time.monotonic()
    try_out(python, package)
    return time.monotonic() - started


def main() -> None:
    try:
        packages, found = build(version()), pythons()
        for (major, minor), python in found.items():
            with ThreadPoolExecutor(len(packages)) as at_once:
                for package, seconds in zip(packages, at_once.map(partial(tried, python), packages), strict=True):
                    print(f"Python {major}.{minor}: {package.name} works ({seconds:.0f} s)", flush=True)
    except Failed as failure:
        sys.exit(f"no release: {failure}")
    for package in packages:
        print(f"{hashlib.sha256(package.read_bytes()).hexdigest()}  dist/{package.name}")


if __name__ == "__main__":
    main()
