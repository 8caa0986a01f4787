"""The command as a process of its own: start-up, pipes, modules."""

from __future__ import annotations

import os
import subprocess
import sys

BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
"""As most people have it: what is printed waits in a buffer, and may fail when the process ends."""


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False, **options
    )


def test_nothing_heavy_is_imported_for_help_or_version():
    code = (
        "import sys\n"
        "sys.argv = ['demur', '--help']\n"
        "from demur.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'sqlalchemy', 'torch', 'aiohttp', 'pandas'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))\n"
    )
    assert "heavy: []" in run("-c", code).stdout


def test_scipy_stats_is_never_needed(tmp_path):
    code = (
        "import sys, demur as dm\n"
        "d = dm.simulate_pools(200, n_paths=4)\n"
        "v = dm.vote(d.answers, d.scores)\n"
        "p = dm.calibrate(v, v.answer == d.gold, guarantee=dm.HighProbability(.1, .1))\n"
        "e = dm.simulate_pools(50, n_paths=4, seed=1)\n"
        "w = dm.vote(e.answers, e.scores)\n"
        "dm.audit_policy(p, w, w.answer == e.gold)\n"
        "dm.evaluate_splits({'': (v, v.answer == d.gold)}, alpha=.1, n_cal=100)\n"
        "print('stats:', 'scipy.stats' in sys.modules)\n"
    )
    ran = run("-c", code)
    assert "stats: False" in ran.stdout, ran.stderr


def test_python_m_demur_is_demur_and_errors_leave_no_traceback(tmp_path):
    ran = run("-m", "demur", "calibrate", "none.jsonl", cwd=tmp_path)
    assert ran.returncode == 2
    assert ran.stderr == "error: there is no file none.jsonl\n"


def test_a_reader_that_goes_away_leaves_no_traceback(tmp_path):
    made = run("-m", "demur", "simulate", "-o", "p.jsonl", "-n", "3000", cwd=tmp_path)
    assert made.returncode == 0
    assert run("-m", "demur", "calibrate", "p.jsonl", "-o", "policy.json", cwd=tmp_path).returncode == 0
    command = f"{sys.executable} -m demur decide p.jsonl --policy policy.json --json | head -c 10"
    options = {"capture_output": True, "text": True, "cwd": tmp_path, "timeout": 120, "check": False, "env": BUFFERED}
    piped = subprocess.run(command, shell=True, **options)
    assert piped.stderr == ""
    assert piped.stdout == '{"alpha": '


def test_a_full_disk_and_a_narrow_encoding_are_survived(tmp_path):
    run("-m", "demur", "simulate", "-o", "p.jsonl", "-n", "100", cwd=tmp_path)
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "demur", "calibrate", "p.jsonl"],
            stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, timeout=120, check=False, env=BUFFERED,
        )  # fmt: skip
    assert ran.returncode == 2
    assert ran.stderr == "error: No space left on device\n"
    ascii_only = run(
        "-m", "demur", "evaluate", "p.jsonl", cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert ascii_only.returncode == 0, ascii_only.stderr
