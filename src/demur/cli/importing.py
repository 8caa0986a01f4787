"""`demur import`: recorded pools, logs of other programs and answered batches into a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import demur
from demur.cli import output, sampling_options
from demur.cli.next_command import next_place
from demur.cli.options import Json, NewRun, RunPlace, Text, argument, option
from demur.cli.replacing import refuse_store_name
from demur.errors import InvalidValue, PoolFileError, StoreError

if TYPE_CHECKING:
    from demur.descriptions import Description
    from demur.pipeline.batch_files import ReadBatch
    from demur.pipeline.log_import import ImportedLog
    from demur.store import PlacedPath, Run

NAME = "import"
HELP = """Put recorded pools into a run: from JSON lines (plain or .gz), Parquet, or CSV with one row per path; or
from a folder of shards, as `demur sample --engine ray` writes it.

What the file says of itself, as one that `demur export` wrote does, the run says too. Importing the same file again
adds nothing; importing another adds its problems.

Logs of inspect (.eval, .json), sample logs of lm-eval and results of uqlm are told by what they hold: epochs, repeats
and sampled responses are the paths. What their scorers said stays a label, and counts only where `--labels-by` says so.

With `--batch`, files are the results and errors of a batch that `demur export --batch` wrote. Each path is stored once,
under the index it was asked for; what failed is counted by cause, and the next `export --batch` asks for it again.

Examples:

`demur import pools.jsonl -o runs/recorded.db`

`demur import logs/gsm8k.eval -o runs/recorded.db --labels-by match`

`demur import --batch output.jsonl errors.jsonl -o runs/gsm8k.db`

