"""`demur sample`: paths from a model into a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from demur.cli import output
from demur.cli.options import Config, Json
from demur.cli.sampling_options import (
    BaseUrl,
    Concurrency,
    Extract,
    Logprobs,
    MaxTokens,
    Model,
    Paths,
    Patience,
    PromptName,
    Stop,
    Temperature,
    TopP,
    say,
)

NAME = "sample"
HELP = """Sample reasoning paths for a set of questions, into a run that survives anything.

Run the same command again to go on where it stopped: no path is lost, none is paid for twice.

Examples:

`demur sample builtin:addition -m 8 -o runs/addition.db --limit 100`

`demur sample gsm8k --base-url http://localhost:8000/v1 --model Qwen/Qwen3-1.7B -o runs/gsm8k.db`

`demur sample questions.jsonl --task math --dry-run -o runs/mine.db`
"""


def run(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET", show_default=False,
            help="gsm8k, math, math-hard, hotpotqa, mmlu, mmlu-pro; builtin:addition, builtin:capitals, "
            "builtin:word-problems; or a file of questions.",
        ),
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="RUN", help="A .db file, or a postgresql:// address.")],
    run_name: Annotated[str, typer.Option("--run", metavar="NAME", help="Name of the run in the store.")] = "run",
    model: Model = None,
    base_url: BaseUrl = None,
    paths: Paths = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    max_tokens: MaxTokens = None,
    stop: Stop = None,
    prompt: PromptName = None,
    extract: Extract = None,
    logprobs: Logprobs = None,
    task: Annotated[str | None, typer.Option("--task", help="math, qa or mc, where the questions do not say.")] = None,
    split: Annotated[str | None, typer.Option("--split", help="Split of a dataset from the hub.")] = None,
    level: Annotated[int | None, typer.Option("--level", help="One level of MATH.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most so many problems.")] = None,
    shuffle: Annotated[int | None, typer.Option("--shuffle", metavar="SEED", help="In a random order.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the paths.  [default: 0]")] = None,
    concurrency: Concurrency = None,
    patience: Patience = None,
    config: Config = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be asked for.")] = False,
    json: Json = False,
) -> None:  # fmt: skip
    from dataclasses import replace

    from demur.cli.progress import Meter, duration, interruptible
    from demur.datasets import load
    from demur.description import read_description
    from demur.errors import InvalidValue

    if not run_name.strip():
        raise InvalidValue("--run needs a name")
    problems = load(dataset, split=split, limit=limit, seed=shuffle, level=level)
    if task is not None:
        problems = [replace(problem, extra={**problem.extra, "task": task}) for problem in problems]
    described = read_description(config).override(
        model=model, base_url=base_url, paths=paths, temperature=temperature, top_p=top_p, max_tokens=max_tokens,
        stop=stop, prompt=prompt, extract=extract, logprobs=logprobs, seed=seed, concurrency=concurrency,
        patience=patience,
    )  # fmt: skip
    pipeline = described.pipeline(described.backend(say))
    if dry_run:
        _estimate(pipeline, problems, out, run_name, json=json)
        return
    meter = Meter(quiet=json)
    try:
        sampled = pipeline.run(problems, out, name=run_name, watch=meter, bridge=interruptible)
    finally:
        meter.close()
    progress = sampled.progress
    facts = {
        "run": run_name, "store": _shown(out), "problems": len(problems), "wanted": progress.wanted,
        "saved": progress.saved, "tokens": progress.tokens, "without_answer": progress.without_answer,
        "truncated": progress.truncated, "seconds": progress.seconds, "failed": progress.failed,
        "unscored": sampled.unscored, "retries": progress.retries,
        "stopped": progress.stopped,
    }  # fmt: skip
    if json:
        output.emit(facts)
    else:
        if not progress.wanted:
            output.say(f"All {len(problems)} problems have their {pipeline.n_paths} paths already.")
        output.say(
            f"Saved {progress.saved} of {progress.wanted} paths in {duration(progress.seconds)} "
            f"({progress.tokens} tokens; {progress.without_answer} paths without an answer, "
            f"{progress.truncated} of them cut off) in {_shown(out)}."
        )
        for name, reason in list(progress.failed.items())[:3]:
            output.say(f"  failed: {output.visible(name)}: {output.visible(reason, 200)}")
        if progress.saved and progress.without_answer == progress.saved:
            output.say("  No path has an answer: look at some with `demur export`, and at --prompt and --extract.")
        if sampled.unscored:
            name, reason = next(iter(sampled.unscored.items()))
            output.say(f"  {len(sampled.unscored)} problems could not be scored: {output.visible(reason, 200)}")
        if progress.stopped or progress.failed:
            output.say("Run the same command again to go on.")
        elif sampled.score is not None:
            output.say(f"Next: demur calibrate {_shown(out)} --score {sampled.score} --alpha 0.1 -o policy.json")
    if progress.stopped or progress.failed or sampled.unscored:
        raise typer.Exit(130 if progress.stopped else 1)


def _estimate(pipeline: Any, problems: Any, out: str, run_name: str, *, json: bool) -> None:
    """What a run would ask for, from what is there already."""
    from demur.store import Store

    fitted = pipeline.fitted(problems)
    prompts = [fitted.render(problem) for problem in problems]
    letters = sum(len(p.text or "") + sum(len(m["content"]) for m in p.messages) for p in prompts)
    missing, per_path = pipeline.n_paths * len(problems), None
    if _exists(out):
        with Store(out) as store:
            if run_name in store.names():
                held = store.run(run_name)
                facts, known = held.describe(), held.numbers()
                lacking = {each.problem.id: len(each.missing) for each in held.pending()}
                missing = sum(lacking.get(p.id, 0) if p.id in known else pipeline.n_paths for p in problems)
                per_path = facts["tokens"] / facts["paths"] if facts["paths"] and facts["tokens"] else None
    facts = {
        "problems": len(problems), "missing_paths": missing, "prompt_tokens_about": letters // 4,
        "completion_tokens_at_most": missing * pipeline.settings.max_tokens,
        "completion_tokens_about": None if per_path is None else round(missing * per_path),
        "pipeline": fitted.describe(),
    }  # fmt: skip
    if json:
        output.emit(facts)
        return
    output.say(
        f"{len(problems)} problems lack {missing} paths. Prompts: about {letters // 4} tokens, if the server shares "
        f"them among the paths of a problem. Paths: at most {facts['completion_tokens_at_most']} tokens"
        + ("." if per_path is None else f", about {facts['completion_tokens_about']} going by those sampled so far.")
    )
    output.say("The first prompt:\n")
    first = prompts[0]
    output.say(
        first.text if first.text is not None else "\n\n".join(f"[{m['role']}] {m['content']}" for m in first.messages)
    )


def _exists(place: str) -> bool:
    return "://" in place or Path(place).exists()


def _shown(place: str) -> str:
    from demur.store.connection import shown

    return shown(place)
