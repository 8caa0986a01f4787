"""A child process that can be killed: asked one thing at a time, within limits of time and memory."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

from demur.errors import MissingExtra
from demur.files.strict_json import as_json
from demur.foreign_code import is_readable, isolated_python, without_secrets

_START_SECONDS = 60.0
_TRIES = 3


class Child:
    """Runs `_slow_worker.py` from the first request on."""

    def __init__(self, seconds: float, megabytes: int) -> None:
        self.seconds, self.megabytes = seconds, megabytes
        self.asked = 0
        """Requests, answered or not."""
        self.killed = 0
        """Requests that ran into a limit."""
        self.restarted = 0
        """Processes that ended by themselves, or that somebody else ended."""
        self.process: Popen[str] | None = None

    def ask(self, *request: str) -> Any:
        """What the child says, None where a limit was in the way.

        A process that ended, whoever ended it, says nothing: the next one is asked the same.
        """
        self.asked += 1
        said: str | None = None
        for _ in range(_TRIES):
            process = self.process or self._start()
            if process is not None and (said := self._answer(process, request)) is not None:
                break
            self.stop()
            self.restarted += 1
        try:
            return json.loads(said or "")
        except ValueError:
            self.killed += 1
            self.stop()
            return None

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def _answer(self, process: Popen[str], request: tuple[str, ...]) -> str | None:
        """A line, nothing where time is up, or None where there is no process any more."""
        assert process.stdin is not None
        try:
            process.stdin.write(as_json(request) + "\n")
            process.stdin.flush()
        except OSError:
            return None
        return self._listen(process, self.seconds)

    def _start(self) -> Popen[str] | None:
        """A process that is ready to be asked; None where it ended before it was."""
        command = isolated_python(str(Path(__file__).with_name("_slow_worker.py")), str(self.megabytes))
        self.process = Popen(
            command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True, bufsize=1, env=without_secrets()
        )
        said = self._listen(self.process, _START_SECONDS)
        if said == "missing":
            self.stop()
            raise MissingExtra("the slow path needs math-verify", "math")
        return self.process if said == "ready" else None

    def _listen(self, process: Popen[str], seconds: float) -> str | None:
        """A line of the process, nothing where none came in time, or None where none will come."""
        assert process.stdout is not None
        if not is_readable(process.stdout, seconds):
            return ""
        line = process.stdout.readline()
        return line.strip() if line.endswith("\n") else None
