"""What all monitors share: each watches one policy, and its file is refused with any other."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self
from weakref import WeakKeyDictionary

from demur.calibration import CLUSTER, Rule
from demur.descriptions import digest
from demur.errors import InvalidValue, MonitorFileError
from demur.monitoring import file
from demur.monitoring.betting import Stakes
from demur.policy.document import to_document
from demur.policy.policy import Policy

_IDENTITY = ("fingerprint", "points", "evidence")
_DIGESTS: WeakKeyDictionary[Policy, str] = WeakKeyDictionary()
"""Of policies that are watched: a monitor that replicas share is read again and again, its policy once."""


class Monitor(ABC):
    """Something that watches a policy in use."""

    kind: ClassVar[str]
    policy: Policy

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What it has found, and what that means."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """All that it needs to go on later, as plain values."""

    @classmethod
    @abstractmethod
    def of_state(cls, state: dict[str, Any], policy: Policy) -> Self:
        """The monitor that a state describes; ValueError where it does not hold together."""

    @property
    def policy_digest(self) -> str:
        """Tells policies apart that vote alike but were calibrated on other questions, or for another promise."""
        if self.policy not in _DIGESTS:
            whole = to_document(self.policy)
            _DIGESTS[self.policy] = digest({name: whole[name] for name in _IDENTITY})
        return _DIGESTS[self.policy]

    def document(self) -> dict[str, Any]:
        """As plain values: what it watches, and its state."""
        bound = {"fingerprint": self.policy.fingerprint, "policy": self.policy_digest}
        return {"monitor": self.kind, **bound, "state": self.state()}

    def save(self, path: file.FilePath) -> None:
        """Write it as JSON, all at once."""
        file.write(self.document(), path)

    @classmethod
    def load(cls, path: file.FilePath, policy: Policy) -> Self:
        """Go on from a file; refuses one that is damaged, of another kind, or of another policy."""
        return cls.of_document(file.read(path), policy, str(path))

    @classmethod
    def of_document(cls, document: dict[str, Any], policy: Policy, where: str = "this document") -> Self:
        """Go on from what `document` gave, to the last bit; `where` it was kept is told in errors."""
        if document.get("monitor") != cls.kind:
            raise MonitorFileError(
                f"{where} holds a monitor of the kind {document.get('monitor')!r:.60}, and {cls.__name__} is of the "
                f"kind {cls.kind!r}",
                "load it as the class that saved it",
            )
        if document.get("fingerprint") != policy.fingerprint:
            raise MonitorFileError(
                f"{where} watches a policy of another pipeline: its fingerprint is "
                f"{document.get('fingerprint')!s:.20}…, this policy's {policy.fingerprint:.20}…",
                "load it with its own policy, or begin a monitor anew",
            )
        try:
            state = document.get("state")
            if not isinstance(state, dict):
                raise InvalidValue(f"`state` must be an object, got {state!r:.60}")
            monitor = cls.of_state(state, policy)
        except ValueError as error:
            raise MonitorFileError(f"{where} is not a usable monitor: {error}") from None
        if document.get("policy") != monitor.policy_digest:
            raise MonitorFileError(
                f"{where} watches another policy of the same pipeline, calibrated on other votes or for another "
                "promise",
                "load it with its own policy, or begin a monitor anew",
            )
        return monitor


class BettingMonitor(Monitor):
    """A monitor that tests a hypothesis by betting against it, and may be asked at any time."""

    stakes: Stakes
    chosen: int = 1
    """From how many ways to vote calibration chose this one: any of them might have been the unlucky one."""

    @property
    def n(self) -> int:
        """Observations so far."""
        return self.stakes.seen

    @property
    def alarm(self) -> bool:
        """Whether there has been an alarm; it stays."""
        return self.stakes.alarm_at is not None

    @property
    def alarm_at(self) -> int | None:
        """How many observations there were at the first alarm."""
        return self.stakes.alarm_at

    @property
    def log_e(self) -> float:
        """The logarithm of the evidence now: 0 at first, and no larger than log(1/δ) ever, with probability 1 − δ."""
        return math.log(self.stakes.value)

    @property
    def p_value(self) -> float:
        """One over the most that the evidence has been: valid however often one looks."""
        return min(1.0, self.chosen / self.stakes.highest)


def refuse_groups(rule: Rule) -> None:
    """Raise where each group has a promise of its own, which one stream cannot watch."""
    if rule.needs_groups:
        raise InvalidValue(
            f"the guarantee {rule.guarantee.name} is about each group by itself, and one stream watches all questions",
            "name another as {guarantee}",
        )


def what_counts(policy: Policy) -> str:
    """That one question of each cluster is to be watched, where clusters are what calibration counted; blank if not."""
    return " One question of each cluster counts, as in calibration." if policy.unit == CLUSTER else ""


def as_level(delta: Any, name: str = "delta") -> float:
    """A probability of a false alarm."""
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 < delta < 1:
        raise InvalidValue(f"{name} must be a number strictly between 0 and 1, got {delta!r:.60}")
    return float(delta)


def take(state: dict[str, Any], *names: str) -> list[Any]:
    """The values of a state by name; it must hold these and no others."""
    if sorted(state) != sorted(names):
        raise InvalidValue(
            f"its state must hold {', '.join(sorted(names))}, got {', '.join(sorted(state)) or 'nothing'}"
        )
    return [state[name] for name in names]
