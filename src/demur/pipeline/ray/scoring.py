"""Scores of shards over a cluster: each shard is written again, whole, with the scores that it lacked.

Scores made of the paths alone (self-consistency, recorded perplexity, a function of yours) are computed. A scorer that
asks a model scores a shard as the plain engine scores a run, in a store that lies beside the shards until all is
there: what was paid for outlives the worker that paid.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from demur import event_loop
from demur.backends.embedded import Embedded
from demur.backends.endpoint import UsesEndpoint
from demur.descriptions import Description
from demur.engine.ray.blocks import Crew, work_through
from demur.engine.ray.cluster import Cluster, cluster
from demur.engine.ray.surroundings import Surroundings
from demur.engine.score import ScoringProgress, score_run
from demur.errors import ClusterError, InvalidValue, LogprobsMissing, ScoringError
from demur.pipeline.ray.sampling import PER_WORKER, RayOptions, remove_run
from demur.pipeline.shard_contents import refuse_shared_ids, scorers_of
from demur.pipeline.shards import held, shard_files, unfinished_scores
from demur.pools.files import FLAGS
from demur.pools.parquet import missing_scores, read_parquet, write_parquet
from demur.prompts import Template, template_of
from demur.records import Pool, blinded, names_labels
from demur.scoring.factory import make_scorer
from demur.scoring.model_scorer import ModelScorer
from demur.scoring.protocol import EMPTY, Scorer, checked, full_identity
from demur.scoring.settings import ScorerSettings, base_name
from demur.store import PathScore, PlacedPath, Run, Store
from demur.voting.normalisers import parse_normaliser

_HOPELESS = 3
Scores = Mapping[tuple[str, int], PathScore]
"""By the id of the problem and the place of the path."""


@dataclass(frozen=True)
class ChosenScorer:
    """A scorer as workers make it, and the name and identity that its scores are stored under."""

    asked: str
    settings: ScorerSettings
    template: Template | None
    name: str
    identity: Mapping[str, Any]

    def made(self) -> Scorer:
        scorer = make_scorer(self.asked, self.settings, template=self.template)
        scorer.name = self.name
        if isinstance(model := getattr(scorer, "model", None), Embedded):
            model.threads = 1  # a worker has one processor
        return scorer


@dataclass(frozen=True)
class _Receipt:
    shard: Path
    saved: dict[str, int]
    lacking: dict[str, int]
    """Paths that lack a score still."""
    flagged: dict[str, Counter[str]]
    failed: dict[str, dict[str, str]]
    retries: int


@dataclass(frozen=True)
class _Scoring:
    """What a worker does with a shard."""

    scorers: Sequence[ChosenScorer]

    def open(self) -> None:
        object.__setattr__(self, "_made", [chosen.made() for chosen in self.scorers])

    def __getstate__(self) -> dict[str, Any]:
        return {"scorers": self.scorers}

    def do(self, shard: Path) -> _Receipt:
        file = read_parquet(shard)
        pools, known = list(file.pools), dict(file.provenance.scorers)
        receipt = _Receipt(shard, {}, {}, {}, {}, 0)
        for chosen, scorer in zip(self.scorers, self._made, strict=True):  # type: ignore[attr-defined]
            if isinstance(scorer, ModelScorer):
                scores, failed, retries = _asked(scorer, chosen, shard, pools, file.provenance.description)
                receipt = replace(receipt, retries=receipt.retries + retries)
            else:
                scores, failed = _computed(scorer, pools)
            if scores:
                known[chosen.name] = dict(chosen.identity)
            pools = [_with_scores(pool, chosen.name, scores) for pool in pools]
            receipt.saved[chosen.name], receipt.failed[chosen.name] = len(scores), failed
            receipt.lacking[chosen.name] = sum(chosen.name not in path.scores for pool in pools for path in pool.paths)
            receipt.flagged[chosen.name] = Counter(score.flag for score in scores.values() if score.flag is not None)
        if any(receipt.saved.values()):
            write_parquet(pools, shard, replace(file.provenance, scorers=known))
        for chosen in self.scorers:
            if not receipt.failed[chosen.name] and (begun := unfinished_scores(shard, chosen.name)).exists():
                remove_run(begun)
        return receipt


def _computed(scorer: Scorer, pools: Sequence[Pool]) -> tuple[Scores, dict[str, str]]:
    """The scores that pools lack, by a scorer that asks nobody; and the pools that it cannot score."""
    scores: dict[tuple[str, int], PathScore] = {}
    failed: dict[str, str] = {}
    for pool in pools:
        missing = [place for place, path in enumerate(pool.paths) if scorer.name not in path.scores]
        if not missing:
            continue
        try:
            values = checked(scorer.score(blinded(pool)), pool, scorer.name)
        except (LogprobsMissing, ScoringError) as error:
            failed[pool.problem.id] = str(error)
            if not scores and len(failed) >= min(_HOPELESS, len(pools)):
                raise
            continue
        for place in missing:
            text = pool.paths[place].text
            flag = EMPTY if text is not None and not text.strip() else None
            scores[pool.problem.id, place] = PathScore(0, place, values[place], flag)
    return scores, failed


def _asked(
    scorer: ModelScorer, chosen: ChosenScorer, shard: Path, pools: Sequence[Pool], described: Description
) -> tuple[Scores, dict[str, str], int]:
    """The same by a scorer that asks a model: committed path by path in a store beside the shard."""
    lacking = [pool for pool in pools if any(chosen.name not in path.scores for path in pool.paths)]
    if not lacking:
        return {}, {}, 0
    with Store(unfinished_scores(shard, chosen.name), create=True) as store:
        run = store.open_run("run", described, None)
        _bring_in(run, lacking, chosen)
        progress = event_loop.run(score_run(run, scorer))
        if full_identity(scorer) != chosen.identity or progress.name != chosen.name:
            raise ClusterError(
                f"the score {chosen.asked} of a worker is not the one asked for: its model, route or prompt differs",
                "install the same on every machine of the cluster, and serve one model",
            )
        flagged, scores = run.flagged(), {}
        for before, pool in zip(lacking, run.pools(facts=False), strict=True):
            for place, path in enumerate(pool.paths):
                if chosen.name in path.scores and chosen.name not in before.paths[place].scores:
                    flag = flagged.get((pool.problem.id, place), {}).get(chosen.name)
                    scores[pool.problem.id, place] = PathScore(0, place, path.scores[chosen.name], flag)
    return scores, progress.failed, progress.retries


def _bring_in(run: Run, pools: Sequence[Pool], chosen: ChosenScorer) -> None:
    """Put pools into a run, and the scores that some of their paths have."""
    run.add_problems([pool.problem for pool in pools])
    numbers = run.numbers()
    placed = [PlacedPath(numbers[pool.problem.id], at, path) for pool in pools for at, path in enumerate(pool.paths)]
    run.save(placed)
    known = [
        PathScore(number, place, float(path.scores[chosen.name]))
        for number, place, path in placed
        if chosen.name in path.scores
    ]
    if known:
        run.save_scores(chosen.name, chosen.identity, known)


def _with_scores(pool: Pool, name: str, scores: Scores) -> Pool:
    paths = []
    for place, path in enumerate(pool.paths):
        score = scores.get((pool.problem.id, place))
        if score is not None:
            path = replace(path, scores={**path.scores, name: score.value})
            if score.flag is not None:
                path = replace(path, extra={**path.extra, FLAGS: {**path.extra.get(FLAGS, {}), name: score.flag}})
        paths.append(path)
    return replace(pool, paths=tuple(paths))


@dataclass
class ScoredShards:
    """What came of it, by score as it was asked for."""

    progress: dict[str, ScoringProgress] = field(default_factory=dict)
    start_seconds: float = 0.0


def score_shards(
    folder: Path,
    scores: Mapping[str, ScorerSettings],
    options: RayOptions = RayOptions(),  # noqa: B008 - frozen
    *,
    watch: Callable[[ScoringProgress], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> ScoredShards:
    """Score what the shards of a folder lack, in place. Run it again to go on; an interrupt ends it."""
    shard_files(folder)  # before anything is made: there must be some
    with held(folder):
        files = [path.absolute() for path in shard_files(folder)]
        refuse_shared_ids(files)
        described, taken = scorers_of(files)
        prompt = described.sampling.get("prompt")
        template = template_of(prompt, "the prompt of these shards") if isinstance(prompt, dict) else None
        made = {name: make_scorer(name, settings, template=template, say=say) for name, settings in scores.items()}
        chosen = [_chosen(name, made[name], settings, template, taken) for name, settings in scores.items()]
        lacking = {one.name: _lacking(files, one) for one in chosen}
        todo = [path for path in files if any(path in paths for paths in lacking.values())]
        result = ScoredShards(
            {one.asked: ScoringProgress(sum(lacking[one.name].values()), len(files), name=one.name) for one in chosen}
        )
        if not todo:
            for progress in result.progress.values():
                progress.ended = progress.started
            return result
        with cluster(options.address, workers=options.workers, folder=files[0].parent, say=say) as found:
            result.start_seconds = found.seconds
            chosen, crew = _shared_out(chosen, list(made.values()), options.workers, found, len(todo))
            _work(result, chosen, todo, crew, watch, lacking)
    return result


def _work(
    result: ScoredShards,
    chosen: Sequence[ChosenScorer],
    todo: Sequence[Path],
    crew: Crew,
    watch: Callable[[ScoringProgress], None],
    lacking: Mapping[str, Mapping[Path, int]],
) -> None:
    states = {one.name: result.progress[one.asked] for one in chosen}
    for progress in states.values():
        progress.started = time.monotonic()
    endpoints = [base_name(one.asked) for one in chosen]
    receipts = work_through(_Scoring(chosen), todo, crew, Surroundings.here([*endpoints, "perplexity"]))
    try:
        with closing(receipts):
            for receipt in receipts:
                for name, progress in states.items():
                    # A worker that ended may have written the shard without a receipt.
                    progress.saved += lacking[name].get(receipt.shard, 0) - receipt.lacking[name]
                    progress.failed |= receipt.failed[name]
                    progress.flagged.update(receipt.flagged[name])
                    progress.retries += receipt.retries
                    watch(progress)
    except KeyboardInterrupt:
        for progress in states.values():
            progress.interrupted = True
    for progress in states.values():
        progress.ended = time.monotonic()


def _chosen(
    asked: str, scorer: Scorer, settings: ScorerSettings, template: Template | None, taken: Mapping[str, Any]
) -> ChosenScorer:
    """A scorer with the name that is free for it in all shards: as asked, or with a number where another has it."""
    parse_normaliser(scorer.normaliser)
    if names_labels(scorer.name):
        raise InvalidValue(f"a score cannot be called {scorer.name!r}, which names labels")
    identity = _identity(scorer)
    name, number = scorer.name, 1
    while name in taken and taken[name] != identity:
        number += 1
        name = f"{scorer.name}-{number}"
    return ChosenScorer(asked, settings, template, name, identity)


def _identity(scorer: Scorer) -> dict[str, Any]:
    """What a scorer's numbers are, found out as scoring does."""

    async def found() -> dict[str, Any]:
        if not isinstance(scorer, ModelScorer):
            return full_identity(scorer)
        try:
            await scorer.prepare()
            return full_identity(scorer)
        finally:
            await scorer.close()

    return event_loop.run(found())


