"""The paper's figures from results: each a list of numbers, and a chart drawn from nothing else.

Charts are specifications of Vega-Lite, written by Altair and drawn by vl-convert without a browser or a network.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from demur.errors import MissingExtra
from demur.evaluation import SplitResult, Summary
from demur.study.cells import TIED
from demur.study.description import StudyDescription
from demur.study.protocol import CellResult, Method

Row = dict[str, Any]
COLOURS = ("#7a7f87", "#b3b7bd", "#1f6feb", "#d9480f", "#2b8a3e", "#8e44ad", "#0b7285", "#c2255c", "#e67700", "#364fc7")
_SHARES = {"answered right": "#1f6feb", "answered wrong": "#d9480f", "abstained": "#ced4da"}


@dataclass(frozen=True)
class Figure:
    """Numbers, and how they are drawn."""

    name: str
    title: str
    rows: list[Row]
    kind: str

    def csv(self) -> str:
        stream = io.StringIO()
        writer = csv.DictWriter(stream, list(self.rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in self.rows:
            undefined = {name for name, value in row.items() if isinstance(value, float) and math.isnan(value)}
            writer.writerow({name: "" if name in undefined else value for name, value in row.items()})
        return stream.getvalue()

    def chart(self) -> Any:
        """The chart, as Altair has it."""
        return _DRAWN[self.kind](self)


def figures_of(results: Sequence[CellResult], study: StudyDescription) -> list[Figure]:
    """Every figure of the study; those without data are left out."""
    alpha = study.ablations.alpha or study.alphas[0]
    made = [
        Figure("error-control", "Realised error minus alpha", _error_control(results), "error-control"),
        Figure("shares", "What happens to questions as alpha grows", _shares(results), "shares"),
        Figure("predicted-observed", "Selective accuracy, predicted and observed", _accuracy(results), "accuracy"),
        Figure("frontiers", "Accuracy against yield", _frontiers(results), "frontiers"),
        Figure("separability", "Separability gap Δ", _gaps(results), "gaps"),
        Figure("hazards", "Hazard gap δ", _hazards(results), "hazards"),
        Figure("ablations", f"Ablations at alpha {alpha:g}", _ablations(results, alpha), "ablations"),
    ]
    return [figure for figure in made if figure.rows]


def draw(figure: Figure, kind: str) -> bytes:
    """The figure as svg, png or pdf."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("figures need Altair and vl-convert; install: pip install 'demur[report]'") from None
    specification = figure.chart().to_json()
    if kind == "svg":
        return str(vl_convert.vegalite_to_svg(specification)).encode()
    made = (
        vl_convert.vegalite_to_png(specification, scale=2)
        if kind == "png"
        else vl_convert.vegalite_to_pdf(specification)
    )
    return bytes(made)


def _methods(results: Sequence[CellResult]) -> list[tuple[CellResult, Method]]:
    """What is drawn: each way of voting, but not each with its ties broken too."""
    return [(result, method) for result in results for method in result.methods if not method.name.endswith(TIED)]


def _error_control(results: Sequence[CellResult]) -> list[Row]:
    return [
        {"cell": result.name, "method": method.name, "alpha": point.alpha,
         "excess": point.confident_error.mean - point.alpha, "se": point.confident_error.se}
        for result, method in _methods(results)
        for point in method.sweep
    ]  # fmt: skip


def _shares(results: Sequence[CellResult]) -> list[Row]:
    rows: list[Row] = []
    for result in results:
        method = result.methods[min(2, len(result.methods) - 1)]  # the first score, or the jittered majority vote
        named = {"cell": f"{result.name}: {method.name}", "method": method.name}
        for point in method.sweep:
            wrong, answered = point.confident_error.mean, point.answered.mean
            parts = {"answered right": answered - wrong, "answered wrong": wrong, "abstained": 1 - answered}
            rows += [{**named, "alpha": point.alpha, "what": what, "share": share} for what, share in parts.items()]
    return rows


def _accuracy(results: Sequence[CellResult]) -> list[Row]:
    rows = []
    for result, method in _methods(results):
        curves = method.curves
        for at, threshold in enumerate(curves.threshold.tolist()):
            rows.append({
                "cell": result.name, "method": method.name, "threshold": threshold,
                "predicted": float(curves.predicted[at]), "lower": float(curves.lower[at]),
                "upper": float(curves.upper[at]), "observed": float(curves.observed[at]),
                "calibrated": curves.calibrated, "vote_accuracy": method.vote_accuracy, "best_of_m": method.best_of_m,
            })  # fmt: skip
    return rows


