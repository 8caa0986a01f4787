"""One policy in use: from a question to a decision, opened once and closed by its owner.

    async with pipeline.answerer(policy) as answerer:          with pipeline.answerer(policy) as answerer:
        asked = await answerer.ask_async("What is 2 + 3?")         asked = answerer.ask("What is 2 + 3?")

Backend, scorer, prompt and the policy's reading of answers are settled when it is opened, and checked against the
policy before a path is paid for. Many questions may be asked at once.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from demur import event_loop
from demur.backends.protocol import Completion
from demur.calibration import Level
from demur.descriptions import Description
from demur.engine.sample import wanted_paths
from demur.engine.score import score_pool
from demur.errors import BackendError, PipelineMismatch
from demur.pipeline.fitted import Fitted
from demur.policy.groups import groups_asked
from demur.policy.policy import Policy
from demur.pools.fields import FieldChoice, read_row
from demur.pools.path_fields import numbers_of, origins_of
from demur.pools.scores import read_column
from demur.prompts.conversations import with_transcript
from demur.records import Decision, Path, Pool, Problem
from demur.scoring.model_scorer import ModelScorer
from demur.scoring.protocol import Scorer, full_identity

if TYPE_CHECKING:
    from demur.pipeline.pipeline import Pipeline


@dataclass(frozen=True)
class Spent:
    """What a question cost at the model's server, and what the server said of itself."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    models: tuple[str, ...] = ()
    """The names that it reported, each once."""
    system_fingerprints: tuple[str, ...] = ()
    seconds: float = 0.0
    """How long models were waited for, scorers among them."""

    @classmethod
    def on(cls, drawn: Iterable[Completion]) -> Spent:
        """The sum of what the server counted; where it does not say, the tokens of the paths."""
        paths = list(drawn)
        receipts = [path.receipt for path in paths if path.receipt is not None]
        counted = [receipt.completion_tokens for receipt in receipts]
        known = bool(counted) and None not in counted
        completion = sum(count or 0 for count in counted) if known else sum(path.n_tokens or 0 for path in paths)
        names, prints = (
            tuple(dict.fromkeys(name for name in said if name is not None))
            for said in ([one.model for one in receipts], [one.system_fingerprint for one in receipts])
        )
        return cls(sum(receipt.prompt_tokens or 0 for receipt in receipts), completion, names, prints)


@dataclass(frozen=True)
class Asked:
    """A decision on a question just asked, and what it rests on."""

    decision: Decision
    """Its answers are written as most paths have them."""
    pool: Pool
    winning: tuple[int, ...] = ()
    """The paths that gave the answer that most of the vote is for, in order."""
    spent: Spent = Spent()
    whole: bool = True
    """Whether all paths were drawn, so that its key is the calibrated statistic."""


