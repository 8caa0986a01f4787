"""What `sample`, `score` and `answers` do with --engine ray, and how they tell of it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import demur
from demur.cli import output
from demur.cli.progress import Meter, duration, stop_on_sigterm
from demur.errors import InvalidValue

if TYPE_CHECKING:
    from demur.engine.score import ScoringProgress
    from demur.pipeline.config import Config
    from demur.pipeline.ray.classing import ClassedShards
    from demur.pipeline.ray.sampling import RayOptions, SampledShards
    from demur.scoring.settings import ScorerSettings

_COUNTS = ("wanted", "saved", "tokens", "without_answer", "truncated", "seconds", "failed", "retries", "trouble",
           "drawn_again", "still_without", "stopped")  # fmt: skip


def sample(
    chosen: Config, problems: Sequence[demur.Problem], out: str, options: RayOptions, *, json: bool, dry_run: bool
) -> None:
    """Sample into a folder of shards."""
    from demur.pipeline.ray.sampling import sample_shards

    refuse_other_places(out)
    if dry_run:
        raise InvalidValue("--dry-run asks nobody, so it needs no cluster; leave --engine ray out")
    with Meter(quiet=json) as meter, stop_on_sigterm():
        sampled = sample_shards(chosen, problems, out, options, watch=meter, say=output.mention)
    progress = sampled.progress
    facts = {name: getattr(progress, name) for name in _COUNTS}
    facts = {"folder": out, "problems": len(problems), "blocks": sampled.blocks, "finished": sampled.finished, **facts}
    facts |= {"unscored": sampled.unscored, "unfinished": sampled.unfinished, "start_seconds": sampled.start_seconds}
    if json:
        output.emit(facts)
    else:
        _say_sampled(sampled, len(problems), out)
    if progress.stopped or progress.failed or sampled.unscored or sampled.unfinished:
        raise typer.Exit(130 if progress.stopped else 1)


def _say_sampled(sampled: SampledShards, problems: int, out: str) -> None:
    progress = sampled.progress
    if not progress.wanted and not progress.saved:
        output.say(f"All {problems} problems have their paths already.")
    else:
        output.say(
            f"Saved {progress.saved} of {progress.wanted} paths in {duration(progress.seconds)} ({progress.tokens} "
            f"tokens; {progress.without_answer} paths without an answer, {progress.truncated} of them cut off); the "
            f"cluster took {duration(sampled.start_seconds)} to start."
        )
    if sampled.blocks:  # else they are the first of a shard that is there
        named = ", ".join(sampled.unfinished[:5]) + (", …" if len(sampled.unfinished) > 5 else "")
        lacking = f"; these are not: {named}" if named else ""
        output.say(f"{sampled.finished} of {sampled.blocks} shards in {out} are finished{lacking}.")
    _say_failed(progress.failed)
    if progress.retries:
        output.say(
            f"  {progress.retries} requests had to be tried again, and may have been paid for twice; the last: "
            f"{output.visible(progress.trouble, 200)}"
        )
    if sampled.unscored:
        reason = next(iter(sampled.unscored.values())).partition(";")[0]
        output.say(f"  {len(sampled.unscored)} problems could not be scored: {output.visible(reason, 200)}.")
    if progress.stopped or progress.failed or sampled.unscored or sampled.unfinished:
        output.say("Run the same command again to go on.")
    else:
        output.say(f"Next: demur import {shlex.quote(out)} -o run.db")


def score(
    folder: str, scores: Mapping[str, ScorerSettings], options: RayOptions, *, json: bool
) -> Mapping[str, ScoringProgress]:
    """Score the shards of a folder."""
    from demur.engine.progress import Progress
    from demur.pipeline.ray.scoring import score_shards

    refuse_other_places(folder)
    states: dict[str, ScoringProgress] = {}
    meter = Meter(quiet=json)

    def seen(state: ScoringProgress) -> None:
        states[state.name] = state
        total = Progress(sum(one.wanted for one in states.values()), 0, sum(one.saved for one in states.values()))
        total.started = state.started
        meter(total)

    with meter, stop_on_sigterm():
        return score_shards(Path(folder), scores, options, watch=seen, say=output.mention).progress


def answers(
    folder: str,
    out: str | None,
    fields: demur.FieldChoice,
    options: RayOptions,
    *,
    extract: str | None,
    from_texts: bool,
    rekey: bool,
    partial: bool,
    quiet: bool,
) -> ClassedShards:
    """Read and compare the answers of the shards of a folder."""
    from demur.pipeline.ray.classing import class_shards

    refuse_other_places(folder)
    if out is not None:
        refuse_other_places(out)
    with Meter(quiet=quiet, counted="shards") as meter, stop_on_sigterm():
        how: dict[str, Any] = {"extract": extract, "from_texts": from_texts, "rekey": rekey, "partial": partial}
        made = None if out is None else Path(out)
        return class_shards(Path(folder), made, fields, **how, options=options, watch=meter, say=output.mention)


def say_of_shards(done: ClassedShards) -> None:
    """What a machine need not know of shards whose answers were read."""
    if done.already:
        output.mention(f"note: {done.already} shards were there already, and are not counted")
    if done.progress.stopped:
        output.mention("Run the same command again to go on.")
        raise typer.Exit(130)


def refuse_other_places(place: str) -> None:
    """Raise unless a place is a folder, or may become one."""
    path = Path(place)
    if "://" in place or path.is_file() or path.suffix in (".db", ".sqlite", ".jsonl", ".parquet", ".csv", ".gz"):
        raise InvalidValue(
            f"--engine ray works on a folder of shards, and {output.visible(place, 200)} is none",
            "name a folder, such as shards/, or leave --engine ray out",
        )


def _say_failed(failed: Mapping[str, Any]) -> None:
    for name, reason in list(failed.items())[:3]:
        output.say(f"  failed: {output.visible(name)}: {output.visible(reason, 200)}")
    if len(failed) > 3:
        output.say(f"  … and {len(failed) - 3} more problems")
