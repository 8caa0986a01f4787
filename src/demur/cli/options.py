"""Options that several verbs share, and how a verb turns them into votes.

Verbs use the library by its public names, which `demur` imports when they are used: `demur --help` waits for nothing.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demur.cli.completion import (
    FALLBACKS,
    GUARANTEES,
    NORMALISERS,
    RELATIONS,
    STOP_RULES,
    TASKS,
    TIE_BREAKS,
    WEIGHTS,
    among,
    score_names,
)
from demur.cli.output import mention as mention

if TYPE_CHECKING:
    pass

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


def down_to(text: str) -> Any:
    """Where labelling ends, as it is written."""
    from demur import DownTo
    from demur.errors import InvalidValue

    try:
        return DownTo.of(text)
    except InvalidValue as error:
        raise typer.BadParameter(str(error)) from None


def argument(metavar: str, text: str, offers: Any = None) -> Any:
    """An argument that must be given."""
    return typer.Argument(metavar=metavar, help=text, show_default=False, autocompletion=offers)


Pools = Annotated[
    str,
    argument(
        "POOLS",
        "Pool file (.jsonl, .jsonl.gz, .parquet, .csv), a folder of Parquet files or s3:// address, or a run: a .db "
        "file or postgresql:// address.",
    ),
]
_SOURCES = (
    "Pool file (.jsonl, .jsonl.gz, .parquet, .csv), a folder of Parquet files or s3:// address, or a run: a .db file "
    "or postgresql:// address; of a cascade, those of each stage in order."
)
ManyPools = Annotated[list[str], argument("POOLS", _SOURCES)]
_PILOT = "A pilot with labels: a pool file, or a run.  [default: none, plan from alpha alone]"
MaybePools = Annotated[str | None, typer.Argument(metavar="[POOLS]", help=_PILOT, show_default=False)]
Config = Annotated[Path | None, option("--config", "FILE", "Configuration to use.  [default: demur.toml, if there]")]
StorePlace = Annotated[str, argument("STORE", "A .db file, or a postgresql:// address.")]
ServicePlace = Annotated[
    str, option("--store", "FILE|URL", "Store of the service: a .db file, or a postgresql:// address.")
]
RunPlace = Annotated[str, option("--out", "RUN", "A .db file, or a postgresql:// address.", "-o")]
POOLS_WRITTEN = "A .jsonl, .jsonl.gz or .parquet file; or an s3:// address that ends in .parquet."
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
    "What ranks votes of equal confidence: mean_score, mean_score:SCORE, column:FIELD, fewer_paths, more_paths, "
    "jitter:SEED, or several with commas; jitter comes last, unless `none` does.  [default: with --stop fewer_paths; a "
    "score that is no weight; then jitter:0]"
)
TIES_REMAIN = "Leave `--tie-break none` out."
"""What to do against ties."""
TieBreak = Annotated[Text, option("--tie-break", "SPEC", _TIES, offers=among(TIE_BREAKS))]
_STOP = (
    "A rule that ends pools when they have paths enough, in use as here: beta:P, agreement:W or fixed. `sample` draws "
    "by it, other verbs replay it on pools that have all their paths; `plan` compares several, with commas."
)
StopRule = Annotated[Text, option("--stop", "RULE", _STOP, offers=among(STOP_RULES))]
_WAVE = (
    "Paths asked for at a time: a stopping rule is looked at behind each wave (of 4, unless said). Without a rule, ask "
    "for no more once the decision of all paths is certain."
)
Wave = Annotated[int | None, typer.Option("--wave", help=_WAVE)]
_UNREADABLE = (
    "Leave out problems whose gold or label is missing or cannot be read, and say how many; so does the promise."
)
DropUnreadable = Annotated[bool, typer.Option("--drop-unreadable", help=_UNREADABLE)]
_SEEN = "Leave out problems that calibrated the policy, known by id, question and cluster, and say how many."
DropSeen = Annotated[bool, typer.Option("--drop-seen", help=_SEEN)]
DropUnscored = Annotated[
    bool, typer.Option("--drop-unscored", help="Leave out pools with a path that has no score; in use they abstain.")
]
FillUnscored = Annotated[float | None, option("--fill-unscored", "VALUE", "The score of paths that have none.")]
_FITTED = "Ids of problems that a learned score or tie-break was fitted on, one per line: they may not calibrate."
FittedOn = Annotated[Path | None, option("--fitted-on", "FILE", _FITTED)]
_LABELS = "Path field with ready-made labels (true/false, 1/0 or yes/no), instead of gold."
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
_DOWN_TO = (
    "All votes above this confidence are labelled (0.8), or the most confident share (40%), and no others: said before "
    "the first label, it lets `decide --fdr` take them."
)
DownTo = Annotated[Any, option("--down-to", "KEY", _DOWN_TO, parser=down_to)]
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
_SEPARATION = "How much higher right paths score, in standard deviations.  [default: 0.7]"
Separation = Annotated[float | None, typer.Option("--separation", help=_SEPARATION)]
USUAL_SEPARATION = 0.7
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Seed of every random draw.  [default: 0]")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
