"""Audited questions, and in which order a monitor may take them.

A share of all traffic is marked on arrival. What the policy abstained from needs no label, and is known at once to be
no error; a label of what it answered comes later, or never. Taken as they become known, the first would be all
abstentions and the rest all answers, among which errors are more frequent: bets that are fair in the order of arrival
would win without any change. So audits are taken in the order in which they arrived, and wait for the labels of those
before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from demur.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class AuditedQuestion:
    """A question that was marked on arrival."""

    answered: bool
    wrong: bool | None = None
    """Whether its answer is wrong; None while nobody has said."""
    given_up: bool = False
    """Nobody will say. A monitor of errors then takes it as no error, which can only delay an alarm."""

    def __post_init__(self) -> None:
        if not self.answered and self.wrong:
            raise InvalidValue("a question that was not answered was not answered wrongly, got wrong=True")

    @property
    def awaited(self) -> bool:
        """Whether its label is not known and matters."""
        return self.answered and self.wrong is None


def settled(audits: Iterable[AuditedQuestion]) -> list[bool]:
    """For each audit in order of arrival, up to the first whose label is still to come: was it answered, and wrongly?

    `monitor.update(settled(audits)[monitor.n :])` takes what is new.
    """
    events = []
    for audit in audits:
        if audit.awaited and not audit.given_up:
            break
        events.append(bool(audit.answered and audit.wrong))
    return events
