"""Options that several verbs share, and how a verb turns them into votes.

Verbs use the library by its public names, which `demur` imports when they are used: `demur --help` waits for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import demur
from demur.cli.completion import (
    FALLBACKS,
    GUARANTEES,
    NORMALISERS,
    RELATIONS,
    TASKS,
    TIE_BREAKS,
    WEIGHTS,
    among,
    score_names,
)
from demur.cli.flag_groups import flags_given
from demur.cli.output import mention as mention
from demur.cli.output import say_in_the_end
from demur.errors import InvalidValue

if TYPE_CHECKING:
    from demur.calibration import Guarantee

Text = str | None
_LEVEL = re.compile(r"[0-9]{0,18}\.?[0-9]{1,18}(e-?[0-9]{1,2})?|[0-9]{1,18}/[0-9]{1,18}")


def option(flag: str, metavar: str, text: str, *more: str, parser: Any = None, offers: Any = None) -> Any:
    """An option that takes a value; `more` are other names of its flag, `offers` says what Tab completes it to."""
    return typer.Option(flag, *more, metavar=metavar, help=text, parser=parser, autocompletion=offers)


def level(text: str) -> str:
    """A level as it is written, 0.05 or 1/3: read as a number, it would not be exact."""
    if not _LEVEL.fullmatch(text):
        raise typer.BadParameter(f"{text!r} is neither a number nor a fraction such as 1/3")
    return text


def tolerance(text: str) -> str:
    """A share of gold's value as it is written: its bounds are the label rule's to say."""
    level(text.removeprefix("-"))
    return text


def argument(metavar: str, text: str, offers: Any = None) -> Any:
    """An argument that must be given."""
    return typer.Argument(metavar=metavar, help=text, show_default=False, autocompletion=offers)


Pools = Annotated[
    str,
    argument("POOLS", "Pool file (.jsonl, .jsonl.gz, .parquet, .csv), or a run: a .db file or postgresql:// address."),
]
_SOURCES = (
    "Pool file (.jsonl, .jsonl.gz, .parquet, .csv), or a run: a .db file or postgresql:// address; of a cascade, those "
    "of each stage in order."
)
ManyPools = Annotated[list[str], argument("POOLS", _SOURCES)]
_PILOT = "A pilot with labels: a pool file, or a run.  [default: none, plan from alpha alone]"
MaybePools = Annotated[str | None, typer.Argument(metavar="[POOLS]", help=_PILOT, show_default=False)]
Config = Annotated[Path | None, option("--config", "FILE", "Configuration to use.  [default: demur.toml, if there]")]
StorePlace = Annotated[str, argument("STORE", "A .db file, or a postgresql:// address.")]
RunPlace = Annotated[str, option("--out", "RUN", "A .db file, or a postgresql:// address.", "-o")]
RunName = Annotated[Text, option("--run", "NAME", "Which run of the store.  [default: the only one]")]
NewRun = Annotated[str, option("--run", "NAME", "Name of the run.")]
Texts = Annotated[bool, typer.Option("--texts/--no-texts", help="With the texts of the paths.")]
AnswerField = Annotated[Text, option("--answer-field", "NAME", "Path field that holds the answer.  [default: answer]")]
Missing = Annotated[list[str] | None, option("--missing", "VALUE", "A spelling of 'no answer'; repeatable.")]
_RELATIONS = (
    "When two answers are the same: mathematics, text, choice, auto, plain, json or tool-calls; `json:RULES.json` and "
    "`tool-calls:RULES.json` by the schema and rules of a file.  [default: by each problem's task]"
)
Relation = Annotated[Text, option("--relation", "NAME", _RELATIONS, offers=among(RELATIONS))]
_TASKS = (
    "The task of all problems, whatever they name: math, qa, mc, plain, or a data set's name (gsm8k, hotpotqa, mmlu).  "
    "[default: as each problem says, else auto]"
)
Task = Annotated[Text, option("--task", "NAME", _TASKS, offers=among(TASKS))]
_LABEL_SET = "Labels that are chosen, where options have no letters: `--labels True,False,Uncertain`."
LabelSet = Annotated[Text, option("--labels", "NAMES", _LABEL_SET)]
_SCORES = (
    "Score of the paths, `scores[NAME]`; a dotted name (`.logprob`, `meta.judge`) is another field of the path. "
    "Without it: the majority vote."
)
Score = Annotated[Text, option("--score", "NAME", _SCORES, offers=score_names)]
_NORMALISERS = (
    "none, pool_z, pool_minmax, rank, fixed_affine:CENTER,SCALE or fixed_sigmoid:CENTER,SCALE.  "
    "[default: the score's own, or none]"
)
Normaliser = Annotated[Text, option("--normaliser", "SPEC", _NORMALISERS, offers=among(NORMALISERS))]
_WEIGHTS = "uniform, linear or exponential:BETA.  [default: exponential:1 with a score, else uniform]"
Weight = Annotated[Text, option("--weight", "SPEC", _WEIGHTS, offers=among(WEIGHTS))]
_TIES = (
    "What ranks votes of equal confidence: mean_score, mean_score:SCORE, column:FIELD, jitter:SEED, or several with "
    "commas; jitter comes last, unless `none` does.  [default: a score that is no weight, then jitter:0]"
)
TIES_REMAIN = "Leave `--tie-break none` out."
"""What to do against ties."""
TieBreak = Annotated[Text, option("--tie-break", "SPEC", _TIES, offers=among(TIE_BREAKS))]
DropUnscored = Annotated[
    bool, typer.Option("--drop-unscored", help="Leave out pools with a path that has no score; in use they abstain.")
]
FillUnscored = Annotated[float | None, option("--fill-unscored", "VALUE", "The score of paths that have none.")]
_FITTED = "Ids of problems that a learned score or tie-break was fitted on, one per line: they may not calibrate."
FittedOn = Annotated[Path | None, option("--fitted-on", "FILE", _FITTED)]
_LABELS = "Path field with ready-made labels (true/false), instead of gold."
Correct = Annotated[Text, option("--correct", "FIELD", _LABELS)]
_TOLERANCE = "A number within this share of gold's value is right too, such as 0.01; votes are counted as before."
GoldTolerance = Annotated[Any, option("--gold-tolerance", "SHARE", _TOLERANCE, parser=tolerance)]
_CONTAINMENT = "An open answer that holds the words of a gold answer is right too."
GoldContainment = Annotated[bool, typer.Option("--gold-containment", help=_CONTAINMENT)]
_VERDICTS = "Verdicts on what these rules do not decide: a file that `judge-labels` wrote."
LabelVerdicts = Annotated[Path | None, option("--label-verdicts", "FILE", _VERDICTS)]
_LABEL_FILE = "Labels that people gave with `demur label`; votes that have none count as wrong."
LabelFile = Annotated[Path | None, option("--label-file", "FILE", _LABEL_FILE)]
DRAWN = "Draw so many at random by --seed, for people to check."
_CHECKED = (
    "Labels are a judge's; this field holds people's of a random part: true or false in paths, or accepted answers in "
    "problems.  [default: none, or a --label-file of `label --check`]"
)
Checked = Annotated[Text, option("--checked", "FIELD", _CHECKED)]
_USE_JUDGE = (
    "Use the judge's labels of all votes too. With --delta that answers more where the judge is good; without it "
    "checked votes alone do."
)
UseJudge = Annotated[bool, typer.Option("--use-judge", help=_USE_JUDGE)]
_PARTLY = "Some problems have no gold or label: their votes count as wrong."
PartlyLabelled = Annotated[bool, typer.Option("--partly-labelled", help=_PARTLY)]
SizesByChance = Annotated[
    bool, typer.Option("--sizes-by-chance", help="Pools vary in size by chance, or by one rule, in use as here.")
]
_ALLOWED = "Allowed share of confident errors; repeatable.  [default: 0.05]"
Alpha = Annotated[list[Any] | None, option("--alpha", "A", _ALLOWED, parser=level)]
_SHARE = "Promise alpha for all but this share of calibration sets."
Delta = Annotated[Any, option("--delta", "D", _SHARE, parser=level)]
_SMOOTHED = "Spend alpha exactly, with one random draw of the rank (fresh, or from --seed)."
Smoothed = Annotated[bool, typer.Option("--smoothed", help=_SMOOTHED)]
_SELECTIVE = "Promise alpha of the answers given, rather than of all questions; needs --delta."
Selective = Annotated[bool, typer.Option("--selective", help=_SELECTIVE)]
_SETS = "On abstaining, offer answers that hold no right one with at most this probability."
AnswerSetAlpha = Annotated[Any, option("--answer-sets", "A", _SETS, parser=level)]
_SET_SHARE = "Share of the problems that calibrates answer sets, and no threshold.  [default: 0.3]"
SetShare = Annotated[float | None, typer.Option("--set-share", metavar="SHARE", help=_SET_SHARE)]
_SIMULTANEOUS = "Promise every alpha at once, so that one may be chosen after seeing what each brings; needs --delta."
Simultaneous = Annotated[bool, typer.Option("--simultaneous", help=_SIMULTANEOUS)]
_CHOSEN = "The score, weight or tie-break was chosen from J ways to vote by these same labels: the promise pays for it."
ChosenFrom = Annotated[int | None, option("--chosen-from", "J", _CHOSEN)]
_TUNED = "How to vote, from a file that `tune` wrote; the problems it was chosen on are left out."
TunedFile = Annotated[Path | None, option("--tuned", "TUNED", _TUNED)]
_BY_GROUP = "Promise alpha in each group of questions by itself, with a threshold for each."
ByGroup = Annotated[bool, typer.Option("--by-group", help=_BY_GROUP)]
_SMALL = (
    "Questions of groups that are too small for the promise, or new: abstain, or pooled, the threshold of all "
    "together, which promises nothing of them by themselves.  [default: abstain]"
)
SmallGroups = Annotated[Text, option("--small-groups", "WHAT", _SMALL, offers=among(FALLBACKS))]
_GROUP_FIELD = "Problem field that holds the group, or a list of groups.  [default: group]"
GroupField = Annotated[Text, option("--group-field", "NAME", _GROUP_FIELD)]
_POLICY = "A file that `calibrate` wrote."
MaybePolicyFile = Annotated[Path | None, option("--policy", "POLICY", _POLICY)]
_POINT = "Which operating point.  [default: the smallest alpha]"
OneAlpha = Annotated[Any, option("--alpha", "A", _POINT, parser=level)]
_FDR = "Take the file as one batch: expected share of wrong ones among the answers given, at most."
Fdr = Annotated[Any, option("--fdr", "Q", _FDR, parser=level)]
_PARTIAL = "Leave out the problems of a run that still lack paths, which may not be a random part of them."
Partial = Annotated[bool, typer.Option("--partial", help=_PARTIAL)]
_KEYS = "Sign and check policies with the key in this file: at least 32 bytes, such as `openssl rand -hex 32` gives."
KeyFile = Annotated[Path | None, option("--key-file", "FILE", _KEYS)]
_WHICH = "Which guarantee, where a policy holds several for one alpha."
GuaranteeName = Annotated[Text, option("--guarantee", "NAME", _WHICH, offers=among(GUARANTEES))]
_CASCADE = "A file that `cascade` wrote, in place of a policy."
CascadeFile = Annotated[Path | None, option("--cascade", "CASCADE", _CASCADE)]
_STAGES = "A setting of one stage of a cascade, such as `strong.score=judge` or `strong.base_url=URL`; repeatable."
StageSet = Annotated[list[str] | None, option("--stage", "NAME.KEY=VALUE", _STAGES)]
_HELD_OUT = "Share of problems to keep back for a test."
HoldOut = Annotated[float, typer.Option("--hold-out", metavar="SHARE", help=_HELD_OUT)]
Strict = Annotated[bool, typer.Option("--strict", help="Fail where the problems are too few for the promise.")]
_SEPARATION = "How much higher right paths score, in standard deviations."
Separation = Annotated[float, typer.Option("--separation", help=_SEPARATION)]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Seed of every random draw.  [default: 0]")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


@dataclass(frozen=True)
class VoteFlags:
    """How votes are to be made, as far as flags say."""

    score: Score = None
    normaliser: Normaliser = None
    weight: Weight = None
    tie_break: TieBreak = None
    answer_field: AnswerField = None
    missing: Missing = None
    relation: Relation = None
    task: Task = None
    labels: LabelSet = None
    drop_unscored: DropUnscored = False
    fill_unscored: FillUnscored = None
    fitted_on: FittedOn = None
    group_field: GroupField = None

    def fields(self, score: str | None) -> demur.FieldChoice:
        if self.drop_unscored and self.fill_unscored is not None:
            raise InvalidValue("--drop-unscored and --fill-unscored are two ways; choose one")
        unscored = "drop" if self.drop_unscored else self.fill_unscored
        missing = tuple(self.missing or ())
        task = "mc" if self.labels and self.task is None and self.relation is None else self.task
        how = (score, missing, self.relation, unscored, task, label_names(self.labels))
        return demur.FieldChoice(self.answer_field or "answer", *how, group_field=self.group_field or "group")

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
    ) -> tuple[demur.PoolSource, demur.VotedPools]:
        """Votes, made as the flags say and else as the configuration does; labelled, unless that is not asked for.

        Where people `checked` a part, other labels are a judge's: gold is, where all problems have one.
        """
        said = _vote_section(config)
        score = self.score or said.get("score")
        fields = replace(self.fields(score), weights=weights)
        normaliser = self.normaliser or (said.get("normaliser") if score is not None else None)
        facts = texts or needs_facts(fields) or correct.label_field is not None or checked
        source = demur.read_pools(place, run, facts=facts, texts=texts, partial=partial, say=mention)
        weight, tie_break = self.weight or said.get("weight"), self.tie_break or said.get("tie_break")
        recipe = source.recipe(score, normaliser, weight, tie_break).gated(gate)
        fitted_on = [] if self.fitted_on is None else read_ids(self.fitted_on)
        known = {pool.problem.id for pool in source.pools}
        if self.fitted_on is not None and known.isdisjoint(fitted_on):
            mention(f"note: none of the {len(fitted_on)} ids in {self.fitted_on} is that of a problem in {place}")
        if checked and correct.is_plain:
            from demur.pools.labels import labelled_rows

            labelled = len(labelled_rows(source.pools)) == len(source.pools)
        labels: dict[str, Any] = {"labelled": labelled, "partly_labelled": partly_labelled, "correct": correct}
        voted = demur.vote_pools(source, fields, recipe, fitted_on=fitted_on, say=mention, **labels)
        tell_comparison(voted)
        return source, voted


@dataclass(frozen=True)
class LabelFlags:
    """What counts as right, as far as flags say."""

    correct: Correct = None
    gold_tolerance: GoldTolerance = None
    gold_containment: GoldContainment = False
    label_verdicts: LabelVerdicts = None

    def rule(self) -> demur.LabelRule:
        """The rule, its verdicts read."""
        file = self.label_verdicts
        judged = None if file is None else demur.read_verdicts(file, labelling=True)
        return demur.LabelRule(self.correct, self.gold_tolerance, self.gold_containment, verdicts=judged)


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


def load_policy(file: Path | str, key_file: Path | None) -> demur.Policy:
    """A policy, its signature checked where a key is given."""
    return demur.Policy.load(file, key=None if key_file is None else demur.read_key(key_file))


def load_cascade(file: Path | str, key_file: Path | None) -> demur.Cascade:
    """A cascade, its signature checked where a key is given."""
    return demur.Cascade.load(file, key=None if key_file is None else demur.read_key(key_file))


def refuse_beside_cascade(**flags: object) -> None:
    """Raise if flags speak of a policy, where a cascade decides."""
    if given := flags_given(**flags):
        raise InvalidValue(f"{', '.join(given)} and --cascade exclude each other: a cascade holds one promise")


def one_of(places: Sequence[str], what: str) -> str:
    """The one place that was given."""
    if len(places) != 1:
        raise InvalidValue(f"with a {what}, give one file of pools or one run, got {len(places)}")
    return places[0]


def stage_settings(given: Sequence[str] | None, names: Sequence[str], keys: Sequence[str]) -> dict[str, dict[str, str]]:
    """`strong.score=judge` as {strong: {score: judge}}, of stages and settings that there are."""
    settings: dict[str, dict[str, str]] = {}
    for setting in given or ():
        left, equals, value = setting.partition("=")
        name, dot, key = left.rpartition(".")
        if not (equals and dot and value):
            raise InvalidValue(f"--stage takes NAME.KEY=VALUE, such as {names[-1]}.{keys[0]}=…; got {setting!r}")
        if name not in names:
            raise InvalidValue(f"--stage {setting} names no stage of this cascade; its stages are {', '.join(names)}")
        if key not in keys:
            raise InvalidValue(f"--stage {setting}: stages have no setting {key!r} here, but {', '.join(keys)}")
        settings.setdefault(name, {})[key] = value
    return settings


def refuse_beside_policy(**flags: object) -> None:
    """Raise if flags say how votes are made, where a policy says it."""
    if given := flags_given(**flags):
        raise InvalidValue(f"{', '.join(given)} and --policy exclude each other: the policy says how votes are made")


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
) -> demur.VotedPools:
    """Votes, made as a policy was calibrated."""
    if task is not None:
        demur.tasks.chosen(task)  # before the policy, which may name it and may not load it
    ready_made = correct is not None and correct.label_field is not None
    recipe = policy.recipe
    texts = recipe.other_scores != recipe.needs  # lengths are read off them
    facts = needs_facts(demur.FieldChoice.of(policy.description)) or ready_made or texts or recipe.origin is not None
    source = demur.read_pools(place, run, facts=facts, texts=texts, partial=partial, say=mention)
    voted = policy.vote(source.of_task(task), labelled=labelled, correct=correct, say=mention)
    tell_comparison(voted)
    return voted


def tell_comparison(voted: demur.VotedPools) -> None:
    """Say, behind the result, how answers were compared and what they were read as.

    Verdicts on other questions alone are no labels of these.
    """
    judged = [] if voted.labels is None else [verdict for row in voted.labels.judged for verdict in row.values()]
    if judged and not any(judged):
        raise InvalidValue("no verdict is about an answer in this file", "ask for them with `demur judge-labels`")
    if voted.table is not None:
        say_in_the_end(voted.table.comparison())


def told_ties(vote: dict[str, Any]) -> str:
    """What breaks ties, in the words of a flag."""
    ties = vote["tie_break"]
    return ", ".join(map(str, ties)) if isinstance(ties, list) else str(ties or "none")


def needs_facts(fields: demur.FieldChoice) -> bool:
    """Whether a run must be read with more than answers and scores."""
    return fields.answer_field != "answer" or "." in (fields.score or "")


def answer_sets_of(alpha: Any, share: float | None) -> demur.AnswerSets | None:
    """The answer sets that the flags ask for."""
    if alpha is None and share is not None:
        raise InvalidValue("--set-share goes with --answer-sets: the share of problems that calibrates them")
    if alpha is None:
        return None
    return demur.AnswerSets(alpha) if share is None else demur.AnswerSets(alpha, share)


def grouped(guarantees: Sequence[Guarantee], small_groups: str | None, *, by_group: bool) -> list[Guarantee]:
    """The guarantees, for each group by itself where the flags say so."""
    if small_groups is not None and not by_group:
        raise InvalidValue("--small-groups says what becomes of small groups: give --by-group with it")
    if not by_group:
        return list(guarantees)
    if small_groups not in (None, *FALLBACKS):
        raise InvalidValue(f"--small-groups is one of {', '.join(FALLBACKS)}, got {small_groups!r}")
    fallback = small_groups or FALLBACKS[0]
    return [demur.Grouped(one, fallback=fallback) for one in guarantees]  # type: ignore[arg-type]


def guarantees_of(
    alpha: Sequence[Any] | None,
    delta: Any,
    smoothed: bool,
    seed: int | None,
    *,
    selective: bool = False,
    simultaneous: bool = False,
    chosen_from: int | None = None,
) -> list[Guarantee]:
    """The guarantees that the flags ask for."""
    levels, chosen = alpha or [0.05], {"choices": 1 if chosen_from is None else chosen_from}
    asked = flags_given(selective=selective, smoothed=smoothed, simultaneous=simultaneous)
    if len(asked) > 1:
        raise InvalidValue(f"{' and '.join(asked)} are two guarantees; choose one")
    if selective and delta is None:
        raise InvalidValue(
            "--selective promises alpha for all but a share delta of calibration sets: say which with --delta, such "
            "as --delta 0.1; for an average over batches, `demur decide --fdr` needs no delta"
        )
    if simultaneous and delta is None:
        raise InvalidValue(
            "--simultaneous promises every alpha at once for all but a share delta of calibration sets: say which with "
            "--delta, such as --delta 0.1"
        )
    if selective:
        return [demur.Selective(a, delta, **chosen) for a in levels]
    if simultaneous:
        return [demur.Simultaneous(a, delta, **chosen) for a in levels]
    if smoothed and chosen_from is not None:
        raise InvalidValue("--smoothed knows no correction for a choice: leave it or --chosen-from out")
    if delta is not None and smoothed:
        raise InvalidValue("--delta and --smoothed are two guarantees; choose one")
    if delta is not None:
        return [demur.HighProbability(a, delta, **chosen) for a in levels]
    return [demur.Smoothed(a, seed) for a in levels] if smoothed else [demur.Marginal(a, **chosen) for a in levels]
