"""From a described cell to columns that can be voted on: sampled, scored or read, then labelled once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.baselines import best_of_m, oracle, single_path
from demur.comparison import JITTERED, MAJORITY
from demur.description import Description
from demur.electorate import Source
from demur.errors import InvalidValue, PoolFileError
from demur.files import read_pools
from demur.labels import Labels, read_labels, refuse_labels_as_score
from demur.pool_table import PoolTable, Reading, read_scores, read_table
from demur.progress import Progress
from demur.prompts import template_of
from demur.scoring.families import ScorerSettings, make_scorer
from demur.scoring.protocol import Scorer
from demur.scoring.runs import ScoringProgress, score_run
from demur.splits import in_drawn_order, one_per_unit, units
from demur.store import Run, Store
from demur.study.description import CellDescription
from demur.voting import Votes, vote_again

Say = Callable[[str], None]
SAMPLE = "sample"
TIED = ", ties by mean score"


@dataclass(frozen=True)
class Cell:
    """One cell's pools, read and labelled. Rows are one per question, in an order that the file does not decide."""

    description: CellDescription
    source: Source
    table: PoolTable
    labels: Labels
    rows: NDArray[np.intp]
    scores: Mapping[str, list[list[float]]]
    greedy: float | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    """Seconds of wall clock that its commands took: `sample`, and `score NAME`."""
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.description.name

    @property
    def n(self) -> int:
        return len(self.rows)

    @cached_property
    def n_paths(self) -> tuple[int, int]:
        sizes = [len(pool) for pool in self.table.answers]
        return min(sizes), max(sizes)

    @property
    def methods(self) -> list[str]:
        """What is voted with: nothing, nothing with ties broken, and each score."""
        return [MAJORITY, JITTERED, *self.scores, *(f"{score}{TIED}" for score in self.scores)]

    def votes(self, method: str, *, m: int | None = None, weight: str | None = None) -> tuple[Votes, NDArray[np.bool_]]:
        """The votes of a method and which are right; of the first m paths, or with another weight, if asked for."""
        score = None if method in (MAJORITY, JITTERED) else method.removesuffix(TIED)
        m = m or self.description.m
        normaliser = None if score is None else self._normaliser(weight)
        tie_break = "jitter:0" if method == JITTERED else "mean_score" if method.endswith(TIED) else None
        recipe = self.source.recipe(Reading(score=score), normaliser, weight, tie_break)
        answers = [pool[:m] for pool in self.table.answers]
        scores = None if score is None else [pool[:m] for pool in self.scores[score]]
        votes = vote_again(recipe, answers, scores, ids=self.table.ids)
        return votes.take(self.rows), self.labels.of_votes(votes)[self.rows]

    def _normaliser(self, weight: str | None) -> str | None:
        """The cell's own, or the family's; linear weights need scores that are not negative."""
        own = self.description.normaliser
        return "pool_minmax" if weight == "linear" and own not in ("pool_minmax", "rank") else own

    def path_right(self) -> list[list[bool]]:
        """Which paths are right, row by row."""
        every = self.labels.of_paths(self.table)
        return [every[row] for row in self.rows]

    def baselines(self) -> dict[str, float]:
        """Accuracies without abstention."""
        right = self.path_right()
        found = {"single path": single_path(right), "oracle": oracle(right)}
        return found if self.greedy is None else {"greedy": self.greedy, **found}

    def best_of_m(self, score: str) -> float:
        chosen = best_of_m(self.table.answers, self.scores[score]).tolist()
        return float(self.labels.of_answers(chosen)[self.rows].mean())


def open_cell(
    described: CellDescription,
    scorers: Mapping[str, ScorerSettings],
    compute: Sequence[str] = (),
    say: Say = lambda _: None,
    bridge: Any = None,
    watch: Callable[[Progress], None] = lambda _: None,
) -> Cell:
    """Sample and score what a cell lacks, then read and label it."""
    if described.questions is not None:
        _sample(described, say, bridge, watch)
        if described.greedy == SAMPLE:
            greedy = replace(described, run=_greedy_run(described), temperature=0.0, paths=1)
            _sample(greedy, say, bridge, watch)
    timings: dict[str, float] = {}
    if described.pools is not None:
        if described.compute:
            raise InvalidValue("scores are computed for runs; import the pools into one first (demur import)")
        source = Source(read_pools(described.pools))
    else:
        assert described.store is not None
        with Store(described.store) as store:
            run = store.run(described.run or ("run" if described.questions is not None else None))
            prompt = run.pipeline.get("prompt")
            template = template_of(prompt, "the run's prompt") if isinstance(prompt, dict) else None
            for name in compute if described.compute is None else described.compute:
                scorer = make_scorer(name, scorers.get(name, ScorerSettings()), template=template, say=say)
                progress = (bridge or _run)(partial(_score, run, scorer, watch))
                if progress.interrupted:
                    raise KeyboardInterrupt
                if progress.failed:
                    problem, reason = next(iter(progress.failed.items()))
                    say(f"{described.name}: {len(progress.failed)} problems lack {name} ({problem}: {reason})")
            source = Source(run.pools(), run.pipeline, run.scorers(), run.flags())
            timings = _timings(run.describe()["commands"])
    return read_cell(described, source, timings)


