"""`demur ask`: one question through a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import demur
from demur.cli import output, pipelines
from demur.cli.decide import decision_line, told_set
from demur.cli.options import (
    CascadeFile,
    Config,
    GuaranteeName,
    Json,
    KeyFile,
    MaybePolicyFile,
    OneAlpha,
    Seed,
    StageSet,
    Text,
    option,
)
from demur.cli.policy_files import load_cascade, load_policy, refuse_beside_cascade, stage_settings
from demur.cli.sampling_options import (
    AnswerSeconds,
    BackendName,
    BackendSet,
    BaseUrl,
    Concurrency,
    FirstWave,
    MixedModels,
    Model,
    Patience,
    ScorerSet,
    TrustAddress,
    Wave,
    backend_flags,
    scorer_flags,
    waves_of,
)
from demur.errors import InvalidValue

if TYPE_CHECKING:
    from demur.pipeline.answerer import Asked
    from demur.pipeline.cascade_answerer import CascadeAsked
    from demur.prompts.conversations import Conversation
    from demur.records import Early

NAME = "ask"
HELP = """Ask one question: sample paths, vote as the policy was calibrated, and answer or abstain.

Everything but the addresses of models comes from the policy: a judge or reward model is found by JUDGE_BASE_URL,
REWARD_BASE_URL, [score.judge] in demur.toml, or --set. With `--cascade` the next stage is sampled only if the one
before does not answer; `--stage strong.base_url=URL` says where the model of one stage is. `--messages FILE` asks the
last message of a conversation, for policies calibrated with `--prompt conversation`: a JSON list of role and content.
With `--wave` paths are asked for a few at a time, and no more once they settle what the whole pool would decide. Exit
code 0: answered; 3: abstained.

Examples:

`demur ask "What is 12 + 7?" --policy policy.json`

`demur ask "A pen costs 3 dollars. What do 8 cost?" --policy policy.json --base-url http://localhost:8000/v1 --json`

`demur ask "What is 12 + 7?" --policy policy.json --first-wave 6 --wave 2`

`demur ask --messages talk.json --policy policy.json`

