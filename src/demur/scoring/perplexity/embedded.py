"""Perplexity of stored text in this process: llama.cpp, any GGUF file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from demur.backends.protocol import Wanted
from demur.errors import BackendError
from demur.prompts import Prompt
from demur.scoring.model_scorer import InProcessScorer, Item, TooLong, refusal
from demur.scoring.perplexity.rescored import Rescored


class EmbeddedRescored(InProcessScorer, Rescored):
    """A model in this process, made to write the path by a grammar that allows its tokens and nothing else.

    The tokens are those that the text is read as; a path sampled in other tokens has a slightly other score.
    """

    way: ClassVar = {"route": "forced decoding"}

    async def logprobs(self, items: Sequence[Item]) -> Sequence[Sequence[float]]:
        return [await self._run(self._forced, self.template.render(item.problem), item.text) for item in items]

    def _forced(self, prompt: Prompt, text: str) -> Sequence[float]:
        tokens = self.model.tokens(text)
        grammar = "root ::= " + " ".join(f"<[{token}]>" for token in tokens)
        body = {"grammar": grammar, "temperature": 0, "max_tokens": len(tokens) + 1}
        try:
            (written,) = self.model.go_on(prompt, body, [Wanted(0, 0)])
        except (BackendError, ValueError) as error:
            raise refusal(error) from None
        logprobs: Sequence[float] = written.logprobs or ()
        if len(logprobs) < len(tokens):
            raise TooLong(f"the embedded model wrote {len(logprobs)} of a path's {len(tokens)} tokens")
        return logprobs[: len(tokens)]
