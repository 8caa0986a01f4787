"""Running a study: cell after cell, and the files it leaves. A cell that fails is named, and the others go on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from demur.backends.weights import Say
from demur.errors import DemurError
from demur.files.atomic import atomic_file
from demur.files.strict_json import as_json
from demur.study.cells import Watch, open_cell
from demur.study.description import StudyDescription
from demur.study.figures import draw, figures_of
from demur.study.protocol import CHECKS, CellResult, comparisons, evaluate_cell, inconsistent, shared_problems
from demur.study.tables import FORMATS, Table, jitter_gain, markdown_text, tables_of
from demur.version import __version__


@dataclass(frozen=True)
class StudyResult:
    """What was found, what failed, and the files that hold it."""

    results: list[CellResult]
    failed: dict[str, str]
    notes: list[str]
    tables: list[Table]
    files: list[Path]

    @property
    def verdict(self) -> str:
        """Whether the realised error rates are those that the exact law allows."""
        odd, count = inconsistent(self.results), comparisons(self.results)
        if not count:
            return "No cell could be evaluated."
        if not odd:
            return (
                f"All {count} mean error rates, over {CHECKS} random splits each, agree with their exact expectations "
                "(corrected for their number)."
            )
        where = "; ".join(f"{name} at alpha {point.alpha:g} (z = {point.z:.1f})" for name, point in odd[:5])
        return f"{len(odd)} of {count} mean error rates do not agree with their exact expectations: {where}."


def run_study(
    study: StudyDescription,
    *,
    say: Say = lambda _: None,
    watch: Watch = lambda _: None,
    figures: Sequence[str] = ("svg",),
    out: Path | None = None,
) -> StudyResult:
    """Evaluate every cell, and write tables and figures."""
    results: list[CellResult] = []
    failed: dict[str, str] = {}
    for number, described in enumerate(study.cells, start=1):
        say(f"cell {number} of {len(study.cells)}: {described.name}")
        try:
            results.append(evaluate_cell(open_cell(described, study.scorers, study.compute, say, watch), study))
        except DemurError as error:
            failed[described.name] = str(error)
            say(f"  failed: {error}")
    notes = [note for result in results for note in result.notes] + shared_problems([r.cell for r in results])
    tables = [*tables_of(results, study), *([jitter_gain(results)] if results else [])]
    known = {name for result in results for name in result.cell.scores}
    notes += [f"no cell has the score {name!r} that is to be compared" for name in study.compare if name not in known]
    skipped = [cell.name for cell in study.cells if cell.pools is not None] if study.compute else []
    notes += [f"{name} is a pool file, so no scores are computed for it" for name in skipped]
    folder = out or Path(study.out or Path("results") / re.sub(r"[^\w.-]+", "-", study.name).strip(".-"))
    result = StudyResult(results, failed, notes, tables, [])
    return replace(result, files=_write(folder, study, result, figures, say) if results else [])


def _write(folder: Path, study: StudyDescription, result: StudyResult, kinds: Sequence[str], say: Say) -> list[Path]:
    """Each table in four formats, each figure with its numbers, and one page that holds the tables together."""
    files: list[Path] = []

    def put(name: str, content: bytes) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as unfinished:
            unfinished.write_bytes(content)
        files.append(path)

    for table in result.tables:
        for suffix, render in FORMATS.items():
            put(f"tables/{table.name}.{suffix}", render(table).encode())
    drawn = figures_of(result.results, study)
    for figure in drawn:
        put(f"figures/{figure.name}.csv", figure.csv().encode())
        for kind in kinds:
            say(f"drawing {figure.name}.{kind}")
            put(f"figures/{figure.name}.{kind}", draw(figure, kind))
    body = "\n".join(table.markdown() for table in result.tables)
    titles = {figure.name: markdown_text(figure.title) for figure in drawn if "svg" in kinds}
    shown = "\n".join(f"![{title}](figures/{name}.svg)\n" for name, title in titles.items())
    said = [result.verdict, *(f"Note: {note}." for note in result.notes)]
    said += [f"Failed: {name}: {reason}" for name, reason in result.failed.items()]
    head = [f"# {markdown_text(study.name)}", f"demur {__version__}, seed {study.seed}.", *map(markdown_text, said)]
    put("results.md", "\n\n".join([*head, f"{body}\n{shown}"]).encode())
    settings = {name: getattr(study, name) for name in ("name", "alphas", "n_cal", "splits", "seed")}
    settings["cells"] = [evaluated.name for evaluated in result.results]
    settings |= {name: getattr(result, name) for name in ("failed", "notes", "verdict")} | {"demur": __version__}
    put("study.json", (as_json(settings, indent=1) + "\n").encode())
    return files
