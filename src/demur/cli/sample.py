"""`demur sample`: paths from a model into a run."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import demur
from demur.cli import on_ray, output, sampling_options
from demur.cli.completion import DATASETS, TASKS, among
from demur.cli.engine_flags import Block, EngineFlags
from demur.cli.next_command import next_place
from demur.cli.options import Config, Json, LabelSet, NewRun, Seed, StopRule, Text, argument, mention, option
from demur.cli.progress import Meter, duration, stop_on_sigterm
from demur.cli.replacing import refuse_store_name
from demur.cli.vote_flags import label_names
from demur.errors import DemurError, InvalidValue

if TYPE_CHECKING:
    from demur.engine import SamplingProgress

NAME = "sample"
HELP = """Sample reasoning paths for a set of questions, into a run that survives anything.

Run the same command again to go on where it stopped: no path that came is lost or asked for again, but those that
lack the log-probabilities their score needs; they are drawn again, and counted. With a larger --limit it adds
problems, with a larger --paths it adds paths. With --stop it draws in waves, and no more of a question than the rule
wants: `calibrate` then promises for pools that the same rule ended. Several processes may sample one run at once, on
one machine or, with PostgreSQL, on many: they share what is missing, and take over from one that dies.

Examples:

`demur sample builtin:addition -m 8 -o runs/addition.db --limit 100`

`demur sample gsm8k --base-url http://localhost:8000/v1 --model Qwen/Qwen3-1.7B -o runs/gsm8k.db`

`demur sample builtin:addition --stop beta:0.95 --wave 4 -o runs/fewer.db --limit 100`

`demur sample gsm8k --base-url http://a:8000/v1 --base-url 2:http://b:8000/v1 --model Qwen/Qwen3-1.7B -o
postgresql://host/runs --budget-paths 100000`

`demur sample questions.jsonl --task math --dry-run -o runs/mine.db`

`demur sample gsm8k --prepare --base-url http://localhost:8000/v1 --model Qwen/Qwen3-1.7B -o runs/gsm8k.db`

