"""Answers of shards read, compared and put into classes over a cluster: a shard in, a shard out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from demur.answers.relations import relation_named
from demur.descriptions import Description
from demur.engine.progress import Progress
from demur.engine.ray.blocks import Crew, work_through
from demur.engine.ray.cluster import cluster, ray_library
from demur.engine.ray.surroundings import Surroundings
from demur.errors import InvalidValue
from demur.pipeline.ray.sampling import RayOptions
from demur.pipeline.shard_contents import refuse_shared_ids
from demur.pipeline.shards import held, lacking_of, note_answers, sampled_as, shard_files
from demur.pipeline.sources import accept_part
from demur.pools.answer_classes import AnswerClasses
from demur.pools.answer_keys import refuse_other_versions
from demur.pools.fields import FieldChoice, problems_of
from demur.pools.frames import FileKeys
from demur.pools.parquet import provenance_of, read_parquet, write_parquet
from demur.pools.reading import AnswerReader
from demur.pools.source import PoolSource, Say
from demur.records import Problem

_EXAMPLES = 5
"""Classes of several spellings that one shard tells of."""


@dataclass
class ClassedShards:
    """What became of the answers of a folder."""

    classes: AnswerClasses
    reader: AnswerReader
    progress: Progress
    problems: int = 0
    already: int = 0
    """Shards that were there from before, and are not among these counts."""
    start_seconds: float = 0.0


@dataclass(frozen=True)
class _Receipt:
    problems: int
    paths: int
    classes: AnswerClasses
    reader: AnswerReader


@dataclass(frozen=True)
class _Classing:
    """What a worker does with a shard."""

    reader: AnswerReader
    """One that has read nothing yet."""
    out: Path | None
    keys: Mapping[str, Any]
    """How the answers of the whole folder are compared: all its shards must say the same."""
    described: Description
    """How the pools of the folder came to be, and their answers are read."""

    def open(self) -> None:
        _ = self.reader.extractor  # raises where its function is not there

    def do(self, shard: Path) -> _Receipt:
        file = read_parquet(shard)
        tally, reading, fields = AnswerClasses(), deepcopy(self.reader), self.reader.fields
        source = PoolSource(file.pools).of_task(fields.task)
        pools = [tally.classed(pool, reading, None) for pool in source.pools]
        if self.out is not None:
            known = replace(file.provenance, description=self.described, keys=self.keys)
            write_parquet(pools, self.out / shard.name, known)
        tally.merged = tally.merged[:_EXAMPLES]
        if fields.relation is None or relation_named(fields.relation).structure is None:
            tally.answers = set()  # nobody asks whether rules of a structure are met
        return _Receipt(
            len(pools), reading.paths, tally, replace(reading)
        )  # without the extractor, which cannot be sent


def class_shards(
    folder: Path,
    out: Path | None,
    fields: FieldChoice,
    *,
    extract: str | None = None,
    from_texts: bool = False,
    rekey: bool = False,
    partial: bool = False,
    options: RayOptions = RayOptions(),  # noqa: B008 - frozen
    watch: Callable[[Progress], None] = lambda _: None,
    say: Say = lambda _: None,
) -> ClassedShards:
    """Read and compare the answers of all shards of a folder; with `out`, write each into that folder.

    Shards that `out` holds already are not made again, unless they are older than those they were made from. Keys that
    another version of the relation made are refused, unless `rekey` replaces them. So are shards whose sampling is not
    finished, unless `partial`; what is written of those says so.
    """
    ray_library()  # before anything is made: it must be there
    files = shard_files(folder)
    problems = refuse_shared_ids(files)
    lacking = lacking_of(folder, problems)
    accept_part(lacking, partial=partial, say=say)
    if out is not None and out.exists() and out.samefile(folder):
        raise InvalidValue(f"{out} is an input of this command; choose another folder for the output")
    known, asked = provenance_of(files[0]).description, _problems_of(folder, files, fields, rekey=rekey)
    reading = AnswerReader(fields, extract, from_texts, known.answers)
    keys = replace(reading.fields, answer_field="answer").describe(asked)
    described = reading.described(known, asked, (pool for path in files for pool in read_parquet(path).pools))
    if out is not None:
        how = {"fields": repr(fields), "extract": extract, "from_texts": from_texts, "keys": keys}
        how["pipeline"] = described.document()
        note_answers(out, {**how, "of": sampled_as(folder)}, problems + lacking.problems, lacking.unfinished)
    made = {} if out is None else {path.name: _written(path) for path in shard_files(out, or_none=True)}
    there = {path.name for path in files if path.name in made and made[path.name] >= _written(path)}
    todo = [path.absolute() for path in files if path.name not in there]
    progress = Progress(len(todo), 0)
    result = ClassedShards(AnswerClasses(), reading, progress, already=len(there))
    if not todo:
        return result
    work = _Classing(deepcopy(reading), None if out is None else out.absolute(), keys, described)
    with nullcontext() if out is None else held(out):
        return _classed(result, todo, work, options, watch, say)


def _written(path: Path) -> int:
    """When a file was written."""
    return path.stat().st_mtime_ns


def _problems_of(folder: Path, files: Sequence[Path], fields: FieldChoice, *, rekey: bool) -> list[Problem]:
    """Problems of every kind that a folder has; raises where it has keys of another version, unless told to `rekey`."""
    problems, keys_by_file = list[Problem](), list[FileKeys]()
    for path in files:
        read = read_parquet(path)
        problems += problems_of(read.pools)
        keys_by_file.append((str(path), read.provenance.keys))
    if not rekey:
        refuse_other_versions(keys_by_file, fields.describe(problems), str(folder))
    return problems


def _classed(
    result: ClassedShards,
    todo: list[Path],
    work: _Classing,
    options: RayOptions,
    watch: Callable[[Progress], None],
    say: Say,
) -> ClassedShards:
    progress = result.progress
    with cluster(options.address, workers=options.workers, folder=work.out or todo[0].parent, say=say) as found:
        result.start_seconds, progress.started = found.seconds, time.monotonic()
        receipts = work_through(work, todo, Crew(found.at_most(options.workers)), Surroundings.here())
        try:
            with closing(receipts):
                for receipt in receipts:
                    result.classes.add(receipt.classes)
                    result.reader.add(receipt.reader)
                    result.problems += receipt.problems
                    progress.saved += 1
                    watch(progress)
        except KeyboardInterrupt:
            progress.interrupted = True
        progress.ended = time.monotonic()
    return result
