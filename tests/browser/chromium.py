"""Where Chromium is. Run as a script, it says loudly when there is none."""

from __future__ import annotations

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find() -> str | None:
    """The browser's program: DEMUR_CHROMIUM, or one on the path."""
    return os.environ.get("DEMUR_CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)


if __name__ == "__main__" and find() is None:
    line = "*" * 100
    print(f"{line}\nNO CHROMIUM WAS FOUND: THE TESTS OF THE REPORT'S PAGE WERE SKIPPED. Run: make browser\n{line}")
