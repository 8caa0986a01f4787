"""Questions asked in waves: as few paths as settle the decision, and the decision that all of them bring."""

from __future__ import annotations

import asyncio
import random
import re

import pytest

import demur as dm
from demur.backends import OpenAI
from demur.backends.protocol import Completion
from demur.backends.scripted import Scripted
from demur.engine.sample import wanted_paths
from demur.errors import BackendError, InvalidValue, ScoringError
from demur.pipeline.pipeline import Pipeline
from demur.records import Problem
from loopback import choice, reply, until
from patience import wait_until

PATHS = 8
PROBLEMS = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}) for k in range(60)]
NEW = [f"What is {k} + 1?" for k in range(100, 120)]


def path(question: str, seed: int) -> tuple[str, float]:
    """What a path says, by question and seed alone: right more often for some questions, now and then nothing."""
    k = int(re.search(r"What is (\d+)", question).group(1))
    rng = random.Random(f"{k}:{seed}")
    said = k + 1 if rng.random() < (0.95, 0.6, 0.3)[k % 3] else 500 + rng.randrange(3)
    spelled = f"{said}.0" if k % 4 == 0 and rng.random() < 0.3 else said
    told = "I do not know." if rng.random() < 0.08 else f"{'So i' * rng.randrange(2)}t is \\boxed{{{spelled}}}."
    return told, -0.05 - rng.random()


def script(prompt, want):
    text, logprob = path(prompt.messages[-1]["content"], want.seed)
    return Completion(want.path, text, "stop", (logprob, logprob / 2), want.seed)


def pipeline_of(score=None, **how):
    return Pipeline(Scripted(script), n_paths=PATHS, score=score, **how)


def calibrated(pipeline, folder):
    return pipeline.run(PROBLEMS, folder / "run.db").calibrate(alpha=[0.1, 0.25])


def closeness(pool):
    """A score of one's own, of each path by itself."""
    return [(len(path.text) % 7) / 7 for path in pool.paths]


closeness.path_by_path, closeness.within = True, (0.0, 1.0)


def length_beside_others(pool):
    return [-abs(len(path.text) - len(pool.paths[0].text)) for path in pool.paths]


@pytest.mark.parametrize("score", [None, closeness, "perplexity", "self-consistency"])
def test_waves_of_every_size_decide_what_all_paths_decide(score, tmp_path):
    pipeline = pipeline_of(score)
    policy = calibrated(pipeline, tmp_path)
    saved = 0
    with pipeline.answerer(policy) as answerer:
        for question in NEW:
            for alpha in (0.1, 0.25):
                whole = answerer.ask(question, alpha=alpha)
                seen = set()
                for size in range(1, PATHS + 1):
                    asked = answerer.ask(question, alpha=alpha, waves=dm.Waves(1 + size % 3, size))
                    assert asked.decision.answer == whole.decision.answer
                    assert asked.n_paths == PATHS
                    texts = [path.text for path in whole.pool.paths]
                    assert [path.text for path in asked.pool.paths] == texts[: len(asked.pool.paths)]
                    if asked.early is None:
                        assert asked.decision == whole.decision
                    seen.add(repr((asked.decision, asked.early)))
                    saved += PATHS - asked.n_drawn
                assert len(seen) == 1  # what is decided, and what is told of it, does not depend on the waves
    if score in (None, closeness):
        assert saved > 0.05 * PATHS * PATHS * 2 * len(NEW)
        assert answerer.savings_note(alpha=0.1) == ""
    else:
        assert answerer.savings_note(alpha=0.1) != ""


def test_a_path_has_the_same_seed_whatever_the_waves(tmp_path):
    pipeline = pipeline_of()
    policy = calibrated(pipeline, tmp_path)
    asked = {}
    for waves in (None, dm.Waves(1, 1), dm.Waves(3, 2), dm.Waves(5, 4)):
        pipeline.backend.asked.clear()
        pipeline.ask(NEW[1], policy, waves=waves)
        seeds = {want.path: want.seed for _, wanted in pipeline.backend.asked for want in wanted}
        asked[waves] = seeds
    whole = asked.pop(None)
    assert len(set(whole.values())) == PATHS
    for seeds in asked.values():
        assert seeds.items() <= whole.items()
        assert list(seeds) == list(range(len(seeds)))


