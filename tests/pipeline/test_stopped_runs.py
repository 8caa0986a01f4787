"""Runs, questions and policies under a stopping rule: drawn in waves by index, whole where it ends, resumed."""

from __future__ import annotations

import contextlib
import random
import re

import pytest

import demur as dm
from demur import stopping
from demur.backends.protocol import Completion
from demur.backends.scripted import Scripted
from demur.errors import BackendError, InvalidValue, PipelineMismatch, StoreError
from demur.pipeline.pipeline import Pipeline
from demur.pipeline.sources import kept_pools
from demur.records import Problem

PATHS = 12
PROBLEMS = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}) for k in range(60)]
NEW = [f"What is {k} + 1?" for k in range(100, 130)]
RULE = stopping.beta(0.95, wave=4)


def script(prompt, want):
    """By question and seed alone: right more often for some questions, 3 and 6/2 being one answer."""
    k = int(re.search(r"What is (\d+)", prompt.messages[-1]["content"]).group(1))
    rng = random.Random(f"{k}:{want.seed}")
    said = k + 1 if rng.random() < (0.97, 0.7, 0.4)[k % 3] else 500 + rng.randrange(3)
    spelled = f"\\frac{{{2 * said}}}{{2}}" if rng.random() < 0.3 else said
    told = "I do not know." if rng.random() < 0.05 else f"It is \\boxed{{{spelled}}}."
    return Completion(want.path, told, "stop", (-0.1 - rng.random(),), want.seed)


def pipeline_of(stop=RULE, score=None, backend=None, **how):
    return Pipeline(backend or Scripted(script), n_paths=PATHS, score=score, stop=stop, **how)


def pools_of(place):
    with dm.Store(place) as store:
        return {pool.problem.id: pool for pool in store.run().pools(with_texts=True)}


def said(pool):
    return [path.text for path in pool.paths]


def test_a_run_holds_what_replay_leaves_of_all_paths(tmp_path):
    whole = pipeline_of(None).run(PROBLEMS, tmp_path / "whole.db")
    stopped = pipeline_of().run(PROBLEMS, tmp_path / "stopped.db")
    every, drawn = pools_of(tmp_path / "whole.db"), pools_of(tmp_path / "stopped.db")
    replayed = dm.read_pools(tmp_path / "whole.db").stopped_by(RULE)
    sizes = {pool.problem.id: len(pool.paths) for pool in replayed.pools}
    assert set(sizes.values()) == {4, 8, 12}
    assert {name: len(pool.paths) for name, pool in drawn.items()} == sizes
    assert all(said(pool) == said(every[name])[: len(pool.paths)] for name, pool in drawn.items())
    assert stopped.progress.saved == stopped.progress.wanted == sum(sizes.values()) < whole.progress.saved


def test_sampling_again_asks_for_nothing_and_what_is_cut_off_goes_on(tmp_path):
    pipeline_of().run(PROBLEMS, tmp_path / "run.db")
    before = pools_of(tmp_path / "run.db")
    silent = Scripted(script)
    again = pipeline_of(backend=silent).run(PROBLEMS, tmp_path / "run.db")
    assert (again.progress.wanted, silent.asked) == (0, [])
    with dm.Store(tmp_path / "run.db") as store, store.run().engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM demur_paths WHERE number % 3 = 1 AND path >= 2")
        connection.exec_driver_sql("DELETE FROM demur_texts WHERE number % 3 = 1 AND path >= 2")
    assert len(pools_of(tmp_path / "run.db")) == 40
    with pytest.raises(StoreError, match="20 of 60 problems of the run 'run' lack paths"):
        dm.read_pools(tmp_path / "run.db")
    pipeline_of().run(PROBLEMS, tmp_path / "run.db")
    assert {name: said(pool) for name, pool in pools_of(tmp_path / "run.db").items()} == {
        name: said(pool) for name, pool in before.items()
    }


def test_a_model_that_fails_now_and_then_ends_no_pool_elsewhere(tmp_path):
    """What a wave lacks is drawn by the next run, and nothing is looked at until it is there."""
    calls = []

    def flaky(prompt, want):
        calls.append(want)
        if len(calls) % 7 == 3:
            raise BackendError("away")
        return script(prompt, want)

    for _ in range(60):
        with contextlib.suppress(BackendError):  # where all that is left fails
            if not pipeline_of(backend=Scripted(flaky)).run(PROBLEMS, tmp_path / "flaky.db").progress.failed:
                break
    pipeline_of().run(PROBLEMS, tmp_path / "well.db")
    flaked, well = pools_of(tmp_path / "flaky.db"), pools_of(tmp_path / "well.db")
    assert {name: said(pool) for name, pool in flaked.items()} == {name: said(pool) for name, pool in well.items()}


