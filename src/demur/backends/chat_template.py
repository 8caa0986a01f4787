"""Chat templates: programs that come with a model, rendered in a child process with hard limits.

A template is jinja2, and a hostile one can loop for ever or write until memory is full. So it is rendered apart, in
bounded time and memory, and what it gives is bounded too.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from threading import Lock
from typing import Any

from demur.errors import BackendError, MissingExtra
from demur.files.strict_json import as_json
from demur.foreign_code import is_readable, isolated_python, without_secrets

LONGEST_TEMPLATE = 1 << 18
"""Characters; the longest in use have some thirty thousand."""
LONGEST_TEXT = 1 << 22
_START_SECONDS = 60.0
_ESCAPED = 12
"""Most bytes that a character takes in JSON."""


class ChatTemplate:
    """One model's template. A rendering that runs into a limit is an error, and the next one starts anew.

    `extra` names the extra that brings jinja2.
    """

    def __init__(self, template: str, whose: str, *, extra: str, seconds: float = 20.0, megabytes: int = 512) -> None:
        if len(template) > LONGEST_TEMPLATE:
            raise BackendError(f"the chat template of {whose} has {len(template)} characters, which none needs")
        self.template, self.whose, self.extra = template, whose, extra
        self.seconds, self.megabytes = seconds, megabytes
        self._child: Popen[bytes] | None = None
        self._turn = Lock()

    def render(self, messages: Sequence[Mapping[str, str]], **context: Any) -> str:
        """The templated chat."""
        given = {"messages": [dict(message) for message in messages], "tools": None, "documents": None, **context}
        with self._turn:  # one question at a time, whichever threads ask
            answer = self._ask(self._child or self._start(), given, self.seconds)
            if "text" not in answer:
                self._refuse(answer)
        return str(answer["text"])

    def _start(self) -> Popen[bytes]:
        worker = str(Path(__file__).with_name("_template_worker.py"))
        command = isolated_python(worker, str(LONGEST_TEXT), str(self.megabytes))
        child = self._child = Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=without_secrets())
        weakref.finalize(self, _end, child)
        answer = self._answer(child, _START_SECONDS)
        if "missing" in answer:
            self.close()
            raise MissingExtra("a chat template needs jinja2", self.extra)
        answer = self._ask(child, self.template, self.seconds)
        if "text" not in answer:
            self.close()  # it would take the next chat for the template
            self._refuse(answer)
        return child

    def _ask(self, child: Popen[bytes], given: Any, seconds: float) -> dict[str, Any]:
        assert child.stdin is not None
        try:
            child.stdin.write(as_json(given, default=str).encode() + b"\n")
            child.stdin.flush()
        except BrokenPipeError:
            return {}
        return self._answer(child, seconds)

    def _answer(self, child: Popen[bytes], seconds: float) -> dict[str, Any]:
        """What the child says; nothing where it says nothing in time, or dies."""
        line = self._listen(child, seconds)
        return dict(json.loads(line)) if line else {}

    def _listen(self, child: Popen[bytes], seconds: float) -> bytes:
        """One line, unless time or room runs out before it ends."""
        assert child.stdout is not None
        line, deadline = bytearray(), time.monotonic() + seconds
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or len(line) > _ESCAPED * LONGEST_TEXT:
                return b""
            if is_readable(child.stdout, left):
                part = os.read(child.stdout.fileno(), 1 << 16)
                if not part:
                    return b""
                line += part
        return bytes(line)

    def _refuse(self, answer: dict[str, Any]) -> None:
        if "error" in answer:
            raise BackendError(f"the chat template of {self.whose} cannot be used: {answer['error']}")
        self.close()
        raise BackendError(
            f"the chat template of {self.whose} takes more time or memory than any should, so it was stopped",
            "use another model, or one whose template you trust",
        )

    def close(self) -> None:
        """Let go of the child."""
        if self._child is not None:
            _end(self._child)
            self._child = None


def _end(child: Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        child.kill()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    child.wait()
