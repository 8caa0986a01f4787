"""What a verb prints and what it writes as JSON are the same figures, every one of them, under one name each."""

from __future__ import annotations

import re

import pytest

import demur as dm

TIED = [
    "--alpha",
    0.05,
    "--alpha",
    0.1,
    "--alpha",
    0.3,
]  # a majority vote: ties, and at 0.3 no error sets the threshold
SCORED = ["--score", "simulated", "--tie-break", "mean_score", *TIED]
GUARANTEES = {
    "marginal": [],
    "smoothed": ["--smoothed", "--seed", 4],
    "high probability": ["--delta", 0.1],
}


def rows_of(text, title):
    """The rows of a printed table by their columns."""
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.strip() == title) + 2
    header = re.split(r"\s{2,}", lines[at].strip())
    rows = []
    for line in lines[at + 2 :]:
        if not line.strip():
            return rows
        rows.append(dict(zip(header, re.split(r"\s{2,}", line.strip()), strict=True)))
    raise AssertionError("the table does not end")


def percent(rate, spread=None):
    if rate is None:
        return "–"
    return f"{100 * rate:.1f} %" + ("" if spread is None else f" ± {100 * spread:.1f}")


def number(value):
    return "–" if value is None else f"{value:.4g}"


def mean_sd(name):
    return lambda point: percent(point[name]["mean"], point[name]["sd"])


AUDITED = {
    "alpha": lambda point: f"{point['alpha']:g}",
    "answered wrongly": lambda point: percent(point["confident_error"]),
    "expected": lambda point: percent(point["expected_confident_error"]),
    "usual, at most (95 %)": lambda point: percent(point["usual_at_most"]),
    "answered": lambda point: percent(point["answered"]),
    "of those right": lambda point: percent(point["selective_accuracy"]),
    "right, withheld": lambda point: percent(point["false_abstention"]),
    "p-value": lambda point: number(point["p_value"]),
}
EVALUATED = {
    "alpha": lambda point: f"{point['alpha']:g}",
    "answered wrongly": mean_sd("confident_error"),
    "exact mean": lambda point: percent(point["expected_confident_error"]),
    "answered": mean_sd("answered"),
    "of those right": mean_sd("selective_accuracy"),
    "right, withheld": mean_sd("false_abstention"),
    "threshold": lambda point: (
        "never answers"
        if not point["answered"]["mean"]
        else f"{point['threshold']['mean']:.4f}"
        if point["threshold"]["mean"]
        else "always answers"
    ),
    "splits without answers": lambda point: str(point["empty_splits"]),
}
CALIBRATED = {
    "alpha": lambda point: f"{point['alpha']:g}",
    "answers above": lambda point: (
        " / ".join(f"{bound:.4f}" for bound in point["threshold_key"][:-1] if bound is not None)  # without the jitter
        if point["told"].startswith("answers above")
        else point["told"]
    ),
    "answered": lambda point: percent(point["forecast"]["answered"]),
    "of those right": lambda point: percent(point["forecast"]["selective_accuracy_corrected"]),
    "at least (95 %)": lambda point: percent(point["forecast"]["accuracy_at_least"]),
    "answered wrongly": lambda point: percent(point["forecast"]["expected_confident_error"]),
    "right, withheld": lambda point: percent(point["forecast"]["false_abstention"]),
}


def shown(points, columns):
    return [{title: of(point) for title, of in columns.items()} for point in points]


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("flags", [TIED, SCORED], ids=["tied", "scored"])
def test_audit(demur, pools, flags, guarantee):
    demur("calibrate", pools, *flags, *GUARANTEES[guarantee], "--hold-out", 0.6, "-o", "p.json")
    text, facts = (demur("audit", pools, "--policy", "p.json", *more) for more in ((), ("--json",)))
    text, facts = text.out, facts.json
    assert rows_of(text, "Audit") == shown(facts["points"], AUDITED)
    assert text.startswith(f"{facts['n']} questions the policy has not seen ({facts['left_out']} calibrated it")
    for point in facts["points"]:
        assert point["verdict"] in text.splitlines()
        assert f"{point['errors']} wrong answers in {facts['n']} questions" in point["verdict"]
        assert point["errors"] / facts["n"] == point["confident_error"]
        assert point["interval"][0] <= point["usual_at_most"] <= point["interval"][1]


