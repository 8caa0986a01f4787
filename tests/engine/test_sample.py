"""Sampling: only what is missing, saved as it arrives, stopped cleanly, faults kept to their problem."""

from __future__ import annotations

import asyncio
import math
from fractions import Fraction

import pytest

from demur import datasets
from demur.backends import Completion, Scripted, Settings
from demur.backends.protocol import Wanted
from demur.descriptions import Description
from demur.engine.sample import sample, wanted_paths
from demur.errors import BackendError, EndpointRefused, StoreError
from demur.pipeline.pipeline import Pipeline
from demur.records import Problem
from demur.store import Store

PROBLEMS = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}) for k in range(12)]


def say(prompt, want):
    return Completion(want.path, f"So \\boxed{{{want.path % 3}}}", "stop", (-0.5, -1.5), want.seed, n_tokens=2)


@pytest.fixture
def run(tmp_path):
    with Store(tmp_path / "run.db", create=True) as store:
        run = store.open_run("run", Description(), 4)
        run.add_problems(PROBLEMS)
        yield run


def go(run, script=say, **options):
    backend = script if hasattr(script, "sample") else Scripted(script)
    fitted = Pipeline(backend, n_paths=4).fitted(PROBLEMS)
    work = sample(run, backend, fitted.render, Settings(), fitted.path, **options)
    return asyncio.run(work), backend


def test_every_pool_is_whole_and_a_second_run_asks_for_nothing(run):
    progress, _ = go(run)
    assert (progress.saved, progress.wanted, progress.failed) == (48, 48, {})
    assert all(len(pool.paths) == 4 for pool in run.pools())
    again, backend = go(run)
    assert again.saved == 0
    assert backend.asked == []


def test_only_the_missing_paths_are_asked_for_with_their_own_seeds(run):
    progress, _ = go(run)
    with run.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM demur_paths WHERE number = 3 AND path IN (1, 3)")
    progress, backend = go(run)
    assert progress.saved == 2
    first = wanted_paths(0, "q3", 4)[0].seed
    assert [wanted for _, wanted in backend.asked] == [(Wanted(1, first + 1), Wanted(3, first + 3))]


def test_what_a_path_says_about_itself_is_kept(run):
    go(run)
    path = run.pools(with_texts=True)[0].paths[2]
    assert (path.answer, path.text) == ("2", "So \\boxed{2}")
    assert path.extra["logprob_mean"] == -1.0
    assert path.extra["logprob_std"] == 0.5
    assert path.extra["extraction"] == "boxed"
    assert path.extra["seed"] == wanted_paths(0, "q0", 4)[2].seed


def test_truncated_paths_have_no_answer_and_are_counted(run):
    progress, _ = go(run, lambda prompt, want: Completion(want.path, "\\boxed{1}", "length", (-1.0,)))
    assert progress.truncated == progress.without_answer == 48


def test_seeds_differ_within_and_between_problems_and_by_run_seed():
    seeds = {wanted.seed for k in range(2000) for wanted in wanted_paths(0, f"q{k}", 16)}
    assert len(seeds) == 32_000
    assert max(seeds) < 2**31
    assert wanted_paths(0, "q0", 16) != wanted_paths(1, "q0", 16)


def test_one_problem_that_fails_does_not_stop_the_others(run):
    def script(prompt, want):
        if prompt.problem == "q5":
            raise BackendError("too long")
        return say(prompt, want)

    progress, _ = go(run, Scripted(script, concurrency=1))
    assert progress.failed == {"q5": "too long"}
    assert progress.saved == 44
    assert [each.problem.id for each in run.pending()] == ["q5"]


def test_if_nothing_works_it_stops_at_once(run):
    def broken(prompt, want):
        raise BackendError("no model here")

    with pytest.raises(BackendError, match="no model here"):
        go(run, broken)


class Hasty(Scripted):
    """Refuses one question at once, and takes its time for the others."""

    async def sample(self, prompt, settings, wanted):
        if prompt.problem == "q7":
            raise BackendError("too long")
        await asyncio.sleep(0.2)
        yield [say(prompt, want) for want in wanted]


