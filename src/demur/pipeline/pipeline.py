"""The whole way from a question to a vote, as one description: it samples, calibrates and asks.

pipeline = Pipeline(OpenAI("http://localhost:8000/v1", "Qwen/Qwen3-1.7B"), n_paths=16)
run = pipeline.run(datasets.load("gsm8k"), store="runs/gsm8k.db")
policy = run.calibrate(alpha=0.05)
pipeline.ask("A box holds 12 pens. How many pens are in 7 boxes?", policy)

Methods that end in _async are the ones that do the work; the others wait for them, in any thread and inside a running
event loop too.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib import metadata
from typing import Any

from demur import event_loop
from demur.answers import asked
from demur.answers.extraction.custom import parse_extractor
from demur.backends.protocol import Backend, Settings
from demur.calibration import Level
from demur.engine.sample import SamplingProgress, Stop, Watch, sample
from demur.engine.score import ScoringProgress, score_run
from demur.errors import DemurError, InvalidValue
from demur.foreign_code import names_function
from demur.pipeline.answerer import Answerer, Asked
from demur.pipeline.fitted import Fitted
from demur.pipeline.sources import source_of_run
from demur.pipeline.waves import Waves
from demur.policy.calibrate import Alphas, Guarantees, calibrate
from demur.policy.policy import Policy
from demur.pools.fields import FieldChoice
from demur.pools.source import vote_pools
from demur.pools.voted_pools import VotedPools
from demur.prompts import Template
from demur.prompts.conversations import with_transcript
from demur.records import Problem
from demur.scoring.factory import make_scorer
from demur.scoring.own import Function, OwnScore
from demur.scoring.perplexity.recorded import KINDS, Perplexity
from demur.scoring.protocol import Scorer
from demur.stopping import Stopping, as_stopping
from demur.store import Budget, Run, Store
from demur.store.rows import MOST_PATHS
from demur.tasks import common_task, task_named
from demur.version import __version__
from demur.voting.recipe import Unscored


@dataclass(frozen=True)
class Pipeline:
    """A model, a prompt, how many paths, how they are drawn, how answers are read and how they are scored."""

    backend: Backend
    n_paths: int = 16
    score: str | Scorer | Function | None = "perplexity"
    """The score that paths get: a name, a scorer, or a function of a pool; None for none."""
    template: Template | None = None
    """None: the task's own."""
    settings: Settings = field(default_factory=Settings)
    extract: str | None = None
    """A regular expression or package.module:function; None: by the task's relation."""
    seed: int = 0
    labels: tuple[str, ...] = ()
    """Names that are chosen, where options have no letters: yes, no."""
    markers: tuple[str, ...] = ()
    """Words behind which the prompt asks for the answer."""
    also: tuple[Scorer, ...] = ()
    """What scores paths besides, where a policy's key looks at several scores."""
    stop: Stopping | None = None
    """When a question has paths enough: `stopping.beta(0.95, wave=4)`; None: when it has all of them."""
    mixed_models: bool = False
    """Keep paths whose replies name several models, for one requested."""

    def __post_init__(self) -> None:
        if self.n_paths < 1:
            raise InvalidValue(f"a pool has at least one path, got {self.n_paths}")
        if self.n_paths > MOST_PATHS:
            raise InvalidValue(f"a pool has at most {MOST_PATHS} paths, got {self.n_paths}")
        if self.stop is not None:
            object.__setattr__(self, "stop", as_stopping(self.stop, self.n_paths))
        if not 0 <= self.settings.temperature < math.inf:
            raise InvalidValue(f"the temperature must be a number >= 0, got {self.settings.temperature}")
        if not 0 < self.settings.top_p <= 1:
            raise InvalidValue(f"top-p must lie in (0, 1], got {self.settings.top_p}")
        if self.settings.max_tokens < 1:
            raise InvalidValue(f"a path has at least one token, got max-tokens = {self.settings.max_tokens}")
        if self.extract is not None:
            parse_extractor(self.extract)
        asked.Asked.of(labels=self.labels, markers=self.markers)  # raises where they make no sense

    @cached_property
    def scorer(self) -> Scorer | None:
        """What scores its paths."""
        if self.score is None or isinstance(self.score, Scorer):
            return self.score
        if not isinstance(self.score, str):
            return OwnScore(self.score)
        # Log-probabilities come with the paths; a model that scores text again is for runs that lack them.
        return Perplexity(self.score) if self.score in KINDS else make_scorer(self.score)

    @property
    def needs_logprobs(self) -> bool:
        """Whether a score is made of the log-probabilities that come with paths."""
        return any(isinstance(scorer, Perplexity) for scorer in (self.scorer, *self.also))

    def fitted(self, problems: Sequence[Problem]) -> Fitted:
        """The pipeline for problems of one task: its prompt, stop words and extraction settled."""
        task, small = common_task(problems), getattr(self.backend, "needs_examples", False)
        return Fitted(self, task, self.template or task_named(task).prompt(problems[0], small=small))

    def run(
        self,
        problems: Sequence[Problem],
        store: str | os.PathLike[str],
        *,
        name: str = "run",
        watch: Watch = lambda _: None,
        seconds: float | None = None,
        budget: Budget | None = None,
    ) -> SampledRun:
        """Sample the paths that a run lacks, and score its whole pools. Run it again to go on.

        An interrupt (Ctrl-C) ends it after saving what came. Several processes may do so at once, and share what is
        lacking. `budget` is the most that the run may cost in all of them, from now on.
        """
        return event_loop.run_stoppable(
            lambda stop: self.run_async(
                problems, store, name=name, watch=watch, seconds=seconds, budget=budget, stop=stop
            )
        )

    def prepare(self, problems: Sequence[Problem], store: str | os.PathLike[str], *, name: str = "run") -> None:
        """Make a run with its problems, and sample nothing: a batch may ask for its paths."""
        problems, fitted = self._askable(problems)
        with Store(store, create=True) as opened:
            opened.open_run(name, fitted.description(), self.n_paths).add_problems(problems)

    def _askable(self, problems: Sequence[Problem]) -> tuple[list[Problem], Fitted]:
        """Problems as they are asked; raises before a store is made: a question that cannot be asked spoils nothing."""
        asked = [with_transcript(problem) for problem in problems]
        fitted = self.fitted(asked)
        for problem in asked:
            fitted.render(problem)
        return asked, fitted

    async def run_async(
        self,
        problems: Sequence[Problem],
        store: str | os.PathLike[str],
        *,
        name: str = "run",
        watch: Watch = lambda _: None,
        seconds: float | None = None,
        budget: Budget | None = None,
        stop: Stop = None,
    ) -> SampledRun:
        """`run`, to be awaited; `stop` asks it to end after saving what came."""
        problems, fitted = self._askable(problems)
        with Store(store, create=True) as opened:
            run = opened.open_run(name, fitted.description(), self.n_paths)
            run.add_problems(problems)
            if budget is not None:
                run.set_budget(budget)
            progress = await self._sample(run, fitted, [one.id for one in problems], watch, seconds, stop)
            scored = None if self.scorer is None else await score_run(run, self.scorer, stop=stop)
        score, unscored = (None, {}) if scored is None else (scored.name, scored.failed)
        return SampledRun(os.fspath(store), name, progress, score, unscored)

    async def _sample(
        self, run: Run, fitted: Fitted, ids: Sequence[str], watch: Watch, seconds: float | None, stop: Stop
    ) -> SamplingProgress:
        """Sample, and note in the run what was done, however it ended."""
        started, ended = datetime.now(UTC).isoformat(timespec="seconds"), "whole"
        latest: SamplingProgress | None = None

        def see(progress: SamplingProgress) -> None:
            nonlocal latest
            latest = progress
            watch(progress)

        try:
            latest = await sample(
                run,
                self.backend,
                fitted.render,
                fitted.settings,
                fitted.path,
                seed=self.seed,
                needs_logprobs=self.needs_logprobs,
                ids=ids,
                mixed_models=self.mixed_models,
                watch=see,
                stop=stop,
                seconds=seconds,
                keep_first=self.extract is not None and names_function(self.extract),
            )
            return latest
        except DemurError as error:
            ended = str(error)
            raise
        finally:
            await self.backend.close()
            if latest is not None and latest.saved:
                facts = {**_facts(latest), "logprobs": self.settings.logprobs, "ended": ended}
                facts |= {"models": dict(models)} if (models := latest.reported.paths) else {}
                facts |= {"events": list(events)} if (events := getattr(self.backend, "events", ())) else {}
                await asyncio.to_thread(run.note, "sample", started, facts)

    def answerer(self, policy: Policy) -> Answerer:
        """This pipeline with a policy, to be opened once and asked many questions."""
        return Answerer(self, policy)

    def ask(
        self,
        question: str | Problem,
        policy: Policy,
        *,
        alpha: Level | None = None,
        guarantee: str | None = None,
        waves: Waves | None = None,
    ) -> Asked:
        """Sample paths for one new question, vote as the policy was calibrated, and answer or abstain.

        With `waves`, no more paths are drawn than settle the decision.
        """
        with self.answerer(policy) as answerer:
            return answerer.ask(question, alpha=alpha, guarantee=guarantee, waves=waves)

    async def ask_async(
        self,
        question: str | Problem,
        policy: Policy,
        *,
        alpha: Level | None = None,
        guarantee: str | None = None,
        waves: Waves | None = None,
    ) -> Asked:
        """`ask`, to be awaited."""
        async with self.answerer(policy) as answerer:
            return await answerer.ask_async(question, alpha=alpha, guarantee=guarantee, waves=waves)


