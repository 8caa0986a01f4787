"""The small model as a judge and as a reader of stored text, in this process and as a real llama.cpp server."""

from __future__ import annotations

import math

import pytest

from demur.backends.embedded import Embedded
from demur.backends.protocol import Settings, Wanted
from demur.errors import LogprobsMissing, ScoringError
from demur.prompts.templates import CONVERSATION, FEW_SHOT_MATHEMATICS, MATHEMATICS, Prompt
from demur.records import Path, Pool, Problem
from demur.scoring import ScorerSettings, make_scorer
from demur.scoring.judge.embedded import EmbeddedJudge
from demur.scoring.perplexity.embedded import EmbeddedRescored
from demur.scoring.protocol import full_identity

PROBLEM = Problem("q", "What is 12 + 9?", gold=("21",), extra={"task": "math"})
POOL = Pool(PROBLEM, (Path(text="12 + 9 = 21"), Path(text="12 + 9 = 3, I think"), Path(text="")))


@pytest.fixture(scope="module")
def small():
    return Embedded(batch=4, context=1024, threads=1)


@pytest.fixture(scope="module")
def served(small):
    """The address of a real llama.cpp server of the same model, which renders its chat template itself."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(small.path)
    settings.n_ctx, settings.n_parallel, settings.verbosity, settings.warmup = 1024, 1, -1, False
    server = xllamacpp.Server(settings)
    return f"{server.listening_address}/v1", server


@pytest.mark.parametrize("template", [FEW_SHOT_MATHEMATICS, MATHEMATICS], ids=["text", "chat"])
def test_text_scored_again_has_the_log_probability_it_was_sampled_with(small, template):
    """Sampled one by one it is the same number; in a batch the runtime rounds a little differently."""
    settings, prompt = Settings(max_tokens=24, stop=template.stop), template.render(PROBLEM)
    wanted = [Wanted(path, 40 + path) for path in range(4)]
    alone = [small.complete(prompt, settings, [want])[0] for want in wanted]
    together = small.complete(prompt, settings, wanted)
    for sampled, apart in ((alone, 2e-3), (together, 0.05)):
        pool = Pool(PROBLEM, tuple(Path(text=each.text) for each in sampled))
        found = EmbeddedRescored(small, template).score(pool)
        assert found == pytest.approx([each.logprob_mean for each in sampled], abs=apart)


def test_odd_characters_are_scored_as_they_stand(small):
    text = 'He said: "a\\b" \t – 3 ≤ 5, naïve 🙂\nnew line'
    (value,) = EmbeddedRescored(small, FEW_SHOT_MATHEMATICS).score(Pool(PROBLEM, (Path(text=text),)))
    assert -20 < value < 0


def test_an_empty_path_has_the_lowest_score_of_its_pool(small):
    found = EmbeddedRescored(small, FEW_SHOT_MATHEMATICS).score(POOL)
    assert found[2] == min(found)


def test_the_judge_in_this_process_and_behind_http_agree(small, served, monkeypatch):
    """The portable route on a real llama.cpp server reads the same log p(Y), rare spellings of Y aside, or a bound."""
    inside = EmbeddedJudge(small).score(POOL)
    assert all(value < 0 for value in inside)
    monkeypatch.setenv("JUDGE_BASE_URL", served[0])
    monkeypatch.setenv("JUDGE_MODEL", "smollm2")
    outside = make_scorer("judge")
    values = outside.score(POOL)
    assert full_identity(outside)["route"] == "top 20"
    assert values == pytest.approx(inside, abs=0.15)


def test_llama_cpp_cannot_score_stored_text_and_the_error_names_what_can(served):
    base_url = served[0]
    scorer = make_scorer(
        "perplexity", ScorerSettings(model="smollm2", base_url=base_url), template=FEW_SHOT_MATHEMATICS
    )
    with pytest.raises(LogprobsMissing, match=r"does not tell the log-probabilities of stored text.*GGUF"):
        scorer.score(POOL)


def test_the_identity_names_the_weights_and_the_prompt(small):
    identity = full_identity(EmbeddedJudge(small))
    assert identity["weights"] == "b179c9523d0e6a0f"
    assert identity["prompt"] == "built-in@1"
    assert identity["normaliser"] == "none"


def test_a_path_that_does_not_fit_is_refused_or_cut(small):
    long = Pool(PROBLEM, (Path(text="12 + 9 = 21. " * 700),))
    with pytest.raises(ScoringError, match="set too_long = cut"):
        EmbeddedJudge(small, too_long="refuse").score(long)
    assert math.isfinite(EmbeddedRescored(small, FEW_SHOT_MATHEMATICS).score(POOL)[0])


TALK = [
    {"role": "user", "content": "My name is Ada."},
    {"role": "assistant", "content": "Hello Ada!"},
    {"role": "user", "content": "What is my name?"},
]


def test_a_conversation_is_read_as_a_llama_cpp_server_reads_its_messages(small, served):
    settings, prompt = Settings(temperature=0, max_tokens=12), Prompt("t", messages=tuple(TALK))
    (here,) = small.complete(prompt, settings, [Wanted(0, 1)])
    there = served[1].handle_chat_completions({"messages": TALK, "temperature": 0, "max_tokens": 12})
    assert here.text == there["choices"][0]["message"]["content"]


def test_what_was_said_before_counts_when_a_path_is_scored_again(small):
    talk = Problem("t", extra={"task": "qa", "messages": TALK})
    last = Problem("t", "What is my name?", extra={"task": "qa"})
    scorer = EmbeddedRescored(small, CONVERSATION)
    (told,), (untold,) = (scorer.score(Pool(each, (Path(text="Your name is Ada."),))) for each in (talk, last))
    assert told > untold + 0.5
