"""Tiny models of the Llama family, made and saved here with their tokenizer and chat template."""

from __future__ import annotations

from pathlib import Path

import pytest

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message['role'] }}|>\n{{ message['content'] | trim }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
_WORDS = "What is the sum of 2 + 3 = 5 and 7 ? The answer is Y or N . A path that goes on and on, step by step\n"


@pytest.fixture(scope="session")
def tokenizer():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<|begin|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([_WORDS] * 4, trainer)
    made.post_processor = processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", 0)])
    return PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<|begin|>", eos_token="<|end|>", chat_template=TEMPLATE, model_max_length=512
    )


def _config(tokenizer, **more):
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, bos_token_id=0, eos_token_id=1, **more,
    )  # fmt: skip


def _saved(model, tokenizer, folder: Path) -> str:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def reward_folder(tokenizer, tmp_path_factory) -> str:
    """A sequence-classification model with one output; its padding token is the one its template ends in."""
    import torch
    from transformers import LlamaForSequenceClassification

    torch.manual_seed(0)
    model = LlamaForSequenceClassification(_config(tokenizer, num_labels=1, pad_token_id=1))
    torch.nn.init.normal_(model.score.weight, std=3.0)
    return _saved(model, tokenizer, tmp_path_factory.mktemp("reward"))


@pytest.fixture(scope="session")
def causal_folder(tokenizer, tmp_path_factory) -> str:
    import torch
    from transformers import LlamaForCausalLM

    torch.manual_seed(1)
    model = LlamaForCausalLM(_config(tokenizer))
    letters = [token for token in range(len(tokenizer)) if tokenizer.decode([token]).strip() in ("Y", "N")]
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    with torch.no_grad():  # it answers Y or N now and then, as a judge must
        model.lm_head.weight[letters] *= 4
    return _saved(model, tokenizer, tmp_path_factory.mktemp("causal"))
