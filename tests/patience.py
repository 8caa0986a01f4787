"""Waiting for what is to come, for tests: as long as a busy machine takes, and not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def wait_until(what: Callable[[], Any], seconds: float = 300) -> Any:
    """What it gives as soon as that is true; the test fails where it never is."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.01)
    return found