`demur ask "What is 12 + 7?" --cascade cascade.json --stage strong.base_url=http://localhost:8000/v1`
"""
ABSTAINED = 3
_OF_STAGES = ("base_url", "model")


def run(
    question: Annotated[Text, typer.Argument(metavar="QUESTION", show_default=False)] = None,
    policy: MaybePolicyFile = None,
    cascade: CascadeFile = None,
    stage: StageSet = None,
    key_file: KeyFile = None,
    alpha: OneAlpha = None,
    guarantee: GuaranteeName = None,
    messages: Annotated[
        Path | None, option("--messages", "FILE", "A conversation to answer, in place of QUESTION.")
    ] = None,
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
    mixed_models: MixedModels = None,
    wave: Wave = None,
    first_wave: FirstWave = None,
    settings: ScorerSet = None,
    score: Annotated[
        Text, option("--score", "FUNCTION", "The policy's score, where it is a function or a plugin's.")
    ] = None,
    task: Annotated[Text, option("--task", "NAME", "The policy's task, where it is a plugin's.")] = None,
    extract: Annotated[Text, option("--extract", "FUNCTION", "The policy's reading, where it is a function.")] = None,
    config: Config = None,
    json: Json = False,
) -> None:
    if task is not None:
        demur.tasks.chosen(task)
    given: dict[str, Any] = {"base_url": base_url, "model": model, "concurrency": concurrency, "patience": patience}
    given |= backend_flags(backend, backend_set) | {"answer_seconds": answer_seconds, "mixed_models": mixed_models}
    how: dict[str, Any] = {"config": config, "trust": trust_address or (), "settings": scorer_flags(settings)}
    how |= {"seed": seed or 0, "score": score, "extract": extract}
    beside: dict[str, Any] = {"options": options or [], "passages": passage or []}
    if messages is not None and question is None:
        talk = _conversation(messages)
        question, beside = talk.question, beside | talk.fields
    elif messages is not None or question is None:
        both = "" if question is None else ", not both"
        raise InvalidValue(f"give a question, or a conversation with --messages{both}")
    waves = waves_of(first_wave, wave)
    if cascade is not None:
        refuse_beside_cascade(policy=policy, alpha=alpha, guarantee=guarantee)
        if waves is not None:
            raise InvalidValue("--wave and --first-wave are for one policy: the stages of a cascade are sampled whole")
        loaded_cascade = load_cascade(cascade, key_file)
        for one in loaded_cascade.stages:
            _refuse_other_task(one.policy, task)
        pipelines.refuse_unused(how["settings"], *(one.policy for one in loaded_cascade.stages))
        own = stage_settings(stage, [one.name for one in loaded_cascade.stages], _OF_STAGES)
        asked_by = [
            pipelines.pipeline_of(one.policy, {**given, **own.get(one.name, {})}, **how)
            for one in loaded_cascade.stages
        ]
        with demur.CascadeAnswerer(loaded_cascade, asked_by) as answerer:
            followed = answerer.ask(_problem(question, loaded_cascade.stages[0].policy, beside))
        names = {one.name: one.policy.recipe.names for one in loaded_cascade.stages}
        _tell_cascade(followed, question, names, json=json)
        return
    if policy is None:
        raise InvalidValue("name the policy with --policy, or a cascade with --cascade")
    if stage:
        raise InvalidValue("--stage is for --cascade: a policy has no stages")
    loaded = load_policy(policy, key_file)
    pipelines.refuse_unused(how["settings"], loaded)
    _refuse_other_task(loaded, task)
    if loaded.point(alpha, guarantee).needs_groups and not group:
        raise InvalidValue("this promise is for groups of questions: say with --group of which this one is")
    with pipelines.pipeline_of(loaded, given, **how).answerer(loaded) as answerer:
        if waves is not None and (note := answerer.savings_note(alpha=alpha, guarantee=guarantee)):
            output.warn([f"waves save little here: {note}"])
        asked = answerer.ask(_problem(question, loaded, beside, group), alpha=alpha, guarantee=guarantee, waves=waves)
    line = decision_line(asked.decision, loaded.recipe.names) | ({} if waves is None else _waves_line(asked))
    if json:
        output.emit({**line, "question": question, "paths": [_path(path) for path in asked.pool.paths]})
    elif asked.early is not None:
        show_early(line, asked.early)
    else:
        show(line)
    if asked.decision.abstained:
        raise typer.Exit(ABSTAINED)


def _conversation(file: Path) -> Conversation:
    """The conversation of a file."""
    from demur.files.inputs import text_of
    from demur.files.strict_json import NotJson, parse
    from demur.prompts.conversations import conversation_of

    written = text_of(file, InvalidValue)
    try:
        return conversation_of(parse(written))
    except NotJson as error:
        raise InvalidValue(f"{file}, line {error.line}: not JSON: {error}") from None
    except InvalidValue as error:
        raise InvalidValue(f"{file}: {error.message}", error.remedy) from None


def _problem(
    question: str, policy: demur.Policy, beside: dict[str, Any], group: Sequence[str] | None = None
) -> demur.Problem:
    said = policy.upstream.answers
    extra = {"task": said.get("task"), **beside, said.get("group_field", "group"): group or []}
    known = {name: value for name, value in extra.items() if value}
    return demur.Problem("question", question, group=tuple(known.pop("group", ())) or None, extra=known)


def _refuse_other_task(policy: demur.Policy, given: str | None) -> None:
    """Raise if a task is given that is not the policy's."""
    said, known = policy.upstream.answers.get("task"), demur.tasks.task_named
    if None not in (given, said) and known(given) is not known(said):
        raise InvalidValue(f"the policy's task is {said!r:.60}, not {given!r}", "leave {task} out")


