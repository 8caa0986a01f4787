"""`demur ask`: one question through a policy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from demur.cli import output
from demur.cli.decide import decision_line
from demur.cli.options import Config, Json
from demur.cli.sampling_options import BaseUrl, Concurrency, Model, Patience, ScorerSet, say, scorer_flags

NAME = "ask"
HELP = """Ask one question: sample paths, vote as the policy was calibrated, and answer or abstain.

Everything but the addresses of models comes from the policy: a judge or reward model is found by JUDGE_BASE_URL,
REWARD_BASE_URL, [score.judge] in demur.toml, or --set. Exit code 0: answered; 3: abstained.

Examples:

`demur ask "What is 12 + 7?" --policy policy.json`

`demur ask "What is 17 * 24?" --policy policy.json --base-url http://localhost:8000/v1 --json`
"""
ABSTAINED = 3


def run(
    question: Annotated[str, typer.Argument(metavar="QUESTION", show_default=False)],
    policy: Annotated[Path, typer.Option("--policy", metavar="POLICY", help="A policy calibrated on a sampled run.")],
    alpha: Annotated[
        float | None, typer.Option(metavar="A", help="Which operating point.  [default: the smallest alpha]")
    ] = None,
    option: Annotated[list[str] | None, typer.Option("--option", help="An option to choose from; repeatable.")] = None,
    passage: Annotated[list[str] | None, typer.Option("--passage", help="A passage to read; repeatable.")] = None,
    model: Model = None,
    base_url: BaseUrl = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the paths.  [default: 0]")] = None,
    concurrency: Concurrency = None,
    patience: Patience = None,
    settings: ScorerSet = None,
    score: Annotated[
        str | None, typer.Option("--score", metavar="FUNCTION", help="The policy's score, where it is a function.")
    ] = None,
    extract: Annotated[
        str | None, typer.Option("--extract", metavar="FUNCTION", help="The policy's reading, where it is a function.")
    ] = None,
    config: Config = None,
    json: Json = False,
) -> None:
    from demur.description import read_description
    from demur.errors import InvalidValue
    from demur.pipeline import of_policy
    from demur.policy import Policy
    from demur.records import Problem
    from demur.scoring.families import base_name

    loaded = Policy.load(policy)
    held = loaded.pipeline
    described = read_description(config).override(
        base_url=base_url, model=model, concurrency=concurrency, patience=patience
    )
    if described.model is None and isinstance(held.get("model"), str):
        described = described.override(model=held["model"])
    described = described.override(paths=loaded.n_paths[1], max_tokens=held.get("max_tokens"))
    name, flags = held.get("score"), scorer_flags(settings)
    unused = set(flags) - {name, base_name(str(name)), "perplexity"}
    if unused:
        raise InvalidValue(f"--set {sorted(unused)[0]}.… names no score of this policy; its score is {name}")
    scorers = {} if name is None else {name: described.scorer_settings(name, flags)}
    pipeline = of_policy(
        loaded, described.backend(say), seed=seed or 0, scorers=scorers, score=score, extract=extract, say=say
    )
    extra = {"task": held.get("task"), "options": option or [], "passages": passage or []}
    problem = Problem("question", question, extra={name: value for name, value in extra.items() if value})
    asked = pipeline.ask(problem, loaded, alpha=alpha)
    line = decision_line(asked.decision, asked.written)
    if json:
        output.emit({**line, "question": question, "paths": [_path(path) for path in asked.pool.paths]})
    else:
        show(line)
    if asked.decision.abstained:
        raise typer.Exit(ABSTAINED)


def show(line: dict[str, Any]) -> None:
    """A decision in words."""
    if line["answer"] is None:
        output.say("I would rather not answer.")
        reason = f"confidence {line['confidence']:.3f} is not above the threshold {line['threshold']:.3f}"
    else:
        output.say(output.visible(line["answer"], 200))
        reason = f"confidence {line['confidence']:.3f} is above the threshold {line['threshold']:.3f}"
    all_paths = sum(line["support"].values())
    votes = ", ".join(
        f"{output.visible(answer, 30)} by {paths} of {all_paths} paths ({output.percent(line['shares'][answer])})"
        for answer, paths in list(line["support"].items())[:5]
    )
    output.say(f"  {reason} (alpha {line['alpha']:g}, p-value {line['p_value']:.3f})")
    if line["threshold"] >= 1:
        output.say(f"  {line['explanation']}")
    output.say(f"  {votes or 'no path gave an answer'}")


def _path(path: Any) -> dict[str, Any]:
    return {"answer": path.answer, "text": path.text, "scores": dict(path.scores), **path.extra}
