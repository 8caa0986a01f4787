"""A plain `pip install .`: every verb that needs a part which is not there names the command that installs it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PARTS = {
    "http": ["aiohttp"],
    "local": ["xllamacpp", "gguf"],
    "postgres": ["psycopg"],
    "parquet": ["pyarrow"],
    "hf": ["transformers", "torch", "datasets", "safetensors"],
    "report": ["altair", "vl_convert"],
}
WITHOUT = f"""
import sys
sys.modules.update(dict.fromkeys({[module for modules in PARTS.values() for module in modules]}))
from demur.cli import main
main()
"""
SERVER = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m"]
JUDGE = ["score", "run.db", "--score", "judge", "--set"]
REWARD = ["score", "run.db", "--score", "reward", "--set"]
STUDY = """
[study]
n_cal = 30
splits = 2
alphas = [0.2]
[[cells]]
dataset = "simulated"
model = "none"
pools = "pools.jsonl"
"""


def plain(folder, *arguments):
    """Run `demur …` where nothing is installed that is not needed always."""
    ran = subprocess.run(
        [sys.executable, "-I", "-c", WITHOUT, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
        check=False,
        env={**os.environ, "DEMUR_CACHE": str(folder / "cache"), "OPENAI_BASE_URL": "", "JUDGE_BASE_URL": ""},
    )
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    assert plain(folder, "simulate", "-o", "pools.jsonl", "-n", "60", "-m", "4").returncode == 0
    assert plain(folder, "import", "pools.jsonl", "-o", "run.db").returncode == 0
    (folder / "model.gguf").write_bytes(b"GGUF")
    (folder / "table.parquet").write_bytes(b"PAR1 and so on PAR1")
    (folder / "study.toml").write_text(STUDY)
    return folder


@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("http", ["doctor", *SERVER]),
        ("http", ["doctor", *SERVER, "--json"]),
        ("http", ["sample", "builtin:addition", "-o", "a.db", *SERVER]),
        ("http", [*JUDGE, "judge.model=m", "--set", f"judge.base_url={SERVER[1]}"]),
        ("http", [*REWARD, "reward.model=m", "--set", f"reward.base_url={SERVER[1]}"]),
        ("local", ["sample", "builtin:addition", "-o", "a.db"]),
        ("local", ["sample", "builtin:addition", "-o", "a.db", "--model", "model.gguf"]),
        ("local", ["demo", "--folder", "demo"]),
        ("local", ["models"]),
        ("local", [*JUDGE, "judge.model=model.gguf"]),
        ("postgres", ["runs", "postgresql://127.0.0.1:1/x"]),
        ("postgres", ["sample", "builtin:addition", "-o", "postgresql://127.0.0.1:1/x", *SERVER]),
        ("postgres", ["calibrate", "postgresql://127.0.0.1:1/x"]),
        ("parquet", ["import", "table.parquet", "-o", "b.db"]),
        ("parquet", ["export", "run.db", "-o", "out.parquet"]),
        ("parquet", ["export", "run.db", "-o", "s3://bucket/out.parquet"]),
        ("parquet", ["decide", "pools.jsonl", "--policy", "policy.json", "-o", "s3://bucket/out.parquet"]),
        ("hf", ["sample", "gsm8k", "-o", "a.db", *SERVER]),
        ("hf", [*JUDGE, "judge.model=some/model"]),
        ("hf", [*REWARD, "reward.model=some/model"]),
        ("report", ["study", "study.toml", "-o", "study"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)  # fmt: skip
def test_what_is_missing_is_named_with_the_command_that_installs_it(folder, extra, arguments):
    ran = plain(folder, *arguments)
    assert ran.returncode == 2, ran.stdout + ran.stderr
    last = ran.stderr.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert "install it with: " in last
    assert any(f"'{part.replace('_', '-')}" in last for part in PARTS[extra])
    assert "downloading" not in ran.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["calibrate", "pools.jsonl", "--score", "simulated", "--alpha", "0.2", "-o", "policy.json"],
        ["evaluate", "pools.jsonl", "--score", "simulated", "--alpha", "0.2"],
        ["report", "pools.jsonl", "--score", "simulated", "-o", "report.html"],
        ["runs", "run.db"], ["score", "run.db", "--list"], ["export", "run.db", "-o", "out.jsonl"],
        ["answers", "--explain", "1/2", "0.5"], ["study", "study.toml", "-o", "study-2", "--no-figures"],
    ],
    ids=lambda value: value[0],
)  # fmt: skip
def test_what_needs_nothing_works_without(folder, arguments):
    ran = plain(folder, *arguments)
    assert ran.returncode == 0, ran.stderr
