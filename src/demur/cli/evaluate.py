"""`demur evaluate`: repeated splits of one file, or a policy on problems it has not seen."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demur.cli import output
from demur.cli.options import (
    Alpha,
    AnswerField,
    Config,
    Correct,
    Delta,
    Json,
    Missing,
    Normaliser,
    Pools,
    Relation,
    RunName,
    Score,
    Seed,
    Smoothed,
    TieBreak,
    Weight,
    guarantees_of,
    open_by_policy,
    open_labelled,
    reading_of,
)

if TYPE_CHECKING:
    from demur.calibration import Guarantee
    from demur.electorate import Electorate

NAME = "evaluate"
HELP = """Measure what a policy would do, or does, on labelled pools.

Without `--policy`: calibrate on one random part and measure on the rest, many times over.

With `--policy`: audit it on problems it has not seen. Problems that calibrated it are refused, unless some were kept
back with `calibrate --hold-out`; then those are audited.

Examples:

`demur evaluate pools.jsonl --score simulated --alpha 0.05 --splits 20`

`demur evaluate pools.jsonl --policy policy.json`
"""


def run(
    file: Pools,
    policy: Annotated[
        Path | None, typer.Option("--policy", metavar="POLICY", help="Audit this policy instead of repeating splits.")
    ] = None,
    alpha: Alpha = None,
    delta: Delta = None,
    smoothed: Smoothed = False,
    score: Score = None,
    normaliser: Normaliser = None,
    weight: Weight = None,
    tie_break: TieBreak = None,
    answer_field: AnswerField = None,
    missing: Missing = None,
    relation: Relation = None,
    correct: Correct = None,
    run_name: RunName = None,
    config: Config = None,
    splits: Annotated[int | None, typer.Option(help="How many random splits.  [default: 20]")] = None,
    n_cal: Annotated[
        int | None, typer.Option(help="Calibration questions per split.  [default: 200, or half of a smaller file]")
    ] = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    if policy is not None:
        given = {
            "--alpha": alpha, "--delta": delta, "--smoothed": smoothed, "--score": score, "--normaliser": normaliser,
            "--weight": weight, "--tie-break": tie_break, "--answer-field": answer_field, "--missing": missing,
            "--relation": relation, "--n-cal": n_cal, "--splits": splits, "--seed": seed,
        }  # fmt: skip
        _audit(
            file,
            run_name,
            policy,
            correct,
            [flag for flag, value in given.items() if value is not None and value is not False],
            json=json,
        )
        return
    reading = reading_of(answer_field, missing, score, relation)
    voted = open_labelled(file, run_name, reading, normaliser, weight, tie_break, correct, config)
    guarantees = guarantees_of(alpha, delta, smoothed, seed)
    _repeat(voted, guarantees, splits=20 if splits is None else splits, n_cal=n_cal, seed=seed or 0, json=json)


def _repeat(
    voted: Electorate, guarantees: list[Guarantee], *, splits: int, n_cal: int | None, seed: int, json: bool
) -> None:
    from demur.evaluation import evaluate_splits
    from demur.evidence import Evidence
    from demur.frontier import Frontier
    from demur.splits import in_drawn_order, one_per_unit

    ids = voted.table.ids
    kept = one_per_unit(ids, voted.units())
    rows = kept[in_drawn_order([ids[row] for row in kept])]  # the order of the file decides nothing
    votes, labels = voted.votes.take(rows), voted.correct()[rows]
    n = len(rows)
    if n_cal is None:
        n_cal = 200 if n >= 400 else n // 2
    results = evaluate_splits({"": (votes, labels)}, guarantee=guarantees, n_cal=n_cal, splits=splits, seed=seed)
    curve = Frontier.of(Evidence.of(votes.key, labels))
    facts = {
        "n": n,
        "duplicates": len(voted.votes) - n,
        "n_cal": n_cal,
        "splits": splits,
        "seed": seed,
        "pipeline": votes.recipe.describe(),
        "accuracy": voted.accuracies(rows),
        "auroc": curve.auroc,
        "frontier_auc": curve.auc,
        "frontier_auc_normalised": curve.auc_normalised,
        "aurc": curve.aurc,
        "warnings": voted.score_warnings(),
        "frontier": {"answered": curve.answered.tolist(), "selective_accuracy": curve.selective_accuracy.tolist()},
        "points": [_point(result) for result in results],
    }
    if json:
        output.emit(facts)
        return
    _show_splits(facts)


def _point(result: Any) -> dict[str, Any]:
    def spread(summary: Any) -> dict[str, float]:
        return {"mean": summary.mean, "sd": summary.sd, "se": summary.se}

    return {
        "alpha": result.alpha,
        "guarantee": result.guarantee.name,
        **result.guarantee.parameters(),
        "feasible": result.guarantee.rank(result.n_cal) > 0,
        "n_needed": result.guarantee.n_needed(),
        "confident_error": spread(result.confident_error),
        "expected_confident_error": result.expected_confident_error,
        "z": result.z,
        "answered": spread(result.answered),
        "selective_accuracy": spread(result.selective_accuracy),
        "false_abstention": spread(result.false_abstention),
        "threshold": spread(result.threshold),
        "empty_splits": result.empty_splits,
    }


def _show_splits(facts: dict[str, Any]) -> None:
    again = facts["duplicates"]
    output.say(
        f"{facts['n']} questions{f' ({again} duplicates not counted)' if again else ''}, "
        f"{facts['splits']} random splits: {facts['n_cal']} calibrate, {facts['n'] - facts['n_cal']} test. "
        "Mean ± standard deviation over splits."
    )
    output.table(
        "Accuracy without abstaining",
        [name.replace("_", " ") for name in facts["accuracy"]],
        [[output.percent(value) for value in facts["accuracy"].values()]],
    )
    output.table(
        "With abstention",
        ["alpha", "answered wrongly", "exact mean", "answered", "of those right", "right, withheld", "threshold",
         "splits without answers"],
        [
            [
                f"{point['alpha']:g}",
                _mean_sd(point["confident_error"]),
                output.percent(point["expected_confident_error"]),
                _mean_sd(point["answered"]),
                _mean_sd(point["selective_accuracy"]),
                _mean_sd(point["false_abstention"]),
                f"{point['threshold']['mean']:.4f}",
                str(point["empty_splits"]),
            ]
            for point in facts["points"]
        ],
    )  # fmt: skip
    _plot(
        facts["frontier"],
        [(point["alpha"], point["answered"]["mean"], point["selective_accuracy"]["mean"]) for point in facts["points"]],
    )
    for warning in facts["warnings"]:
        output.say(f"warning: {warning}")
    for point in facts["points"]:
        if not point["feasible"]:
            output.say(
                f"alpha {point['alpha']:g}: {facts['n_cal']} calibration questions are too few, so it abstains always."
            )
    output.say(
        f"Confidence ranks a right vote above a wrong one {output.percent(facts['auroc'])} of the time; frontier AUC "
        f"{output.number(facts['frontier_auc'])} ({output.number(facts['frontier_auc_normalised'])} over its width), "
        f"AURC {output.number(facts['aurc'])}."
    )
    distances = [abs(point["z"]) for point in facts["points"] if not math.isnan(point["z"])]
    output.say(
        "'Exact mean' is what the mean over all random splits of this file must be"
        + (f"; the means above lie within {max(distances):.1f} standard errors of it." if distances else ".")
    )


def _plot(curve: dict[str, list[float]], points: list[tuple[float, float, float]]) -> None:
    """Accuracy against yield, with a letter at each alpha."""
    from demur.cli.plot import text_plot

    letters = dict(zip("ABCDEFGH", points, strict=False))
    drawn = text_plot(
        curve["answered"], curve["selective_accuracy"], {letter: (x, y) for letter, (_, x, y) in letters.items()},
        x_title="answered", y_title="of the answered, right",
    )  # fmt: skip
    seen = {letter: alpha for letter, (alpha, x, y) in letters.items() if math.isfinite(x + y)}
    if drawn:
        output.say(drawn)
        output.say("        " + ", ".join(f"{letter}: alpha {alpha:g}" for letter, alpha in seen.items()))


def _mean_sd(summary: dict[str, float]) -> str:
    return output.percent(summary["mean"], summary["sd"])


def _audit(
    file: str, run_name: str | None, policy_file: Path, correct: str | None, given: list[str], *, json: bool
) -> None:

    from demur.audit import audit_policy
    from demur.errors import CalibrationLeak, InvalidValue
    from demur.evidence import Evidence
    from demur.frontier import Frontier
    from demur.policy import Policy
    from demur.splits import one_per_unit

    if given:
        raise InvalidValue(f"{', '.join(given)} and --policy exclude each other: the policy says how votes are made")
    policy = Policy.load(policy_file)
    voted = open_by_policy(file, run_name, policy, labelled=True, correct=correct)
    ids, questions, clusters = voted.table.ids, voted.table.questions, voted.table.clusters
    if policy.seen.hold_out is None:
        policy.refuse_seen(ids, questions, clusters)
    touched = voted.touched_by(policy)
    kept = one_per_unit(ids, voted.units())
    fresh = kept[~touched[kept]]
    left_out = int(touched.sum())
    duplicates = len(ids) - left_out - len(fresh)
    if not len(fresh):
        raise CalibrationLeak(
            f"all {len(ids)} problems of {file} calibrated this policy; give a file of other problems"
        )
    audits = audit_policy(policy, voted.votes.take(fresh), voted.correct()[fresh])
    curve = Frontier.of(Evidence.of(voted.votes.key[fresh], voted.correct()[fresh]))
    facts = {
        "problems": len(ids),
        "left_out": left_out,
        "duplicates": duplicates,
        "n": len(fresh),
        "auroc": curve.auroc,
        "points": [
            {
                "alpha": audit.point.alpha,
                "guarantee": audit.point.guarantee.name,
                "feasible": audit.point.feasible,
                "threshold": audit.point.threshold,
                **{
                    name: getattr(audit, name)
                    for name in (
                        "errors", "answered", "selective_accuracy", "confident_error", "false_abstention", "expected",
                        "interval", "p_value", "consistent", "verdict",
                    )
                },
            }
            for audit in audits
        ],
    }  # fmt: skip
    if json:
        output.emit(facts)
        return
    output.say(
        f"{len(fresh)} questions the policy has not seen"
        + (f" ({left_out} calibrated it and are left out)" if left_out else "")
        + (
            f" ({duplicates} more share a cluster or question with one of them and are not counted)"
            if duplicates
            else ""
        )
    )
    output.table(
        "Audit",
        [
            "alpha",
            "answered wrongly",
            "expected",
            "usual, at most (95 %)",
            "answered",
            "of those right",
            "right, withheld",
            "p-value",
        ],
        [
            [
                f"{audit.point.alpha:g}",
                output.percent(audit.confident_error),
                output.percent(policy.forecast(audit.point.alpha).expected_confident_error),
                output.percent(audit.interval[1]),
                output.percent(audit.answered),
                output.percent(audit.selective_accuracy),
                output.percent(audit.false_abstention),
                output.number(audit.p_value),
            ]
            for audit in audits
        ],
    )
    shown = {"answered": curve.answered.tolist(), "selective_accuracy": curve.selective_accuracy.tolist()}
    _plot(shown, [(audit.point.alpha, audit.answered, audit.selective_accuracy) for audit in audits])
    for audit in audits:
        output.say(audit.verdict)
