"""Options that several verbs share, and how a verb turns them into labelled votes. Heavy imports wait until use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from quorate.calibration import Guarantee
    from quorate.labels import Labels
    from quorate.pool_table import PoolTable, Reading
    from quorate.voting import Recipe, Votes

PoolFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="Pool file: JSON lines, plain or .gz.", show_default=False)
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
        "[default: none]",
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


@dataclass(frozen=True)
class Electorate:
    """A pool file, voted on: columns, votes and, where asked for, labels. Rows are the file's, in order."""

    table: PoolTable
    votes: Votes
    labels: Labels | None

    def correct(self) -> Any:
        assert self.labels is not None
        return self.labels.of_votes(self.votes)

    def units(self) -> Any:
        """Which rows belong together: one cluster, or the same question text."""
        from quorate import splits

        return splits.units(self.table.ids, self.table.clusters, self.table.questions)


def refuse_overwriting(out: Path | None, *inputs: Path) -> None:
    """Raise if a result would take the place of what it is made from."""
    from quorate.errors import InvalidValue

    for source in inputs:
        if out is not None and out.exists() and source.exists() and out.samefile(source):
            raise InvalidValue(f"{out} is an input of this command; choose another name for the output")


def reading_of(
    answer_field: str | None, missing: list[str] | None, score: str | None, relation: str | None = None
) -> Reading:
    from quorate.pool_table import Reading

    return Reading(answer_field or "answer", score, tuple(missing or ()), relation)


def recipe_of(reading: Reading, normaliser: str | None, weight: str | None, tie_break: str | None) -> Recipe:
    """The recipe that the flags describe."""
    from quorate.errors import InvalidValue
    from quorate.normalisers import parse_normaliser
    from quorate.tie_breaks import parse_tie_break
    from quorate.voting import Recipe
    from quorate.weights import parse_weight

    if normaliser is not None and reading.score is None:
        raise InvalidValue("--normaliser does nothing without --score")
    return Recipe(
        weight=parse_weight(weight or ("uniform" if reading.score is None else "exponential")),
        normaliser=parse_normaliser(normaliser or "none"),
        tie_break=None if tie_break is None else parse_tie_break(tie_break),
        score=reading.score,
        upstream=reading.describe(),
    )


def open_pools(
    file: Path, reading: Reading, recipe: Recipe, *, correct: str | None = None, labelled: bool
) -> Electorate:
    """Read a file, hold the vote and, if asked for, find out which votes are right."""
    from quorate.files import read_pools
    from quorate.labels import read_labels, refuse_labels_as_column, refuse_labels_as_score
    from quorate.pool_table import named_pipeline, read_column, read_table
    from quorate.tie_breaks import Column
    from quorate.voting import vote_again

    pools = read_pools(file)
    table = read_table(pools, reading)
    recipe = replace(recipe, upstream={**recipe.upstream, **named_pipeline(pools)})
    _mention_spellings(table)
    column = read_column(pools, recipe.tie_break.name) if isinstance(recipe.tie_break, Column) else None
    votes = vote_again(recipe, table.answers, table.scores, tie_break=column, ids=table.ids)
    labels = None
    if labelled:
        labels = read_labels(pools, table, correct)
        refuse_labels_as_score(table, labels)
        if column is not None:
            refuse_labels_as_column(column, labels.of_votes(votes), str(recipe.tie_break))
        if labels.conflicts:
            typer.echo(
                f"warning: in {labels.conflicts} problems one answer has both labels; it counts as wrong",
                err=True,
            )
    return Electorate(table, votes, labels)


def _mention_spellings(table: PoolTable) -> None:
    """Point at answers that look like "no answer", and at spellings of it that never occur."""
    for spelling, paths in table.suspects.items():
        typer.echo(
            f"note: {paths} paths answer {spelling!r}; if that means no answer, add --missing {spelling!r}", err=True
        )
    for spelling in table.unused_missing:
        typer.echo(f"note: no path answers {spelling!r}, as --missing has it", err=True)


def guarantees_of(alpha: list[float] | None, delta: float | None, smoothed: bool, seed: int | None) -> list[Guarantee]:
    """The guarantees that the flags ask for."""
    from quorate.calibration import HighProbability, Marginal, Smoothed
    from quorate.errors import InvalidValue

    levels = alpha or [0.05]
    if delta is not None and smoothed:
        raise InvalidValue("--delta and --smoothed are two guarantees; choose one")
    if delta is not None:
        return [HighProbability(a, delta) for a in levels]
    return [Smoothed(a, seed) for a in levels] if smoothed else [Marginal(a) for a in levels]
