"""Scorers in this process, by transformers: reward models, judges and perplexity, on a GPU or on the CPU.

Paths of similar length go through the model together, so that little of a batch is padding.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from demur.backends.protocol import Prompt
from demur.errors import ScoringError
from demur.prompts import Template
from demur.records import Problem
from demur.scoring.asking import Asking, Item, TooLong, Value
from demur.scoring.hf_model import HfModel
from demur.scoring.judge import LOWEST, Judge, Verdict
from demur.scoring.judge_prompts import JudgePrompt
from demur.scoring.perplexity import MEAN
from demur.scoring.rescoring import Rescored
from demur.scoring.reward import Reward

_LOGITS = 1 << 28
"""Most numbers that a batch's logits may hold: one gigabyte."""


class _InProcess(Asking):
    """What scorers by transformers share: blocks of pools, batches by length, one at a time."""

    pools_at_once = 64
    model: HfModel

    async def prepare(self) -> None:
        await self._run(self.model.load)
        await super().prepare()

    async def _run(self, work: Callable[..., Any], *given: Any) -> Any:
        """In the model's own thread."""
        return await asyncio.get_running_loop().run_in_executor(self.model.thread, work, *given)

    def portions(self, items: Sequence[Item]) -> Iterable[Sequence[int]]:
        lengths = [len(self._ids(item)) for item in items]
        return self.model.batches(lengths, self._most)

    def _most(self, length: int) -> int:
        """Most rows of a length at once, beyond what holds for every model."""
        return self.model.batch

    @abstractmethod
    def _ids(self, item: Item) -> list[int]:
        """The tokens that the model reads for an item."""

    def _rows(self, items: Sequence[Item]) -> list[list[int]]:
        rows = [self._ids(item) for item in items]
        longest = max(map(len, rows))
        if longest > self.model.longest:
            raise TooLong(
                f"a path has {longest} tokens with its prompt, and {self.model.name} reads {self.model.longest}"
            )
        return rows


class HfReward(_InProcess, Reward):
    """A sequence-classification model with one output, such as the Skywork reward models."""

    def __init__(self, model: HfModel, template: Template | None = None, *, too_long: str = "cut") -> None:
        super().__init__(template, too_long=too_long)
        self.model = model

    def describe_model(self) -> dict[str, Any]:
        return {**self.model.describe(), "route": "sequence classification"}

    async def prepare(self) -> None:
        await super().prepare()
        await self._run(self._ids, Item(Problem("probe", "What is 2 + 3?"), "5"))  # it must have a chat template

    async def ask(self, items: Sequence[Item]) -> Sequence[Value]:
        return [Value(reward) for reward in await self._run(self._rewards, items)]

    def _ids(self, item: Item) -> list[int]:
        return self.model.chat_ids(self.chat(item.problem, item.text), to_be_answered=False)

    def _rewards(self, items: Sequence[Item]) -> list[float]:
        return self.model.run(self._rows(items))[:, 0].float().tolist()  # type: ignore[no-any-return]


class HfJudge(_InProcess, Judge):
    """A causal model asked for one letter; p(Y) is exact."""

    def __init__(self, model: HfModel, prompt: JudgePrompt | None = None, *, too_long: str = "cut") -> None:
        super().__init__(prompt, too_long=too_long)
        self.model = model

    def describe_model(self) -> dict[str, Any]:
        return {**self.model.describe(), "route": "exact", "thinking": "off"}

    async def verdicts(self, items: Sequence[Item]) -> Sequence[Verdict]:
        return await self._run(self._verdicts, items)  # type: ignore[no-any-return]

    def _ids(self, item: Item) -> list[int]:
        return self.model.chat_ids(self.chat(item.problem, item.text), to_be_answered=True, enable_thinking=False)

    def _letter(self, letter: str) -> list[int]:
        """Every single token that spells a letter, blanks aside."""
        spellings = [self.model.text_ids(text) for text in (letter, f" {letter}", f"\n{letter}")]
        found = {ids[-1] for ids in spellings if ids and self.model.tokenizer.decode([ids[-1]]).strip() == letter}
        if not found:
            raise ScoringError(f"{self.model.name} has no token for {letter!r}")
        return sorted(found)

    def _verdicts(self, items: Sequence[Item]) -> list[Verdict]:
        told = self.model.run(self._rows(items), left=True, logits_to_keep=1)[:, -1].float().log_softmax(-1)
        yes, letters = self._letter("Y"), [*self._letter("Y"), *self._letter("N")]
        return [
            Verdict(
                value=min(max(row[yes].logsumexp(-1).item(), LOWEST), 0.0),
                floor=row[yes].logsumexp(-1).item() <= LOWEST,
                letters=row[letters].exp().sum().item(),
                likeliest=self.model.tokenizer.decode([int(row.argmax())]),
            )
            for row in told
        ]


class HfRescored(_InProcess, Rescored):
    """A causal model that reads each path behind its prompt."""

    def __init__(self, model: HfModel, template: Template, kind: str = MEAN, *, too_long: str = "refuse") -> None:
        super().__init__(template, kind, too_long=too_long)
        self.model = model

    def describe_model(self) -> dict[str, Any]:
        return {**self.model.describe(), "route": "teacher forcing"}

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
        found = []
        for at, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            told = logits[at, -length - 1 : -1].float().log_softmax(-1)
            own = told.gather(1, torch.tensor(row[-length:], device=told.device)[:, None]).squeeze(1)
            found.append(own.clamp(min=LOWEST).tolist())
        return found
