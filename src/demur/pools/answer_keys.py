"""Classes of answers that a table holds, so that equivalence is paid for once: which relation made them, and whether
they serve.

`demur answers` writes a column `key` and, in the metadata, how answers were compared. Keys of the relation that is
asked for, in its version of today, are used as they are. Of another version they are refused; where answers are to be
compared in another way altogether, they are not looked at. Nor are those of a folder whose files made them in several
ways, which is refused where one of these is another version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from demur.errors import PoolFileError
from demur.pools.frames import FileKeys, FramePools
from demur.tasks import by_task, relations_of

KEY = "key"
_ALIKE = ("field", "read_as", "labels")
_NAMED = 3
"""Files that a message names."""


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
    if isinstance(pools, FramePools):
        refuse_other_versions(pools.keys_by_file, asked, pools.where)


def refuse_other_versions(keys_by_file: Sequence[FileKeys], asked: Mapping[str, Any], where: str) -> None:
    """Raise where files at a place hold keys of another version of the relation that is asked for; names them."""
    ours = dict(map(_parts, relations_of(asked["relation"])))
    files_of: dict[tuple[str, str], list[str]] = {}
    for file, keys in keys_by_file:
        for relation in map(_parts, relations_of(keys["relation"]) if keys else ()):
            files_of.setdefault(relation, []).append(file)
    names = {name for name, version in files_of if ours.get(name, version) != version}
    if not names:
        return
    told = [
        f"{name}@{version}" + ("" if len(files) == len(keys_by_file) else f" in {_listed(files)}")
        for (name, version), files in sorted(files_of.items())
        if name in names
    ]
    raise PoolFileError(
        f"{where} holds keys of the relation {', of '.join(told)}, and this demur compares by "
        f"{' and '.join(f'{name}@{ours[name]}' for name in sorted(names))}",
        f"make them again: `demur answers {where}` with {{rekey=True}} and {{out}}",
    )


def _listed(files: Sequence[str]) -> str:
    names = [file.rsplit("/", 1)[-1] for file in files]
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _parts(spec: str) -> tuple[str, str]:
    """The name of a relation, and its version with its rules."""
    name, _, version = spec.partition("@")
    return name, version
