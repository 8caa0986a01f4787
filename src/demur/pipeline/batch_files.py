"""Batches: what a run still lacks as files of requests, and the answers to them put into the run.

Anybody may have them answered: OpenAI's batch service, `vllm run-batch`, a client of one's own. Paths are stored under
the index that their request asked for, each once; what failed or never came is asked for again by the next export.
Of a run under a stopping rule, an export asks for one wave: the rule looks at its answers before it wants another.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from demur.backends.batch import Answer, Batch, answer_of
from demur.backends.protocol import ReportedModels, consecutive, model_named, odd_choices, read_choices
from demur.engine.sample import wanted_paths
from demur.errors import InvalidValue, PoolFileError, StoreError
from demur.files.atomic import written_whole
from demur.files.inputs import lines_of
from demur.files.strict_json import NotJson, parse
from demur.pipeline.batch_ids import Asked, BatchIds
from demur.pipeline.fitted import Fitted
from demur.pools.jsonl import line_of
from demur.store import Pending, PlacedPath, Run
from demur.store.shared_work import LEASE_SECONDS, SAMPLING

MOST_LINES, MOST_BYTES = 50_000, 200_000_000
"""What OpenAI's service takes in one file."""
_AT_ONCE = 4000


@dataclass(frozen=True)
class WrittenBatch:
    """Files of requests, and what they ask for."""

    files: tuple[Path, ...]
    requests: int
    paths: int
    problems: int
    earlier: tuple[Path, ...] = ()
    """Files of these names that are there from another export, whose answers may be in the run by now."""


def write_batch(
    run: Run,
    fitted: Fitted,
    target: Path,
    *,
    seed: int = 0,
    largest_n: int | None = None,
    most_lines: int = MOST_LINES,
    check: Callable[[Path], None] = lambda _: None,
) -> WrittenBatch:
    """Write requests for every path that a run lacks, or that its rule wants next; nothing where there is none.

    One request asks for all missing paths of a problem whose indices follow each other, at most `largest_n`. What is
    too much for one file goes to several, NAME-1.jsonl and so on; `check` may refuse a name before it is written to.

    Raises where a process samples the run: what it claims, and what it will, would be paid for twice.
    """
    for name, number in (("largest_n", largest_n), ("most_lines", most_lines)):
        if number is not None and number < 1:
            raise InvalidValue(f"{name} must be at least 1, got {number}")
    refuse_while_sampled(run)
    pending = _wanted_next(run)
    refuse_while_sampled(run)  # one that has begun since
    ids = BatchIds(run, (lacking.problem for lacking in pending))
    model = fitted.pipeline.backend
    assert isinstance(model, Batch)
    counts: Counter[str] = Counter()

    def lines() -> Iterator[bytes]:
        for lacking in pending:
            n_paths, missing = run.n_paths or 1, lacking.missing
            wanted = wanted_paths(seed, lacking.problem.id, n_paths, missing, lacking.first_seed)
            prompt = fitted.render(lacking.problem)
            for portion in consecutive(wanted, largest_n or len(wanted)):
                named = ids.of(lacking.problem, portion)
                counts.update(requests=1, paths=len(portion))
                yield (line_of(model.request(named, prompt, fitted.settings, portion)) + "\n").encode()

    files = _written(lines(), target, most_lines, check)
    if files:
        facts = {**counts, "logprobs": fitted.settings.logprobs, "batch": True}
        run.note("export", _now(), facts)
    earlier = tuple(path for path in _named_like(target) if path not in files)
    return WrittenBatch(tuple(files), counts["requests"], counts["paths"], len(pending), earlier)


def refuse_while_sampled(run: Run) -> None:
    """Raise where a process that lives samples a run: sooner or later it draws all that the run lacks."""
    living = [one for one in run.everybody_at_work() if one.task == SAMPLING and not (one.is_gone or one.is_over)]
    if living:
        problems, paths = sum(len(one.numbers) for one in living), sum(one.open_paths for one in living)
        names = ", ".join(one.name for one in living[:3]) + (" and others" if len(living) > 3 else "")
        raise StoreError(
            f"the run {run.name!r} is being sampled by {names}, with {paths} paths of {problems} problems claimed: "
            "a batch would have them paid for twice",
            "export when that has ended, or end it with Ctrl-C first; one that died is forgotten after "
            f"{LEASE_SECONDS:g} seconds",
        )


def _wanted_next(run: Run) -> list[Pending]:
    """The problems that lack paths, and which; under a stopping rule, those of the next wave alone."""
    pending, stopping = run.pending(), run.stopping
    if stopping is None:
        return pending
    keys = run.keys_of_paths()
    waves = (replace(one, missing=tuple(stopping.wanted(keys.get(one.number, {})))) for one in pending)
    return [wave for wave in waves if wave.missing]


def _written(lines: Iterable[bytes], target: Path, most_lines: int, check: Callable[[Path], None]) -> list[Path]:
    """Lines in one file, or in several where they are too many for one."""
    files: list[Path] = []
    part: list[bytes] = []
    size = 0

    def put(path: Path) -> None:
        check(path)
        with written_whole(path, PoolFileError) as unfinished, unfinished.open("wb") as stream:
            stream.writelines(part)
        files.append(path)

    for line in lines:
        if part and (len(part) == most_lines or size + len(line) > MOST_BYTES):
            put(numbered(target, len(files) + 1))
            part, size = [], 0
        part.append(line)
        size += len(line)
    if part:
        put(numbered(target, len(files) + 1) if files else target)
    return files


