"""Scorers in this process, by transformers: reward models, judges and perplexity, on a GPU or on the CPU.

Paths of similar length go through the model together, so that little of a batch is padding.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from quorate.backends.protocol import Prompt
from quorate.errors import ScoringError
from quorate.prompts import Template
from quorate.records import Problem
from quorate.scoring.asking import Asking, Item, TooLong, Value
from quorate.scoring.hf_model import HfModel
from quorate.scoring.judge import LOWEST, PROBE, Judge, refuse_prose
from quorate.scoring.judge_prompts import JudgePrompt
from quorate.scoring.perplexity import MEAN, statistic
from quorate.scoring.protocol import FLOOR
from quorate.scoring.rescoring import Rescored
from quorate.scoring.reward import Reward

_LOGITS = 1 << 28
"""Most numbers that a batch's logits may hold: one gigabyte."""


class _InProcess(Asking):
    """What scorers by transformers share: blocks of pools, batches by length, one at a time."""

    pools_at_once = 64
    model: HfModel

    async def prepare(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self.model.thread, self._ready)

    async def ask(self, items: Sequence[Item]) -> Sequence[Value]:
        return await asyncio.get_running_loop().run_in_executor(self.model.thread, self._values, list(items))

    def portions(self, items: Sequence[Item]) -> Iterable[Sequence[int]]:
        lengths = [len(self._ids(item)) for item in items]
        return self.model.batches(lengths, self._most)

    def _ready(self) -> None:
        self.model.load()

    def _most(self, length: int) -> int:
        """Most rows of a length at once, beyond what holds for every model."""
        return self.model.batch

    def _values(self, items: Sequence[Item]) -> list[Value]:
        raise NotImplementedError

    def _ids(self, item: Item) -> list[int]:
        """The tokens that the model reads for an item."""
        raise NotImplementedError

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

    def _ready(self) -> None:
        self._ids(Item(Problem("probe", "What is 2 + 3?"), "5"))  # it must have a chat template

    def _ids(self, item: Item) -> list[int]:
        return self.model.chat_ids(self.chat(item.problem, item.text), to_be_answered=False)

    def _values(self, items: Sequence[Item]) -> list[Value]:
        return [Value(reward) for reward in self.model.run(self._rows(items))[:, 0].float().tolist()]


class HfJudge(_InProcess, Judge):
    """A causal model asked for one letter; p(Y) is exact."""

    def __init__(self, model: HfModel, prompt: JudgePrompt | None = None, *, too_long: str = "cut") -> None:
        super().__init__(prompt, too_long=too_long)
        self.model = model

    def describe_model(self) -> dict[str, Any]:
        return {**self.model.describe(), "route": "exact", "thinking": "off"}

    def _ready(self) -> None:
        """See that the model thinks of answering Y or N at all."""
        (told,) = self._logprobs([self._ids(PROBE)])
        letters = told[[*self._letter("Y"), *self._letter("N")]].exp().sum().item()
        refuse_prose(letters, self.model.tokenizer.decode([int(told.argmax())]))

    def _ids(self, item: Item) -> list[int]:
        return self.model.chat_ids(self.chat(item.problem, item.text), to_be_answered=True, enable_thinking=False)

    def _logprobs(self, rows: Sequence[Sequence[int]]) -> Any:
        """Of every token, as the next one behind each row."""
        return self.model.run(rows, left=True, logits_to_keep=1)[:, -1].float().log_softmax(-1)

    def _letter(self, letter: str) -> list[int]:
        """Every single token that spells a letter, blanks aside."""
        spellings = [self.model.text_ids(text) for text in (letter, f" {letter}", f"\n{letter}")]
        found = {ids[-1] for ids in spellings if ids and self.model.tokenizer.decode([ids[-1]]).strip() == letter}
        if not found:
            raise ScoringError(f"{self.model.name} has no token for {letter!r}")
        return sorted(found)

    def _values(self, items: Sequence[Item]) -> list[Value]:
        found = self._logprobs(self._rows(items))[:, self._letter("Y")].logsumexp(-1).tolist()
        return [Value(min(max(value, LOWEST), 0.0), FLOOR if value <= LOWEST else None) for value in found]


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

    def _values(self, items: Sequence[Item]) -> list[Value]:
        import torch

        rows = self._rows(items)
        lengths = [len(self.model.text_ids(item.text)) for item in items]
        keep = max(lengths) + 1  # the token before a path tells of its first
        logits = self.model.run(rows, left=True, logits_to_keep=keep)
        found = []
        for at, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            told = logits[at, -length - 1 : -1].float().log_softmax(-1)
            own = told.gather(1, torch.tensor(row[-length:], device=told.device)[:, None]).squeeze(1)
            found.append(Value(statistic(self._kind, own.clamp(min=LOWEST).tolist())))
        return found
