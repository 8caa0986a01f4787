"""Classes of answers that a table holds, so that equivalence is paid for once: which relation made them, and whether
they serve.

`demur answers` writes a column `key` and, in the metadata, how answers were compared. Keys of the relation that is
asked for, in its version of today, are used as they are. Of another version they are refused; where answers are to be
compared in another way altogether, they are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from demur.errors import PoolFileError
from demur.pools.frames import FramePools
from demur.tasks import by_task, relations_of

KEY = "key"
_ALIKE = ("field", "read_as", "labels")


def keys_serve(pools: FramePools, asked: Mapping[str, Any]) -> bool:
    """Whether the keys of a table are those of answers that are compared as `asked`, a choice of fields described."""
    made = pools.keys
    if not made or KEY not in pools.columns.names or pools.task is not None:
        return False
    if any((made.get(name) or None) != (asked.get(name) or None) for name in _ALIKE):
        return False
    theirs, ours = made["relation"], asked["relation"]
    each = all(told == by_task(relations_of(told)) for told in (theirs, ours))
    return theirs == ours or (each and set(relations_of(ours)) <= set(relations_of(theirs)))


def refuse_other_keys(pools: Any, asked: Mapping[str, Any]) -> None:
    """Raise where a table holds keys of another version of the relation that its answers are compared by."""
    if not isinstance(pools, FramePools) or not pools.keys:
        return
    theirs = dict(map(_parts, relations_of(pools.keys["relation"])))
    for name, version in map(_parts, relations_of(asked["relation"])):
        if theirs.get(name, version) != version:
            raise PoolFileError(
                f"{pools.where} holds keys of the relation {name}@{theirs[name]}, and this demur compares by "
                f"{name}@{version}",
                "make them again with `demur answers` and {rekey=True}",
            )


def _parts(spec: str) -> tuple[str, str]:
    """The name of a relation, and its version with its rules."""
    name, _, version = spec.partition("@")
    return name, version
