"""What ranks votes: a tuple of named numbers, compared lexicographically, of which a threshold is one value.

    (Share, Jitter)                       the confidence ν; among equals a draw
    (Share, MeanScore, Jitter)            before the draw, the mean score of the winning paths
    (Share, FewerPaths, Jitter)           where a stopping rule ended pools, those that it ended sooner come first

Every unanimous pool has confidence 1 whatever the weights, so on easy data a large part of the votes is one tie, and
calibration can only keep or drop it whole (theory, departure A). So every key ends in jitter, unless told otherwise or
where nothing tells problems apart. The first component lies in [0, 1], and 0 is never answered; those behind it break
ties. All of them are part of the calibrated statistic: never applied after calibration, and label-blind. One that was
fitted on labelled problems says on which, and those may not calibrate.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.errors import InvalidValue
from demur.voting._exact_sums import Floats, row_means
from demur.voting.codes import CodedAnswers, taken
from demur.voting.guards import refuse_booleans
from demur.voting.problems import Problems
from demur.voting.rows import ScoreRows
from demur.voting.sources import ProblemSources

Winners = NDArray[np.int64]
NO_JITTER = -1.0
"""Below every draw: what is not known by a question or an id comes last among its equals."""
LENGTH = "length"
"""The column of how many characters the text of each path has."""
NONE = "none"
"""At the end of a tie-break: no jitter behind it."""


@dataclass(frozen=True, eq=False)
class Origins:
    """Where paths come from: the model, the prompt, the run."""

    codes: NDArray[np.intp]
    """Which of the names, in the shape of the table; −1 where that is not known."""
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Counted:
    """A table of pools whose votes are counted: what a component of the key may look at."""

    table: CodedAnswers
    winner: Winners
    """The winning code of each pool, −1 where it has no answer."""
    confidence: Floats
    """ν."""
    scores: Floats | None
    """The scores that the vote was given, in the shape of the table."""
    sources: ProblemSources
    """What tells problems apart, for what is drawn at random: see `sources_of`."""
    columns: Mapping[str, Floats] = field(default_factory=dict)
    """Other numbers of the paths by name, in the shape of the table; NaN where a path has none."""
    origins: Origins | None = None
    asked: Sequence[str | None] | None = None
    """Question texts, where they are known."""

    def take(self, rows: NDArray[np.intp]) -> Counted:
        """Some of the pools, in that order."""
        origins = None if self.origins is None else Origins(self.origins.codes[rows], self.origins.names)
        return Counted(
            self.table.take(rows),
            self.winner[rows],
            self.confidence[rows],
            taken(self.scores, rows),
            taken(self.sources, rows),
            {name: column[rows] for name, column in self.columns.items()},
            origins,
            taken(self.asked, rows),
        )


@dataclass(frozen=True, eq=False)
class Beside:
    """What else is known of pools besides answers and scores, for components that look at it; as callers have it."""

    columns: Mapping[str, Any] = field(default_factory=dict)
    """Other numbers of the paths by name, pool by pool; None or NaN where a path has none."""
    origins: Mapping[str, Any] = field(default_factory=dict)
    """Where each path comes from, pool by pool, by the name of the field that says so; None where that is not known."""
    asked: Sequence[str | None] | None = None
    """Question texts."""

    def take(self, rows: NDArray[np.intp]) -> Beside:
        """Of some of the pools, in that order."""
        columns, origins = (_taken(by_name, rows) for by_name in (self.columns, self.origins))
        return Beside(columns, origins, taken(self.asked, rows))

    def counted(
        self,
        table: CodedAnswers,
        winner: Winners,
        confidence: Floats,
        scores: Floats | None,
        sources: ProblemSources,
        needs: Sequence[str],
        origin: str | None = None,
    ) -> Counted:
        """What components look at, each column in the shape of the table."""
        lacking = [name for name in needs if name not in self.columns]
        if lacking:
            raise InvalidValue(
                f"the key of these votes needs {lacking[0]!r} of every path, and it is not given",
                "give it in {columns}",
            )
        columns = {name: in_shape(self.columns[name], table, name) for name in needs}
        if origin is not None and origin not in self.origins:
            raise InvalidValue(
                f"the key of these votes looks at where paths come from ({origin}), and that is not given",
                "give it as {origins}",
            )
        origins = None if origin is None else _origins(self.origins[origin], table)
        return Counted(table, winner, confidence, scores, sources, columns, origins, self.asked)


def in_shape(rows: Any, table: CodedAnswers, name: str) -> Floats:
    """One number per path in the shape of the table; NaN where a path has none, and past the end of smaller pools."""
    if isinstance(rows, ScoreRows) and np.array_equal(rows.sizes, table.n_paths):
        return rows.padded(np.nan)
    refuse_booleans(rows, name)
    values: Floats = np.full(table.codes.shape, np.nan)
    pools = [np.asarray([np.nan if value is None else value for value in row], dtype=np.float64) for row in rows]
    sizes = table.n_paths
    if len(pools) != len(table) or any(len(row) != size for row, size in zip(pools, sizes.tolist(), strict=True)):
        raise InvalidValue(f"{name} must hold one number per path, in the shape of answers")
    if pools:
        values[np.arange(table.codes.shape[1]) < sizes[:, None]] = np.concatenate(pools)
    if np.isinf(values).any():
        raise InvalidValue(f"{name} must be finite")
    return values


def _taken(by_name: Mapping[str, Any], rows: NDArray[np.intp]) -> Mapping[str, Any]:
    """Some rows of each column; what is read only when it is asked for stays so."""
    if isinstance(by_name, dict):
        return {name: taken(column, rows) for name, column in by_name.items()}
    return by_name.take(rows)  # type: ignore[attr-defined, no-any-return]


def _origins(rows: Sequence[Sequence[str | None]], table: CodedAnswers) -> Origins:
    if [len(row) for row in rows] != table.n_paths.tolist():
        raise InvalidValue("origins must name where each path comes from, in the shape of answers")
    names = sorted({name for row in rows for name in row if name is not None})
    place = {name: at for at, name in enumerate(names)}
    codes = np.full(table.codes.shape, -1, dtype=np.intp)
    for at, row in enumerate(rows):
        codes[at, : len(row)] = [-1 if name is None else place[name] for name in row]
    return Origins(codes, tuple(names))


class Component(ABC):
    """One number per pool; larger is more confident."""

    name: str
    spec: str
    """What it is, with its version, in one word: two of the same spec give the same numbers."""
    fitted_on: Problems = Problems()
    """The problems whose labels shaped it."""
    needs: tuple[str, ...] = ()
    """Names of the numbers of paths that it looks at, besides the scores of the vote."""
    origin: str | None = None
    """The field of paths that says where they come from, where it looks at that."""
    looks_at_scores: bool = False
    """Whether it looks at the scores of the vote."""

    @abstractmethod
    def of(self, counted: Counted) -> Floats: ...

    def document(self) -> Any:
        """As plain values, which `parse_component` reads back."""
        return self.spec

    def __repr__(self) -> str:
        return self.spec


class Share(Component):
    """The confidence ν: the winner's share of all weight."""

    name, spec = "share", "share@1"

    def of(self, counted: Counted) -> Floats:
        return counted.confidence


