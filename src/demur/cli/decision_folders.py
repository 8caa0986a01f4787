"""Decisions on a folder of shards as a folder: one table per shard, under its name and written whole.

Each table says how it was made and of what, so that a command that was ended goes on behind the last, and decisions of
two policies never stand in one folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import demur
from demur.cli import decision_files, replacing
from demur.errors import InvalidValue, PoolFileError
from demur.files.strict_json import as_json
from demur.pools.shards import ENDINGS, Shard, is_remote, shards_of

if TYPE_CHECKING:
    from demur.policy.decisions import Decisions


def is_folder(out: str | None) -> bool:
    """Whether decisions go to a folder: its name ends in a slash, or it is there."""
    return out is not None and out != "" and (out.endswith("/") or (not is_remote(out) and Path(out).is_dir()))


@dataclass(frozen=True)
class DecisionFolder:
    """A folder of decisions, and what is still to be written."""

    out: str
    shards: Sequence[Shard]
    made: Mapping[str, str]
    """By the name of each shard, how its decisions are made, and of what."""
    there: frozenset[str]
    """The shards whose decisions are there."""

    @classmethod
    def opened(cls, out: str, place: str, policy: Path, flags: Mapping[str, object]) -> DecisionFolder:
        """A folder for the decisions on a place; refused where it holds anything else."""
        from demur.pools.targets import tables_at

        _refuse_other_kinds(out, place)
        shards = shards_of(place)
        _refuse_inputs(out, shards)
        how = {"policy": hashlib.sha256(policy.read_bytes()).hexdigest(), "demur": demur.__version__, **flags}
        if flags.get("fdr") is not None:  # of a batch, each decision hangs on all pools
            how["batch"] = [[shard.base_name, *shard.stamp] for shard in shards]
        made = {shard.base_name: _made(how, shard) for shard in shards}
        way = as_json(how, sort_keys=True)
        there = {table.base_name for table in tables_at(out) if _is_there(table, made, way, place, out)}
        return cls(out, shards, made, frozenset(there))

    def write(self, decided: Decisions, line: Callable[[demur.Decision], dict[str, Any]], key: Sequence[str]) -> None:
        """Write what is lacking, shard by shard: decisions stand in the order of the pools in them."""
        from demur.pipeline.shards import held
        from demur.pools.targets import make_folder

        rows = self._rows(decided)
        make_folder(self.out)
        with nullcontext() if is_remote(self.out) else held(Path(self.out)):
            for shard, own in zip(self.shards, rows, strict=True):
                if shard.base_name not in self.there:
                    target = f"{self.out.rstrip('/')}/{shard.base_name}"
                    decision_files.write_some(decided, own, line, target, key, self.made[shard.base_name])

    def _rows(self, decided: Decisions) -> list[range]:
        """The decisions on each shard; of pools that were left out there are none."""
        ids, rows, row = decided.votes.ids or (), list[range](), 0
        for shard in self.shards:
            names, start = set(_ids(shard)), row
            while row < len(ids) and ids[row] in names:
                row += 1
            rows.append(range(start, row))
        if row < len(ids):
            raise PoolFileError(f"the problem {ids[row]!r} stands in no file that was there", "run the command again")
        return rows

    @property
    def told(self) -> str:
        """What was written, in words."""
        new, old = len(self.shards) - len(self.there), len(self.there)
        return f"Wrote {new} of {len(self.shards)} files to {self.out}{'; the others were there' if old else ''}."


def _refuse_other_kinds(out: str, place: str) -> None:
    from demur.pipeline.sources import is_store

    if is_store(place) or (Path(place).is_file() and not place.lower().endswith(ENDINGS)):
        raise InvalidValue(
            f"{out} is a folder, for a table of decisions on each of some Parquet files, and {place} is none",
            "name a .jsonl or .parquet file to write",
        )
    if Path(out.rstrip("/")).is_file():
        raise InvalidValue(f"{out} is named like a folder, and is a file; choose another name for the output")


def _refuse_inputs(out: str, shards: Sequence[Shard]) -> None:
    from demur.pools.targets import is_same_place, writing

    with writing(out):
        if is_same_place(out, shards[0].name.rpartition("/")[0] or "."):
            raise InvalidValue(f"{out} holds {shards[0].name}, an input of this command; choose another folder")


def _made(how: Mapping[str, object], shard: Shard) -> str:
    return as_json({"how": how, "of": shard.stamp}, sort_keys=True)


def _is_there(table: Shard, made: Mapping[str, str], way: str, place: str, out: str) -> bool:
    """Whether a table of the folder is what would be written; an error where it is not this command's."""
    with table.opened() as file:
        known = file.schema_arrow.metadata or {}
    if known.get(b"demur") != replacing.DECISION_MARK or decision_files.MADE not in known:
        raise PoolFileError(
            f"{table.name} is there already and is not of a folder of decisions", "choose another folder"
        )
    if table.base_name not in made:
        raise PoolFileError(f"{table.name} decides on a file that {place} does not hold", "choose another folder")
    told = known[decision_files.MADE].decode(errors="replace")
    if told == made[table.base_name]:
        return True
    if as_json(_how(told), sort_keys=True) != way:
        raise PoolFileError(
            f"{table.name} was decided another way: by another policy, another version of demur, or with other flags",
            f"choose another folder, or remove {out}",
        )
    return False  # of a shard that was changed since


def _how(told: str) -> object:
    try:
        return json.loads(told)["how"]
    except (ValueError, KeyError, TypeError):
        return None


def _ids(shard: Shard) -> Iterable[str]:
    """The problems of a shard."""
    from demur.pools.frame_rows import name_of
    from demur.pools.parquet_columns import ParquetColumns

    runs = ParquetColumns([shard]).runs("id")
    return () if runs is None else map(name_of, runs.values)
