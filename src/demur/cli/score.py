"""`demur score`: scores of a run's paths, from models, from the paths themselves, or from a function of yours."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demur.cli import output
from demur.cli.options import (
    AnswerField,
    Config,
    Json,
    Missing,
    Normaliser,
    Relation,
    RunName,
    open_source,
    reading_of,
)
from demur.cli.sampling_options import ScorerSet, say, scorer_flags

if TYPE_CHECKING:
    from demur.comparison import ScoreSummary
    from demur.pool_table import Reading
    from demur.scoring.protocol import Scorer
    from demur.scoring.runs import ScoringProgress
    from demur.store import Run

NAME = "score"
HELP = """Score the paths of a run, or list the scores it has.

Run the same command again to go on where it stopped: what a scorer has scored is never scored again. A scorer that has
changed (another model, prompt or route) stores its values under a new name.

The scores: perplexity, perplexity-std, perplexity-std-negated, self-consistency, judge, reward, and any function of
yours, as package.module:function. A judge or reward model is found by JUDGE_BASE_URL, JUDGE_MODEL, JUDGE_API_KEY (and
REWARD_…), by [score.judge] in demur.toml, or by --set.

Examples:

`demur score runs/addition.db --score perplexity-std-negated --score self-consistency`

`demur score runs/addition.db --score judge --set judge.model=smollm2-135m-instruct`

`demur score runs/gsm8k.db --score reward --set reward.model=Skywork/Skywork-Reward-V2-Llama-3.1-8B`

