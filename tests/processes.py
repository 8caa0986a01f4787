"""Processes that tests start: none outlives its test, however the test ends."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

PATIENT = [sys.executable, "-c", "from demur.cli import main; main()"]
"""demur without the two seconds that it has to end: on a busy machine it takes longer to save what came."""


class Process(subprocess.Popen):
    """Like `subprocess.Popen`, but killed with its pipes closed at the end of the test, if it is still there.

    Without that a test that fails leaves open pipes, and the warning about them fails whichever test runs next.
    """

    left: list[Process] = []  # noqa: RUF012 - one list, on purpose

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.left.append(self)


def end_processes() -> None:
    """Kill what is left, close its pipes and wait for it."""
    while Process.left:
        with Process.left.pop() as process:
            process.kill()
