"""Scorers in this process, by transformers: reward models, judges and perplexity, on a GPU or on the CPU.

Weights are read from safetensors only and no code that comes with a model is run. Paths of similar length go through
the model together, so that little of a batch is padding.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from quorate.backends.protocol import Prompt
from quorate.errors import BackendError, MissingExtra, ScoringError
from quorate.prompts import Template
from quorate.scoring.asking import Asking, Item, Value
from quorate.scoring.judge import LOWEST, PROBE, Judge, says_neither
from quorate.scoring.judge_prompts import JudgePrompt
from quorate.scoring.perplexity import MEAN, statistic
from quorate.scoring.protocol import CUT, FLOOR
from quorate.scoring.rescoring import Rescored
from quorate.scoring.reward import Reward

CAUSAL, CLASSIFIER = "causal", "classifier"
_LIKELY = 2000
_SHORTEST = 64


@dataclass
class HfModel:
    """A model and its tokenizer, loaded when first used: a name on the hub, or a folder."""

    name: str
    kind: str = CAUSAL
    revision: str | None = None
    device: str | None = None
    batch: int = 16
    """Most paths at once."""
    tokens: int = 16384
    """Most tokens at once, padding included."""
    _loaded: tuple[Any, Any] | None = field(default=None, repr=False)

    def describe(self) -> dict[str, Any]:
        return {"backend": "transformers", "model": self.name, "revision": self.revision}

    def load(self) -> tuple[Any, Any]:
        """Tokenizer and model."""
        if self._loaded is None:
            try:
                import torch
                import transformers
            except ImportError:
                raise MissingExtra(
                    "a model in this process needs transformers and torch; install: pip install 'quorate[hf]'"
                ) from None
            made = transformers.AutoModelForCausalLM
            if self.kind == CLASSIFIER:
                made = transformers.AutoModelForSequenceClassification
            device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
            try:
                tokenizer = transformers.AutoTokenizer.from_pretrained(
                    self.name, revision=self.revision, trust_remote_code=False
                )
                model = made.from_pretrained(
                    self.name, revision=self.revision, trust_remote_code=False, use_safetensors=True,
                    dtype="auto" if device.startswith("cuda") else torch.float32,
                )  # fmt: skip
            except (OSError, ValueError, KeyError) as error:
                raise BackendError(f"{self.name} cannot be loaded: {' '.join(str(error).split())[:300]}") from None
            if not tokenizer.chat_template and self.kind == CLASSIFIER:
                raise ScoringError(
                    f"{self.name} has no chat template, so it is not known how to show it a conversation"
                )
            if self.kind == CLASSIFIER and model.config.num_labels != 1:
                raise ScoringError(
                    f"{self.name} gives {model.config.num_labels} numbers per text; a reward model gives one"
                )
            self._loaded = tokenizer, model.to(device).eval()
        return self._loaded

    @property
    def longest(self) -> int:
        """Most tokens it reads."""
        tokenizer, model = self.load()
        limits = (getattr(model.config, "max_position_embeddings", None), tokenizer.model_max_length)
        return min((limit for limit in limits if isinstance(limit, int) and limit > 0), default=1 << 30)

    def chat_ids(self, chat: Sequence[dict[str, str]], *, to_be_answered: bool) -> list[int]:
        """The tokens of a templated chat; the template's beginning of text is the only one."""
        tokenizer, _ = self.load()
        if not tokenizer.chat_template:
            raise ScoringError(f"{self.name} has no chat template, so it is not known how to show it a chat")
        text = tokenizer.apply_chat_template(
            list(chat), tokenize=False, add_generation_prompt=to_be_answered, enable_thinking=False
        )
        return self.text_ids(text)

    def text_ids(self, text: str, *, start: bool = False) -> list[int]:
        tokenizer, _ = self.load()
        return list(tokenizer(text, add_special_tokens=start)["input_ids"])

    def padded(self, rows: Sequence[Sequence[int]], *, left: bool = False) -> dict[str, Any]:
        """Token ids as one table, and which of its cells count.

        Classifiers look for the last token that is not padding, so padding is a token that none of the texts holds.
        """
        import torch

        tokenizer, model = self.load()
        used = {token for row in rows for token in row}
        padding = tokenizer.pad_token_id
        if padding is None or padding in used:
            padding = next(token for token in range(len(used) + 1) if token not in used)
        if self.kind == CLASSIFIER:
            model.config.pad_token_id = padding
        width = max(map(len, rows))
        spaces = [[0] * (width - len(row)) for row in rows]
        ones = [[1] * len(row) for row in rows]
        filled = [[padding] * len(space) for space in spaces]
        ids = [[*f, *row] if left else [*row, *f] for f, row in zip(filled, rows, strict=True)]
        mask = [[*s, *o] if left else [*o, *s] for s, o in zip(spaces, ones, strict=True)]
        table = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}
        if left:
            table["position_ids"] = (table["attention_mask"].cumsum(1) - 1).clamp(min=0)
        return {name: tensor.to(model.device) for name, tensor in table.items()}


