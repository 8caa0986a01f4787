"""A folder with a study of two cells, and what it finds."""

from __future__ import annotations

import pytest

from demur.study import read_study, run_study
from study_files import STUDY, write_pools


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_pools(tmp_path / "a.jsonl", 300, 1)
    write_pools(tmp_path / "b.jsonl", 200, 2, prefix="r")
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


@pytest.fixture
def found(folder):
    return run_study(read_study(folder / "study.toml"), figures=())