class Answerer:
    """Answers or abstains, question after question."""

    def __init__(self, pipeline: Pipeline, policy: Policy) -> None:
        self.pipeline, self.policy = pipeline, policy
        self._fitted: dict[tuple[Any, bool], Fitted] = {}
        self._prepared = False

    @cached_property
    def _fields(self) -> FieldChoice:
        """How the policy reads answers."""
        return FieldChoice.of(self.policy.description)

    @cached_property
    def _scorers(self) -> dict[str, Scorer]:
        """What scores paths, by the names that the policy has for their scores."""
        scorer = self.pipeline.scorer
        own = {} if scorer is None else {self.policy.score or scorer.name: scorer}
        return own | {other.name: other for other in self.pipeline.also}

    async def open_async(self) -> Self:
        """Find out what the scorer must know."""
        if not self._prepared:
            for scorer in self._scorers.values():
                if isinstance(scorer, ModelScorer):
                    await scorer.prepare()
        self._prepared = True
        return self

    async def close_async(self) -> None:
        """Let go of connections; weights stay loaded as long as their objects live."""
        self._prepared = False
        await self.pipeline.backend.close()
        for scorer in self._scorers.values():
            if isinstance(scorer, ModelScorer):
                await scorer.close()

    def check_pipeline(self) -> None:
        """Raise PipelineMismatch where paths would not be made the way that calibration questions' were."""
        self._fit(Problem("question", "?", extra={"task": self.policy.upstream.answers.get("task")}))

    def check(self, problem: Problem) -> None:
        """Raise where such a problem cannot be asked, or is not put the way that calibration questions were."""
        self._fit(problem).render(problem)

    def read(self, problem: Problem, completion: Completion) -> Path:
        """A path that was drawn elsewhere, with the answer that the pipeline reads in it."""
        return self._fit(problem).path(problem, completion)

    async def ask_async(
        self, question: str | Problem, *, alpha: Level | None = None, guarantee: str | None = None
    ) -> Asked:
        """Sample paths for one new question, vote as the policy was calibrated, and answer or abstain."""
        rule = self.policy.point(alpha, guarantee)  # before a path is paid for
        self.policy.sets_of(rule)
        if not isinstance(question, Problem):
            groups_asked(self.policy, rule, question, None)
        task = self.policy.upstream.answers.get("task")
        problem = Problem("question", question, extra={"task": task}) if isinstance(question, str) else question
        problem = with_transcript(problem)
        await self.open_async()
        started = time.monotonic()
        pool, spent = await self._draw(self._fit(problem), problem)
        for name, scorer in self._scorers.items():
            values = await score_pool(scorer, pool)
            scored = zip(pool.paths, values, strict=True)
            pool = replace(pool, paths=tuple(replace(path, scores={**path.scores, name: one}) for path, one in scored))
        spent = replace(spent, seconds=time.monotonic() - started)
        return replace(self.decide(pool, alpha=alpha, guarantee=guarantee), spent=spent)

    def decide(self, pool: Pool, *, alpha: Level | None = None, guarantee: str | None = None) -> Asked:
        """Vote on a pool that was sampled and scored, and answer or abstain."""
        read, recipe = read_row(pool, self._fields), self.policy.recipe
        tie_break = None if recipe.column is None else read_column([pool], recipe.column.name)[0]
        calibrated = self.policy.upstream.answers["relation"]
        if (compared := self._fields.told_relation([pool.problem])) != calibrated:
            raise PipelineMismatch([f"answers.relation is {calibrated!r} in the policy, {compared!r} here"])
        decision = self.policy.decide_keys(
            read.answers,
            read.scores,
            alpha=alpha,
            guarantee=guarantee,
            tie_break=tie_break,
            columns={name: numbers_of([pool], name)[0] for name in recipe.needs},
            origins=None if recipe.origin is None else origins_of([pool], recipe.origin)[0],
            id=pool.problem.id,
            question=pool.problem,
        )
        leader = next(iter(decision.support), None)
        winning = tuple(place for place, key in enumerate(read.answers) if leader is not None and key == leader)
        return Asked(decision.written_as(read.written), pool, winning)

    def ask(self, question: str | Problem, *, alpha: Level | None = None, guarantee: str | None = None) -> Asked:
        """`ask_async`, waited for."""
        return event_loop.run(self.ask_async(question, alpha=alpha, guarantee=guarantee))

    def close(self) -> None:
        event_loop.run(self.close_async())

    def _fit(self, problem: Problem) -> Fitted:
        """The pipeline for problems like this one, compared with the policy once."""
        kind = problem.extra.get("task"), "passages" in problem.extra
        if kind not in self._fitted:
            self._refuse_another(fitted := self.pipeline.fitted([problem]))
            self._fitted[kind] = fitted
        return self._fitted[kind]

    async def _draw(self, fitted: Fitted, problem: Problem) -> tuple[Pool, Spent]:
        n_paths, prompt = self.pipeline.n_paths, fitted.render(problem)
        wanted = wanted_paths(self.pipeline.seed, problem.question or "", n_paths)
        drawn: dict[int, Completion] = {}
        async with contextlib.aclosing(self.pipeline.backend.sample(prompt, fitted.settings, wanted)) as portions:
            async for portion in portions:
                drawn |= {completion.path: completion for completion in portion}
        if len(drawn) < n_paths:
            raise BackendError(f"the model gave {len(drawn)} of {n_paths} paths")
        paths = tuple(fitted.path(problem, drawn[path]) for path in sorted(drawn))
        return Pool(problem, paths), Spent.on(drawn.values())

    def _refuse_another(self, fitted: Fitted) -> None:
        """Raise PipelineMismatch unless this is the pipeline that the policy was calibrated with."""
        calibrated, here = self.policy.upstream, fitted.description()
        scorer = self.pipeline.scorer
        if scorer is not None and self.policy.score is not None:
            here = replace(here, score={"scorer": full_identity(scorer)})
        if self.pipeline.also or "others" in calibrated.score:
            others = {other.name: full_identity(other) for other in self.pipeline.also}
            here = replace(here, score={**here.score, "others": others})
        known = Description(
            _only(calibrated.sampling, here.sampling),
            _only(calibrated.answers, here.answers),
            _only(calibrated.score, here.score),
        )
        differences = known.differences(here)
        if not self.policy.strata.knows(self.pipeline.n_paths):
            differences.append(f"n_paths is {self.policy.told_sizes} in the policy, {self.pipeline.n_paths} here")
        if (origin := self.policy.recipe.origin) is not None:
            differences.append(f"paths come from several sources ({origin}) in the policy, from one model here")
        if differences:
            raise PipelineMismatch(differences)

    async def __aenter__(self) -> Self:
        return await self.open_async()

    async def __aexit__(self, *_: object) -> None:
        await self.close_async()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _only(stage: Any, other: Any) -> dict[str, Any]:
    """The parts of a stage that another has too."""
    return {name: value for name, value in stage.items() if name in other}
