"""`demur score`: scores of a run's paths, from models, from the paths themselves, or from a function of yours."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import demur
from demur.cli import on_ray, options, output, vote_flags
from demur.cli.completion import SCORES, among
from demur.cli.engine_flags import EngineFlags
from demur.cli.progress import Meter, duration, stop_on_sigterm
from demur.cli.sampling_options import ScorerSet, TrustAddress, scorer_flags
from demur.errors import DemurError, InvalidValue, ScoringError, StoreError

if TYPE_CHECKING:
    from demur.engine.score import ScoringProgress
    from demur.evaluation.comparison import ScoreSummary
    from demur.scoring.protocol import Scorer
    from demur.store import Run

NAME = "score"
HELP = """Score the paths of a run, or list the scores it has.

Run the same command again to go on where it stopped: what a scorer has scored is never scored again. A scorer that has
changed (another model, prompt or route) stores its values under a new name. Several processes may score one run at
once, and share what is missing.

The scores: perplexity, perplexity-std, perplexity-std-negated, self-consistency, judge, reward, and any function of
yours, as package.module:function. A judge or reward model is found by JUDGE_BASE_URL, JUDGE_MODEL, JUDGE_API_KEY (and
REWARD_…), by [score.judge] in demur.toml, or by --set.

Examples:

`demur score runs/addition.db --score perplexity-std-negated --score self-consistency`

`demur score runs/addition.db --score judge --set judge.model=smollm2-135m-instruct`

`demur score runs/gsm8k.db --score reward --set reward.model=Skywork/Skywork-Reward-V2-Llama-3.1-8B`

`demur score shards/ --score self-consistency --engine ray`

