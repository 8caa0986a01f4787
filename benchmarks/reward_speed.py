"""Claim: a reward model in this process scores batches of paths of similar length faster than one path at a time.

A Llama-style sequence-classification model of random weights, made here (6 layers, width 256), on the CPU; 256 paths of
5 to 60 words, as small models write them. For longer ones, which keep a CPU busy one by one, the gain is printed too.
The same code and the same model on both sides, and the same rewards. Runs in an environment of its own, with torch.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from claims import at_least, at_most, print_report
from peers import ROOT, python_of
from stopwatch import alternate

PATHS = 256


def elsewhere() -> int:
    """This script again, where torch is."""
    python = python_of("hf", "--editable", f"{ROOT}[hf]", pinned=True)
    return subprocess.run([python, __file__]).returncode


def made(folder: Path) -> None:
    """A model, and a tokenizer with a chat template, saved as such models are."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForSequenceClassification, PreTrainedTokenizerFast

    vocabulary = {token: i for i, token in enumerate(["<s>", "</s>", "<unk>", *(f"w{i}" for i in range(2000))])}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    template = "{{ bos_token }} {% for m in messages %}{{ m['role'] }} {{ m['content'] }} {% endfor %}"
    PreTrainedTokenizerFast(
        tokenizer_object=words, bos_token="<s>", eos_token="</s>", unk_token="<unk>", chat_template=template
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=256, intermediate_size=768, num_hidden_layers=6, num_attention_heads=8,
        num_key_value_heads=4, max_position_embeddings=1024, num_labels=1, pad_token_id=None,
    )  # fmt: skip
    LlamaForSequenceClassification(config).save_pretrained(folder)


def main() -> int:
    try:
        import torch
    except ImportError:
        return elsewhere()
    from demur.records import Problem
    from demur.scoring import ScorerSettings, make_scorer
    from demur.scoring.model_scorer import Item

    rng = np.random.default_rng(0)

    def items(shortest: int, longest: int) -> list[Item]:
        lengths = rng.integers(shortest, longest, PATHS)
        return [Item(Problem("q", "What is it?"), " ".join(f"w{i}" for i in rng.integers(0, 2000, n))) for n in lengths]

    def rewards(scorer: Any, of: list[Item]) -> list[float]:
        found = [0.0] * len(of)
        for portion in scorer.portions(of):
            for position, value in zip(portion, scorer._rewards([of[at] for at in portion]), strict=True):
                found[position] = value
        return found

    with tempfile.TemporaryDirectory() as folder:
        made(Path(folder))
        one, many = (make_scorer("reward", ScorerSettings(model=folder, device="cpu", batch=size)) for size in (1, 16))
        seconds, apart = {}, 0.0
        for name, of in (("5 to 60 words", items(5, 60)), ("20 to 120 words", items(20, 120))):
            calls = {"one by one": partial(rewards, one, of), "by length": partial(rewards, many, of)}
            seconds[name] = alternate(calls, rounds=5, clock=time.perf_counter)
            apart = max(apart, float(np.abs(np.array(rewards(one, of)) - np.array(rewards(many, of))).max()))
    faster = {name: each["one by one"].median / each["by length"].median for name, each in seconds.items()}
    print_report(
        "reward models in this process",
        [
            at_least(2, "rewards by transformers, batches by length over one by one, wall", faster["5 to 60 words"]),
            at_most(1e-3, "… largest difference between their rewards", apart),
        ],
        packages=["torch", "transformers"], paths=PATHS, threads=torch.get_num_threads(), wall_seconds=seconds,
        times_faster=faster,
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
