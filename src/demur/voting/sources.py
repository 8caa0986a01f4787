"""What tells problems apart, for what is drawn at random: the digest of a question, or else an id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.voting.codes import taken

Sources = Sequence[str | None]


def sources_of(
    rows: int, questions: Sources | None, ids: Sources | None, folded: Sources | None = None
) -> ProblemSources:
    """What each problem's jitter is drawn from: the digest of its question, or else its id; None where it has neither.

    An id must be the problem's own: one that is given to many problems would give all of them one jitter. `folded` are
    the digests of the folded questions (`records.folded`); the others stand in for them where they are not known.
    """
    return ProblemSources(rows, questions, ids, folded)


@dataclass(frozen=True, eq=False)
class ProblemSources(Sequence[str | None]):
    """What tells each problem apart, made when it is looked at."""

    rows: int
    questions: Sources | None
    ids: Sources | None
    of_folded: Sources | None = None

    def __post_init__(self) -> None:
        for column in (self.questions, self.ids, self.of_folded):
            if column is not None and len(column) != self.rows:
                raise InvalidValue(f"there must be one entry per pool, {self.rows} of them, got {len(column)}")

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[at] for at in range(*row.indices(self.rows))]
        question = None if self.questions is None else self.questions[row]
        return _source(question, None if self.ids is None or question is not None else self.ids[row])

    def __iter__(self) -> Iterator[str | None]:
        asked = repeat(None, self.rows) if self.questions is None else self.questions
        named = repeat(None, self.rows) if self.ids is None else self.ids
        return map(_source, asked, named)

    def take(self, rows: NDArray[np.intp]) -> ProblemSources:
        """Of some of the problems, in that order."""
        columns = (taken(column, rows) for column in (self.questions, self.ids, self.of_folded))
        return ProblemSources(len(rows), *columns)

    @property
    def folded(self) -> ProblemSources:
        """The same for questions that differ in case, blanks and final punctuation alone."""
        return self if self.of_folded is None else ProblemSources(self.rows, self.of_folded, self.ids)

    @property
    def lacking(self) -> int:
        """How many problems have neither."""
        if self.ids is not None and not any(name is None for name in self.ids):
            return 0
        return sum(source is None for source in self)


def _source(question: str | None, name: str | None) -> str | None:
    return f"question:{question}" if question is not None else None if name is None else f"id:{name}"