def test_a_score_that_looks_at_the_whole_pool_is_asked_for_at_once(tmp_path):
    pipeline = pipeline_of(length_beside_others)
    policy = calibrated(pipeline, tmp_path)
    pipeline.backend.asked.clear()
    with pipeline.answerer(policy) as answerer:
        asked = answerer.ask(NEW[0], waves=dm.Waves(1, 1))
        assert "looks at the whole pool" in answerer.savings_note()
    assert [len(wanted) for _, wanted in pipeline.backend.asked] == [PATHS]
    assert not asked.certain_early


def test_all_paths_are_drawn_where_all_are_wanted(tmp_path):
    pipeline = pipeline_of()
    policy = calibrated(pipeline, tmp_path)
    with pipeline.answerer(policy) as answerer:
        fewer = answerer.ask(NEW[2], waves=dm.Waves(1, 1))
        asked = answerer.ask(NEW[2], waves=dm.Waves(1, 1), whole=True)
    assert fewer.certain_early
    assert (asked.n_drawn, asked.certain_early) == (PATHS, False)
    assert asked.decision == pipeline.ask(NEW[2], policy).decision


def test_a_blank_path_whose_score_depends_on_the_others_is_waited_for(tmp_path):
    def blanks(prompt, want):
        return Completion(want.path, "", "stop", None, want.seed) if want.path == 1 else script(prompt, want)

    pipeline = Pipeline(Scripted(blanks), n_paths=PATHS, score="perplexity")
    policy = calibrated(pipeline, tmp_path)
    for question in NEW[:6]:
        asked = pipeline.ask(question, policy, waves=dm.Waves(2, 2))
        assert asked.decision == pipeline.ask(question, policy).decision
        assert asked.n_drawn == PATHS


def test_a_scorer_that_fails_on_a_path_stops_the_question(tmp_path):
    pipeline = pipeline_of(closeness)
    policy = calibrated(pipeline, tmp_path)

    def failing(pool):
        raise RuntimeError("no score today")

    failing.path_by_path, failing.within = True, (0.0, 1.0)
    with pipeline.answerer(policy) as answerer:
        answerer.ask(NEW[0])
        answerer.__dict__["_scorers"] = {policy.score: dm.scoring.OwnScore(failing)}
        with pytest.raises(ScoringError, match="no score today"):
            answerer.ask(NEW[0], waves=dm.Waves(2, 2))


def test_a_wave_that_comes_short_is_no_vote(tmp_path):
    pipeline = pipeline_of()
    policy = calibrated(pipeline, tmp_path)

    class Short(Scripted):
        async def sample(self, prompt, settings, wanted):
            async for portion in super().sample(prompt, settings, wanted[:-1]):
                yield portion

    short = Pipeline(Short(script), n_paths=PATHS, score=None)
    with pytest.raises(BackendError, match="gave 1 of 8 paths; path 1 is missing"):
        short.ask(NEW[0], policy, waves=dm.Waves(2, 2))
    with pytest.raises(BackendError, match="gave 7 of 8 paths; path 7 is missing"):
        short.ask(NEW[0], policy)


@pytest.mark.parametrize("sizes", [(0, 1), (1, 0), (1, -2), (True, 1), (2.0, 1)])
def test_waves_are_whole_numbers_of_paths(sizes):
    with pytest.raises(InvalidValue, match="whole number of paths, at least one"):
        dm.Waves(*sizes)


