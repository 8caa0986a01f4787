"""The page of benchmarks, drawn from scripts that measure nothing: its form, and what is kept between runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS, DOCS = ROOT / "benchmarks", ROOT / "docs"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="the source distribution has no benchmarks")

SCRIPT = """
import sys
sys.path.insert(0, {benchmarks!r})
from claims import at_least, at_most, print_report
from stopwatch import Seconds
{body}
"""
FAST = """print_report("fast", [at_least(2, "a / b, speed", {speed}), at_most(1, "a | b, memory", 0.5)],
    packages=["numpy"], setting={{"pools": 1000000}}, peers={{"rival": "1.2"}},
    cpu_seconds={{"a": Seconds(0.5, 0.25, 0.75), "b": [3, 1, 2]}}, found={{"same": True, "none": None}})"""
SLOW = 'print_report("slow", [at_least(10, "c / d, speed", 9.5)], packages=[])'
BROKEN = 'raise SystemExit("no `Chromium` here\\nneither there")'


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """Three scripts in a folder of their own, and their docs."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from run import Bench

    monkeypatch.setattr("run.processors_in_use", lambda: 0.1)  # of a machine at rest
    made = Bench(tmp_path / "benchmarks", tmp_path / "docs", Path(sys.executable), ("fast", "slow", "broken"))
    made.scripts.mkdir()
    made.docs.mkdir()
    rows = "".join(f"| `{name}.py` | how {name} it is |\n" for name in made.names)
    (made.scripts / "README.md").write_text(f"| script | measures |\n|---|---|\n{rows}")
    for name, body in zip(made.names, (FAST.format(speed=3), SLOW, BROKEN), strict=True):
        write(made, name, body)
    return made


def write(bench, name: str, body: str) -> None:
    (bench.scripts / f"{name}.py").write_text(SCRIPT.format(benchmarks=str(BENCHMARKS), body=body))


def page(bench) -> str:
    return (bench.docs / "benchmarks.md").read_text(encoding="utf-8")


def section(bench, name: str) -> str:
    return page(bench).partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def test_the_page_says_first_what_is_not_met_and_what_failed(bench):
    reports = bench.run(bench.names)
    assert reports["broken"] is None
    headings = re.findall("^## (.*)$", page(bench), re.MULTILINE)
    assert headings == ["Not met", "Failed", "fast", "slow"]
    assert "1 of 3 claims is not met" in page(bench)
    assert "| c / d, speed | 9.5 | at least 10 | [slow](#slow) |" in section(bench, "Not met")
    assert "`neither there` |" in section(bench, "Failed")


def test_a_script_has_its_sentence_claims_figures_with_spread_versions_and_peers(bench):
    import numpy

    bench.run(["fast"])
    told = section(bench, "fast")
    assert "How fast it is." in told
    assert "| a / b, speed | 3 | at least 2 | met |" in told
    assert "| a \\| b, memory | 0.5 | at most 1 | met |" in told
    assert "| CPU seconds: a | 0.5 | 0.25 to 0.75 |" in told
    assert "| CPU seconds: b | 2 | 1 to 3 |" in told
    assert "| found: same | yes |  |" in told
    assert "none" not in told
    assert "Setting: pools 1,000,000." in told
    assert f"numpy {numpy.__version__}." in told
    assert "Peers: rival 1.2." in told


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, "0"), (1_000_000, "1,000,000"), (2.0, "2"), (1234.5, "1,234"), (0.0704, "0.0704"), (3.2e-05, "3.2e-05"),
     (-1.5, "-1.5"), (float("inf"), "inf"), (float("nan"), "nan"), ("1.2", "1.2")],
)  # fmt: skip
def test_numbers_are_told_with_four_digits_and_thousands_apart(bench, value, told):
    from page import number

    assert number(value) == told


def test_the_page_names_the_machine_and_the_date(bench):
    from measured import Machine, today

    bench.run(["fast"])
    assert f"**The machine, {today()}:** {Machine.here(sys.version.split()[0])}." in page(bench)


def test_figures_of_a_busy_machine_are_said_to_be_such(bench, monkeypatch):
    bench.run(["slow"])
    assert "busy" not in page(bench)
    monkeypatch.setattr("run.processors_in_use", lambda: 1000.0)
    bench.run(["slow"])
    assert "[slow](#slow), on a busy machine |" in section(bench, "Not met")
    assert "Others kept 1000.0 of the machine's " in section(bench, "slow")


def test_processors_are_in_use_while_somebody_works(bench, monkeypatch):
    from measured import processors_in_use

    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            assert processors_in_use(1.0) > 0.5
        finally:
            other.kill()
    monkeypatch.setattr("measured._busy_ticks", lambda: None)
    monkeypatch.setattr("os.getloadavg", lambda: (0.75, 9.0, 9.0))
    assert processors_in_use() == 0.75


