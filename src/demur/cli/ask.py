"""`demur ask`: one question through a policy."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import demur
from demur.cli import output
from demur.cli.decide import decision_line
from demur.cli.options import (
    Config,
    GuaranteeName,
    Json,
    KeyFile,
    OneAlpha,
    PolicyFile,
    Seed,
    Text,
    load_policy,
    mention,
    option,
)
from demur.cli.sampling_options import (
    AnswerSeconds,
    BackendName,
    BackendSet,
    BaseUrl,
    Concurrency,
    Model,
    Patience,
    ScorerSet,
    TrustAddress,
    backend_flags,
    scorer_flags,
)
from demur.errors import InvalidValue

NAME = "ask"
HELP = """Ask one question: sample paths, vote as the policy was calibrated, and answer or abstain.

Everything but the addresses of models comes from the policy: a judge or reward model is found by JUDGE_BASE_URL,
REWARD_BASE_URL, [score.judge] in demur.toml, or --set. Exit code 0: answered; 3: abstained.

Examples:

`demur ask "What is 12 + 7?" --policy policy.json`

`demur ask "A pen costs 3 dollars. What do 8 cost?" --policy policy.json --base-url http://localhost:8000/v1 --json`
"""
ABSTAINED = 3


def run(
    question: Annotated[str, typer.Argument(metavar="QUESTION", show_default=False)],
    policy: PolicyFile,
    key_file: KeyFile = None,
    alpha: OneAlpha = None,
    guarantee: GuaranteeName = None,
    options: Annotated[list[str] | None, typer.Option("--option", help="An option to choose from; repeatable.")] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", help="A group of the question, where the promise is per group.")
    ] = None,
    passage: Annotated[list[str] | None, typer.Option("--passage", help="A passage to read; repeatable.")] = None,
    model: Model = None,
    base_url: BaseUrl = None,
    backend: BackendName = None,
    backend_set: BackendSet = None,
    trust_address: TrustAddress = None,
    seed: Seed = None,
    concurrency: Concurrency = None,
    patience: Patience = None,
    answer_seconds: AnswerSeconds = None,
    settings: ScorerSet = None,
    score: Annotated[
        Text, option("--score", "FUNCTION", "The policy's score, where it is a function or a plugin's.")
    ] = None,
    task: Annotated[Text, option("--task", "NAME", "The policy's task, where it is a plugin's.")] = None,
    extract: Annotated[Text, option("--extract", "FUNCTION", "The policy's reading, where it is a function.")] = None,
    config: Config = None,
    json: Json = False,
) -> None:
    from demur.backends import weights
    from demur.pipeline.config import read_config
    from demur.scoring.settings import base_name

    if task is not None:
        demur.tasks.chosen(task)
    loaded = load_policy(policy, key_file)
    sampling = loaded.upstream.sampling
    given: dict[str, Any] = {"base_url": base_url, "model": model, "concurrency": concurrency, "patience": patience}
    given |= backend_flags(backend, backend_set)
    chosen = read_config(config, trust_address or ()).override(**given, answer_seconds=answer_seconds)
    if chosen.model is None and backend is None and isinstance(sampling.get("model"), str):
        chosen = chosen.override(model=sampling["model"])
        if sampling.get("backend") == "openai" and chosen.embedded:
            raise InvalidValue(
                "this policy was calibrated on a model of an endpoint", "give {base_url}, or set OPENAI_BASE_URL"
            )
        weights.refuse_unnamed(sampling["model"], "this policy", "model", loaded_here=chosen.embedded)
    longest = sampling.get("max_tokens")
    chosen = chosen.override(paths=loaded.n_paths, max_tokens=longest if isinstance(longest, int) else None)
    name, flags = loaded.score, scorer_flags(settings)
    unused = set(flags) - {name, base_name(str(name)), "perplexity"}
    if unused:
        raise InvalidValue(f"--set {sorted(unused)[0]}.… names no score of this policy; its score is {name}")
    scorers = {} if name is None else {name: chosen.scorer_settings(name, flags)}
    pipeline = demur.pipeline_of_policy(
        loaded, chosen.backend(mention), seed=seed or 0, scorers=scorers, score=score, extract=extract, say=mention
    )
    extra = {"task": loaded.upstream.answers.get("task"), "options": options or [], "passages": passage or []}
    extra |= {loaded.upstream.answers.get("group_field", "group"): group or []}
    if loaded.point(alpha, guarantee).needs_groups and not group:
        raise InvalidValue("this promise is for groups of questions: say with --group of which this one is")
    known = {name: value for name, value in extra.items() if value}
    problem = demur.Problem("question", question, group=tuple(known.pop("group", ())) or None, extra=known)
    asked = pipeline.ask(problem, loaded, alpha=alpha, guarantee=guarantee)
    line = decision_line(asked.decision)
    if json:
        output.emit({**line, "question": question, "paths": [_path(path) for path in asked.pool.paths]})
    else:
        show(line)
    if asked.decision.abstained:
        raise typer.Exit(ABSTAINED)


def show(line: dict[str, Any]) -> None:
    """A decision in words."""
    abstained = line["answer"] is None
    output.say("I would rather not answer." if abstained else output.visible(line["answer"], 200))
    beyond = "not above" if abstained else "above"
    reason = f"confidence {line['confidence']:.3f} is {beyond} the threshold {line['threshold']:.3f}"
    if line["threshold"] == 0 and not abstained:
        reason = f"confidence {line['confidence']:.3f}, and the policy always answers"
    all_paths = line["n_paths"]
    votes = [
        f"{output.visible(answer, 30)} by {paths} of {all_paths} paths ({output.percent(line['shares'][answer])})"
        for answer, paths in list(line["support"].items())[:5]
    ]
    if votes and line["without_answer"]:
        votes.append(f"no answer by {line['without_answer']}")
    output.say(f"  {reason} (alpha {line['alpha']:g}, p-value {line['p_value']:.3f})")
    if line["threshold"] >= 1:
        output.say(f"  {line['explanation']}")
    output.say(f"  {', '.join(votes) or f'none of {all_paths} paths gave an answer'}")


def _path(path: Any) -> dict[str, Any]:
    return {"answer": path.answer, "text": path.text, "scores": dict(path.scores), **path.extra}
