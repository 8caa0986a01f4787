"""Paths asked for in waves, looked at in order of index, and no further than until they settle the decision.

Which prefix of a pool settles it depends on the paths alone: not on how large waves are, nor on which path arrives
first, which would favour short ones. What arrives before its predecessors waits for them.

A policy that was calibrated with a stopping rule is asked by that rule instead: its waves end where it looks, and what
was drawn when it has enough is the pool.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from demur import event_loop
from demur.backends.protocol import Backend, Completion, ReportedModels, Settings, Wanted
from demur.engine.score import score_pool
from demur.errors import BackendError, InvalidValue
from demur.pipeline.fitted import Fitted
from demur.policy.curtail import Curtailment
from demur.pools.fields import FieldChoice, read_keys
from demur.pools.spellings import spelling_is_settled
from demur.records import Early, Path, Pool, Problem
from demur.scoring.protocol import Scorer, stays
from demur.stopping import Stopping


@dataclass(frozen=True)
class Waves:
    """How many paths of a pool are asked for at first, and how many more each time the decision is still open."""

    first: int
    size: int

    def __post_init__(self) -> None:
        for name, paths in (("the first wave", self.first), ("a wave", self.size)):
            if isinstance(paths, bool) or not isinstance(paths, int) or paths < 1:
                raise InvalidValue(f"{name} is a whole number of paths, at least one, got {paths!r:.60}")

    def of(self, wanted: Sequence[Wanted]) -> Iterator[Sequence[Wanted]]:
        """The paths of each wave."""
        yield wanted[: self.first]
        for start in range(self.first, len(wanted), self.size):
            yield wanted[start : start + self.size]


class Watched:
    """The paths of one question, in order of index, and whether they settle what is decided on it."""

    def __init__(
        self,
        problem: Problem,
        curtailment: Curtailment | None,
        fields: FieldChoice,
        score: tuple[str, Scorer] | None,
        stopping: Stopping | None = None,
    ) -> None:
        """`score` is the name and the scorer of the vote's weights; None where all weigh alike."""
        self.problem, self.paths = problem, list[Path]()
        self.early: Early | None = None
        self._curtailment, self._fields, self._score, self._stopping = curtailment, fields, score, stopping
        self._keys: list[str | None] = []
        self._texts: list[str | None] = []
        self._scores: list[float | None] = []

    @property
    def pool(self) -> Pool:
        """Those that settled it, or all that came."""
        return Pool(self.problem, tuple(self.paths if self.early is None else self.paths[: self.early.n_paths]))

    @property
    def keys(self) -> list[str | None]:
        """The answers of these paths."""
        return self._keys[: len(self.pool.paths)]

    @property
    def scores(self) -> list[float | None] | None:
        """What their weights are made of; None where all weigh alike."""
        return None if self._score is None else self._scores[: len(self.pool.paths)]

    async def take(self, new: Sequence[Path]) -> bool:
        """Add the paths that come next; whether the decision is certain, or the rule that ends pools has enough."""
        if self._curtailment is not None and self._score is not None:
            new = await self._scored(self._score[0], self._score[1], new)
        first = len(self.paths) + 1
        self.paths += new
        if self._curtailment is None and self._stopping is None:
            return False
        pool = Pool(self.problem, tuple(new))
        keys, texts = await event_loop.read_aside(pool.length_of_answers, read_keys, pool, self._fields)
        self._keys += keys
        self._texts += texts
        if self._stopping is not None:
            return self._stopping.size(self._keys) == len(self._keys)
        if self._curtailment is None:
            return False
        for drawn in range(first, len(self.paths) + 1):
            early = self._certain(self._curtailment, drawn)
            if early is not None:
                self.early = early
                return True
        return False

    async def _scored(self, name: str, scorer: Scorer, new: Sequence[Path]) -> Sequence[Path]:
        """The paths with their scores; once one of them depends on paths that are missing, nothing is certain."""
        pool = Pool(self.problem, tuple(new))
        if not stays(scorer, pool):
            self._curtailment = None
            return new
        values = await score_pool(scorer, pool)
        self._scores += values
        return [replace(path, scores={**path.scores, name: value}) for path, value in zip(new, values, strict=True)]

    def _certain(self, curtailment: Curtailment, drawn: int) -> Early | None:
        """What the first paths settle: the decision, and how its answer is written."""
        keys, texts = self._keys[:drawn], self._texts[:drawn]
        early = curtailment.early(keys, None if self._score is None else self._scores[:drawn])
        if early is None or early.answer is None or spelling_is_settled(early.answer, keys, texts, early.left):
            return early
        return None


async def _read(fitted: Fitted, problem: Problem, came: Sequence[Completion]) -> list[Path]:
    """Completions as paths with their answers."""
    length = sum(len(completion.text) for completion in came) + len(problem.question or "")
    return await event_loop.read_aside(length, lambda: [fitted.path(problem, completion) for completion in came])


@dataclass(frozen=True)
class Drawn:
    """What a model gave for one question."""

    completions: tuple[Completion, ...]
    unused: tuple[Path, ...] = ()
    """Paths that came and were not needed."""


async def draw(
    backend: Backend,
    settings: Settings,
    fitted: Fitted,
    watched: Watched,
    wanted: Sequence[Wanted],
    waves: Waves,
    came: dict[int, Completion],
) -> Drawn:
    """Draw paths wave by wave into `watched`, until it is certain or all are there.

    Requests that are still out then are cancelled. Each path is in `came` as soon as it is there, whatever fails later.
    Raises EndpointRefused when the replies name several models, unless the pipeline takes them (`mixed_models`).
    """
    reported, prompt = ReportedModels(mixed=fitted.pipeline.mixed_models), fitted.render(watched.problem)
    for wave in waves.of(wanted):
        async with contextlib.aclosing(backend.sample(prompt, settings, wave)) as portions:
            async for portion in portions:
                came.update((drawn.path, drawn) for drawn in portion)
                reported.take(portion)
                known = len(watched.paths)
                ready = known
                while ready in came:
                    ready += 1
                new = await _read(fitted, watched.problem, [came[path] for path in range(known, ready)])
                if new and await watched.take(new):
                    needed = len(watched.pool.paths)
                    later = [came[path] for path in sorted(came) if path >= needed]
                    more = await _read(fitted, watched.problem, later)
                    return Drawn(tuple(came.values()), tuple(more))
        if lacking := [want.path for want in wave if want.path not in came]:
            raise BackendError(f"the model gave {len(came)} of {len(wanted)} paths; path {lacking[0]} is missing")
    return Drawn(tuple(came.values()))
