"""Every example runs, in an empty folder, and prints something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("[0-9]*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example, tmp_path):
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip()
    assert ran.stderr == ""


def test_the_ladder_is_there():
    assert [path.name[:2] for path in EXAMPLES] == [f"{i:02d}" for i in range(1, len(EXAMPLES) + 1)]
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("folder", [[], ["shards"], ["./shards"]])
def test_the_job_of_a_cluster_wants_a_folder_by_its_whole_path(folder, tmp_path):
    """A job runs in a copy of its working directory, which other machines do not see."""
    job = EXAMPLES[0].with_name("ray_job.sh")
    ran = subprocess.run(["bash", job, *folder], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (ran.returncode, "by its whole path" in ran.stderr) == (2, True)
    assert not list(tmp_path.iterdir())
