"""The paper's tables from results, and tables as Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from demur.evaluation.comparison import JITTERED, MAJORITY
from demur.evaluation.summaries import Summary
from demur.files.strict_json import as_json
from demur.study.cells import TIED
from demur.study.description import StudyDescription
from demur.study.protocol import SCARCE, CellResult, Method, fresh_law

Value = str | float | int | Summary | None
Row = list[Value]
Parts = tuple[Value, Value, Value]
Measure = Callable[[CellResult, Method], Summary]

_BASELINES = ("greedy", "single path", "oracle")
_RANKED = (
    "Methods are compared by the labels of all questions of a cell: to choose one by this table and calibrate on the "
    "same questions would break the promise; `demur tune` chooses on a part that then does not calibrate."
)
_AUC_NOTE = (
    "The paper's area over [smallest yield, largest], not divided by the width: it favours votes with few ties. ± is a "
    f"standard error over questions. {_RANKED}"
)
_SHARED_NOTE = (
    "Over the yields that all votes of a cell reach, so that ties favour none. ± is a standard error over questions. "
    f"{_RANKED}"
)
_NAMED = {"\\": "textbackslash", "~": "textasciitilde", "^": "textasciicircum"}
_ESCAPED = {sign: f"\\{sign}" for sign in "&%#_${}"} | {sign: f"\\{name}{{}}" for sign, name in _NAMED.items()}
_MARKDOWN = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {sign: f"\\{sign}" for sign in "\\|`*[]"})
_FORMULA = frozenset("=+-@＝＋－＠")
_TEX = str.maketrans(_ESCAPED | {"–": "--", "†": r"$\dagger$"})


@dataclass(frozen=True)
class Table:
    """Columns by name; a Summary is a mean with its standard deviation."""

    name: str
    title: str
    header: list[str]
    rows: list[Row]
    note: str = ""

    def markdown(self) -> str:
        lines = [_md_row(self.header), _md_row(["---"] * len(self.header)), *map(_md_row, self.rows)]
        note = [markdown_text(self.note), ""] if self.note else []
        return "\n".join([f"### {markdown_text(self.title)}", "", *lines, "", *note])

    def latex(self) -> str:
        """A booktabs table."""
        columns = "l" * _n_text(self.rows) + "r" * (len(self.header) - _n_text(self.rows))
        caption, label = rf"\caption{{{_tex(self.title)}. {_tex(self.note)}}}", rf"\label{{tab:{self.name}}}"
        head = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _tex_row(self.header), r"\midrule"]
        body = [*map(_tex_row, self.rows), r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]
        return "\n".join([r"\begin{table}[t]", r"\centering\small", caption, label, *head, *body])

    def csv(self) -> str:
        """Plain numbers; a mean, the standard deviation and the standard error are three columns."""
        widths = [3 if any(isinstance(row[at], Summary) for row in self.rows) else 1 for at in range(len(self.header))]
        header: list[Parts] = [(name, f"{name} sd", f"{name} se") for name in self.header]
        rows = [header, *([_parts(value) for value in row] for row in self.rows)]
        return csv_text(
            [_number(part) for parts, width in zip(row, widths, strict=True) for part in parts[:width]] for row in rows
        )

    def json(self) -> str:
        rows = [{name: _plain(value) for name, value in zip(self.header, row, strict=True)} for row in self.rows]
        document = {"name": self.name, "title": self.title, "note": self.note, "rows": rows}
        return as_json(document, indent=1, ensure_ascii=False) + "\n"


FORMATS = {"md": Table.markdown, "tex": Table.latex, "csv": Table.csv, "json": Table.json}


def tables_of(results: Sequence[CellResult], study: StudyDescription) -> list[Table]:
    """Every table of the study; those without a row are left out."""
    datasets = list(dict.fromkeys(result.cell.description.dataset for result in results))
    by_dataset = {name: [r for r in results if r.cell.description.dataset == name] for name in datasets}
    slugs = _slugs(datasets)
    commands = sorted({name for result in results for name in result.cell.timings})
    scored = {name: name.removeprefix("score ") for name in commands if name.startswith("score ")}
    made = [
        _grid(results),
        _scorers(results),
        *(_confident_errors(name, slugs[name], group, study) for name, group in by_dataset.items()),
        *(_main(name, slugs[name], group, study) for name, group in by_dataset.items()),
        _by_method("frontier-auc", "Frontier AUC", results, _frontier_auc, _AUC_NOTE),
        _by_method("frontier-shared", "Mean selective accuracy over shared yields", results, _shared_auc, _SHARED_NOTE),
        _sizes(results, study),
        _times("time-sampling", "Wall clock of sampling", {"sample": "hours:minutes:seconds"}, results),
        _times("time-scoring", "Wall clock of scoring", scored, results),
        *(_ablation(what, results) for what in ("m", "n_cal", "weight")),
    ]
    return [table for table in made if table.rows]


def _cell(result: CellResult) -> Row:
    return [result.cell.description.dataset, result.cell.description.model]


def _grid(results: Sequence[CellResult]) -> Table:
    rows: list[Row] = []
    for result in results:
        cell, (fewest, most) = result.cell, result.cell.n_paths
        temperature = cell.source.description.sampling.get("temperature") or cell.description.temperature
        m = str(fewest) if fewest == most else f"{fewest}-{most}"
        majority = result.method(MAJORITY)
        row = [*_cell(result), temperature if isinstance(temperature, (int, float, str)) else None, cell.n, m]
        row += [majority.vote_accuracy if majority else None, *map(result.baselines.get, _BASELINES)]
        rows.append(row)
    header = ["Dataset", "Model", "Temperature", "n", "m", "MV", *(name.capitalize() for name in _BASELINES)]
    note = "MV is the accuracy of the unweighted majority vote; the oracle counts a question as right if any path is."
    return Table("grid", "Cells", header, rows, note)


def _scorers(results: Sequence[CellResult]) -> Table:
    rows: dict[tuple[str, ...], None] = {}
    for result in results:
        for name in result.cell.scores:
            identity = result.cell.source.scorers.get(name, {})
            family, model = str(identity.get("scorer", "imported")), str(identity.get("model", "–"))
            normaliser = result.cell.description.normaliser or str(identity.get("normaliser", "none"))
            rows[name, family, model, normaliser] = None
    return Table("scorers", "Scores", ["Score", "Family", "Model", "Normaliser"], [list(row) for row in rows])


def _confident_errors(dataset: str, slug: str, results: Sequence[CellResult], study: StudyDescription) -> Table:
    measures = ("alpha", "exact", "fresh", "z", "p")
    header = ["Model", "Method", *(f"{name} {alpha:g}" for alpha in study.alphas for name in measures)]
    rows: list[Row] = []
    for result in results:
        for method in result.methods:
            row: Row = [result.cell.description.model, method.name]
            for point, check in zip(method.points, method.checks, strict=True):
                exact, fresh = point.expected_confident_error, fresh_law(method, point)
                row += [point.confident_error, exact, fresh, check.z, check.p_value]
            rows.append(row)
    note = (
        "Mean and standard deviation over random splits; 'exact' is the mean over all random splits of this "
        "file, 'fresh' mean and deviation on as much new data without ties (beta-binomial, no more errors than wrong "
        "votes with any confidence); z counts standard errors from 'exact', and p is its two-sided p-value, both by "
        f"the exact law of {results[0].methods[0].checks[0].splits} splits."
    )
    return Table(f"ce-{slug}", f"{dataset}: confident-error rate ({_setting(results)})", header, rows, note)


def _setting(results: Sequence[CellResult]) -> str:
    points = [method.points[0] for result in results for method in result.methods]
    sizes = sorted({point.n_cal for point in points})
    return f"n_cal {' or '.join(map(str, sizes))}, {points[0].splits} splits"


def _main(dataset: str, slug: str, results: Sequence[CellResult], study: StudyDescription) -> Table:
    measures = ("A_c", "Y", "empty", "†")
    header = ["Model", "Method", "p_v", "best", *(f"{name} {alpha:g}" for alpha in study.alphas for name in measures)]
    rows: list[Row] = []
    for result in results:
        model = result.cell.description.model
        for name, accuracy in result.baselines.items():
            whole: Row = [accuracy, 1.0, 0, ""]
            rows.append([model, name, None, None, *(whole * len(study.alphas))])
        for method in result.methods:
            row: Row = [model, method.name, method.vote_accuracy, method.best_of_m]
            for point in method.points:
                scarce = "†" if point.answered.mean < SCARCE else ""
                row += [point.selective_accuracy, point.answered, point.empty_splits, scarce]
            rows.append(row)
    note = (
        "p_v is the accuracy of the vote without abstention, best that of best-of-m; A_c the accuracy of "
        "what is answered, Y the share answered; 'empty' counts splits in which nothing was, which A_c leaves out. "
        f"† mean yield below {SCARCE:.0%}. ± is the standard deviation over splits. {_RANKED}"
    )
    return Table(f"main-{slug}", f"{dataset}: accuracy and yield ({_setting(results)})", header, rows, note)


def _frontier_auc(result: CellResult, method: Method) -> Summary:
    error = result.errors[method.name][0]
    return Summary(method.frontier.auc, error, error)


def _shared_auc(result: CellResult, method: Method) -> Summary:
    error = result.errors[method.name][1]
    return Summary(result.common_auc.get(method.name, math.nan), error, error)


def _by_method(name: str, title: str, results: Sequence[CellResult], measure: Measure, note: str) -> Table:
    methods = list(dict.fromkeys(method.name for result in results for method in result.methods))
    rows: list[Row] = []
    for result in results:
        values = {method.name: measure(result, method) for method in result.methods}
        rows.append([*_cell(result), *map(values.get, methods)])
    return Table(name, title, ["Dataset", "Model", *methods], rows, note)


def _sizes(results: Sequence[CellResult], study: StudyDescription) -> Table:
    header = ["Dataset", "Model", *(f"A_c {name}" for name in study.compare), *(f"Y {name}" for name in study.compare)]
    rows: list[Row] = []
    for result in results:
        methods = [result.method(name) for name in study.compare]
        if any(methods):
            points = [method.points[0] if method else None for method in methods]
            row = [*_cell(result), *(point.selective_accuracy if point else None for point in points)]
            rows.append([*row, *(point.answered if point else None for point in points)])
    note = f"± is the standard deviation over splits. {_RANKED}"
    return Table("sizes", f"Scorers side by side at alpha {study.alphas[0]:g}", header, rows, note)


def _times(name: str, title: str, commands: Mapping[str, str], results: Sequence[CellResult]) -> Table:
    """The wall clock of some commands, each under its name."""
    rows: list[Row] = []
    for result in results:
        clocks = {command: _clock(seconds) for command, seconds in result.cell.timings.items() if command in commands}
        if clocks:
            rows.append([*_cell(result), *map(clocks.get, commands)])
    return Table(name, title, ["Dataset", "Model", *commands.values()], rows)


def _ablation(what: str, results: Sequence[CellResult]) -> Table:
    titles = {"m": "paths m", "n_cal": "calibration questions n_cal", "weight": "weight function"}
    rows: list[Row] = []
    for result in results:
        for varied in (variation for variation in result.variations if variation.what == what):
            point = varied.result
            row: Row = [result.name, varied.method, varied.normaliser, varied.value, varied.vote_accuracy]
            row += [point.selective_accuracy, point.answered, point.confident_error]
            rows.append([*row, point.expected_confident_error, point.threshold])
    header = ["Cell", "Method", "Normaliser", what, "p_v", "A_c", "Y", "CE", "exact CE", "threshold"]
    alpha = next((varied.result.alpha for result in results for varied in result.variations), math.nan)
    return Table(f"ablation-{what.replace('_', '-')}", f"Effect of the {titles[what]} at alpha {alpha:g}", header, rows)


def jitter_gain(results: Sequence[CellResult]) -> Table:
    """What each step adds to the yield: plain votes, jitter among ties, weights, and ties broken by the mean score."""
    rows: list[Row] = []
    for result in results:
        for score in result.cell.scores:
            methods = [result.method(name) for name in (MAJORITY, JITTERED, score, f"{score}{TIED}")]
            yields = [method.points[0].answered for method in methods if method is not None]
            if len(yields) == len(methods):
                rows.append([result.name, score, *yields])
    title = "Yield: majority vote, with jitter, weighted, with ties by mean score"
    header = ["Cell", "Score", "Y majority", "Y with jitter", "Y weighted", "Y weighted, ties by mean score"]
    return Table("jitter", title, header, rows)


def shown(value: Any, between: str = " ± ") -> str:
    if isinstance(value, Summary) and not math.isnan(value.mean):
        return f"{value.mean:.3f}" + ("" if math.isnan(value.sd) else f"{between}{value.sd:.3f}")
    if value is None or isinstance(value, Summary) or value != value:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 10 else f"{value:.1f}"
    return str(value)


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([_safe(value) for value in row] for row in rows)
    return stream.getvalue()


def _safe(value: Any) -> Any:
    """A spreadsheet must not take a name for a formula, whatever blanks stand before it, nor for a row of its own."""
    if not isinstance(value, str):
        return value
    line = " ".join(value.splitlines())
    return f"'{line}" if line.lstrip()[:1] in _FORMULA or line[:1] == "\t" else line


def markdown_text(text: str) -> str:
    """Text that Markdown shows as it is: no markup, no link, no picture, one line."""
    return " ".join(text.translate(_MARKDOWN).splitlines())


def _md_row(values: Sequence[Value]) -> str:
    return "| " + " | ".join(markdown_text(shown(value)) for value in values) + " |"


def _tex_row(values: Sequence[Value]) -> str:
    return " & ".join(_tex(shown(value, " $\\pm$ ")) for value in values) + r" \\"


def _tex(text: str) -> str:
    """Text as LaTeX has it; the sign between a mean and its spread stays."""
    return "$\\pm$".join(part.translate(_TEX) for part in text.split("$\\pm$"))


def _n_text(rows: Sequence[Sequence[Value]]) -> int:
    """How many columns come before the figures."""
    return next((at for at, value in enumerate(rows[0]) if not isinstance(value, str)), len(rows[0])) if rows else 0


def _parts(value: Value) -> Parts:
    return (value.mean, value.sd, value.se) if isinstance(value, Summary) else (value, None, None)


def _number(value: Value) -> Any:
    return "" if value is None or value != value else value


def _plain(value: Value) -> Any:
    if isinstance(value, Summary):
        return asdict(value)
    return value


def _clock(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _slugs(names: Sequence[str]) -> dict[str, str]:
    """A short file name for each name, no two alike."""
    slugs: dict[str, str] = {}
    for name in names:
        slug = re.sub(r"\W+", "-", name.lower()).strip("-")[:60] or "cells"
        numbered = (slug, *(f"{slug}-{number}" for number in range(2, 1000)))
        slugs[name] = next(candidate for candidate in numbered if candidate not in slugs.values())
    return slugs
