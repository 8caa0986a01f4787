"""`demur decide`: a policy on pools, labelled or not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from demur.cli import output
from demur.cli.options import Json, Pools, RunName, open_by_policy, refuse_overwriting

NAME = "decide"
HELP = """Answer or abstain on every problem of a file, by a policy.

Reads answers and scores as the policy was calibrated; gold, if the file has any, is not looked at.

Example: `demur decide new.jsonl --policy policy.json -o decisions.jsonl`
"""

_SHOWN = 20


def run(
    file: Pools,
    policy: Annotated[Path, typer.Option("--policy", metavar="POLICY", help="A file that `calibrate` wrote.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write one decision per line (.jsonl or .gz).")
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(metavar="A", help="Which operating point.  [default: the smallest alpha]")
    ] = None,
    run_name: RunName = None,
    json: Json = False,
) -> None:
    from demur.files import write_lines
    from demur.policy import Policy

    refuse_overwriting(out, file, policy)
    loaded = Policy.load(policy)
    voted = open_by_policy(file, run_name, loaded, labelled=False)
    decided = loaded.decide_votes(voted.votes, alpha=alpha)
    lines = [decision_line(decision, spelling) for decision, spelling in zip(decided, voted.table.written, strict=True)]
    if out is not None:
        write_lines(lines, out)
    point = decided.point
    answered = int(decided.answered.sum())
    if json:
        output.emit({
            "alpha": point.alpha, "threshold": point.threshold, "guarantee": point.guarantee.name,
            "promise": point.guarantee.promise(point.n), "problems": len(lines), "answered": answered,
            "decisions": lines,
        })  # fmt: skip
        return
    second = point.threshold_key[1] if len(point.threshold_key) > 1 else None
    rows = [
        [
            output.visible(line["id"]),
            output.DASH if line["answer"] is None else output.visible(line["answer"]),
            f"{line['confidence']:.4f}",
            *([] if second is None else [output.number(line["secondary"])]),
            f"{line['p_value']:.4f}",
            ", ".join(f"{output.visible(key, 20)} ×{paths}" for key, paths in list(line["support"].items())[:4]),
        ]
        for line in lines[:_SHOWN]
    ]
    output.table(
        f"Decisions at alpha {point.alpha:g}, answering above {point.threshold:.4f}"
        + ("" if second is None else f" or, at that confidence, above {second:.4g} in the secondary key"),
        ["problem", "answer", "confidence", *([] if second is None else ["secondary"]), "p-value", "paths per answer"],
        rows,
    )
    if len(lines) > _SHOWN:
        output.say(f"… and {len(lines) - _SHOWN} more" + ("" if out is not None else "; -o FILE writes them all"))
    output.say(f"Answered {answered} of {len(lines)} ({output.percent(answered / len(lines))}), abstained on the rest.")
    output.say(point.guarantee.promise(point.n))
    if out is not None:
        output.say(f"Wrote {out}.")


def decision_line(decision: Any, spelling: dict[str, str]) -> dict[str, Any]:
    """A decision with answers as they are written, and the key of the one given."""
    return {
        "id": decision.id,
        "decision": "abstain" if decision.abstained else "answer",
        "answer": None if decision.abstained else spelling[decision.answer],
        "key": decision.answer,
        "confidence": decision.confidence,
        "threshold": decision.threshold,
        "threshold_key": list(decision.threshold_key),
        "p_value": decision.p_value,
        "alpha": decision.alpha,
        "support": {spelling[key]: paths for key, paths in decision.support.items()},
        "shares": {spelling[key]: share for key, share in decision.shares.items()},
        **({} if decision.secondary is None else {"secondary": decision.secondary}),
        "explanation": decision.explanation,
    }
