"""Votes made as `demur tune` chose, for the verbs that calibrate on them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import demur
from demur.cli import options, output, vote_flags
from demur.cli.flag_groups import flags_given
from demur.errors import InvalidValue


def vote_as_tuned(
    tuned: demur.Tuned, place: str, run: str | None, flags: vote_flags.VoteFlags, *, partial: bool, **labels: Any
) -> tuple[demur.PoolSource, demur.VotedPools]:
    """Votes on all problems of a file or run, those that the way to vote was chosen on among them."""
    if given := flags_given(**{**asdict(flags), "stop": None, "wave": None}):
        raise InvalidValue(
            f"{', '.join(given)} and --tuned exclude each other: the file says how votes are made; tune again with it"
        )
    ready_made = labels["correct"].label_field is not None
    wanted = vote_flags.wanted_of(demur.FieldChoice.of(tuned.description), tuned.recipe.key, facts=ready_made)
    source = demur.read_pools(place, run, **wanted, partial=partial, say=options.mention)
    stop = vote_flags.stopping_flags(flags.stop, flags.wave)
    source = source.stopped_by(stop, demur.FieldChoice.of(tuned.description), partial=partial, say=options.mention)
    fields, partly = demur.FieldChoice.of(tuned.description), labels["partly_labelled"]
    if labels["labelled"]:
        source, labels["correct"] = source.readable(
            fields, labels["correct"], partly_labelled=partly, say=output.say_in_the_end
        )
    voted = tuned.vote(source, say=options.mention, **labels)
    vote_flags.tell_comparison(voted)
    return source, voted


def tell_left_out(tuned: demur.Tuned, every: int, left: int) -> str:
    """What was left out of the calibration, in words."""
    if every == left:
        return f"None of these problems is one of the {len(tuned.problems.ids)} that the way to vote was chosen on."
    return (
        f"{every - left} problems that the way to vote was chosen on are left out: {tuned.best.name}, from "
        f"{len(tuned.rows)} ways."
    )
