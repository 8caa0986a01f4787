"""`demur audit`: a policy on problems it has not seen, or its promise against two bare numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import demur
from demur.cli import output
from demur.cli.options import Correct, Json, KeyFile, OneAlpha, RunName, argument, load_policy, option, vote_by_policy
from demur.cli.plot import plot_frontier
from demur.errors import InvalidValue

NAME = "audit"
HELP = """Check a policy's promise: on labelled problems it has not seen, or against errors that were counted elsewhere.

Problems that calibrated the policy are refused, unless some were kept back with `calibrate --hold-out`; then those are
audited. With `--errors` and `--of` no pools are needed: the number of questions answered wrongly, of how many asked.

Examples:

`demur audit new.jsonl --policy policy.json`

`demur audit policy.json --errors 13 --of 500 --alpha 0.05`
"""


def run(
    file: Annotated[str, argument("POOLS|POLICY", "Labelled pools; with --errors, the policy.")],
    policy: Annotated[Path | None, option("--policy", "POLICY", "A file that `calibrate` wrote.")] = None,
    key_file: KeyFile = None,
    errors: Annotated[int | None, typer.Option("--errors", min=0, help="Questions answered wrongly.")] = None,
    of: Annotated[int | None, typer.Option("--of", min=1, help="Questions asked, the unanswered ones too.")] = None,
    alpha: OneAlpha = None,
    correct: Correct = None,
    run_name: RunName = None,
    json: Json = False,
) -> None:
    if (errors is None) != (of is None):
        raise InvalidValue("--errors and --of go together: so many wrong answers, of so many questions")
    if errors is not None and of is not None:
        if policy is not None or correct is not None or run_name is not None:
            raise InvalidValue("with --errors and --of, name the policy alone: demur audit POLICY --errors 13 --of 500")
        _check(load_policy(file, key_file), errors, of, alpha, json=json)
        return
    if policy is None:
        raise InvalidValue("name the policy with --policy, or give --errors and --of")
    if alpha is not None:
        raise InvalidValue("--alpha is for --errors and --of: pools are audited at every alpha of the policy")
    _audit(file, run_name, load_policy(policy, key_file), correct, json=json)


def _check(policy: demur.Policy, errors: int, of: int, alpha: float | None, *, json: bool) -> None:
    """Two bare numbers against every operating point, or against the one that is named."""
    from demur.evaluation.audit import Consistency

    rules = policy.points if alpha is None else (policy.point(alpha),)
    checks = [Consistency.of(rule, errors, of, points=len(rules)) for rule in rules]
    if json:
        output.emit({"n": of, "points": [check.document() for check in checks]})
        return
    for check in checks:
        output.say(check.verdict)
        if check.rule.feasible:
            usual = output.percent(check.interval[1])
            output.say(f"  {usual} or fewer wrong would not be unusual with {of} questions.")


def _audit(file: str, run_name: str | None, policy: demur.Policy, correct: str | None, *, json: bool) -> None:
    audit = demur.audit_policy(policy, vote_by_policy(file, run_name, policy, labelled=True, correct=correct))
    curve = audit.frontier
    if json:
        counts = {name: getattr(audit, name) for name in ("problems", "left_out", "duplicates", "n")}
        output.emit({**counts, "auroc": curve.auroc, "points": [point.document() for point in audit]})
        return
    left_out, again = audit.left_out, audit.duplicates
    output.say(
        f"{audit.n} questions the policy has not seen"
        + (f" ({left_out} calibrated it and are left out)" if left_out else "")
        + (f" ({again} more share a cluster or question with one of them and are not counted)" if again else "")
    )

    def expected(point: demur.Audit) -> str:
        forecast = policy.forecast(point.rule.alpha, point.rule.guarantee.name)
        return output.percent(forecast.expected_confident_error)

    columns: output.Columns = {
        "alpha": lambda point: f"{point.rule.alpha:g}",
        "answered wrongly": lambda point: output.percent(point.confident_error),
        "expected": expected,
        "usual, at most (95 %)": lambda point: output.percent(point.interval[1]),
        "answered": lambda point: output.percent(point.answered),
        "of those right": lambda point: output.percent(point.selective_accuracy),
        "right, withheld": lambda point: output.percent(point.false_abstention),
        "p-value": lambda point: output.number(point.p_value),
    }
    output.table_of("Audit", audit, columns)
    shown = {"answered": curve.answered.tolist(), "selective_accuracy": curve.selective_accuracy.tolist()}
    plot_frontier(shown, [(point.rule.alpha, point.answered, point.selective_accuracy) for point in audit])
    output.say(*(point.verdict for point in audit))
