"""Which groups the problems of a file are of: in the field `group`, or in another that is named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from demur.errors import InvalidValue, PoolFileError
from demur.pools.field_names import there_is
from demur.pools.frame_rows import group_of_cell
from demur.pools.frame_table import group_column
from demur.pools.frames import FramePools
from demur.pools.parts import with_field
from demur.records import Pool, names_labels
from demur.voting.cases import GroupColumn

GROUP = "group"
"""The field that holds groups unless another is named."""
_LOOKED_AT = 100


def read_groups(pools: Sequence[Pool], name: str = GROUP, *, in_use: bool = False) -> GroupColumn:
    """The groups of each problem; `in_use` says that a policy names the field, which new problems may lack."""
    if name == GROUP:
        if isinstance(pools, FramePools):
            return group_column(pools, group_of_cell)
        return GroupColumn.of(pool.problem.group for pool in pools)
    if names_labels(name):
        raise InvalidValue(f"{name!r} names labels, and groups must not be made of labels", "name another field")
    pools = with_field(pools, name)
    values = [field_of_problem(pool, name) for pool in pools]
    if not in_use and all(value is None for value in values):
        raise PoolFileError(f"no problem of the file has a field {name!r}", f"{there_is(name, _fields(pools))}")
    return GroupColumn.of(group_of_cell(value, pool.problem.id) for value, pool in zip(values, pools, strict=True))


def field_of_problem(pool: Pool, name: str) -> Any:
    """A field of a problem; of its paths where those have it, as rows of a table do, and agree."""
    if name in pool.problem.extra:
        return pool.problem.extra[name]
    values = [path.extra.get(name) for path in pool.paths]
    if any(value != values[0] for value in values):
        raise PoolFileError(f"problem {pool.problem.id!r}: its paths have different values of {name!r}")
    return values[0]


def _fields(pools: Sequence[Pool]) -> list[str]:
    """Fields that may hold groups: texts, and lists."""
    names: dict[str, None] = {}
    for pool in pools[:_LOOKED_AT]:
        for fields in (pool.problem.extra, pool.paths[0].extra):
            names |= {name: None for name, value in fields.items() if isinstance(value, (str, list))}
    return [GROUP, *sorted(name for name in names if not names_labels(name))]
