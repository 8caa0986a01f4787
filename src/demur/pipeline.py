"""The whole way from a question to a vote, as one description: it samples, calibrates and asks.

pipeline = Pipeline(OpenAI("http://localhost:8000/v1", "Qwen/Qwen3-1.7B"), n_paths=16)
run = pipeline.run(datasets.load("gsm8k"), store="runs/gsm8k.db")
policy = run.calibrate(alpha=0.05)
pipeline.ask("What is 17 * 24?", policy)
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import platform
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib import metadata
from typing import Any

from demur import sampling
from demur.answers import extraction
from demur.answers.choices import extract as extract_choice
from demur.answers.custom import Extractor, parse_extractor
from demur.answers.relations import relation_for
from demur.backends.protocol import Backend, Completion, Prompt, Settings, Wanted
from demur.calibration import Guarantee
from demur.datasets import task_of
from demur.electorate import Electorate, Source, hold_vote, reading_of_policy
from demur.errors import BackendError, DemurError, InvalidValue, PipelineMismatch
from demur.functions import names_function
from demur.models import Say
from demur.policy import Policy, as_guarantees, describe_differences
from demur.pool_table import Reading
from demur.prompts import Template, template_for, template_of
from demur.records import Decision, Path, Pool, Problem, blinded
from demur.sampling import SamplingProgress, Watch
from demur.scoring.families import ScorerSettings, make_scorer, scorer_of_identity
from demur.scoring.own import Function, OwnScore
from demur.scoring.perplexity import KINDS, Perplexity
from demur.scoring.protocol import Scorer, StreamScorer, checked, full_identity
from demur.scoring.runs import score_run
from demur.store import Store
from demur.version import __version__


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

    def __post_init__(self) -> None:
        if self.n_paths < 1:
            raise InvalidValue(f"a pool has at least one path, got {self.n_paths}")
        if not 0 <= self.settings.temperature < math.inf:
            raise InvalidValue(f"the temperature must be a number >= 0, got {self.settings.temperature}")
        if not 0 < self.settings.top_p <= 1:
            raise InvalidValue(f"top-p must lie in (0, 1], got {self.settings.top_p}")
        if self.settings.max_tokens < 1:
            raise InvalidValue(f"a path has at least one token, got max-tokens = {self.settings.max_tokens}")
        if self.extract is not None:
            parse_extractor(self.extract)

    @cached_property
    def scorer(self) -> Scorer | None:
        """What scores its paths."""
        if self.score is None or isinstance(self.score, Scorer):
            return self.score
        if not isinstance(self.score, str):
            return OwnScore(self.score)
        # Log-probabilities come with the paths; a model that scores text again is for runs that lack them.
        return Perplexity(self.score) if self.score in KINDS else make_scorer(self.score)

    def fitted(self, problems: Sequence[Problem]) -> Fitted:
        """The pipeline for problems of one task: its prompt, stop words and extraction settled."""
        task = task_of(problems)
        small = self.backend.describe().get("backend") == "embedded"
        template = self.template or template_for(task, small=small, passages="passages" in problems[0].extra)
        return Fitted(self, task, template)

    def run(
        self,
        problems: Sequence[Problem],
        store: str | os.PathLike[str],
        *,
        name: str = "run",
        watch: Watch = lambda _: None,
        seconds: float | None = None,
        bridge: Bridge | None = None,
    ) -> SampledRun:
        """Sample the paths that a run lacks, and score its whole pools. Run it again to go on."""
        fitted = self.fitted(problems)
        for problem in problems:
            fitted.render(problem)  # before a store is made: a question that cannot be asked spoils nothing
        started = datetime.now(UTC).isoformat(timespec="seconds")
        with Store(store, create=True) as opened:
            run = opened.open_run(name, fitted.describe(), self.n_paths)
            run.add_problems(problems)

            async def work(stop: asyncio.Event, watch: Watch) -> SamplingProgress:
                try:
                    return await sampling.sample(
                        run, self.backend, fitted.template.render, fitted.settings, fitted.read, seed=self.seed,
                        needs_logprobs=isinstance(self.scorer, Perplexity),
                        ids=[problem.id for problem in problems], watch=watch, stop=stop, seconds=seconds,
                    )  # fmt: skip
                finally:
                    await self.backend.close()

            progress: SamplingProgress | None = None

            def see(state: SamplingProgress) -> None:
                nonlocal progress
                progress = state
                watch(state)

            ended = "whole"
            try:
                progress = (bridge or _run)(lambda stop: work(stop, see))
            except DemurError as error:
                ended = str(error)
                raise
            finally:
                if progress is not None and progress.saved:
                    run.note("sample", started, {**_facts(progress), "ended": ended})
            scorer, scored = self.scorer, None
            if scorer is not None:
                scored = (bridge or _run)(lambda stop: score_run(run, scorer, stop=stop))
        return SampledRun(
            os.fspath(store), name, progress, scored and scored.name, {} if scored is None else scored.failed
        )

    def ask(self, question: str | Problem, policy: Policy, *, alpha: float | None = None) -> Asked:
        """Sample paths for one new question, vote as the policy was calibrated, and answer or abstain."""
        task = policy.pipeline.get("task")
        problem = question if isinstance(question, Problem) else Problem("question", question, extra={"task": task})
        fitted = self.fitted([problem])
        self._refuse_another(fitted, policy)  # before a path is paid for
        pool = _run(lambda _: self._draw(fitted, problem))
        scorer, scorers = self.scorer, {}
        if scorer is not None:
            name = policy.pipeline.get("score") or scorer.name
            values = checked(scorer.score(blinded(pool)), pool, scorer.name)
            paths = [replace(p, scores={name: v}) for p, v in zip(pool.paths, values, strict=True)]
            pool, scorers = replace(pool, paths=tuple(paths)), {name: full_identity(scorer)}
        source = Source([pool], fitted.describe(), scorers)
        voted = hold_vote(source, reading_of_policy(policy), policy.recipe, labelled=False)
        decision = policy.decide_votes(voted.votes, alpha=alpha)[0]
        return Asked(decision, pool, voted.table.written[0])

    def _refuse_another(self, fitted: Fitted, policy: Policy) -> None:
        """Raise PipelineMismatch unless this is the pipeline that the policy was calibrated with."""
        found = fitted.describe()
        differences = describe_differences({name: policy.pipeline.get(name) for name in found}, found)
        scorer = self.scorer
        if isinstance(scorer, StreamScorer):
            _run(lambda _: _prepared(scorer))
        if scorer is not None and policy.pipeline.get("score") is not None:
            held, here = policy.pipeline.get("scorer"), full_identity(scorer)
            differences += [f"scorer: {each}" for each in describe_differences(held or {}, here)]
        low, high = policy.n_paths
        if not low <= self.n_paths <= high:
            differences.append(f"n_paths is {low} to {high} in the policy, {self.n_paths} here")
        if differences:
            raise PipelineMismatch(differences)

    async def _draw(self, fitted: Fitted, problem: Problem) -> Pool:
        first = sampling.seed_of(self.seed, problem.question or "", self.n_paths)
        wanted = [Wanted(path, first + path) for path in range(self.n_paths)]
        found: dict[int, Completion] = {}
        prompt = fitted.template.render(problem)
        try:
            async with contextlib.aclosing(self.backend.sample(prompt, fitted.settings, wanted)) as portions:
                async for portion in portions:
                    found |= {each.path: each for each in portion}
        finally:
            await self.backend.close()
        if len(found) < self.n_paths:
            raise BackendError(f"the model gave {len(found)} of {self.n_paths} paths")
        return Pool(problem, tuple(fitted.path(problem, found[path]) for path in sorted(found)))


@dataclass(frozen=True)
class Fitted:
    """A pipeline with the prompt and the extraction of one task."""

    pipeline: Pipeline
    task: str
    template: Template

    @cached_property
    def _extractor(self) -> Extractor | None:
        return None if self.pipeline.extract is None else parse_extractor(self.pipeline.extract)

    @property
    def settings(self) -> Settings:
        """The template's stop words are part of how paths are drawn."""
        settings = self.pipeline.settings
        return settings if settings.stop else replace(settings, stop=self.template.stop)

    def describe(self) -> dict[str, Any]:
        """All that decides what a path is: stored in run and policy, and compared."""
        settings = self.settings
        return {
            **self.pipeline.backend.describe(),
            "task": self.task,
            "prompt": self.template.describe(),
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_tokens": settings.max_tokens,
            "stop": list(settings.stop),
            "extract": self.pipeline.extract or relation_for(self.task).describe(),
        }

    def render(self, problem: Problem) -> Prompt:
        return self.template.render(problem)

    def read(self, problem: Problem, completion: Completion) -> extraction.Extraction:
        """The answer that a path ends in."""
        if self._extractor is not None:
            return self._extractor(completion.text, truncated=completion.truncated)
        if self.task == "mc":
            options = problem.extra.get("options")
            return extract_choice(completion.text, truncated=completion.truncated, options=options)
        return relation_for(self.task).extract(completion.text, truncated=completion.truncated)

    def path(self, problem: Problem, completion: Completion) -> Path:
        """A path as a run would have it."""
        found = self.read(problem, completion)
        extra = {
            "extraction": found.method, "finish_reason": completion.finish_reason, "n_tokens": completion.n_tokens,
            "logprob_mean": completion.logprob_mean, "logprob_std": completion.logprob_std, "seed": completion.seed,
        }  # fmt: skip
        known = {name: value for name, value in extra.items() if value is not None}
        return Path(found.answer, completion.text, extra=known)


