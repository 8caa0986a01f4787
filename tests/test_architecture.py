"""What the layout promises, checked: labels stay downstream, the public names exist, files stay small."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import demur as dm

SOURCE = Path(dm.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

MAY_READ_GOLD = {
    "records.py", "files.py", "parquet.py", "store/rows.py", "labels.py", "simulate.py", "cli/simulate.py",
}  # fmt: skip


def test_only_what_keeps_gold_the_labels_and_the_simulator_touch_it():
    for module in MODULES:
        name = module.relative_to(SOURCE).as_posix()
        reads = [
            node
            for node in ast.walk(ast.parse(module.read_text()))
            if isinstance(node, ast.Attribute) and node.attr == "gold"
        ]
        assert not reads or name in MAY_READ_GOLD, f"{name} reads .gold"


def test_the_check_on_gold_can_fail():
    assert ".gold" in (SOURCE / "labels.py").read_text()


def test_every_public_name_exists_and_is_listed():
    for name in dm.__all__:
        assert getattr(dm, name) is not None
    assert set(dir(dm)) == set(dm.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dm.nothing


def test_public_functions_never_hide_behind_a_module_of_the_same_name():
    modules = {entry.stem for entry in SOURCE.iterdir()}
    assert not (set(dm._MODULE_OF) & modules)


def test_no_junk_drawers_and_no_file_that_holds_two_ideas():
    for module in MODULES:
        assert module.stem not in {"utils", "util", "helpers", "common", "misc"}
        assert len(module.read_text().splitlines()) <= 400, module