def _lacking(files: Sequence[Path], chosen: ChosenScorer) -> dict[Path, int]:
    """The shards with paths that lack a score, and how many of them, by what each file says of itself."""
    lacking = {path: missing_scores(path, chosen.name) for path in files}
    return {path: many for path, many in lacking.items() if many}


def _shared_out(
    chosen: Sequence[ChosenScorer], made: Sequence[Scorer], workers: int | None, found: Cluster, pieces: int
) -> tuple[list[ChosenScorer], Crew]:
    """Scorers as one worker has them, and how many workers there are: requests at once are counted over all."""
    asking = [one for one in made if isinstance(one, ModelScorer)]
    if not asking:
        return list(chosen), Crew(found.at_most(workers))
    if any(not isinstance(one, UsesEndpoint) for one in asking):
        return list(chosen), Crew(min(found.at_most(workers), pieces))
    in_all = max(one.concurrency for one in asking)
    many = min(workers or min(found.cpus, math.ceil(in_all / PER_WORKER)), in_all, pieces)
    shared = []
    for one, scorer in zip(chosen, made, strict=True):
        share = max(1, getattr(scorer, "concurrency", 1) // many)
        asks = isinstance(scorer, ModelScorer)
        shared.append(replace(one, settings=replace(one.settings, concurrency=share)) if asks else one)
    return shared, Crew(many, cpus=min(1.0, found.cpus / many))