def test_a_question_that_fails_first_does_not_spoil_the_rest(run):
    progress, _ = go(run, Hasty(say, concurrency=12))
    assert progress.failed == {"q7": "too long"}
    assert progress.saved == 44


def test_a_writer_that_fails_while_paths_pour_in_ends_the_run(tmp_path, monkeypatch):
    many = [Problem(f"p{k}", f"What is {k} + 1?", extra={"task": "math"}) for k in range(3000)]
    with Store(tmp_path / "many.db", create=True) as store:
        run = store.open_run("run", Description(), 1)
        run.add_problems(many)
        saves = []

        def full(batch, worker):
            saves.append(batch)
            if len(saves) > 1:
                raise StoreError("the disk is full")
            return 0

        monkeypatch.setattr(run, "save", full)
        backend = Scripted(say, concurrency=64)
        fitted = Pipeline(backend, n_paths=1).fitted(many)

        async def work():
            await asyncio.wait_for(sample(run, backend, fitted.render, Settings(), fitted.path), 300)

        with pytest.raises(StoreError, match="the disk is full"):
            asyncio.run(work())


def test_nothing_that_samples_or_scores_sees_gold(run):
    assert all(each.problem.gold == () for each in run.pending())
    go(run)
    assert all(
        pool.problem.gold == ()
        for each in run.unscored("perplexity", run.lacking("perplexity"))
        for pool in [each.pool]
    )
    assert run.pools()[0].problem.gold == ("1",)


def test_a_refusal_stops_the_run_and_keeps_what_arrived(run):
    def script(prompt, want):
        if prompt.problem == "q6":
            raise EndpointRefused("the key was withdrawn")
        return say(prompt, want)

    with pytest.raises(EndpointRefused):
        go(run, Scripted(script, concurrency=1))
    assert len(run.pools()) == 6


def test_a_store_that_cannot_be_written_ends_sampling(run, monkeypatch):
    def full(batch, worker):
        raise StoreError("the disk is full")

    monkeypatch.setattr(run, "save", full)
    with pytest.raises(StoreError, match="the disk is full"):
        go(run)


class Slow(Scripted):
    async def sample(self, prompt, settings, wanted):
        for want in wanted:
            await asyncio.sleep(0.02)
            yield [say(prompt, want)]


def test_being_asked_to_stop_saves_what_arrived(run):
    async def work():
        stop = asyncio.Event()
        backend = Slow(say, concurrency=2)
        fitted = Pipeline(backend, n_paths=4).fitted(PROBLEMS)
        asyncio.get_running_loop().call_later(0.2, stop.set)
        return await sample(run, backend, fitted.render, Settings(), fitted.path, stop=stop)

    progress = asyncio.run(work())
    assert progress.stopped
    assert 0 < progress.saved < 48
    assert run.summary()["paths"] == progress.saved


def test_time_that_is_up_ends_sampling_between_problems(run):
    progress, _ = go(run, Slow(say, concurrency=1), seconds=0.25)
    assert progress.stopped
    assert 0 < progress.saved < 48
    assert progress.saved % 4 == 0


def test_progress_is_told_as_paths_are_saved(run):
    seen = []
    go(run, watch=lambda progress: seen.append((progress.saved, progress.tokens)))
    assert seen == sorted(seen)
    assert seen[-1] == (48, 96)


def test_the_mean_of_log_probabilities_is_exact():
    values = tuple(math.log(k / 100) for k in range(1, 90))
    exact = sum(map(Fraction, values)) / len(values)
    assert Completion(0, "x", logprobs=values).logprob_mean == pytest.approx(float(exact), abs=1e-15)


def test_problems_of_two_tasks_are_refused():
    mixed = [*PROBLEMS, Problem("x", "Who?", extra={"task": "qa"})]
    with pytest.raises(datasets.DatasetError, match="math, qa"):
        Pipeline(Scripted(say)).fitted(mixed)
