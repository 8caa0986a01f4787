"""Rivals, each in an environment of its own: what they ask for clashes with each other's, and with ours."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".bench-peers"


def python_of(name: str, *wanted: str, pinned: bool = False) -> Path:
    """The Python of an environment that has what is wanted; it is made where it is not there whole.

    `pinned` is what runs the project's own code. Rivals come at the versions that they ask for.
    """
    folder = PEERS / name
    python, ready = folder / "bin" / "python", folder / ".ready"
    if not ready.exists():
        print(f"installing {name} …", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        pins = {"PIP_CONSTRAINT": str(ROOT / "constraints.txt") if pinned else ""}
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True, env={**os.environ, **pins})
        ready.touch()
    return python
