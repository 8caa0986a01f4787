"""Perplexity of stored text in this process, by transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from demur.answers.completions import LOWEST
from demur.prompts import Prompt
from demur.scoring.model_scorer import Item
from demur.scoring.perplexity.rescored import Rescored
from demur.scoring.transformers_scorer import TransformersScorer

_LOGITS = 1 << 28
"""Most numbers that a batch's logits may hold: one gigabyte."""


class TransformersRescored(TransformersScorer, Rescored):
    """A causal model that reads each path behind its prompt."""

    way: ClassVar = {"route": "teacher forcing"}

    def _most(self, length: int) -> int:
        return max(1, _LOGITS // (length * int(self.model.model.config.vocab_size)))

    def _prompt_ids(self, prompt: Prompt) -> list[int]:
        if prompt.text is not None:
            return self.model.text_ids(prompt.text, start=True)
        return self.model.chat_ids([dict(message) for message in prompt.messages], to_be_answered=True)

    def _ids(self, item: Item) -> list[int]:
        return [*self._prompt_ids(self.template.render(item.problem)), *self.model.text_ids(item.text)]

    async def logprobs(self, items: Sequence[Item]) -> Sequence[Sequence[float]]:
        return await self._run(self._logprobs, items)  # type: ignore[no-any-return]

    def _logprobs(self, items: Sequence[Item]) -> list[list[float]]:
        import torch

        rows = self._rows(items)
        lengths = [len(self.model.text_ids(item.text)) for item in items]
        keep = max(lengths) + 1  # the token before a path tells of its first
        logits = self.model.run(rows, left=True, logits_to_keep=keep)
        logprobs = []
        for at, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            told = logits[at, -length - 1 : -1].float().log_softmax(-1)
            own = told.gather(1, torch.tensor(row[-length:], device=told.device)[:, None]).squeeze(1)
            logprobs.append(own.clamp(min=LOWEST).tolist())
        return logprobs
