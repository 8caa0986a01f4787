"""The hub's own library, on files made here in its own layout."""

from __future__ import annotations

import json

from demur.datasets import hub, load

_ROWS = [{"question": f"What is {i} + {i}?", "answer": f"It is <<{i}+{i}={2 * i}>>.\n#### {2 * i}"} for i in range(2)]


def test_the_hubs_library_reads_a_folder_made_here(tmp_path, monkeypatch):
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, _ROWS)))
    monkeypatch.setitem(hub.NAMES, "gsm8k", hub.Benchmark(str(tmp_path), None, "test", hub.NAMES["gsm8k"].read))
    problems = load("gsm8k")
    assert [problem.id for problem in problems] == ["gsm8k-test-0", "gsm8k-test-1"]
    assert problems[1].gold == ("2",)
