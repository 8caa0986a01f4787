"""Sets of problems, known by id, by what they ask and by cluster: whoever saw one may not take it for new."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.records import is_nothing
from demur.voting.text_columns import DigestColumn, DigestSet, TextColumn

Texts = Sequence[str | None]
Names = frozenset[str] | DigestSet

MOST_NAMED = 100_000
"""More problems than these are known by digests of their names."""


@dataclass(frozen=True)
class Problems:
    """Some problems."""

    ids: Names = frozenset()
    questions: Names = frozenset()
    """Digests of what they ask: see `records.question_digest`."""
    clusters: Names = frozenset()

    @classmethod
    def of(cls, ids: Iterable[str], questions: Texts | None = None, clusters: Texts | None = None) -> Problems:
        """`questions` are digests. Entries that name nothing are left out."""
        if isinstance(ids, (str, bytes)):
            raise InvalidValue(f"fitted_on must hold the ids of problems, got the text {ids!r:.60}")
        if isinstance(ids, Sequence) and len(ids) > MOST_NAMED:
            return cls(DigestSet.of(map(str, ids)), _digested(questions), _digested(clusters))
        return cls(frozenset(map(str, ids)), _named(questions), _named(clusters))

    def __bool__(self) -> bool:
        return bool(self.ids or self.questions or self.clusters)

    def __or__(self, other: Problems) -> Problems:
        return Problems(self.ids | other.ids, self.questions | other.questions, self.clusters | other.clusters)

    def rows(self, ids: Sequence[str], questions: Texts | None = None, clusters: Texts | None = None) -> list[int]:
        """Which rows are among them: by id, by the digest of their question or by cluster."""
        among = np.zeros(len(ids), dtype=np.bool_)
        for names, column in ((self.ids, ids), (self.questions, questions), (self.clusters, clusters)):
            if column is not None and len(column) != len(ids):
                raise InvalidValue(f"there must be one entry per problem, {len(ids)} of them, got {len(column)}")
            if column is not None and names:
                among |= _among(names, column)
        return np.flatnonzero(among).tolist()


def _among(names: Names, column: Texts) -> NDArray[np.bool_]:
    if isinstance(names, DigestSet):
        return names.rows(column if isinstance(column, (TextColumn, DigestColumn)) else _texts(column))
    return np.fromiter((not is_nothing(name) and str(name) in names for name in column), np.bool_, len(column))


def _texts(column: Texts) -> Texts:
    return [None if is_nothing(entry) else str(entry) for entry in column]


def _digested(column: Texts | None) -> DigestSet:
    if isinstance(column, DigestColumn):
        return DigestSet(column.values if column.known is None else column.values[column.known])
    return DigestSet.of(str(entry) for entry in (() if column is None else column) if _names(entry))


def _named(column: Texts | None) -> frozenset[str]:
    """The entries that name something."""
    return frozenset(str(entry) for entry in (() if column is None else column) if _names(entry))


def _names(entry: str | None) -> bool:
    return not is_nothing(entry) and entry != ""