def _tell_cascade(asked: CascadeAsked, question: str, names: Mapping[str, Sequence[str]], *, json: bool) -> None:
    """What a cascade decided, stage by stage; `names` are those of the numbers of each stage's key."""
    from demur.policy.explanations import comparison

    decision = asked.decision
    if json:
        paths = {name: [_path(path) for path in pool.paths] for name, pool in asked.pools.items()}
        output.emit({**decision.document(), "question": question, "paths": paths})
    else:
        output.say("This is for a person." if decision.abstained else output.visible(decision.answer, 200))
        for name, one in decision.decisions.items():
            first, answered = f"confidence {one.key[0]:.3f}", not one.abstained
            why = comparison(first, one.key, one.threshold_key, names[name], answered=answered, form=".3f")
            output.say(f"  {output.visible(name, 40)}: {why}")
        output.say(f"  cost {decision.cost:g} (alpha {decision.alpha:g})")
    if decision.abstained:
        raise typer.Exit(ABSTAINED)


def _waves_line(asked: Asked) -> dict[str, Any]:
    """What was saved, and what is known of the winner's share where fewer paths settled it."""
    early = asked.early
    line: dict[str, Any] = {"certain_early": asked.certain_early, "n_drawn": asked.n_drawn, "of": asked.n_paths}
    return line | ({} if early is None else {"share_at_least": early.least, "share_at_most": early.most})


def show_early(line: dict[str, Any], early: Early) -> None:
    """A decision that fewer paths settled than a whole pool has, in words."""
    from demur.policy.explanations import compared_early

    abstained = early.answer is None
    output.say("I would rather not answer." if abstained else output.visible(line["answer"], 200))
    reason = compared_early(early, list(line["key"].values()), line["threshold_key"], list(line["key"]))
    closed = _is_closed(line)
    if not closed:
        output.say(f"  after {early.n_paths} of {early.of} paths: {reason} (alpha {line['alpha']:g})")
    if closed or line["threshold"] >= 1:
        output.say(f"  {line['explanation']}")
    output.say(f"  {_votes_told(line)}")


def show(line: dict[str, Any]) -> None:
    """A decision in words."""
    from demur.policy.explanations import comparison

    abstained = line["answer"] is None
    output.say("I would rather not answer." if abstained else output.visible(line["answer"], 200))
    key, bounds = line["key"], line["threshold_key"]
    first = f"confidence {next(iter(key.values())):.3f}"
    reason = comparison(first, list(key.values()), bounds, list(key), answered=not abstained, form=".3f")
    if line["threshold"] == 0 and not abstained:
        reason = f"confidence {line['confidence']:.3f}, and the policy always answers"
    closed = _is_closed(line)
    if not closed:
        output.say(f"  {reason} (alpha {line['alpha']:g}, p-value {line['p_value']:.3f})")
    if line.get("answer_set") is not None:
        output.say(f"  answer set: {told_set(line, 30)}")
    if closed or line["threshold"] >= 1 or line.get("answer_set") is not None:
        output.say(f"  {line['explanation']}")
    output.say(f"  {_votes_told(line)}")


def _is_closed(line: dict[str, Any]) -> bool:
    """Whether a gate abstains, whatever the vote says: then its confidence is not the reason."""
    key = list(line["key"].values())
    return line["answer"] is None and (key > list(line["threshold_key"]) or key[0] == 0 < line["confidence"])


def _votes_told(line: dict[str, Any]) -> str:
    """How many paths gave each answer, and how many none."""
    all_paths = line["n_paths"]
    votes = [
        f"{output.visible(answer, 30)} by {paths} of {all_paths} paths ({output.percent(line['shares'][answer])})"
        for answer, paths in list(line["support"].items())[:5]
    ]
    if votes and line["without_answer"]:
        votes.append(f"no answer by {line['without_answer']}")
    return ", ".join(votes) or f"none of {all_paths} paths gave an answer"


def _path(path: Any) -> dict[str, Any]:
    return {"answer": path.answer, "text": path.text, "scores": dict(path.scores), **path.extra}
