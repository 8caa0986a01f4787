"""The paper's figures from results: each a list of numbers, and a chart drawn from nothing else.

Charts are specifications of Vega-Lite, written by Altair and drawn by vl-convert without a browser or a network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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
_LINE, _DASHED, _DOTTED, _LONG, _MIXED = [1, 0], [4, 3], [1, 3], [10, 3], [8, 3, 1, 3]
_ORDERED = ("m", "n_cal")
"""What is varied by numbers, so that a line from one to the next has a meaning."""
_MEASURES = ("A_c", "CE", "Y")


@dataclass(frozen=True)
class Figure:
    """Numbers, and how they are drawn."""

    name: str
    title: str
    rows: list[Row]
    drawn: Callable[[Figure], Any]
    note: str = ""
    """What bars and bands are."""

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
    over = f"of the mean over {study.splits} splits, by the exact law"
    bands = "bands: the accuracy on new questions at every threshold at once, with 95 % confidence"
    spread = f"bars: one standard deviation over {study.splits} splits, to either side of the mean"
    made = [
        Figure("error-control", "Realised error minus alpha", excess, _draw_error_control, f"bands: ± 2 se {over}"),
        Figure(
            "shares", "What happens to questions as alpha grows", _shares(results), _draw_shares, f"bars: ± 2 se {over}"
        ),
        Figure("predicted-observed", "Selective accuracy, predicted and observed", accuracy, _draw_accuracy, bands),
        Figure("frontiers", "Accuracy against yield", frontiers, _draw_frontiers),
        Figure("separability", "Separability gap Δ", gaps, _draw_gaps),
        Figure("hazards", "Hazard gap δ", hazards, _draw_hazards),
        Figure("ablations", f"Ablations at alpha {alpha:g}", ablations, _draw_ablations, spread),
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
            se = {"answered wrong": point.expected_sd / math.sqrt(point.splits)}
            rows += [
                {**named, "alpha": point.alpha, "what": what, "share": share, "se": se.get(what, math.nan)}
                for what, share in shares
            ]
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
    limit = {"CE": point.alpha}
    return [
        {**named, "measure": name, "mean": rate.mean, "sd": rate.sd, "limit": limit.get(name, math.nan)}
        for name, rate in measures.items()
    ]


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
    return alt.Color(
        "method:N", title=None, scale=scale, legend=_legend(columns=_columns(figure), labelLimit=320, symbolOpacity=1)
    )


def _legend(orient: str = "bottom", **how: Any) -> Any:
    return _altair().Legend(orient=orient, **how)


def _columns(figure: Figure) -> int:
    """Of a legend, so that it is no wider than the panels."""
    return min(4, 2 * len(_distinct(figure, "cell")))


def _styled(figure: Figure, chart: Any, styles: Mapping[str, list[int]], name: str) -> Any:
    """A chart of lines of one of several kinds, each of which the legend explains."""
    alt = _altair()
    scale = alt.Scale(domain=list(styles), range=list(styles.values()))
    look = {"symbolType": "stroke", "symbolSize": 900, "symbolStrokeColor": "#495057"}
    legend = _legend("top", **look, labelLimit=320, columns=max(2, _columns(figure) - 1))
    dash = alt.StrokeDash("line:N", title=None, scale=scale, legend=legend)
    return chart.transform_calculate(line=f"'{name}'").encode(strokeDash=dash)


def _lines(figure: Figure, x: Any, y: Any, **mark: Any) -> Any:
    return _panel().mark_line(**mark).encode(x=x, y=y, color=_colour(figure))


def _values(rows: Iterable[Row]) -> Any:
    return _altair().Data(values=[{name: _visible(value) for name, value in row.items()} for row in rows])


def _titled(figure: Figure, chart: Any) -> Any:
    title = _altair().TitleParams(figure.title, anchor="start", subtitle=figure.note or _altair().Undefined)
    return chart.properties(title=title, background="white", padding=10)


def _faceted(figure: Figure, chart: Any) -> Any:
    """The chart over the figure's rows, once per cell."""
    alt, cells = _altair(), _distinct(figure, "cell")
    facet = alt.Facet("cell:N", title=None, sort=cells, header=alt.Header(labelLimit=320))
    return _titled(figure, chart.facet(data=_values(figure.rows), facet=facet, columns=3))


def _alpha() -> Any:
    return _altair().X("alpha:Q", title="α", axis=_altair().Axis(tickCount=5))


