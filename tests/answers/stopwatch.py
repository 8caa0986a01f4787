"""CPU seconds of work, and what a tenth of a second is on a machine that others keep busy."""

from __future__ import annotations

import time

_YARDSTICK_SECONDS = 0.003
"""What counting to a hundred thousand takes where nobody else works."""


def seconds(work, *arguments):
    """The shortest of three runs."""

    def once():
        start = time.process_time()
        work(*arguments)
        return time.process_time() - start

    return min(once() for _ in range(3))


def is_linear(seconds_of, small, large, times):
    """Whether work on a larger text takes less than a tenth of a second, or no more than so many times as long.

    Measured up to five times: what grows faster never passes, and what a busy machine disturbs does.
    """
    for _ in range(5):
        took = seconds_of(large)
        if took < 0.1 or took < times * seconds_of(small):
            return True
    return False


def a_tenth():
    """A tenth of a second, or as much longer as everything takes here and now."""
    return 0.1 * max(1.0, seconds(lambda: sum(1 for _ in range(100_000))) / _YARDSTICK_SECONDS)