@dataclass(frozen=True)
class SampledRun:
    """A run after sampling."""

    store: str
    name: str
    progress: SamplingProgress
    score: str | None
    unscored: dict[str, str] = field(default_factory=dict)
    """Problems that could not be scored, and why."""

    def add_score(self, scorer: Scorer) -> ScoringProgress:
        """Score its paths by one more scorer; what was scored before is not scored again."""

        async def work(stop: asyncio.Event) -> ScoringProgress:
            with Store(self.store) as opened:
                return await score_run(opened.run(self.name), scorer, stop=stop)

        return event_loop.run_stoppable(work)

    def voted(self, *, partial: bool = False, unscored: Unscored = None) -> VotedPools:
        """Its pools, voted on with the pipeline's score, and labelled; `partial` leaves out those that lack paths.

        `unscored` says what becomes of pools with a path that has no score: "drop", or a number in its place.
        """
        with Store(self.store) as opened:
            source = source_of_run(opened.run(self.name), partial=partial)
        return vote_pools(source, FieldChoice(score=self.score, unscored=unscored))

    def calibrate(
        self,
        *,
        alpha: Alphas | None = None,
        guarantee: Guarantees | None = None,
        hold_out: float = 0.0,
        seed: int = 0,
        partial: bool = False,
        unscored: Unscored = None,
    ) -> Policy:
        """A policy, calibrated on the pools of the run, as `voted` and `demur.calibrate` have it."""
        voted = self.voted(partial=partial, unscored=unscored)
        return calibrate(voted, alpha=alpha, guarantee=guarantee, hold_out=hold_out, seed=seed)


def _facts(progress: SamplingProgress) -> dict[str, Any]:
    versions = {"demur": __version__, "python": platform.python_version()}
    for package in ("aiohttp", "sqlalchemy", "xllamacpp"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    counts = {"paths": progress.saved, "tokens": progress.tokens, "seconds": round(progress.seconds, 3)}
    ended: dict[str, Any] = {"failed": len(progress.failed), "stopped": progress.stopped, "retries": progress.retries}
    ended["drawn_again"] = progress.drawn_again
    shared = {"by_others": progress.by_others, "in_vain": progress.in_vain, "lost_leases": progress.lost_leases}
    ended |= {name: count for name, count in shared.items() if count}
    ended |= {"budget_spent": progress.budget.partition(";")[0]} if progress.budget else {}
    return {**counts, **ended, "versions": versions}
