"""Which problems a policy has seen, so that they are never taken for new ones."""

from __future__ import annotations

from dataclasses import dataclass

from demur.voting.problems import Problems


@dataclass(frozen=True)
class Seen(Problems):
    """The problems a policy was calibrated (or its key and normaliser fitted) on."""

    hold_out: float | None = None
    """The share of problems that was set aside beforehand, if any."""
    seed: int | None = None
    """What drew those that were set aside; None if none were, or if that is not known."""

    @classmethod
    def by(cls, problems: Problems, hold_out: float | None, seed: int | None = None) -> Seen:
        return cls(problems.ids, problems.questions, problems.clusters, hold_out, seed)
