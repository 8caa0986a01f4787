"""Processes by name: who is at work, and whether another on the same machine still lives.

A process of another machine, or of another container, cannot be looked at: nothing is said of it.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_PROC = Path("/proc")
_MOST_LETTERS = 40


@dataclass(frozen=True, slots=True)
class Process:
    """A process as others may know it."""

    host: str
    """The first part of the machine's name."""
    pid: int
    mark: str | None
    """The machine since it was started, the room its processes are numbered in, and when this one began."""

    @property
    def name(self) -> str:
        return f"{self.host}-{self.pid}"


def this_process() -> Process:
    host = re.sub(r"[^\w-]", "", socket.gethostname().partition(".")[0], flags=re.ASCII)[:_MOST_LETTERS]
    pid = os.getpid()
    room, begun = _room(), _begun(pid)
    return Process(host or "machine", pid, None if room is None or begun is None else f"{room}:{begun}")


def is_gone(pid: int, mark: str | None) -> bool:
    """Whether a process is known to live no longer; False where nothing can be known of it."""
    room, _, begun = (mark or "").partition(":")
    if not room or room != _room():
        return False
    now = _begun(pid)
    return now != begun and (now is not None or not _is_hidden(pid))


def _is_hidden(pid: int) -> bool:
    """Whether there is a process of another user that may not be looked at."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


@lru_cache(maxsize=1)
def _room() -> str | None:
    """What this machine, since it was started, and this container have to themselves; None where it cannot be told."""
    try:
        started = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        numbered = os.readlink(_PROC / "self/ns/pid")
    except OSError:
        return None
    return hashlib.sha256(f"{started} {numbered}".encode()).hexdigest()[:16]


def _begun(pid: int) -> str | None:
    """When a process began, in ticks of its machine; None where there is none, or only what is left of one."""
    try:
        told = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    state, *others = told.rpartition(")")[2].split()  # its name may hold anything
    return None if state in "ZXx" or len(others) < 19 else others[18]
