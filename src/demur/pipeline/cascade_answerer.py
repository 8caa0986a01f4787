"""A cascade in use: the next stage is sampled only if the one before does not answer.

with CascadeAnswerer(cascade, [cheap, strong]) as answerer:
    asked = answerer.ask("What is 2 + 3?")          asked.decision.stage, asked.decision.answer
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from demur import event_loop
from demur.errors import InvalidValue
from demur.pipeline.answerer import Answerer
from demur.pipeline.pipeline import Pipeline
from demur.policy.cascade import Cascade
from demur.policy.cascade_decisions import CascadeDecision
from demur.records import Decision, Pool, Problem


@dataclass(frozen=True)
class CascadeAsked:
    """A decision on a question just asked, and the pools of the stages that were asked, by name."""

    decision: CascadeDecision
    pools: Mapping[str, Pool]


class CascadeAnswerer:
    """Answers or leaves it to a person, question after question."""

    def __init__(self, cascade: Cascade, pipelines: Sequence[Pipeline]) -> None:
        if len(pipelines) != len(cascade.stages):
            names = ", ".join(stage.name for stage in cascade.stages)
            raise InvalidValue(f"give one pipeline per stage, {len(cascade.stages)} of them: {names}")
        self.cascade = cascade
        self._answerers = {
            stage.name: Answerer(pipeline, stage.policy)
            for stage, pipeline in zip(cascade.stages, pipelines, strict=True)
            if stage.asked
        }

    async def ask_async(self, question: str | Problem) -> CascadeAsked:
        """Ask one stage after the other until one answers."""
        decisions: dict[str, Decision] = {}
        pools: dict[str, Pool] = {}
        for name, answerer in self._answerers.items():
            asked = await answerer.ask_async(question)
            decisions[name], pools[name] = asked.decision, asked.pool
            if not asked.decision.abstained:
                break
        known = question.id if isinstance(question, Problem) else None
        return CascadeAsked(self.cascade.conclude(decisions, id=known), pools)

    def ask(self, question: str | Problem) -> CascadeAsked:
        """`ask_async`, waited for."""
        return event_loop.run(self.ask_async(question))

    async def close_async(self) -> None:
        """Let go of connections."""
        for answerer in self._answerers.values():
            await answerer.close_async()

    def close(self) -> None:
        event_loop.run(self.close_async())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close_async()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
