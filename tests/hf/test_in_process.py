"""Scorers by transformers, through the code path that loads Skywork: each against the model called by hand."""

from __future__ import annotations

import math

import pytest
import torch
import transformers

from demur.errors import BackendError, ScoringError
from demur.prompts.templates import FEW_SHOT_MATHEMATICS, MATHEMATICS
from demur.records import Path, Pool, Problem
from demur.scoring import ScorerSettings, make_scorer
from demur.scoring.perplexity.recorded import statistic
from demur.scoring.protocol import full_identity
from demur.store import Unscored

TEXTS = ("2 + 3 = 5. The answer is 5.", "5", "The answer is 7 or 5 and on and on and on. " * 4, "", "Y <|end|>")
PROBLEM = Problem("q", "What is 2 + 3?", extra={"task": "math"})
POOL = Pool(PROBLEM, tuple(Path(text=text) for text in TEXTS))


def by_hand(folder: str, texts=TEXTS) -> list[float]:
    """One conversation at a time, as the model's card has it: no padding, the template's own beginning of text."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    found = []
    for text in texts:
        chat = [{"role": "user", "content": "What is 2 + 3?"}, {"role": "assistant", "content": text}]
        ids = tokenizer(tokenizer.apply_chat_template(chat, tokenize=False), add_special_tokens=False)["input_ids"]
        model.config.pad_token_id = None
        with torch.inference_mode():
            found.append(model(torch.tensor([ids])).logits[0, 0].item())
    return found


def test_rewards_in_batches_are_those_of_one_conversation_at_a_time(reward_folder):
    """Padding, and a padding token that the template itself ends in, change nothing."""
    scorer = make_scorer("reward", ScorerSettings(model=reward_folder, batch=4))
    assert scorer.score(POOL) == pytest.approx(by_hand(reward_folder), abs=1e-4)


def test_rewards_are_no_sigmoids(reward_folder):
    rewards = make_scorer("reward", ScorerSettings(model=reward_folder)).score(POOL)
    assert any(not 0 <= reward <= 1 for reward in rewards)
    assert max(rewards) - min(rewards) > 0.1


def test_the_beginning_of_text_is_not_doubled(reward_folder):
    scorer = make_scorer("reward", ScorerSettings(model=reward_folder))
    ids = scorer.model.chat_ids(scorer.chat(PROBLEM, "5"), to_be_answered=False)
    assert ids.count(0) == 1
    assert ids[0] == 0


def test_a_path_beyond_the_models_context_is_cut_from_the_left_and_flagged(reward_folder):
    long = "step by step, on and on. " * 200 + "The answer is 5."
    pool = Pool(PROBLEM, (Path(text=long), Path(text="5")))
    scorer = make_scorer("reward", ScorerSettings(model=reward_folder))
    found = _outcomes(scorer, pool)
    assert [each.flag for each in found] == ["cut", None]
    shorter = long
    while len(scorer._ids(_item(shorter))) > 512:
        shorter = shorter[-(3 * len(shorter) // 4) :]
    assert found[0].value == pytest.approx(by_hand(reward_folder, [shorter])[0], abs=1e-4)
    refusing = make_scorer("reward", ScorerSettings(model=reward_folder, too_long="refuse"))
    with pytest.raises(ScoringError, match="reads 512; set too_long"):
        refusing.score(pool)


def test_a_model_with_several_outputs_is_no_reward_model(tokenizer, tmp_path):
    from hf.conftest import _config, _saved

    model = transformers.LlamaForSequenceClassification(_config(tokenizer, num_labels=3, pad_token_id=1))
    folder = _saved(model, tokenizer, tmp_path)
    with pytest.raises(ScoringError, match="gives 3 numbers per text"):
        make_scorer("reward", ScorerSettings(model=folder)).score(POOL)


def test_weights_that_could_run_code_are_not_loaded(tokenizer, tmp_path):
    from hf.conftest import _config

    model = transformers.LlamaForSequenceClassification(_config(tokenizer, num_labels=1))
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    model.config.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(BackendError, match="cannot be loaded"):
        make_scorer("reward", ScorerSettings(model=str(tmp_path))).score(POOL)


def test_a_model_that_lacks_weights_is_refused(tokenizer, tmp_path):
    """transformers would make the missing head up at random, another one in each process."""
    from safetensors.torch import load_file, save_file

    from hf.conftest import _config, _saved

    folder = _saved(transformers.LlamaForSequenceClassification(_config(tokenizer, num_labels=1)), tokenizer, tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    weights.pop("score.weight")
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BackendError, match="lacks weights that the model needs"):
        make_scorer("reward", ScorerSettings(model=folder)).score(POOL)


def test_other_weights_in_the_same_folder_are_another_scorer(tokenizer, tmp_path):
    from hf.conftest import _config, _saved

    identities = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        folder = _saved(
            transformers.LlamaForSequenceClassification(_config(tokenizer, num_labels=1)), tokenizer, tmp_path
        )
        scorer = make_scorer("reward", ScorerSettings(model=folder, batch=seed + 1))
        scorer.score(POOL)
        identities.append(full_identity(scorer))
    assert identities[0]["weights"] != identities[1]["weights"]
    assert identities[0]["model"] == tmp_path.name


def test_one_path_that_is_too_long_leaves_the_rest_of_its_batch_alone(reward_folder):
    long = "step by step, on and on. " * 200
    pool = Pool(PROBLEM, (Path(text=long), Path(text="5"), Path(text="It is 5")))
    found = _outcomes(make_scorer("reward", ScorerSettings(model=reward_folder, too_long="refuse")), pool)
    assert sorted(each.path for each in found if hasattr(each, "path")) == [1, 2]


def test_a_folder_without_a_model_says_so(tmp_path):
    with pytest.raises(BackendError, match="cannot be loaded"):
        make_scorer("judge", ScorerSettings(model=str(tmp_path))).score(POOL)


def test_the_judge_reads_the_exact_probability_of_y(causal_folder):
    scorer = make_scorer("judge", ScorerSettings(model=causal_folder))
    tokenizer = transformers.AutoTokenizer.from_pretrained(causal_folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(causal_folder).eval()
    wanted = []
    for text in TEXTS:
        chat = scorer.chat(PROBLEM, text)
        templated = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(templated, add_special_tokens=False)["input_ids"]
        with torch.inference_mode():
            probabilities = model(torch.tensor([ids])).logits[0, -1].softmax(-1)
        letters = [token for token in range(len(tokenizer)) if tokenizer.decode([token]).strip() == "Y"]
        wanted.append(math.log(probabilities[letters].sum().item()))
    assert scorer.score(POOL) == pytest.approx(wanted, abs=1e-4)
    assert full_identity(scorer)["route"] == "exact"


@pytest.mark.parametrize("template", [FEW_SHOT_MATHEMATICS, MATHEMATICS])
@pytest.mark.parametrize("kind", ["perplexity", "perplexity-std", "perplexity-std-negated"])
def test_perplexity_is_that_of_the_path_behind_its_prompt(causal_folder, template, kind):
    scorer = make_scorer(kind, ScorerSettings(model=causal_folder), template=template)
    tokenizer = transformers.AutoTokenizer.from_pretrained(causal_folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(causal_folder).eval()
    prompt = template.render(PROBLEM)
    if prompt.text is None:
        text = tokenizer.apply_chat_template(list(prompt.messages), tokenize=False, add_generation_prompt=True)
        before = tokenizer(text, add_special_tokens=False)["input_ids"]
    else:
        before = tokenizer(prompt.text)["input_ids"]
    wanted = []
    for text in (text for text in TEXTS if text):
        ids = [*before, *tokenizer(text, add_special_tokens=False)["input_ids"]]
        with torch.inference_mode():
            told = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        wanted.append(statistic(kind, [told[at - 1, ids[at]].item() for at in range(len(before), len(ids))]))
    found = scorer.score(POOL)
    assert [value for value, text in zip(found, TEXTS, strict=True) if text] == pytest.approx(wanted, abs=1e-4)
    assert found[3] == pytest.approx(min(wanted), abs=1e-4)  # the path that says nothing


def test_a_run_is_scored_by_one_command(reward_folder, causal_folder, tmp_path, monkeypatch, capsys):
    """Reward and judge at once, from the command line, on a run in a store."""
    import json
    import sys

    from demur.cli import main

    monkeypatch.chdir(tmp_path)
    paths = [{"answer": "5", "text": text} for text in TEXTS[:3]]
    lines = [
        json.dumps({"id": f"q{i}", "question": "What is 2 + 3?", "gold": "5", "task": "math", "paths": paths})
        for i in range(3)
    ]
    (tmp_path / "pools.jsonl").write_text("\n".join(lines))
    commands = [
        ["import", "pools.jsonl", "-o", "run.db"],
        ["score", "run.db", "--score", "reward", "--score", "judge", "--set", f"reward.model={reward_folder}",
         "--set", f"judge.model={causal_folder}", "--json"],
    ]  # fmt: skip
    for command in commands:
        monkeypatch.setattr(sys, "argv", ["demur", *command])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [(each["name"], each["saved"]) for each in told["scores"]] == [("reward", 9), ("judge", 9)]


def _item(text):
    from demur.scoring.model_scorer import Item

    return Item(PROBLEM, text)


def _outcomes(scorer, pool):
    import asyncio

    async def main():
        found = []
        await scorer.prepare()
        await scorer.score_block([Unscored(0, pool, tuple(range(len(pool.paths))))], found.append)
        return sorted(found, key=lambda each: getattr(each, "path", -1))

    return asyncio.run(main())
