"""What a calibration found, as tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from demur.cli import options, output, vote_flags


def _by(score: dict[str, Any]) -> str:
    """Which model a score comes from, where it comes from one."""
    model = (score.get("scorer") or {}).get("model")
    return f" by {output.visible(model)}" if model else ""


def _bound(key: list[str]) -> Callable[[dict[str, Any]], str]:
    """What must be exceeded: the confidence and, behind it, what breaks ties; a draw says nothing to anybody."""

    def told(point: dict[str, Any]) -> str:
        if not point["told"].startswith("answers above"):
            return str(point["told"])
        parts = zip(key, point["threshold_key"], strict=True)
        bound = " / ".join(f"{part:.4f}" for name, part in parts if name != "jitter" and math.isfinite(part))
        if "by_group" in point:
            return f"{bound} or more, by group"
        return f"{bound} or more, by paths" if "by_size" in point else bound

    return told


def show(facts: dict[str, Any]) -> None:
    vote, score = facts["pipeline"]["vote"], facts["pipeline"]["score"]
    sets = [point["answer_sets"] for point in facts["points"] if "answer_sets" in point]
    for_sets = sets[0]["questions"] if sets else 0
    again = facts["problems"] - facts["n"] - for_sets
    output.say(
        f"{facts['n']} calibration {facts['unit']}s"
        + (f" ({again} more share a cluster or question with one of them and are not counted)" if again else "")
        + (f", {for_sets} more kept for answer sets" if for_sets else "")
        + (f", {facts['unscored']} pools left out for want of a score" if facts["unscored"] else "")
        + (f", {facts['held_out']} problems held out" if facts["held_out"] else "")
        + f"; score {score['name'] or 'none (majority vote)'}{_by(score)}, normaliser {vote['normaliser']}, "
        f"weight {vote['weight']}, ties broken by {vote_flags.told_ties(vote)}"
    )

    if "tuned" in facts:
        output.say(facts["tuned"])

    def forecast(name: str) -> Callable[[dict[str, Any]], str]:
        return lambda point: output.percent(point["forecast"][name])

    columns: output.Columns = {
        "alpha": lambda point: f"{point['alpha']:g}",
        "answers above": _bound(facts["key"]),
        "answered": forecast("answered"),
        "of those right": forecast("selective_accuracy_corrected"),
        "at least (95 %)": forecast("accuracy_at_least"),
        "answered wrongly": forecast("expected_confident_error"),
        "right, withheld": forecast("false_abstention"),
    }
    if facts["unit"] == "cluster":
        columns = {
            **columns,
            "of clusters, in calibration": forecast("confident_error"),
            "of all questions there": lambda point: output.percent(point["per_question"]["confident_error"]),
        }
    if len({point["alpha"] for point in facts["points"]}) < len(facts["points"]):
        columns = {"guarantee": lambda point: point["guarantee"].replace("_", " "), **columns}
    output.table_of("What to expect", facts["points"], columns)
    for point in facts["points"]:
        if "groups" in point:
            _show_groups(point, facts["key"])
    if "bounds" in facts:
        _show_bounds(facts["bounds"])
    output.say(*(point["price_note"] for point in facts["points"] if "price_note" in point))
    if "gated" in facts:
        output.say(
            f"The gate turns away {facts['gated']} of these questions as unlike its own; they count, unanswered."
        )
    output.say(*(f"{note}." for note in (*facts["label_notes"], *facts["weight_notes"], *facts["outlier_notes"])))
    if facts["labelled"] == facts["n"] and not math.isnan(facts["vote_accuracy"]):
        _show_vote(facts)
    for point in facts["points"]:
        if point["feasible"] and point["among_answers"] and point["told"] == "never answers":
            output.say(
                f"At no threshold are errors few enough to promise alpha = {point['alpha']:g} of the answers: more "
                "calibration questions, a larger alpha or a better score would be needed, or `demur decide --fdr`."
            )
        elif point["feasible"] and vote["tie_break"] is None and point["threshold"] == 1 and "groups" not in point:
            wrong = "wrong" if facts["labelled"] == facts["n"] else "wrong, or not known to be right"
            output.say(
                f"At full confidence {output.percent(facts['confident_and_wrong'])} of all votes are {wrong}, too many "
                f"for alpha = {point['alpha']:g}: no threshold on this confidence can answer. {options.TIES_REMAIN}"
            )
        elif point["tie_note"]:
            output.say(f"{point['tie_note']} {options.TIES_REMAIN}")
    output.warn(facts["warnings"])
    output.say(*([facts["size_note"]] if facts["size_note"] else []), *(point["promise"] for point in facts["points"]))
    if any(point["among_answers"] for point in facts["points"]):
        output.say(
            "The promise is about the answers given, in the long run: it is not that any one answer is right. It is "
            "paid for with answers; `demur decide --fdr` promises an average over batches instead, and answers more."
        )
    else:
        whole = "all questions of a group" if any("groups" in point for point in facts["points"]) else "all questions"
        output.say(
            f"The promise is about {whole} together: it is not that any one answer is right, nor that a share "
            "1 − alpha of the answers given are."
        )
    for point, sizes in zip(facts["points"], facts["set_sizes"], strict=False):
        note = f"Answer sets, where alpha = {point['alpha']:g} abstains: {point['answer_sets']['note']}"
        output.say(note, *([f"In this file, {sizes}"] if sizes else []))
    output.say(*(f"Before you audit: {ahead['sentence']}" for ahead in facts["audits"]))
    output.wrote(facts["policy"])


def _show_bounds(bounds: dict[str, list[float]]) -> None:
    """What each alpha would bring, where every alpha is promised."""
    rows = [dict(zip(bounds, row, strict=True)) for row in zip(*bounds.values(), strict=True)]
    columns: output.Columns = {
        "any of these alphas": lambda row: f"{row['alpha']:g}",
        "answers above": lambda row: f"{row['threshold']:.4f}" if row["answered"] else "never answers",
        "answered": lambda row: output.percent(row["answered"]),
        "of those right": lambda row: output.percent(row["selective_accuracy"]),
    }
    output.table_of("Choose after looking: decide with --alpha, be it here or in between", rows, columns)


def _show_groups(point: dict[str, Any], key: list[str]) -> None:
    """A row per group."""
    bound = _bound(key)
    columns: output.Columns = {
        "group": lambda row: output.visible(row["group"], 60),
        "questions": lambda row: str(row["n"]),
        "answers above": lambda row: bound(row) + (" (of all)" if row["stand_in"] else ""),
        "answered": lambda row: str(row["n_answered"]),
        "of those wrong": lambda row: str(row["n_wrong"]),
        "expect answered": lambda row: output.percent(row["forecast"]["answered"]),
        "expect answered wrongly": lambda row: output.percent(row["forecast"]["expected_confident_error"]),
    }
    output.table_of(f"By group, alpha {point['alpha']:g}", point["groups"], columns)


def _show_vote(facts: dict[str, Any]) -> None:
    """What the labels say of the vote itself."""
    output.say(
        f"Vote accuracy without abstaining {output.percent(facts['vote_accuracy'])}; confidence ranks a right vote "
        f"above a wrong one {output.percent(facts['auroc'])} of the time (50 % is no better than chance); largest "
        f"separability gap {output.number(facts['separability_gap'])} at {output.number(facts['separability_gap_at'])}."
    )
