"""What a recalibration came to: as plain values, and in words and tables."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demur.cli import output

if TYPE_CHECKING:
    from demur.pipeline.recalibration import Recalibration
    from demur.pipeline.shadow_comparison import DecidedTwice, ShadowComparison
    from demur.store.service import PolicyRow

_NEXT = 10


def time_of(at: int | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="seconds")


def facts_of(made: Recalibration, row: PolicyRow | None, out: Path | None) -> dict[str, Any]:
    """A new version, what it rests on, and how it compares."""
    audits, window, change = made.audits, made.window, made.window.change
    progress = {(one.alpha, one.guarantee): one for one in made.progress}
    points = []
    for rule in made.new.points:
        far = progress.get((rule.alpha, rule.guarantee.name))
        points.append(
            {
                "alpha": rule.alpha,
                "guarantee": rule.guarantee.name,
                "promise": rule.promise,
                "feasible": rule.feasible,
                "threshold": rule.threshold,
                "errors_to_find": None if far is None else far.errors_to_find,
                "labels_to_go": None if far is None else far.labels_to_go,
            }
        )
    return {
        "policy_name": made.row.name,
        "old_version": made.row.version,
        "new_version": None if row is None else row.version,
        "state": None if row is None else row.state,
        "policy": None if out is None else str(out),
        "audits": {
            "requests": audits.audited,
            "failed": audits.failed,
            "fitted": audits.fitted,
            "repeated": audits.repeated,
            "questions": audits.questions,
            "labelled": audits.labelled,
            "labelled_by_reviewers": audits.by_reviewers,
            "callers_alone": audits.by_callers,
            "callers_count": made.new.labels.callers,
            "not_comparable": audits.not_comparable,
            "held_out": made.held_out,
        },
        "since": time_of(window.since),
        "until": time_of(window.until),
        "model_change": None if change is None else {"at": time_of(change.at), "words": change.words},
        "alarms": [{"at": time_of(alarm.at), "words": alarm.words} for alarm in window.alarms],
        "points": points,
        "compared_on": "held_out" if made.held_out else "same_audits",
        "comparison": [asdict(one) for one in made.comparisons],
        "label_next": made.wanted[:_NEXT],
        "warnings": _warnings(made),
    }


def _warnings(made: Recalibration) -> list[str]:
    from demur.policy.replaced import replaced_note

    kept = {rule.alpha for rule in made.new.points}
    gone = [f"{rule.alpha:g}" for rule in made.old.points if rule.alpha not in kept]
    found = [f"audits before and after an alarm are taken together: {alarm.words}" for alarm in made.window.alarms]
    if gone:
        found.append(f"the new version has no alpha {', '.join(gone)}: requests that name it are refused from then on")
    if note := replaced_note(made.new):
        found.append(note)
    if len(made.reported) > 1:
        names = ", ".join(map(output.visible, made.reported[:3])) + (", …" if len(made.reported) > 3 else "")
        found.append(f"audits of {len(made.reported)} reported models are taken together: {names}")
    if failed := made.audits.failed:
        found.append(
            f"{failed} of {made.audits.audited} audits failed and are left out: where waves answer such requests "
            f"before the path that fails, up to {failed / made.audits.audited:.1%} more than alpha may be answered "
            "wrongly"
        )
    if made.old.sets:
        found.append("answer sets need the right answer of every audit, so that the new version gives none")
    return found


def show(facts: dict[str, Any]) -> None:
    """All of it, for people."""
    if "versions" in facts:
        states = facts["versions"].items()
        output.say(f"{facts['policy_name']}: {', '.join(f'version {version} {state}' for version, state in states)}.")
        output.say("Servers take this up within a few seconds.")
    elif "shadow_version" in facts:
        _show_shadow(facts)
    else:
        _show_recalibration(facts)


def _show_recalibration(facts: dict[str, Any]) -> None:
    from demur.pipeline.audited_votes import WHY_AUDITS
    from demur.policy.recalibrate import FAIR, OPTIMISTIC

    audits, name = facts["audits"], f"{facts['policy_name']}:v{facts['old_version']}"
    begun = "" if facts["since"] is None else f" since {facts['since']}"
    ended = "" if facts["until"] is None else f" before {facts['until']}"
    output.say(f"{audits['requests']} audited requests of {name}{begun}{ended}; {_left_out(audits)}.")
    if facts["model_change"] is not None:
        output.say(f"They begin with the last change of the model: {facts['model_change']['words']}")
    labelled = f"{audits['labelled']} of these {audits['questions']} questions have a label"
    output.say(f"{labelled}; the others count as wrong, so that the promise holds whichever they are.", WHY_AUDITS)
    if alone := audits["callers_alone"]:
        does = "counts, and the new promise says so" if audits["callers_count"] else "does not count"
        output.say(f"Of {alone} audits callers alone spoke; what they said {does}.")
    rows = [(one, version, one[version]) for one in facts["comparison"] for version in ("old", "new") if one[version]]
    columns: output.Columns = {
        "alpha": lambda row: f"{row[0]['alpha']:g}",
        "version": lambda row: row[1],
        "answers above": lambda row: _bound(row[2]["threshold"]),
        "of": lambda row: str(row[0]["votes"]),
        "answered": lambda row: str(row[2]["answered"]),
        "known wrong": lambda row: str(row[2]["wrong"]),
        "no label": lambda row: str(row[2]["unlabelled"]),
    }
    output.table_of("Old and new on the same audits", rows, columns, keys=2)
    output.say(FAIR if audits["held_out"] else OPTIMISTIC)
    if not audits["held_out"]:
        output.say("--hold-out keeps some of them back for a fair comparison; --shadow makes one on new requests.")
    for point in facts["points"]:
        output.say(_progress(point), point["promise"])
    if facts["label_next"]:
        output.say(f"Label next: {', '.join(facts['label_next'][:3])} (the most confident without a label).")
    output.warn(facts["warnings"])
    if facts["state"] is None:
        output.say(f"{name} answers as before: --shadow or --swap puts the new version into the store.")
    else:
        does = "answers" if facts["state"] == "active" else f"decides beside {name} without answering"
        output.say(f"Version {facts['new_version']} {does} from now on; servers take it up within a few seconds.")
    output.wrote(facts["policy"])


def _left_out(audits: dict[str, Any]) -> str:
    parts = [
        (audits["failed"], "failed, and had no vote"),
        (audits["fitted"], "are on questions that the way to vote was learned from"),
        (audits["repeated"], "repeat a question, which counts once: the promise is about new questions"),
        (audits["not_comparable"], "have a true answer that cannot be compared with the vote"),
    ]
    said = [f"{count} {what}" for count, what in parts if count]
    return "; ".join(said) or "all of them count"


def _bound(threshold: float) -> str:
    return f"{threshold:.4f}" if abs(threshold) < 1e9 else "never answers"


def _progress(point: dict[str, Any]) -> str:
    named = f"At alpha = {point['alpha']:g}"
    if not point["feasible"]:
        return f"{named} the audits are too few for the promise: it would abstain always."
    if point["errors_to_find"] is None:
        return f"{named} all labels are needed."
    if not point["errors_to_find"]:
        return f"{named} no further label can lower the threshold."
    errors = "1 error is" if point["errors_to_find"] == 1 else f"{point['errors_to_find']} errors are"
    return f"{named} {errors} still to be found from the top: about {point['labels_to_go']} labels may lower it."


def facts_of_shadow(made: ShadowComparison) -> dict[str, Any]:
    """What a shadow did beside the version that answers."""

    def counts(twice: DecidedTwice) -> dict[str, int]:
        return {**asdict(twice), "neither": twice.neither}

    return {
        "policy_name": made.old.name,
        "old_version": made.old.version,
        "shadow_version": made.shadow.version,
        "since": time_of(made.shadow.at),
        "audited": counts(made.audited),
        "newest": counts(made.newest),
    }


def _show_shadow(facts: dict[str, Any]) -> None:
    old, new = f"v{facts['old_version']}", f"v{facts['shadow_version']}"
    rows = [("audited", facts["audited"]), ("newest", facts["newest"])]
    columns: output.Columns = {
        "requests": lambda row: row[0],
        "of": lambda row: str(row[1]["requests"]),
        "both answer": lambda row: str(row[1]["both"]),
        f"only {old}": lambda row: str(row[1]["only_old"]),
        f"only {new}": lambda row: str(row[1]["only_new"]),
        "neither": lambda row: str(row[1]["neither"]),
    }
    output.table_of(f"{facts['policy_name']}: {new} beside {old} since {facts['since']}", rows, columns)
    audited = facts["audited"]
    for who, version in (("old", old), ("new", new)):
        answered = audited["both"] + audited[f"only_{who}"]
        output.say(
            f"{version} answers {answered} of {audited['requests']} audited requests, {audited[f'{who}_wrong']} known "
            f"to be wrong, {audited[f'{who}_unlabelled']} without a label."
        )
    output.say("Audits are a fair part of all requests; the newest are only those whose pools were drawn whole.")
