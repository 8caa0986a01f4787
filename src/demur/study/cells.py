"""From a described cell to columns that can be voted on: sampled, scored or read, then labelled once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur import event_loop
from demur.backends.addresses import refuse_unconfirmed
from demur.backends.weights import Say
from demur.datasets import load
from demur.engine.progress import Progress
from demur.engine.score import score_run
from demur.errors import InvalidValue, PoolFileError
from demur.evaluation.comparison import JITTERED, MAJORITY
from demur.pipeline.config import Config
from demur.pipeline.sources import source_of_place, source_of_run
from demur.pipeline.verdicts import read_verdicts
from demur.pools.field_names import there_is
from demur.pools.fields import FieldChoice, PoolTable
from demur.pools.label_rule import LabelRule, exact_tolerance
from demur.pools.labels import Labels, refuse_labels_as_score
from demur.pools.parts import lacking_score, sizes_of
from demur.pools.scores import read_scores
from demur.pools.source import PoolSource, vote_pools
from demur.pools.splits import Rows
from demur.pools.voted_pools import VotedPools
from demur.prompts import template_of
from demur.records import Pool
from demur.scoring.factory import make_scorer
from demur.scoring.settings import ScorerSettings
from demur.store import Run, Store
from demur.study.description import CellDescription
from demur.voting.baselines import best_of_m, oracle, single_path
from demur.voting.votes import Votes, vote_again

Watch = Callable[[Progress], None]
Scores = Mapping[str, Sequence[list[float]]]
SAMPLE = "sample"
TIED = ", ties by mean score"


@dataclass(frozen=True)
class Cell:
    """One cell's pools, read and labelled. Rows are one per question, in an order that the file does not decide."""

    description: CellDescription
    source: PoolSource
    voted: VotedPools
    """Its majority vote."""
    scores: Scores
    greedy: float | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    """Seconds of wall clock that its commands took: `sample`, and `score NAME`."""
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.description.name

    @property
    def table(self) -> PoolTable:
        return _labelled(self.voted)[0]

    @property
    def labels(self) -> Labels:
        return _labelled(self.voted)[1]

    @property
    def rows(self) -> Rows:
        return self.voted.in_order

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
        tie_break = "jitter:0" if method == JITTERED else "mean_score,none" if method.endswith(TIED) else "none"
        recipe = self.source.recipe(score, normaliser, weight, tie_break)
        answers = [pool[:m] for pool in self.table.answers]
        scores = None if score is None else [pool[:m] for pool in self.scores[score]]
        votes = vote_again(
            recipe, answers, scores, ids=self.table.ids, questions=self.table.digests, folded=self.table.folded
        )
        return votes.take(self.rows), self.labels.of_votes(votes)[self.rows]

    def _normaliser(self, weight: str | None) -> str | None:
        """The cell's own, or the family's; linear weights need scores that are not negative."""
        own = self.description.normaliser
        return "pool_minmax" if weight == "linear" and own not in ("pool_minmax", "rank") else own

    def path_right(self) -> list[list[bool]]:
        of_paths = self.labels.of_paths(self.table)
        return [of_paths[row] for row in self.rows]

    def baselines(self) -> dict[str, float]:
        """Accuracies without abstention."""
        right = self.path_right()
        greedy = {} if self.greedy is None else {"greedy": self.greedy}
        return {**greedy, "single path": single_path(right), "oracle": oracle(right)}

    def best_of_m(self, score: str) -> float:
        chosen = best_of_m(self.table.answers, self.scores[score]).tolist()
        return float(self.labels.of_answers(chosen)[self.rows].mean())


def _labelled(voted: VotedPools) -> tuple[PoolTable, Labels]:
    assert voted.table is not None
    assert voted.labels is not None
    return voted.table, voted.labels


def open_cell(
    described: CellDescription,
    scorers: Mapping[str, ScorerSettings],
    compute: Sequence[str] = (),
    say: Say = lambda _: None,
    watch: Watch = lambda _: None,
) -> Cell:
    """Sample and score what a cell lacks, then read and label it."""
    refuse_unconfirmed(described.store, f"the store of {described.name}")
    if described.questions is not None:
        _sample(described, say, watch)
        if described.greedy == SAMPLE:
            _sample(replace(described, run=_greedy_run(described), temperature=0.0, paths=1), say, watch)
    if described.pools is not None:
        if described.compute:
            raise InvalidValue("scores are computed for runs; import the pools into one first (demur import)")
        return read_cell(described, source_of_place(described.pools, partial=described.partial, say=say))
    assert described.store is not None
    with Store(described.store) as store:
        run = store.run(described.run or ("run" if described.questions is not None else None))
        for name in compute if described.compute is None else described.compute:
            _score(run, name, scorers.get(name, ScorerSettings()), described.name, say, watch)
        source = source_of_run(run, partial=described.partial, say=say)
        return read_cell(described, source, _timings(run.summary()["commands"]))


