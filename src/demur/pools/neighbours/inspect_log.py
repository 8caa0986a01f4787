"""Logs of inspect_ai as pools: the epochs of a sample are the paths of a problem.

    log.eval      a ZIP archive: header.json, samples/ID_epoch_K.json, _journal/start.json while it is being written;
                  packed by Zstandard or, in older ones, deflated. Newer ones may hold samples in parts, ID_epoch_K/….
    log.json      the whole log as one JSON object, its samples in a list

An archive is read pool by pool, whatever order its samples were written in: what is in memory at once is one pool.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any, Self

from demur.descriptions import Description
from demur.errors import PoolFileError
from demur.files.inputs import open_file, text_of
from demur.files.strict_json import is_deep
from demur.pools.neighbours.archive import Archive, Entry
from demur.pools.neighbours.inspect_sample import Record, path_of, problem_of, why_no_path
from demur.pools.provenance import PoolFile, Provenance
from demur.records import Path, Pool

VERSIONS = (1, 2)
MOST_EPOCHS = 1 << 20
_SAMPLES, _EPOCH = "samples/", "_epoch_"
_DRAWN = (
    "temperature", "top_p", "top_k", "max_tokens", "stop_seqs", "frequency_penalty", "presence_penalty",
    "system_message", "reasoning_effort", "reasoning_tokens",
)  # fmt: skip
"""What of inspect's settings decides a path."""


class InspectLog:
    """A log that is open. `labels_by` names the score that labels paths; `recover` takes what a log holds that was cut
    off. `failed` counts the samples that hold no path, by reason, as they are met."""

    def __init__(self, path: FilePath, *, labels_by: str | None = None, recover: bool = False) -> None:
        self.path, self._labels_by = path, labels_by
        self.failed: Counter[str] = Counter()
        self.cut_off = False
        self._open = ExitStack()
        try:
            if _is_archive(path):
                self._samples: _ArchivedSamples | _ListedSamples = _ArchivedSamples(
                    self._open.enter_context(Archive(path, recover=recover))
                )
            else:
                self._samples = _ListedSamples(path)
            self.cut_off = self._samples.cut_off
            header = self._samples.header
            self._spec = _part(header, "eval", path)
            self._plan = header.get("plan") if isinstance(header.get("plan"), dict) else {}
            self.status = str(header.get("status", "started"))
        except BaseException:
            self._open.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @cached_property
    def epochs(self) -> int:
        """The paths of a whole pool: as the log says, or as many as it holds of any sample."""
        config = self._spec.get("config")
        said = config.get("epochs") if isinstance(config, dict) else None
        return max(said if type(said) is int and 0 < said <= MOST_EPOCHS else 1, self._samples.most_epochs)

    @property
    def expected(self) -> int | None:
        """The samples that its data set has, as far as the log says; a limit may have let fewer of them in."""
        ids = self._ids_of_data_set
        return None if ids is None else len(ids)

    def never_begun(self, begun: Iterable[str]) -> list[str]:
        """The problems whose turn never came before a log was stopped, by the ids that it says its data set has."""
        ids = None if self.status == "success" else self._ids_of_data_set
        known = set(begun)
        return [name for name in dict.fromkeys(map(str, ids or ())) if name not in known]

    @property
    def _ids_of_data_set(self) -> list[Any] | None:
        dataset = self._spec.get("dataset")
        ids = dataset.get("sample_ids") if isinstance(dataset, dict) else None
        return ids if isinstance(ids, list) else None

    @property
    def description(self) -> Description:
        """How its paths were drawn, as far as the log says."""
        config: dict[str, Any] = {}
        for settings in (self._spec.get("model_generate_config"), (self._plan or {}).get("config")):
            told = settings.items() if isinstance(settings, dict) else ()
            config |= {name: value for name, value in told if name in _DRAWN and value is not None}
        steps = (self._plan or {}).get("steps")
        solvers = [_solver(step) for step in steps if _names_solver(step)] if isinstance(steps, list) else []
        named = {name: self._spec[name] for name in ("model", "task") if isinstance(self._spec.get(name), str)}
        solver = {"solver": solvers} if solvers else {}
        return Description({"backend": "inspect_ai", **named, **solver, **config})

    def pools(self) -> Iterator[tuple[Pool, tuple[int, ...]]]:
        """Every pool, with the index of each path: its epoch, counted from 0. One whose epochs all failed has none."""
        for samples in self._samples:
            placed: dict[int, Path] = {}
            problem = failed = None
            for where, sample in samples:
                epoch = sample.setdefault("epoch", 1)
                if type(epoch) is not int or not 0 < epoch <= MOST_EPOCHS:
                    raise PoolFileError(f"{where}: a sample's epoch must be a whole number from 1, got {epoch!r:.40}")
                reason = why_no_path(sample)
                if reason is not None:
                    self.failed[reason] += 1
                    failed = failed or problem_of(sample, where)
                    continue
                problem = problem or problem_of(sample, where)
                placed[epoch - 1] = path_of(sample, self._labels_by, where)
            asked = problem or failed
            if asked is not None:
                places = tuple(sorted(placed))
                yield Pool(asked, tuple(placed[place] for place in places)), places


