"""`demur recalibrate`: a new version of a served policy from its audits, and what becomes of its versions."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import demur
from demur.cli import output, recalibration_tables, replacing
from demur.cli.flag_groups import flags_given
from demur.cli.options import HoldOut, Json, KeyFile, Seed, ServicePlace, Text, level, option
from demur.errors import InsufficientCalibration, InvalidValue

if TYPE_CHECKING:
    from demur.store.service import PolicyRow, ServiceStore

NAME = "recalibrate"
HELP = """Make a new version of a served policy from the service's audits.

Takes the requests that were marked for audit when they arrived, and nothing else: what people review or complain about
is chosen by how the vote came out. Labels are what reviewers say, on the review page or by a key with the role
`review`; audits that no reviewer judged count as wrong, so that the promise holds. Without
`--shadow` or `--swap` the store stays as it is. Servers take a change up within a few seconds, and lose no request.

Examples:

`demur recalibrate --policy-name sums`

`demur recalibrate --policy-name sums --hold-out 0.5 --alpha 0.05 --shadow`

`demur recalibrate --policy-name sums --compare`

`demur recalibrate --policy-name sums --activate 2`
"""


def run(
    policy_name: Annotated[str, option("--policy-name", "NAME", "Which policy of the service.")],
    store: ServicePlace = "service.db",
    alpha: Annotated[
        list[Any] | None,
        option("--alpha", "A", "Allowed share; repeatable.  [default: as the old]", parser=level),
    ] = None,
    since: Annotated[
        Text, option("--since", "TIME", "Audits from then on.  [default: the last change of the model, if any]")
    ] = None,
    until: Annotated[Text, option("--until", "TIME", "Audits before then, such as 2027-01-31T18:00Z.")] = None,
    all_versions: Annotated[
        bool, typer.Option("--all-versions", help="Audits of other versions too, where they vote the same way.")
    ] = False,
    count_callers: Annotated[
        bool,
        typer.Option("--count-callers", help="Count callers' feedback if no reviewer spoke; the promise states it."),
    ] = False,
    hold_out: HoldOut = 0.0,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Let the new version decide beside the old, without answering.")
    ] = False,
    swap: Annotated[bool, typer.Option("--swap", help="Let the new version answer; the old stays there.")] = False,
    compare: Annotated[bool, typer.Option("--compare", help="Show what the shadow did beside the old.")] = False,
    activate: Annotated[Text, option("--activate", "VERSION", "Let this version answer from now on.")] = None,
    retire: Annotated[Text, option("--retire", "VERSION", "Let this version decide no longer beside another.")] = None,
    key_file: KeyFile = None,
    out: Annotated[Path | None, option("--out", "POLICY", "Where to write the new version.", "-o")] = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    asked = flags_given(shadow=shadow, swap=swap, compare=compare, activate=activate, retire=retire)
    if len(asked) > 1:
        raise InvalidValue(f"{' and '.join(asked)} exclude each other; choose one")
    made_anew = {"alpha": alpha, "since": since, "until": until, "all_versions": all_versions, "out": out}
    made_anew["count_callers"] = count_callers
    if (compare or activate or retire) and (others := flags_given(**made_anew, hold_out=hold_out or None)):
        raise InvalidValue(f"{asked[0]} makes no new version: leave {' and '.join(others)} out")
    replacing.refuse_overwriting(out, store, key_file, by=replacing.POLICY)
    key = None if key_file is None else demur.read_key(key_file)
    from demur.store.service import ServiceStore

    with ServiceStore(store) as kept:
        if compare:
            facts = _compared(kept, policy_name, key)
        elif activate is not None or retire is not None:
            facts = _put(kept, policy_name, activate=activate, retire=retire)
        else:
            facts = _recalibrated(
                kept,
                policy_name,
                key,
                out,
                shadow if shadow or swap else None,
                alphas=alpha,
                since=None if since is None else moment(since, "--since"),
                until=None if until is None else moment(until, "--until"),
                all_versions=all_versions,
                callers=count_callers,
                hold_out=hold_out,
                seed=seed or 0,
            )
    if json:
        output.emit(facts)
    else:
        recalibration_tables.show(facts)


def moment(text: str, flag: str) -> int:
    """A time as milliseconds since 1970; one without a zone is UTC."""
    try:
        at = datetime.fromisoformat(text)
        seconds = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        seconds = -1.0
    if seconds < 0:
        raise InvalidValue(f"{flag} takes a time such as 2027-01-31 or 2027-01-31T18:00Z, got {text!r:.60}")
    return round(seconds * 1000)


def _recalibrated(
    store: ServiceStore, name: str, key: bytes | None, out: Path | None, shadow: bool | None, **how: Any
) -> dict[str, Any]:
    """A new version; put into the store as a shadow, or in place of the old one, where that is said."""
    from demur.pipeline.recalibration import recalibration
    from demur.policy.replaced import replacing_file
    from demur.policy.signed_documents import document_of

    made = recalibration(store, name, key=key, **how)
    if shadow is not None and not made.new.feasible:
        short = next(rule for rule in made.new.points if not rule.feasible)
        raise InsufficientCalibration(f"{short.too_few}; version {made.row.version} of {name} stays as it is")
    if shadow is not None and not made.audits.by_reviewers:
        raise InvalidValue(
            f"no reviewer labelled any of the {made.audits.audited} audited requests of {name}, so no version that "
            "rests on them may answer",
            "judge some on the review page, or leave --shadow and --swap out",
        )
    row = None
    if shadow is not None:
        now = time.time_ns() // 1_000_000
        row = store.policies.propose(name, document_of(made.new, key), made.new.fingerprint, now, shadow=shadow)
        does = "decides beside the one that answers" if shadow else "answers"
        _note(store, row, f"Version {row.version} of {name}, recalibrated on {made.new.n} audited questions, {does}.")
    if out is not None:
        made = replace(made, new=replacing_file(made.new, out))
        made.new.save(out, key=key)
    return recalibration_tables.facts_of(made, row, out)


def _note(store: ServiceStore, row: PolicyRow, words: str) -> None:
    facts = {"version": row.version, "state": row.state}
    store.events.note(time.time_ns() // 1_000_000, "version", words, policy=row.policy, facts=facts)


def _put(store: ServiceStore, name: str, *, activate: str | None, retire: str | None) -> dict[str, Any]:
    """Another version answers, or one decides no longer."""
    from demur.pipeline.recalibration import versions_of

    rows = versions_of(store, name)
    told = activate if activate is not None else retire
    assert told is not None
    row = next((row for row in rows if str(row.version) == told.removeprefix("v")), None)
    if row is None:
        known = ", ".join(str(row.version) for row in rows)
        raise InvalidValue(f"{name} has no version {output.visible(told)!r}; it has {known}")
    if retire is not None and row.state == "active":
        raise InvalidValue(f"version {row.version} of {name} answers: activate another one in its place")
    before = row.state
    row = store.policies.activate(row.policy) if activate is not None else store.policies.retire(row.policy)
    if row.state != before:
        _note(store, row, f"Version {row.version} of {name} is {row.state} now; it was {before}.")
    return {"policy_name": name, "versions": {str(one.version): one.state for one in versions_of(store, name)}}


def _compared(store: ServiceStore, name: str, key: bytes | None) -> dict[str, Any]:
    from demur.pipeline.shadow_comparison import shadow_comparison

    made = shadow_comparison(store, name, key=key)
    if made is None:
        raise InvalidValue(f"{name} has no shadow to compare with: make one with --shadow")
    return recalibration_tables.facts_of_shadow(made)
