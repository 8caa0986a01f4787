"""Rewards from a server: vLLM's /classify or /pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from demur.backends.endpoint import Refused
from demur.errors import EndpointRefused, NoSuchRoute, ScoringError
from demur.scoring._server_template import MARK, read_results, text_around_mark
from demur.scoring.model_scorer import Item, ServerScorer, Value, refusal
from demur.scoring.protocol import as_number
from demur.scoring.reward.reward import PROBES, Reward

CLASSIFY, POOLING = "classify", "pooling"
ROUTES = (CLASSIFY, POOLING)


class ServerReward(ServerScorer, Reward):
    """A reward model that vLLM serves (with the runner `pooling`), by /classify or /pooling.

    Where the server shows its chat template, many paths go in one request; else each goes as a conversation.
    """

    _checked = False

    def __init__(self, *asked: Any, raw: bool = False, **how: Any) -> None:
        super().__init__(*asked, **how)
        self.raw, self.activation = raw, "as served" if raw else "none"

    def describe_model(self) -> dict[str, Any]:
        return {**super().describe_model(), "asked": "templated texts" if self.at_once > 1 else "conversations"}

    async def prepare(self) -> None:
        """Find the route, and see that its numbers are r itself."""
        if self._checked:
            return
        tried, reasons = [self.route] if self.route else [*ROUTES], []
        for route in tried:
            self.route = route
            try:
                rewards = [await self._conversation(item) for item in PROBES]
                break
            except (NoSuchRoute, ScoringError, Refused) as error:
                reasons.append(f"/{route}: {error}")
        else:
            self.route = self.route if len(tried) == 1 else None
            why = "; ".join(reasons)
            raise EndpointRefused(f"the endpoint serves no reward model: {why}; start vLLM with the runner `pooling`")
        await self._refuse_activation(rewards)
        self.at_once = 16 if await self._takes_batches(rewards) else 1
        self._checked = True

    async def _refuse_activation(self, rewards: Sequence[float]) -> None:
        """Raise unless the numbers are known to be r: beyond a sigmoid's range, or another number with one."""
        if self.raw or any(not 0 <= reward <= 1 for reward in rewards):
            return
        activated = [await self._conversation(item, use_activation=True) for item in PROBES]
        if all(math.isclose(a, r, rel_tol=1e-3, abs_tol=1e-6) for a, r in zip(activated, rewards, strict=True)):
            raise ScoringError(
                f"the reward endpoint gives {rewards[0]:.4g} and {rewards[1]:.4g} with and without use_activation: "
                "these look like sigmoids, not rewards; serve the model with its activation off, or set raw = true "
                "if its rewards do lie between 0 and 1"
            )

    async def _takes_batches(self, rewards: Sequence[float]) -> bool:
        """Whether templated texts, several at once, get the same rewards as conversations."""
        try:
            batches = [await self._batch([item]) for item in PROBES]
        except (NoSuchRoute, ScoringError, Refused):
            return False
        return all(math.isclose(b[0], r, rel_tol=1e-2, abs_tol=1e-2) for b, r in zip(batches, rewards, strict=True))

    async def ask(self, items: Sequence[Item]) -> Sequence[Value]:
        try:
            if self.at_once > 1:
                return [Value(reward) for reward in await self._batch(items)]
            return [Value(await self._conversation(item)) for item in items]
        except Refused as refused:
            raise refusal(refused) from None

    async def _conversation(self, item: Item, *, use_activation: bool = False) -> float:
        body = {"messages": self.chat(item.problem, item.text), "use_activation": use_activation}
        (reward,) = await self._rewards(body, 1)
        return reward

    async def _batch(self, items: Sequence[Item]) -> list[float]:
        """Paths of one problem, templated here. The template brings its own beginning of text; no second is added."""
        chat = self.chat(items[0].problem, MARK)
        around = await text_around_mark(self.endpoint, self.model, chat, to_be_answered=False)
        inputs = [around.before + item.text.strip() + around.behind for item in items]
        return await self._rewards({"input": inputs, "add_special_tokens": False, "use_activation": False}, len(items))

    async def _rewards(self, body: dict[str, Any], wanted: int) -> list[float]:
        body = {"model": self.model, **body, **({"task": "classify"} if self.route == POOLING else {})}
        document = await self.endpoint.post(f"/{self.route}", body, at_root=True)
        return list(map(_scalar, read_results(document, wanted, "probs" if self.route == CLASSIFY else "data")))


def _scalar(value: Any) -> float:
    """The one number of a result; several are classes, or tokens, and no reward."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, list):
        raise ScoringError(f"the endpoint gives {len(value)} numbers per path, so it is no reward model of one scalar")
    reward = as_number(value, "a reward")
    if not math.isfinite(reward):
        raise ScoringError(f"the endpoint gave {value!r:.40} for a reward")
    return reward
