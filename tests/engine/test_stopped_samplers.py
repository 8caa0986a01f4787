"""Samplers under a stopping rule: budgets that are used up, time left by what is drawn, a kill that costs a wave."""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest
from sqlalchemy import text

from demur import stopping
from demur.backends import Completion, Scripted, Settings
from demur.engine import sample
from demur.pipeline.pipeline import Pipeline
from demur.records import Path, Problem
from demur.store import Budget, PlacedPath, Store
from engine.test_many_samplers import finished, paid_for, saved, together
from leases import let_time_pass
from loopback import Doled, choice, reply
from patience import wait_until
from processes import Process

M, WAVE = 16, 4
RULE = stopping.beta(0.95, wave=WAVE)
PROBLEMS = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}) for k in range(120)]


class Mostly(Scripted):
    """Of one mind about three questions of four."""

    async def sample(self, prompt, settings, wanted):
        self.asked.append((prompt.problem, tuple(wanted)))
        await asyncio.sleep(0.005)
        sure = int(prompt.problem[1:]) % 4
        said = (0 if sure else random.Random(w.seed).randrange(3) for w in wanted)
        yield [
            Completion(w.path, f"\\boxed{{{answer}}}", "stop", (-0.5,), w.seed, n_tokens=2)
            for w, answer in zip(wanted, said, strict=True)
        ]


@pytest.fixture
def run(place):
    fitted = Pipeline(Mostly(None), n_paths=M, stop=RULE).fitted(PROBLEMS)
    with Store(place, create=True) as store:
        run = store.open_run("run", fitted.description(), M)
        run.add_problems(PROBLEMS)
        yield run


def sampled(run, **options):
    backend = Mostly(None, concurrency=8)
    fitted = Pipeline(backend, n_paths=M, stop=RULE).fitted(PROBLEMS)
    return sample(run, backend, fitted.render, Settings(), fitted.path, **options)


def sizes(run):
    return [len(pool.paths) for pool in run.pools(complete=False)]


@pytest.mark.parametrize("samplers", [1, 3])
def test_a_budget_of_paths_is_used_up_and_never_passed_and_pools_are_whole(run, samplers):
    """What a pool is not going to need comes back: less is left in the end than one pool may need."""
    run.set_budget(Budget(paths=300))

    async def all_of_them():
        return await asyncio.gather(*(sampled(run) for _ in range(samplers)))

    told = asyncio.run(all_of_them())
    drawn = sum(sizes(run))
    assert 300 - M < drawn <= 300
    assert drawn == sum(one.saved for one in told) == run.summary()["budget"]["spent"]["paths"]
    assert len(run.pools()) == len(sizes(run)), "what was begun was finished"
    assert {one.stopped for one in told} == {True}
    assert f"{drawn} of 300 paths, and the next problem may need {M}; " in {
        one.budget.partition("raise")[0] for one in told
    }
    run.set_budget(Budget(paths=float("inf")))
    rest = asyncio.run(sampled(run))
    assert (rest.stopped, rest.saved, len(run.pools())) == (False, sum(sizes(run)) - drawn, len(PROBLEMS))


def test_a_budget_of_tokens_is_used_up_too(run):
    run.set_budget(Budget(tokens=400))
    told = asyncio.run(sampled(run))
    tokens = run.summary()["tokens"]
    assert 400 - 2 * M <= tokens <= 400 + 8 * 2 * M
    told_of = re.match(r"(\d+) of 400 tokens.*; raise it", told.budget)
    assert 400 - 2 * M <= int(told_of[1]) <= tokens, "what was under way came behind it"


def test_what_is_reserved_is_not_said_to_be_spent(run):
    run.set_budget(Budget(paths=2 * M + 3))
    one, other = (run.at_work("sample", 4) for _ in range(2))
    assert one.claim(dict.fromkeys(range(8), M), 8, 40).numbers == (0, 1)
    block = other.claim(dict.fromkeys(range(8), M), 8, 40)
    assert (block.numbers, block.reserved, block.reserved_by_others) == ((), 0, 2 * M)
    assert block.refusal.startswith("0 of 35 paths, 32 more paths reserved, and the next problem may need 16; ")
    budget = run.summary()["budget"]
    assert (budget["spent"]["paths"], budget["reserved"]["paths"]) == (0, 2 * M)
    for worker in (one, other):
        worker.end()