def read_cell(described: CellDescription, source: PoolSource, timings: Mapping[str, float] | None = None) -> Cell:
    missing = tuple(described.missing or ())
    fields = FieldChoice(
        described.answer_field or "answer",
        missing=missing,
        relation=described.relation,
        task=described.task,
        labels=tuple(described.labels or ()),
    )
    rule = _label_rule(described)
    voted = vote_pools(source, fields, correct=rule)
    scores, notes = _scores(described, source, voted)
    greedy, note = _greedy(described, fields, rule, [voted.ids[row] for row in voted.in_order])
    labelled = [] if rule.is_plain else [f"{described.name}: right is {rule.told}"]
    labelled += [f"{described.name}: {told.partition(': ')[2]}" for told in _labelled(voted)[1].notes]
    known = (*notes, *labelled, *([note] if note else []))
    return Cell(described, source, voted, scores, greedy, timings or {}, known)


def _label_rule(described: CellDescription) -> LabelRule:
    verdicts = None if described.label_verdicts is None else read_verdicts(described.label_verdicts, labelling=True)
    tolerance = None if described.gold_tolerance is None else exact_tolerance(described.gold_tolerance)
    return LabelRule(described.correct, tolerance, described.gold_containment, verdicts=verdicts)


def _scores(described: CellDescription, source: PoolSource, voted: VotedPools) -> tuple[Scores, list[str]]:
    """The cell's scores that every path has; the others are noted."""
    known = source.score_names
    wanted = described.scores if described.scores is not None else known
    scores, notes = {}, []
    table, labels = _labelled(voted)
    for name in wanted:
        if "." not in name and name not in known:
            raise InvalidValue(f"no path has the score {name!r}; {there_is(name, known)}")
    if described.m is not None and described.m > int(sizes_of(source.pools).min()):
        raise InvalidValue(f"some pools have fewer than m = {described.m} paths")
    for name in wanted:
        lacking = len(lacking_score(source.pools, name))
        try:
            if "." not in name and lacking:
                raise InvalidValue(f"{lacking} of {len(source.pools)} pools lack the score {name!r}")
            if name in (MAJORITY, JITTERED) or name.endswith(TIED):
                raise InvalidValue(f"the score {name!r} is named like a method")
            values = read_scores(source.pools, name)
            refuse_labels_as_score(replace(table, scores=values, fields=FieldChoice(score=name)), labels)
            scores[name] = values
        except (InvalidValue, PoolFileError) as error:
            notes.append(f"{described.name}: {error}; left out")
    return scores, notes


def _sample(described: CellDescription, say: Say, watch: Watch) -> None:
    assert described.questions is not None
    assert described.store is not None
    problems = load(described.questions, limit=described.limit, seed=described.shuffle)
    same = {name: getattr(described, name) for name in ("base_url", "paths", "temperature", "max_tokens", "prompt")}
    config = Config(**same, model=described.sampled_model or described.model)
    pipeline, name = config.pipeline(config.backend(say)), described.run or "run"
    progress = pipeline.run(problems, described.store, name=name, watch=watch).progress
    if failure := _failure(progress):
        raise InvalidValue(f"{len(progress.failed)} problems were not sampled {failure}")


def _score(run: Run, name: str, settings: ScorerSettings, cell: str, say: Say, watch: Watch) -> None:
    prompt = run.description.sampling.get("prompt")
    template = template_of(prompt, "the run's prompt") if isinstance(prompt, dict) else None
    scorer = make_scorer(name, settings, template=template, say=say)
    progress = event_loop.run_stoppable(lambda stop: score_run(run, scorer, watch=watch, stop=stop))
    if failure := _failure(progress):
        say(f"{cell}: {len(progress.failed)} problems lack {name} {failure}")


def _failure(progress: Progress) -> str | None:
    """The first problem that failed, and why; raises where the work was interrupted."""
    if progress.interrupted:
        raise KeyboardInterrupt
    return next((f"({problem}: {reason})" for problem, reason in progress.failed.items()), None)


def _greedy(
    described: CellDescription, fields: FieldChoice, rule: LabelRule, ids: Sequence[str]
) -> tuple[float | None, str]:
    """The accuracy of one path at temperature 0 on the cell's questions, from a run or file of its own; and a note."""
    if described.greedy is None:
        return None, ""
    pools: Sequence[Pool]
    if described.store is not None:
        with Store(described.store) as store:
            name = _greedy_run(described) if described.greedy == SAMPLE else described.greedy
            pools = store.run(name).pools()
    else:
        pools = source_of_place(described.greedy, partial=True).pools  # those that the cell has are looked for below
    voted = vote_pools(PoolSource(pools), fields, correct=None if rule.label_field else rule)
    table, labels = _labelled(voted)
    right = dict(zip(voted.ids, labels.of_paths(table), strict=True))
    lacking = sum(name not in right for name in ids)
    if lacking:
        return None, f"{described.name}: {lacking} questions have no greedy path, so there is no greedy row"
    return float(np.mean([right[name][0] for name in ids])), ""


def _greedy_run(described: CellDescription) -> str:
    return f"{described.run or 'run'}-greedy"


def _timings(commands: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    timings: dict[str, float] = {}
    for command in commands:
        name = command["command"] if command["command"] != "score" else f"score {command.get('score')}"
        timings[name] = timings.get(name, 0.0) + float(command.get("seconds", 0.0))
    return timings
