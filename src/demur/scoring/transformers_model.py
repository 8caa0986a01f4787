"""A model of transformers and its tokenizer, loaded when first used: a name on the hub, or a folder.

Weights are read from safetensors only, no code that comes with a model is run, and a model some of whose weights are
missing is refused: transformers would make them up at random. Its chat template is rendered apart, within limits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from demur.backends.chat_template import ChatTemplate
from demur.errors import BackendError, MissingExtra, ScoringError

CAUSAL, CLASSIFIER = "causal", "classifier"
_PIECES, _PIECE = 64, 1 << 16


class TransformersModel:
    """Used by one thread at a time, however many scorers share it. `batch` is the most paths at once."""

    tokens = 16384
    """Most tokens at once, padding included."""

    def __init__(
        self, name: str, kind: str = CAUSAL, *, revision: str | None = None, device: str | None = None, batch: int = 16
    ) -> None:
        self.name, self.kind, self.revision, self.device, self.batch = name, kind, revision, device, batch
        self.thread = ThreadPoolExecutor(max_workers=1)
        self._loaded: tuple[Any, Any] | None = None
        self._weights: str | None = None
        self._template: ChatTemplate | None = None

    def describe(self) -> dict[str, Any]:
        """Its name (a folder's without the way there), the weights themselves, and the precision they are used in."""
        _, model = self.load()
        name = Path(self.name).name if Path(self.name).is_dir() else self.name
        precision = str(model.dtype).removeprefix("torch.")
        return {"backend": "transformers", "model": name, "weights": self._weights, "precision": precision}

    @property
    def tokenizer(self) -> Any:
        return self.load()[0]

    @property
    def model(self) -> Any:
        return self.load()[1]

    def load(self) -> tuple[Any, Any]:
        if self._loaded is None:
            try:
                import torch
                import transformers
            except ImportError:
                raise MissingExtra("a model in this process needs transformers and torch", "hf") from None
            device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
            dtype = "auto" if device.startswith("cuda") else torch.float32
            tokenizer, model = self._read(transformers, dtype)
            if self.kind == CLASSIFIER and (labels := model.config.num_labels) != 1:
                raise ScoringError(f"{self.name} gives {labels} numbers per text; a reward model gives one")
            self._weights = getattr(model.config, "_commit_hash", None) or _digest(Path(self.name))
            self._loaded = tokenizer, model.to(device).eval()
        return self._loaded

    def _read(self, transformers: Any, dtype: Any) -> tuple[Any, Any]:
        kinds = {CAUSAL: "AutoModelForCausalLM", CLASSIFIER: "AutoModelForSequenceClassification"}
        made, named = getattr(transformers, kinds[self.kind]), {"revision": self.revision, "trust_remote_code": False}
        how = {"use_safetensors": True, "dtype": dtype, "output_loading_info": True}
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(self.name, **named)
            model, info = made.from_pretrained(self.name, **named, **how)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise BackendError(f"{self.name} cannot be loaded: {' '.join(str(error).split())[:300]}") from None
        for wrong in ("missing_keys", "mismatched_keys"):
            if info.get(wrong):
                first = next(iter(info[wrong]))
                raise BackendError(f"{self.name} lacks weights that the model needs ({first}); it is not complete")
        return tokenizer, model

    @property
    def longest(self) -> int:
        limits = (getattr(self.model.config, "max_position_embeddings", None), self.tokenizer.model_max_length)
        return min((limit for limit in limits if isinstance(limit, int) and limit > 0), default=1 << 30)

    def chat_ids(self, chat: Sequence[dict[str, str]], *, to_be_answered: bool, **template: Any) -> list[int]:
        """The tokens of a templated chat; the template's beginning of text is the only one."""
        if not self.tokenizer.chat_template:
            raise BackendError(f"{self.name} has no chat template, so it is not known how to show it a chat")
        if self._template is None:
            self._template = ChatTemplate(self.tokenizer.get_chat_template(), self.name, extra="hf")
        context = {**self.tokenizer.special_tokens_map, "add_generation_prompt": to_be_answered, **template}
        return self.text_ids(self._template.render(chat, **context))

    def text_ids(self, text: str, *, start: bool = False) -> list[int]:
        """The tokens of a text; with the token that texts start with, if asked for."""
        return list(self.tokenizer(text, add_special_tokens=start)["input_ids"])

    def run(self, rows: Sequence[Sequence[int]], *, left: bool = False, **more: Any) -> Any:
        """The model's logits for some rows of tokens, padded on the right, or on the left.

        Classifiers look for the last token that is not padding, so padding is a token that no row holds.
        """
        import torch

        used = {token for row in rows for token in row}
        padding = self.tokenizer.pad_token_id
        if padding is None or padding in used:
            padding = next(token for token in range(len(used) + 1) if token not in used)
        if self.kind == CLASSIFIER:
            self.model.config.pad_token_id = padding
        width = max(map(len, rows))
        ids, mask = torch.full((len(rows), width), padding), torch.zeros((len(rows), width), dtype=torch.long)
        for at, row in enumerate(rows):
            span = slice(width - len(row), width) if left else slice(0, len(row))
            ids[at, span], mask[at, span] = torch.tensor(row), 1
        table = {"input_ids": ids, "attention_mask": mask}
        if left:
            table["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)
        table = {name: tensor.to(self.model.device) for name, tensor in table.items()}
        try:
            with torch.inference_mode():
                return self.model(**table, **more).logits
        except RuntimeError as error:
            hint = "; set a smaller batch" if "memory" in str(error) else ""
            raise BackendError(f"{self.name}: {' '.join(str(error).split())[:200]}{hint}") from None

    def batches(self, lengths: Sequence[int], cost: Callable[[int], int] | None = None) -> list[list[int]]:
        """Which rows go together, by their numbers of tokens: the longest first, what is too much shows at once."""
        order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
        batches = []
        while order:
            longest = lengths[order[0]]
            fits = max(1, self.tokens // max(longest, 1))
            count = max(1, min(self.batch, fits if cost is None else min(fits, cost(longest))))
            batches.append(order[:count])
            order = order[count:]
        return batches


def _digest(folder: Path) -> str | None:
    """Of a folder's weights: file names, sizes and pieces spread over each file, for whole ones take long to read."""
    digest = hashlib.sha256()
    files = sorted(folder.glob("*.safetensors"))
    for file in files:
        size = file.stat().st_size
        digest.update(f"{file.name}:{size};".encode())
        with file.open("rb") as stream:
            for piece in range(_PIECES):
                stream.seek(size * piece // _PIECES)
                digest.update(stream.read(_PIECE))
    return digest.hexdigest()[:16] if files else None