def test_what_an_audit_expects_is_what_calibrate_and_report_expect(demur, pools, tmp_path):
    """Scarce errors and ties: here the law without them would say k / (n + 1) instead."""
    calibrated = demur("calibrate", pools, *TIED, "--hold-out", 0.5, "-o", "p.json", "--json").json["points"]
    audited = demur("audit", pools, "--policy", "p.json", "--json").json["points"]
    demur("report", pools, "--policy", "p.json", "-o", "r.html")
    page = (tmp_path / "r.html").read_text()
    n = dm.Policy.load(tmp_path / "p.json").n
    for before, after in zip(calibrated, audited, strict=True):
        expected = before["forecast"]["expected_confident_error"]
        assert after["expected_confident_error"] == expected
        assert f'"expected_confident_error":{expected!r}' in page.replace(": ", ":")
        assert f'"usual_at_most":{after["usual_at_most"]!r}' in page.replace(": ", ":")
        assert "expected" not in after
    assert abs(audited[-1]["expected_confident_error"] - calibrated[-1]["k"] / (n + 1)) > 0.05


def test_two_bare_numbers(demur, pools):
    demur("calibrate", pools, *TIED, "-o", "p.json")
    for errors, of in ((13, 500), (0, 7), (44, 60)):
        facts = demur("audit", "p.json", "--errors", errors, "--of", of, "--json").json
        text = demur("audit", "p.json", "--errors", errors, "--of", of).out.splitlines()
        for at, point in enumerate(facts["points"]):
            assert text[2 * at] == point["verdict"]
            assert text[2 * at + 1] == f"  {point['outlook']['sentence']}"
            assert point["outlook"]["surprising_above"] == round(point["usual_at_most"] * of)
            assert f"surprising above {point['outlook']['surprising_above']} wrong" in text[2 * at + 1]


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("flags", [TIED, SCORED], ids=["tied", "scored"])
def test_evaluate(demur, pools, flags, guarantee):
    how = [*flags, *GUARANTEES[guarantee], "--n-cal", 150, "--splits", 15]
    text, facts = (demur("evaluate", pools, *how, *more) for more in ((), ("--json",)))
    text, facts = text.out, facts.json
    said = dict(EVALUATED)
    if not any(point["empty_splits"] for point in facts["points"]):
        del said["splits without answers"]
    assert rows_of(text, "With abstention") == shown(facts["points"], said)
    accuracies = {name.replace("_", " "): percent(rate) for name, rate in facts["accuracy"].items()}
    assert rows_of(text, "Accuracy without abstaining") == [accuracies]
    tested = facts["n"] - facts["n_cal"]
    assert text.startswith(
        f"{facts['n']} questions, {facts['splits']} random splits: {facts['n_cal']} calibrate, {tested} test."
    )
    furthest = max(abs(point["z"]) for point in facts["points"] if point["z"] is not None)
    least = min(point["p_value"] for point in facts["points"])
    assert f"within {furthest:.1f} standard errors of it (smallest p-value {number(least)})." in text
    assert f"above a wrong one {percent(facts['auroc'])} of the time" in text
    areas = (facts[name] for name in ("frontier_auc", "frontier_auc_normalised", "aurc"))
    assert "frontier AUC {} ({} over its width), AURC {}.".format(*map(number, areas)) in text


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("flags", [TIED, SCORED, ["--alpha", 0.001]], ids=["tied", "scored", "too few"])
def test_calibrate(demur, pools, flags, guarantee):
    text, facts = (demur("calibrate", pools, *flags, *GUARANTEES[guarantee], *more) for more in ((), ("--json",)))
    text, facts = text.out, facts.json
    assert rows_of(text, "What to expect") == shown(facts["points"], CALIBRATED)
    assert f"{facts['n']} calibration questions" in text
    assert f"without abstaining {percent(facts['vote_accuracy'])}; " in text
    gap, at = number(facts["separability_gap"]), number(facts["separability_gap_at"])
    assert f"separability gap {gap} at {at}." in text
    assert f"above a wrong one {percent(facts['auroc'])} of the time" in text
    for point in facts["points"]:
        assert point["promise"] in text.splitlines()