@pytest.mark.parametrize(
    "other", [None, stopping.beta(0.9, wave=4), stopping.beta(0.95, wave=3), stopping.agreement(4)], ids=str
)
def test_another_rule_on_the_same_run_is_refused(tmp_path, other):
    pipeline_of().run(PROBLEMS[:3], tmp_path / "run.db")
    with pytest.raises(StoreError, match=r"made another way: sampling\.stopping"):
        pipeline_of(other).run(PROBLEMS[:3], tmp_path / "run.db")


def test_fixed_is_no_rule(tmp_path):
    pipeline_of(stopping.fixed()).run(PROBLEMS[:3], tmp_path / "run.db")
    pipeline_of(None).run(PROBLEMS[:3], tmp_path / "run.db")


def test_a_pipeline_says_once_how_many_paths_there_are_at_most():
    with pytest.raises(InvalidValue, match="a pool has 12 paths at most"):
        pipeline_of(RULE.at_most(8))
    with pytest.raises(InvalidValue, match="a stopping rule is"):
        pipeline_of("beta:0.95")


@pytest.mark.parametrize("score", [None, "perplexity", "self-consistency"])
def test_a_policy_of_a_stopped_run_asks_by_its_rule_and_decides_as_its_run_would(tmp_path, score):
    """What is asked live is what the run of the same questions holds, decision for decision."""
    pipeline = pipeline_of(score=score)
    policy = pipeline.run(PROBLEMS, tmp_path / "run.db").calibrate(alpha=0.2)
    assert policy.stopping == RULE.at_most(PATHS)
    assert (policy.n_paths, set(policy.sizes)) == (PATHS, {4, 8, 12})
    policy.save(tmp_path / "policy.json")
    policy = dm.Policy.load(tmp_path / "policy.json")
    made_again = dm.pipeline_of_policy(policy, Scripted(script))
    drawn = set()
    with made_again.answerer(policy) as answerer:
        for question in NEW:
            asked = answerer.ask(question)
            pool = asked.pool
            drawn.add(len(pool.paths))
            assert (asked.n_drawn, asked.early, asked.whole) == (len(pool.paths), None, True)
            assert answerer.ask(question, waves=dm.Waves(1, 1)).pool == pool  # the policy's rule says how it is asked
            keys = dm.FieldChoice.of(policy.description).read([path.answer for path in pool.paths], pool.problem)[0]
            assert policy.stopping.size(keys) == len(keys)
        assert "stopping rule" in answerer.savings_note()
    assert drawn == {4, 8, 12}


def test_a_policy_refuses_a_pipeline_without_its_rule_and_one_with_a_rule_that_it_has_not(tmp_path):
    stopped, whole = pipeline_of(), pipeline_of(None)
    by_rule = stopped.run(PROBLEMS, tmp_path / "stopped.db").calibrate(alpha=0.2)
    by_all = whole.run(PROBLEMS, tmp_path / "whole.db").calibrate(alpha=0.2)
    for pipeline, policy in ((whole, by_rule), (stopped, by_all), (pipeline_of(stopping.agreement(4)), by_rule)):
        with pytest.raises(PipelineMismatch, match=r"sampling\.stopping"):
            pipeline.ask(NEW[0], policy)
    with pytest.raises(InvalidValue, match="stopping rule that it was calibrated with"):
        dm.Curtailment(by_rule)


def test_a_policy_of_replayed_pools_is_that_of_pools_drawn_by_the_rule(tmp_path):
    """Replay is free of charge: the same seeds, the same pools, the same policy to the last digit."""
    pipeline_of(None).run(PROBLEMS, tmp_path / "whole.db")
    pipeline_of().run(PROBLEMS, tmp_path / "stopped.db")
    replayed = dm.vote_pools(dm.read_pools(tmp_path / "whole.db").stopped_by(RULE))
    drawn = dm.vote_pools(dm.read_pools(tmp_path / "stopped.db"))
    first, second = (dm.calibrate(voted, alpha=[0.1, 0.2]).document() for voted in (replayed, drawn))
    assert first == second


def test_pools_drawn_by_a_rule_cannot_be_replayed_by_another(tmp_path):
    pipeline_of().run(PROBLEMS, tmp_path / "run.db")
    source = dm.read_pools(tmp_path / "run.db")
    assert source.stopped_by(RULE) is source
    with pytest.raises(InvalidValue, match="cannot tell what agreement"):
        source.stopped_by(stopping.agreement(4))