def _accuracy_axis(field: str, low: float) -> Any:
    return _altair().Y(field, title="selective accuracy A_c", scale=_altair().Scale(domain=[low, 1], nice=False))


def _floor(figure: Figure, *names: str) -> float:
    """Where an axis of accuracies begins: a multiple of 5 % under all that is shown."""
    values = (float(row[name]) for row in figure.rows for name in names if math.isfinite(row[name]))
    return max(0.0, math.floor(min(0.95, *values) * 20 - 1e-9) / 20)


def _draw_error_control(figure: Figure) -> Any:
    alt, styles = _altair(), {"mean over splits": _LINE, "error = α": _DASHED}
    lines = _lines(figure, _alpha(), alt.Y("excess:Q", title="realised error − α"))
    band = _panel().transform_calculate(low="datum.excess - 2 * datum.se", high="datum.excess + 2 * datum.se")
    bands = band.mark_area(opacity=0.15).encode(x=_alpha(), y="low:Q", y2="high:Q", color=_colour(figure))
    zero = _panel().transform_calculate(zero="0").mark_rule(color="#212529").encode(y="mean(zero):Q")
    mean, equal = (_styled(figure, chart, styles, name) for chart, name in zip((lines, zero), styles, strict=True))
    return _faceted(figure, alt.layer(bands, equal, mean))


def _draw_shares(figure: Figure) -> Any:
    alt, names, limit = _altair(), list(_SHARES), "limit α on what is answered wrong"
    scale = alt.Scale(domain=names, range=list(_SHARES.values()))
    share = alt.Y("share:Q", title="share of questions", stack="zero", scale=alt.Scale(domain=[0, 1]))
    colour = alt.Color("what:N", title=None, scale=scale, sort=names, legend=_legend(symbolType="square"))
    order = alt.Order("what:N", sort="descending")
    areas = _panel().mark_area().encode(x=_alpha(), y=share, color=colour, order=order)
    wrong = _panel().transform_filter("datum.what === 'answered wrong'")
    bars = wrong.transform_calculate(low="max(0, datum.share - 2 * datum.se)", high="datum.share + 2 * datum.se")
    bars = bars.mark_rule(color="#212529").encode(x=_alpha(), y="low:Q", y2="high:Q")
    line = wrong.mark_line(color="#212529", strokeWidth=1.5).encode(x=_alpha(), y="alpha:Q")
    return _faceted(figure, alt.layer(areas, bars, _styled(figure, line, {limit: _DASHED}, limit)))


def _draw_accuracy(figure: Figure) -> Any:
    alt, base, colour = _altair(), _panel(), _colour(figure)
    x, rule = alt.X("threshold:Q", title="threshold λ"), base.mark_rule(opacity=0.8)
    low = _floor(figure, "predicted", "observed", "vote_accuracy", "best_of_m")
    y = {name: _accuracy_axis(name, low) for name in ("predicted:Q", "observed:Q", "shown:Q")}
    y |= {name: _accuracy_axis(f"mean({name}):Q", low) for name in ("vote_accuracy", "best_of_m")}
    # Cut off here and not by the drawing, which would number its cuts anew every time.
    bands = base.transform_calculate(shown=f"max(datum.lower, {low})").mark_area(opacity=0.06)
    bands = bands.encode(x=x, y=y["shown:Q"], y2="upper:Q", color=colour)
    lines = {
        "predicted": (_LINE, _lines(figure, x, y["predicted:Q"])),
        "observed": (_DASHED, _lines(figure, x, y["observed:Q"])),
        "threshold λ, upright": (_LONG, rule.encode(x="mean(calibrated):Q", color=colour)),
        "all answered, p_v": (_MIXED, rule.encode(y=y["vote_accuracy"], color=colour)),
        "best of m": (_DOTTED, rule.encode(y=y["best_of_m"], color=colour)),
    }
    styles = {name: dash for name, (dash, _) in lines.items()}
    return _faceted(
        figure, alt.layer(bands, *(_styled(figure, chart, styles, name) for name, (_, chart) in lines.items()))
    )


def _draw_frontiers(figure: Figure) -> Any:
    x = _altair().X("yield:Q", title="yield Y", scale=_altair().Scale(domain=[0, 1]))
    y = _accuracy_axis("accuracy:Q", _floor(figure, "accuracy"))
    return _faceted(figure, _lines(figure, x, y).encode(order="yield:Q"))


