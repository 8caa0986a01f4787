"""The paper's figures from results: each a list of numbers, and a chart drawn from nothing else.

Charts are specifications of Vega-Lite, written by Altair and drawn by vl-convert without a browser or a network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from demur.errors import MissingExtra
from demur.evaluation.repeated_splits import SplitResult
from demur.study.cells import TIED
from demur.study.description import StudyDescription
from demur.study.protocol import CellResult, Method
from demur.study.tables import csv_text

Row = dict[str, Any]
COLOURS = ("#7a7f87", "#b3b7bd", "#1f6feb", "#d9480f", "#2b8a3e", "#8e44ad", "#0b7285", "#c2255c", "#e67700", "#364fc7")
_SHARES = {"answered right": "#1f6feb", "answered wrong": "#d9480f", "abstained": "#ced4da"}
_DASHED = [4, 3]


@dataclass(frozen=True)
class Figure:
    """Numbers, and how they are drawn."""

    name: str
    title: str
    rows: list[Row]
    drawn: Callable[[Figure], Any]

    def csv(self) -> str:
        values = [["" if value != value else value for value in row.values()] for row in self.rows]
        return csv_text([list(self.rows[0]), *values])

    def chart(self) -> Any:
        return self.drawn(self)


def figures_of(results: Sequence[CellResult], study: StudyDescription) -> list[Figure]:
    """Every figure of the study; those without data are left out."""
    alpha = study.ablations.alpha or study.alphas[0]
    excess, accuracy = _rows(results, "alpha excess se", _excess), _rows(results, _ACCURACY, _accuracy)
    frontiers, gaps = _rows(results, "yield accuracy", _frontier), _rows(results, "threshold gap", _gaps)
    hazards, ablations = _rows(results, "confidence gap", _hazards), _ablations(results, alpha)
    made = [
        Figure("error-control", "Realised error minus alpha", excess, _draw_error_control),
        Figure("shares", "What happens to questions as alpha grows", _shares(results), _draw_shares),
        Figure("predicted-observed", "Selective accuracy, predicted and observed", accuracy, _draw_accuracy),
        Figure("frontiers", "Accuracy against yield", frontiers, _draw_frontiers),
        Figure("separability", "Separability gap Δ", gaps, _draw_gaps),
        Figure("hazards", "Hazard gap δ", hazards, _draw_hazards),
        Figure("ablations", f"Ablations at alpha {alpha:g}", ablations, _draw_ablations),
    ]
    return [figure for figure in made if figure.rows]


def draw(figure: Figure, kind: str) -> bytes:
    converter, specification = _library("vl_convert"), figure.chart().to_json()
    if kind == "svg":
        return str(converter.vegalite_to_svg(specification)).encode()
    if kind == "png":
        return bytes(converter.vegalite_to_png(specification, scale=2))
    return bytes(converter.vegalite_to_pdf(specification))


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtra("figures need Altair and vl-convert", "report") from None


def _methods(result: CellResult) -> list[Method]:
    """What is drawn: each way of voting, but not each with its ties broken too."""
    return [method for method in result.methods if not method.name.endswith(TIED)]


def _rows(results: Sequence[CellResult], header: str, values: Callable[[Method], Iterable[Sequence[Any]]]) -> list[Row]:
    """The values of every method that is drawn, under the names of the header, with its cell and its name."""
    names = ["cell", "method", *header.split()]
    return [
        dict(zip(names, (result.name, method.name, *row), strict=True))
        for result in results
        for method in _methods(result)
        for row in values(method)
    ]


def _excess(method: Method) -> Iterable[Sequence[Any]]:
    # Standard errors by the exact law: those of a few splits collapse where errors are rare.
    rows = (
        (at.alpha, at.confident_error.mean - at.alpha, at.expected_sd / math.sqrt(at.splits)) for at in method.sweep
    )
    return list(rows)


def _shares(results: Sequence[CellResult]) -> list[Row]:
    rows: list[Row] = []
    for result in results:
        method = result.methods[min(2, len(result.methods) - 1)]  # the first score, or the jittered majority vote
        named = {"cell": f"{result.name}: {method.name}", "method": method.name}
        for point in method.sweep:
            wrong, answered = point.confident_error.mean, point.answered.mean
            shares = zip(_SHARES, (answered - wrong, wrong, 1 - answered), strict=True)
            rows += [{**named, "alpha": point.alpha, "what": what, "share": share} for what, share in shares]
    return rows


_ACCURACY = "threshold predicted lower upper observed calibrated vote_accuracy best_of_m"


def _accuracy(method: Method) -> Iterable[Sequence[Any]]:
    band, levels = method.curves.band, (method.curves.calibrated, method.vote_accuracy, method.best_of_m)
    columns = (band.threshold, band.predicted, band.lower, band.upper, method.curves.observed)
    return [(*row, *levels) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _frontier(method: Method) -> Iterable[Sequence[Any]]:
    """About a hundred of its points, the last among them."""
    points = list(zip(method.frontier.answered.tolist(), method.frontier.selective_accuracy.tolist(), strict=True))
    step = max(1, len(points) // 100)
    return [*points[:-1:step], *points[-1:]]


def _gaps(method: Method) -> Iterable[Sequence[Any]]:
    return zip(method.curves.band.threshold.tolist(), method.curves.gap.tolist(), strict=True)


def _hazards(method: Method) -> Iterable[Sequence[Any]]:
    pairs = zip(method.curves.hazards.edges.tolist(), method.curves.hazards.hazard_gap.tolist(), strict=True)
    return [(edge, gap if math.isfinite(gap) else math.nan) for edge, gap in pairs]


def _ablations(results: Sequence[CellResult], alpha: float) -> list[Row]:
    """What was varied; where anything was, also the scores themselves."""
    rows, scores = [], []
    for result in (result for result in results if result.variations):
        for varied in result.variations:
            rows += _measured(result, varied.what, varied.value, varied.method, varied.result)
        for method in _methods(result):
            point = next((p for p in (*method.points, *method.sweep) if p.alpha == alpha), method.points[0])
            scores += _measured(result, "score", method.name, method.name, point)
    return rows + scores


def _measured(result: CellResult, what: str, value: str, method: str, point: SplitResult) -> list[Row]:
    named = {"cell": result.name, "what": what, "value": value, "method": method}
    measures = {"A_c": point.selective_accuracy, "Y": point.answered, "CE": point.confident_error}
    return [{**named, "measure": name, "mean": rate.mean, "sd": rate.sd} for name, rate in measures.items()]


def _altair() -> Any:
    return _library("altair")


def _visible(value: Any) -> Any:
    """What a drawing can hold: text without control characters, and nothing for an undefined number."""
    if isinstance(value, str):
        return "".join(c if c.isprintable() else "\ufffd" for c in value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _distinct(figure: Figure, name: str) -> list[Any]:
    return list(dict.fromkeys(_visible(row[name]) for row in figure.rows))


def _panel(width: int = 240, height: int = 170) -> Any:
    """An empty chart; `_faceted` gives it its data."""
    return _altair().Chart().properties(width=width, height=height)


def _colour(figure: Figure) -> Any:
    alt, names = _altair(), _distinct(figure, "method")
    scale = alt.Scale(domain=names, range=[COLOURS[at % len(COLOURS)] for at in range(len(names))])
    return alt.Color("method:N", title=None, scale=scale, legend=_legend(columns=4, labelLimit=320))


def _legend(**how: int) -> Any:
    return _altair().Legend(orient="bottom", **how)


def _lines(figure: Figure, x: Any, y: Any, **mark: Any) -> Any:
    return _panel().mark_line(**mark).encode(x=x, y=y, color=_colour(figure))


def _faceted(figure: Figure, chart: Any, **facets: Any) -> Any:
    """The chart over the figure's rows, once per cell unless other facets are named."""
    alt, cells = _altair(), _distinct(figure, "cell")
    facets = facets or {"facet": alt.Facet("cell:N", title=None, sort=cells), "columns": 3}
    rows = [{name: _visible(value) for name, value in row.items()} for row in figure.rows]
    faceted = chart.facet(data=alt.Data(values=rows), **facets)
    return faceted.properties(title=figure.title, background="white", padding=10)


