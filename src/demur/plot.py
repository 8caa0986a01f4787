"""Figures of results, drawn by Altair: each takes what the library gives and returns one chart.

    frontier(voted)          accuracy against yield, an operating point of a policy on it
    expected(policy)         what becomes of questions at each alpha, by the forecast
    confidence(voted)        how confident right and wrong votes are
    roc(voted)               how well confidence tells them apart
    reliability(voted)       the share of right votes among those of like confidence
    comparison({…: voted})   the accuracy of several votes on the same questions
    audit(audited)           how many errors an audit may show, and how many it did
    cascade(cascade)         what a cascade answers against what it costs, for other shares of its first stage

A chart neither shows nor saves itself: a notebook shows it, and `chart.save("figure.svg")` saves it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from demur.calibration import Level
from demur.errors import InvalidValue, MissingExtra
from demur.evaluation.audit import PolicyAudit
from demur.evaluation.outlook import Outlook, audit_outlook
from demur.evaluation.repeated_splits import Evaluation
from demur.evidence import Evidence, Frontier, Interval, Separability
from demur.policy.cascade import Cascade
from demur.policy.policy import Policy
from demur.pools.voted_pools import VotedPools

RIGHT, WRONG, ABSTAINED = "#1f6feb", "#d9480f", "#ced4da"
_COLOURS = (RIGHT, WRONG, "#2b8a3e", "#8e44ad", "#0b7285", "#c2255c", "#e67700", "#364fc7", "#7a7f87", "#b3b7bd")
_MOST_POINTS = 400
_DASHED = [4, 3]
_WIDTH, _HEIGHT = 360, 240

Labelled = VotedPools | Policy
Row = dict[str, Any]


def frontier(
    results: Labelled | Evaluation | PolicyAudit | Frontier | Mapping[str, Any], policy: Policy | None = None
) -> Any:
    """Selective accuracy against yield; of several, by name. `policy` puts its operating points on the chart."""
    alt, named = _altair(), results if isinstance(results, Mapping) else {"": results}
    if policy is None and isinstance(results, Policy):
        policy = results
    rows: list[Row] = []
    for name, result in named.items():
        curve = _frontier_of(result)
        points = zip(curve.answered.tolist(), curve.selective_accuracy.tolist(), strict=True)
        rows += [{"vote": name, "answered": x, "accuracy": y} for x, y in _some(list(points))]
    layers = [_lines(rows, "answered", "accuracy", "vote", list(named), "answered (yield Y)", "of those right (A_c)")]
    partly = any(isinstance(result, Policy) and result.evidence.n_unlabelled for result in named.values())
    if len(named) == 1 and not partly:
        layers.append(_rule(alt, y=rows[-1]["accuracy"], label="answering always (p_v)"))
    if policy is not None:
        layers.append(_marks(policy))
    return _drawn(alt.layer(*layers), "Accuracy against yield")


def expected(policy: Policy) -> Any:
    """What becomes of questions at each alpha, by the policy's forecast."""
    alt, rows = _altair(), list[Row]()
    for rule in policy.points:
        told = policy.forecast(rule.alpha, rule.guarantee.name)
        wrong = told.expected_confident_error if told.answered else 0.0
        shares = {"answered right": told.answered - wrong, "answered wrong": wrong, "abstained": 1 - told.answered}
        at = f"{rule.alpha:g} ({rule.guarantee.name.replace('_', ' ')})"
        rows += [
            {"alpha": at, "what": what, "share": max(share, 0.0), "place": place}
            for place, (what, share) in enumerate(shares.items())
        ]
    scale = _scale(alt, ["answered right", "answered wrong", "abstained"], (RIGHT, WRONG, ABSTAINED))
    colour = alt.Color("what:N", title=None, sort=None, scale=scale)
    bars = (
        _chart(rows)
        .mark_bar()
        .encode(
            x=alt.X("share:Q", title="share of questions", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("alpha:N", title="alpha (α)", sort=None),
            color=colour,
            order=alt.Order("place:Q"),
            tooltip=["alpha:N", "what:N", alt.Tooltip("share:Q", format=".1%")],
        )
    )
    return _drawn(bars, "What to expect at each alpha", height=40 * len(policy.points))


def confidence(voted: Labelled, *, bins: int = 20) -> Any:
    """How confident right and wrong votes are, one above the other; a policy's thresholds are drawn."""
    alt, evidence = _altair(), _evidence_of(voted)
    levels = evidence.levels[:, 0]
    place = np.minimum((levels * bins).astype(int), bins - 1)
    kinds = {"right": evidence.right, "wrong": evidence.wrong}
    kinds |= {} if evidence.unlabelled is None else {"no label": evidence.unlabelled}
    rows = [
        {"low": at / bins, "high": (at + 1) / bins, "vote": name, "votes": int(counts[place == at].sum())}
        for name, counts in kinds.items()
        for at in range(bins)
    ]
    bars = (
        _chart(rows)
        .mark_bar()
        .encode(
            x=alt.X("low:Q", title="confidence (ν)", bin="binned", scale=alt.Scale(domain=[0, 1])),
            x2="high:Q",
            y=alt.Y("votes:Q", title="votes"),
            color=alt.Color("vote:N", title=None, scale=_scale(alt, list(kinds), (RIGHT, WRONG, _COLOURS[-1]))),
            tooltip=["vote:N", "low:Q", "high:Q", "votes:Q"],
        )
    )
    layers = [bars]
    if isinstance(voted, Policy):
        layers += [
            _rule(alt, x=rule.threshold, label=f"λ at α = {rule.alpha:g}", line=line)
            for line, rule in enumerate(voted.points)
        ]
    return _drawn(alt.layer(*layers), "How confident right and wrong votes are")


def roc(results: Labelled | Mapping[str, Labelled]) -> Any:
    """Right votes above each threshold against wrong ones above it; the diagonal is no better than chance."""
    alt, named = _altair(), results if isinstance(results, Mapping) else {"": results}
    rows: list[Row] = []
    for name, result in named.items():
        if unlabelled := _evidence_of(result).n_unlabelled:
            raise InvalidValue(f"telling right from wrong needs the labels of all votes, and {unlabelled} have none")
        table = Separability.of(_evidence_of(result))
        pairs = list(zip(table.survival_wrong.tolist(), table.survival_right.tolist(), strict=True))
        rows += [{"vote": name, "wrong": x, "right": y} for x, y in [(0.0, 0.0), *_some(pairs[::-1]), (1.0, 1.0)]]
    if any(math.isnan(row["wrong"] + row["right"]) for row in rows):
        raise InvalidValue("telling right from wrong needs some of each, and all of these votes are of one kind")
    areas = [_frontier_of(result).auroc for result in named.values()]
    chance = _chart([{"wrong": 0, "right": 0}, {"wrong": 1, "right": 1}]).mark_line(strokeDash=_DASHED, color="#7a7f87")
    diagonal = chance.encode(x="wrong:Q", y="right:Q")
    lines = _lines(
        rows, "wrong", "right", "vote", list(named), "wrong votes above λ (S_err)", "right votes above λ (S_cor)"
    )
    title = "How confidence tells right from wrong"
    return _drawn(alt.layer(diagonal, lines), f"{title}: AUROC {', '.join(f'{area:.3f}' for area in areas)}")


def reliability(voted: Labelled, *, bins: int = 10) -> Any:
    """The share of right votes among those of like confidence, with exact 95 % intervals; of labelled votes alone."""
    alt, evidence = _altair(), _evidence_of(voted).labelled
    levels = evidence.levels[:, 0]
    place = np.minimum((levels * bins).astype(int), bins - 1)
    rows = []
    for at in np.unique(place).tolist():
        here = place == at
        right, wrong = int(evidence.right[here].sum()), int(evidence.wrong[here].sum())
        mean = float((levels[here] * (evidence.right[here] + evidence.wrong[here])).sum() / (right + wrong))
        rate = Interval.exact(right, right + wrong)
        rows.append({"confidence": mean, "accuracy": rate.estimate, "lower": rate.lower, "upper": rate.upper,
                     "votes": right + wrong})  # fmt: skip
    x = alt.X("confidence:Q", title="mean confidence (ν)", scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("accuracy:Q", title="share of right votes", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1]))
    base = _chart(rows).encode(x=x, tooltip=["confidence:Q", "accuracy:Q", "votes:Q"])
    points = base.mark_point(filled=True, size=50, color=RIGHT).encode(y=y)
    bars = base.mark_rule(color=RIGHT).encode(y=alt.Y("lower:Q"), y2="upper:Q")
    line = _chart([{"confidence": 0, "accuracy": 0}, {"confidence": 1, "accuracy": 1}])
    diagonal = line.mark_line(strokeDash=_DASHED, color="#7a7f87").encode(x="confidence:Q", y="accuracy:Q")
    return _drawn(alt.layer(diagonal, bars, points), "Confidence and accuracy")


