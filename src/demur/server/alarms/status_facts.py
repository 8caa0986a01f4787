"""What the status page shows of each policy: rates, audits beside predictions, alarms in words, events."""

from __future__ import annotations

import math
from typing import Any

from demur.calibration import Rule
from demur.monitoring import AuditedQuestion, audited_rates
from demur.monitoring.confidence import Limits
from demur.server.alarms.alarms import Alarms
from demur.server.alarms.reported import KIND as REPORTED
from demur.server.alarms.watched import WatchedPolicy, time_of
from demur.server.alarms.watches import ErrorWatching, Watch
from demur.server.served import Served
from demur.store.service import ServiceStore

_HOUR = 3_600_000
PERIODS = {"24 hours": 24 * _HOUR, "7 days": 7 * 24 * _HOUR}
_EVENTS = 20


def status_facts(alarms: Alarms, now: int) -> dict[str, Any]:
    """All of it, as plain values; reads the store."""
    store, settings = alarms.store, alarms.service.settings
    versions: dict[str, list[dict[str, Any]]] = {}
    for row in store.policies.all():
        told = {"version": row.version, "state": row.state, "at": _time(row.at)}
        versions.setdefault(row.name, []).append(told)
    return {
        "now": _time(now),
        "on_alarm": settings.on_alarm,
        "audit_share": settings.audit_share,
        "label_days": settings.label_days,
        "policies": [_policy(alarms, served, now, versions.get(served.name, [])) for served in alarms.kept()],
    }


def _policy(alarms: Alarms, served: Served, now: int, versions: list[dict[str, Any]]) -> dict[str, Any]:
    store, watched = alarms.store, alarms.watched(served)
    on = watched.alarms()
    diagnosis = watched.diagnosis(on)
    waiting, again = store.audits.without_turn(watched.policy)
    left = alarms.canaries.left(served)
    return {
        "policy": served.full_name,
        "active": alarms.service.models.active.get(served.name) is served,
        "in_doubt": None if diagnosis.since is None else _time(on[0].since),
        "diagnosis": diagnosis.sentence,
        "alarms": [{"kind": alarm.kind, "since": _time(alarm.since), "words": alarm.words} for alarm in on],
        "notes": [*watched.notes, *watched.other_steps()],
        "periods": [_period(store, watched, name, now - long, now) for name, long in PERIODS.items()],
        "points": [_point(watching, watched, now, alarms) for watching in watched.errors],
        "audits": {"placed": store.audits.last_turn(watched.policy), "waiting": waiting, "again": again},
        "drift": None if watched.drift is None else _sentence(watched.watch(watched.drift)),
        "canaries": None if left is None else {"asked": left.asked, "left": left.left},
        "compared": watched.compared().sentence,
        "reported": _reported(store, watched.policy),
        "versions": versions,
        "events": [
            {"at": _time(event.at), "kind": event.kind, "words": event.words}
            for event in store.events.latest(policy=watched.policy, limit=_EVENTS)
        ],
    }


def _period(store: ServiceStore, watched: WatchedPolicy, name: str, since: int, now: int) -> dict[str, Any]:
    tally = store.decisions.tally(policy=watched.policy, since=max(0, since), until=now + _HOUR)
    spared = tally.failed * watched.served.policy.n_paths  # what failed has no paths, and saved none
    saved = max(0, tally.n_paths - tally.drawn - spared)
    counts = {"answered": tally.answered, "abstained": tally.abstained, "failed": tally.failed}
    return {"name": name, "requests": sum(counts.values()), **counts, "drawn": tally.drawn, "saved": saved}


def _point(watching: ErrorWatching, watched: WatchedPolicy, now: int, alarms: Alarms) -> dict[str, Any]:
    """Audits at one operating point: those that the monitor took, and those that wait for a label."""
    watch, rule = watched.watch(watching), watching.rule
    audits = [*_taken(watch), *watching.awaited(watch, now, alarms.service.settings.label_days)]
    rates = audited_rates(audits, watched.served.policy, alpha=rule.guarantee.alpha, guarantee=rule.guarantee.name)
    return {
        "alpha": rule.alpha,
        "guarantee": rule.guarantee.name,
        "promise": rule.promise,
        "among_answers": rule.among_answers,
        "began": _time(watch.began) if watch.began else None,
        "audited": rates.audited,
        "answered": rates.answered,
        "right": rates.right,
        "wrong": rates.wrong,
        "awaited": rates.awaited,
        "accuracy": _number(rates.accuracy),
        "accuracy_limits": _limits(rates.accuracy_limits, rates.answered),
        "predicted_accuracy": _number(rates.predicted_accuracy),
        "predicted_at_least": rates.predicted_at_least,
        "error": _number(rates.confident_error),
        "error_limits": _limits(rates.confident_error_limits, rates.audited),
        "level": rates.level,
        "sentences": list(rates.sentences),
        "monitor": _sentence(watch),
        "online": _online(watched, rule),
    }


def _online(watched: WatchedPolicy, rule: Rule) -> dict[str, Any] | None:
    """Where audits have brought the threshold of an operating point; None where they do not move it."""
    watching = next((one for one in watched.online if one.rule is rule), None)
    if watching is None:
        return None
    state = watching.state()
    return {
        "threshold": state.threshold_key[0],
        "calibrated": rule.threshold,
        "raised": state.raised_key is not None,
        "step": float(state.step),
        "audits": state.n,
        "errors": state.errors,
        "awaited": len(state.awaited),
        "given_up": state.given_up,
        "bound": state.bound(),
        "sentence": state.sentence,
    }


def _taken(watch: Watch) -> list[AuditedQuestion]:
    counts = watch.counts
    return [
        *[AuditedQuestion(False)] * counts["abstained"],
        *[AuditedQuestion(True, False)] * counts["right"],
        *[AuditedQuestion(True, True)] * counts["wrong"],
        *[AuditedQuestion(True, given_up=True)] * counts["given_up"],
    ]


def _reported(store: ServiceStore, policy: int) -> dict[str, Any]:
    state = store.monitors.read(policy, REPORTED)
    return {} if state is None else {name: names[-5:] for name, names in state.document.items()}


def _sentence(watch: Watch) -> str | None:
    return None if watch.monitor is None else watch.monitor.sentence


def _time(at: int) -> str:
    return time_of(at).isoformat(timespec="seconds")


def _number(rate: float) -> float | None:
    return None if math.isnan(rate) else rate


def _limits(limits: Limits, n: int) -> list[float] | None:
    return [limits.low, limits.high] if n else None
