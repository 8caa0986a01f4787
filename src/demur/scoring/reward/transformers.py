"""A reward model in this process, by transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from demur.scoring.model_scorer import Item, Value
from demur.scoring.reward.reward import PROBES, Reward
from demur.scoring.transformers_scorer import TransformersScorer


class TransformersReward(TransformersScorer, Reward):
    """A sequence-classification model with one output, such as the Skywork reward models."""

    way: ClassVar = {"route": "sequence classification"}

    async def prepare(self) -> None:
        await super().prepare()
        await self._run(self._ids, PROBES[0])  # it must have a chat template

    async def ask(self, items: Sequence[Item]) -> Sequence[Value]:
        return [Value(reward) for reward in await self._run(self._rewards, items)]

    def _ids(self, item: Item) -> list[int]:
        return self.model.chat_ids(self.chat(item.problem, item.text), to_be_answered=False)

    def _rewards(self, items: Sequence[Item]) -> list[float]:
        return self.model.run(self._rows(items))[:, 0].float().tolist()  # type: ignore[no-any-return]
