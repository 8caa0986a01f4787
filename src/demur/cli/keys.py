"""`demur keys`: who may use a service, and how much."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demur.cli import output
from demur.cli.completion import among
from demur.cli.flag_groups import flags_given
from demur.cli.options import Json, ServicePlace, argument, mention, option
from demur.errors import InvalidValue

if TYPE_CHECKING:
    from demur.store.service import ApiKey, ServiceStore

NAME = "keys"
HELP = """Make, list and revoke the API keys of a service.

A key is shown once, when it is made: the store keeps only its SHA-256. With the first key, the service asks for one.
A role says what a key may do: `ask` questions and give feedback, `review` in the pages, read `metrics`, `admin` all. A
budget is in paths and tokens, for a request costs as many paths as its policy draws; all replicas on one store share
it. A key that was revoked is refused within seconds.

Examples:

`demur keys add billing --store service.db --paths-per-day 20000 --tokens-per-day 5000000`

`demur keys add anna --role review --store service.db`

`demur keys add prometheus --role metrics --store service.db`

`demur keys list --store service.db`

`demur keys revoke billing --store service.db`
"""
_ACTIONS = ("add", "list", "revoke")
_ROLES = ("ask", "review", "metrics", "admin")
_LIMITS = ("paths_per_minute", "paths_per_day", "tokens_per_minute", "tokens_per_day", "at_once")


def _limit(flag: str, text: str) -> Any:
    return typer.Option(flag, metavar="N", min=1, max=2**53 - 1, help=f"{text}  [default: no limit]")


def run(
    action: Annotated[str, argument("ADD|LIST|REVOKE", "What to do.", among(_ACTIONS))],
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Whose key.", show_default=False)] = None,
    store: ServicePlace = "service.db",
    role: Annotated[
        list[str] | None,
        option("--role", "ROLE", "ask, review, metrics or admin; repeatable.  [default: ask]", offers=among(_ROLES)),
    ] = None,
    paths_per_minute: Annotated[int | None, _limit("--paths-per-minute", "Paths in a minute, at most.")] = None,
    paths_per_day: Annotated[int | None, _limit("--paths-per-day", "Paths in a day, UTC, at most.")] = None,
    tokens_per_minute: Annotated[int | None, _limit("--tokens-per-minute", "Tokens in a minute.")] = None,
    tokens_per_day: Annotated[int | None, _limit("--tokens-per-day", "Tokens in a day, UTC.")] = None,
    at_once: Annotated[int | None, _limit("--at-once", "Requests under way at once, on each replica.")] = None,
    json: Json = False,
) -> None:
    from demur.store.service import ServiceStore

    values = (paths_per_minute, paths_per_day, tokens_per_minute, tokens_per_day, at_once)
    limits = {limit: value for limit, value in zip(_LIMITS, values, strict=True) if value is not None}
    if action not in _ACTIONS:
        raise InvalidValue(f"keys are added, listed or revoked: `demur keys add NAME`, not {output.visible(action)!r}")
    if (name is None) != (action == "list"):
        told = "takes no name" if action == "list" else "needs the name of a key"
        raise InvalidValue(f"`demur keys {action}` {told}")
    if action != "add" and (beside := flags_given(role=role, **limits)):
        raise InvalidValue(f"{beside[0]} belongs to `demur keys add`")
    with ServiceStore(store, create=action == "add") as opened:
        if action == "list":
            _list(opened.keys.all(), json=json)
        elif action == "revoke":
            _revoke(opened, str(name), json=json)
        else:
            _add(opened, str(name), role or ["ask"], limits, json=json)


def _add(store: ServiceStore, name: str, roles: list[str], limits: dict[str, int], *, json: bool) -> None:
    key, secret = store.keys.create(name, roles, _now(), limits)
    if json:
        output.emit({**_facts(key), "key": secret})
        return
    output.say(secret)
    mention(f"This is the key of {output.visible(name)} ({', '.join(key.roles)}). It is not shown again.")


def _list(keys: list[ApiKey], *, json: bool) -> None:
    if json:
        output.emit({"keys": [_facts(key) for key in keys]})
        return
    columns = {
        "name": lambda key: output.visible(key.name),
        "id": lambda key: key.key,
        "may": lambda key: ", ".join(key.roles),
        "limits": lambda key: (
            ", ".join(f"{value} {_words(limit)}" for limit, value in key.limits.items()) or output.DASH
        ),
        "made": lambda key: _when(key.created),
        "last used": lambda key: _when(key.last_used),
        "revoked": lambda key: _when(key.revoked),
    }
    output.table_of("Keys", keys, columns, only_if_said=["limits", "revoked"])


def _revoke(store: ServiceStore, name: str, *, json: bool) -> None:
    """Revoke the key of a name in use, or of an id."""
    named = [key for key in store.keys.all() if key.key == name or (key.name == name and key.revoked is None)]
    if not named:
        raise InvalidValue(
            f"there is no key {output.visible(name, 80)!r} in force in {output.visible(store.place, 200)}",
            "`demur keys list` shows those there are",
        )
    for key in named:
        revoked = store.keys.revoke(key.key, _now())
        if json:
            output.emit(_facts(revoked))
        else:
            output.say(f"{output.visible(revoked.name)} ({revoked.key}) is revoked; replicas refuse it within seconds")


def _facts(key: ApiKey) -> dict[str, Any]:
    times = {"created": key.created, "revoked": key.revoked, "last_used": key.last_used}
    return {"id": key.key, "name": key.name, "roles": list(key.roles), "limits": key.limits} | {
        name: None if at is None else _when(at) for name, at in times.items()
    }


def _words(limit: str) -> str:
    return limit.replace("_", " ")


def _when(at: int | None) -> str:
    return output.DASH if at is None else datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _now() -> int:
    return time.time_ns() // 1_000_000
