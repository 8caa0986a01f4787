"""Policies and cascades that flags name, and what goes with each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import demur
from demur.cli.flag_groups import flags_given
from demur.errors import InvalidValue

if TYPE_CHECKING:
    pass


def load_policy(file: Path | str, key_file: Path | None) -> demur.Policy:
    """A policy, its signature checked where a key is given."""
    return demur.Policy.load(file, key=None if key_file is None else demur.read_key(key_file))


def load_cascade(file: Path | str, key_file: Path | None) -> demur.Cascade:
    """A cascade, its signature checked where a key is given."""
    return demur.Cascade.load(file, key=None if key_file is None else demur.read_key(key_file))


def refuse_beside_cascade(**flags: object) -> None:
    """Raise if flags speak of a policy, where a cascade decides."""
    if given := flags_given(**flags):
        raise InvalidValue(f"{', '.join(given)} and --cascade exclude each other: a cascade holds one promise")


def one_of(places: Sequence[str], what: str) -> str:
    """The one place that was given."""
    if len(places) != 1:
        raise InvalidValue(f"with a {what}, give one file of pools or one run, got {len(places)}")
    return places[0]


def stage_settings(
    given: Sequence[str] | None, names: Sequence[str], keys: Sequence[str], flag: str = "--stage"
) -> dict[str, dict[str, str]]:
    """`strong.score=judge` as {strong: {score: judge}}, of stages (or policies, by another flag) that there are."""
    settings: dict[str, dict[str, str]] = {}
    for setting in given or ():
        left, equals, value = setting.partition("=")
        name, dot, key = left.rpartition(".")
        if not (equals and dot and value):
            raise InvalidValue(f"{flag} takes NAME.KEY=VALUE, such as {names[-1]}.{keys[0]}=…; got {setting!r}")
        if name not in names:
            raise InvalidValue(f"{flag} {setting} names {name!r}, and there are {', '.join(names)}")
        if key not in keys:
            raise InvalidValue(f"{flag} {setting}: there is no setting {key!r} here, but {', '.join(keys)}")
        settings.setdefault(name, {})[key] = value
    return settings
