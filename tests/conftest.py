"""Shared by all tests: settings, a brute-force vote in fractions, and the recorded pools where they exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# Derandomised, so that a run is the same everywhere; no deadline, so that a busy machine changes nothing.
settings.register_profile("quorate", derandomize=True, deadline=None, max_examples=150, print_blob=True)
settings.load_profile("quorate")

RECORDED = Path(__file__).resolve().parents[2] / "shared" / "data" / "pools"


@pytest.fixture(scope="session")
def recorded_pools() -> Path:
    """The folder of recorded pools; the test is skipped where there is none."""
    if not RECORDED.is_dir():
        pytest.skip("the recorded pools of real models are not on this machine")
    return RECORDED