def test_others_who_reserve_the_rest_are_waited_for_and_what_they_give_back_is_drawn(run):
    run.set_budget(Budget(paths=2 * M))
    other, said = run.at_work("sample", 4), []
    assert len(other.claim(dict.fromkeys(range(8), M), 8, 40).numbers) == 2

    def watch(progress):
        if progress.waiting and not said:
            said.append(progress.waiting)
            other.end()

    told = asyncio.run(sampled(run, watch=watch))
    assert said == ["waiting: the budget has no room but the 32 paths that are reserved for problems under way"]
    assert M < told.saved <= 2 * M


def test_a_spent_time_is_not_waited_for(run):
    other, waited = run.at_work("sample", 4), []
    assert len(other.claim({0: M}, 1, 40).numbers) == 1
    run.set_budget(Budget(paths=M, seconds=0.01))
    time.sleep(0.05)
    other.renew()

    def watch(progress):
        if progress.waiting and not waited:
            waited.append(progress.waiting)
            other.end()

    told = asyncio.run(sampled(run, watch=watch))
    other.end()
    assert told.budget
    assert waited == []


# Time left, and what a crash may have cost


def waves(numbers, n_waves):
    return [PlacedPath(n, p, Path("1", "text", extra={"n_tokens": 2})) for n in numbers for p in range(n_waves * WAVE)]


def test_time_left_is_reckoned_by_what_the_rule_draws(run):
    """Ten pools ended with 4 paths of 16: the other 110 are expected to have 4 each."""
    worker = run.at_work("sample", 4)
    worker.claim(dict.fromkeys(range(20), M), 20, 120)
    time.sleep(0.05)
    run.save(waves(range(10), 1), worker)
    told = run.summary()
    worker.end()
    assert told["seconds_left"]["sample"] == pytest.approx(110 * WAVE / told["workers"][0]["rate"])


def test_the_progress_of_a_sampler_expects_what_the_rule_will_draw(run):
    expected, states = [], []

    def watch(progress):
        states.append(progress.wanted)
        if 30 < len(progress.failed) + progress.saved / 8 < 80:
            expected.append(progress.expected)
            assert progress.seconds_left < (progress.wanted - progress.saved) * progress.seconds / progress.saved

    told = asyncio.run(sampled(run, watch=watch))
    assert told.saved == told.wanted == told.expected == sum(sizes(run))
    assert max(states) > 3 * told.saved / 2, "all paths of a pool are wanted until the rule has enough"
    assert all(abs(one - told.saved) < 0.35 * told.saved for one in expected)
    assert expected


def test_a_sampler_tells_what_others_drew_and_not_what_they_might_have(run):
    async def both():
        return await asyncio.gather(sampled(run), sampled(run))

    told = asyncio.run(both())
    drawn = sum(sizes(run))
    assert drawn == sum(one.saved for one in told)
    assert max(one.wanted for one in told) == drawn
    for one in told:  # who begins late wants less
        assert one.wanted == one.saved + one.by_others <= drawn


def test_a_crash_costs_at_most_a_wave_of_each_problem_that_was_claimed(run):
    gone, other = run.at_work("sample", 4), run.at_work("sample", 4)
    assert len(gone.claim(dict.fromkeys(range(8), M), 8, 120).numbers) == 8
    run.save(waves([0], 1), gone)  # ended: nothing more is asked for
    run.save([PlacedPath(1, path, Path(answer, "text")) for path, answer in enumerate("12")], gone)
    with run.engine.begin() as connection:
        connection.execute(text("UPDATE demur_workers SET process = NULL"))
    let_time_pass(run, gone, 61)
    other.claim(dict.fromkeys(range(8), M), 8, 120)
    other.end()
    (noted,) = [facts for facts in run.summary()["commands"] if facts["command"] == "takeover"]
    assert noted["in_vain_at_most"] == 0 + (WAVE - 2) + 6 * WAVE


