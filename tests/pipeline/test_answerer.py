"""One policy in use: opened once, asked by synchronous and asynchronous code, in loops, kernels and services."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest

import demur as dm
from demur.backends import OpenAI
from demur.errors import BackendError, InvalidValue, PipelineMismatch
from demur.pipeline.pipeline import Pipeline
from demur.pipeline.sources import source_of_run
from demur.records import Problem
from demur.scoring.factory import make_scorer
from loopback import choice, reply

README = Path(__file__).resolve().parents[2] / "README.md"
PROBLEMS = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}) for k in range(40)]


def adder(number, body, request):
    """Right on even numbers; scattered on odd ones."""
    k = int(re.search(r"What is (\d+)", body["messages"][-1]["content"]).group(1))
    seed = body.get("seed", 0)
    said = [k + 1 if k % 2 == 0 else 500 + (seed + j) % 5 for j in range(body.get("n", 1))]
    return reply(*(choice(f"\\boxed{{{answer}}}", [-0.1 - (seed + j) % 7 / 10]) for j, answer in enumerate(said)))


@pytest.fixture
def connections(server, monkeypatch):
    """The peers that the server saw: one per TCP connection."""
    seen = set()

    def behave(number, body, request):
        seen.add(request.transport.get_extra_info("peername"))
        return adder(number, body, request)

    server.behave = behave
    return seen


@pytest.fixture
def pipeline(server, connections):
    return Pipeline(OpenAI(server.url, "adder"), n_paths=5)


@pytest.fixture
def policy(pipeline, tmp_path, connections):
    found = pipeline.run(PROBLEMS, tmp_path / "run.db").calibrate(alpha=[0.1, 0.3])
    connections.clear()
    return found


def test_a_hundred_questions_use_one_pool_of_connections(pipeline, policy, connections):
    with pipeline.answerer(policy) as answerer:
        asked = [answerer.ask(f"What is {2 * k} + 1?") for k in range(100)]
    assert [one.decision.answer for one in asked] == [str(2 * k + 1) for k in range(100)]
    assert len(connections) == 1


def test_questions_asked_at_once_share_it_too(pipeline, policy, connections, server):
    server.delay = 0.02

    async def main():
        async with pipeline.answerer(policy) as answerer:
            return await asyncio.gather(*(answerer.ask_async(f"What is {2 * k} + 1?") for k in range(100)))

    asked = asyncio.run(main())
    assert sum(not one.decision.abstained for one in asked) == 100
    assert len(connections) <= pipeline.backend.concurrency
    assert server.busiest <= pipeline.backend.concurrency


def test_synchronous_lines_work_inside_a_running_loop(pipeline, policy, tmp_path):
    async def service():
        run = pipeline.run(PROBLEMS, tmp_path / "again.db")
        return run.calibrate(alpha=0.1), pipeline.ask("What is 8 + 1?", policy)

    again, asked = asyncio.run(service())
    assert again.threshold == policy.threshold
    assert asked.decision.answer == "9"


def test_both_doors_decide_alike(pipeline, policy):
    async def awaited():
        return await pipeline.ask_async("What is 7 + 1?", policy, alpha=0.3)

    assert asyncio.run(awaited()).decision == pipeline.ask("What is 7 + 1?", policy, alpha=0.3).decision


def test_the_decision_is_that_of_the_pool_in_a_table(pipeline, policy):
    asked = pipeline.ask("What is 9 + 1?", policy)
    voted = policy.vote(dm.PoolSource([asked.pool]))
    assert policy.decide_votes(voted.votes)[0] == asked.decision


def test_a_backend_may_be_used_by_several_loops_in_turn(pipeline, policy, connections):
    with pipeline.answerer(policy) as answerer:
        assert not answerer.ask("What is 4 + 1?").decision.abstained
        assert not asyncio.run(pipeline.ask_async("What is 6 + 1?", policy)).decision.abstained
        assert not answerer.ask("What is 8 + 1?").decision.abstained
    assert len(connections) == 3  # each loop had its own, and nothing was left open
    assert pipeline.backend.endpoint._session is None


def test_what_cannot_be_asked_is_refused_before_a_path_is_paid_for(pipeline, policy, server):
    before = len(server.requests)
    other = Pipeline(OpenAI(server.url, "another"), n_paths=5)
    with other.answerer(policy) as answerer, pytest.raises(PipelineMismatch, match=r"sampling\.model is 'adder'"):
        answerer.ask("What is 2 + 1?")
    with pipeline.answerer(policy) as answerer:
        with pytest.raises(InvalidValue, match=r"not calibrated for alpha = 0\.2"):
            answerer.ask("What is 2 + 1?", alpha=0.2)
        with pytest.raises(InvalidValue, match="guarantee 'smoothed'"):
            answerer.ask("What is 2 + 1?", guarantee="smoothed")
    assert len(server.requests) == before


def test_a_server_that_dies_between_questions_is_told_and_the_next_may_work(server, policy, connections):
    pipeline = Pipeline(OpenAI(server.url, "adder", patience=0.2), n_paths=5)
    with pipeline.answerer(policy) as answerer:
        assert not answerer.ask("What is 2 + 1?").decision.abstained
        alive, server.behave = server.behave, lambda *_: __import__("aiohttp").web.Response(status=500)
        with pytest.raises(BackendError, match="500"):
            answerer.ask("What is 4 + 1?")
        server.behave = alive
        assert not answerer.ask("What is 4 + 1?").decision.abstained


def test_threads_may_share_an_answerer(pipeline, policy):
    answers = {}
    with pipeline.answerer(policy) as answerer:

        def ask(k):
            asked = answerer.ask(f"What is {k} + 1?")
            answers[k] = asked.decision.answer

        threads = [threading.Thread(target=ask, args=(2 * k,)) for k in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
    assert answers == {2 * k: str(2 * k + 1) for k in range(12)}


def readme_lines(server, folder):
    """The Python of the README, with a server and questions that are there."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert len(blocks) >= 3
    questions = folder / "gsm8k.jsonl"
    records = [{"id": p.id, "question": p.question, "gold": p.gold[0], "task": "math"} for p in PROBLEMS]
    questions.write_text("".join(json.dumps(record) + "\n" for record in records))
    code = "\n".join(blocks).replace("http://localhost:8000/v1", server.url).replace('"gsm8k"', repr(str(questions)))
    return code.replace("A box holds 12 pens. How many pens are in 7 boxes?", "What is 18 + 1?")


