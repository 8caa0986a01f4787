"""`demur audit`: a policy on problems it has not seen, or its promise against two bare numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

import demur
from demur.cli import cascade_use, output
from demur.cli.options import (
    CascadeFile,
    DropSeen,
    GuaranteeName,
    Json,
    KeyFile,
    MaybePolicyFile,
    Partial,
    RunName,
    StopRule,
    Task,
    Wave,
    argument,
    level,
    option,
)
from demur.cli.plot import plot_frontier, plot_outlook
from demur.cli.policy_files import load_cascade, load_policy, one_of, refuse_beside_cascade
from demur.cli.vote_flags import LabelFlags, stopping_flags, vote_by_policy
from demur.errors import InvalidValue

NAME = "audit"
HELP = """Check a policy's promise: on labelled problems it has not seen, or against errors that were counted elsewhere.

Problems that calibrated the policy are refused, unless `--drop-seen` leaves them out, or some were kept back with
`calibrate --hold-out`; then those are audited. What counts as right must be what counted as right then: give
`--gold-tolerance`, `--gold-containment`, `--label-verdicts` and `--correct` as you gave them to `calibrate`. With
`--errors` and `--of` no pools are needed: the number of questions answered wrongly, of how many asked; a promise about
the answers given needs `--answered` too. `--alpha` audits one operating point, of a policy that promises every alpha at
once any alpha; else all are audited. With `--cascade` give the pools of each stage in order.

Examples:

`demur audit new.jsonl --policy policy.json`

`demur audit policy.json --errors 13 --of 500 --alpha 0.05`

