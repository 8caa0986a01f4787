"""Options that several verbs share, and how a verb turns them into votes. Heavy imports wait until use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from demur.calibration import Guarantee
    from demur.electorate import Electorate, Source
    from demur.policy import Policy
    from demur.pool_table import Reading

Pools = Annotated[
    str,
    typer.Argument(
        metavar="POOLS", help="Pool file (JSON lines, plain or .gz), or a run: a .db file or postgresql:// address.",
        show_default=False,
    ),
]  # fmt: skip
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Description to use.  [default: demur.toml, if there]")
]
StorePlace = Annotated[
    str, typer.Argument(metavar="STORE", help="A .db file, or a postgresql:// address.", show_default=False)
]
RunName = Annotated[
    str | None, typer.Option("--run", metavar="NAME", help="Which run of the store.  [default: the only one]")
]
AnswerField = Annotated[
    str | None,
    typer.Option("--answer-field", metavar="NAME", help="Path field that holds the answer.  [default: answer]"),
]
Missing = Annotated[
    list[str] | None, typer.Option("--missing", metavar="VALUE", help="A spelling of 'no answer'; repeatable.")
]
Relation = Annotated[
    str | None,
    typer.Option(
        "--relation", metavar="NAME", help="When two answers are the same: mathematics, text, choice or plain.  "
        "[default: by each problem's task]",
    ),
]  # fmt: skip
Score = Annotated[
    str | None,
    typer.Option(
        "--score", metavar="NAME", help="Score of the paths, `scores[NAME]`; a dotted name (`.logprob`, `meta.judge`) "
        "is another field of the path. Without it: the majority vote.",
    ),
]  # fmt: skip
Normaliser = Annotated[
    str | None,
    typer.Option(
        "--normaliser", metavar="SPEC",
        help="none, pool_z, pool_minmax, rank, fixed_affine:CENTER,SCALE or fixed_sigmoid:CENTER,SCALE.  "
        "[default: the score's own, or none]",
    ),
]  # fmt: skip
Weight = Annotated[
    str | None,
    typer.Option(
        "--weight", metavar="SPEC", help="uniform, linear or exponential:BETA.  "
        "[default: exponential:1 with a score, else uniform]",
    ),
]  # fmt: skip
TieBreak = Annotated[
    str | None,
    typer.Option("--tie-break", metavar="SPEC", help="Secondary key: mean_score, jitter:SEED or column:FIELD."),
]
Correct = Annotated[
    str | None,
    typer.Option("--correct", metavar="FIELD", help="Path field with ready-made labels (true/false), instead of gold."),
]
Alpha = Annotated[
    list[float] | None,
    typer.Option("--alpha", metavar="A", help="Allowed share of confident errors; repeatable.  [default: 0.05]"),
]
Delta = Annotated[
    float | None,
    typer.Option("--delta", metavar="D", help="Promise alpha for all but this share of calibration sets."),
]
Smoothed = Annotated[
    bool,
    typer.Option("--smoothed", help="Spend alpha exactly, with one random draw of the rank (fresh, or from --seed)."),
]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Seed of every random draw.  [default: 0]")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def refuse_overwriting(out: Path | None, *inputs: str | Path) -> None:
    """Raise if a result would take the place of what it is made from."""
    from demur.errors import InvalidValue

    for source in map(Path, inputs):
        if out is not None and out.exists() and source.exists() and out.samefile(source):
            raise InvalidValue(f"{out} is an input of this command; choose another name for the output")


def reading_of(
    answer_field: str | None, missing: list[str] | None, score: str | None, relation: str | None = None
) -> Reading:
    from demur.pool_table import Reading

    return Reading(answer_field or "answer", score, tuple(missing or ()), relation)


def open_source(place: str, run: str | None = None, *, facts: bool = True, texts: bool = False) -> Source:
    """The pools of a file, or those of a run that are whole; without `facts`, only its answers and scores.

    A file's pools have their texts; a run's come if asked for.
    """
    from demur.electorate import Source
    from demur.errors import InvalidValue, StoreError

    if "://" not in place and not _is_store(place):
        from demur.files import read_pools

        if run is not None:
            raise InvalidValue(f"--run names a run of a store, and {place} is a pool file")
        return Source(read_pools(place))
    from demur.store import Store

    with Store(place) as store:
        held = store.run(run)
        pools = held.pools(facts=facts, with_texts=texts)
        if not pools:
            raise StoreError(f"the run {held.name!r} holds no whole pool yet; sample it first")
        lacking = held.describe()["problems"] - len(pools)
        if lacking:
            _mention(
                f"note: {lacking} problems of the run {held.name!r} lack paths and are left out; sample them first"
            )
        return Source(pools, held.pipeline, held.scorers(), held.flags())


def _is_store(place: str) -> bool:
    """Looked at without importing a database library, which a pool file does not need."""
    path = Path(place)
    if path.suffix in (".db", ".sqlite", ".sqlite3"):
        return True
    try:
        with path.open("rb") as stream:
            return stream.read(16) == b"SQLite format 3\x00"
    except OSError:
        return False


def open_labelled(
    place: str,
    run: str | None,
    reading: Reading,
    normaliser: str | None,
    weight: str | None,
    tie_break: str | None,
    correct: str | None,
    config: Path | None = None,
) -> Electorate:
    """Labelled votes, made as the flags say, and else as the description does."""
    from dataclasses import replace

    from demur.electorate import hold_vote

    described = read_vote(config)
    reading = replace(reading, score=reading.score or described.get("score"))
    if reading.score is not None:
        normaliser = normaliser or described.get("normaliser")
    weight, tie_break = weight or described.get("weight"), tie_break or described.get("tie_break")
    source = open_source(place, run, facts=_needs_facts(reading) or correct is not None)
    recipe = source.recipe(reading, normaliser, weight, tie_break)
    return hold_vote(source, reading, recipe, labelled=True, correct=correct, say=_mention)


def read_vote(config: Path | None) -> dict[str, str]:
    """The [vote] section of a description; nothing, and no heavy import, where there is no such file."""
    if config is None and not Path("demur.toml").is_file():
        return {}
    from demur.description import read_description

    described = read_description(config)
    held = {name: getattr(described, name) for name in ("score", "normaliser", "weight", "tie_break")}
    return {name: value for name, value in held.items() if value is not None}


def open_by_policy(
    place: str, run: str | None, policy: Policy, *, labelled: bool, correct: str | None = None
) -> Electorate:
    """Votes, made as a policy was calibrated."""
    from demur.electorate import hold_vote, reading_of_policy

    reading = reading_of_policy(policy)
    source = open_source(place, run, facts=_needs_facts(reading) or correct is not None)
    return hold_vote(source, reading, policy.recipe, labelled=labelled, correct=correct, say=_mention)


def _needs_facts(reading: Reading) -> bool:
    return reading.answer_field != "answer" or "." in (reading.score or "")


def _mention(text: str) -> None:
    typer.echo(text, err=True)


def guarantees_of(alpha: list[float] | None, delta: float | None, smoothed: bool, seed: int | None) -> list[Guarantee]:
    """The guarantees that the flags ask for."""
    from demur.calibration import HighProbability, Marginal, Smoothed
    from demur.errors import InvalidValue

    levels = alpha or [0.05]
    if delta is not None and smoothed:
        raise InvalidValue("--delta and --smoothed are two guarantees; choose one")
    if delta is not None:
        return [HighProbability(a, delta) for a in levels]
    return [Smoothed(a, seed) for a in levels] if smoothed else [Marginal(a) for a in levels]
