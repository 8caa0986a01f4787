"""A worker for tests, in a file that is quickly imported: it dies at once the first time."""

from __future__ import annotations

import os
import time
from pathlib import Path


def short_lived(_listening):
    """As if it had been killed while an alarm was on."""
    folder = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"])
    first = not list(folder.glob("began-*"))
    (folder / f"began-{os.getpid()}").touch()
    if first:
        (folder / f"gauge_livemax_{os.getpid()}.db").touch()
        os._exit(9)
    time.sleep(60)
