"""What benchmarks measured, kept between runs: the last report of each script, with its date and its machine.

One script alone can be run again, and the others keep their figures. A script that fails keeps them, too, and its error
stands beside them.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from demur.files.atomic import atomic_file

Report = dict[str, Any]


@dataclass(frozen=True)
class Machine:
    """What figures were measured on."""

    processor: str
    cores: int
    gigabytes: float
    system: str
    python: str

    @classmethod
    def here(cls, python: str) -> Machine:
        """This one, with the version of the Python that the scripts run in."""
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
        return cls(_processor(), _cores(), round(memory, 1), f"{platform.system()} {platform.machine()}", python)

    def __str__(self) -> str:
        cores = f"{self.cores} core{'s' if self.cores > 1 else ''}"
        return f"{self.processor}, {cores}, {self.gigabytes:g} GiB of memory, {self.system}, Python {self.python}"


@dataclass(frozen=True)
class Measured:
    """One report, when and on what it was made, and how many processors others kept busy just before it began."""

    date: str
    machine: Machine
    load: float
    report: Report

    @property
    def busy(self) -> bool:
        """Whether others kept more than a quarter of the machine busy when the script began."""
        return self.load > self.machine.cores / 4

    @property
    def claims(self) -> list[dict[str, Any]]:
        return list(self.report["claims"])


@dataclass(frozen=True)
class Failure:
    """Why a script could not run, in one line."""

    date: str
    error: str


@dataclass(frozen=True)
class Result:
    """What is known of one script."""

    measures: str
    measured: Measured | None = None
    failure: Failure | None = None


@dataclass(frozen=True)
class Results:
    """What is known of every script, in the order they are run in."""

    scripts: Mapping[str, Result] = field(default_factory=dict)

    @classmethod
    def load(cls, file: Path) -> Results:
        """What was kept; nothing, where there is no file yet."""
        if not file.exists():
            return cls()
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
            return cls({name: _result(document) for name, document in kept.items()})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise SystemExit(
                f"{file.name} holds no results of benchmarks ({error}); take it away to begin anew"
            ) from None

    def save(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        document = {name: asdict(result) for name, result in self.scripts.items()}
        with atomic_file(file) as unfinished:
            unfinished.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def described(self, measures: Mapping[str, str]) -> Results:
        """The same for these scripts and no others, each with what it is said to measure."""
        known = self.scripts
        return Results({name: replace(known.get(name, Result(said)), measures=said) for name, said in measures.items()})

    def with_report(self, name: str, measured: Measured) -> Results:
        return self._with(name, measured=measured, failure=None)

    def with_failure(self, name: str, failure: Failure) -> Results:
        return self._with(name, failure=failure)

    def _with(self, name: str, **changes: Any) -> Results:
        return Results({**self.scripts, name: replace(self.scripts[name], **changes)})


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def processors_in_use(seconds: float = 2.0) -> float:
    """How many processors are busy over the next moment; the load of the last minute where the system has no count.

    That load still holds the script which ran before.
    """
    before, began = _busy_ticks(), time.monotonic()
    if before is None:
        return round(os.getloadavg()[0], 2)
    time.sleep(seconds)
    ticks = (_busy_ticks() or before) - before
    return round(ticks / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began), 2)


def described_in(readme: Path, scripts: Iterable[str]) -> dict[str, str]:
    """What each script measures, by its row in a table of the benchmarks' README."""
    said = {}
    for line in readme.read_text(encoding="utf-8").splitlines():
        cells = line.split("|")
        if len(cells) == 4 and cells[1].strip().endswith(".py`"):
            said[cells[1].strip(" `").removesuffix(".py")] = cells[2].strip()
    lacking = [name for name in scripts if name not in said]
    if lacking:
        raise SystemExit(f"the table of {readme.name} does not say what {', '.join(lacking)} measures; add a row")
    return {name: said[name] for name in scripts}


def _result(document: Mapping[str, Any]) -> Result:
    measured, failure = document["measured"], document["failure"]
    if measured is not None:
        measured = Measured(**{**measured, "machine": Machine(**measured["machine"])})
        _ = measured.claims
    return Result(document["measures"], measured, None if failure is None else Failure(**failure))


def _busy_ticks() -> int | None:
    """Ticks that all processors were at work since the system started."""
    try:
        user, nice, system, _idle, _waiting, *interrupts = map(
            int, Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0].split()[1:9]
        )
    except (OSError, ValueError):
        return None
    return user + nice + system + sum(interrupts)


def _processor() -> str:
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        told = ""
    names = [line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("model name")]
    return names[0] if names and names[0] else platform.processor() or "an unnamed processor"


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
