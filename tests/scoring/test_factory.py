"""Scorers by name and settings; verdicts; self-consistency by its definition; prompts that are pinned."""

from __future__ import annotations

import hashlib
import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import InvalidValue, LogprobsMissing, ScoringError
from demur.prompts import JudgePrompt, judge_prompt, judging
from demur.records import Path, Pool, Problem
from demur.scoring import ScorerSettings, make_scorer
from demur.scoring.factory import scorer_of_identity
from demur.scoring.judge.judge import LOWEST, read_verdict
from demur.scoring.protocol import full_identity
from demur.scoring.self_consistency import SelfConsistency, words
from demur.tasks import task_of

TEXT = st.text(alphabet="ab Cc\n", max_size=12)


@given(st.lists(TEXT, min_size=1, max_size=7))
def test_self_consistency_is_the_mean_jaccard_of_word_sets(texts):
    """The definition, read literally with Python sets; two paths without words share nothing."""
    sets = [set(words(text)) for text in texts]
    wanted = []
    for j, a in enumerate(sets):
        others = [len(a & b) / len(a | b) if a | b else 0.0 for k, b in enumerate(sets) if k != j]
        wanted.append(math.fsum(others) / max(len(others), 1))
    pool = Pool(Problem("q"), tuple(Path(text=text) for text in texts))
    assert SelfConsistency().score(pool) == pytest.approx(wanted, abs=1e-12)


def test_self_consistency_by_hand():
    pool = Pool(Problem("q"), (Path(text="a b c"), Path(text="A b"), Path(text="x")))
    assert SelfConsistency().score(pool) == pytest.approx([(2 / 3 + 0) / 2, (2 / 3 + 0) / 2, 0])


def test_paths_without_texts_cannot_be_compared():
    with pytest.raises(ScoringError, match="path 0 has no text"):
        SelfConsistency().score(Pool(Problem("q"), (Path("1"), Path("2"))))


def test_every_spelling_of_y_counts():
    found = read_verdict([("Y", math.log(0.5)), (" Y", math.log(0.25)), ("N", math.log(0.2)), ("Yes", math.log(0.05))])
    assert found.value == pytest.approx(math.log(0.75))
    assert not found.floor


@pytest.mark.parametrize(
    ("listed", "bound"),
    [
        ([("N", math.log(0.9)), ("no", math.log(0.04))], math.log(0.04)),  # no likelier than the least one listed
        ([("N", math.log(0.9999))], math.log(0.00011)),  # nor than all that is left, and what rounding may lose
        ([("N", 0.0)], math.log(0.00001)),
        ([("Y", -9999.0), ("N", -0.01)], LOWEST),
        ([("Y", -3.4e38), ("N", -0.01)], LOWEST),
    ],
)
def test_a_missing_y_is_a_floor_that_bounds_it_from_above(listed, bound):
    found = read_verdict(listed)
    assert found.floor
    assert found.value == pytest.approx(max(bound, LOWEST), rel=1e-6)


@given(st.lists(st.floats(0.001, 1), min_size=2, max_size=30), st.integers(1, 30))
def test_a_floor_is_never_below_the_truth(parts, listed):
    """Whatever the distribution: cut off before Y, the floor is at least log p(Y)."""
    total = sum(parts)
    tokens = sorted(((f"t{i}", math.log(part / total)) for i, part in enumerate(parts)), key=lambda each: -each[1])
    truth = tokens[-1][1]
    shown = tokens[:-1][:listed]
    assert read_verdict(shown).value >= truth - 1e-9


def test_no_log_probabilities_no_verdict():
    with pytest.raises(LogprobsMissing):
        read_verdict([])


def test_the_judges_prompts_are_those_of_their_version():
    """A change to a prompt changes scores: then change VERSION and this digest."""
    prompts = (judging.MATHEMATICS, judging.QUESTION_ANSWERING, judging.MULTIPLE_CHOICE)
    digest = hashlib.sha256(repr([astuple(prompt) for prompt in prompts]).encode()).hexdigest()[:12]
    assert (judging.VERSION, digest) == (1, "8c72840b00d4")


def test_each_task_has_its_own_judge_prompt():
    def prompt(**extra):
        problem = Problem("q", "?", extra=extra)
        return task_of(problem).judge(problem)

    assert prompt(task="math") is prompt(task="mathematics") is judging.MATHEMATICS
    assert prompt(task="qa") is prompt(task="mc") is prompt() is judging.QUESTION_ANSWERING
    assert prompt(task="mc", options=["red", "blue"]) is judging.MULTIPLE_CHOICE
    shown = judging.MULTIPLE_CHOICE.render(Problem("q", "?", extra={"options": ["red", "blue"]}), "x")
    assert "A. red\nB. blue" in shown[0]["content"]


def test_a_draft_cannot_smuggle_slots_into_the_prompt():
    prompt = JudgePrompt("Q: {question} D: {draft}")
    assert prompt.render(Problem("q", "{draft}"), "{question}")[0]["content"] == "Q: {draft} D: {question}"


@pytest.mark.parametrize("user", ["{question}", "{draft}", "{question} {draft} {passages}", "{question}{draft}{gold}"])
def test_a_prompt_without_its_slots_or_with_others_is_refused(user):
    with pytest.raises(InvalidValue, match="a judge's prompt"):
        JudgePrompt(user)


