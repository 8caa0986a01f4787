"""`demur cascade`: from labelled pools of several stages to one cascade."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import demur
from demur.cli import options, output, policy_files, promise_flags, replacing, vote_flags
from demur.cli.plot import plot_costs
from demur.errors import InvalidValue

NAME = "cascade"
HELP = """Calibrate a cascade: a cheap stage answers what it is sure of, a stronger one the rest, a person what is left.

One promise holds for all stages together. Give the pools of each stage in order, on the same problems, with labels;
what is said of votes holds for every stage, and `--stage strong.score=judge` for one of them (score, normaliser,
weight, tie_break). The allowed errors are shared equally unless `--stage-share` says otherwise: a smaller share of the
cheap stage answers more and costs more. Settle it before you look at the curve, or on other problems.

Examples:

`demur cascade cheap.jsonl strong.jsonl --alpha 0.1 --cost 1 --cost 10 -o cascade.json`

`demur cascade cheap.jsonl strong.jsonl --alpha 0.1 --stage-share 1 --stage-share 3 --hold-out 0.5 -o cascade.json`

`demur decide cheap.jsonl strong.jsonl --cascade cascade.json`
"""
_SETTINGS = ("score", "normaliser", "weight", "tie_break")
_NAMES = "A stage's name, in order; repeatable.  [default: cheap and strong, or stage1, stage2, …]"
_COSTS = "What a question costs at a stage, in order; repeatable.  [default: the number of paths]"
_SHARES = "A stage's part of the allowed errors, in proportion, in order; repeatable.  [default: equal parts]"


def run(
    files: Annotated[list[str], options.argument("POOLS", "Pools of each stage in order: files, or runs.")],
    out: Annotated[Path | None, options.option("--out", "CASCADE", "Where to write the cascade.", "-o")] = None,
    key_file: options.KeyFile = None,
    alpha: Annotated[Any, options.option("--alpha", "A", "Allowed share of confident errors, of all stages together.  "
                                         "[default: 0.05]", parser=options.level)] = None,
    delta: options.Delta = None,
    smoothed: options.Smoothed = False,
    name: Annotated[list[str] | None, options.option("--name", "NAME", _NAMES)] = None,
    cost: Annotated[list[float] | None, options.option("--cost", "COST", _COSTS)] = None,
    share: Annotated[list[Any] | None, options.option("--stage-share", "PART", _SHARES, parser=options.level)] = None,
    person_cost: Annotated[
        float | None, options.option("--person-cost", "COST", "What a question costs that no stage answers.")
    ] = None,
    stage: options.StageSet = None,
    flags: vote_flags.VoteFlags = vote_flags.VoteFlags(),
    labels: vote_flags.LabelFlags = vote_flags.LabelFlags(),
    run_name: options.RunName = None,
    partial: options.Partial = False,
    config: options.Config = None,
    sizes_by_chance: options.SizesByChance = False,
    hold_out: options.HoldOut = 0.0,
    strict: options.Strict = False,
    seed: options.Seed = None,
    json: options.Json = False,
) -> None:  # fmt: skip
    replacing.refuse_overwriting(out, *files, key_file, by=replacing.CASCADE)
    if key_file is not None and out is None:
        raise InvalidValue("--key-file signs the cascade that -o writes; name it")
    key = None if key_file is None else demur.read_key(key_file)
    names = _names(files, name)
    for flag, given in (("--cost", cost), ("--stage-share", share)):
        if given and len(given) != len(names):
            raise InvalidValue(f"{flag} is given once per stage, {len(names)} times, got {len(given)}")
    guarantee = promise_flags.guarantees_of(None if alpha is None else [alpha], delta, smoothed, seed)[0]
    rule, settings = labels.rule(), policy_files.stage_settings(stage, names, _SETTINGS)
    stages = []
    for at, (place, called) in enumerate(zip(files, names, strict=True)):
        own: dict[str, Any] = {**settings.get(called, {})}
        _, voted = replace(flags, **own).vote(place, run_name, config, rule, partial=partial, stage=called)
        stages.append(demur.Stage(called, voted, cost=cost[at] if cost else None))
    cascade = demur.calibrate_cascade(
        stages,
        guarantee=guarantee,  # type: ignore[arg-type]
        shares=share,
        person_cost=person_cost,
        sizes_by_chance=sizes_by_chance,
        hold_out=hold_out,
        seed=seed or 0,
        strict=strict,
    )
    if out is not None:
        cascade.save(out, key=key)
    facts = cascade_facts(cascade) | {"cascade": None if out is None else str(out)}
    if json:
        output.emit(facts)
    else:
        _show(facts)


def _names(files: list[str], given: list[str] | None) -> list[str]:
    if given and len(given) != len(files):
        raise InvalidValue(f"--name is given once per stage, {len(files)} times, got {len(given)}")
    usual = ["cheap", "strong"] if len(files) == 2 else [f"stage{at}" for at in range(1, len(files) + 1)]
    return given or usual


def cascade_facts(cascade: demur.Cascade) -> dict[str, Any]:
    """What a cascade is, and what to expect of it."""
    forecast = asdict(cascade.forecast())
    expected = {one.pop("name"): one for one in forecast.pop("stages")}
    stages = [
        {
            "name": stage.name,
            "cost": stage.cost,
            "errors_allowed": stage.rank,
            "told": stage.rule.told,
            "threshold": stage.rule.threshold,
            "threshold_key": list(stage.rule.threshold_key),
            "score": stage.policy.score,
            "fingerprint": stage.policy.fingerprint,
            "forecast": expected[stage.name],
        }
        for stage in cascade.stages
    ]
    return {
        "n": cascade.n,
        "unit": cascade.unit,
        "alpha": cascade.guarantee.alpha,
        "guarantee": cascade.guarantee.name,
        "feasible": cascade.feasible,
        "promise": cascade.promise,
        "shares": [float(share) for share in cascade.shares],
        "person_cost": cascade.person_cost,
        "stages": stages,
        "forecast": forecast,
        "curve": [asdict(point) for point in cascade.curve()],
        "notes_on_stages": cascade.notes() if cascade.feasible else [cascade.rule.too_few],
    }


def _show(facts: dict[str, Any]) -> None:
    output.say(f"{facts['n']} calibration {facts['unit']}s, {len(facts['stages'])} stages")
    columns: output.Columns = {
        "stage": lambda stage: output.visible(stage["name"], 40),
        "answers above": lambda stage: f"{stage['threshold']:.4f}" if "above" in stage["told"] else stage["told"],
        "errors allowed": lambda stage: str(stage["errors_allowed"]),
        "get there": lambda stage: output.percent(stage["forecast"]["reached"]),
        "answered": lambda stage: output.percent(stage["forecast"]["answered"]),
        "answered wrongly": lambda stage: output.percent(stage["forecast"]["confident_error"]),
        "cost each": lambda stage: f"{stage['cost']:g}",
        "cost per question": lambda stage: f"{stage['forecast']['cost']:.4g}",
    }
    output.table_of("What to expect", facts["stages"], columns)
    expected = facts["forecast"]
    person = " (a person's part included)" if facts["person_cost"] is not None else ""
    output.say(
        f"All stages: {output.percent(expected['answered'])} answered, {output.percent(expected['person'])} left to a "
        f"person, cost per question {expected['cost']:.4g}{person}; wrong answers expected of new questions: at most "
        f"{output.percent(expected['error_at_most'])}."
    )
    alone = facts["curve"][0]
    output.say(
        f"Without the first stage {output.percent(alone['answered'])} would be answered, at a cost of "
        f"{alone['cost']:.4g} per question."
    )
    plot_costs(facts["curve"], expected)
    output.say(
        "Every point of the curve is the share of errors that the first stage might have had. To choose among them, "
        "calibrate on other problems: a share that was chosen by these labels would break the promise."
    )
    output.warn(facts["notes_on_stages"])
    output.say(facts["promise"])
    output.say(
        "The promise is about all questions together: it is not that any one answer is right, nor that a share "
        "1 − alpha of the answers given are."
    )
    output.wrote(facts["cascade"])
