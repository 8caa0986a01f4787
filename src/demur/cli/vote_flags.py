"""Flags that say how votes are made and what counts as right, and the votes they make."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import demur
from demur.cli import options
from demur.cli.flag_groups import flags_given
from demur.cli.output import mention, say_in_the_end, visible
from demur.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from demur.voting.key import Component


@dataclass(frozen=True)
class VoteFlags:
    """How votes are to be made, as far as flags say."""

    score: options.Score = None
    normaliser: options.Normaliser = None
    weight: options.Weight = None
    tie_break: options.TieBreak = None
    answer_field: options.AnswerField = None
    missing: options.Missing = None
    relation: options.Relation = None
    task: options.Task = None
    labels: options.LabelSet = None
    drop_unscored: options.DropUnscored = False
    fill_unscored: options.FillUnscored = None
    fitted_on: options.FittedOn = None
    group_field: options.GroupField = None
    stop: options.StopRule = None
    wave: options.Wave = None

    def fields(self, score: str | None) -> demur.FieldChoice:
        if self.drop_unscored and self.fill_unscored is not None:
            raise InvalidValue("--drop-unscored and --fill-unscored are two ways; choose one")
        unscored = "drop" if self.drop_unscored else self.fill_unscored
        missing = tuple(self.missing or ())
        task = "mc" if self.labels and self.task is None and self.relation is None else self.task
        how = (score, missing, self.relation, unscored, task, label_names(self.labels))
        return demur.FieldChoice(self.answer_field or "answer", *how, group_field=self.group_field or "group")

    def vote_settings(self, config: Path | None) -> tuple[str | None, dict[str, Any]]:
        """The score, and how its numbers become a vote, as the flags say and else as the configuration does."""
        said = _vote_section(config)
        score = self.score or said.get("score")
        normaliser = self.normaliser or (said.get("normaliser") if score is not None else None)
        weight, tie_break = self.weight or said.get("weight"), self.tie_break or said.get("tie_break")
        return score, {"normaliser": normaliser, "weight": weight, "tie_break": tie_break}

    def vote(
        self,
        place: str,
        run: str | None,
        config: Path | None,
        correct: demur.LabelRule,
        *,
        texts: bool = False,
        partial: bool = False,
        labelled: bool = True,
        partly_labelled: bool = False,
        checked: bool = False,
        weights: demur.DensityRatio | str | None = None,
        gate: demur.OutlierGate | None = None,
        stage: str | None = None,
    ) -> tuple[demur.PoolSource, demur.VotedPools]:
        """Votes, made as the flags say and else as the configuration does; labelled, unless that is not asked for.

        Where people `checked` a part, other labels are a judge's: gold is, where all problems have one. `stage` is the
        name of a cascade's stage.
        """
        from demur.voting.key import key_of

        score, how = self.vote_settings(config)
        fields, tie_break = replace(self.fields(score), weights=weights), how["tie_break"]
        more = correct.label_field is not None or checked
        wanted = wanted_of(fields, key_of(tie_break, idle_score=False, told_apart=False), texts=texts, facts=more)
        source = demur.read_pools(place, run, **wanted, partial=partial, say=mention)
        stop = stopping_flags(self.stop, self.wave)
        source = source.stopped_by(stop, fields, partial=partial, say=mention)
        if labelled:
            source, correct = source.readable(
                fields, correct, partly_labelled=partly_labelled or checked, say=say_in_the_end
            )
        recipe = source.recipe(score, **how).gated(gate)
        fitted_on = [] if self.fitted_on is None else read_ids(self.fitted_on)
        if self.fitted_on is not None and source.ids.isdisjoint(fitted_on):
            mention(f"note: none of the {len(fitted_on)} ids in {self.fitted_on} is that of a problem in {place}")
        if checked and correct.is_plain:
            from demur.pools.labels import labelled_rows

            labelled = len(labelled_rows(source.pools)) == len(source.pools)
        labels: dict[str, Any] = {"labelled": labelled, "partly_labelled": partly_labelled, "correct": correct}
        voted = demur.vote_pools(source, fields, recipe, fitted_on=fitted_on, say=mention, **labels)
        tell_comparison(voted, stage)
        return source, voted


@dataclass(frozen=True)
class LabelFlags:
    """What counts as right, as far as flags say."""

    correct: options.Correct = None
    gold_tolerance: options.GoldTolerance = None
    gold_containment: options.GoldContainment = False
    label_verdicts: options.LabelVerdicts = None
    drop_unreadable: options.DropUnreadable = False

    def rule(self) -> demur.LabelRule:
        """The rule, its verdicts read."""
        file = self.label_verdicts
        judged = None if file is None else demur.read_verdicts(file, labelling=True)
        dropped = 0 if self.drop_unreadable else None
        return demur.LabelRule(
            self.correct, self.gold_tolerance, self.gold_containment, verdicts=judged, dropped=dropped
        )


def stopping_flags(stop: str | None, wave: int | None) -> demur.Stopping | None:
    """`--stop RULE --wave N`; None where no rule is named."""
    if stop is None and wave is not None:
        raise InvalidValue(f"--wave {wave} is for a stopping rule here; name one with --stop")
    if stop is None:
        return None
    if "," in stop:
        raise InvalidValue(f"--stop takes one rule here, got {stop!r:.60}", "compare several with `demur plan --stop`")
    from demur.stopping import parse_stopping

    return parse_stopping(stop, wave)


def label_names(labels: str | None) -> tuple[str, ...]:
    """The names that a flag lists; raises where they are none."""
    if labels is None:
        return ()
    names = tuple(name.strip() for name in labels.split(","))
    demur.answers.Asked.of(labels=names)
    return names


def read_ids(file: Path) -> list[str]:
    """Ids of problems, one per line; of a pool or question file, its ids."""
    from demur.files import strict_json
    from demur.files.headers import is_header
    from demur.files.inputs import text_of

    lines = [line.strip() for line in text_of(file, InvalidValue).splitlines() if line.strip()]
    try:
        records = [strict_json.parse(line) if line.startswith("{") else {"id": line} for line in lines]
        return [str(record["id"]) for record in records if not is_header(record)]
    except (ValueError, KeyError) as error:
        raise InvalidValue(f"cannot read ids of problems from {file}: {error}") from None


def _vote_section(config: Path | None) -> dict[str, str]:
    """The [vote] section of a configuration; nothing, and no heavy import, where there is no such file."""
    if config is None and not Path("demur.toml").is_file():
        return {}
    from demur.pipeline.config import read_config

    said = read_config(config)
    section = {name: getattr(said, name) for name in ("score", "normaliser", "weight", "tie_break")}
    return {name: value for name, value in section.items() if value is not None}


def vote_by_policy(
    place: str,
    run: str | None,
    policy: demur.Policy,
    *,
    labelled: bool,
    partial: bool,
    correct: demur.LabelRule | None = None,
    task: str | None = None,
    stage: str | None = None,
    stop: demur.Stopping | None = None,
) -> demur.VotedPools:
    """Votes, made as a policy was calibrated; `stage` is the name of a cascade's stage."""
    if task is not None:
        demur.tasks.chosen(task)  # before the policy, which may name it and may not load it
    ready_made = correct is not None and correct.label_field is not None
    wanted = wanted_of(demur.FieldChoice.of(policy.description), policy.recipe.key, facts=ready_made)
    source = demur.read_pools(place, run, **wanted, partial=partial, say=mention).of_task(task)
    if stop is not None and policy.stopping is not None and policy.stopping.most is not None:
        stop = stop.at_most(policy.stopping.most)
    source = source.stopped_by(stop, demur.FieldChoice.of(policy.description), partial=partial, say=mention)
    if labelled and correct is not None:
        source, correct = source.readable(demur.FieldChoice.of(policy.description), correct, say=say_in_the_end)
    voted = policy.vote(source, labelled=labelled, correct=correct, say=mention)
    tell_comparison(voted, stage)
    return voted