def test_a_stopped_run_compared_another_way_than_it_was_drawn_is_refused(tmp_path):
    pipeline_of().run(PROBLEMS, tmp_path / "run.db")
    with pytest.raises(InvalidValue, match=r"fewer paths than the rule|did not end where"):
        dm.vote_pools(dm.read_pools(tmp_path / "run.db"), dm.FieldChoice(relation="plain"))


def test_an_exported_run_keeps_its_rule(tmp_path):
    pipeline_of().run(PROBLEMS, tmp_path / "run.db")
    for name in ("pools.jsonl", "pools.parquet"):
        dm.write_pools(dm.read_pools(tmp_path / "run.db"), tmp_path / name)
        source = dm.read_pools(tmp_path / name)
        assert source.stopping == RULE.at_most(PATHS)
        assert dm.vote_pools(source).votes.stopping == RULE.at_most(PATHS)


def test_scores_of_whole_pools_are_not_replayed(tmp_path):
    pipeline_of(None, score="self-consistency").run(PROBLEMS, tmp_path / "run.db")
    source = dm.read_pools(tmp_path / "run.db", texts=True)
    with pytest.raises(InvalidValue, match="cannot be replayed with it"):
        source.stopped_by(RULE, dm.FieldChoice(score="self-consistency"))
    with pytest.raises(InvalidValue, match="cannot be replayed with it"):
        dm.vote_pools(source.stopped_by(RULE), dm.FieldChoice(score="self-consistency"))


@pytest.mark.parametrize("name", ["run.db", "run.jsonl", "run.parquet"])
def test_the_lowest_score_of_a_pool_that_blank_paths_have_is_not_replayed_where_it_comes_from_behind_the_end(
    tmp_path, name
):
    """The pool ends at four paths, of which the third says nothing: its score may be that of a later one."""

    def blank(prompt, want):
        if want.path == 2:
            return Completion(2, "", "stop", (), want.seed)
        return Completion(want.path, "It is \\boxed{1}.", "stop", (lowest if want.path == at else -0.2,), want.seed)

    fields = dm.FieldChoice(score="perplexity")
    rule = stopping.agreement(2, wave=2)
    for at, lowest in ((0, -0.9), (7, -0.9), (7, -0.1)):
        for file in (tmp_path / "run.db", tmp_path / name):
            file.unlink(missing_ok=True)
        pipeline_of(None, score="perplexity", backend=Scripted(blank)).run(PROBLEMS[:1], tmp_path / "run.db")
        if name != "run.db":
            with dm.Store(tmp_path / "run.db") as store:
                run = store.run()
                dm.write_pools(dm.PoolSource(kept_pools(run), run.description, run.known_scorers()), tmp_path / name)
        source = dm.read_pools(tmp_path / name)
        assert dm.vote_pools(source.stopped_by(rule)).votes.n_paths.tolist() == [2]
        with pytest.raises(InvalidValue, match="at which the replayed rule did not look"):
            dm.vote_pools(source.stopped_by(rule), fields)
        if (at, lowest) == (7, -0.9):
            with pytest.raises(InvalidValue, match=r"in 1 of 1 pools is that of a path behind the end, as in 'q0'"):
                source.stopped_by(stopping.beta("0.85", wave=4), fields)
        else:
            source.stopped_by(stopping.beta("0.85", wave=4), fields)


def test_the_summary_of_a_run_counts_the_pools_that_its_rule_ended(tmp_path):
    pipeline_of(score="perplexity").run(PROBLEMS, tmp_path / "run.db")
    with dm.Store(tmp_path / "run.db") as store:
        facts = store.run().summary()
        assert (facts["pools"], facts["problems"], facts["n_paths"]) == (60, 60, PATHS)
        assert facts["paths"] < 60 * PATHS
        assert store.run().lacking("perplexity") == {}
        assert sum(map(len, store.run().lacking("another").values())) == facts["paths"]


def test_a_run_in_postgresql_is_the_run_in_a_file(tmp_path, postgres_url):
    for store in (tmp_path / "run.db", postgres_url):
        pipeline_of(score="perplexity").run(PROBLEMS, store)
    in_file, in_server = (dm.vote_pools(dm.read_pools(place)) for place in (tmp_path / "run.db", postgres_url))
    assert dm.calibrate(in_file, alpha=0.2).document() == dm.calibrate(in_server, alpha=0.2).document()
