"""Which problems a policy has seen, so that they are never taken for new ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from demur.pools.splits import Texts
from demur.records import is_nothing


@dataclass(frozen=True)
class Seen:
    """The problems a policy was calibrated (or its normaliser tuned) on."""

    ids: frozenset[str] = frozenset()
    questions: frozenset[str] = frozenset()
    """Digests of what they ask: see `records.question_digest`."""
    clusters: frozenset[str] = frozenset()
    hold_out: float | None = None
    """The share of problems that was set aside beforehand, if any."""

    @classmethod
    def of(cls, ids: Iterable[str], questions: Texts | None, clusters: Texts | None, hold_out: float | None) -> Seen:
        """`questions` are digests."""
        return cls(frozenset(ids), frozenset(_named(questions)), frozenset(_named(clusters)), hold_out)

    def with_tuned(self, other: Seen) -> Seen:
        """These, and the problems that a way to vote was chosen on."""
        ids, questions, clusters = (
            self.ids | other.ids,
            self.questions | other.questions,
            self.clusters | other.clusters,
        )
        return Seen(ids, questions, clusters, self.hold_out)

    def rows(self, ids: Sequence[str], questions: Texts | None = None, clusters: Texts | None = None) -> list[int]:
        """The rows that were seen: by id, by the digest of their question or by cluster."""
        nothing: Texts = [None] * len(ids)
        known = ids, nothing if questions is None else questions, nothing if clusters is None else clusters
        return [row for row, problem in enumerate(zip(*known, strict=True)) if self._includes(*problem)]

    def _includes(self, name: str, question: str | None, cluster: str | None) -> bool:
        return (
            name in self.ids
            or question in self.questions
            or (not is_nothing(cluster) and str(cluster) in self.clusters)
        )


def _named(column: Texts | None) -> list[str]:
    """The entries that name something."""
    entries = () if column is None else column
    return [str(entry) for entry in entries if not is_nothing(entry) and entry != ""]