def read_cell(described: CellDescription, source: Source, timings: Mapping[str, float] | None = None) -> Cell:
    """A cell from its pools."""
    reading = Reading(described.answer_field or "answer", None, tuple(described.missing or ()), described.relation)
    table = read_table(source.pools, reading)
    labels = read_labels(source.pools, table, described.correct)
    kept = one_per_unit(table.ids, units(table.ids, table.clusters, table.questions))
    rows = kept[in_drawn_order([table.ids[row] for row in kept])]
    scores, notes = _scores(described, source, table, labels)
    greedy, note = _greedy(described, reading, [table.ids[row] for row in rows])
    return Cell(
        described, source, table, labels, rows, scores, greedy, timings or {}, (*notes, *([note] if note else []))
    )


def _scores(
    described: CellDescription, source: Source, table: PoolTable, labels: Labels
) -> tuple[dict[str, list[list[float]]], list[str]]:
    """The cell's scores that every path has; the others are noted."""
    held = sorted({name for pool in source.pools for path in pool.paths for name in path.scores})
    wanted = described.scores if described.scores is not None else held
    found, notes = {}, []
    unknown = [name for name in wanted if "." not in name and name not in held]
    if unknown:
        raise InvalidValue(f"no path has the score {unknown[0]!r}; there is: {', '.join(held) or 'none'}")
    if described.m is not None and described.m > min(len(pool.paths) for pool in source.pools):
        raise InvalidValue(f"some pools have fewer than m = {described.m} paths")
    for name in wanted:
        lacking = sum(any(name not in path.scores for path in pool.paths) for pool in source.pools)
        if "." not in name and lacking:
            notes.append(f"{described.name}: {lacking} of {len(source.pools)} pools lack the score {name!r}; left out")
            continue
        if name in (MAJORITY, JITTERED) or name.endswith(TIED):
            notes.append(f"{described.name}: the score {name!r} is named like a method; left out")
            continue
        try:
            values = read_scores(source.pools, name)
            refuse_labels_as_score(replace(table, scores=values, reading=Reading(score=name)), labels)
        except (InvalidValue, PoolFileError) as error:
            notes.append(f"{described.name}: {error}; left out")
            continue
        found[name] = values
    return found, notes


def _sample(described: CellDescription, say: Say, bridge: Any, watch: Callable[[Progress], None]) -> None:
    from demur.datasets import load

    assert described.questions is not None
    assert described.store is not None
    problems = load(described.questions, limit=described.limit, seed=described.shuffle)
    chosen = Description(
        base_url=described.base_url, model=described.sampled_model or described.model, paths=described.paths,
        temperature=described.temperature, max_tokens=described.max_tokens, prompt=described.prompt,
    )  # fmt: skip
    pipeline = chosen.pipeline(chosen.backend(say))
    sampled = pipeline.run(problems, described.store, name=described.run or "run", bridge=bridge, watch=watch)
    if sampled.progress.interrupted:
        raise KeyboardInterrupt
    if sampled.progress.failed:
        problem, reason = next(iter(sampled.progress.failed.items()))
        raise InvalidValue(f"{len(sampled.progress.failed)} problems were not sampled ({problem}: {reason})")


def _greedy(described: CellDescription, reading: Reading, ids: Sequence[str]) -> tuple[float | None, str]:
    """The accuracy of one path at temperature 0 on the cell's questions, from a run or file of its own; and a note."""
    if described.greedy is None:
        return None, ""
    if described.store is not None:
        with Store(described.store) as store:
            name = _greedy_run(described) if described.greedy == SAMPLE else described.greedy
            pools: Sequence[Any] = store.run(name).pools()
    else:
        pools = read_pools(described.greedy)
    table = read_table(pools, reading)
    right = dict(zip(table.ids, read_labels(pools, table).of_paths(table), strict=True))
    lacking = sum(name not in right for name in ids)
    if lacking:
        return None, f"{described.name}: {lacking} questions have no greedy path, so there is no greedy row"
    return float(np.mean([right[name][0] for name in ids])), ""


async def _score(run: Run, scorer: Scorer, watch: Callable[[Progress], None], stop: asyncio.Event) -> ScoringProgress:
    return await score_run(run, scorer, watch=watch, stop=stop)


def _greedy_run(described: CellDescription) -> str:
    return f"{described.run or 'run'}-greedy"


def _timings(commands: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for command in commands:
        name = command["command"] if command["command"] != "score" else f"score {command.get('score')}"
        found[name] = found.get(name, 0.0) + float(command.get("seconds", 0.0))
    return found


def _run(work: Callable[[asyncio.Event], Any]) -> Any:
    async def main() -> Any:
        return await work(asyncio.Event())

    return asyncio.run(main())
