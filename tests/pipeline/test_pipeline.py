"""The pipeline: one description that samples, calibrates and asks, and refuses another one's policy."""

from __future__ import annotations

import re

import pytest

import demur as dm
from demur.backends import Completion, Prompt, Replay, Scripted, Settings, Wanted
from demur.errors import BackendError, InvalidValue, LogprobsMissing, PipelineMismatch, StoreError
from demur.pipeline.from_policy import pipeline_of_policy
from demur.pipeline.pipeline import Pipeline
from demur.prompts.templates import MATHEMATICS, Template
from demur.records import Path, Pool, Problem
from demur.scoring import Perplexity

PROBLEMS = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}) for k in range(60)]


def say(prompt: Prompt, want: Wanted) -> Completion:
    """Right on easy problems, on hard ones scattered; surer when right."""
    k = int(re.search(r"What is (\d+)", prompt.messages[-1]["content"]).group(1))
    hard = k % 3 == 0
    answer = k + 1 if not hard else 500 + want.seed % (2 if k < 90 else 6)
    surprise = (0.1 if answer == k + 1 else 0.8) + want.seed % 10 / 20
    return Completion(want.path, f"\\boxed{{{answer}}}", "stop", (-surprise,), want.seed)


def pipeline(**changes):
    return Pipeline(Scripted(say), **{"n_paths": 6, **changes})


@pytest.fixture
def policy(tmp_path):
    return pipeline().run(PROBLEMS, tmp_path / "run.db").calibrate(alpha=[0.1, 0.2])


def test_a_run_is_sampled_scored_and_calibrated_in_three_lines(tmp_path, policy):
    assert policy.n == 60
    assert policy.pipeline["sampling"]["model"] == "scripted"
    assert policy.pipeline["sampling"]["prompt"]["user"] == MATHEMATICS.user
    assert policy.pipeline["answers"]["task"] == "math"
    assert policy.pipeline["score"]["name"] == "perplexity"
    assert policy.pipeline["vote"]["normaliser"].startswith("pool_z")
    assert policy.pipeline["score"]["scorer"]["scorer"] == "perplexity"


def test_asking_votes_as_the_policy_was_calibrated(policy):
    asked = pipeline().ask("What is 100 + 1?", policy)
    assert asked.decision.answer == "101"
    assert asked.decision.confidence == 1.0
    assert pipeline().ask("What is 99 + 1?", policy, alpha=0.1).decision.abstained


def test_the_policy_alone_says_how_to_ask(policy, tmp_path):
    policy.save(tmp_path / "policy.json")
    loaded = dm.Policy.load(tmp_path / "policy.json")
    again = pipeline_of_policy(loaded, Scripted(say))
    assert again.n_paths == 6
    assert again.template == MATHEMATICS
    assert not again.ask("What is 7 + 1?", loaded).decision.abstained


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"settings": Settings(temperature=1.2)}, "temperature"), ({"settings": Settings(max_tokens=5)}, "max_tokens"),
        ({"template": Template("Now then: {question}")}, "prompt"), ({"n_paths": 5}, "n_paths"),
        ({"backend": Scripted(say, model="other")}, "model"), ({"extract": r"boxed\{(.*?)\}"}, "extract"),
    ],
)  # fmt: skip
def test_a_pipeline_made_another_way_is_refused(policy, change, said):
    other = Pipeline(**{"backend": Scripted(say), "n_paths": 6, **change})
    with pytest.raises(PipelineMismatch, match=said):
        other.ask("What is 2 + 1?", policy)
    assert other.backend.asked == [], "refused before a path is paid for"


def test_a_policy_of_a_file_cannot_ask():
    votes = dm.vote([["a", "a"], ["b", "a"]] * 20)
    policy = dm.calibrate(votes, [True, False] * 20, alpha=0.2)
    with pytest.raises(InvalidValue, match="does not say how its paths were sampled"):
        pipeline_of_policy(policy, Scripted(say))


def test_a_run_cannot_go_on_with_another_pipeline(tmp_path, policy):
    with pytest.raises(StoreError, match="made another way"):
        pipeline(settings=Settings(temperature=0.1)).run(PROBLEMS, tmp_path / "run.db")


def test_answers_can_be_read_your_own_way(tmp_path):
    run = Pipeline(Scripted(lambda p, w: f"=> {w.path % 2}!"), n_paths=3, score=None, extract=r"=> (\d)").run(
        PROBLEMS, tmp_path / "run.db"
    )
    assert run.voted().table.answers[0] == ["n:0", "n:1", "n:0"]


def test_options_are_known_when_choices_are_read(tmp_path):
    problem = Problem("c", "Which?", ("B",), extra={"task": "mc", "options": ["red", "blue"]})
    run = Pipeline(Scripted(lambda p, w: "I say blue"), n_paths=2, score=None)
    fitted = run.fitted([problem])
    assert "A. red\nB. blue" in fitted.render(problem).messages[-1]["content"]
    assert fitted.read(problem, Completion(0, "It must be: blue.")).answer in ("B", None)
    assert fitted.read(problem, Completion(0, "The answer is (B).")).answer == "B"


def test_recorded_pools_can_be_replayed(tmp_path):
    recorded = [
        Pool(
            problem, tuple(Path(None, f"\\boxed{{{j}}}", extra={"token_logprobs": [-0.1 * j - 0.1]}) for j in range(3))
        )
        for problem in PROBLEMS
    ]
    run = Pipeline(Replay(recorded), n_paths=3).run(PROBLEMS, tmp_path / "run.db")
    assert run.voted().table.answers[5] == ["n:0", "n:1", "n:2"]
    with pytest.raises(BackendError, match="3 paths are recorded"):
        Pipeline(Replay(recorded), n_paths=4).run(PROBLEMS, tmp_path / "more.db")


def test_perplexity_is_the_mean_log_probability_and_refuses_what_was_not_recorded():
    pool = Pool(
        PROBLEMS[0],
        (
            Path("1", "a", extra={"logprob_mean": -0.5}),
            Path(None, "", extra={}),
            Path("2", "b", extra={"logprob_mean": -2.0}),
        ),
    )
    assert Perplexity().score(pool) == [-0.5, -2.0, -2.0]
    with pytest.raises(LogprobsMissing, match="path 1 of problem 'q0'"):
        Perplexity().score(Pool(PROBLEMS[0], (pool.paths[0], Path("3", "text"))))


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_paths": 0},
        {"n_paths": 2**20 + 1},
        {"settings": Settings(temperature=-1)},
        {"settings": Settings(top_p=0)},
        {"settings": Settings(max_tokens=0)},
    ],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(InvalidValue):
        pipeline(**wrong)
