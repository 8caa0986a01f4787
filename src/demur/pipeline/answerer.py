"""One policy in use: from a question to a decision, opened once and closed by its owner.

    async with pipeline.answerer(policy) as answerer:          with pipeline.answerer(policy) as answerer:
        asked = await answerer.ask_async("What is 2 + 3?")         asked = answerer.ask("What is 2 + 3?")

Backend, scorer, prompt and the policy's reading of answers are settled when it is opened, and checked against the
policy before a path is paid for. Many questions may be asked at once. Asked in `waves`, a question costs no more paths
than settle it: the decision is the one that all of them would have brought. A policy that was calibrated with a
stopping rule draws by that rule, whatever waves are asked for.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

from demur import event_loop
from demur.backends.protocol import Completion
from demur.calibration import Level
from demur.descriptions import Description
from demur.engine.sample import wanted_paths
from demur.engine.score import score_pool
from demur.errors import PipelineMismatch
from demur.pipeline.fitted import Fitted
from demur.pipeline.waves import Watched, Waves, draw
from demur.policy.curtail import Curtailment, never_early, savings_note
from demur.policy.groups import groups_asked
from demur.policy.policy import Policy
from demur.policy.system_prompts import refuse_other_systems
from demur.pools.fields import FieldChoice, read_row
from demur.pools.path_fields import numbers_of, origins_of
from demur.pools.scores import is_number, read_column
from demur.prompts.conversations import with_transcript
from demur.records import Decision, Early, Path, Pool, Problem
from demur.scoring.model_scorer import ModelScorer
from demur.scoring.protocol import Scorer, full_identity, range_of, stays
from demur.voting.reach import ANY_NUMBER
from demur.voting.weights import Uniform

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
    """Where it was certain early, the paths that settled it."""
    winning: tuple[int, ...] = ()
    """The paths that gave the answer that most of the vote is for, in order."""
    spent: Spent = Spent()
    early: Early | None = None
    """That fewer paths than those of a whole pool settled it; None where all of them decided."""
    unused: tuple[Path, ...] = ()
    """Paths that came besides, and were not needed."""

    @property
    def whole(self) -> bool:
        """Whether all paths decided, so that its key is the calibrated statistic."""
        return self.early is None

    @property
    def certain_early(self) -> bool:
        return self.early is not None

    @property
    def n_drawn(self) -> int:
        """How many paths came."""
        return len(self.pool.paths) + len(self.unused)

    @property
    def n_paths(self) -> int:
        """How many a whole pool has."""
        return len(self.pool.paths) if self.early is None else self.early.of


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
        refuse_other_systems(self.policy, [problem])
        self._tie_break(Pool(problem, ()))

    def read(self, problem: Problem, completion: Completion) -> Path:
        """A path that was drawn elsewhere, with the answer that the pipeline reads in it."""
        return self._fit(problem).path(problem, completion)

    async def ask_async(
        self,
        question: str | Problem,
        *,
        alpha: Level | None = None,
        guarantee: str | None = None,
        waves: Waves | None = None,
        whole: bool = False,
        came: dict[int, Completion] | None = None,
    ) -> Asked:
        """Sample paths for one new question, vote as the policy was calibrated, and answer or abstain.

        With `waves`, paths are asked for a few at a time, and no more once the decision of the whole pool is certain;
        `whole` draws all of them even so, for who wants to know the confidence itself. Paths are put into `came` by
        index as they come: what was drawn is known there even if this raises.
        """
        rule = self.policy.point(alpha, guarantee)  # before a path is paid for
        self.policy.sets_of(rule)
        if not isinstance(question, Problem):
            groups_asked(self.policy, rule, question, None)
        task = self.policy.upstream.answers.get("task")
        problem = Problem("question", question, extra={"task": task}) if isinstance(question, str) else question
        problem = with_transcript(problem)
        refuse_other_systems(self.policy, [problem])
        self._tie_break(Pool(problem, ()))
        await self.open_async()
        started = time.monotonic()
        fitted, n_paths = self._fit(problem), self.pipeline.n_paths
        curtailed = waves is not None and not whole and not self._never_early(alpha, guarantee)
        curtailment = self._curtailment(problem, alpha, guarantee) if curtailed else None
        stopping = self.pipeline.stop
        watched = Watched(problem, curtailment, self._fields, self._weighing, stopping)
        wanted = wanted_paths(self.pipeline.seed, problem.question or "", n_paths)
        by = waves if waves is not None and curtailed else Waves(n_paths, n_paths)
        by = by if stopping is None else Waves(stopping.wave, stopping.wave)
        came = {} if came is None else came
        drawn = await draw(self.pipeline.backend, fitted.settings, fitted, watched, wanted, by, came)
        if watched.early is not None and curtailment is not None:
            decision = curtailment.decision(watched.early, watched.keys, watched.scores)
            written = read_row(watched.pool, replace(self._fields, score=None)).written
            won = _places(decision, watched.keys)
            asked = Asked(decision.written_as(written), watched.pool, won, early=watched.early, unused=drawn.unused)
        else:
            asked = await self.decide_async(await self._scored(watched.pool), alpha=alpha, guarantee=guarantee)
        return replace(asked, spent=replace(Spent.on(drawn.completions), seconds=time.monotonic() - started))

    def savings_note(self, *, alpha: Level | None = None, guarantee: str | None = None) -> str:
        """Why waves save hardly a path, or none, with this policy, in words; blank where they save some."""
        return savings_note(self.policy, alpha=alpha, guarantee=guarantee, **self._known_of_scores)

    def _never_early(self, alpha: Level | None, guarantee: str | None) -> str:
        return never_early(self.policy, alpha=alpha, guarantee=guarantee, **self._known_of_scores)

    @property
    def _weighing(self) -> tuple[str, Scorer] | None:
        """The score that weights are made of, and its scorer; None where all paths weigh alike."""
        name = self.policy.score
        if name not in self._scorers or isinstance(self.policy.recipe.weight, Uniform):
            return None
        return name, self._scorers[name]

    @property
    def _known_of_scores(self) -> dict[str, Any]:
        """What bounds of weights rest on."""
        known: dict[str, Any] = {"n_paths": self.pipeline.n_paths}
        if self._weighing is not None:
            name, scorer = self._weighing
            known |= {"within": range_of(scorer)} | ({} if stays(scorer, _NO_PATHS) else {"needs_whole_pool": name})
        return known

    def _curtailment(self, problem: Problem, alpha: Level | None, guarantee: str | None) -> Curtailment:
        """What says when the decision on a question is certain."""
        self._refuse_other_relation(problem)
        column = self.policy.recipe.column
        number = None if column is None else problem.extra.get(column.name)
        return Curtailment(
            self.policy,
            n_paths=self.pipeline.n_paths,
            alpha=alpha,
            guarantee=guarantee,
            tie_break=number if is_number(number) else None,
            id=problem.id,
            question=problem,
            within=range_of(self._weighing[1]) if self._weighing is not None else ANY_NUMBER,
            all_scored=True,  # a scorer that fails stops the question
        )

    async def _scored(self, pool: Pool) -> Pool:
        """A whole pool with all its scores; those that are there already stay."""
        for name, scorer in self._scorers.items():
            if all(name in path.scores for path in pool.paths):
                continue
            values = await score_pool(scorer, pool)
            scored = zip(pool.paths, values, strict=True)
            pool = replace(pool, paths=tuple(replace(path, scores={**path.scores, name: one}) for path, one in scored))
        return pool

    def decide(self, pool: Pool, *, alpha: Level | None = None, guarantee: str | None = None) -> Asked:
        """Vote on a pool that was sampled and scored, and answer or abstain."""
        read, recipe = read_row(pool, self._fields), self.policy.recipe
        self._refuse_other_relation(pool.problem)
        decision = self.policy.decide_keys(
            read.answers,
            read.scores,
            alpha=alpha,
            guarantee=guarantee,
            tie_break=self._tie_break(pool),
            columns={name: numbers_of([pool], name)[0] for name in recipe.needs},
            origins=None if recipe.origin is None else origins_of([pool], recipe.origin)[0],
            id=pool.problem.id,
            question=pool.problem,
        )
        return Asked(decision.written_as(read.written), pool, _places(decision, read.answers))

    async def decide_async(self, pool: Pool, *, alpha: Level | None = None, guarantee: str | None = None) -> Asked:
        """`decide`, which other questions do not wait for if answers are long."""
        deciding = partial(self.decide, pool, alpha=alpha, guarantee=guarantee)
        return await event_loop.read_aside(pool.length_of_answers, deciding)

    def _tie_break(self, pool: Pool) -> float | None:
        """The number that the problem brings along where that breaks ties; raises where it has none."""
        column = self.policy.recipe.column
        return None if column is None else read_column([pool], column.name)[0]

    def ask(
        self,
        question: str | Problem,
        *,
        alpha: Level | None = None,
        guarantee: str | None = None,
        waves: Waves | None = None,
        whole: bool = False,
    ) -> Asked:
        """`ask_async`, waited for."""
        return event_loop.run(self.ask_async(question, alpha=alpha, guarantee=guarantee, waves=waves, whole=whole))

    def close(self) -> None:
        event_loop.run(self.close_async())

    def _fit(self, problem: Problem) -> Fitted:
        """The pipeline for problems like this one, compared with the policy once."""
        kind = problem.extra.get("task"), "passages" in problem.extra
        if kind not in self._fitted:
            self._refuse_another(fitted := self.pipeline.fitted([problem]))
            self._refuse_other_relation(problem)
            self._fitted[kind] = fitted
        return self._fitted[kind]

    def _refuse_other_relation(self, problem: Problem) -> None:
        """Raise where answers to this problem are compared another way than in calibration."""
        calibrated = self.policy.upstream.answers["relation"]
        if (compared := self._fields.told_relation([problem])) != calibrated:
            raise PipelineMismatch([f"answers.relation is {calibrated!r} in the policy, {compared!r} here"])

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
            _only(calibrated.sampling, {**here.sampling, "stopping": None}),  # that there is none is a difference too
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


def _places(decision: Decision, keys: Sequence[Any]) -> tuple[int, ...]:
    """The paths that gave the answer in front, before answers are written as paths have them."""
    leader = next(iter(decision.support), None)
    return tuple(place for place, key in enumerate(keys) if leader is not None and key == leader)


_NO_PATHS = Pool(Problem(""), ())


def _only(stage: Any, other: Any) -> dict[str, Any]:
    """The parts of a stage that another has too."""
    return {name: value for name, value in stage.items() if name in other}