def test_a_prompt_of_ones_own_is_read_from_a_file_and_is_part_of_the_identity(tmp_path):
    (tmp_path / "judge.toml").write_text('user = "{question} / {draft}: Y or N?"\nsystem = "Be strict."\n')
    settings = ScorerSettings(model="m", base_url="http://localhost:1/v1", prompt=str(tmp_path / "judge.toml"))
    prompt = full_identity(make_scorer("judge", settings))["prompt"]
    assert prompt == {"user": "{question} / {draft}: Y or N?", "system": "Be strict."}
    assert judge_prompt(prompt).system == "Be strict."
    (tmp_path / "bad.toml").write_text("user = 3")
    for file, said in (("bad.toml", "user must be str"), ("none.toml", "cannot be read")):
        with pytest.raises(InvalidValue, match=said):
            judge_prompt(str(tmp_path / file))


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("luck", {}, "there is no score 'luck'; expected one of perplexity,"),
        ("judge", {}, "no model is named for the score 'judge'; set JUDGE_BASE_URL and JUDGE_MODEL"),
        ("judge", {"base_url": "http://localhost:1"}, "name the model of JUDGE_BASE_URL"),
        ("judge", {"base_url": "http://localhost:1", "model": "m", "route": "post"}, "unknown route 'post'"),
        ("reward", {"model": "x.gguf"}, "a reward model runs on a server"),
        ("perplexity", {"model": "x.gguf"}, "does not say which prompt"),
        ("judge", {"base_url": "ftp://x", "model": "m"}, "is no address of an endpoint"),
        ("nowhere.module:length", {}, "the score nowhere.module:length"),
        ("math:pi", {}, "is not a function"),
        ("self-consistency", {"model": "m"}, "the setting 'model' does nothing"),
        ("judge", {"model": "x.gguf", "route": "chat"}, "runs in this process, so judge.route does nothing"),
    ],
)
def test_what_cannot_be_made_says_what_is_wanted(name, settings, said, monkeypatch):
    for variable in ("JUDGE_BASE_URL", "JUDGE_MODEL", "REWARD_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(Exception, match=said.replace("(", r"\(")) as told:
        make_scorer(name, ScorerSettings(**settings))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({"modell": "x"}, "unknown key 'modell'"),
        ({"batch": "many"}, "judge.batch must be int"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"raw": "perhaps"}, "judge.raw must be bool"),
        ({"model": 3}, "judge.model must be str"),
        ({"patience": -1}, "patience must be at least 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(held, said):
    with pytest.raises(InvalidValue, match=said):
        ScorerSettings.of(held, "judge")


def test_settings_from_flags_are_text():
    assert ScorerSettings.of({"batch": "8", "raw": "true", "patience": "2.5"}, "x") == ScorerSettings(
        batch=8, raw=True, patience=2.5
    )


def test_each_scorer_has_addresses_and_keys_of_its_own(monkeypatch):
    monkeypatch.setenv("JUDGE_BASE_URL", "http://localhost:1/v1")
    monkeypatch.setenv("STRICT_JUDGE_BASE_URL", "http://localhost:2/v1")
    judge = make_scorer("judge", ScorerSettings(model="m"))
    strict = make_scorer("strict-judge", ScorerSettings(kind="judge", model="m"))
    assert (judge.endpoint.base_url, strict.endpoint.base_url) == ("http://localhost:1/v1", "http://localhost:2/v1")
    assert (judge.name, strict.name) == ("judge", "strict-judge")


@pytest.mark.parametrize("route", ["chat", "token_ids", "scoring"])
def test_a_scorer_is_made_again_from_its_identity(route, monkeypatch):
    monkeypatch.setenv("JUDGE_BASE_URL", "http://localhost:1/v1")
    made = make_scorer("judge", ScorerSettings(model="m", route=route, too_long="refuse"))
    again = scorer_of_identity("judge", full_identity(made), ScorerSettings(), template=None, say=print)
    assert full_identity(again) == full_identity(made)


def test_no_policy_makes_demur_run_a_function_or_ask_an_unknown_server(monkeypatch):
    monkeypatch.delenv("JUDGE_BASE_URL", raising=False)
    own = {"scorer": "own", "function": "os:system", "source": None, "normaliser": "none"}
    with pytest.raises(InvalidValue, match="name it yourself: score=os:system"):
        scorer_of_identity("system", own, ScorerSettings(), template=None, say=print)
    judge = {"scorer": "judge", "backend": "server", "model": "m", "route": "top 20", "prompt": "built-in@1"}
    with pytest.raises(InvalidValue, match="comes from a server; set JUDGE_BASE_URL"):
        scorer_of_identity("judge", judge, ScorerSettings(), template=None, say=print)
    with pytest.raises(InvalidValue, match="was imported"):
        scorer_of_identity("judge", {"scorer": "imported"}, ScorerSettings(), template=None, say=print)


def test_the_jaccard_of_a_large_pool_is_exact():
    rng = np.random.default_rng(0)
    texts = [" ".join(map(str, rng.integers(0, 400, 300))) for _ in range(16)]
    sets = [set(text.split()) for text in texts]
    wanted = [math.fsum(len(a & b) / len(a | b) for k, b in enumerate(sets) if k != j) / 15 for j, a in enumerate(sets)]
    found = SelfConsistency().score(Pool(Problem("q"), tuple(Path(text=text) for text in texts)))
    assert found == pytest.approx(wanted, abs=1e-12)
