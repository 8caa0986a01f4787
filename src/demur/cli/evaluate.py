"""`demur evaluate`: repeated splits of one file."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

import typer

import demur
from demur.cli import options, output, promise_flags, vote_flags
from demur.cli.plot import plot_frontier
from demur.errors import InvalidValue

NAME = "evaluate"
HELP = """Measure what a policy would do: calibrate on a random part of labelled pools, measure on the rest, many times.

A policy that is there already is checked on new problems by `demur audit`.

Examples:

`demur evaluate pools.jsonl --score simulated --alpha 0.05 --splits 20`

`demur evaluate runs/gsm8k.db --score perplexity --alpha 0.05 --alpha 0.1`

`demur evaluate pools.jsonl --by-group --group-field category --alpha 0.1 --splits 100`
"""


_MUCH_UNSPENT = 0.1


def run(
    file: options.Pools,
    alpha: options.Alpha = None,
    delta: options.Delta = None,
    smoothed: options.Smoothed = False,
    by_group: options.ByGroup = False,
    small_groups: options.SmallGroups = None,
    flags: vote_flags.VoteFlags = vote_flags.VoteFlags(),
    labels: vote_flags.LabelFlags = vote_flags.LabelFlags(),
    run_name: options.RunName = None,
    partial: options.Partial = False,
    config: options.Config = None,
    splits: Annotated[int, typer.Option(help="How many random splits.")] = 20,
    n_cal: Annotated[
        int | None, typer.Option(help="Calibration questions per split.  [default: 200, or half of a smaller file]")
    ] = None,
    seed: options.Seed = None,
    policy: Annotated[str | None, typer.Option(hidden=True)] = None,
    json: options.Json = False,
) -> None:
    if policy is not None:
        raise InvalidValue("`evaluate --policy` is `audit` now: demur audit POOLS --policy POLICY")
    rule = labels.rule()
    source, voted = flags.vote(file, run_name, config, rule, partial=partial)
    guarantees = promise_flags.guarantees_of(alpha, delta, smoothed, seed)
    guarantees = promise_flags.grouped(guarantees, small_groups, by_group=by_group)
    evaluation = demur.evaluate(voted, guarantee=guarantees, n_cal=n_cal, splits=splits, seed=seed or 0)
    facts = {
        **{
            name: getattr(evaluation, name)
            for name in ("n", "unit", "duplicates", "unscored", "n_cal", "splits", "seed", "accuracy")
        },
        "left_out": source.left_out,
        "pipeline": voted.votes.description.document(),
        "labels": (rule if voted.labels is None else voted.labels.rule).describe(),
        **output.frontier_facts(evaluation.frontier),
        "warnings": evaluation.warnings,
        "frontier": output.frontier_points(evaluation.frontier),
        "points": [point.document() for point in evaluation.points],
        **({"groups": [group.document() for group in evaluation.groups]} if by_group else {}),
    }
    if json:
        output.emit(facts)
    else:
        _show(facts, rule)


def _threshold(point: dict[str, Any]) -> str:
    """The mean over splits; in words where it says nothing."""
    if not point["feasible"] or point["answered"]["mean"] == 0:
        return "never answers"
    mean, sd = point["threshold"]["mean"], point["threshold"]["sd"]
    return "always answers" if mean == 0 and not sd > 0 else f"{mean:.4f}"


def _show(facts: dict[str, Any], rule: demur.LabelRule) -> None:
    again = facts["duplicates"]
    output.say(
        f"{facts['n']} {facts['unit']}s{f' ({again} more share one and are not counted)' if again else ''}, "
        f"{facts['splits']} random splits: {facts['n_cal']} calibrate, {facts['n'] - facts['n_cal']} test. "
        "Mean ± standard deviation over splits."
    )
    accuracies = {name.replace("_", " "): output.percent(rate) for name, rate in facts["accuracy"].items()}
    output.table("Accuracy without abstaining", list(accuracies), [list(accuracies.values())])

    def mean_sd(name: str) -> Callable[[dict[str, Any]], str]:
        return lambda point: output.percent(point[name]["mean"], point[name]["sd"])

    columns: output.Columns = {
        "alpha": lambda point: f"{point['alpha']:g}",
        "answered wrongly": mean_sd("confident_error"),
        "exact mean": lambda point: output.percent(point["expected_confident_error"]),
        "answered": mean_sd("answered"),
        "of those right": mean_sd("selective_accuracy"),
        "right, withheld": mean_sd("false_abstention"),
        "threshold": _threshold,
        "splits without answers": lambda point: str(point["empty_splits"]),
    }
    if facts["unit"] == "cluster":
        columns = {**columns, "of all questions wrongly": mean_sd("confident_error_per_question")}
    points = facts["points"]
    title = "With abstention, one threshold for all groups" if "groups" in facts else "With abstention"
    output.table_of(title, points, columns, only_if_said=["splits without answers"])
    if "groups" in facts:
        _show_groups(facts["groups"])
    means = [(point["alpha"], point["answered"]["mean"], point["selective_accuracy"]["mean"]) for point in points]
    plot_frontier(facts["frontier"], means)
    output.warn(facts["warnings"])
    if not rule.is_plain:
        output.say(f"Right is {rule.told}.")
    for alpha in (point["alpha"] for point in points if not point["feasible"]):
        output.say(
            f"alpha {alpha:g}: {facts['n_cal']} calibration {facts['unit']}s are too few, so it abstains always."
        )
    for point in points:
        if point["unspent_by_ties"] >= _MUCH_UNSPENT * point["alpha"]:
            output.say(
                f"Ties leave {output.percent(point['unspent_by_ties'])} of the {output.percent(point['alpha'])} that "
                f"alpha = {point['alpha']:g} allows unspent: votes of one confidence are answered together or not at "
                f"all, and a tie-break would tell them apart. {options.TIES_REMAIN}"
            )
    output.say(
        f"Confidence ranks a right vote above a wrong one {output.percent(facts['auroc'])} of the time; frontier AUC "
        f"{output.number(facts['frontier_auc'])} ({output.number(facts['frontier_auc_normalised'])} over its width), "
        f"AURC {output.number(facts['aurc'])}."
    )
    distances = [abs(point["z"]) for point in points if not math.isnan(point["z"])]
    within = f" within {max(distances):.1f} standard errors of it" if distances else " at it"
    output.say(
        f"'Exact mean' is what the mean over all random splits of this file must be; the means above lie{within} "
        f"(smallest p-value {output.number(min(point['p_value'] for point in points))})."
    )


def _show_groups(groups: list[dict[str, Any]]) -> None:
    """Each group, with one threshold for all questions and with one of its own."""

    def rate(name: str) -> Callable[[dict[str, Any]], str]:
        return lambda row: output.percent(row[name]["mean"], row[name]["se"])

    own = [row for row in groups if row["guarantee"].startswith("grouped_")]
    pooled = {(row["guarantee"], row["alpha"], row["group"]): row for row in groups}

    def without(name: str) -> Callable[[dict[str, Any]], str]:
        return lambda row: rate(name)(pooled[row["guarantee"].removeprefix("grouped_"), row["alpha"], row["group"]])

    columns: output.Columns = {
        "alpha": lambda row: f"{row['alpha']:g}",
        "group": lambda row: output.visible(row["group"], 60),
        "questions": lambda row: str(row["n"]),
        "answered wrongly": rate("confident_error"),
        "exact mean": lambda row: output.percent(row["exact_mean"]),
        "answered": rate("answered"),
        "wrongly, one threshold for all": without("confident_error"),
        "answered, one for all": without("answered"),
    }
    output.table_of("By group, mean ± standard error over splits", own, columns, only_if_said=["exact mean"], keys=2)
    distances = [abs(row["z"]) for row in own if not math.isnan(row["z"])]
    if distances:
        output.say(
            f"By group, 'exact mean' is given how many of its questions calibrate in each split; of {len(distances)} "
            f"means the farthest lies {max(distances):.1f} exact standard errors from it."
        )
    else:
        output.say("By group there is no exact law here: standard errors are those seen over these splits.")