class MeanScore(Component):
    """The mean raw score of the paths that gave the winning answer; −inf where none of them has one.

    Of the scores that the vote was given, or of others by name.
    """

    def __init__(self, of: str | None = None) -> None:
        self.score = of
        self.name = "mean_score" if of is None else f"mean_score:{of}"
        self.spec = "mean_score@1" if of is None else f"mean_score@1:{of}"
        self.needs = () if of is None else (of,)
        self.looks_at_scores = of is None

    def of(self, counted: Counted) -> Floats:
        scores = counted.scores if self.score is None else counted.columns.get(self.score)
        if scores is None:
            told = "scores, and the vote has none" if self.score is None else f"the score {self.score!r} of the paths"
            raise InvalidValue(f"tie_break {self.name} needs {told}")
        means, table, winner = np.empty(len(counted.table)), counted.table, counted.winner
        for rows, width in table.blocks():
            block = scores[rows, :width]
            won = (table.codes[rows, :width] == winner[rows, None]) & (winner[rows, None] >= 0) & ~np.isnan(block)
            paths = won.sum(axis=1)
            means[rows] = np.where(paths > 0, row_means(np.where(won, block, 0.0), np.maximum(paths, 1)), -np.inf)
        return means


class Jitter(Component):
    """A fixed pseudo-random number per problem, drawn from its question and the seed: breaks ties, knows nothing.

    The same question draws the same number wherever it is asked, and others draw others. A problem of which neither a
    question nor an id is known draws none, and comes last among its equals.

    Version 3 draws from the folded question (`records.folded`), so that nobody draws again by one question mark more.
    Version 2, which older policies have, draws from the question as it is written, blanks aside.
    """

    name = "jitter"

    def __init__(self, seed: int, version: int = 3) -> None:
        self.seed, self.version = int(seed), version
        self.spec = f"jitter@{version}:{self.seed}"

    def of(self, counted: Counted) -> Floats:
        return self.draw(counted.sources)

    def draw(self, sources: ProblemSources) -> Floats:
        """The number of each problem."""
        drawn_from = sources if self.version == 2 else sources.folded
        return np.fromiter(map(self._number, drawn_from), dtype=np.float64, count=len(drawn_from))

    def _number(self, source: str | None) -> float:
        if source is None:
            return NO_JITTER
        digest = hashlib.blake2b(f"{self.seed}:{source}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return (int.from_bytes(digest) >> 11) / 2**53


class FewerPaths(Component):
    """Minus the paths of the pool: of two that a stopping rule ended at one share, the sooner settled is the surer."""

    name, spec = "fewer_paths", "fewer_paths@1"

    def of(self, counted: Counted) -> Floats:
        return -counted.table.n_paths.astype(np.float64)


class MorePaths(Component):
    """The paths of the pool: of two with one share, the one that more paths agree on comes first."""

    name, spec = "more_paths", "more_paths@1"

    def of(self, counted: Counted) -> Floats:
        return counted.table.n_paths.astype(np.float64)


class Column(Component):
    """Any number the caller has for each pool."""

    def __init__(self, values: ArrayLike, name: str = "column") -> None:
        refuse_booleans(values, "tie_break")
        try:
            self.values = np.atleast_1d(np.asarray(values, dtype=np.float64))
        except (TypeError, ValueError):
            raise InvalidValue(f"tie_break must be mean_score(), jitter(seed) or numbers, got {values!r:.60}") from None
        self.name, self.spec = name, f"column:{name}"

    def of(self, counted: Counted) -> Floats:
        if self.values.shape != (len(counted.table),):
            raise InvalidValue(
                f"tie_break must hold one number per pool, {len(counted.table)} of them, got shape {self.values.shape}"
            )
        if not np.isfinite(self.values).all():
            row = int(np.argmin(np.isfinite(self.values)))
            raise InvalidValue(f"tie_break must be finite; pool {row} has {self.values[row]}")
        return np.where(counted.winner >= 0, self.values, -np.inf)


Key = tuple[Component, ...]


TieBreak = Component | ArrayLike | Sequence[Any] | None


def mean_score(of: str | None = None) -> MeanScore:
    """Break ties of confidence by the mean raw score of the winning paths; of another score than the vote's by name."""
    return MeanScore(of)


def jitter(seed: int) -> Jitter:
    """Break ties of confidence by a pseudo-random number that depends on the folded question, or else on its id."""
    return Jitter(seed)


def key_of(tie_break: TieBreak, *, idle_score: bool, told_apart: bool, stopped: bool = False) -> Key:
    """The key of a vote: its share, what is to break ties, and jitter behind it where problems can be told apart.

    `tie_break` is a component, its spec, several of either, or one number per pool; "none" at the end leaves the jitter
    out. Where it is None, what ended pools sooner does if a rule `stopped` them, and then scores that the vote has and
    that are no weights (`idle_score`).
    """
    last: Key = (Jitter(0),) if told_apart else ()
    if tie_break is None:
        return Share(), *((FewerPaths(),) if stopped else ()), *((MeanScore(),) if idle_score else ()), *last
    parts = [part for one in _each(tie_break) for part in _as_components(one)]
    ties = tuple(part for part in parts if part is not None)
    if None in parts[:-1] or any(isinstance(part, (Jitter, Share)) for part in ties[:-1]):
        raise InvalidValue(f"nothing comes behind jitter or `{NONE}` in a tie-break, got {tie_break!r:.60}")
    if None in parts or isinstance(ties[-1], Jitter):
        last = ()
    return Share(), *ties, *last


def _each(tie_break: Any) -> Iterable[Any]:
    """The parts of a tie-break, which may be one; numbers are one, however many."""
    several = isinstance(tie_break, (tuple, list)) and any(isinstance(part, (str, Component)) for part in tie_break)
    return tie_break if several else [tie_break]


def _as_components(part: Any) -> list[Component | None]:
    """None stands for no jitter."""
    if isinstance(part, Component):
        return [part]
    if isinstance(part, str):
        return [None if text.strip() == NONE else parse_component(text.strip()) for text in part.split(",")]
    return [Column(part)]


def keys_of(key: Key, counted: Counted) -> Floats:
    """A column per component (n × c), whoever made it: one number per pool each, none of them a label."""
    columns = []
    for part in key:
        given = part.of(counted)
        refuse_booleans(given, "tie_break")
        column = np.asarray(given, dtype=np.float64)
        if column.shape != (len(counted.table),) or not (column < np.inf).all():
            raise InvalidValue(
                f"{part.name} must give one number per pool, {len(counted.table)} of them and neither NaN nor +inf, "
                f"got shape {column.shape}"
            )
        columns.append(column)
    return np.stack(columns, axis=1)


READERS: dict[str, Callable[[Mapping[str, Any]], Component]] = {}
"""By name, what reads components that are more than a spec."""


def parse_component(document: Any) -> Component:
    """A component by its spec, with or without the version, or from what it is more than a spec."""
    if isinstance(document, Mapping):
        kind = document.get("component")
        if not isinstance(kind, str) or kind not in READERS:
            raise InvalidValue(f"unknown component of a key {kind!r:.60}; expected one of {', '.join(READERS) or '–'}")
        return READERS[kind](document)
    if not isinstance(document, str):
        raise InvalidValue(f"a component of a key must be a string or an object, got {document!r:.60}")
    head, _, argument = document.partition(":")
    if head == "jitter@1":
        raise InvalidValue(
            "jitter@1 was drawn from ids, which can repeat, and jitter is drawn from questions now", "calibrate again"
        )
    version = 2 if head == "jitter@2" else 3
    name = head.removesuffix(f"@{version}" if head.startswith("jitter") else "@1")
    if name == "share" and not argument:
        return Share()
    if name == "mean_score":
        return MeanScore(argument or None)
    if name in (FewerPaths.name, MorePaths.name) and not argument:
        return FewerPaths() if name == FewerPaths.name else MorePaths()
    if name == "jitter":
        try:
            return Jitter(int(argument or 0), version)
        except ValueError:
            raise InvalidValue(f"tie-break {document!r}: the seed must be a whole number") from None
    if name == "column" and argument:
        return Column([], argument)
    raise InvalidValue(
        f"unknown tie-break {document!r}; expected mean_score, mean_score:SCORE, jitter:SEED, column:FIELD, "
        "fewer_paths, more_paths or none"
    )