`demur import shards/ -o runs/sampled.db`
"""
_FILES = (
    "Pool files, folders of shards, s3:// addresses; logs of inspect, lm-eval or uqlm; of a batch, results and errors."
)
_LABELS_BY = "Of a log of inspect: the score that says which paths are right; it becomes their field `correct`."
_BATCH = 8000


def run(
    files: Annotated[list[str], argument("FILE", _FILES)],
    out: RunPlace,
    run_name: NewRun = "run",
    batch: Annotated[bool, typer.Option("--batch", help="The files are results and errors of a batch.")] = False,
    labels_by: Annotated[Text, option("--labels-by", "SCORER", _LABELS_BY)] = None,
    recover: Annotated[bool, typer.Option("--recover", help="Take what a log holds that was cut off.")] = False,
    extract: sampling_options.Extract = None,
    mixed_models: sampling_options.MixedModels = None,
    json: Json = False,
) -> None:
    from demur.pools.files import neighbour_file
    from demur.pools.neighbours.kinds import INSPECT
    from demur.pools.shards import is_remote

    if batch:
        if labels_by is not None or recover:
            raise InvalidValue("--labels-by and --recover are for logs of inspect, not for a --batch")
        _import_batch([Path(file) for file in files], out, run_name, extract, bool(mixed_models), json=json)
        return
    if mixed_models:
        raise InvalidValue("--mixed-models goes with --batch")
    refuse_store_name(out)
    if extract is not None:
        raise InvalidValue("--extract goes with --batch; of other files, `demur answers` reads answers off texts")
    imported: list[dict[str, Any]] = []
    for file in files:
        if not is_remote(file) and (file.endswith(".eval") or neighbour_file(Path(file)) == INSPECT):
            imported.append(_import_log(Path(file), out, run_name, labels_by, recover, json=json))
        elif labels_by is not None or recover:
            raise InvalidValue(f"--labels-by and --recover are for logs of inspect, and {file} is none")
        else:
            imported.append(_import_pools(file, out, run_name, json=json))
    if json and len(files) == 1:
        output.emit({"run": run_name, **imported[0]})
    elif json:
        named = [{"file": file, **facts} for file, facts in zip(files, imported, strict=True)]
        output.emit({"run": run_name, "files": named})


def _import_pools(file: str, out: str, run_name: str, *, json: bool) -> dict[str, Any]:
    from demur.pipeline.shard_contents import refuse_shared_ids
    from demur.pipeline.shards import lacking_of, shard_files
    from demur.pipeline.sources import BIASED, lacking_in
    from demur.pools.files import source_of_file

    if (folder := Path(file)).is_dir():
        files = shard_files(folder)
        lacking = lacking_of(folder, refuse_shared_ids(files))
        if lacking.told:
            raise PoolFileError(f"{lacking.told}; {BIASED}", lacking.go_on)
        problems, new, names, left_out = _bring_in(lambda: map(source_of_file, files), out, run_name)
    else:
        whole = [source_of_file(file)]  # read once: it may be a pipe
        lacking = lacking_in(file, whole[0])
        if lacking.told:
            raise PoolFileError(f"{lacking.told}; {BIASED}", lacking.go_on)
        problems, new, names, left_out = _bring_in(lambda: whole, out, run_name)
    if not json:
        output.say(f"{problems} problems, {new} new paths; scores: {', '.join(names) or 'none'}.")
        if left_out:
            output.say(f"note: {left_out} scores are null or not finite, and are left out")
    facts = {"problems": problems, "new_paths": new, "scores": names}
    return facts | ({"left_out_scores": left_out} if left_out else {})


def _bring_in(
    sources: Callable[[], Iterable[demur.PoolSource]], out: str, run_name: str
) -> tuple[int, int, list[str], int]:
    """Put pools into a run; how many there are, how many paths were new, the scores that the run has, and how many
    scores were no numbers.

    The sources are gone through twice, one at a time, however many there are: what is wrong with any is said before a
    path is written.
    """
    parts = iter(sources())
    first = next(parts)
    left_out = _count_no_scores(first.pools)  # before anything is written
    described = _described(first)
    with demur.Store(out, create=True) as store:
        chosen = store.open_run(run_name, described, None)
        before, there = chosen.summary()["paths"], chosen.numbers()
        problems: list[demur.Problem] = []
        for source in chain([first], parts):
            if source is not first:
                left_out += _count_no_scores(source.pools)
            if told := described.differences(_described(source), "the first shard", "in another"):
                raise PoolFileError(f"these shards were made in several ways: {'; '.join(told)}", "keep them apart")
            mine = [pool.problem for pool in source.pools]
            numbers = [there[problem.id] for problem in mine if problem.id in there]
            _refuse_other_paths(source.pools, chosen.pools(with_texts=True, complete=False, numbers=numbers), run_name)
            problems += mine
        chosen.add_problems(problems)
        places = chosen.numbers()
        for source in sources():
            _save(source, chosen, places)
        after = chosen.summary()
    return len(problems), after["paths"] - before, sorted(after["scores"]), left_out


def _described(source: demur.PoolSource) -> Description:
    """What is known of how pools came to be, also by what their problems say."""
    from demur.pools.fields import named_sampling

    known = source.description
    return replace(known, sampling={**named_sampling(source.pools), **known.sampling})


def _save(source: demur.PoolSource, chosen: Run, places: Mapping[str, int]) -> None:
    """Put the paths of pools, and their scores, into a run that has their problems."""
    from demur.pools.files import flag_of
    from demur.store import PathScore, PlacedPath
    from demur.store.scores import IMPORTED

    placed = [
        PlacedPath(places[pool.problem.id], place, path)
        for pool in source.pools
        for place, path in enumerate(pool.paths)
    ]
    for batch in _batches([_without_flags(path) for path in placed]):
        chosen.save(batch)
    for name in source.score_names:
        scores = [
            PathScore(number, place, float(path.scores[name]), flag_of(path.extra, name))
            for number, place, path in placed
            if not _is_no_score(path.scores.get(name))
        ]
        chosen.save_scores(name, source.scorers.get(name, IMPORTED), scores)


def _import_log(
    file: Path, out: str, run_name: str, labels_by: str | None, recover: bool, *, json: bool
) -> dict[str, Any]:
    from demur.pipeline.log_import import import_log

    done = import_log(file, out, run_name, labels_by=labels_by, recover=recover)
    if not json:
        output.say(f"{done.problems} problems, {done.new_paths} new paths; scores: none.")
        _mention_gaps(done)
        output.say(f"Next, read the answers off the texts: demur answers {next_place(out, run_name)} -o pools.jsonl")
    counts = ("problems", "new_paths", "lacking", "status", "cut_off", "expected")
    return {name: getattr(done, name) for name in counts} | {"failed": dict(done.failed), "scores": []}


def _mention_gaps(done: ImportedLog) -> None:
    """Say what a log does not hold, which may not be missing at random."""
    for reason, times in done.failed.most_common(5):
        output.say(f"  {times} samples hold no path: {output.visible(reason, 200)}")
    if done.lacking:
        output.say(f"  {done.lacking} problems lack paths: import the log of a retry, or leave them out by --partial.")
    if done.cut_off:
        output.say("  The log was cut off: whatever stood behind is missing, and may not be missing at random.")
    elif done.expected is not None and done.problems < done.expected:
        told = f"  The log holds {done.problems} of the {done.expected} samples of its data set"
        output.say(f"{told} (its status: {output.visible(done.status, 40)}).")


def _import_batch(
    files: Sequence[Path], out: str, run_name: str, extract: str | None, mixed_models: bool, *, json: bool
) -> None:
    from demur.pipeline.batch_files import read_batch
    from demur.pipeline.from_run import batch_pipeline_of_run

    with demur.Store(out) as store:
        chosen = store.run(run_name)
        fitted = batch_pipeline_of_run(chosen, extract=extract)
        read = read_batch(chosen, fitted, files, mixed_models=mixed_models)
    if json:
        counts = ("lines", "saved", "there", "short", "lacking")
        facts = {"run": run_name, **{name: getattr(read, name) for name in counts}}
        counted = {"models": read.reported.paths, "failed": read.failed, "foreign": read.foreign}
        output.emit(facts | {name: dict(counts) for name, counts in counted.items()})
    else:
        _say_batch(read)
    if read.foreign:
        others = sum(read.foreign.values())
        raise PoolFileError(
            f"{read.first_foreign}; {others} of {read.lines} answers are not of this run, and not stored",
            "import them into the run that they were asked for",
        )


def _say_batch(read: ReadBatch) -> None:
    output.say(f"{read.saved} new paths from {read.lines} answers; the run lacks {read.lacking or 'none'}.")
    if read.there:
        output.say(f"  {read.there} paths were there before, and stay as they were.")
    if models := read.reported.told:
        output.say(f"  Paths by the model that their answer names: {output.visible(models, 300)}.")
    for cause, times in read.failed.most_common(5):
        output.say(f"  {times} requests failed: {output.visible(cause, 200)}")
    if read.short:
        output.say(f"  {read.short} paths were asked for and are not in the answers.")
    if read.lacking:
        output.say("Ask for the rest with `demur export --batch`, or run the same `demur sample` command again.")


def _without_flags(placed: PlacedPath) -> PlacedPath:
    """A path whose flags stand with its scores, as a run has them."""
    from demur.pools.files import FLAGS, flag_of

    if not any(flag_of(placed.path.extra, name) for name in placed.path.scores):
        return placed
    kept = {name: value for name, value in placed.path.extra.items() if name != FLAGS}
    return placed._replace(path=replace(placed.path, extra=kept))


def _batches(placed: Sequence[PlacedPath]) -> Iterator[Sequence[PlacedPath]]:
    """Many paths at once, but never a pool in two parts: a pool is whole when its paths are there."""
    start = 0
    for at in range(1, len(placed) + 1):
        if at == len(placed) or (at - start >= _BATCH and placed[at].number != placed[at - 1].number):
            yield placed[start:at]
            start = at


def _refuse_other_paths(pools: Sequence[demur.Pool], stored: Sequence[demur.Pool], run_name: str) -> None:
    """Raise if a problem is in the run with other paths: two pools must not be mixed."""
    from demur.answers.relations import as_written

    there = {pool.problem.id: [(path.answer, path.text) for path in pool.paths] for pool in stored}
    for pool in pools:
        paths = [(as_written(path.answer), path.text) for path in pool.paths]
        if there.get(pool.problem.id, paths) != paths:
            raise StoreError(
                f"problem {pool.problem.id!r} is in the run {run_name!r} with other paths; choose another --run"
            )


def _is_no_score(value: Any) -> bool:
    """Whether a path has no score where others have one: null, NaN, or infinite."""
    from demur.files.strict_json import is_finite

    return value is None or not is_finite(value)


def _count_no_scores(pools: Sequence[demur.Pool]) -> int:
    """How many scores are missing; raises if one is something else than a number."""
    missing = 0
    for pool in pools:
        for name, value in (score for path in pool.paths for score in path.scores.items()):
            if _is_no_score(value):
                missing += 1
            elif not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < 1e300:
                where = f"problem {pool.problem.id!r}: the score {name!r}"
                raise PoolFileError(f"{where} must be a finite number, got {value!r:.40}")
    return missing