def read_inspect(path: FilePath) -> PoolFile:
    """All pools of a log, in memory; one whose pools are not all whole is refused, as such a run is."""
    with InspectLog(path) as log:
        pools = [pool for pool, _ in log.pools()]
        if not any(pool.paths for pool in pools):
            raise PoolFileError(f"{path} holds no sample that a model answered")
        never_begun = len(log.never_begun(pool.problem.id for pool in pools))
        if lacking := sum(len(pool.paths) < log.epochs for pool in pools) + never_begun:
            raise PoolFileError(
                f"{lacking} of {len(pools) + never_begun} problems of {path} lack paths; what is missing may not be "
                "missing at random, and figures without it may not hold for all questions",
                "put the log into a run with `demur import`: there the log of a retry fills them in, or they are left "
                "out where you say so",
            )
        return PoolFile(pools, Provenance(log.description))


class _ArchivedSamples:
    """The samples of an archive, those of one id together."""

    def __init__(self, archive: Archive) -> None:
        self._archive, self.cut_off = archive, archive.cut_off
        names = [name for name in ("header.json", "_journal/start.json") if name in archive.entries]
        if not names:
            raise PoolFileError(
                f"{archive.path} is a ZIP archive or a spreadsheet, but no log of inspect: it has no header.json",
                "save a spreadsheet as JSON lines or CSV",
            )
        self.header = _header(self._parsed(archive.entries[names[0]]), archive.path)
        self._by_id: dict[str, dict[int, str]] = {}
        self._attachments: dict[str, list[str]] = {}
        for name in archive.entries:
            folder, inner, chunk = name.rpartition("attachments/")
            if inner and chunk.removesuffix(".json").isdecimal():
                self._attachments.setdefault(folder, []).append(name)
            named, mark, epoch = name.removeprefix(_SAMPLES).rpartition(_EPOCH)
            whole = epoch.removesuffix(".json").removesuffix("/sample")
            if name.startswith(_SAMPLES) and mark and whole != epoch and whole.isdecimal():
                self._by_id.setdefault(named, {})[int(whole)] = name

    @property
    def most_epochs(self) -> int:
        return max((max(epochs) for epochs in self._by_id.values()), default=1)

    def __iter__(self) -> Iterator[Iterator[tuple[str, Record]]]:
        return (map(self._sample, (epochs[at] for at in sorted(epochs))) for epochs in self._by_id.values())

    def _sample(self, name: str) -> tuple[str, Record]:
        where, sample = f"{self._archive.path}, {name}", self._parsed(self._archive.entries[name])
        if not isinstance(sample, dict):
            raise PoolFileError(f"{where}: expected an object, got {sample!r:.40}")
        if name.endswith("/sample.json"):
            sample |= self._parts(name.removesuffix("sample.json"))
        return where, sample

    def _parts(self, folder: str) -> Record:
        """What a sample in parts has beside its shell, as far as a path needs it."""
        entries, parts = self._archive.entries, dict[str, Any]()
        if (metadata := entries.get(f"{folder}metadata.json")) is not None:
            parts["metadata"] = self._parsed(metadata)
        texts: dict[str, str] = {}
        for name in self._attachments.get(folder, ()):
            start = int(name.rpartition("/")[2].removesuffix(".json"))
            texts |= {str(start + at): text for at, text in enumerate(self._parsed(entries[name]))}
        return parts | ({"attachments": texts} if texts else {})

    def _parsed(self, entry: Entry) -> Any:
        try:
            return json.loads(self._archive.read(entry))
        except (ValueError, RecursionError) as error:
            raise PoolFileError(f"{self._archive.path}: the entry {entry.name!r:.80} is no JSON: {error}") from None


class _ListedSamples:
    """The samples of a log that is one JSON object."""

    cut_off = False

    def __init__(self, path: FilePath) -> None:
        try:
            log = json.loads(text_of(path, PoolFileError))
        except (ValueError, RecursionError) as error:
            raise PoolFileError(f"{path} is no whole JSON: {error}", "use a whole copy") from None
        self.header = _header(log, path)
        samples = log.get("samples") or []
        if not isinstance(samples, list) or not all(isinstance(sample, dict) for sample in samples):
            raise PoolFileError(f"{path}: the samples of a log must be a list of objects")
        self._by_id: dict[str, list[tuple[str, Record]]] = {}
        for number, sample in enumerate(samples, start=1):
            self._by_id.setdefault(repr(sample.get("id")), []).append((f"{path}, sample {number}", sample))

    @property
    def most_epochs(self) -> int:
        return max(map(len, self._by_id.values()), default=1)

    def __iter__(self) -> Iterator[Iterator[tuple[str, Record]]]:
        return map(iter, self._by_id.values())


def _is_archive(path: FilePath) -> bool:
    try:
        with open_file(path) as stream:
            return stream.read(2) == b"PK"
    except OSError:
        return True  # who opens it says what is the matter


def _header(document: Any, path: FilePath) -> Record:
    if not isinstance(document, dict):
        raise PoolFileError(f"{path} is no log of inspect: its header must be an object")
    if document.get("version", 1) not in VERSIONS:
        told = f"it is of version {document.get('version')!r:.20}, and this demur reads versions 1 and 2"
        raise PoolFileError(f"{path} is a log of inspect that cannot be read: {told}", "read it with a newer demur")
    return document


def _part(header: Mapping[str, Any], name: str, path: FilePath) -> Record:
    part = header.get(name)
    if not isinstance(part, dict):
        raise PoolFileError(f"{path} is no log of inspect: it does not say what was evaluated (`{name}`)")
    return part


def _solver(step: Record) -> Any:
    """A step of inspect's plan: its name, and its settings where it has any."""
    params = step.get("params")
    return {step["solver"]: params} if isinstance(params, dict) and params and not is_deep(params) else step["solver"]


def _names_solver(step: Any) -> bool:
    return isinstance(step, dict) and isinstance(step.get("solver"), str)