def _draw_gaps(figure: Figure) -> Any:
    x = _altair().X("threshold:Q", title="threshold λ")
    return _faceted(figure, _lines(figure, x, _altair().Y("gap:Q", title="Δ = S_cor − S_err")))


def _draw_hazards(figure: Figure) -> Any:
    x, y = _altair().X("confidence:Q", title="confidence ν"), _altair().Y("gap:Q", title="δ = h_err − h_cor")
    return _faceted(figure, _lines(figure, x, y, point=True, interpolate="step-before"))


def _draw_ablations(figure: Figure) -> Any:
    """A panel for each measure of each thing that was varied."""
    alt = _altair()
    varied = _distinct(figure, "what")
    apart = {"color": "shared", "strokeDash": "shared", "xOffset": "independent"}
    rows = [
        alt.hconcat(*(_ablation_panel(figure, measure, what) for what in varied), spacing=30).resolve_scale(**apart)
        for measure in _MEASURES
    ]
    return _titled(figure, alt.vconcat(*rows, spacing=20).resolve_scale(**apart))


def _ablation_panel(figure: Figure, measure: str, what: str) -> Any:
    """Means with their spread. Numbers are joined by lines, names are not; axes are labelled where something is."""
    alt = _altair()
    rows = [row for row in figure.rows if (row["measure"], row["what"]) == (measure, what)]
    values, cells = list(dict.fromkeys(row["value"] for row in rows)), _distinct(figure, "cell")
    joined = what in _ORDERED and len(values) > 1
    if joined:
        ticks = alt.Axis(values=sorted(map(float, values)), format="d")
        x = alt.X("number:Q", title=what, axis=ticks, scale=alt.Scale(zero=False, padding=12))
    else:
        turned = -40 if max(map(len, values)) > 6 else 0
        x = alt.X("value:N", title=what, sort=values, axis=alt.Axis(labelAngle=turned, labelLimit=200))
    places = [{**row, **({"number": float(row["value"])} if joined else {})} for row in rows]
    y = alt.Y("mean:Q", title=measure, scale=_around(rows), axis=_labels_of(rows))
    colour = alt.Color("cell:N", title=None, sort=cells, legend=_legend(columns=3, labelLimit=320))
    aside = {} if joined else {"xOffset": alt.XOffset("cell:N", sort=cells)}
    base = alt.Chart(_values(places)).properties(width=max(220, 18 * len(values) * len(cells)), height=140)
    base = base.transform_calculate(low="datum.mean - datum.sd", high="datum.mean + datum.sd")
    spread = base.transform_filter("isValid(datum.sd)").mark_rule()
    low = alt.Y("low:Q", title=measure, scale=_around(rows), axis=_labels_of(rows))
    layers = [spread.encode(x=x, y=low, y2="high:Q", color=colour, **aside)]
    if joined:
        layers.append(base.mark_line().encode(x=x, y=y, color=colour))
    layers.append(base.mark_point(filled=True, size=45, opacity=1).encode(x=x, y=y, color=colour, **aside))
    limits = sorted({row["limit"] for row in rows if not math.isnan(row["limit"])})
    for limit in limits:
        line = alt.Chart(_values([{"limit": limit}])).mark_rule(color="#212529")
        layers.append(_styled(figure, line.encode(y="limit:Q"), {"limit α": _DASHED}, "limit α"))
    return alt.layer(*layers)


def _around(rows: Sequence[Row]) -> Any:
    """A scale that holds the means with their spread, and the limit; of some width even where all are one number."""
    spread = [(row["mean"], 0.0 if math.isnan(row["sd"]) else row["sd"]) for row in rows if not math.isnan(row["mean"])]
    ends = [mean + sign * sd for mean, sd in spread for sign in (-1, 1)]
    ends += [row["limit"] for row in rows if not math.isnan(row["limit"])] or ends[:1]
    if not ends:
        return _altair().Scale(domain=[0, 1])
    low, high = min(ends), max(ends)
    room = 0.08 * (high - low) or 0.05
    return _altair().Scale(domain=[low - room, high + room], nice=False)


def _labels_of(rows: Sequence[Row]) -> Any:
    """Where there is one value only, its own number is the only label; between others, round ones."""
    means = sorted({round(row["mean"], 6) for row in rows if not math.isnan(row["mean"])})
    return _altair().Axis(values=means, format=".3f") if len(means) == 1 else _altair().Axis(tickCount=5)