def comparison(results: Mapping[str, VotedPools]) -> Any:
    """The accuracy of several votes, without abstention, with exact 95 % intervals."""
    alt, rows = _altair(), list[Row]()
    for name, voted in results.items():
        labels = voted.labelled[voted.counted]
        rate = Interval.exact(int(labels.sum()), len(labels))
        rows.append({"vote": name, "accuracy": rate.estimate, "lower": rate.lower, "upper": rate.upper})
    x = alt.X("accuracy:Q", title="vote accuracy (p_v)", axis=alt.Axis(format="%"), scale=alt.Scale(zero=False))
    base = _chart(rows).encode(
        y=alt.Y("vote:N", title=None, sort=None), tooltip=["vote:N", "accuracy:Q", "lower:Q", "upper:Q"]
    )
    points = base.mark_point(filled=True, size=60, color=RIGHT).encode(x=x)
    bars = base.mark_rule(color=RIGHT).encode(x=alt.X("lower:Q"), x2="upper:Q")
    return _drawn(alt.layer(bars, points), "Accuracy without abstention", height=28 * len(rows))


def audit(audited: PolicyAudit | Policy, *, n: int | None = None) -> Any:
    """How many errors an audit may show while the promise holds, and how many it did; of a policy, on `n` questions."""
    alt, charts = _altair(), list[Any]()
    if isinstance(audited, Policy):
        if n is None or n < 1:
            raise InvalidValue(f"say on how many questions the policy is to be audited: n >= 1, got {n}")
        points: list[tuple[Outlook, int | None]] = [
            (audit_outlook(audited, n, alpha=rule.alpha, guarantee=rule.guarantee.name), None)
            for rule in audited.points
        ]
    else:
        points = [(point.outlook, point.errors) for point in audited.points]
    for outlook, errors in points:
        rule, fresh, chances, usual = outlook.rule, outlook.n, outlook.counts, outlook.surprising_above
        most = min(fresh, max(errors or 0, usual, int(np.searchsorted(np.cumsum(chances), 0.9999))) + 1)
        rows = [
            {"errors": count, "chance": float(chances[count]), "what": "usual" if count <= usual else "surprising"}
            for count in range(most + 1)
        ]
        whole = alt.Scale(domain=[-1, most + 1], nice=False)
        bars = _chart(rows).mark_bar().encode(
            x=alt.X("errors:Q", title=f"wrong answers among {fresh:,}", scale=whole),
            y=alt.Y("chance:Q", title="chance"),
            color=alt.Color("what:N", title=None, scale=_scale(alt, ["usual", "surprising"], (ABSTAINED, WRONG))),
            tooltip=["errors:Q", alt.Tooltip("chance:Q", format=".3f")],
        )  # fmt: skip
        layers = [bars, _rule(alt, x=rule.alpha * fresh, label=f"α = {rule.alpha:g}")]
        if errors is not None:
            found = _chart([{"errors": errors, "told": f"{errors} found"}])
            layers.append(found.mark_rule(color=RIGHT, size=2).encode(x="errors:Q", tooltip="told:N"))
        told = f"alpha {rule.alpha:g}: above {usual} wrong is surprising"
        charts.append(
            alt.layer(*layers).properties(
                width=_WIDTH, height=140, title=told if errors is None else f"{told}, {errors} found"
            )
        )
    return _framed(alt.vconcat(*charts), "What an audit may show while the promise holds")


