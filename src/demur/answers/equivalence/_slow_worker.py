"""The child process of the slow path: reads pairs of answers, one JSON list a line, and writes true or false.

It may be killed at any time; it holds nothing that matters. Its memory is limited by the system.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
from functools import lru_cache
from typing import Any


def main() -> None:
    """Serve verdicts until standard input ends."""
    limit = int(sys.argv[1]) * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        from math_verify import parse, verify
    except ImportError:
        print("missing", flush=True)
        return
    logging.disable(logging.CRITICAL)
    print("ready", flush=True)

    @lru_cache(maxsize=4096)
    def read(answer: str) -> Any:
        return parse(f"${answer}$", parsing_timeout=None)

    for line in sys.stdin:
        a, b = json.loads(line)
        # Its own timeouts use signals and may be off: the parent's clock is what counts.
        try:
            first, second = read(a), read(b)
            same = bool(verify(first, second, timeout_seconds=None) or verify(second, first, timeout_seconds=None))
        except (MemoryError, RecursionError, ValueError, TypeError, ArithmeticError, AttributeError):
            same = False
        print("true" if same else "false", flush=True)


if __name__ == "__main__":
    main()
