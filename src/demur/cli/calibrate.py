"""`demur calibrate`: from labelled pools to a policy."""

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
    open_labelled,
    reading_of,
    refuse_overwriting,
)

if TYPE_CHECKING:
    from demur.policy import Policy

NAME = "calibrate"
HELP = """Calibrate an answer-or-abstain policy on labelled pools.

Uses every problem of the file; `--hold-out 0.5` keeps half of them back for `demur evaluate --policy`.

Examples:

`demur calibrate pools.jsonl --score simulated --alpha 0.05 -o policy.json`

`demur calibrate pools.jsonl --alpha 0.05 --alpha 0.1 --hold-out 0.5 -o policy.json`

`demur calibrate pools.jsonl --score simulated --normaliser pool_z --tie-break mean_score --delta 0.1`
"""


def run(
    file: Pools,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="POLICY", help="Where to write the policy.")
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
    hold_out: Annotated[float, typer.Option(metavar="SHARE", help="Share of problems to keep back for a test.")] = 0.0,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail where the problems are too few for the promise.")
    ] = False,
    seed: Seed = None,
    json: Json = False,
) -> None:
    refuse_overwriting(out, file)
    guarantees = guarantees_of(alpha, delta, smoothed, seed)
    reading = reading_of(answer_field, missing, score, relation)
    voted = open_labelled(file, run_name, reading, normaliser, weight, tie_break, correct, config)
    policy, held_out = voted.calibrate(guarantees, hold_out=hold_out, seed=seed or 0, strict=strict)
    if out is not None:
        policy.save(out)
    facts = _facts(policy, used=len(voted.votes) - held_out, held_out=held_out, file=None if out is None else str(out))
    facts["warnings"] = voted.score_warnings()
    if json:
        output.emit(facts)
    else:
        _show(policy, facts)


def _facts(policy: Policy, *, used: int, held_out: int, file: str | None) -> dict[str, Any]:
    from demur.frontier import Frontier
    from demur.separability import Separability

    evidence = policy.evidence
    curve = Frontier.of(evidence)
    gaps = Separability.of(evidence)
    top = evidence.by_confidence
    widest = int(gaps.separability_gap.argmax()) if evidence.n_right and evidence.n_wrong else None
    return {
        "policy": file,
        "problems": used,
        "n": policy.n,
        "held_out": held_out,
        "n_paths": list(policy.n_paths),
        "pipeline": policy.pipeline,
        "fingerprint": policy.fingerprint,
        "vote_accuracy": evidence.vote_accuracy,
        "auroc": curve.auroc,
        "frontier_auc": curve.auc,
        "frontier_auc_normalised": curve.auc_normalised,
        "aurc": curve.aurc,
        "separability_gap": math.nan if widest is None else float(gaps.separability_gap[widest]),
        "separability_gap_at": math.nan if widest is None else float(gaps.threshold[widest]),
        "confident_and_wrong": int(top.wrong[-1]) / evidence.n if top.levels[-1, 0] == 1 else 0.0,
        "points": [
            {
                "alpha": point.alpha,
                "guarantee": point.guarantee.name,
                **point.guarantee.parameters(),
                "feasible": point.feasible,
                "n_needed": point.guarantee.n_needed(),
                "k": point.k,
                "threshold": point.threshold,
                "threshold_key": list(point.threshold_key),
                "promise": point.guarantee.promise(policy.n),
                "forecast": {
                    name: getattr(policy.forecast(point.alpha), name)
                    for name in (
                        "answered", "selective_accuracy", "selective_accuracy_corrected", "accuracy_at_least",
                        "confident_error", "expected_confident_error", "false_abstention",
                    )
                },
            }
            for point in policy.points
        ],
    }  # fmt: skip


def _by(pipeline: dict[str, Any]) -> str:
    """Which model a score comes from, where it comes from one."""
    model = (pipeline.get("scorer") or {}).get("model")
    return f" by {output.visible(model)}" if model else ""


def _bound(point: dict[str, Any]) -> str:
    """What must be exceeded: the confidence, and behind it the secondary key where there is one."""
    if not point["feasible"]:
        return "abstains always"
    return " / ".join(f"{bound:.4f}" for bound in point["threshold_key"] if math.isfinite(bound))


def _show(policy: Policy, facts: dict[str, Any]) -> None:
    pipeline = facts["pipeline"]
    duplicates = facts["problems"] - facts["n"]
    output.say(
        f"{facts['n']} calibration questions"
        + (
            f" ({duplicates} more share a cluster or question with one of them and are not counted)"
            if duplicates
            else ""
        )
        + (f", {facts['held_out']} problems held out" if facts["held_out"] else "")
        + f"; score {pipeline['score'] or 'none (majority vote)'}{_by(pipeline)}, normaliser {pipeline['normaliser']}, "
        f"weight {pipeline['weight']}, tie-break {pipeline['tie_break'] or 'none'}"
    )
    rows = []
    for point in facts["points"]:
        expected = point["forecast"]
        rows.append([
            f"{point['alpha']:g}",
            _bound(point),
            output.percent(expected["answered"]),
            output.percent(expected["selective_accuracy_corrected"]),
            output.percent(expected["accuracy_at_least"]),
            output.percent(expected["expected_confident_error"]),
            output.percent(expected["false_abstention"]),
        ])  # fmt: skip
    output.table(
        "What to expect",
        [
            "alpha",
            "answer above",
            "answered",
            "of those right",
            "at least (95 %)",
            "answered wrongly",
            "right, withheld",
        ],
        rows,
    )
    output.say(
        f"Vote accuracy without abstaining {output.percent(facts['vote_accuracy'])}; confidence ranks a right vote "
        f"above a wrong one {output.percent(facts['auroc'])} of the time (50 % is no better than chance); largest "
        f"separability gap {output.number(facts['separability_gap'])} at {output.number(facts['separability_gap_at'])}."
    )
    for point in facts["points"]:
        if point["feasible"] and pipeline["tie_break"] is None and point["threshold"] == 1:
            remedy = (
                "--tie-break mean_score" if pipeline["score"] else "a score, with --score NAME --tie-break mean_score"
            )
            output.say(
                f"At full confidence {output.percent(facts['confident_and_wrong'])} of all votes are wrong, too many "
                f"for alpha = {point['alpha']:g}: no threshold on this confidence can answer. Try {remedy}."
            )
    for warning in facts["warnings"]:
        output.say(f"warning: {warning}")
    for point in facts["points"]:
        output.say(point["promise"])
    output.say(
        "The promise is about all questions together: it is not that any one answer is right, nor that a share "
        "1 − alpha of the answers given are."
    )
    if facts["policy"]:
        output.say(f"Wrote {facts['policy']}.")
