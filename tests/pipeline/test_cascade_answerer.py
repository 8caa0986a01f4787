"""A cascade in use on live models: the strong one is sampled only where the cheap one does not answer."""

from __future__ import annotations

import re

import pytest

import demur as dm
from demur.backends import OpenAI
from demur.errors import InvalidValue, PipelineMismatch
from demur.pipeline.pipeline import Pipeline
from demur.records import Problem
from loopback import choice, reply

PROBLEMS = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}) for k in range(40)]


def model(number, body, request):
    """The cheap one is right on even numbers and scattered on odd ones, the strong one is right; none knows 91."""
    k = int(re.search(r"What is (\d+)", body["messages"][-1]["content"]).group(1))
    seed, right = body.get("seed", 0), body["model"] == "strong" or k % 2 == 0
    if k == 91:
        return reply(*(choice("I cannot tell.", [-0.1]) for _ in range(body.get("n", 1))))
    said = [k + 1 if right else 500 + (seed + j) % 5 for j in range(body.get("n", 1))]
    return reply(*(choice(f"\\boxed{{{answer}}}", [-0.1]) for answer in said))


@pytest.fixture
def pipelines(server):
    server.behave = model
    return [Pipeline(OpenAI(server.url, name), 5, None) for name in ("cheap", "strong")]


@pytest.fixture
def cascade(pipelines, tmp_path):
    stages = []
    for pipeline, name in zip(pipelines, ("cheap", "strong"), strict=True):
        pipeline.run(PROBLEMS, tmp_path / f"{name}.db")
        source = dm.read_pools(str(tmp_path / f"{name}.db"))
        stages.append(dm.Stage(name, dm.vote_pools(source, recipe=source.recipe(tie_break="jitter:0"))))
    made = dm.calibrate_cascade(stages, alpha=0.1)
    made.save(tmp_path / "cascade.json")
    return dm.Cascade.load(tmp_path / "cascade.json")


def test_the_next_stage_is_asked_only_where_the_one_before_does_not_answer(cascade, pipelines, server):
    asked = len(server.requests)
    with dm.CascadeAnswerer(cascade, pipelines) as answerer:
        easy, hard, hopeless = (answerer.ask(f"What is {k} + 1?") for k in (50, 51, 91))
    assert (easy.decision.stage, easy.decision.answer, list(easy.pools)) == ("cheap", "51", ["cheap"])
    assert (hard.decision.stage, hard.decision.answer, list(hard.pools)) == ("strong", "52", ["cheap", "strong"])
    assert (hopeless.decision.stage, hopeless.decision.answer) == (None, None)
    assert (easy.decision.cost, hard.decision.cost) == (5.0, 10.0)
    models = [body["model"] for body in server.requests[asked:]]
    assert models.index("strong") > 0
    assert "For a person: no stage answers" in hopeless.decision.explanation


def test_pipelines_must_be_those_of_the_stages(cascade, pipelines):
    with pytest.raises(InvalidValue, match="one pipeline per stage, 2 of them: cheap, strong"):
        dm.CascadeAnswerer(cascade, pipelines[:1])
    with (
        dm.CascadeAnswerer(cascade, pipelines[::-1]) as answerer,
        pytest.raises(PipelineMismatch, match=r"sampling\.model is 'cheap'"),
    ):
        answerer.ask("What is 2 + 1?")