`demur audit cheap.jsonl strong.jsonl --cascade cascade.json`
"""


_DRAWN = 2
"""Operating points of which the law of audits is drawn."""


def run(
    files: Annotated[
        list[str],
        argument("POOLS|POLICY", "Labelled pools, of a cascade those of each stage; with --errors, the policy."),
    ],
    policy: MaybePolicyFile = None,
    cascade: CascadeFile = None,
    key_file: KeyFile = None,
    errors: Annotated[int | None, typer.Option("--errors", min=0, help="Questions answered wrongly.")] = None,
    of: Annotated[int | None, typer.Option("--of", min=1, help="Questions asked, the unanswered ones too.")] = None,
    answered: Annotated[
        int | None, typer.Option("--answered", min=0, help="Questions answered, of those asked.")
    ] = None,
    alpha: Annotated[Any, option("--alpha", "A", "Which operating point.  [default: all]", parser=level)] = None,
    guarantee: GuaranteeName = None,
    labels: LabelFlags = LabelFlags(),
    task: Task = None,
    stop: StopRule = None,
    wave: Wave = None,
    drop_seen: DropSeen = False,
    run_name: RunName = None,
    partial: Partial = False,
    json: Json = False,
) -> None:
    if cascade is not None:
        refuse_beside_cascade(policy=policy, alpha=alpha, guarantee=guarantee, errors=errors, of=of, answered=answered)
        refuse_beside_cascade(stop=stop, wave=wave)
        loaded_cascade = load_cascade(cascade, key_file)
        how: dict[str, Any] = {"partial": partial, "task": task, "drop_seen": drop_seen}
        cascade_use.audit(loaded_cascade, files, run_name, labels.rule(), **how, json=json)
        return
    file = one_of(files, "policy")
    if (errors is None) != (of is None):
        raise InvalidValue("--errors and --of go together: so many wrong answers, of so many questions")
    if answered is not None and (of is None or answered > of):
        told = "" if of is None else f", got {answered} of {of}"
        raise InvalidValue(
            f"--answered goes with --errors and --of: so many of the questions asked were answered{told}"
        )
    if errors is not None and of is not None:
        if policy is not None or labels != LabelFlags() or run_name is not None or stop is not None or drop_seen:
            raise InvalidValue("with --errors and --of, name the policy alone: demur audit POLICY --errors 13 --of 500")
        facts = _check(load_policy(file, key_file), errors, of, answered, alpha, guarantee)
    elif policy is None:
        raise InvalidValue("name the policy with --policy, or give --errors and --of")
    else:
        loaded = load_policy(policy, key_file)
        how = {"partial": partial, "task": task, "stop": stopping_flags(stop, wave)}
        voted = vote_by_policy(file, run_name, loaded, labelled=True, correct=labels.rule(), **how)
        audit = demur.audit_policy(loaded, voted, alpha=alpha, guarantee=guarantee, drop_seen=drop_seen)
        facts = _audit(loaded, audit)
    if json:
        output.emit(facts)
    elif errors is not None:
        _show_check(facts)
    else:
        _show_audit(facts, audit)


def _check(
    policy: demur.Policy, errors: int, of: int, answered: int | None, alpha: Any, guarantee: str | None
) -> dict[str, Any]:
    """Two bare numbers against every operating point, or against the one that is named."""
    from demur.evaluation.audit import Consistency

    if len(policy.sizes) > 1 and not policy.strata.by_chance:
        raise InvalidValue(
            "this policy has a threshold for each number of paths, so two numbers do not tell whether it holds; audit "
            "the pools themselves: demur audit POOLS --policy POLICY"
        )
    rules = policy.points if alpha is None and guarantee is None else (policy.point(alpha, guarantee),)
    if any(rule.needs_groups for rule in rules):
        raise InvalidValue(
            "this policy has a threshold for each group, so two numbers do not tell whether it holds; audit the pools "
            "themselves: demur audit POOLS --policy POLICY"
        )
    points = []
    for rule in rules:
        if rule.among_answers and answered is None:
            raise InvalidValue(
                f"the {rule.guarantee.name} guarantee is about the answers given: say with --answered how many of the "
                f"{of} questions were answered, or name another guarantee with --guarantee"
            )
        ahead = demur.audit_outlook(
            policy, of, alpha=rule.guarantee.level, guarantee=rule.guarantee.name, answered=answered
        )
        found = Consistency.of(rule, errors, of, answered=answered, points=len(rules)).document()
        points.append({**found, "outlook": ahead.document()})
    return {"n": of, "unit": policy.unit, "points": points}


def _show_check(facts: dict[str, Any]) -> None:
    for point in facts["points"]:
        output.say(point["verdict"])
        if point["feasible"]:
            output.say(f"  {point['outlook']['sentence']}")


def _audit(policy: demur.Policy, audit: demur.PolicyAudit) -> dict[str, Any]:
    return {
        **{name: getattr(audit, name) for name in ("problems", "left_out", "duplicates", "n", "unit", "questions")},
        **output.frontier_facts(audit.frontier),
        "frontier": output.frontier_points(audit.frontier),
        "labels": policy.labels.describe(),
        "points": [point.document() for point in audit],
        **({"size_shift": audit.size_shift} if audit.size_shift else {}),
    }


def _show_audit(facts: dict[str, Any], audit: demur.PolicyAudit) -> None:
    left_out, again, points = facts["left_out"], facts["duplicates"], facts["points"]
    output.say(
        f"{facts['n']} {facts['unit']}s the policy has not seen"
        + (f" ({left_out} calibrated it and are left out)" if left_out else "")
        + (f" ({again} more share a cluster or question with one of them and are not counted)" if again else "")
    )

    def rate(name: str) -> Callable[[dict[str, Any]], str]:
        return lambda point: output.percent(point[name])

    columns: output.Columns = {
        "alpha": lambda point: f"{point['alpha']:g}",
        "answered wrongly": rate("confident_error"),
        "expected": rate("expected_confident_error"),
        "usual, at most (95 %)": rate("usual_at_most"),
        "answered": rate("answered"),
        "of those right": rate("selective_accuracy"),
        "right, withheld": rate("false_abstention"),
        "p-value": lambda point: output.number(point["p_value"]),
    }
    if len({point["alpha"] for point in points}) < len(points):
        columns = {"guarantee": lambda point: point["guarantee"].replace("_", " "), **columns}
    if facts["unit"] == "cluster":
        columns = {**columns, f"of all {facts['questions']} questions wrongly": rate("confident_error_per_question")}
    output.say(*(point.outlook.sentence for point in audit if point.rule.feasible))
    output.table_of("Audit", points, columns)
    for point in points:
        if "groups" in point:
            _show_groups(point)
    for drawn in audit.points[:_DRAWN]:
        plot_outlook(drawn.outlook, drawn.errors)
    plot_frontier(facts["frontier"], [(p["alpha"], p["answered"], p["selective_accuracy"]) for p in points])
    output.say(*(point["verdict"] for point in points))
    _show_sets(points)
    for point in points:
        if point["of_rare_size"] and point["feasible"]:
            rare = f"{point['of_rare_size']} pools have a number of paths that too few calibration pools have"
            output.warn([f"{rare} for alpha = {point['alpha']:g}: not answered"])
    if audit.size_shift:
        output.warn([audit.size_shift])
    if unlike := points[0].get("outliers"):
        output.warn(
            [f"{unlike} questions are unlike the calibration questions, or have no text to tell by: not answered"]
        )


def _show_sets(points: list[dict[str, Any]]) -> None:
    """What became of answer sets, where there are some."""
    rows = [{"at": point["alpha"], **point["answer_sets"]} for point in points if "answer_sets" in point]
    if not rows:
        return
    columns: output.Columns = {
        "alpha": lambda row: f"{row['at']:g}",
        "abstained, with a set": lambda row: str(row["n"]),
        "hold what is right": lambda row: output.percent(row["coverage"]),
        "miss": lambda row: str(row["missed"]),
        "usual, at most (95 %)": lambda row: str(row["usual_at_most"]),
        "answers per set": lambda row: output.number(row["mean_size"]),
        "with OTHER": lambda row: str(row["with_other"]),
        "p-value": lambda row: output.number(row["p_value"]),
    }
    output.table_of(f"Answer sets at alpha {rows[0]['alpha']:g}", rows, columns)
    output.say(*(row["verdict"] for row in rows))


def _show_groups(point: dict[str, Any]) -> None:
    """Each group against its own promise."""
    columns: output.Columns = {
        "group": lambda row: output.visible(row["group"], 60),
        "questions": lambda row: str(row["n"]),
        "answered": lambda row: output.percent(row["answered"]),
        "wrong": lambda row: str(row["errors"]),
        "answered wrongly": lambda row: output.percent(row["confident_error"]),
        "usual, at most (95 %)": lambda row: output.percent(row["usual_at_most"]),
        "p-value": lambda row: output.number(row["p_value"]),
        "verdict": lambda row: row["verdict"],
    }
    output.table_of(f"By group, alpha {point['alpha']:g}", point["groups"], columns)
