"""Files that appear whole or not at all, and what is said where they cannot."""

from __future__ import annotations

import pytest

from demur.errors import PolicyFileError, PoolFileError
from demur.files.atomic import written_whole


@pytest.fixture
def target(tmp_path):
    """A file that is there already."""
    path = tmp_path / "pools.jsonl"
    path.write_text("old")
    return path


def half_written(target, error):
    with written_whole(target, PoolFileError) as unfinished:
        unfinished.write_text("ne")
        raise error


def test_a_file_that_is_not_finished_leaves_the_old_one_and_nothing_beside_it(target):
    with pytest.raises(ZeroDivisionError):
        half_written(target, ZeroDivisionError())
    assert [(file.name, file.read_text()) for file in target.parent.iterdir()] == [("pools.jsonl", "old")]


def test_a_disk_that_is_full_is_told_in_one_line_and_the_old_file_stays(target):
    with pytest.raises(PoolFileError) as caught:
        half_written(target, OSError(28, "No space left on device"))
    assert str(caught.value) == f"cannot write {target}: No space left on device"
    assert [(file.name, file.read_text()) for file in target.parent.iterdir()] == [("pools.jsonl", "old")]


@pytest.mark.parametrize("refusal", [PoolFileError, PolicyFileError])
def test_what_the_disk_refuses_is_told_as_the_callers_own_error(tmp_path, refusal):
    target = tmp_path / "no" / "such" / "folder.json"
    with pytest.raises(refusal) as caught, written_whole(target, refusal):
        pass
    assert str(caught.value) == f"cannot write {target}: No such file or directory"
