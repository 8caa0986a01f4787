"""Sets of problems, known by id, by what they ask and by cluster: whoever saw one may not take it for new."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from demur.errors import InvalidValue
from demur.records import is_nothing

Texts = Sequence[str | None]


@dataclass(frozen=True)
class Problems:
    """Some problems."""

    ids: frozenset[str] = frozenset()
    questions: frozenset[str] = frozenset()
    """Digests of what they ask: see `records.question_digest`."""
    clusters: frozenset[str] = frozenset()

    @classmethod
    def of(cls, ids: Iterable[str], questions: Texts | None = None, clusters: Texts | None = None) -> Problems:
        """`questions` are digests. Entries that name nothing are left out."""
        if isinstance(ids, (str, bytes)):
            raise InvalidValue(f"fitted_on must hold the ids of problems, got the text {ids!r:.60}")
        return cls(frozenset(map(str, ids)), _named(questions), _named(clusters))

    def __bool__(self) -> bool:
        return bool(self.ids or self.questions or self.clusters)

    def __or__(self, other: Problems) -> Problems:
        return Problems(self.ids | other.ids, self.questions | other.questions, self.clusters | other.clusters)

    def rows(self, ids: Sequence[str], questions: Texts | None = None, clusters: Texts | None = None) -> list[int]:
        """Which rows are among them: by id, by the digest of their question or by cluster."""
        nothing: Texts = [None] * len(ids)
        known = ids, nothing if questions is None else questions, nothing if clusters is None else clusters
        return [row for row, problem in enumerate(zip(*known, strict=True)) if self._includes(*problem)]

    def _includes(self, name: str, question: str | None, cluster: str | None) -> bool:
        return (
            name in self.ids
            or question in self.questions
            or (not is_nothing(cluster) and str(cluster) in self.clusters)
        )


def _named(column: Texts | None) -> frozenset[str]:
    """The entries that name something."""
    entries = () if column is None else column
    return frozenset(str(entry) for entry in entries if not is_nothing(entry) and entry != "")
