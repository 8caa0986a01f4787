"""A new version of a served policy, from the audits that the service's store holds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from demur.calibration import Grouped, Level
from demur.calibration.labelling import LabelProgress
from demur.errors import InvalidValue, PolicyFileError
from demur.pipeline.audited_votes import AuditedVotes, audited_votes
from demur.policy.policy import Policy
from demur.policy.recalibrate import Comparison, compare, guarantees_again, labels_to_get, recalibrate
from demur.policy.replaced import replacing
from demur.policy.signature import Key
from demur.policy.signed_documents import policy_of
from demur.store.service import Decision, Event, PolicyRow, ServiceStore

REPORTED, ALARM = "reported", "alarm"
"""Events that speak of another model, or of other questions."""
_PAGE = 500


@dataclass(frozen=True)
class Window:
    """The time from which audits are taken, and why from then."""

    since: int | None
    until: int | None
    change: Event | None = None
    """The last change of the model, where that is what it begins with."""
    alarms: tuple[Event, ...] = ()
    """Alarms within it: audits before and after one may not be of one kind."""


def window_of(
    store: ServiceStore, policies: Sequence[int], since: int | None = None, until: int | None = None
) -> Window:
    """From the last known change of the model on, unless a time is given: audits of two models do not mix."""
    if since is not None and until is not None and since >= until:
        raise InvalidValue("the time of the audits ends before it begins", "give a {since} that is before {until}")
    events = [
        event
        for policy in policies
        for kind in (REPORTED, ALARM)
        for event in store.events.latest(policy=policy, kind=kind, limit=1000)
        if until is None or event.at < until
    ]
    changes = [event for event in events if _of_model(event)]
    change = max(changes, key=lambda event: event.at, default=None) if since is None else None
    since = change.at if change is not None else since
    within = [event for event in events if (since is None or event.at > since)]
    return Window(since, until, change, tuple(sorted(within, key=lambda event: event.at)))


def _of_model(event: Event) -> bool:
    """Whether it says that the model or its server changed, rather than the questions."""
    return event.kind == REPORTED or str(event.facts.get("monitor", "")).startswith("canar")


@dataclass(frozen=True, eq=False)
class Recalibration:
    """A policy and the version that audits make of it."""

    row: PolicyRow
    """Of the version that answers."""
    old: Policy
    new: Policy
    audits: AuditedVotes
    window: Window
    held_out: int
    """Questions that were kept back from the new version, for the comparison."""
    comparisons: list[Comparison]
    progress: list[LabelProgress]
    wanted: list[str] = field(repr=False)
    """Requests whose labels may lower a threshold, the most wanted first."""
    reported: tuple[str, ...] = ()
    """What the model's server called itself, by name and fingerprint, each once."""


def versions_of(store: ServiceStore, name: str) -> list[PolicyRow]:
    """All versions of a policy; raises where the store knows of none."""
    rows = store.policies.all()
    mine = [row for row in rows if row.name == name]
    if not mine:
        known = ", ".join(sorted({row.name for row in rows})) or "none"
        raise InvalidValue(f"the store has no policy named {name!r:.80}; it has {known[:300]}")
    return mine


def active_of(rows: Sequence[PolicyRow]) -> PolicyRow:
    """The version that answers."""
    active = next((row for row in rows if row.state == "active"), None)
    if active is None:
        raise InvalidValue(f"no version of {rows[0].name!r} answers", "activate one with {activate}")
    return active


def recalibration(
    store: ServiceStore,
    name: str,
    *,
    alphas: Sequence[Level] | None = None,
    since: int | None = None,
    until: int | None = None,
    all_versions: bool = False,
    callers: bool = False,
    hold_out: float = 0.0,
    seed: int = 0,
    key: Key | None = None,
) -> Recalibration:
    """What the audits of the active version, with the labels that reviewers have given so far, make of it.

    `callers` has the feedback of callers count too, where no reviewer said anything; the new promise says so.
    `all_versions` takes the audits of other versions too, where they vote the same way. `hold_out` keeps a share of
    the questions back, to compare the two versions on.
    """
    rows = versions_of(store, name)
    row = active_of(rows)
    old = policy_of(row.document, f"version {row.version} of {name}", key)
    guarantees = guarantees_again(old, alphas)
    alike = [one.policy for one in rows if one.fingerprint == row.fingerprint] if all_versions else [row.policy]
    window = window_of(store, alike, since, until)
    made = [decision for number in alike for decision in audits_in(store, number, window)]
    words = store.feedback.latest(decision.request for decision in made)
    by_group = any(isinstance(one, Grouped) for one in guarantees)
    audits = audited_votes(made, words, old, by_group=by_group, callers=callers)
    _refuse_nothing(audits, row)
    voted, kept_back = audits.voted, None
    if hold_out:
        parts = voted.split(hold_out=hold_out, seed=seed)
        voted, kept_back = voted.take(parts.calibration), voted.take(parts.test)
        if not len(voted) or not len(kept_back):
            raise InvalidValue(
                f"a share of {hold_out:g} of {audits.questions} audited questions leaves none on one side",
                "choose another {hold_out}",
            )
    new = recalibrate(old, voted, guarantees)
    if hold_out:
        new = replace(new, seen=replace(new.seen, seed=seed))
    new = replacing(new, *_readable(rows))
    progress, wanted = labels_to_get(voted, guarantees, by_chance=old.strata.by_chance)
    on = voted if kept_back is None else kept_back
    held_out = 0 if kept_back is None else len(kept_back.counted)
    compared, reported = compare(old, new, on), _reported(made)
    return Recalibration(row, old, new, audits, window, held_out, compared, progress, wanted, reported)


def _readable(rows: Iterable[PolicyRow]) -> Iterator[Policy]:
    """The versions that this demur can read; one that it cannot names no seed."""
    for row in rows:
        with contextlib.suppress(PolicyFileError):
            yield policy_of(row.document, f"version {row.version} of {row.name}")


def audits_in(store: ServiceStore, policy: int, window: Window) -> list[Decision]:
    """All audited requests of one version in a time, the newest first."""
    found: list[Decision] = []
    last: Decision | None = None
    how = {"policy": policy, "since": window.since, "until": window.until, "limit": _PAGE}
    while page := store.decisions.search(audit=True, after=last, **how):  # type: ignore[arg-type]
        found += page
        last = page[-1]
    return found


def _reported(made: Iterable[Decision]) -> tuple[str, ...]:
    names = {(one.reported_model or "", one.system_fingerprint or "") for one in made if one.vote_key is not None}
    return tuple(" ".join(filter(None, name)) for name in sorted(names) if any(name))


def _refuse_nothing(audits: AuditedVotes, row: PolicyRow) -> None:
    named = f"{row.name}:v{row.version}"
    if not len(audits.voted):
        failed = f" with a vote ({audits.failed} failed)" if audits.failed else ""
        raise InvalidValue(
            f"{named} has no audited request{failed} in this time, and nothing else can calibrate",
            "wait for more traffic, or give another {since} and {until}",
        )
    if audits.voted.known is not None and not (audits.voted.known & audits.voted.votes.has_answer).any():
        spoke = f" (callers spoke of {audits.by_callers}, which does not count)" if audits.by_callers else ""
        raise InvalidValue(
            f"none of the {audits.audited} audited requests of {named} has a label from a reviewer{spoke}, so that all "
            "count as wrong and nothing would be answered",
            "judge some on the review page, or by feedback with a key of the role `review`, the most confident first",
        )
