from __future__ import annotations

import pytest

from demur.answers import SlowPath


@pytest.fixture(autouse=True)
def _slow_machine(monkeypatch):
    """On a busy machine math-verify may think for longer than the usual two seconds."""
    monkeypatch.setitem(SlowPath.__init__.__kwdefaults__, "seconds", 60.0)