def test_the_readme_runs_in_a_real_jupyter_kernel(server, connections, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is installed with the extra dev")
    import nbformat

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    write_simulated(tmp_path / "pools.jsonl")
    cells = [nbformat.v4.new_code_cell(code) for code in readme_lines(server, tmp_path).split("\n\n")]
    cells.append(nbformat.v4.new_code_cell("print('asked', answerer.policy.n)"))
    notebook = nbformat.v4.new_notebook(cells=cells)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=where).execute()
    said = "".join(output.get("text", "") for cell in notebook.cells for output in cell.outputs)
    assert "Decision(answer=" in said
    assert "asked 40" in said


def test_the_readme_runs_inside_a_running_loop(server, connections, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_simulated(tmp_path / "pools.jsonl")
    code = compile(readme_lines(server, tmp_path), "README.md", "exec")

    async def service():
        exec(code, {})

    asyncio.run(service())
    assert "Decision(answer=" in capsys.readouterr().out


def write_simulated(file):
    from demur.pools.jsonl import write_pools

    write_pools(dm.simulate_pools(200, n_paths=4).pools(), file)


def test_every_question_asked_has_a_jitter_of_its_own_and_the_same_question_the_same(pipeline, tmp_path):
    run = pipeline.run(PROBLEMS, tmp_path / "run.db")
    with dm.Store(run.store) as store:
        source = source_of_run(store.run(run.name))
    voted = dm.vote_pools(source, dm.FieldChoice(score=run.score), source.recipe(run.score, tie_break="jitter:7"))
    policy = dm.calibrate(voted, alpha=0.3)
    with pipeline.answerer(policy) as answerer:
        asked = [answerer.ask(f"What is {2 * k} + 1?").decision.key[-1] for k in range(30)]
        again = answerer.ask("What is 0 +\n1?").decision.key[-1]
        chosen = answerer.ask(Problem("question", "What is 0 + 1?", extra={"task": "math", "options": ["1", "2"]}))
    assert len(set(asked)) == 30
    assert again == asked[0] == voted.votes.key[0, -1]
    assert chosen.decision.key[-1] != asked[0]


def test_a_key_of_two_scores_has_both_computed_for_a_question_just_asked(pipeline, server, tmp_path):
    def behave(number, body, request):
        """Right on even numbers; on odd ones of two or of three minds."""
        k = int(re.search(r"What is (\d+)", body["messages"][-1]["content"]).group(1))
        said = [k + 1 if k % 2 == 0 else 500 + j % (2 + k % 3) for j in range(body.get("n", 1))]
        return reply(*(choice(f"\\boxed{{{answer}}}", [-0.1 - j / 10]) for j, answer in enumerate(said)))

    server.behave = behave
    run = pipeline.run(PROBLEMS, tmp_path / "run.db")
    run.add_score(make_scorer("self-consistency"))
    with dm.Store(run.store) as store:
        source = source_of_run(store.run(run.name))
    recipe = source.recipe(run.score, tie_break="mean_score:self-consistency")
    dm.calibrate(dm.vote_pools(source, dm.FieldChoice(score=run.score), recipe), alpha=0.3).save(tmp_path / "p.json")
    policy = dm.Policy.load(tmp_path / "p.json")
    again = dm.pipeline_of_policy(policy, OpenAI(server.url, "adder"))
    assert [scorer.name for scorer in again.also] == ["self-consistency"]
    with again.answerer(policy) as answerer:
        asked = answerer.ask("What is 2 + 1?")
    assert set(asked.pool.paths[0].scores) == {run.score, "self-consistency"}
    assert policy.recipe.names == ("share", "mean_score:self-consistency", "jitter")
    agreement = [path.scores["self-consistency"] for path in asked.pool.paths]
    assert asked.decision.key[1] == pytest.approx(sum(agreement) / len(agreement))
    other = replace(again, also=())
    with (
        pytest.raises(PipelineMismatch, match=r"score\.others\.self-consistency is .* None here"),
        other.answerer(policy) as answerer,
    ):
        answerer.ask("What is 2 + 1?")


def test_a_learned_key_looks_at_the_texts_of_paths_just_drawn_and_refuses_where_it_weighs_sources(
    pipeline, server, tmp_path
):
    run = pipeline.run(PROBLEMS, tmp_path / "run.db")
    with dm.Store(run.store) as store:
        source = source_of_run(store.run(run.name), texts=True)
    recipe = source.recipe(tie_break="jitter:0")

    def calibrated(key):
        return dm.calibrate(dm.vote_pools(source, recipe=recipe.led_by(key)), alpha=0.3)

    policy = calibrated(dm.Learned(-1.0, {"confidence": 3.0, "length": 0.1}))
    with pipeline.answerer(policy) as answerer:
        asked = answerer.ask("What is 88 + 1?")
    assert asked.decision.answer == "89"
    assert (
        asked.decision.key[0] == policy.decide_votes(policy.vote(replace(source, pools=[asked.pool])).votes)[0].key[0]
    )
    several = replace(policy, recipe=recipe.led_by(dm.Learned(0.0, {"confidence": 1.0}, "src", {"a": 1.0, "b": 1.0})))
    before = len(server.requests)
    with (
        pipeline.answerer(several) as answerer,
        pytest.raises(PipelineMismatch, match=r"come from several sources \(src\)"),
    ):
        answerer.ask("What is 90 + 1?")
    assert len(server.requests) == before


def test_a_question_unlike_the_calibration_ones_is_asked_and_abstained_on(pipeline, tmp_path):
    voted = pipeline.run(PROBLEMS, tmp_path / "run.db").voted()
    policy = dm.calibrate(voted, alpha=0.3, outlier_level=0.06)
    with pipeline.answerer(policy) as answerer:
        usual = answerer.ask("What is 24 + 1?").decision
        odd = answerer.ask("What is 24 + 1, asks Zoë of the old cook who has sold the farm by the sea?").decision
    assert usual.answer == "25"
    assert usual.outlier_p_value > 0.06
    assert odd.abstained
    assert odd.confidence == usual.confidence
    assert "unlike the calibration questions" in odd.explanation