class _InProcess(Asking):
    """What scorers by transformers share: blocks of pools, batches by length, one at a time."""

    pools_at_once = 64
    model: HfModel

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._thread = ThreadPoolExecutor(max_workers=1)

    async def prepare(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self.model.load)

    async def ask(self, items: Sequence[Item]) -> Sequence[Value]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._values, list(items))

    def portions(self, items: Sequence[Item]) -> Iterable[Sequence[int]]:
        """The longest first: what does not fit into memory shows at once."""
        order = sorted(range(len(items)), key=lambda position: -len(items[position].text))
        while order:
            fits = max(1, self.model.tokens * 3 // max(len(items[order[0]].text), 1))  # some three letters to a token
            count = min(self.model.batch, fits)
            portion, order = order[:count], order[count:]
            yield portion

    def _values(self, items: Sequence[Item]) -> list[Value]:
        raise NotImplementedError

    def _fitted(self, item: Item) -> tuple[list[int], bool]:
        """The tokens of an item, its path cut from the left where they are too many; and whether it was."""
        text, longest = item.text, self.model.longest
        while len(ids := self._ids(Item(item.problem, text))) > longest:
            if self.too_long == "refuse":
                raise ScoringError(
                    f"a path has {len(ids)} tokens with its prompt, and {self.model.name} reads {longest}; set "
                    "too_long = cut to score the end of such paths"
                )
            if len(text) < _SHORTEST:
                raise ScoringError(
                    f"the question of problem {item.problem.id!r} alone is too long for {self.model.name}"
                )
            text = text[-(3 * len(text) // 4) :]
        return ids, text != item.text

    def _ids(self, item: Item) -> list[int]:
        raise NotImplementedError


class HfReward(_InProcess, Reward):
    """A sequence-classification model with one output, such as the Skywork reward models."""

    def __init__(self, model: HfModel, template: Template | None = None, *, too_long: str = "cut") -> None:
        super().__init__(template, too_long=too_long)
        self.model = model

    def describe_model(self) -> dict[str, Any]:
        return {**self.model.describe(), "route": "sequence classification"}

    def _ids(self, item: Item) -> list[int]:
        return self.model.chat_ids(self.chat(item.problem, item.text), to_be_answered=False)

    def _values(self, items: Sequence[Item]) -> list[Value]:
        import torch

        _, model = self.model.load()
        fitted = [self._fitted(item) for item in items]
        with torch.inference_mode():
            rewards = model(**self.model.padded([ids for ids, _ in fitted])).logits[:, 0].float().tolist()
        return [Value(reward, CUT if cut else None) for reward, (_, cut) in zip(rewards, fitted, strict=True)]


class HfJudge(_InProcess, Judge):
    """A causal model asked for one letter; p(Y) is exact."""

    def __init__(self, model: HfModel, prompt: JudgePrompt | None = None, *, too_long: str = "cut") -> None:
        super().__init__(prompt, too_long=too_long)
        self.model = model

    def describe_model(self) -> dict[str, Any]:
        return {**self.model.describe(), "route": "exact", "thinking": "off"}

    def _ids(self, item: Item) -> list[int]:
        return self.model.chat_ids(self.chat(item.problem, item.text), to_be_answered=True)

    def _logprobs(self, rows: Sequence[Sequence[int]]) -> Any:
        """Of every token, as the next one behind each row."""
        import torch

        _, model = self.model.load()
        with torch.inference_mode():
            logits = model(**self.model.padded(rows, left=True), logits_to_keep=1).logits[:, -1]
            return logits.float().log_softmax(-1)

    def _letter(self, letter: str) -> list[int]:
        """Every single token that spells a letter, blanks aside."""
        tokenizer, _ = self.model.load()
        spellings = [self.model.text_ids(text) for text in (letter, f" {letter}", f"\n{letter}")]
        found = {ids[-1] for ids in spellings if ids and tokenizer.decode([ids[-1]]).strip() == letter}
        if not found:
            raise ScoringError(f"{self.model.name} has no token for {letter!r}")
        return sorted(found)

    def _values(self, items: Sequence[Item]) -> list[Value]:
        import torch

        fitted = [self._fitted(item) for item in items]
        told = self._logprobs([ids for ids, _ in fitted])
        found = torch.logsumexp(told[:, self._letter("Y")], -1).tolist()
        values = []
        for logprob, (_, cut) in zip(found, fitted, strict=True):
            flags = ([FLOOR] if logprob <= LOWEST else []) + ([CUT] if cut else [])
            values.append(Value(min(max(logprob, LOWEST), 0.0), "+".join(flags) or None))
        return values

    async def prepare(self) -> None:
        """See that the model thinks of answering Y or N at all."""
        await super().prepare()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._refuse_prose)

    def _refuse_prose(self) -> None:
        told = self._logprobs([self._ids(PROBE)])[0]
        likeliest = told.argsort(descending=True)[:_LIKELY]
        if not {*self._letter("Y"), *self._letter("N")} & set(likeliest.tolist()):
            raise says_neither(self.model.load()[0].decode(likeliest[:1]))


class HfRescored(_InProcess, Rescored):
    """A causal model that reads each path behind its prompt."""

    def __init__(self, model: HfModel, template: Template, kind: str = MEAN, *, too_long: str = "refuse") -> None:
        super().__init__(template, kind, too_long=too_long)
        self.model = model

    def describe_model(self) -> dict[str, Any]:
        return {**self.model.describe(), "route": "teacher forcing"}

    def _prompt_ids(self, prompt: Prompt) -> list[int]:
        if prompt.text is not None:
            return self.model.text_ids(prompt.text, start=True)
        return self.model.chat_ids([dict(message) for message in prompt.messages], to_be_answered=True)

    def _ids(self, item: Item) -> list[int]:
        return [*self._prompt_ids(self.template.render(item.problem)), *self.model.text_ids(item.text)]

    def _values(self, items: Sequence[Item]) -> list[Value]:
        return [Value(value, CUT if cut else None) for value, cut in self._statistics(items)]

    def _statistics(self, items: Sequence[Item]) -> list[tuple[float, bool]]:
        import torch

        _, model = self.model.load()
        fitted = [self._fitted(item) for item in items]
        starts = [len(self._prompt_ids(self.template.render(item.problem))) for item in items]
        table = self.model.padded([ids for ids, _ in fitted])
        found = []
        with torch.inference_mode():
            logits = model(**table).logits
            for row, ((ids, cut), start) in enumerate(zip(fitted, starts, strict=True)):
                told = logits[row, start - 1 : len(ids) - 1].float().log_softmax(-1)
                own = told.gather(1, table["input_ids"][row, start : len(ids), None]).squeeze(1)
                found.append((statistic(self._kind, own.clamp(min=LOWEST).tolist()), cut))
        return found