def test_what_was_not_run_keeps_its_figures_and_its_own_date(bench):
    from measured import today

    bench.run(["slow"])
    kept = bench.docs / "assets" / "benchmarks.json"
    kept.write_text(kept.read_text().replace(today(), "2020-02-02").replace('"cores": ', '"cores": 9'))
    bench.run(["fast"])
    assert "Measured 2020-02-02 on another machine: " in section(bench, "slow")
    assert f"Measured {today()}." in section(bench, "fast")
    assert "| c / d, speed | 9.5 |" in section(bench, "slow")


def test_a_script_that_fails_later_keeps_its_last_figures_until_it_runs_again(bench):
    bench.run(["fast"])
    write(bench, "fast", BROKEN)
    bench.run(["fast"])
    assert "[fast](#fast)" in section(bench, "Failed")
    assert "| a / b, speed | 3 |" in section(bench, "fast")
    write(bench, "fast", FAST.format(speed=4))
    bench.run(["fast"])
    assert "## Failed" not in page(bench)
    assert "| a / b, speed | 4 |" in section(bench, "fast")
    assert "All 2 claims are met." in page(bench)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("print('hello')", "it printed no report"),
        ("print('[]')", "it printed no report"),
        ("sys.exit(7)", "it ended with exit code 7 and no word"),
        ("raise ValueError('x ' * 300)", "ValueError: x x"),
        ("import absent_module", "ModuleNotFoundError: No module named 'absent_module'"),
    ],
)
def test_a_script_that_cannot_run_is_named_with_its_error_in_one_line(bench, body, error):
    write(bench, "broken", body)
    bench.run(["broken"])
    (row,) = [line for line in section(bench, "Failed").splitlines() if "broken" in line]
    assert error in row
    assert len(row) < 250


def test_the_error_of_a_script_does_not_say_where_the_project_is(bench):
    write(bench, "broken", f"raise SystemExit('cannot open {ROOT}/data')")
    bench.run(["broken"])
    assert "`cannot open data`" in page(bench)


def test_scripts_that_never_ran_are_listed_as_such(bench):
    bench.redraw()
    assert "Nothing has been measured yet." in page(bench)
    assert section(bench, "Not measured yet").count("| `") == 3


def test_results_that_are_damaged_are_refused_in_one_line_and_kept(bench):
    kept = bench.docs / "assets" / "benchmarks.json"
    kept.parent.mkdir()
    for text in ('{"fast": ', "[]", '{"fast": {}}', '{"fast": {"measures": "", "measured": {}, "failure": null}}'):
        kept.write_text(text)
        with pytest.raises(SystemExit, match=r"^benchmarks\.json holds no results of benchmarks .*take it away"):
            bench.redraw()
        assert kept.read_text() == text


def test_a_script_without_a_row_in_the_readme_is_refused(bench):
    (bench.scripts / "README.md").write_text("| `fast.py` | speed |\n")
    with pytest.raises(SystemExit, match="does not say what slow, broken measures; add a row"):
        bench.redraw()


def test_scripts_are_chosen_by_name_and_unknown_ones_refused(bench):
    from run import NAMES, chosen_scripts

    assert chosen_scripts([]) == list(NAMES)
    assert chosen_scripts(["benchmarks/cli_start.py", "cli_start"]) == ["cli_start"]
    with pytest.raises(SystemExit, match="there is no benchmark nothing_speed; choose among voting_speed, "):
        chosen_scripts(["nothing_speed"])


def test_every_script_that_reports_claims_is_run_or_is_said_to_be_run_by_hand(bench):
    from run import NAMES

    by_hand = (BENCHMARKS / "README.md").read_text(encoding="utf-8").partition("run by hand")[2]
    reporting = [file for file in BENCHMARKS.glob("*.py") if re.search(r"^ +print_report\(", file.read_text(), re.M)]
    assert len(reporting) > 25
    assert {file.stem for file in reporting if f"`{file.name}" not in by_hand} == set(NAMES)


def test_every_script_that_the_readme_names_is_there():
    named = set(re.findall(r"`(\w+\.py)", (BENCHMARKS / "README.md").read_text(encoding="utf-8")))
    assert len(named) > 30
    assert named <= {file.name for file in BENCHMARKS.glob("*.py")}


def test_the_page_in_the_docs_is_what_was_measured_last(bench, monkeypatch):
    """Redraw it with `python benchmarks/run.py --redraw`."""
    from measured import Results, described_in
    from page import draw_page
    from run import NAMES, RESULTS

    results = Results.load(DOCS / RESULTS)
    assert results == results.described(described_in(BENCHMARKS / "README.md", NAMES))
    assert (DOCS / "benchmarks.md").read_text(encoding="utf-8") == draw_page(results)


def test_results_survive_being_kept(bench):
    from measured import Results

    bench.run(bench.names)
    kept = bench.docs / "assets" / "benchmarks.json"
    before = kept.read_text()
    Results.load(kept).save(kept)
    assert kept.read_text() == before
    assert list(json.loads(before)) == list(bench.names)


def test_the_command_refuses_an_unknown_script_before_it_installs_anything():
    done = subprocess.run([sys.executable, BENCHMARKS / "run.py", "nothing"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("there is no benchmark nothing; choose among ")
