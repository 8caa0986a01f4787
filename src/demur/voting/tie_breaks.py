"""Secondary keys: what ranks votes of equal confidence.

Every unanimous pool has confidence 1 whatever the weights, so on easy data a large part of the votes is one tie, and
calibration can only keep or drop it whole (theory, departure A). A secondary key makes the calibrated statistic a
pair, compared lexicographically. It is part of that statistic: never applied after calibration, and label-blind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.errors import InvalidValue
from demur.voting._exact_sums import Floats, row_sums
from demur.voting.codes import CodedAnswers
from demur.voting.guards import refuse_booleans

Scores = Floats | None
Winners = NDArray[np.int64]
Sources = Sequence[str | None]
NO_JITTER = -1.0
"""Below every draw: what is not known by a question or an id comes last among its equals."""


@runtime_checkable
class TieBreak(Protocol):
    """One finite number per pool; larger is more confident."""

    @property
    def spec(self) -> str:
        """The text that `parse_tie_break` turns back into this object."""

    def of(self, table: CodedAnswers, scores: Scores, winner: Winners, sources: Sources) -> Floats:
        """`sources` tell problems apart, for what is drawn at random: see `sources_of`."""


class MeanScore:
    """The mean raw score of the paths that gave the winning answer; −inf where no path has an answer."""

    spec = "mean_score@1"

    def of(self, table: CodedAnswers, scores: Scores, winner: Winners, sources: Sources) -> Floats:
        if scores is None:
            raise InvalidValue("tie_break mean_score needs scores, and the vote has none")
        means = np.empty(len(table))
        for rows, width in table.blocks():
            won = (table.codes[rows, :width] == winner[rows, None]) & (winner[rows, None] >= 0)
            paths = won.sum(axis=1)
            total = row_sums(np.where(won, scores[rows, :width], 0.0))[:, 0]
            means[rows] = np.round(np.divide(total, paths, out=np.full(len(paths), -np.inf), where=paths > 0), 12)
        return means


class Jitter:
    """A fixed pseudo-random number per problem, drawn from its question and the seed: breaks ties, knows nothing.

    The same question draws the same number wherever it is asked, and others draw others. A problem of which neither a
    question nor an id is known draws none, and comes last among its equals.
    """

    def __init__(self, seed: int) -> None:
        self.seed = int(seed)
        self.spec = f"jitter@2:{self.seed}"

    def of(self, table: CodedAnswers, scores: Scores, winner: Winners, sources: Sources) -> Floats:
        return np.array([NO_JITTER if source is None else self._draw(source) for source in sources])

    def _draw(self, source: str) -> float:
        digest = hashlib.blake2b(f"{self.seed}:{source}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return (int.from_bytes(digest) >> 11) / 2**53


class Column:
    """Any number the caller has for each pool, for instance a learned confidence."""

    def __init__(self, values: ArrayLike, name: str = "column") -> None:
        refuse_booleans(values, "tie_break")
        try:
            self.values = np.atleast_1d(np.asarray(values, dtype=np.float64))
        except (TypeError, ValueError):
            raise InvalidValue(f"tie_break must be mean_score(), jitter(seed) or numbers, got {values!r:.60}") from None
        self.name, self.spec = name, f"column:{name}"

    def __str__(self) -> str:
        return self.name

    def of(self, table: CodedAnswers, scores: Scores, winner: Winners, sources: Sources) -> Floats:
        if self.values.shape != (len(table),):
            raise InvalidValue(
                f"tie_break must hold one number per pool, {len(table)} of them, got shape {self.values.shape}"
            )
        if not np.isfinite(self.values).all():
            row = int(np.argmin(np.isfinite(self.values)))
            raise InvalidValue(f"tie_break must be finite; pool {row} has {self.values[row]}")
        return np.where(winner >= 0, self.values, -np.inf)


def mean_score() -> MeanScore:
    """Break ties of confidence by the mean raw score of the winning paths."""
    return MeanScore()


def jitter(seed: int) -> Jitter:
    """Break ties of confidence by a pseudo-random number that depends on the question alone, or else on its id."""
    return Jitter(seed)


def sources_of(rows: int, questions: Sources | None, ids: Sources | None) -> Sources:
    """What each problem's jitter is drawn from: the digest of its question, or else its id; None where it has neither.

    An id must be the problem's own: one that is given to many problems would give all of them one jitter.
    """
    asked: Sources = [None] * rows if questions is None else questions
    named: Sources = [None] * rows if ids is None else ids
    return [
        f"question:{question}" if question is not None else None if name is None else f"id:{name}"
        for question, name in zip(asked, named, strict=True)
    ]


def parse_tie_break(text: str) -> TieBreak:
    """`mean_score`, `jitter:SEED` or `column:NAME`, with or without the version."""
    head, _, argument = text.partition(":")
    if head == "jitter@1":
        raise InvalidValue(
            "jitter@1 was drawn from ids, which can repeat, and jitter is drawn from questions now", "calibrate again"
        )
    name = head.removesuffix("@2" if head.startswith("jitter") else "@1")
    if name == "mean_score" and not argument:
        return MeanScore()
    if name == "jitter":
        try:
            return Jitter(int(argument or 0))
        except ValueError:
            raise InvalidValue(f"tie-break {text!r}: the seed must be a whole number") from None
    if name == "column" and argument:
        return Column([], argument)
    raise InvalidValue(f"unknown tie-break {text!r}; expected mean_score, jitter:SEED or column:FIELD")