def _frontiers(results: Sequence[CellResult]) -> list[Row]:
    rows = []
    for result, method in _methods(results):
        curve = method.frontier
        step = max(1, len(curve.answered) // 100)
        kept = sorted({*range(0, len(curve.answered), step), len(curve.answered) - 1} if len(curve.answered) else ())
        rows += [
            {"cell": result.name, "method": method.name, "yield": float(curve.answered[at]),
             "accuracy": float(curve.selective_accuracy[at])}
            for at in kept
        ]  # fmt: skip
    return rows


def _gaps(results: Sequence[CellResult]) -> list[Row]:
    return [
        {"cell": result.name, "method": method.name, "threshold": threshold, "gap": gap}
        for result, method in _methods(results)
        for threshold, gap in zip(method.curves.threshold.tolist(), method.curves.gap.tolist(), strict=True)
    ]


def _hazards(results: Sequence[CellResult]) -> list[Row]:
    return [
        {"cell": result.name, "method": method.name, "confidence": edge, "gap": gap if math.isfinite(gap) else math.nan}
        for result, method in _methods(results)
        for edge, gap in zip(method.curves.hazard_edges.tolist(), method.curves.hazard_gap.tolist(), strict=True)
    ]


def _ablations(results: Sequence[CellResult], alpha: float) -> list[Row]:
    """What was varied; where anything was, also the scores themselves."""
    varied = [result for result in results if result.variations]
    scores = [
        {"cell": result.name, "what": "score", "value": method.name, "method": method.name, "measure": measure,
         "mean": summary.mean, "sd": summary.sd}
        for result in varied
        for _, method in _methods([result])
        for measure, summary in _measures(_at(method, alpha))
    ]  # fmt: skip
    return [
        {"cell": result.name, "what": each.what, "value": each.value, "method": each.method, "measure": measure,
         "mean": summary.mean, "sd": summary.sd}
        for result in results
        for each in result.variations
        for measure, summary in _measures(each.result)
    ] + scores  # fmt: skip


def _at(method: Method, alpha: float) -> SplitResult:
    return next((each for each in (*method.points, *method.sweep) if each.alpha == alpha), method.points[0])


def _measures(result: SplitResult) -> list[tuple[str, Summary]]:
    return [("A_c", result.selective_accuracy), ("Y", result.answered), ("CE", result.confident_error)]


def _altair() -> Any:
    try:
        import altair
    except ImportError:
        raise MissingExtra("figures need Altair and vl-convert; install: pip install 'demur[report]'") from None
    return altair


def _data(figure: Figure) -> Any:
    """Rows with undefined numbers as nothing, which charts leave out."""
    rows = [
        {
            name: None if isinstance(value, float) and not math.isfinite(value) else _visible(value)
            for name, value in row.items()
        }
        for row in figure.rows
    ]
    return _altair().Data(values=rows)


def _visible(value: Any) -> Any:
    """Text that a drawing can hold: without control characters."""
    return "".join(c if c.isprintable() else "\ufffd" for c in value) if isinstance(value, str) else value


def _colour(figure: Figure) -> Any:
    names = list(dict.fromkeys(_visible(row["method"]) for row in figure.rows))
    scale = _altair().Scale(domain=names, range=[COLOURS[at % len(COLOURS)] for at in range(len(names))])
    return _altair().Color(
        "method:N", title=None, scale=scale, legend=_altair().Legend(orient="bottom", columns=4, labelLimit=320)
    )


def _faceted(figure: Figure, chart: Any, columns: int = 3) -> Any:
    alt = _altair()
    order = list(dict.fromkeys(_visible(row["cell"]) for row in figure.rows))
    return chart.facet(facet=alt.Facet("cell:N", title=None, sort=order), columns=columns).properties(
        title=figure.title, background="white", padding=10
    )


def _alpha() -> Any:
    return _altair().X("alpha:Q", title="α", axis=_altair().Axis(tickCount=5))


def _draw_error_control(figure: Figure) -> Any:
    alt = _altair()
    base = alt.Chart(_data(figure)).properties(width=240, height=170)
    lines = base.mark_line().encode(x=_alpha(), y=alt.Y("excess:Q", title="realised error − α"), color=_colour(figure))
    zero = base.mark_rule(strokeDash=[4, 3], color="#495057").encode(y=alt.datum(0))
    return _faceted(figure, alt.layer(lines, zero))


def _draw_shares(figure: Figure) -> Any:
    alt = _altair()
    order = alt.Scale(domain=list(_SHARES), range=list(_SHARES.values()))
    base = alt.Chart(_data(figure)).properties(width=240, height=170)
    areas = base.mark_area().encode(
        x=_alpha(),
        y=alt.Y("share:Q", title="share of questions", stack="zero", scale=alt.Scale(domain=[0, 1])),
        color=alt.Color("what:N", title=None, scale=order, sort=list(_SHARES), legend=alt.Legend(orient="bottom")),
        order=alt.Order("what:N", sort="descending"),
    )  # fmt: skip
    return _faceted(figure, areas)


def _draw_accuracy(figure: Figure) -> Any:
    alt = _altair()
    base = alt.Chart(_data(figure)).properties(width=240, height=170)
    x, colour = alt.X("threshold:Q", title="threshold λ"), _colour(figure)
    predicted = base.mark_line().encode(
        x=x, y=alt.Y("predicted:Q", title="selective accuracy A_c", scale=alt.Scale(zero=False)), color=colour
    )
    observed = base.mark_line(strokeDash=[4, 3]).encode(x=x, y="observed:Q", color=colour)
    calibrated = base.mark_rule(opacity=0.6).encode(x="mean(calibrated):Q", color=colour)
    vote = base.mark_rule(opacity=0.25).encode(y="mean(vote_accuracy):Q", color=colour)
    best = base.mark_rule(opacity=0.5, strokeDash=[1, 3]).encode(y="mean(best_of_m):Q", color=colour)
    return _faceted(figure, alt.layer(predicted, observed, calibrated, vote, best))


def _draw_frontiers(figure: Figure) -> Any:
    alt = _altair()
    lines = alt.Chart(_data(figure)).mark_line().encode(
        x=alt.X("yield:Q", title="yield Y", scale=alt.Scale(domain=[0, 1])),
        y=alt.Y("accuracy:Q", title="selective accuracy A_c", scale=alt.Scale(zero=False)), color=_colour(figure),
        order="yield:Q",
    ).properties(width=240, height=170)  # fmt: skip
    return _faceted(figure, lines)


def _draw_gaps(figure: Figure) -> Any:
    alt = _altair()
    lines = alt.Chart(_data(figure)).mark_line().encode(
        x=alt.X("threshold:Q", title="threshold λ"), y=alt.Y("gap:Q", title="Δ = S_cor − S_err"), color=_colour(figure)
    ).properties(width=240, height=170)  # fmt: skip
    return _faceted(figure, lines)


def _draw_hazards(figure: Figure) -> Any:
    alt = _altair()
    lines = alt.Chart(_data(figure)).mark_line(point=True, interpolate="step-before").encode(
        x=alt.X("confidence:Q", title="confidence ν"), y=alt.Y("gap:Q", title="δ = h_err − h_cor"),
        color=_colour(figure),
    ).properties(width=240, height=170)  # fmt: skip
    return _faceted(figure, lines)


def _draw_ablations(figure: Figure) -> Any:
    alt = _altair()
    order = list(dict.fromkeys(row["value"] for row in figure.rows))
    points = alt.Chart(_data(figure)).mark_line(point=True).encode(
        x=alt.X("value:N", title=None, sort=order), y=alt.Y("mean:Q", title=None, scale=alt.Scale(zero=False)),
        color=alt.Color("cell:N", title=None, legend=alt.Legend(orient="bottom", columns=3, labelLimit=320)),
    ).properties(width=220, height=140)  # fmt: skip
    return points.facet(row=alt.Row("measure:N", title=None), column=alt.Column("what:N", title=None)).resolve_scale(
        x="independent", y="independent"
    ).properties(title=figure.title, background="white", padding=10)  # fmt: skip


_DRAWN = {
    "error-control": _draw_error_control, "shares": _draw_shares, "accuracy": _draw_accuracy,
    "frontiers": _draw_frontiers, "gaps": _draw_gaps, "hazards": _draw_hazards, "ablations": _draw_ablations,
}  # fmt: skip
