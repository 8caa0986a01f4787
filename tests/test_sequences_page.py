"""The page of sequences that break the promise, and the script that prints its table."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture
def script(monkeypatch):
    """The script, with few rounds and questions."""
    spec = importlib.util.spec_from_file_location("sequence_results", DOCS / "sequence_results.py")
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "sequence_results", made)
    spec.loader.exec_module(made)
    monkeypatch.setattr(made, "ROUNDS", 25)
    return made


def test_the_page_has_a_row_for_each_sequence(script):
    page = (DOCS / "sequences.md").read_text()
    for name, (_, remedy) in script.SEQUENCES.items():
        [row] = [line for line in page.splitlines() if line.startswith(f"| {name} |")]
        assert row.endswith(f"| {remedy} |")
    assert "](sequences.md)" in (DOCS / "promises.md").read_text()


@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_sequence_raises_the_error_and_its_remedy_brings_it_back(script, place):
    """Those that are cheap to measure; the tolerance is three standard errors above alpha."""
    sequence, _ = list(script.SEQUENCES.values())[place]
    before, after = np.array(list(sequence())).T
    assert before.mean() > after.mean()
    assert after.mean() < 0.1 + 3 * after.std(ddof=1) / np.sqrt(len(after)) + 1e-9
