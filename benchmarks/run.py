"""What `make bench` calls: an environment of its own with the peers in it, every benchmark in turn, one page.

    python benchmarks/run.py                            every script
    python benchmarks/run.py voting_speed store_speed   these alone; the others keep their last figures
    python benchmarks/run.py --redraw                   none: the pages anew, from what was measured last

After each script the results (docs/assets/benchmarks.json) and the pages that are drawn from them (docs/benchmarks.md,
docs/sizing.md) are written anew, so that what was measured before an interruption is kept. The exit code says whether
the benchmarks ran, never how fast they were.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from measured import Failure, Machine, Measured, Report, Results, described_in, processors_in_use, today
from page import draw_page, number, wanted
from sizing_page import draw_sizing

from demur.files.atomic import atomic_file

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".bench-venv"
PYTHON = ENVIRONMENT / "bin" / "python"
READY = ENVIRONMENT / ".ready"
RESULTS = Path("assets", "benchmarks.json")
"""Of the docs: what every script measured last."""
SCRIPTS = [
    "voting_speed.py",
    "frames_speed.py",
    "tables_speed.py",
    "decide_speed.py",
    "decisions_speed.py",
    "waves_speed.py",
    "calibration_speed.py",
    "plan_speed.py",
    "label_speed.py",
    "selective_speed.py",
    "learned_speed.py",
    "cascade_speed.py",
    "answer_set_speed.py",
    "judged_speed.py",
    "choosing_speed.py",
    "shift_speed.py",
    "groups_speed.py",
    "stopping_speed.py",
    "paper_table.py",
    "monitoring_speed.py",
    "cli_start.py",
    "sizing.py",
    "answer_classes.py",
    "answer_texts.py",
    "store_speed.py",
    "eval_import_speed.py",
    "review_queue_speed.py",
    "embedded_speed.py",
    "sampling_speed.py",
    "many_samplers.py",
    "ray_speed.py",
    "scoring_speed.py",
    "reward_speed.py",
    "service_speed.py",
    "service_endurance.py",
    "study_speed.py",
    "report_speed.py",
]
NAMES = tuple(script.removesuffix(".py") for script in SCRIPTS)
SIZING = "sizing"
"""The script whose report the sizing guide is written from."""


class CannotRun(Exception):
    """A script that failed, and why, in one line."""


@dataclass(frozen=True)
class Bench:
    """Where scripts and the docs are, what runs the scripts, and which there are."""

    scripts: Path
    docs: Path
    python: Path
    names: Sequence[str] = NAMES

    def redraw(self) -> Results:
        """Write the pages anew, from what was measured last and what each script is said to measure."""
        results = Results.load(self.docs / RESULTS).described(described_in(self.scripts / "README.md", self.names))
        self._write(results)
        return results

    def run(self, chosen: Sequence[str]) -> dict[str, Report | None]:
        """The reports of the chosen scripts, None where one failed; results and pages are written after each."""
        results, machine = self.redraw(), Machine.here(self._version())
        reports: dict[str, Report | None] = {}
        for name in chosen:
            load = processors_in_use()
            try:
                report = reports[name] = self._report(name)
                results = results.with_report(name, Measured(today(), machine, load, report))
            except CannotRun as error:
                print(f"{name} failed: {error}", file=sys.stderr)
                reports[name] = None
                results = results.with_failure(name, Failure(today(), str(error)))
            self._write(results)
        return reports

    def _report(self, name: str) -> Report:
        """What one script prints, shown as it comes."""
        command = [self.python, self.scripts / f"{name}.py"]
        last = ""
        with tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
            with subprocess.Popen(command, stdout=printed, stderr=subprocess.PIPE, text=True, cwd=ROOT) as script:
                assert script.stderr is not None
                for line in script.stderr:
                    print(line, end="", file=sys.stderr, flush=True)
                    last = line.strip() or last
            printed.seek(0)
            text = printed.read()
        print(text, flush=True)
        if script.returncode:
            raise CannotRun(_in_one_line(last) or f"it ended with exit code {script.returncode} and no word")
        try:
            report = json.loads(text)
            report["claims"]
        except (ValueError, TypeError, KeyError):
            raise CannotRun("it printed no report") from None
        return dict(report)

    def _version(self) -> str:
        code = "import platform; print(platform.python_version())"
        return subprocess.run([self.python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

    def _write(self, results: Results) -> None:
        results.save(self.docs / RESULTS)
        _write_whole(self.docs / "benchmarks.md", draw_page(results))
        guide = self.docs / "sizing.md"
        if guide.exists() and SIZING in results.scripts:
            said = guide.read_text(encoding="utf-8")
            _write_whole(guide, draw_sizing(said, results.scripts[SIZING].measured))


def _write_whole(file: Path, text: str) -> None:
    with atomic_file(file) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def _in_one_line(error: str, most: int = 200) -> str:
    """An error without what names this machine, nor what would end its cell of a table."""
    plain = " ".join(error.replace(f"{ROOT}{os.sep}", "").replace("`", "'").split())
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"


def prepare() -> None:
    """Install the project and its peers, unless that was done since their versions last changed."""
    sources = [ROOT / "pyproject.toml", ROOT / "constraints.txt"]
    if READY.exists() and READY.stat().st_mtime > max(source.stat().st_mtime for source in sources):
        return
    print(f"installing the project and its peers into {ENVIRONMENT.name} …", file=sys.stderr)
    if not PYTHON.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    subprocess.run(
        [PYTHON, "-m", "pip", "install", "--quiet", "--editable", ".[bench]"],
        check=True,
        cwd=ROOT,
        env={"PIP_CONSTRAINT": str(ROOT / "constraints.txt"), **os.environ},
    )
    READY.touch()


def print_table(reports: Sequence[Report]) -> None:
    """The claims of what was just run, as a table."""
    claims = [claim for report in reports for claim in report["claims"]]
    told = [(c["claim"], number(c["measured"]), wanted(c), "yes" if c["met"] else "NO") for c in claims]
    table = [("claim", "measured", "wanted", "met"), *told]
    claim, measured, floor, _ = (max(map(len, column)) for column in zip(*table, strict=True))
    for row in table:
        print(f"{row[0]:<{claim}}  {row[1]:>{measured}}  {row[2]:<{floor}}  {row[3]}")


def chosen_scripts(names: Sequence[str]) -> list[str]:
    """Scripts by name, with or without their ending; all of them where none is named."""
    plain = [Path(name).name.removesuffix(".py") for name in names]
    if unknown := [name for name in plain if name not in NAMES]:
        raise SystemExit(f"there is no benchmark {', '.join(unknown)}; choose among {', '.join(NAMES)}")
    return list(dict.fromkeys(plain)) or list(NAMES)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", nargs="*", help="scripts to run, by name; every one unless some are named")
    parser.add_argument("--redraw", action="store_true", help="run none: draw the pages anew")
    told = parser.parse_args()
    bench = Bench(ROOT / "benchmarks", ROOT / "docs", PYTHON)
    if told.redraw:
        bench.redraw()
        return 0
    chosen = chosen_scripts(told.script)
    prepare()
    try:
        reports = bench.run(chosen)
    except KeyboardInterrupt:
        print("interrupted; what was measured before is on the page", file=sys.stderr)
        return 130
    print_table([report for report in reports.values() if report is not None])
    return int(None in reports.values())


if __name__ == "__main__":
    sys.exit(main())