@dataclass(frozen=True)
class SampledRun:
    """A run after sampling."""

    store: str
    name: str
    progress: SamplingProgress
    score: str | None
    unscored: dict[str, str] = field(default_factory=dict)
    """Problems that could not be scored, and why."""

    def electorate(self) -> Electorate:
        """Its whole pools, voted on with the pipeline's score, and labelled."""
        with Store(self.store) as opened:
            run = opened.run(self.name)
            source = Source(run.pools(), run.pipeline, run.scorers())
        reading = Reading(score=self.score)
        return hold_vote(source, reading, source.recipe(reading), labelled=True)

    def calibrate(
        self,
        *,
        alpha: float | Sequence[float] | None = None,
        guarantee: Guarantee | Sequence[Guarantee] | None = None,
        hold_out: float = 0.0,
        seed: int = 0,
    ) -> Policy:
        """A policy, calibrated on the whole pools of the run."""
        return self.electorate().calibrate(as_guarantees(alpha, guarantee), hold_out=hold_out, seed=seed)[0]


@dataclass(frozen=True)
class Asked:
    """A decision on a question just asked, and what it rests on."""

    decision: Decision
    pool: Pool
    written: dict[str, str]
    """How the answer behind each key is written."""


def of_policy(
    policy: Policy,
    backend: Backend,
    *,
    seed: int = 0,
    scorers: Mapping[str, ScorerSettings] | None = None,
    score: str | None = None,
    extract: str | None = None,
    say: Say = lambda _: None,
) -> Pipeline:
    """The pipeline that a policy was calibrated with, on a backend that must be the same model.

    `scorers` say where the models of scores are. Functions that a policy names are not run: the caller names them
    again, as `score` or `extract`.
    """
    held = policy.pipeline
    if not isinstance(held.get("prompt"), dict):
        raise InvalidValue("this policy was calibrated on a file that does not say how its paths were sampled; "
                           "calibrate on a run of `demur sample`")  # fmt: skip
    template = template_of(held["prompt"], "the policy's prompt")
    relation = relation_for(held.get("task")).describe()
    reading = None if held["extract"] == relation else held["extract"]
    if reading is not None and names_function(reading) and reading != extract:
        raise InvalidValue(
            f"this policy reads answers by the function {reading}; no file may make demur run a function: "
            f"name it yourself with --extract {reading}"
        )
    scorer: Scorer | None = None
    name = held["score"]
    if name is not None and score is not None:
        scorer = make_scorer(score)
        scorer.name = name
    elif name is not None:
        known = (scorers or {}).get(name, ScorerSettings())
        scorer = scorer_of_identity(name, held.get("scorer") or {}, known, template=template, say=say)
    settings = Settings(
        temperature=held["temperature"], top_p=held["top_p"], max_tokens=held["max_tokens"], stop=tuple(held["stop"]),
        logprobs=isinstance(scorer, Perplexity),
    )  # fmt: skip
    return Pipeline(backend, policy.n_paths[1], scorer, template, settings, reading, seed)


async def _prepared(scorer: StreamScorer) -> None:
    try:
        await scorer.prepare()
    finally:
        await scorer.close()


Bridge = Callable[[Callable[[asyncio.Event], Awaitable[Any]]], Any]


def _run(work: Callable[[asyncio.Event], Awaitable[Any]]) -> Any:
    """The one way from synchronous code into asynchronous."""

    async def main() -> Any:
        return await work(asyncio.Event())

    return asyncio.run(main())


def _facts(progress: SamplingProgress) -> dict[str, Any]:
    versions = {"demur": __version__, "python": platform.python_version()}
    for package in ("aiohttp", "sqlalchemy", "xllamacpp"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {
        "paths": progress.saved, "tokens": progress.tokens, "seconds": round(progress.seconds, 3),
        "failed": len(progress.failed), "stopped": progress.stopped, "retries": progress.retries, "versions": versions,
    }  # fmt: skip
