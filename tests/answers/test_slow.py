"""The slow path: a real math-verify in a real child process, its limits, its memory of verdicts."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

import pytest

from demur import answers
from demur.answers import SlowPath, mathematics
from demur.errors import InvalidValue, MissingExtra


def test_it_merges_what_the_rules_compare_as_text_and_nothing_else():
    pool = ["\\sum_{k=1}^{3} k", "6", "6.0", "7", None]
    assert mathematics.key(pool[0]).startswith("s:")
    with SlowPath() as slow:
        keys = answers.classes(pool, slow=slow)
        assert keys == ["n:6", "n:6", "n:6", "n:7", None]
        # Order changes nothing, and what the rules decide is never asked.
        assert answers.classes(pool[::-1], slow=slow) == keys[::-1]
        assert all("sum" in a or "sum" in b for a, b in slow.verdicts)
    assert answers.classes(pool)[0] != "n:6"  # off unless asked for


def test_sentences_are_never_asked_about():
    with SlowPath() as slow:
        keys = answers.classes(["300 \\text{ acres of corn and } 200 \\text{ acres of wheat}", "300"], slow=slow)
        assert keys[0] != keys[1]
        assert slow.verdicts == {}


def test_a_pair_that_runs_into_a_limit_is_different_and_counted_and_the_next_one_is_served():
    with SlowPath(seconds=1.0) as slow:
        assert not slow.same("9^{9^{9^{9}}}", "1")
        assert slow.killed == 1
        assert slow.same("\\frac{1}{2}", "0.5")


def test_verdicts_are_stored_and_replayed_without_a_child(tmp_path, monkeypatch):
    store = tmp_path / "verdicts.json"
    with SlowPath(store=store) as slow:
        first = slow.same("\\sum_{k=1}^{3} k", "6")
    assert json.loads(store.read_text())["verdicts"] == [["6", "\\sum_{k=1}^{3} k", first]]
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with SlowPath(store=store) as again:
        assert again.same("6", "\\sum_{k=1}^{3} k") == first


def test_a_missing_math_verify_names_the_command_that_installs_it(tmp_path, monkeypatch):
    impostor = tmp_path / "python"
    impostor.write_text("#!/bin/sh\necho missing\n")
    impostor.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(impostor))
    with pytest.raises(MissingExtra, match=r"python -m pip install 'math-verify==0.9.0'"):
        SlowPath().same("a", "b")


@pytest.mark.parametrize("content", ["", "{}", '{"format": "demur-verdicts", "verdicts": [["a", "b", 1]]}', "[1]"])
def test_a_store_that_holds_no_verdicts_is_refused(tmp_path, content):
    (tmp_path / "v.json").write_text(content)
    with pytest.raises(InvalidValue, match="cannot be read as verdicts"):
        SlowPath(store=tmp_path / "v.json")


def test_a_child_that_somebody_kills_is_started_again_and_asked_the_same():
    with SlowPath() as slow:
        assert slow.same("\\frac{1}{2}", "0.5")
        first = slow._worker.pid
        os.kill(first, signal.SIGKILL)
        slow._worker.wait()
        assert slow.same("\\frac{1}{4}", "0.25"), "the death of a child is no verdict"
        assert slow._worker.pid != first
        assert (slow.restarted, slow.killed) == (1, 0)


def test_a_child_that_is_killed_while_it_thinks_is_started_again():
    with SlowPath(seconds=30.0) as slow:
        slow.same("\\frac{1}{2}", "0.5")
        hanging = slow._worker
        os.kill(hanging.pid, signal.SIGSTOP)
        threading.Timer(0.3, os.kill, (hanging.pid, signal.SIGKILL)).start()
        assert slow.same("\\frac{1}{4}", "0.25")
        assert (slow.restarted, slow.killed) == (1, 0)


def test_children_that_always_end_are_not_started_for_ever(tmp_path, monkeypatch):
    dying = tmp_path / "python"
    dying.write_text(f"#!/bin/sh\necho x >> {tmp_path}/starts\necho ready\nread line\nexit 1\n")
    dying.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(dying))
    with SlowPath() as slow:
        assert not slow.same("a", "b")
        assert (slow.restarted, slow.killed) == (3, 1)
    assert (tmp_path / "starts").read_text().count("x") == 3