`demur sample builtin:addition -m 4 --limit 20 --engine ray -o shards/`
"""
_PREPARE = "Only make the run and its problems, and ask nobody: `demur export --batch` writes the requests."
_DATASETS = (
    "gsm8k, math, math-hard, hotpotqa, mmlu, mmlu-pro; builtin:addition, builtin:capitals, builtin:word-problems; or a "
    "file of questions."
)
_OUT = "A .db file, a postgresql:// address, or with --engine ray a folder."
_TASK = "math, qa, mc or a data set's name, where the questions do not say."


def run(
    dataset: Annotated[str, argument("DATASET", _DATASETS, offers=among(DATASETS))],
    out: Annotated[str, option("--out", "RUN", _OUT, "-o")],
    place: EngineFlags,
    block: Block = None,
    run_name: NewRun = "run",
    model: sampling_options.Model = None,
    base_url: sampling_options.BaseUrl = None,
    backend: sampling_options.BackendName = None,
    backend_set: sampling_options.BackendSet = None,
    trust_address: sampling_options.TrustAddress = None,
    paths: sampling_options.Paths = None,
    temperature: sampling_options.Temperature = None,
    top_p: sampling_options.TopP = None,
    max_tokens: sampling_options.MaxTokens = None,
    stop_text: sampling_options.StopText = None,
    stop: StopRule = None,
    wave: sampling_options.Wave = None,
    prompt: sampling_options.PromptName = None,
    extract: sampling_options.Extract = None,
    answer_marker: sampling_options.AnswerMarker = None,
    labels: LabelSet = None,
    logprobs: sampling_options.Logprobs = None,
    task: Annotated[Text, option("--task", "NAME", _TASK, offers=among(TASKS))] = None,
    split: Annotated[Text, typer.Option("--split", help="Split of a dataset from the hub.")] = None,
    level: Annotated[int | None, typer.Option("--level", help="One level of MATH.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most so many problems.")] = None,
    shuffle: Annotated[int | None, option("--shuffle", "SEED", "In a random order.")] = None,
    seed: Seed = None,
    concurrency: sampling_options.Concurrency = None,
    patience: sampling_options.Patience = None,
    answer_seconds: sampling_options.AnswerSeconds = None,
    repeatable: sampling_options.Repeatable = None,
    mixed_models: sampling_options.MixedModels = None,
    budget_paths: sampling_options.BudgetPaths = None,
    budget_tokens: sampling_options.BudgetTokens = None,
    budget_seconds: sampling_options.BudgetSeconds = None,
    config: Config = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be asked for.")] = False,
    prepare: Annotated[bool, typer.Option("--prepare", help=_PREPARE)] = False,
    json: Json = False,
) -> None:
    from demur.pipeline.config import read_config
    from demur.store.connection import shown

    budget = demur.Budget(budget_paths, budget_tokens, budget_seconds)
    if not run_name.strip():
        raise InvalidValue("--run needs a name")
    problems = demur.datasets.load(dataset, split=split, limit=limit, seed=shuffle, level=level)
    if task is not None:
        demur.tasks.chosen(task)
        problems = [replace(problem, extra={**problem.extra, "task": task}) for problem in problems]
    drawn: dict[str, Any] = {"paths": paths, "temperature": temperature, "top_p": top_p, "max_tokens": max_tokens}
    drawn |= {"stop": stop_text, "stop_rule": stop, "wave": wave}
    read = {"prompt": prompt, "extract": extract, "answer_marker": answer_marker, "logprobs": logprobs, "seed": seed}
    read |= {"labels": None if labels is None else list(label_names(labels))}
    asked: dict[str, Any] = {"model": model, "base_url": base_url, "concurrency": concurrency, "patience": patience}
    asked |= {"answer_seconds": answer_seconds, "repeatable": repeatable, "mixed_models": mixed_models}
    asked |= sampling_options.backend_flags(backend, backend_set)
    chosen = read_config(config, trust_address or ()).override(**drawn, **read, **asked)
    if place.is_ray:
        if prepare or not budget.says_nothing:
            raise InvalidValue("--prepare and budgets are of runs in a store, and go without --engine ray")
        on_ray.sample(chosen, problems, out, place.options(block), json=json, dry_run=dry_run)
        return
    if block is not None:
        raise InvalidValue("--block goes with --engine ray")
    refuse_store_name(out)
    pipeline = chosen.pipeline(chosen.backend(_silent if prepare else mention))
    if dry_run:
        _estimate(pipeline, problems, out, run_name, json=json)
        return
    if prepare:
        _prepare(pipeline, problems, out, run_name, json=json)
        return
    with Meter(quiet=json) as meter, stop_on_sigterm():
        sampled = pipeline.run(problems, out, name=run_name, watch=meter, budget=budget)
    progress, store = sampled.progress, shown(out)
    counts = ("wanted", "saved", "tokens", "without_answer", "truncated", "seconds", "failed", "retries", "trouble",
              "drawn_again", "still_without", "by_others", "in_vain", "lost_leases", "stopped")  # fmt: skip
    facts = {
        "run": run_name,
        "store": store,
        "problems": len(problems),
        **{name: getattr(progress, name) for name in counts},
        "unscored": sampled.unscored,
        "budget_spent": progress.budget.partition("; ")[0] or None,
        "models": dict(progress.reported.paths),
        "events": list(getattr(pipeline.backend, "events", ())),
    }
    if json:
        output.emit(facts)
    else:
        if not progress.wanted:
            paths_each = "paths" if pipeline.stop is not None else f"{pipeline.n_paths} paths"
            output.say(f"All {len(problems)} problems have their {paths_each} already.")
        at_most = "at most " if pipeline.stop is not None and progress.stopped else ""
        output.say(
            f"Saved {progress.saved} of {at_most}{progress.wanted} paths in {duration(progress.seconds)} "
            f"({progress.tokens} tokens; {progress.without_answer} paths without an answer, "
            f"{progress.truncated} of them cut off) in {store}."
        )
        _say_shared(progress)
        if models := progress.reported.told:
            output.say(f"  Paths by the model that their reply names: {output.visible(models, 300)}.")
        for event in facts["events"]:
            output.say(f"  {output.visible(event, 300)}")
        for name, reason in list(progress.failed.items())[:3]:
            output.say(f"  failed: {output.visible(name)}: {output.visible(reason, 200)}")
        if progress.drawn_again:
            output.say(
                f"  {progress.drawn_again} paths had come without log-probabilities and were drawn again; "
                f"{progress.still_without or 'none'} of them still have none."
            )
        if progress.retries:
            output.say(
                f"  {progress.retries} requests had to be tried again, and may have been paid for twice; the last: "
                f"{output.visible(progress.trouble, 200)}"
            )
        if progress.database_retries:
            output.say(f"  The database was away, and asked {progress.database_retries} times until it was back.")
        if progress.saved and progress.without_answer == progress.saved:
            output.say("  No path has an answer: look at some with `demur export`, and at --prompt and --extract.")
        if sampled.unscored:
            reason = next(iter(sampled.unscored.values())).partition(";")[0]
            output.say(f"  {len(sampled.unscored)} problems could not be scored: {output.visible(reason, 200)}.")
            output.say(
                "  Run the same command again to have such paths drawn again (but none of a run sampled with "
                "--no-logprobs), or leave these problems out:"
            )
            _say_next(out, run_name, sampled.score, " --drop-unscored")
        if progress.budget:
            spent, _, remedy = progress.budget.partition("; ")
            output.say(output.told(DemurError(f"The budget of this run is used up: {spent}", remedy)) + ".")
        elif progress.stopped or progress.failed:
            output.say("Run the same command again to go on.")
        elif not sampled.unscored:
            _say_next(out, run_name, sampled.score)
    if progress.stopped or progress.failed or sampled.unscored:
        raise typer.Exit(130 if progress.stopped else 1)


def _silent(_: str) -> None: ...


def _prepare(pipeline: demur.Pipeline, problems: list[demur.Problem], out: str, run_name: str, *, json: bool) -> None:
    """Make a run that others sample."""
    if pipeline.backend.describe().get("backend") != "openai":
        raise InvalidValue(
            "only the model of an endpoint takes batches", "give {base_url} and {model}; nothing is asked for there"
        )
    pipeline.prepare(problems, out, name=run_name)
    if json:
        output.emit({"run": run_name, "problems": len(problems), "paths": pipeline.n_paths})
    else:
        told = f"The run {run_name!r} has {len(problems)} problems of {pipeline.n_paths} paths each"
        seed = f" --seed {pipeline.seed}" if pipeline.seed else ""
        output.say(f"{told}. Next: demur export {next_place(out, run_name)} --batch requests.jsonl{seed}")


def _say_shared(progress: SamplingProgress) -> None:
    """What other processes did meanwhile, and what that cost."""
    if progress.by_others:
        output.say(f"  {progress.by_others} paths came to other processes that sample this run.")
    if progress.in_vain:
        output.say(f"  {progress.in_vain} paths were paid for in vain: another process had brought them.")
    if progress.lost_leases:
        output.say(f"  Others took over from this process {progress.lost_leases} times: it was not seen for too long.")


def _say_next(out: str, run_name: str, score: str | None, flags: str = "") -> None:
    """A command to paste: quoted, and without the password of the address."""
    from demur.store.connection import pasted

    scored = "" if score is None else f" --score {shlex.quote(score)}"
    place, secret = next_place(out, run_name), pasted(out)[1]
    output.say(f"Next: demur calibrate {place}{scored}{flags} --alpha 0.1 -o policy.json")
    if secret:
        output.say("  (It lacks the password of the address: set PGPASSWORD to it first, or write it to ~/.pgpass.)")


def _estimate(pipeline: demur.Pipeline, problems: list[demur.Problem], out: str, run_name: str, *, json: bool) -> None:
    """What a run would ask for, from what is there already."""
    fitted = pipeline.fitted(problems)
    prompts = [fitted.render(problem) for problem in problems]
    letters = sum(len(p.text or "") + sum(len(m["content"]) for m in p.messages) for p in prompts)
    missing, drawn_again, per_path = pipeline.n_paths * len(problems), 0, None
    if "://" in out or Path(out).exists():
        with demur.Store(out) as store:
            if run_name in store.names():
                run = store.run(run_name)
                saved, known = run.summary(), run.numbers()
                todo = run.pending(with_logprobs=pipeline.needs_logprobs, n_paths=pipeline.n_paths)
                todo = todo if run.stopping is None else run.not_ended(todo, run.stopping)
                lacking = {pending.problem.id: len(pending.missing) + len(pending.again) for pending in todo}
                drawn_again = sum(len(pending.again) for pending in todo)
                missing = sum(lacking.get(p.id, 0) if p.id in known else pipeline.n_paths for p in problems)
                per_path = saved["tokens"] / saved["paths"] if saved["paths"] and saved["tokens"] else None
    facts = {
        "problems": len(problems),
        "missing_paths": missing,
        "drawn_again": drawn_again,
        "prompt_tokens_about": letters // 4,
        "completion_tokens_at_most": missing * pipeline.settings.max_tokens,
        "completion_tokens_about": None if per_path is None else round(missing * per_path),
        "pipeline": fitted.description().document(),
    }
    if json:
        output.emit(facts)
        return
    output.say(
        f"{len(problems)} problems lack {missing} paths{'' if pipeline.stop is None else ' at most'}"
        + (f" ({drawn_again} are there without log-probabilities)" if drawn_again else "")
        + f". Prompts: about {letters // 4} tokens, if the server shares "
        f"them among the paths of a problem. Paths: at most {facts['completion_tokens_at_most']} tokens"
        + ("." if per_path is None else f", about {facts['completion_tokens_about']} going by those sampled so far.")
    )
    chat = "\n\n".join(f"[{message['role']}] {message['content']}" for message in prompts[0].messages)
    output.say("The first prompt:\n", chat if prompts[0].text is None else prompts[0].text)