def _named_like(target: Path) -> Iterator[Path]:
    """What an export to this name may have written: the file, or its parts as far as they go."""
    if target.exists():
        yield target
    number = 1
    while (part := numbered(target, number)).exists():
        yield part
        number += 1


def numbered(target: Path, number: int) -> Path:
    """The name of one of several files: batch.jsonl is batch-1.jsonl, batch-2.jsonl, …"""
    return target.with_name(f"{target.stem}-{number}{target.suffix}")


@dataclass
class ReadBatch:
    """What came of the answers to a batch."""

    lines: int = 0
    saved: int = 0
    there: int = 0
    """Paths that the run had already, or that came twice: the first stays."""
    short: int = 0
    """Paths that were asked for and are not in an answer."""
    failed: Counter[str] = field(default_factory=Counter)
    """Requests that failed, by cause."""
    foreign: Counter[str] = field(default_factory=Counter)
    """Answers that are not of this run, by reason; nothing of them is stored."""
    first_foreign: str = ""
    """Where the first of them stands."""
    reported: ReportedModels = field(default_factory=ReportedModels)
    lacking: int = 0
    """Paths that the run still lacks; under a stopping rule, those that it wants next."""


def read_batch(run: Run, fitted: Fitted, files: Sequence[Path], *, mixed_models: bool = False) -> ReadBatch:
    """Put the answers of a batch into a run; whatever is in the way of one, those before it are kept.

    Raises before anything is stored if the answers, or they and the run, name several models, unless `mixed_models`.
    """
    started, read = _now(), ReadBatch()
    problems = run.questions()
    ids = BatchIds(run, (problem for _, problem in problems))
    known = run.reported_models()
    if not mixed_models:
        _refuse_several_models(known, ids, files)
    read.reported = ReportedModels(known, mixed=mixed_models)
    numbers = {problem.id: number for number, problem in problems}
    missing = {lacking.problem.id: set(lacking.missing) for lacking in run.pending()}
    new: list[PlacedPath] = []

    def save() -> None:
        run.save(new)
        read.saved += len(new)
        new.clear()

    try:
        for where, answer in _answers(files):
            read.lines += 1
            asked = ids.read(answer.custom_id)
            if isinstance(asked, str):
                read.foreign[asked] += 1
                read.first_foreign = read.first_foreign or f"{where}: {answer.custom_id!r:.70} is {asked}"
                continue
            lacks = missing.get(asked.problem.id, set())
            for place, path in _paths(fitted, asked, answer, read):
                if place in lacks:
                    lacks.discard(place)
                    new.append(PlacedPath(numbers[asked.problem.id], place, path))
                else:
                    read.there += 1
            if len(new) >= _AT_ONCE:
                save()
    finally:
        if new:
            save()
        if read.saved:
            facts: dict[str, Any] = {"paths": read.saved, "failed": sum(read.failed.values()), "batch": True}
            facts |= {"models": dict(read.reported.paths)} if read.reported.paths else {}
            run.note("import", started, facts)
    read.lacking = sum(len(lacking.missing) for lacking in _wanted_next(run))
    return read


def _answers(files: Sequence[Path]) -> Iterator[tuple[str, Answer]]:
    for path in files:
        for number, line in lines_of(path, PoolFileError):
            if line.isspace():
                continue
            where = f"{path}, line {number}"
            try:
                record = parse(line)
            except NotJson as error:
                raise PoolFileError(
                    f"{where}: expected one whole JSON object: {error}; what stands before it is in the run",
                    "fetch the file again",
                ) from None
            yield where, answer_of(record, where)


def _refuse_several_models(known: Mapping[str, int], ids: BatchIds, files: Sequence[Path]) -> None:
    """Raise unless the answers of this run name one model, the one that the run has paths of."""
    models = Counter[str]()
    with contextlib.suppress(PoolFileError):  # of a line that cannot be read, when the answers before it are stored
        for _, answer in _answers(files):
            named = None if answer.document is None else model_named(answer.document)
            if named is not None and not isinstance(ids.read(answer.custom_id), str):
                models[named] += 1
    if len({*known, *models}) > 1:
        told = [f"{name!r:.80} {count}" for name, count in models.most_common(3)]
        theirs = f"; the run has paths of {', '.join(f'{name!r:.80}' for name in known)}" if known else ""
        raise PoolFileError(
            f"the answers name several models ({', '.join(told)} answers{theirs}), and nothing is stored",
            "leave the lines of the others out, so that the next export asks for their paths again, or keep the paths "
            "of all of them with {mixed_models=True}",
        )


def _paths(fitted: Fitted, asked: Asked, answer: Answer, read: ReadBatch) -> Iterator[tuple[int, Any]]:
    """The paths of one answer, read as those that are sampled here."""
    failure = answer.failure
    if answer.document is not None:
        failure = odd_choices(answer.document["choices"], len(asked.wanted))
    if failure is not None:
        read.failed[failure] += 1
        return
    completions = read_choices(answer.document, asked.wanted)
    read.reported.take(completions)
    read.short += len(asked.wanted) - len(completions)
    for completion in completions:
        yield completion.path, fitted.path(asked.problem, completion)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
