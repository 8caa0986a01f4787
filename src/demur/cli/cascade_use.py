"""What `decide` and `audit` do with a cascade."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import demur
from demur.cli import decision_files, output, replacing, vote_flags
from demur.errors import InvalidValue

_SHOWN = 20


def vote_stages(
    cascade: demur.Cascade,
    places: Sequence[str],
    run: str | None,
    *,
    labelled: bool,
    partial: bool,
    task: str | None,
    correct: demur.LabelRule | None = None,
) -> list[demur.VotedPools]:
    """The votes of each stage that pools were given for, made as that stage was calibrated."""
    if len(places) > len(cascade.stages):
        names = ", ".join(stage.name for stage in cascade.stages)
        raise InvalidValue(f"this cascade has {len(cascade.stages)} stages ({names}), got {len(places)} files of pools")
    how: dict[str, Any] = {"labelled": labelled, "partial": partial, "correct": correct, "task": task}
    return [
        vote_flags.vote_by_policy(place, run, stage.policy, **how, stage=stage.name)
        for place, stage in zip(places, cascade.stages, strict=False)
    ]


def decide(
    cascade: demur.Cascade,
    places: Sequence[str],
    run: str | None,
    out: str | None,
    needed: Path | None,
    *,
    task: str | None,
    json: bool,
) -> None:
    """Decide by a cascade on every problem of the first stage's pools."""
    from demur.pools.jsonl import write_lines

    replacing.refuse_overwriting(needed, *places, by=replacing.QUESTIONS)
    if needed is not None and out is not None and needed.resolve() == Path(out).resolve():
        raise InvalidValue(f"--needed and -o both name {needed}; choose another name for one of them")
    tables = vote_stages(cascade, places, run, labelled=False, partial=True, task=task)
    decided = cascade.decide_votes(tables)
    lines = [decision.document() for decision in decided]
    if out is not None:
        decision_files.write_decisions(lines, out, list(dict.fromkeys(name for line in lines for name in line)))
    lacking = {stage.name: decided.needing(stage.name) for stage in cascade.stages}
    wanted = {name for names in lacking.values() for name in names}
    if needed is not None:
        write_lines(_questions(places[0], run, wanted), needed)
    by_stage = {stage.name: int((decided.answered_by == at).sum()) for at, stage in enumerate(cascade.stages)}
    cost = float(decided.cost.mean()) if len(decided) else 0.0
    counts = {
        "problems": len(lines),
        "n_answered": int(decided.answered.sum()),
        "by_stage": by_stage,
        "person": sum(line["decision"] == "person" for line in lines),
        "needs": {name: len(names) for name, names in lacking.items() if names},
        "cost": cost,
    }
    if json:
        known = {"alpha": cascade.guarantee.alpha, "guarantee": cascade.guarantee.name, "promise": cascade.promise}
        output.emit({**known, **counts, "decision_notes": decided.notes(), "decisions": lines})
        return
    columns: output.Columns = {
        "problem": lambda line: output.visible(line["id"], 80),
        "answer": lambda line: output.DASH if line["answer"] is None else output.visible(line["answer"]),
        "by": lambda line: output.visible(line["stage"] or _open(line), 60),
        "confidence": lambda line: " → ".join(f"{one['confidence']:.4f}" for one in line["stages"]),
        "cost": lambda line: f"{line['cost']:g}",
    }
    output.table_of(f"Decisions at alpha {cascade.guarantee.alpha:g}", lines[:_SHOWN], columns)
    if len(lines) > _SHOWN:
        output.say(f"… and {len(lines) - _SHOWN} more" + ("" if out is not None else "; -o FILE writes them all"))
    told = ", ".join(f"{count} by {output.visible(name, 40)}" for name, count in by_stage.items())
    output.say(
        f"Answered {counts['n_answered']} of {len(lines)} ({told}); {counts['person']} for a person; cost per question "
        f"so far {cost:.4g}."
    )
    for name, ids in lacking.items():
        if ids:
            way = "" if needed is not None else "; --needed FILE writes these questions, to be sampled for it"
            output.say(f"{len(ids)} need the stage {output.visible(name, 40)}{way}.")
    output.say(cascade.promise)
    output.warn(decided.notes())
    output.wrote(out)
    output.wrote(needed)


def _open(line: dict[str, Any]) -> str:
    return "a person" if line["needs"] is None else f"needs {line['needs']}"


def _questions(place: str, run: str | None, wanted: set[str]) -> list[dict[str, Any]]:
    """The problems of these ids, without gold or paths: a file of questions."""
    from demur.records import blinded

    source = demur.read_pools(place, run, facts=True, partial=True)
    problems = (blinded(pool).problem for pool in source.pools if pool.problem.id in wanted)
    return [{"id": problem.id, "question": problem.question, **problem.extra} for problem in problems]


def audit(
    cascade: demur.Cascade,
    places: Sequence[str],
    run: str | None,
    correct: demur.LabelRule,
    *,
    partial: bool,
    task: str | None,
    drop_seen: bool,
    json: bool,
) -> None:
    """Audit a cascade on labelled pools of its stages."""
    tables = vote_stages(cascade, places, run, labelled=True, partial=partial, task=task, correct=correct)
    facts = demur.audit_cascade(cascade, tables, drop_seen=drop_seen).document()
    if json:
        output.emit(facts)
        return
    left_out, again = facts["left_out"], facts["duplicates"]
    output.say(
        f"{facts['n']} {cascade.unit}s the cascade has not seen"
        + (f" ({left_out} calibrated it and are left out)" if left_out else "")
        + (f" ({again} more share a cluster or question with one of them and are not counted)" if again else "")
    )
    columns: output.Columns = {
        "stage": lambda stage: output.visible(stage["name"], 40),
        "get there": lambda stage: output.percent(stage["reached"]),
        "answered": lambda stage: output.percent(stage["answered"]),
        "answered wrongly": lambda stage: output.percent(stage["confident_error"]),
        "cost per question": lambda stage: f"{stage['cost']:.4g}",
    }
    output.table_of("Audit", facts["stages"], columns)
    output.say(
        f"All stages: {output.percent(facts['answered'])} answered ({output.percent(facts['expected_answered'])} "
        f"expected), {output.percent(facts['confident_error'])} wrongly (usual, at most: "
        f"{output.percent(facts['usual_at_most'])}), cost per question {facts['cost']:.4g} "
        f"({facts['expected_cost']:.4g} expected).",
        facts["verdict"],
    )