`demur score runs/addition.db --list`
"""
_MANY_FLOORS = 0.2
_PLACES = "A .db file or postgresql:// address; with --list, or a pool file; with --engine ray, a folder of shards."


def run(
    store: Annotated[str, options.argument("RUN", _PLACES)],
    score: Annotated[
        list[str] | None, options.option("--score", "NAME", "A score; repeatable.", offers=among(SCORES))
    ] = None,
    settings: ScorerSet = None,
    trust_address: TrustAddress = None,
    listing: Annotated[
        bool, typer.Option("--list", help="List the scores of the run, and how well each tells right from wrong.")
    ] = False,
    forget: Annotated[options.Text, options.option("--forget", "NAME", "Drop a score from the run.")] = None,
    normaliser: options.Normaliser = None,
    answer_field: options.AnswerField = None,
    missing: options.Missing = None,
    relation: options.Relation = None,
    task: options.Task = None,
    labels: options.LabelSet = None,
    run_name: options.RunName = None,
    partial: options.Partial = False,
    place: EngineFlags = EngineFlags(),
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    if place.is_ray and (listing or forget is not None or run_name is not None):
        raise InvalidValue("--list, --forget and --run go without --engine ray")
    if listing:
        if score or settings:
            raise InvalidValue("--list shows the scores that are there; it goes without --score and --set")
        choice = demur.FieldChoice(
            answer_field or "answer",
            missing=tuple(missing or ()),
            relation=relation,
            task=task,
            labels=vote_flags.label_names(labels),
        )
        _list(store, run_name, choice, normaliser, partial=partial, json=json)
        return
    if answer_field or missing or relation or task or labels or partial:
        named = "--answer-field, --missing, --relation, --task, --labels and --partial"
        raise InvalidValue(f"{named} are for --list: scores do not depend on them")
    if forget is not None:
        with demur.Store(store) as opened:
            dropped = opened.run(run_name).forget_score(forget)
        if json:
            output.emit({"forgotten": forget, "paths": dropped})
        else:
            output.say(f"Dropped the score {output.visible(forget)} of {dropped} paths.")
        return
    if not score:
        raise InvalidValue("name what to score with --score, or see what is there with --list")
    if normaliser is not None:
        raise InvalidValue("--normaliser is for --list, calibrate and evaluate; stored scores are as they came")
    from demur.pipeline.config import read_config
    from demur.prompts import template_of
    from demur.records import names_labels
    from demur.scoring.factory import make_scorer
    from demur.scoring.perplexity.recorded import KINDS
    from demur.voting.normalisers import parse_normaliser

    chosen, flags = read_config(config, trust_address or ()), scorer_flags(settings)
    unused = set(flags) - {*score, *(["perplexity"] if set(score) & set(KINDS) else [])}
    if unused:
        raise InvalidValue(f"--set {sorted(unused)[0]}.… names no --score of this command")
    if place.is_ray:
        wanted = {name: chosen.scorer_settings(name, flags) for name in score}
        done = on_ray.score(store, wanted, place.options(), json=json)
        _tell([_facts(name, state) for name, state in done.items()], {"folder": store}, json=json)
        return
    if Path(store).is_dir():
        raise InvalidValue(
            f"{store} is a folder, and scores are kept in a run",
            "score a folder of shards with {engine=ray}, or make it a run with `demur import`",
        )
    with demur.Store(store) as opened:
        scored_run = opened.run(run_name)
        if not scored_run.has_whole_pools():
            raise StoreError(
                f"the run {scored_run.name!r} has no whole pool to score", "`demur sample` goes on with it"
            )
        prompt = scored_run.description.sampling.get("prompt")
        template = template_of(prompt, "the run's prompt") if isinstance(prompt, dict) else None
        scorers = [
            make_scorer(name, chosen.scorer_settings(name, flags), template=template, say=options.mention)
            for name in dict.fromkeys(score)
        ]
        for scorer in scorers:  # before anything is paid for
            parse_normaliser(scorer.normaliser)
            if names_labels(scorer.name):
                raise InvalidValue(f"a score cannot be called {scorer.name!r}, which names labels")
        _score(scored_run, scorers, json=json)


def _score(scored_run: Run, scorers: list[Scorer], *, json: bool) -> None:
    from demur import event_loop
    from demur.engine import Progress, score_run

    states: dict[int, ScoringProgress] = {}
    asked = [scorer.name for scorer in scorers]
    meter = Meter(quiet=json)

    def seen(position: int, state: ScoringProgress) -> None:
        states[position] = state
        every = states.values()
        total = Progress(sum(one.wanted for one in every), 0, sum(one.saved for one in every))
        total.started = min(one.started for one in every)
        total.failed = {problem: reason for one in every for problem, reason in one.failed.items()}
        total.by_others, total.waiting = sum(one.by_others for one in every), state.waiting
        total.retries, total.trouble = sum(one.retries for one in every), state.trouble
        meter(total)

    async def one(position: int, scorer: Scorer, stop: asyncio.Event) -> ScoringProgress | DemurError:
        """Several scores at once, and the failure of one is no reason to end the others."""
        try:
            return await score_run(scored_run, scorer, watch=lambda state: seen(position, state), stop=stop)
        except DemurError as error:
            saved = states[position].saved if position in states else 0
            again = f"{saved} paths are saved, run the same command again to go on" if saved else ""
            told = ScoringError(error.message, "; ".join(part for part in (error.remedy, again) if part))
            if len(scorers) == 1:
                raise told from error
            return told

    async def work(stop: asyncio.Event) -> list[ScoringProgress | DemurError]:
        return await asyncio.gather(*(one(position, scorer, stop) for position, scorer in enumerate(scorers)))

    with meter, stop_on_sigterm():
        results = event_loop.run_stoppable(work)
    facts = [_facts(name, result) for name, result in zip(asked, results, strict=True)]
    _tell(facts, {"run": scored_run.name}, json=json)


def _tell(facts: list[dict[str, Any]], place: dict[str, str], *, json: bool) -> None:
    if json:
        output.emit({**place, "scores": facts})
    else:
        for scored in facts:
            _show(scored)
    if any(scored.get("interrupted") for scored in facts):
        raise typer.Exit(130)
    if any(scored["error"] or scored["failed"] for scored in facts):
        raise typer.Exit(1)


def _facts(asked: str, result: ScoringProgress | DemurError) -> dict[str, Any]:
    if isinstance(result, DemurError):
        return {"asked": asked, "name": None, "error": output.told(result), "failed": {}}
    counts = ("name", "wanted", "saved", "seconds", "failed", "retries", "by_others", "in_vain", "interrupted")
    known = {name: getattr(result, name) for name in counts}
    return {"asked": asked, "error": None, "flags": result.flagged, **known}


def _show(facts: dict[str, Any]) -> None:
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
    if facts.get("by_others"):
        output.say(f"  {facts['by_others']} paths were scored by other processes meanwhile.")
    if facts.get("in_vain"):
        output.say(f"  {facts['in_vain']} paths were scored in vain: another process had done so.")
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


def _list(
    place: str,
    run_name: str | None,
    choice: demur.FieldChoice,
    normaliser: str | None,
    *,
    partial: bool,
    json: bool,
) -> None:
    from demur.pools.fields import read_table
    from demur.pools.parts import sizes_of

    facts = choice.answer_field != "answer"
    source = demur.read_pools(place, run_name, facts=facts, partial=partial, say=options.mention)
    summaries = demur.compare_scores(source, choice, normaliser=normaliser)
    if any(one.name is None for one in summaries):  # votes were held, so it is said how answers were compared
        output.say_in_the_end(read_table(source.pools, source.as_read(choice)).comparison())
    if json:
        rows = []
        for one in summaries:
            known = {item.name: getattr(one, item.name) for item in fields(one) if item.name != "frontier"}
            rows.append({**known, "identity": source.scorers.get(one.name or "")})
        ranked = {"ranked": _ranked(summaries)} if any(one.name is None for one in summaries) else {}
        output.emit({"pools": len(source.pools), "scores": rows, **ranked})
        return
    n_paths = int(sizes_of(source.pools).sum())
    output.table_of(
        f"Scores of {len(source.pools)} pools, {n_paths} paths", summaries, _COLUMNS, only_if_said=["flagged"]
    )
    for one in summaries:
        output.warn(one.warnings)
        if one.missing:
            few = ", ".join(output.visible(name) for name in one.missing[:3])
            output.say(
                f"note: {one.title} is missing in {len(one.missing)} pools ({few}"
                f"{', …' if len(one.missing) > 3 else ''}); score them before calibrating"
            )
    if lacking := max((one.left_out for one in summaries), default=0):
        n = max(one.n for one in summaries)
        output.say(f"note: votes are compared on {n} questions that have every score; {lacking} others are left out")
    if not any(one.name is None for one in summaries):
        output.say("No problem has a gold answer, so nothing is said of right and wrong.")
    else:
        output.say(
            "Path AUROC: how often a right path scores above a wrong one (50 % is chance). Frontier AUC: area under "
            "accuracy against yield, which grows with the yields a vote can reach, so compare votes by 'same yields': "
            "the mean accuracy over the yields that all of them reach. With jitter, votes of equal confidence are "
            "ordered at random. ± is a standard error over questions.",
            f"Ranked {_ranked(summaries)}.",
        )


def _ranked(summaries: Sequence[ScoreSummary]) -> str:
    """On which questions votes are ranked, and what follows."""
    from demur.evaluation.resampling import RANKED

    return RANKED.format(n=max(one.n for one in summaries))


def _flags(summary: ScoreSummary) -> str:
    return ", ".join(f"{n / summary.paths:.1%} {flag}" for flag, n in summary.flags.items()) or output.DASH


def _area(area: float, error: float) -> str:
    return output.number(area) if math.isnan(error) else f"{output.number(area)} ± {error:.2g}"


_COLUMNS: output.Columns = {
    "score": lambda one: output.visible(one.title, 80),
    "paths": lambda one: output.DASH if one.name is None else str(one.paths),
    "lowest": lambda one: output.number(one.low),
    "highest": lambda one: output.number(one.high),
    "flagged": _flags,
    "path AUROC": lambda one: output.percent(one.path_auroc, one.path_auroc_error),
    "normaliser": lambda one: output.DASH if one.name is None or one.missing else one.normaliser,
    "vote right": lambda one: output.percent(one.vote_accuracy, one.vote_accuracy_error),
    "frontier AUC": lambda one: _area(one.frontier_auc, one.frontier_auc_error),
    "same yields": lambda one: output.percent(one.common_auc, one.common_auc_error),
}