class TestOnAServer:
    """Paths that are asked for one by one and arrive in any order."""

    @pytest.fixture
    def pipeline(self, server):
        def behave(number, body, request):
            said = [path(body["messages"][-1]["content"], body["seed"] + j) for j in range(body.get("n", 1))]
            return reply(*(choice(text, [logprob]) for text, logprob in said))

        server.behave = behave
        return Pipeline(OpenAI(server.url, "adder", largest_n=1), n_paths=PATHS, score=None)

    @pytest.fixture
    def policy(self, pipeline, tmp_path):
        return calibrated(pipeline, tmp_path)

    def test_the_order_of_arrival_changes_nothing(self, pipeline, policy, server):
        plain, rng = server.behave, random.Random(0)

        async def shuffled(number, body, request):
            await asyncio.sleep(rng.random() / 20)
            return plain(number, body, request)

        for question in NEW[:12]:
            server.behave = plain
            whole = pipeline.ask(question, policy)
            seen = {repr(pipeline.ask(question, policy, waves=dm.Waves(1, 1)).decision)}
            server.behave = lambda *request: shuffled(*request)
            for size in (2, 3, 8):
                asked = pipeline.ask(question, policy, waves=dm.Waves(size, size))
                assert asked.decision.answer == whole.decision.answer
                texts = [each.text for each in asked.pool.paths]
                assert texts == [each.text for each in whole.pool.paths][: len(texts)]
                seen.add(repr(asked.decision))
            assert len(seen) == 1

    def test_the_shortest_paths_do_not_decide_because_they_come_first(self, pipeline, policy, server):
        """Late paths come at once and say one thing, early ones take their time: all wait for their predecessors."""
        plain, first_seed = server.behave, wanted_paths(0, NEW[0], PATHS)[0].seed

        async def backwards(number, body, request):
            await asyncio.sleep(0.02 * (PATHS - (body["seed"] - first_seed)))
            return plain(number, body, request)

        in_order = pipeline.ask(NEW[0], policy, waves=dm.Waves(1, 1))
        server.behave = lambda *request: backwards(*request)
        asked = pipeline.ask(NEW[0], policy, waves=dm.Waves(PATHS, 1))
        assert asked.decision == in_order.decision
        assert asked.pool.paths[0].text == in_order.pool.paths[0].text

    def test_requests_that_are_still_out_are_cancelled(self, pipeline, policy, server):
        plain, gone = server.behave, []
        settled = pipeline.ask(NEW[2], policy, waves=dm.Waves(1, 1))
        assert settled.certain_early
        needed = settled.early.n_paths
        assert needed < PATHS

        async def late(body, request):
            await until(lambda: request.transport is None or request.transport.is_closing())
            gone.append(body["seed"])
            return reply(choice("late"))

        def behave(number, body, request):
            index = body["seed"] - first_seed
            return late(body, request) if index >= needed else plain(number, body, request)

        first_seed = wanted_paths(0, NEW[2], PATHS)[0].seed
        server.behave = behave
        with pipeline.answerer(policy) as answerer:
            asked = answerer.ask(NEW[2], waves=dm.Waves(PATHS, PATHS))
            assert asked.decision == settled.decision
            assert asked.n_drawn == needed
            wait_until(lambda: len(gone) == PATHS - needed)  # while the answerer is still open
        server.behave = plain
        assert pipeline.ask(NEW[2], policy, waves=dm.Waves(2, 2)).decision == settled.decision

    def test_a_question_that_is_cancelled_leaves_no_request_behind(self, pipeline, policy, server):
        gone = []

        async def forever(number, body, request):
            await until(lambda: request.transport is None or request.transport.is_closing())
            gone.append(number)
            return reply(choice("late"))

        server.behave = lambda *request: forever(*request)

        async def main():
            async with pipeline.answerer(policy) as answerer:
                asking = asyncio.create_task(answerer.ask_async(NEW[0], waves=dm.Waves(3, 1)))
                await until(lambda: server.busy == 3)
                asking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asking
                await until(lambda: len(gone) == 3, 300)
                assert len(gone) == 3

        asyncio.run(main())
