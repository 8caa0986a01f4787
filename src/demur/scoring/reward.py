"""Reward: the scalar r of a reward model for a question and a path, as it is: no sigmoid, no softmax (theory 1.4).

A sigmoid squeezes all good paths together at 1, so a server that puts one in place of r is found out on a probe and
refused.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from demur.backends.endpoint import Endpoint, Refused
from demur.errors import BackendError, EndpointRefused, InvalidValue, NoSuchRoute, ScoringError
from demur.prompts import Template
from demur.records import Problem
from demur.scoring.asking import Asking, Item, OnServer, TooLong, Value, is_too_long
from demur.scoring.judge_server import read_results
from demur.scoring.protocol import as_number
from demur.scoring.server_template import MARK, text_around_mark

CLASSIFY, POOLING = "classify", "pooling"
ROUTES = (CLASSIFY, POOLING)
BUILT_IN = "built-in@1"
_QUESTION = Template("{question}")
_WITH_PASSAGES = Template("{passages}\n\nQuestion: {question}")
_WITH_OPTIONS = Template("{question}\n\n{options}")
_PROBES = (
    Item(Problem("probe", "What is 2 + 3?"), "2 + 3 = 5. The answer is 5."),
    Item(Problem("probe", "What is the capital of France?"), "Bananas are yellow."),
    Item(Problem("probe", "What is 2 + 4?"), "<think>\nTwo and four.\n</think>\n\nIt is 6."),  # templates rewrite these
)


class Reward(Asking):
    """A subclass asks a reward model."""

    name = "reward"
    normaliser = "pool_z"
    activation = "none"

    def __init__(self, template: Template | None = None, *, too_long: str = "cut") -> None:
        super().__init__(too_long=too_long)
        if template is not None and (template.kind != "chat" or template.system):
            raise InvalidValue("a reward model's prompt is a chat with a user's message only")
        self.template = template

    def identity(self) -> dict[str, Any]:
        prompt = BUILT_IN if self.template is None else self.template.describe()
        return {
            "scorer": "reward", "version": 1, **self.describe_model(), "activation": self.activation, "prompt": prompt,
            "too_long": self.too_long,
        }  # fmt: skip

    @abstractmethod
    def describe_model(self) -> dict[str, Any]:
        """The model, and the way it is asked."""

    def chat(self, problem: Problem, text: str) -> list[dict[str, str]]:
        """The conversation that is rewarded: the question, with its passages or options, and the path."""
        template = self.template or (
            _WITH_PASSAGES
            if problem.extra.get("passages")
            else _WITH_OPTIONS
            if problem.extra.get("options")
            else _QUESTION
        )
        asked = [dict(message) for message in template.render(problem).messages]
        return [*asked, {"role": "assistant", "content": text.strip()}]


class ServerReward(OnServer, Reward):
    """A reward model that vLLM serves (`--runner pooling`), by /classify or /pooling.

    Where the server shows its chat template, many paths go in one request; else each goes as a conversation.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        template: Template | None = None,
        *,
        route: str | None = None,
        concurrency: int = 32,
        raw: bool = False,
        too_long: str = "cut",
    ) -> None:
        super().__init__(template, too_long=too_long)
        self.endpoint, self.model, self.route, self.concurrency, self.raw = endpoint, model, route, concurrency, raw
        self._checked = False
        if raw:
            self.activation = "as served"

    def describe_model(self) -> dict[str, Any]:
        asked = "templated texts" if self.at_once > 1 else "conversations"
        return {"backend": "server", "model": self.model, "route": self.route, "asked": asked}

    async def prepare(self) -> None:
        """Find the route, and see that its numbers are r itself."""
        if self._checked:
            return
        tried, reasons = [self.route] if self.route else [*ROUTES], []
        for route in tried:
            self.route = route
            try:
                rewards = [await self._conversation(item) for item in _PROBES]
                break
            except (NoSuchRoute, ScoringError, Refused) as error:
                reasons.append(f"/{route}: {error}")
        else:
            self.route = self.route if len(tried) == 1 else None
            raise EndpointRefused(
                f"the endpoint serves no reward model: {'; '.join(reasons)}; start vLLM with --runner pooling"
            )
        await self._refuse_activation(rewards)
        self.at_once = 16 if await self._takes_batches(rewards) else 1
        self._checked = True

    async def _refuse_activation(self, rewards: Sequence[float]) -> None:
        """Raise unless the numbers are known to be r: beyond a sigmoid's range, or another number with one."""
        if self.raw or any(not 0 <= reward <= 1 for reward in rewards):
            return
        activated = [await self._conversation(item, use_activation=True) for item in _PROBES]
        if all(math.isclose(a, r, rel_tol=1e-3, abs_tol=1e-6) for a, r in zip(activated, rewards, strict=True)):
            raise ScoringError(
                f"the reward endpoint gives {rewards[0]:.4g} and {rewards[1]:.4g} with and without use_activation: "
                "these look like sigmoids, not rewards; serve the model with its activation off, or set raw = true "
                "if its rewards do lie between 0 and 1"
            )

    async def _takes_batches(self, rewards: Sequence[float]) -> bool:
        """Whether templated texts, several at once, get the same rewards as conversations."""
        try:
            batches = [await self._batch([item]) for item in _PROBES]
        except (NoSuchRoute, ScoringError, Refused):
            return False
        return all(math.isclose(b[0], r, rel_tol=1e-2, abs_tol=1e-2) for b, r in zip(batches, rewards, strict=True))

    async def ask(self, items: Sequence[Item]) -> Sequence[Value]:
        try:
            if self.at_once > 1:
                return [Value(reward) for reward in await self._batch(items)]
            return [Value(await self._conversation(item)) for item in items]
        except Refused as refused:
            if is_too_long(refused.message):
                raise TooLong(refused.message) from None
            raise BackendError(refused.message) from None

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
        return [
            _scalar(value) for value in read_results(document, wanted, "probs" if self.route == CLASSIFY else "data")
        ]


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
