"""A folder of shards: pools in Parquet files of a block of problems each, and what is still to be done.

    shards/_shards.json                     how they were made, and which problems are in which block
    shards/block-000017.parquet             a block's pools, written whole
    shards/.unfinished/block-000017.db      what came of a block that is not whole yet: a run of its own

A block is finished when its shard is there and nothing of it is unfinished. Nothing else is kept anywhere, so that
whoever comes next, after whatever happened, looks at the folder and goes on.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from demur.descriptions import Description, digest
from demur.errors import InvalidValue, PoolFileError
from demur.files.atomic import written_whole
from demur.files.inputs import open_file, text_of
from demur.files.strict_json import NotJson, as_json, parse
from demur.pools.parquet import read_parquet, write_parquet
from demur.pools.shards import ENDINGS
from demur.records import Problem

BLOCK = 64
"""Problems to a shard, unless told otherwise."""
SAMPLE_AGAIN = "sample the rest by running the same `demur sample` command again"
_BOTH_AGAIN = "run the same `demur sample` and `demur answers` commands again"
_FORMAT, _VERSION = "demur-shards", 1
_MANIFEST, _UNFINISHED, _LOCK = "_shards.json", ".unfinished", ".lock"
_ENDING = ".parquet"
_LEFT_OVER = re.compile(r"\..*\.unfinished")
"""What a worker that was killed while it wrote a file leaves behind."""


@dataclass(frozen=True)
class Block:
    """Some of the problems, by number."""

    number: int
    problems: tuple[Problem, ...]

    @property
    def name(self) -> str:
        return f"block-{self.number:06d}"

    @property
    def entry(self) -> Entry:
        """What is noted of it."""
        from demur.store.rows import problem_row, what_is_asked  # a pool file does not wait for a database library

        rows = [problem_row(problem) for problem in self.problems]
        asked = [as_json([row["id"], *what_is_asked(row)], sort_keys=True) for row in rows]
        return Entry(len(rows), digest(asked), digest(rows))


class Entry(NamedTuple):
    """A block as the manifest has it."""

    problems: int
    digest: str
    """Which problems these are, and how they are asked."""
    facts: str = ""
    """What is known of them, gold and groups too, which may change."""


@dataclass(frozen=True)
class Manifest:
    """How shards are made, and the blocks in order."""

    description: Description
    n_paths: int
    seed: int
    blocks: tuple[Entry, ...] = ()

    def document(self) -> dict[str, Any]:
        known = {"format": _FORMAT, "version": _VERSION, "fingerprint": self.description.fingerprint}
        known |= {"pipeline": self.description.document(), "n_paths": self.n_paths, "seed": self.seed}
        return {**known, "blocks": [entry._asdict() for entry in self.blocks]}

    @classmethod
    def of(cls, document: Any, where: Path) -> Self:
        """From plain values; an error says what is wrong with them."""
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise PoolFileError(f"{where} does not tell of shards", "choose another folder")
        if document.get("version") != _VERSION:
            raise PoolFileError(f"{where} is of version {document.get('version')!r:.20}; this demur reads {_VERSION}")
        try:
            blocks = tuple(
                Entry(int(block["problems"]), str(block["digest"]), str(block.get("facts", "")))
                for block in document["blocks"]
            )
            described = Description.of(document["pipeline"])
            return cls(described, int(document["n_paths"]), int(document["seed"]), blocks)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise PoolFileError(f"{where} is damaged: {error}", "use a whole copy of it") from None

    def differences(self, other: Manifest) -> list[str]:
        told = self.description.differences(other.description, "these shards", "now")
        for name in ("n_paths", "seed"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                told.append(f"{name} is {mine} in these shards, {theirs} now")
        return told


@dataclass(frozen=True)
class ShardFolder:
    """The folder of a sampling that is under way or done."""

    folder: Path
    blocks: tuple[Block, ...]

    def shard(self, block: Block) -> Path:
        return self.folder / f"{block.name}{_ENDING}"

    def unfinished_run(self, block: Block) -> Path:
        return self.folder / _UNFINISHED / f"{block.name}.db"

    def lacking(self) -> list[Block]:
        """The blocks that are not finished."""
        there = {path.name for path in shard_files(self.folder, or_none=True)}
        begun = {path.stem for path in (self.folder / _UNFINISHED).glob("*.db")}
        return [block for block in self.blocks if block.name + _ENDING not in there or block.name in begun]


@contextmanager
def opened(folder: Path, made: Manifest, problems: Sequence[Problem], block: int | None) -> Iterator[ShardFolder]:
    """A folder for these problems, made or gone on with; refused where it holds others, or was made another way.

    Problems that are new come into blocks of their own behind those that are there.
    """
    _refuse_repeated(problems)
    with held(folder):
        manifest = folder / _MANIFEST
        there = Manifest.of(_document(manifest), manifest) if manifest.exists() else replace(made, blocks=())
        if differences := there.differences(made):
            raise PoolFileError(
                f"the shards in {folder} were made another way: {'; '.join(differences)}",
                "choose another folder, or ask for what they were made with",
            )
        if not manifest.exists() and shard_files(folder, or_none=True):
            raise PoolFileError(f"{folder} holds Parquet files that are no shards of demur's", "choose another folder")
        shards = ShardFolder(folder, _blocks(there, problems, block or BLOCK, folder))
        known = tuple(one.entry for one in shards.blocks)
        _renew(shards, known, there.blocks)  # before it is noted: whoever is ended here does it again
        known += there.blocks[len(known) :]
        if known != there.blocks or not manifest.exists():
            _write(manifest, replace(there, blocks=known).document())
        yield shards


def _renew(folder: ShardFolder, known: Sequence[Entry], before: Sequence[Entry]) -> None:
    """Put what is known of problems now, gold or groups, into shards that were written when something else was."""
    for block, now, then in zip(folder.blocks, known, before, strict=False):
        shard = folder.shard(block)
        if now.facts == then.facts or not shard.exists():
            continue
        file, problems = read_parquet(shard), {problem.id: problem for problem in block.problems}
        pools = [replace(pool, problem=problems.get(pool.problem.id, pool.problem)) for pool in file.pools]
        write_parquet(pools, shard, file.provenance)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """A folder that no other command changes meanwhile; what a killed one left half written is cleared away."""
    try:
        (folder / _UNFINISHED).mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / _UNFINISHED / _LOCK, os.O_CREAT | os.O_RDWR, 0o666)
    except OSError as error:
        raise PoolFileError(f"cannot write to the folder {folder}: {error.strerror or error}") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PoolFileError(f"another command works on {folder}", "wait until it has ended") from None
        except OSError:
            pass  # a filesystem that knows no locks: shards are written whole all the same
        for left in folder.iterdir():
            if _LEFT_OVER.fullmatch(left.name) and left.is_file():
                left.unlink(missing_ok=True)
        yield
    finally:
        os.close(lock)


def shard_files(folder: Path, *, or_none: bool = False) -> list[Path]:
    """The shards of a folder, in order; each can be opened, and is whole."""
    if not folder.is_dir():
        if or_none:
            return []
        raise InvalidValue(f"{folder} is no folder of shards", "sample with {engine=ray} to make one")
    files = (path for path in folder.iterdir() if path.name[0] not in "._" and path.is_file())
    named = sorted(path for path in files if path.name.lower().endswith(ENDINGS))
    for path in named:
        _refuse_cut(path)
    if not named and not or_none:
        raise PoolFileError(f"{folder} holds no shard yet")
    return named


@dataclass(frozen=True)
class Lacking:
    """What is still to come of a sampling."""

    problems: int = 0
    """How many are not there."""
    told: str = ""
    """What is lacking, in words; none where nothing is."""
    go_on: str = SAMPLE_AGAIN
    """The way to get it."""
    unfinished: int = 0
    """How many shards may change."""


def lacking_of(folder: Path, there: int) -> Lacking:
    """What a folder lacks in which so many problems are there; nothing of one that no command of ours made."""
    manifest = folder / _MANIFEST
    if not manifest.exists():
        return Lacking()
    document = _document(manifest)
    if isinstance(document, dict) and "answers" in document:
        problems, unfinished = (_count(document.get(name, 0), manifest) for name in ("problems", "unfinished"))
        told, go_on = f"{unfinished} of the shards that {folder} was made of were unfinished", _BOTH_AGAIN
    else:
        entries, go_on = Manifest.of(document, manifest).blocks, SAMPLE_AGAIN
        problems = sum(entry.problems for entry in entries)
        unfinished = len(ShardFolder(folder, tuple(Block(at, ()) for at in range(len(entries)))).lacking())
        told = f"{unfinished} of {len(entries)} shards in {folder} are unfinished"
    if there < problems:
        told = f"{problems - there} of {problems} problems of the shards in {folder} lack paths"
    elif not unfinished:
        return Lacking()
    return Lacking(max(0, problems - there), told, go_on, unfinished)


def _count(value: Any, where: Path) -> int:
    if not isinstance(value, int) or value < 0:
        raise PoolFileError(f"{where} is damaged: a count is {value!r:.40}", "use a whole copy of it")
    return value


def unfinished_scores(shard: Path, score: str) -> Path:
    """The store in which scores of a shard are kept until it has all of them."""
    return shard.parent / _UNFINISHED / f"{shard.name}.{digest(score)[-12:]}.scores.db"


def _refuse_cut(path: Path) -> None:
    """Raise where a shard does not end as it should: Parquet's own description of a file is its end."""
    try:
        with open_file(path) as stream:
            head = stream.read(4)
            stream.seek(-min(8, path.stat().st_size), os.SEEK_END)
            tail = stream.read()[-4:]
    except OSError as error:
        raise PoolFileError(f"cannot read {path}: {error.strerror or error}") from None
    if not head == tail == b"PAR1":
        raise PoolFileError(
            f"{path} is cut off or no Parquet file",
            "remove it, and run the command that made it again: it alone is lost",
        )


