"""Claim: a reward model in this process scores batches of paths of similar length faster than one path at a time.

A Llama-style sequence-classification model of random weights, made here (6 layers, width 256), on the CPU; 256 paths of
20 to 120 words, one thread. The same code and the same model on both sides, and the same rewards. Runs in an
environment of its own, with torch.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import numpy as np
from claims import at_least, at_most, print_report
from stopwatch import alternate

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".bench-peers" / "hf"
PATHS = 256


def elsewhere() -> int:
    """This script again, where torch is."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        print(f"installing torch and transformers into {ENVIRONMENT.name} …", file=sys.stderr)
        venv.create(ENVIRONMENT, with_pip=True)
        pinned = ["-c", ROOT / "constraints.txt", "--editable", f"{ROOT}[hf]"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *pinned], check=True)
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
    from quorate.records import Problem
    from quorate.scoring.asking import Item
    from quorate.scoring.families import ScorerSettings, make_scorer

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    paths = [" ".join(f"w{i}" for i in rng.integers(0, 2000, rng.integers(20, 120))) for _ in range(PATHS)]
    items = [Item(Problem("q", "What is it?"), text) for text in paths]
    with tempfile.TemporaryDirectory() as folder:
        made(Path(folder))
        scorers = {
            size: make_scorer("reward", ScorerSettings(model=folder, device="cpu", batch=size)) for size in (1, 16)
        }

        def rewards(size: int) -> list[float]:
            found = [0.0] * len(items)
            for portion in scorers[size].portions(items):  # type: ignore[attr-defined]
                values = scorers[size]._values([items[position] for position in portion])  # type: ignore[attr-defined]
                for position, value in zip(portion, values, strict=True):
                    found[position] = value.value
            return found

        seconds = alternate({"one by one": lambda: rewards(1), "by length": lambda: rewards(16)}, rounds=5)
        apart = float(np.abs(np.array(rewards(1)) - np.array(rewards(16))).max())
    faster = seconds["one by one"].median / seconds["by length"].median
    print_report(
        "reward models in this process",
        [
            at_least(2, "transformers reward scoring, batches by length over one by one, CPU seconds", faster),
            at_most(1e-3, "… largest difference between their rewards", apart),
        ],
        packages=["torch", "transformers"], paths=len(items), threads=torch.get_num_threads(), cpu_seconds=seconds,
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