def cascade(made: Cascade, alphas: Sequence[Level] | None = None) -> Any:
    """Yield against cost per question, over shares of the errors that the first stage might have; the cascade marked.

    To look at, not to choose from: see `Cascade.curve`.
    """
    alt, expected = _altair(), made.forecast()
    points = made.curve(alphas)
    rows = [
        {"alpha": f"{point.alpha:g}", "cost": point.cost, "answered": point.answered, "first": point.shares[0]}
        for point in points
    ]
    names = [f"{alpha:g}" for alpha in dict.fromkeys(point.alpha for point in points)]
    x = alt.X("cost:Q", title="expected cost per question", scale=alt.Scale(zero=True))
    y = alt.Y("answered:Q", title="answered (yield Y)", axis=alt.Axis(format="%"), scale=alt.Scale(zero=False))
    tooltip = [
        alt.Tooltip("cost:Q", format=".3g"),
        alt.Tooltip("answered:Q", format=".1%"),
        alt.Tooltip("first:Q", format=".0%", title=f"errors to {made.stages[0].name}"),
    ]
    colour = alt.Color("alpha:N", title="alpha (α)", scale=_scale(alt, names, _COLOURS))
    line = _chart(rows).mark_line(point=True).encode(x=x, y=y, color=colour, order="first:Q", tooltip=tooltip)
    mark = _chart([{"cost": expected.cost, "answered": expected.answered, "told": "this cascade"}])
    here = mark.encode(x="cost:Q", y="answered:Q", tooltip=["told:N"])
    told = here.mark_text(align="left", dx=8, dy=8).encode(text="told:N")
    return _drawn(
        alt.layer(line, here.mark_point(shape="diamond", size=120, color="black"), told), "What a cascade answers"
    )