def note_answers(folder: Path, how: Mapping[str, Any], problems: int, unfinished: int = 0) -> None:
    """Note in a folder how its shards are made, and how much there is to be; refused where others are there.

    `problems` are those of the whole sampling, whatever has come of it: a part is not taken for all.
    """
    manifest = folder / _MANIFEST
    made = {"format": _FORMAT, "version": _VERSION, "answers": dict(how)}
    noted = {**made, "problems": problems, "unfinished": unfinished}
    there = _document(manifest) if manifest.exists() else None
    if there is None and shard_files(folder, or_none=True):
        raise PoolFileError(f"{folder} holds Parquet files that are not this command's", "choose another folder")
    if there is not None and (not isinstance(there, dict) or {**there, **made} != there):
        raise PoolFileError(f"the shards in {folder} were made another way", "choose another folder")
    if there != noted:
        with held(folder):
            _write(manifest, noted)


def sampled_as(folder: Path) -> list[Any] | None:
    """Which sampling a folder is of: how, with which seed, and its first problems; None where it does not say."""
    manifest = folder / _MANIFEST
    document = _document(manifest) if manifest.exists() else None
    if not isinstance(document, dict) or "answers" in document:
        return None
    known = Manifest.of(document, manifest)
    return [known.description.fingerprint, known.n_paths, known.seed, *(entry.digest for entry in known.blocks[:1])]