def _alpha() -> Any:
    return _altair().X("alpha:Q", title="α", axis=_altair().Axis(tickCount=5))


def _accuracy_axis(field: str) -> Any:
    return _altair().Y(field, title="selective accuracy A_c", scale=_altair().Scale(zero=False))


def _draw_error_control(figure: Figure) -> Any:
    alt = _altair()
    lines = _lines(figure, _alpha(), alt.Y("excess:Q", title="realised error − α"))
    zero = _panel().mark_rule(strokeDash=_DASHED, color="#495057").encode(y=alt.datum(0))
    return _faceted(figure, alt.layer(lines, zero))


def _draw_shares(figure: Figure) -> Any:
    alt, names = _altair(), list(_SHARES)
    scale = alt.Scale(domain=names, range=list(_SHARES.values()))
    share = alt.Y("share:Q", title="share of questions", stack="zero", scale=alt.Scale(domain=[0, 1]))
    colour = alt.Color("what:N", title=None, scale=scale, sort=names, legend=_legend())
    order = alt.Order("what:N", sort="descending")
    return _faceted(figure, _panel().mark_area().encode(x=_alpha(), y=share, color=colour, order=order))


def _draw_accuracy(figure: Figure) -> Any:
    alt, base, colour = _altair(), _panel(), _colour(figure)
    x = alt.X("threshold:Q", title="threshold λ")
    predicted = _lines(figure, x, _accuracy_axis("predicted:Q"))
    observed = _lines(figure, x, "observed:Q", strokeDash=_DASHED)
    calibrated = base.mark_rule(opacity=0.6).encode(x="mean(calibrated):Q", color=colour)
    vote = base.mark_rule(opacity=0.25).encode(y="mean(vote_accuracy):Q", color=colour)
    best = base.mark_rule(opacity=0.5, strokeDash=[1, 3]).encode(y="mean(best_of_m):Q", color=colour)
    return _faceted(figure, alt.layer(predicted, observed, calibrated, vote, best))


