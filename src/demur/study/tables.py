"""The paper's tables from results, and tables as Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from demur.comparison import JITTERED, MAJORITY
from demur.evaluation import Summary
from demur.study.cells import TIED
from demur.study.description import StudyDescription
from demur.study.protocol import SCARCE, CellResult, Method, fresh_law, p_value

Value = str | float | int | Summary | None


@dataclass(frozen=True)
class Table:
    """Columns by name; a Summary is a mean with its standard deviation."""

    name: str
    title: str
    header: list[str]
    rows: list[list[Value]]
    note: str = ""

    def markdown(self) -> str:
        lines = [f"### {self.title}", "", _md_row(self.header), _md_row(["---"] * len(self.header))]
        lines += [_md_row([shown(value) for value in row]) for row in self.rows]
        return "\n".join([*lines, "", *([self.note, ""] if self.note else [])])

    def latex(self) -> str:
        """A booktabs table."""
        columns = "l" * _n_text(self.rows) + "r" * (len(self.header) - _n_text(self.rows))
        body = [" & ".join(_tex(shown(value, " $\\pm$ ")) for value in row) + r" \\" for row in self.rows]
        return "\n".join([
            r"\begin{table}[t]", r"\centering\small", rf"\caption{{{_tex(self.title)}. {_tex(self.note)}}}",
            rf"\label{{tab:{self.name}}}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule",
            " & ".join(_tex(name) for name in self.header) + r" \\", r"\midrule", *body, r"\bottomrule",
            r"\end{tabular}", r"\end{table}", "",
        ])  # fmt: skip

    def csv(self) -> str:
        """Plain numbers; a mean, the standard deviation and the standard error are three columns."""
        spread = [any(isinstance(row[at], Summary) for row in self.rows) for at in range(len(self.header))]
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([_number(part) for name, two in zip(self.header, spread, strict=True)
                         for part in ([name, f"{name} sd", f"{name} se"] if two else [name])])  # fmt: skip
        for row in self.rows:
            parts: list[Any] = []
            for value, two in zip(row, spread, strict=True):
                parts += _numbers(value) if two else [_number(value)]
            writer.writerow(parts)
        return stream.getvalue()

    def json(self) -> str:
        rows = [{name: _plain(value) for name, value in zip(self.header, row, strict=True)} for row in self.rows]
        document = {"name": self.name, "title": self.title, "note": self.note, "rows": rows}
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


FORMATS: dict[str, Callable[[Table], str]] = {
    "md": Table.markdown, "tex": Table.latex, "csv": Table.csv, "json": Table.json,
}  # fmt: skip


def tables_of(results: Sequence[CellResult], study: StudyDescription) -> list[Table]:
    """Every table of the study; those without a row are left out."""
    datasets = list(dict.fromkeys(result.cell.description.dataset for result in results))
    by_dataset = {name: [r for r in results if r.cell.description.dataset == name] for name in datasets}
    slugs = _slugs(datasets)
    made = [
        _grid(results),
        _scorers(results),
        *(_confident_errors(name, slugs[name], group, study) for name, group in by_dataset.items()),
        *(_main(name, slugs[name], group, study) for name, group in by_dataset.items()),
        _frontier_auc(results),
        _frontier_shared(results),
        _sizes(results, study),
        _sampling_time(results),
        _scoring_time(results),
        *(_ablation(what, results) for what in ("m", "n_cal", "weight")),
    ]
    return [table for table in made if table.rows]


def _grid(results: Sequence[CellResult]) -> Table:
    rows: list[list[Value]] = []
    for result in results:
        cell, low_high = result.cell, result.cell.n_paths
        temperature = cell.source.sampled.get("temperature") or cell.description.temperature
        m = str(low_high[0]) if low_high[0] == low_high[1] else f"{low_high[0]}-{low_high[1]}"
        majority = result.method(MAJORITY)
        described = cell.description
        others = [result.baselines.get(name) for name in ("greedy", "single path", "oracle")]
        voted = majority.vote_accuracy if majority else None
        rows.append([described.dataset, described.model, _or_dash(temperature), cell.n, m, voted, *others])
    return Table(
        "grid", "Cells", ["Dataset", "Model", "Temperature", "n", "m", "MV", "Greedy", "Single path", "Oracle"], rows,
        "MV is the accuracy of the unweighted majority vote; the oracle counts a question as right if any path is.",
    )  # fmt: skip


def _scorers(results: Sequence[CellResult]) -> Table:
    seen: dict[tuple[str, ...], list[Value]] = {}
    for result in results:
        for name in result.cell.scores:
            identity = result.cell.source.scorers.get(name, {})
            family, model = str(identity.get("scorer", "imported")), str(identity.get("model", "–"))
            normaliser = result.cell.description.normaliser or str(identity.get("normaliser", "none"))
            seen.setdefault((name, family, model, normaliser), [name, family, model, normaliser])
    return Table("scorers", "Scores", ["Score", "Family", "Model", "Normaliser"], list(seen.values()))


def _confident_errors(dataset: str, slug: str, results: Sequence[CellResult], study: StudyDescription) -> Table:
    header = ["Model", "Method"]
    for alpha in study.alphas:
        header += [f"alpha {alpha:g}", f"exact {alpha:g}", f"fresh {alpha:g}", f"z {alpha:g}", f"p {alpha:g}"]
    rows: list[list[Value]] = []
    for result in results:
        for method in result.methods:
            row: list[Value] = [result.cell.description.model, method.name]
            for point, check in zip(method.points, method.checks, strict=True):
                exact, fresh = point.expected_confident_error, fresh_law(method, point)
                row += [point.confident_error, exact, fresh, check.z, p_value(check)]
            rows.append(row)
    return Table(
        f"ce-{slug}", f"{dataset}: confident-error rate ({_setting(results)})", header,
        rows, "Mean and standard deviation over random splits; 'exact' is the mean over all random splits of this "
        "file, 'fresh' mean and deviation on as much new data without ties (beta-binomial); z counts standard errors "
        f"from 'exact', over {results[0].methods[0].checks[0].splits} splits.",
    )  # fmt: skip


def _setting(results: Sequence[CellResult]) -> str:
    points = [method.points[0] for result in results for method in result.methods]
    sizes = sorted({point.n_cal for point in points})
    return f"n_cal {' or '.join(map(str, sizes))}, {points[0].splits} splits"


def _main(dataset: str, slug: str, results: Sequence[CellResult], study: StudyDescription) -> Table:
    header = ["Model", "Method", "p_v", "best"]
    for alpha in study.alphas:
        header += [f"A_c {alpha:g}", f"Y {alpha:g}", f"empty {alpha:g}", f"† {alpha:g}"]
    rows: list[list[Value]] = []
    for result in results:
        model = result.cell.description.model
        for name, accuracy in result.baselines.items():
            whole: list[Value] = [accuracy, 1.0, 0, ""]
            rows.append([model, name, None, None, *(value for _ in study.alphas for value in whole)])
        for method in result.methods:
            row: list[Value] = [model, method.name, method.vote_accuracy, method.best_of_m]
            for point in method.points:
                scarce = "†" if point.answered.mean < SCARCE else ""
                row += [point.selective_accuracy, point.answered, point.empty_splits, scarce]
            rows.append(row)
    return Table(
        f"main-{slug}", f"{dataset}: accuracy and yield ({_setting(results)})",
        header, rows, "p_v is the accuracy of the vote without abstention, best that of best-of-m; A_c the accuracy of "
        "what is answered, Y the share answered; 'empty' counts splits in which nothing was, which A_c leaves out. "
        f"† mean yield below {SCARCE:.0%}.",
    )  # fmt: skip


def _frontier_auc(results: Sequence[CellResult]) -> Table:
    return _by_method(
        "frontier-auc", "Frontier AUC", results, lambda result, method: method.frontier.auc,
        "The paper's area over [smallest yield, largest], not divided by the width: it favours votes with few ties.",
    )  # fmt: skip


def _frontier_shared(results: Sequence[CellResult]) -> Table:
    return _by_method(
        "frontier-shared", "Mean selective accuracy over shared yields", results,
        lambda result, method: result.common_auc.get(method.name, math.nan),
        "Over the yields that all votes of a cell reach, so that ties favour none.",
    )  # fmt: skip


def _by_method(
    name: str, title: str, results: Sequence[CellResult], figure: Callable[[CellResult, Method], float], note: str
) -> Table:
    methods = list(dict.fromkeys(method.name for result in results for method in result.methods))
    rows: list[list[Value]] = []
    for result in results:
        held = {method.name: figure(result, method) for method in result.methods}
        described = result.cell.description
        rows.append([described.dataset, described.model, *(held.get(method) for method in methods)])
    return Table(name, title, ["Dataset", "Model", *methods], rows, note)


def _sizes(results: Sequence[CellResult], study: StudyDescription) -> Table:
    header = ["Dataset", "Model", *(f"A_c {name}" for name in study.compare), *(f"Y {name}" for name in study.compare)]
    rows: list[list[Value]] = []
    for result in results:
        held = [result.method(name) for name in study.compare]
        if any(held):
            described = result.cell.description
            accuracies: list[Value] = [each.points[0].selective_accuracy if each else None for each in held]
            yields: list[Value] = [each.points[0].answered if each else None for each in held]
            rows.append([described.dataset, described.model, *accuracies, *yields])
    return Table("sizes", f"Scorers side by side at alpha {study.alphas[0]:g}", header, rows)


def _sampling_time(results: Sequence[CellResult]) -> Table:
    rows: list[list[Value]] = [
        [result.cell.description.dataset, result.cell.description.model, _clock(result.cell.timings["sample"])]
        for result in results
        if "sample" in result.cell.timings
    ]
    return Table("time-sampling", "Wall clock of sampling", ["Dataset", "Model", "hours:minutes:seconds"], rows)


def _scoring_time(results: Sequence[CellResult]) -> Table:
    names = sorted({name for result in results for name in result.cell.timings if name.startswith("score ")})
    rows: list[list[Value]] = [
        [result.cell.description.dataset, result.cell.description.model,
         *(_clock(result.cell.timings[name]) if name in result.cell.timings else None for name in names)]
        for result in results
        if any(name in result.cell.timings for name in names)
    ]  # fmt: skip
    header = ["Dataset", "Model", *(name.removeprefix("score ") for name in names)]
    return Table("time-scoring", "Wall clock of scoring", header, rows)


def _ablation(what: str, results: Sequence[CellResult]) -> Table:
    titles = {"m": "paths m", "n_cal": "calibration questions n_cal", "weight": "weight function"}
    rows: list[list[Value]] = []
    for result in results:
        for each in result.variations:
            if each.what == what:
                found = each.result
                realised: list[Value] = [found.selective_accuracy, found.answered, found.confident_error]
                exact: list[Value] = [found.expected_confident_error, found.threshold]
                how: list[Value] = [result.name, each.method, each.normaliser, each.value, each.vote_accuracy]
                rows.append([*how, *realised, *exact])
    header = ["Cell", "Method", "Normaliser", what, "p_v", "A_c", "Y", "CE", "exact CE", "threshold"]
    alpha = next((v.result.alpha for r in results for v in r.variations), math.nan)
    return Table(f"ablation-{what.replace('_', '-')}", f"Effect of the {titles[what]} at alpha {alpha:g}", header, rows)


def jitter_gain(results: Sequence[CellResult]) -> Table:
    """What each step adds to the yield: plain votes, jitter among ties, weights, and ties broken by the mean score."""
    rows: list[list[Value]] = []
    for result in results:
        plain, broken = result.method(MAJORITY), result.method(JITTERED)
        if plain is None or broken is None:
            continue
        before: list[Value] = [plain.points[0].answered, broken.points[0].answered]
        for score in result.cell.scores:
            weighted, tied = result.method(score), result.method(f"{score}{TIED}")
            if weighted and tied:
                rows.append([result.name, score, *before, weighted.points[0].answered, tied.points[0].answered])
    return Table(
        "jitter", "Yield: majority vote, with jitter, weighted, with ties by mean score",
        ["Cell", "Score", "Y majority", "Y with jitter", "Y weighted", "Y weighted, ties by mean score"], rows,
    )  # fmt: skip


def _or_dash(value: Any) -> Value:
    return value if isinstance(value, (int, float, str)) else None


def shown(value: Any, between: str = " ± ") -> str:
    if value is None:
        return "–"
    if isinstance(value, Summary) and math.isnan(value.mean):
        return "–"
    if isinstance(value, Summary):
        return f"{value.mean:.3f}" + ("" if math.isnan(value.sd) else f"{between}{value.sd:.3f}")
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.4g}" if abs(value) < 10 else f"{value:.1f}"
    return str(value)


def _md_row(parts: Sequence[str]) -> str:
    return "| " + " | ".join(part.replace("|", "\\|").replace("\n", " ") for part in parts) + " |"


def _tex(text: str) -> str:
    """Text as LaTeX has it; the sign between a mean and its spread stays."""
    kept = "$\\pm$"
    parts = text.split(kept)
    signs = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "$": r"\$", "{": r"\{",
             "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--",
             "†": r"$\dagger$"}  # fmt: skip
    return kept.join("".join(signs.get(c, c) for c in part) for part in parts)


def _n_text(rows: Sequence[Sequence[Value]]) -> int:
    """How many columns come before the figures."""
    return next((at for at, value in enumerate(rows[0]) if not isinstance(value, str)), len(rows[0])) if rows else 0


def _numbers(value: Value) -> list[Any]:
    if isinstance(value, Summary):
        return [_number(value.mean), _number(value.sd), _number(value.se)]
    return [_number(value), "", ""]


def _number(value: Value) -> Any:
    if isinstance(value, str):  # a spreadsheet must not take a name for a formula
        return f"'{value}" if value[:1] in ("=", "+", "-", "@") else value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return value.mean if isinstance(value, Summary) else value


def _plain(value: Value) -> Any:
    if isinstance(value, Summary):
        return {name: None if math.isnan(part) else part for name, part in
                (("mean", value.mean), ("sd", value.sd), ("se", value.se))}  # fmt: skip
    return None if isinstance(value, float) and math.isnan(value) else value


def _clock(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _slugs(names: Sequence[str]) -> dict[str, str]:
    """A short file name for each name, no two alike."""
    found: dict[str, str] = {}
    for name in names:
        slug = re.sub(r"\W+", "-", name.lower()).strip("-")[:60] or "cells"
        taken = set(found.values())
        found[name] = next(each for each in (slug, *(f"{slug}-{i}" for i in range(2, 1000))) if each not in taken)
    return found