def _altair() -> Any:
    try:
        return import_module("altair")
    except ImportError:
        raise MissingExtra("figures need Altair", "report") from None


def _evidence_of(result: Any) -> Evidence:
    if isinstance(result, Policy):
        return result.evidence
    if isinstance(result, VotedPools):
        voted = result.scored
        return Evidence.of(voted.votes.key[voted.counted], voted.labelled[voted.counted])
    raise InvalidValue(f"expected voted pools with labels, or a policy, got {type(result).__name__}")


def _frontier_of(result: Any) -> Frontier:
    if isinstance(result, (Evaluation, PolicyAudit)):
        return result.frontier
    return result if isinstance(result, Frontier) else Frontier.of(_evidence_of(result))


def _some(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """No more points than a screen can show, the last among them."""
    step = max(1, len(points) // _MOST_POINTS)
    return [*points[:-1:step], *points[-1:]]


def _chart(rows: Iterable[Row]) -> Any:
    """An empty chart of these rows."""
    alt = _altair()
    return alt.Chart(alt.Data(values=[{name: _visible(value) for name, value in row.items()} for row in rows]))


def _visible(value: Any) -> Any:
    """What a drawing can hold: text without control characters, and nothing for an undefined number."""
    if isinstance(value, str):
        return "".join(character if character.isprintable() else "\ufffd" for character in value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _lines(rows: list[Row], x: str, y: str, by: str, names: list[str], x_title: str, y_title: str) -> Any:
    alt = _altair()
    axis = alt.Axis(format="%")
    encoded: dict[str, Any] = {
        "x": alt.X(f"{x}:Q", title=x_title, axis=axis, scale=alt.Scale(domain=[0, 1])),
        "y": alt.Y(f"{y}:Q", title=y_title, axis=axis, scale=alt.Scale(zero=False)),
        "tooltip": [alt.Tooltip(f"{x}:Q", format=".1%"), alt.Tooltip(f"{y}:Q", format=".1%")],
    }
    shown = [_visible(name) for name in names]
    if len(names) > 1:
        encoded["color"] = alt.Color(f"{by}:N", title=None, scale=_scale(alt, shown, _COLOURS))
        encoded["strokeDash"] = alt.StrokeDash(f"{by}:N", title=None, scale=alt.Scale(domain=shown))
    return _chart(rows).mark_line(**({} if len(names) > 1 else {"color": RIGHT})).encode(**encoded)


def _marks(policy: Policy) -> Any:
    """The operating points of a policy, by their forecast."""
    told = [policy.forecast(rule.alpha, rule.guarantee.name) for rule in policy.points]
    rows = [
        {"answered": at.answered, "accuracy": at.selective_accuracy, "told": f"α = {at.alpha:g}"}
        for at in told
        if at.answered
    ]
    base = _chart(rows).encode(x="answered:Q", y="accuracy:Q", tooltip=["told:N"])
    return base.mark_point(filled=True, size=70, color=WRONG) + base.mark_text(align="left", dx=6, dy=-6).encode(
        text="told:N"
    )


def _rule(alt: Any, *, label: str, x: float | None = None, y: float | None = None, line: int = 0) -> Any:
    """A dashed line at a number, with its name, on a line of text of its own."""
    place = "x" if x is not None else "y"
    drawn = _chart([{place: x if x is not None else y, "told": label}])
    rule = drawn.mark_rule(strokeDash=_DASHED, color="#495057").encode(**{place: f"{place}:Q", "tooltip": "told:N"})
    where = (
        {"x": f"{place}:Q", "y": alt.value(8 + 14 * line)} if place == "x" else {"y": f"{place}:Q", "x": alt.value(4)}
    )
    text = drawn.mark_text(align="left", dx=3, dy=0 if place == "x" else -6, color="#495057")
    return rule + text.encode(text="told:N", **where)


def _scale(alt: Any, names: Sequence[str], colours: Sequence[str]) -> Any:
    return alt.Scale(domain=list(names), range=[colours[at % len(colours)] for at in range(len(names))])


def _drawn(chart: Any, title: str, *, height: int = _HEIGHT) -> Any:
    return _framed(chart.properties(width=_WIDTH, height=height), title)


def _framed(chart: Any, title: str) -> Any:
    return chart.properties(title=title).configure_view(stroke=None).configure_axis(gridColor="#e9ecef")
