"""A version that answers and its shadow, on the requests that both decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from demur.pipeline.audited_votes import audited_votes
from demur.pipeline.recalibration import active_of, audits_in, versions_of, window_of
from demur.policy.signature import Key
from demur.policy.signed_documents import policy_of
from demur.store.service import Decision, PolicyRow, ServiceStore

NEWEST = 10_000
"""Decisions that are looked at besides audits."""
IN_DOUBT, RAISED = "promise_in_doubt", "threshold_raised"
"""Causes of an abstention where the version itself had answered: an alarm, and a threshold that audits raised."""


@dataclass(frozen=True)
class DecidedTwice:
    """Requests that two versions decided on the same pools."""

    requests: int = 0
    both: int = 0
    """Answered by both."""
    only_old: int = 0
    only_new: int = 0
    old_wrong: int = 0
    """Answered by the old version, and known to be wrong."""
    new_wrong: int = 0
    old_unlabelled: int = 0
    new_unlabelled: int = 0

    @property
    def neither(self) -> int:
        return self.requests - self.both - self.only_old - self.only_new

    @property
    def old_answered(self) -> int:
        return self.both + self.only_old

    @property
    def new_answered(self) -> int:
        return self.both + self.only_new


@dataclass(frozen=True)
class ShadowComparison:
    """What a shadow did so far."""

    old: PolicyRow
    shadow: PolicyRow
    audited: DecidedTwice
    """A fair part of all requests."""
    newest: DecidedTwice
    """The newest requests with a whole pool: of them no labels are counted."""


def decided_twice(
    decisions: Iterable[Decision], version: int, labels: Mapping[str, bool | None] | None = None
) -> DecidedTwice:
    """Count what a shadow decided beside the version that answered; without labels, errors are not counted."""
    counts = dict.fromkeys(DecidedTwice.__dataclass_fields__, 0)
    for made in decisions:
        shadow = made.document.get("shadow")
        if not isinstance(shadow, Mapping) or shadow.get("version") != version or shadow.get("decision") is None:
            continue
        old = made.outcome == "answered" or made.document.get("cause") in (IN_DOUBT, RAISED)
        new = shadow["decision"] == "answered"
        counts["requests"] += 1
        counts["both"] += old and new
        counts["only_old"] += old and not new
        counts["only_new"] += new and not old
        if labels is None:
            continue
        right = labels.get(made.request)
        for who, answered, label in (("old", old, right), ("new", new, right if shadow.get("same_vote") else None)):
            counts[f"{who}_wrong"] += answered and label is False
            counts[f"{who}_unlabelled"] += answered and label is None
    return DecidedTwice(**counts)


def shadow_comparison(store: ServiceStore, name: str, *, key: Key | None = None) -> ShadowComparison | None:
    """The active version and its shadow, compared; None where there is no shadow."""
    rows = versions_of(store, name)
    row, shadow = active_of(rows), next((row for row in rows if row.state == "shadow"), None)
    if shadow is None:
        return None
    old = policy_of(row.document, f"version {row.version} of {name}", key)
    seen = policy_of(shadow.document, f"version {shadow.version} of {name}", key).seen.questions
    audits = audits_in(store, row.policy, window_of(store, [row.policy], since=shadow.at))
    audits = [made for made in audits if made.question_digest not in seen]  # those that calibrated it flatter it
    labels = audited_votes(audits, store.feedback.latest(made.request for made in audits), old).labels
    newest = store.decisions.search(policy=row.policy, since=shadow.at, limit=NEWEST)
    return ShadowComparison(
        row, shadow, decided_twice(audits, shadow.version, labels), decided_twice(newest, shadow.version)
    )