def test_no_wave_is_asked_for_before_the_last_one_is_saved(run):
    """Else a crash might cost more than a wave."""
    there, save = set(), run.save

    def noticed(batch, worker=None):
        done = save(batch, worker)
        there.update((placed.number, placed.place) for placed in batch)
        return done

    run.save = noticed

    class Watched(Mostly):
        async def sample(self, prompt, settings, wanted):
            number, first = int(prompt.problem[1:]), min(w.path for w in wanted)
            assert {(number, path) for path in range(first)} <= there
            async for portion in super().sample(prompt, settings, wanted):
                yield portion

    backend = Watched(None, concurrency=8)
    fitted = Pipeline(backend, n_paths=M, stop=RULE).fitted(PROBLEMS)
    told = asyncio.run(sample(run, backend, fitted.render, Settings(), fitted.path))
    assert told.saved == sum(sizes(run))


def demur_sample(server, place, limit, *flags, key=""):
    command = [
        sys.executable, "-m", "demur", "sample", "builtin:addition", "--limit", str(limit), "-m", "12", "--stop",
        "beta:0.9", "--wave", "3", "--base-url", server.url, "--model", "m", "--concurrency", "4", "-o", place,
        "--json", *flags,
    ]  # fmt: skip
    known = {**os.environ, "OPENAI_API_KEY": key}
    return Process(command, env=known, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answers_by_seed(number, body, request):
    seeds = range(body["seed"], body["seed"] + body.get("n", 1))
    return reply(*(choice(f"So \\boxed{{{max(0, seed * 7919 % 11 - 7)}}}") for seed in seeds))


def test_processes_use_up_a_budget_together_and_what_they_draw_is_what_one_draws(server, tmp_path):
    server.behave, server.delay = answers_by_seed, 0.02
    alone, place = str(tmp_path / "alone.db"), str(tmp_path / "run.db")
    finished(demur_sample(server, alone, 80))
    server.requests.clear()
    two = [demur_sample(server, place, 80, "--budget-paths", "250") for _ in range(2)]
    told = [finished(process) for process in two]
    drawn = sum(paid_for(server).values())
    assert 250 - 12 < drawn <= 250
    assert drawn == sum(one["saved"] for one in told) == len(saved(place))
    assert f"{drawn} of 250 paths, and the next problem may need 12" in {one["budget_spent"] for one in told}
    assert finished(demur_sample(server, place, 80, "--budget-paths", "none"))["stopped"] is False
    assert saved(place) == saved(alone)
    assert set(paid_for(server).values()) == {1}


def test_two_samplers_of_which_one_is_killed_draw_what_one_draws(server, postgres_url, tmp_path):
    """On PostgreSQL, by a rule: nothing is lost or doubled, and what the kill cost is at most what the run says."""
    server.behave, limit, alone = answers_by_seed, 150, str(tmp_path / "alone.db")
    finished(demur_sample(server, alone, limit))
    asked_alone = paid_for(server)
    server.requests.clear()
    server.headers.clear()
    server.behave = Doled(120, together(server, 2, answers_by_seed))
    victim, other = (demur_sample(server, postgres_url, limit, key=name) for name in ("victim", "other"))
    wait_until(lambda: len(server.requests) >= 120)
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    before = saved(postgres_url)
    server.behave.answered = math.inf
    third = demur_sample(server, postgres_url, limit)
    told = [finished(process) for process in (other, third)]
    whole = saved(postgres_url)
    assert before.items() <= whole.items()
    assert len(before) < len(whole), "it was killed in the middle"
    assert whole == saved(alone)
    with Store(postgres_url) as store, Store(alone) as one:
        run = store.run()
        pools, facts = run.pools(), run.summary()
        assert [len(pool.paths) for pool in pools] == [len(pool.paths) for pool in one.run().pools()]
    assert len({len(pool.paths) for pool in pools}) > 1, "the rule ends some pools early, and not all"
    assert all("perplexity" in path.scores for pool in pools for path in pool.paths)
    asked = paid_for(server)
    assert asked.keys() == asked_alone.keys()
    (noted,) = [command for command in facts["commands"] if command["command"] == "takeover"]
    twice = sum(asked.values()) - len(whole)
    assert 0 <= twice <= noted["in_vain_at_most"]
    assert noted["came"] + sum(one["saved"] for one in told) == len(whole)
    assert [one["in_vain"] for one in told] == [0, 0]
    assert json.dumps(facts["workers"]) == "[]"
