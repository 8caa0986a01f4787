"""Leases on a run: what one claims nobody else does, what a dead or stalled one leaves is taken over, and counted."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time

import pytest
from sqlalchemy import event, text

from demur.descriptions import Description
from demur.errors import InvalidValue, StoreError
from demur.records import Path, Problem
from demur.store import Budget, PathScore, PlacedPath, Store
from demur.store import worker as store_worker
from demur.store.processes import is_gone, this_process
from demur.store.worker import Worker
from leases import let_time_pass
from processes import Process

N, M = 40, 4
PROBLEMS = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),)) for k in range(N)]
SIZES = dict.fromkeys(range(N), M)


def path(number, index, tokens=3, seed=None):
    known = {"extraction": "boxed", "n_tokens": tokens, "seed": seed, "latency": 0.25}
    return PlacedPath(number, index, Path("1", f"text {number} {index}", extra=known))


@pytest.fixture
def run(place):
    with Store(place, create=True) as store:
        run = store.open_run("run", Description(), M)
        run.add_problems(PROBLEMS)
        yield run


@pytest.fixture
def workers(run):
    """Processes at work, as far as the database can tell; those that are left are ended."""
    made = []

    def worker(lease=60.0, task="sample", concurrency=4):
        made.append(run.at_work(task, concurrency, lease))
        return made[-1]

    yield worker
    for one in made:
        one.end()


def forget_process(run):
    """As if all were on other machines, where nobody can look whether they live."""
    with run.engine.begin() as connection:
        connection.execute(text("UPDATE demur_workers SET process = NULL"))


def takeovers(run):
    return [facts for facts in run.summary()["commands"] if facts["command"] == "takeover"]


def test_what_one_claims_no_other_does_and_each_takes_a_share(run, workers):
    one, other = workers(), workers()
    first, second = one.claim(SIZES, 8, N), other.claim(SIZES, 8, N)
    assert first.numbers == tuple(range(8))
    assert second.numbers == tuple(range(8, 16))
    assert len(first.others) == len(second.others) == 1
    greedy = one.claim(SIZES, 1000, N)
    assert greedy.numbers == tuple(range(16, 24))  # a quarter of the 32 that the other has not


def test_many_who_claim_at_once_get_each_problem_once(place, run):
    claimed, errors, all_have_claimed = [], [], threading.Barrier(4)

    def work():
        try:
            with Store(place) as store:
                worker = store.run().at_work("sample", 2)
                left = dict(SIZES)
                while left:
                    block = worker.claim(left, 3, len(left))
                    claimed.extend(block.numbers)
                    left = {number: M for number in left if number not in claimed}
                all_have_claimed.wait(300)
                worker.end()
        except StoreError as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert errors == []
    assert sorted(claimed) == list(range(N))


def test_what_is_done_may_be_claimed_by_others_and_what_was_saved_shows(run, workers):
    one, other = workers(), workers()
    assert one.claim({0: M}, 1, 1).numbers == (0,)
    before = other.claim({0: M}, 1, 1)
    run.save([path(0, index) for index in range(M)], one)
    one.done([0])
    one.renew()
    after = other.claim({0: M}, 1, 1)
    assert (before.numbers, after.numbers) == ((), (0,))
    assert after.by_others - before.by_others == M


def test_a_worker_that_ends_leaves_nothing_behind_but_what_it_cost(run, workers):
    one = workers()
    one.claim(SIZES, 8, N)
    run.save([path(0, 0), path(0, 1)], one)
    one.end()
    assert run.everybody_at_work() == []
    assert run.came("sample") == 2
    assert takeovers(run) == []
    assert workers().claim(SIZES, 4, N).numbers[0] == 0


def test_a_silent_worker_is_taken_over_when_its_time_is_up_and_not_before(run, workers):
    silent, other = workers(), workers()
    assert silent.claim(SIZES, 8, N).numbers == tuple(range(8))
    forget_process(run)
    run.save([path(0, 0)], silent)
    let_time_pass(run, silent, 30)
    assert 1 not in other.claim(SIZES, 4, N).numbers
    let_time_pass(run, silent, 31)
    assert other.claim(SIZES, 4, N).numbers == (0, 1, 2, 3)
    (noted,) = takeovers(run)
    assert (noted["of"], noted["came"], noted["tokens"]) == ("sample", 1, 3)
    assert noted["in_vain_at_most"] == 8 * M - 1  # it may have asked for all that it claimed


def test_paths_that_were_to_be_drawn_again_may_have_been_paid_for_in_vain_too(run, workers):
    """They are there, without log-probabilities, and a worker that is gone may have asked for them once more."""
    known = {"extraction": "boxed", "n_tokens": 3}
    run.save([PlacedPath(0, place, Path("1", "text", extra=known)) for place in range(M)])
    run.save([PlacedPath(1, place, Path("1", "text", extra=known | {"logprob_mean": -0.5})) for place in range(M)])
    silent, other = workers(), workers()
    assert silent.claim({0: M, 2: M}, 2, N).numbers == (0, 2)
    forget_process(run)
    let_time_pass(run, silent, 61)
    other.claim({0: M, 2: M}, 2, N)
    assert [noted["in_vain_at_most"] for noted in takeovers(run)] == [2 * M]


def test_a_stalled_worker_that_comes_back_stores_nothing_twice_and_learns_what_was_in_vain(run, workers):
    stalled, other = workers(), workers()
    stalled.claim(SIZES, 2, 4)
    forget_process(run)
    let_time_pass(run, stalled, 61)
    assert other.claim(SIZES, 2, 4).numbers[0] == 0
    assert run.save([path(0, index, seed=1) for index in range(M)], other) == 0
    assert run.save([path(0, index, seed=2) for index in range(M)], stalled) == M
    assert stalled.lost == 1
    pool = run.pools()[0]
    assert [each.extra["seed"] for each in pool.paths] == [1] * M
    assert run.came("sample") == 2 * M  # both were paid for


def test_a_stalled_worker_keeps_no_claim_that_another_has(run, workers):
    stalled, other = workers(), workers()
    stalled.claim(SIZES, 3, 40)
    forget_process(run)
    let_time_pass(run, stalled, 61)
    taken = set(other.claim(SIZES, 2, N).numbers)
    stalled.renew()
    claims = [one.numbers for one in run.everybody_at_work()]
    assert taken == {0, 1}
    assert sorted(number for numbers in claims for number in numbers) == [0, 1, 2]


def test_what_was_saved_without_our_learning_of_it_is_not_in_vain(run, workers):
    """A commit whose answer was lost on the way is made again."""
    one = workers()
    batch = [path(0, index, seed=7) for index in range(M)]
    assert run.save(batch, one) == 0
    assert run._save(batch, one) == 0
    assert run.save([path(0, 0, seed=8)], one) == 1


def test_a_process_that_was_killed_is_taken_over_at_once(place, run, workers):
    code = (
        "import sys, time; from demur.store import Store\n"
        f"worker = Store(sys.argv[1]).run().at_work('sample', 4)\n"
        f"worker.claim(dict.fromkeys(range({N}), {M}), 8, {N}); print('claimed', flush=True); time.sleep(60)"
    )
    child = Process([sys.executable, "-c", code, place], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "claimed\n"
    mine = workers()
    assert mine.claim(SIZES, 4, N).numbers[0] == 8
    child.kill()
    child.wait()
    child.stdout.close()
    assert {one["state"] for one in run.summary()["workers"]} == {"gone", "at work"}
    assert mine.claim(SIZES, 4, N).numbers[0] == 0
    assert [noted["worker"].rpartition("-")[2] for noted in takeovers(run)] == [str(child.pid)]


def test_a_process_is_gone_only_where_that_can_be_known():
    me = this_process()
    assert not is_gone(me.pid, me.mark)
    assert not is_gone(me.pid, None)
    assert not is_gone(2**22 - 1, "another machine:1")
    if me.mark is not None:
        assert is_gone(me.pid, me.mark + "9")  # its number was given again
    assert len(me.host) <= 40
    assert me.name == f"{me.host}-{os.getpid()}"


@pytest.mark.parametrize("shift", [-3600, 3600])
def test_the_clock_of_a_worker_decides_nothing(run, workers, monkeypatch, shift):
    """Neither does the date that the machine of an SQLite file is set to."""
    one, other = workers(), workers()
    held = one.claim(SIZES, 8, N).numbers
    forget_process(run)
    true = time.time
    monkeypatch.setattr("time.time", lambda: true() + shift)
    monkeypatch.setattr("time.time_ns", lambda: int((true() + shift) * 1e9))
    assert not set(held) & set(other.claim(SIZES, 8, N).numbers)
    assert takeovers(run) == []


def test_a_database_whose_clock_is_set_back_gives_no_time_back(run, workers):
    """It would be taken off what the run has spent, and the pace of who is at work be less than none."""
    run.set_budget(Budget(seconds=100))
    one = workers()
    one.claim(SIZES, 2, N)
    run.save([path(0, 0)], one)
    with run.engine.begin() as connection:
        connection.execute(text("UPDATE demur_workers SET begun = seen + 3600000"))
    shared = run.shared()
    assert (shared["workers"][0]["seconds"], shared["workers"][0]["rate"], shared["seconds_left"]) == (
        0,
        0,
        {"sample": None},
    )
    one.end()
    assert run.shared()["budget"]["spent"]["seconds"] == 0


def test_claims_from_before_the_machine_was_started_anew_are_over(run, workers):
    """Its clock began at 0 again, so that they seem to last for days."""
    one, other = workers(), workers()
    one.claim(SIZES, 8, N)
    forget_process(run)
    with run.engine.begin() as connection:
        connection.execute(text("UPDATE demur_workers SET until = until + 864000000, seen = seen + 864000000"))
    assert other.claim(SIZES, 8, N).numbers[0] == 0


def test_after_a_database_was_away_those_who_live_get_time_to_be_seen(run, workers):
    one, other = workers(), workers()
    held = one.claim(SIZES, 4, N).numbers
    forget_process(run)
    let_time_pass(run, one, 61)  # nobody could renew
    let_time_pass(run, other, 61)
    other._seen -= 61
    assert not set(held) & set(other.claim(SIZES, 4, N).numbers)
    one.renew()
    let_time_pass(run, one, 30)
    assert not set(held) & set(other.claim(SIZES, 4, N).numbers)
    assert takeovers(run) == []


@pytest.mark.parametrize("task", ["sample", "score:0:judge"])
def test_tasks_do_not_stand_in_each_others_way(run, workers, task):
    other = {"sample": "score:0:judge", "score:0:judge": "sample"}[task]
    assert workers(task=task).claim(SIZES, 4, N).numbers == workers(task=other).claim(SIZES, 4, N).numbers


def test_scores_that_another_saved_are_counted_as_there(run, workers):
    run.save([path(0, index) for index in range(M)])
    worker = workers(task="score:0:judge")
    values = [PathScore(0, index, 1.0) for index in range(M)]
    assert run.save_scores("judge", {"a": 1}, values, worker) == 0
    assert run.save_scores("judge", {"a": 1}, values, worker) == M


def test_a_store_of_an_earlier_version_gets_the_tables_and_what_is_there_counts(place, run):
    run.save([path(0, index) for index in range(M)])
    with run.engine.begin() as connection:
        connection.execute(text("DROP TABLE demur_workers"))
        connection.execute(text("DROP TABLE demur_work"))
        connection.execute(text("DELETE FROM demur_meta WHERE name = 'sharing'"))
    with Store(place) as store:
        earlier = store.run()
        assert earlier.summary()["workers"] == []
        assert earlier.came("sample") == 0
        worker = earlier.at_work("sample", 4)
        assert earlier.came("sample") == M
        worker.end()
        with earlier.engine.begin() as connection:
            assert connection.execute(text("SELECT value FROM demur_meta WHERE name = 'schema'")).scalar() == "2"


def test_who_is_at_work_is_shown_with_pace_and_time_left(run, workers):
    one = workers()
    one.claim(SIZES, 8, N)
    time.sleep(0.05)
    run.save([path(0, 0), path(0, 1)], one)
    told = run.summary()
    (shown,) = told["workers"]
    assert shown["worker"] == this_process().name
    assert (shown["task"], shown["paths"], shown["tokens"], shown["problems"]) == ("sample", 2, 6, 8)
    assert shown["rate"] > 0
    assert told["seconds_left"]["sample"] == pytest.approx((N * M - 2) / shown["rate"])
    assert (shown["state"], told["budget"]) == ("at work", None)


# Budgets


def test_a_budget_of_paths_is_never_passed_and_takes_whole_problems(run, workers):
    run.set_budget(Budget(paths=4 * M + 3))
    one, other = workers(), workers()
    assert one.claim(SIZES, 3, N).numbers == (0, 1, 2)
    last = other.claim(SIZES, 3, N)
    assert last.numbers == (3,)
    reserved = "0 of 19 paths, 16 more paths reserved, and the next problem needs 4"  # nothing is spent yet
    assert last.refusal == f"{reserved}; raise it with {{budget_paths}} to go on"
    assert (last.reserved, last.reserved_by_others) == (0, 3 * M)
    assert run.summary()["budget"]["spent"]["paths"] == 0
    assert run.summary()["budget"]["reserved"]["paths"] == 4 * M
    one.done([2])  # it failed, and gives back what it was to cost
    assert one.claim(SIZES, 3, N).numbers == (2,)


def test_a_budget_is_kept_across_processes_and_raised_or_taken_away_by_the_next(run, workers):
    run.set_budget(Budget(paths=2 * M, seconds=1000))
    one = workers()
    for number in one.claim(SIZES, 8, N).numbers:
        run.save([path(number, index) for index in range(M)], one)
    one.end()
    again = workers()
    assert again.claim(SIZES, 8, N).refusal.startswith("8 of 8 paths; raise it with {budget_paths}")
    assert run.summary()["budget"]["limits"] == {"paths": 8, "tokens": None, "seconds": 1000}
    run.set_budget(Budget())  # says nothing
    assert again.claim(SIZES, 8, N).numbers == ()
    run.set_budget(Budget(paths=3 * M))
    assert len(again.claim(SIZES, 8, N).numbers) == 1
    run.set_budget(Budget(paths=math.inf))
    assert len(again.claim(SIZES, 8, N).numbers) == 8


def test_a_budget_of_tokens_reckons_with_what_is_under_way(run, workers):
    run.set_budget(Budget(tokens=100))
    one = workers(concurrency=2)
    first = one.claim(SIZES, 8, N).numbers
    assert len(first) == 2  # nobody knows what a path costs, so no more than are asked at once
    run.save([path(first[0], index, tokens=10) for index in range(M)], one)
    second = one.claim(SIZES, 8, N)
    assert len(second.numbers) == 1  # 40 came and 40 are expected
    assert second.refusal == "40 of 100 tokens, 8 more paths reserved; raise it with {budget_tokens} to go on"


def test_a_budget_of_seconds_is_summed_over_processes(run, workers):
    run.set_budget(Budget(seconds=1000))
    one, other = workers(), workers()
    assert one.claim(SIZES, 2, N).seconds_left <= 500
    for worker in (one, other):
        let_time_pass(run, worker, 550)
        worker.renew()
    assert one.claim(SIZES, 2, N).refusal.endswith("of 1000 seconds; raise it with {budget_seconds} to go on")


@pytest.mark.parametrize(
    "bad", [{"paths": 0}, {"paths": -1}, {"paths": 1.5}, {"tokens": 0}, {"seconds": 0}, {"seconds": math.nan}]
)
def test_a_budget_that_is_none_is_refused(bad):
    with pytest.raises(InvalidValue, match="a budget of"):
        Budget(**bad)


def test_what_came_to_one_that_is_taken_over_is_spent_once(run, workers):
    """Whoever takes over asks for room in the budget in the same breath."""
    run.set_budget(Budget(paths=12 * M))
    silent, other = workers(lease=0.3), workers()
    for number in silent.claim(SIZES, 7, N).numbers:
        run.save([path(number, index) for index in range(M)], silent)
    forget_process(run)
    time.sleep(0.5)
    block = other.claim(dict.fromkeys(range(7, N), M), 5, N - 7)
    assert (block.numbers, block.refusal, block.by_others) == ((7, 8, 9, 10, 11), "", 7 * M)


def test_paths_that_came_by_no_worker_are_spent_too(run, workers):
    """Out of a batch, say: whether they came before the first sampler or after it."""
    run.save([path(0, index) for index in range(M)])
    run.set_budget(Budget(paths=4 * M))
    run.save([path(1, index) for index in range(M)])
    run.save([path(1, index) for index in range(M)])  # they are there
    spent = run.summary()["budget"]["spent"]
    assert (spent["paths"], spent["tokens"]) == (2 * M, 2 * M * 3)
    assert workers().claim(dict.fromkeys(range(2, N), M), 5, N).numbers == (2, 3)


# A save within a claim


def blocked_by_a_lock(run):
    """Whether a write waits for another transaction; in a file nobody can tell, and there one always does."""
    if run.engine.dialect.name == "sqlite":
        return True
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    with run.engine.connect() as connection:
        return connection.execute(text(query)).scalar_one() > 0


def elsewhere(run, act):
    """Do something in another thread, until it is done or has to wait for this one."""
    thread = threading.Thread(target=act)
    thread.start()
    while thread.is_alive() and not blocked_by_a_lock(run):
        time.sleep(0.01)
    return thread


@pytest.fixture
def within_a_claim(monkeypatch):
    """Do something once, after a step of whatever claims next."""

    def arrange(step, act):
        owner, acts = Worker if hasattr(Worker, step) else store_worker, [act]
        real = getattr(owner, step)

        def and_then(*given, **named):
            result = real(*given, **named)
            while acts:
                acts.pop()()
            return result

        monkeypatch.setattr(owner, step, and_then)

    return arrange


STEPS = ["_claiming", "all_at_work", "spending_of", "_mates", "_claims"]


@pytest.mark.parametrize("step", STEPS)
def test_a_save_at_any_moment_of_a_claim_is_in_the_budget_once(run, workers, within_a_claim, step):
    """Neither in no count, so that the budget is passed, nor in two, so that some of it is never used."""
    run.set_budget(Budget(paths=4 * M))
    one = workers()
    first = one.claim(SIZES, 2, N).numbers
    batch, threads = [path(first[0], index) for index in range(M)], []
    within_a_claim(step, lambda: threads.append(elsewhere(run, lambda: run.save(batch, one))))
    assert len(one.claim(SIZES, 8, N).numbers) == 2
    threads[0].join(60)
    budget = run.summary()["budget"]
    assert (budget["spent"]["paths"], budget["reserved"]["paths"]) == (M, 3 * M)


@pytest.mark.parametrize("step", [*STEPS, None])
def test_a_save_that_is_committed_and_not_yet_counted_here_is_in_the_budget_once(run, workers, within_a_claim, step):
    run.set_budget(Budget(paths=4 * M))
    one = workers()
    first = one.claim(SIZES, 2, N).numbers
    run._save([path(first[0], index) for index in range(M)], one)
    if step is not None:
        within_a_claim(step, lambda: one.counted([first[0]] * M, 3 * M))
    assert len(one.claim(SIZES, 8, N).numbers) == 2
    budget = run.summary()["budget"]
    assert budget["spent"]["paths"] + budget["reserved"]["paths"] == 4 * M


def test_what_was_saved_before_others_took_over_is_spent_once(run, workers):
    """The process stood still after the commit and before it counted what it had saved."""
    run.set_budget(Budget(paths=4 * M))
    stalled, other = workers(), workers()
    numbers = stalled.claim(SIZES, 2, N).numbers
    forget_process(run)
    run._save([path(numbers[0], index) for index in range(M)], stalled)
    let_time_pass(run, stalled, 61)
    other.claim({}, 1, N)
    stalled.renew()
    stalled.counted([numbers[0]] * M, 3 * M)
    run.save([path(numbers[1], index) for index in range(M)], stalled)
    assert run.summary()["budget"]["spent"]["paths"] == 2 * M


def test_paths_of_a_batch_are_spent_where_the_account_is_opened_meanwhile(place, run):
    """The batch is not committed yet when the first sampler counts what is there."""
    with Store(place) as store:
        batch, opened = store.run(), []

        def and_then(connection, cursor, statement, *_):
            if statement.startswith("INSERT INTO demur_texts") and not opened:
                opened.append(elsewhere(run, lambda: run.set_budget(Budget(paths=4 * M))))

        event.listen(batch.engine, "before_cursor_execute", and_then)
        batch.save([path(0, index) for index in range(M)])
    opened[0].join(60)
    assert run.summary()["budget"]["spent"]["paths"] == M
