"""What the shards of a folder hold: ids that stand once, one way of making, scores that outlive a rewriting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from demur.descriptions import Description
from demur.errors import PoolFileError
from demur.pools.files import FLAGS
from demur.pools.parquet import provenance_of, read_parquet
from demur.pools.shards import libraries, reading
from demur.records import Path as ReasoningPath
from demur.records import Pool


def refuse_shared_ids(files: Sequence[Path]) -> int:
    """Raise where an id stands in two shards, or ids are of several kinds; how many there are."""
    arrow, parquet = libraries()
    seen: dict[str, Path] = {}
    kinds: dict[str, Path] = {}
    for path in files:
        with reading(str(path), arrow), parquet.ParquetFile(path) as file:
            if "id" not in file.schema_arrow.names:
                raise PoolFileError(f"{path} has no column 'id'; expected one row per path", "move it elsewhere")
            kind = file.schema_arrow.field("id").type
            if arrow.types.is_nested(kind):
                raise PoolFileError(f"the column 'id' of {path} holds {kind}, and an id is a text", "move it elsewhere")
            ids = file.read(columns=["id"]).column("id").to_pylist()
        kinds.setdefault(type(next((name for name in ids if name is not None), "")).__name__, path)
        if len(kinds) > 1:
            first, other = kinds.values()
            raise PoolFileError(f"the ids of {first} and of {other.name} are of several kinds", "keep them apart")
        for name in set(ids):
            if (other := seen.setdefault(name, path)) is not path:
                raise PoolFileError(f"the id {name!r} stands in {other} and in {path.name}; ids must differ")
    return len(seen)


def scorers_of(files: Sequence[Path]) -> tuple[Description, dict[str, dict[str, Any]]]:
    """How the pools of some shards were made, and what each of their scores is; refused where they differ."""
    described: Description | None = None
    scorers: dict[str, dict[str, Any]] = {}
    for path in files:
        known = provenance_of(path)
        described = described or known.description
        if told := described.differences(known.description, str(files[0].name), f"in {path.name}"):
            raise PoolFileError(f"the shards of {path.parent} were made in several ways: {'; '.join(told)}")
        for name, identity in known.scorers.items():
            if scorers.setdefault(name, dict(identity)) != dict(identity):
                raise PoolFileError(
                    f"the score {name!r} of {path} was made by another scorer than in other shards of its folder"
                )
    return described or Description(), scorers


def with_scores_of(
    shard: Path, pools: Sequence[Pool], scorers: Mapping[str, Mapping[str, Any]]
) -> tuple[list[Pool], dict[str, Mapping[str, Any]]]:
    """Pools that take the place of a shard, with the scores that its paths were given meanwhile, and what those are."""
    if not shard.exists():
        return list(pools), dict(scorers)
    file = read_parquet(shard)
    before = {(pool.problem.id, at): path for pool in file.pools for at, path in enumerate(pool.paths)}
    kept = []
    for pool in pools:
        earlier = [before.get((pool.problem.id, at), path) for at, path in enumerate(pool.paths)]
        paths = (_scored_as(path, was) for path, was in zip(pool.paths, earlier, strict=True))
        kept.append(replace(pool, paths=tuple(paths)))
    return kept, {**file.provenance.scorers, **scorers}


def _scored_as(path: ReasoningPath, was: ReasoningPath) -> ReasoningPath:
    if was.text != path.text or not was.scores.keys() - path.scores.keys():
        return path
    flags = {**was.extra.get(FLAGS, {}), **path.extra.get(FLAGS, {})}
    extra = {**path.extra, FLAGS: flags} if flags else path.extra
    return replace(path, scores={**was.scores, **path.scores}, extra=extra)