def _blocks(there: Manifest, problems: Sequence[Problem], size: int, folder: Path) -> tuple[Block, ...]:
    """Problems in blocks, those that are there first and as they are."""
    if size < 1:
        raise InvalidValue(f"a block has at least one problem, got {size}")
    blocks, at = [], 0
    for number, (many, which, _) in enumerate(there.blocks):
        block = Block(number, tuple(problems[at : at + many]))
        if at >= len(problems):
            break  # fewer are asked for than were before
        if block.entry.digest != which:
            if len(block.problems) < many:
                _refuse_unfinished_part(folder, block, at + many)
                break  # asked for in part: the block stays as it is
            raise PoolFileError(
                f"block {number} of {folder} holds other problems than these",
                "choose another folder, or give the same questions in the same order",
            )
        blocks.append(block)
        at += many
    else:
        starts = range(at, len(problems), size)
        blocks += [Block(len(blocks) + k, tuple(problems[s : s + size])) for k, s in enumerate(starts)]
    return tuple(blocks)


def _refuse_unfinished_part(folder: Path, part: Block, upto: int) -> None:
    """Raise where some problems of a block are asked for that are not there yet: a block is sampled whole."""
    if ShardFolder(folder, (part,)).lacking():
        asked = f"only {len(part.problems)} of its problems are asked for"
        raise PoolFileError(
            f"block {part.number} of {folder} is unfinished, and {asked}",
            f"ask for the first {upto} problems at least, or choose another folder",
        )


def _refuse_repeated(problems: Sequence[Problem]) -> None:
    seen: set[str] = set()
    for problem in problems:
        if problem.id in seen:
            raise InvalidValue(f"the id {problem.id!r} occurs twice among the problems; ids must differ")
        seen.add(problem.id)


def _document(path: Path) -> Any:
    try:
        return parse(text_of(path, PoolFileError))
    except NotJson as error:
        raise PoolFileError(f"{path} is damaged: {error}", "use a whole copy of it") from None


def _write(path: Path, document: Mapping[str, Any]) -> None:
    with written_whole(path, PoolFileError) as unfinished:
        unfinished.write_text(as_json(document) + "\n")
