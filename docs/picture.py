"""Draw the picture of the README: the accuracy–yield frontier of simulated pools, with the calibrated points on it.

Prints the figures behind it; `make picture` runs it.
"""

from pathlib import Path

import altair as alt

import demur as dm

table = dm.simulate_pools(1000, seed=7)
votes = {
    "score-weighted vote": dm.vote(table.answers, table.scores),
    "majority vote": dm.vote(table.answers),
}
curve_rows, point_rows = [], []
for name, each in votes.items():
    correct = each.answer == table.gold
    evidence = dm.Evidence.of(each.key, correct)
    curve = dm.Frontier.of(evidence)
    curve_rows += [
        {"vote": name, "yield": x, "accuracy": y}
        for x, y in zip(curve.answered.tolist(), curve.selective_accuracy.tolist(), strict=True)
        if x >= 0.05
    ]
    policy = dm.calibrate(each, correct, alpha=[0.02, 0.05, 0.1])
    for point in policy.points:
        expected = policy.forecast(point.alpha)
        point_rows.append(
            {
                "vote": name,
                "alpha": f"α = {point.alpha:g}",
                "yield": expected.answered,
                "accuracy": expected.selective_accuracy,
            }
        )
        print(
            f"{name}, alpha {point.alpha:g}: threshold {point.threshold:.3f}, answers {expected.answered:.1%}, "
            f"right {expected.selective_accuracy:.1%}, wrong on {expected.confident_error:.1%} of all questions"
        )
    print(f"{name}: right {evidence.vote_accuracy:.1%} without abstaining")

x = alt.X(
    "yield:Q", title="share of questions answered (yield)", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")
)
y = alt.Y(
    "accuracy:Q", title="share of answers that are right", scale=alt.Scale(domain=[0.7, 1]), axis=alt.Axis(format="%")
)
colour = alt.Color(
    "vote:N", title=None, scale=alt.Scale(range=["#8a8f98", "#1f6feb"]), legend=alt.Legend(orient="bottom-left")
)
lines = alt.Chart(alt.Data(values=curve_rows)).mark_line(interpolate="linear").encode(x=x, y=y, color=colour)
points = alt.Chart(alt.Data(values=point_rows))
marks = points.mark_point(filled=True, size=70, opacity=1).encode(x=x, y=y, color=colour)
above = points.transform_filter("datum.vote == 'score-weighted vote'").mark_text(align="left", dx=7, dy=-7)
below = points.transform_filter("datum.vote == 'majority vote'").mark_text(align="right", dx=-7, dy=9)
labels = [text.encode(x=x, y=y, text="alpha:N", color=colour) for text in (above, below)]
chart = alt.layer(lines, marks, *labels).properties(
    width=620,
    height=320,
    title="Raising the threshold: fewer answers, and more of them right",
    background="white",
    padding=12,
)
target = Path(__file__).with_name("frontier.svg")
chart.save(target)
print(f"wrote {target.name}")