def _draw_frontiers(figure: Figure) -> Any:
    x = _altair().X("yield:Q", title="yield Y", scale=_altair().Scale(domain=[0, 1]))
    return _faceted(figure, _lines(figure, x, _accuracy_axis("accuracy:Q")).encode(order="yield:Q"))


def _draw_gaps(figure: Figure) -> Any:
    x = _altair().X("threshold:Q", title="threshold λ")
    return _faceted(figure, _lines(figure, x, _altair().Y("gap:Q", title="Δ = S_cor − S_err")))


def _draw_hazards(figure: Figure) -> Any:
    x, y = _altair().X("confidence:Q", title="confidence ν"), _altair().Y("gap:Q", title="δ = h_err − h_cor")
    return _faceted(figure, _lines(figure, x, y, point=True, interpolate="step-before"))


def _draw_ablations(figure: Figure) -> Any:
    alt = _altair()
    x = alt.X("value:N", title=None, sort=list(dict.fromkeys(row["value"] for row in figure.rows)))
    y = alt.Y("mean:Q", title=None, scale=alt.Scale(zero=False))
    colour = alt.Color("cell:N", title=None, legend=_legend(columns=3, labelLimit=320))
    points = _panel(220, 140).mark_line(point=True).encode(x=x, y=y, color=colour)
    facets = {"row": alt.Row("measure:N", title=None), "column": alt.Column("what:N", title=None)}
    return _faceted(figure, points, **facets).resolve_scale(x="independent", y="independent")
