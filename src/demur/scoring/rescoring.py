"""Perplexity of stored text: the log-probability of each token of a path behind its prompt, found anew.

For runs that were sampled without log-probabilities, or to score one model's paths by another. The prompt is the run's
own, word for word.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from demur.backends.embedded import Embedded
from demur.backends.protocol import Prompt, Wanted, read_choices
from demur.errors import BackendError, ScoringError
from demur.prompts import Template
from demur.scoring.asking import Asking, Item, TooLong, Value, is_too_long
from demur.scoring.perplexity import MEAN, identity_of, statistic


class Rescored(Asking):
    """A subclass has `logprobs`: those of the tokens of some paths, behind their prompts."""

    normaliser = "pool_z"
    needs_text = True

    def __init__(self, template: Template, kind: str = MEAN, *, too_long: str = "refuse") -> None:
        super().__init__(too_long=too_long)
        self.template = template
        self.name = self._kind = kind

    def identity(self) -> dict[str, Any]:
        return {
            **identity_of(self._kind), "from": "text scored again", **self.describe_model(),
            "prompt": self.template.describe(), "too_long": self.too_long,
        }  # fmt: skip

    @abstractmethod
    def describe_model(self) -> dict[str, Any]:
        """The model, and the way it is asked."""

    @abstractmethod
    async def logprobs(self, items: Sequence[Item]) -> Sequence[Sequence[float]]: ...

    async def ask(self, items: Sequence[Item]) -> Sequence[Value]:
        found = await self.logprobs(items)
        for item, logprobs in zip(items, found, strict=True):
            if not logprobs:
                raise ScoringError(f"no token of the path {item.text[:20]!r} got a log-probability")
        return [Value(statistic(self._kind, logprobs)) for logprobs in found]


class EmbeddedRescored(Rescored):
    """A model in this process, made to write the path by a grammar that allows its tokens and nothing else.

    The tokens are those that the text is read as; a path sampled in other tokens has a slightly other score.
    """

    def __init__(self, model: Embedded, template: Template, kind: str = MEAN, *, too_long: str = "refuse") -> None:
        super().__init__(template, kind, too_long=too_long)
        self.model = model
        self._thread = ThreadPoolExecutor(max_workers=1)  # sums in a batch are rounded by what else is in it

    def describe_model(self) -> dict[str, Any]:
        return {**self.model.describe(), "route": "forced decoding"}

    async def logprobs(self, items: Sequence[Item]) -> Sequence[Sequence[float]]:
        run = asyncio.get_running_loop().run_in_executor
        return [await run(self._thread, self._forced, self.template.render(i.problem), i.text) for i in items]

    def _forced(self, prompt: Prompt, text: str) -> Sequence[float]:
        tokens = self.model.tokens(text)
        grammar = "root ::= " + " ".join(f"<[{token}]>" for token in tokens)
        body: dict[str, Any] = {"grammar": grammar, "temperature": 0, "logprobs": 1, "max_tokens": len(tokens) + 1}
        if prompt.text is None:
            body |= {"messages": [dict(each) for each in prompt.messages], "logprobs": True, "top_logprobs": 1}
        else:
            body["prompt"] = prompt.text
        try:
            answer = self.model.answer("chat" if prompt.text is None else "text", body)
            (found,) = read_choices(answer, [Wanted(0, 0)], 0.0)
        except (BackendError, ValueError) as error:
            if is_too_long(str(error)):
                raise TooLong(str(error)) from None
            raise BackendError(str(error)) from None
        logprobs = found.logprobs or ()
        if len(logprobs) < len(tokens):
            raise TooLong(f"the embedded model wrote {len(logprobs)} of a path's {len(tokens)} tokens")
        return logprobs[: len(tokens)]