`demur score runs/addition.db --list`
"""
_MANY_FLOORS = 0.2


def run(
    store: Annotated[
        str,
        typer.Argument(
            metavar="RUN", show_default=False, help="A .db file or postgresql:// address; with --list, or a pool file."
        ),
    ],
    score: Annotated[list[str] | None, typer.Option("--score", metavar="NAME", help="A score; repeatable.")] = None,
    settings: ScorerSet = None,
    listing: Annotated[
        bool, typer.Option("--list", help="List the scores of the run, and how well each tells right from wrong.")
    ] = False,
    forget: Annotated[str | None, typer.Option("--forget", metavar="NAME", help="Drop a score from the run.")] = None,
    normaliser: Normaliser = None,
    answer_field: AnswerField = None,
    missing: Missing = None,
    relation: Relation = None,
    run_name: RunName = None,
    config: Config = None,
    json: Json = False,
) -> None:  # fmt: skip
    from demur.errors import InvalidValue

    if listing:
        if score or settings:
            raise InvalidValue("--list shows the scores that are there; it goes without --score and --set")
        _list(store, run_name, reading_of(answer_field, missing, None, relation), normaliser, json=json)
        return
    if answer_field or missing or relation:
        raise InvalidValue("--answer-field, --missing and --relation are for --list: scores do not depend on them")
    if forget is not None:
        _forget(store, run_name, forget)
        return
    if not score:
        raise InvalidValue("name what to score with --score, or see what is there with --list")
    if normaliser is not None:
        raise InvalidValue("--normaliser is for --list, calibrate and evaluate; stored scores are as they came")
    from demur.description import read_description
    from demur.normalisers import parse_normaliser
    from demur.prompts import template_of
    from demur.records import names_labels
    from demur.scoring.families import make_scorer
    from demur.scoring.perplexity import KINDS
    from demur.store import Store

    described = read_description(config)
    flags = scorer_flags(settings)
    known = {*score, *(["perplexity"] if set(score) & set(KINDS) else [])}
    unused = set(flags) - known
    if unused:
        raise InvalidValue(f"--set {sorted(unused)[0]}.… names no --score of this command")
    with Store(store) as opened:
        held = opened.run(run_name)
        prompt = held.pipeline.get("prompt")
        template = template_of(prompt, "the run's prompt") if isinstance(prompt, dict) else None
        scorers = [
            make_scorer(name, described.scorer_settings(name, flags), template=template, say=say)
            for name in dict.fromkeys(score)
        ]
        for scorer in scorers:  # before anything is paid for
            parse_normaliser(scorer.normaliser)
            if names_labels(scorer.name):
                raise InvalidValue(f"a score cannot be called {scorer.name!r}, which names labels")
        _score(held, scorers, json=json)


def _score(held: Run, scorers: list[Scorer], *, json: bool) -> None:
    from demur.cli.progress import Meter, interruptible
    from demur.errors import DemurError, ScoringError
    from demur.progress import Progress
    from demur.scoring.runs import score_run

    meter = Meter(quiet=json)
    states: dict[int, ScoringProgress] = {}
    asked = [scorer.name for scorer in scorers]

    def seen(position: int, state: ScoringProgress) -> None:
        states[position] = state
        every = states.values()
        total = Progress(sum(each.wanted for each in every), 0, sum(each.saved for each in every))
        total.started = min(each.started for each in every)
        total.failed = {problem: reason for each in every for problem, reason in each.failed.items()}
        total.retries, total.trouble = sum(each.retries for each in every), state.trouble
        meter(total)

    async def one(position: int, scorer: Scorer, stop: asyncio.Event) -> ScoringProgress | DemurError:
        """Several scores at once, and the failure of one is no reason to end the others."""
        try:
            return await score_run(held, scorer, watch=lambda state: seen(position, state), stop=stop)
        except DemurError as error:
            saved = states[position].saved if position in states else 0
            told = f"{error}; {saved} paths are saved, run the same command again to go on" if saved else str(error)
            if len(scorers) == 1:
                raise ScoringError(told) from error
            return ScoringError(told)

    async def work(stop: asyncio.Event) -> list[ScoringProgress | DemurError]:
        return await asyncio.gather(*(one(position, scorer, stop) for position, scorer in enumerate(scorers)))

    try:
        results: list[ScoringProgress | DemurError] = interruptible(work)
    finally:
        meter.close()
    facts = [_facts(name, result) for name, result in zip(asked, results, strict=True)]
    if json:
        output.emit({"run": held.name, "scores": facts})
    else:
        for each in facts:
            _show(each)
    if any(each.get("interrupted") for each in facts):
        raise typer.Exit(130)
    if any(each["error"] or each["failed"] for each in facts):
        raise typer.Exit(1)


def _facts(asked: str, result: Any) -> dict[str, Any]:
    if isinstance(result, Exception):
        return {"asked": asked, "name": None, "error": str(result), "failed": {}}
    return {
        "asked": asked, "name": result.name, "error": None, "wanted": result.wanted, "saved": result.saved,
        "seconds": result.seconds, "flags": result.flagged, "failed": result.failed, "retries": result.retries,
        "interrupted": result.interrupted,
    }  # fmt: skip


def _show(facts: dict[str, Any]) -> None:
    from demur.cli.progress import duration

    if facts["error"]:
        output.say(f"{facts['asked']}: {output.visible(facts['error'], 400)}")
        return
    name = facts["name"]
    if name != facts["asked"].rpartition(":")[2]:
        output.say(f"{facts['asked']}: another scorer has that name in this run; these are {name}.")
    flags = ", ".join(f"{count} {_FLAGS.get(flag, flag)}" for flag, count in facts["flags"].items())
    if facts["interrupted"] and not facts["wanted"]:
        output.say(f"{name}: stopped before anything was scored.")
    elif not facts["wanted"]:
        output.say(f"{name}: every path has this score already.")
    else:
        output.say(
            f"{name}: scored {facts['saved']} of {facts['wanted']} paths in {duration(facts['seconds'])}"
            + (f" ({flags})." if flags else ".")
        )
    floors = sum(count for flag, count in facts["flags"].items() if "floor" in flag)
    if floors > _MANY_FLOORS * max(facts["saved"], 1):
        output.say("  Many values are floors: its likeliest tokens do not reach down to Y. Prefer an exact route.")
    for problem, reason in list(facts["failed"].items())[:3]:
        output.say(f"  failed: {output.visible(problem)}: {output.visible(reason, 300)}")
    if len(facts["failed"]) > 3:
        output.say(f"  … and {len(facts['failed']) - 3} more problems")
    if facts["failed"] or facts["interrupted"]:
        output.say("  Run the same command again to go on.")


_FLAGS = {"floor": "floors", "cut": "of paths cut to fit", "empty": "of paths that say nothing"}


def _forget(place: str, run_name: str | None, name: str) -> None:
    from demur.store import Store

    with Store(place) as opened:
        dropped = opened.run(run_name).forget_score(name)
    output.say(f"Dropped the score {output.visible(name)} of {dropped} paths.")


def _list(place: str, run_name: str | None, reading: Reading, normaliser: str | None, *, json: bool) -> None:
    from dataclasses import fields

    from demur.comparison import compare_scores

    source = open_source(place, run_name, facts=reading.answer_field != "answer")
    found = compare_scores(source, reading, normaliser=normaliser)
    if json:
        output.emit(
            {"pools": len(source.pools), "scores": [
                {**{item.name: getattr(each, item.name) for item in fields(each) if item.name != "frontier"},
                 "identity": source.scorers.get(each.name or "")}
                for each in found
            ]}
        )  # fmt: skip
        return
    n_paths = sum(len(pool.paths) for pool in source.pools)
    output.table(
        f"Scores of {len(source.pools)} pools, {n_paths} paths",
        ["score", "paths", "lowest", "highest", "flagged", "path AUROC", "normaliser", "vote right", "frontier AUC",
         "same yields"],
        [_row(each) for each in found],
    )  # fmt: skip
    for each in found:
        for warning in each.warnings:
            output.say(f"warning: {warning}")
        if each.missing:
            few = ", ".join(output.visible(name) for name in each.missing[:3])
            output.say(
                f"note: {each.title} is missing in {len(each.missing)} pools ({few}"
                f"{', …' if len(each.missing) > 3 else ''}); score them before calibrating"
            )
    if not any(each.name is None for each in found):
        output.say("No problem has a gold answer, so nothing is said of right and wrong.")
    else:
        output.say(
            "Path AUROC: how often a right path scores above a wrong one (50 % is chance). Frontier AUC: area under "
            "accuracy against yield, which grows with the yields a vote can reach, so compare votes by 'same yields': "
            "the mean accuracy over the yields that all of them reach. With jitter, votes of equal confidence are "
            "ordered at random."
        )


def _row(each: ScoreSummary) -> list[str]:
    flags = ", ".join(f"{count / each.paths:.1%} {flag}" for flag, count in each.flags.items())
    return [
        output.visible(each.title),
        str(each.paths) if each.name is not None else output.DASH,
        output.number(each.low),
        output.number(each.high),
        flags or output.DASH,
        output.percent(each.path_auroc),
        each.normaliser if each.name is not None and not each.missing else output.DASH,
        output.percent(each.vote_accuracy),
        output.number(each.frontier_auc),
        output.percent(each.common_auc),
    ]