def tell_comparison(voted: demur.VotedPools, stage: str | None = None) -> None:
    """Say, behind the result, how answers were compared and what they were read as, and of which stage.

    Verdicts on other questions alone are no labels of these.
    """
    judged = [] if voted.labels is None else [verdict for row in voted.labels.judged for verdict in row.values()]
    if judged and not any(judged):
        raise InvalidValue("no verdict is about an answer in this file", "ask for them with `demur judge-labels`")
    if voted.table is not None:
        told = voted.table.comparison()
        say_in_the_end(told if stage is None else f"{visible(stage, 40)}: {told}")


def told_ties(vote: dict[str, Any]) -> str:
    """What breaks ties, in the words of a flag."""
    ties = vote["tie_break"]
    return ", ".join(map(str, ties)) if isinstance(ties, list) else str(ties or "none")


def needs_facts(fields: demur.FieldChoice) -> bool:
    """Whether a run must be read with more than answers and scores."""
    return fields.answer_field != "answer" or "." in (fields.score or "")


def wanted_of(
    fields: demur.FieldChoice, key: Iterable[Component], *, texts: bool = False, facts: bool = False
) -> dict[str, Any]:
    """What to read of a run besides answers and scores, for votes with such a key."""
    needs = {name for part in key for name in part.needs}
    texts |= "length" in needs  # lengths are read off them
    facts |= any("." in name for name in needs) or any(part.origin is not None for part in key)
    return {"facts": facts or texts or needs_facts(fields), "texts": texts}


def refuse_beside_policy(**flags: object) -> None:
    """Raise if flags say how votes are made, where a policy says it."""
    if given := flags_given(**flags):
        raise InvalidValue(f"{', '.join(given)} and --policy exclude each other: the policy says how votes are made")
