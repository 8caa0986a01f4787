"""What replicas share: policies, budgets, idempotency keys, monitors, events, canaries; changed by one at a time."""

from __future__ import annotations

import time
from itertools import chain

import pytest
from sqlalchemy import text

from demur.errors import InvalidValue, StoreError
from demur.store.service import MonitorState, ServiceStore
from service_rows import at_once


def replicas(place, number, work):
    """What replicas give that do the same at once, each on a store of its own."""

    def run(mine):
        with ServiceStore(place) as own:
            return work(own, mine)

    return at_once(*(lambda mine=mine: run(mine) for mine in range(number)))


# --- policies ------------------------------------------------------------------------------------------------------


def test_the_same_policy_registered_again_is_the_row_there_is(store):
    first = store.policies.register("math", {"threshold": 0.1 + 0.2, "n": 1}, "f1", 5)
    assert store.policies.register("math", {"n": 1, "threshold": 0.1 + 0.2}, "f1", 9) == first
    assert (first.version, first.state, first.document["threshold"]) == (1, "active", 0.1 + 0.2)


def test_a_new_version_answers_and_the_old_one_stays_addressable(store):
    old = store.policies.register("math", {"n": 1}, "f1", 1)
    new = store.policies.register("math", {"n": 2}, "f2", 2)
    other = store.policies.register("law", {"n": 1}, "f1", 3)
    assert [(row.name, row.version, row.state) for row in store.policies.all()] == [
        ("law", 1, "active"), ("math", 1, "retired"), ("math", 2, "active"),
    ]  # fmt: skip
    assert store.policies.register("math", {"n": 1}, "f1", 4).state == "retired"
    assert store.policies.activate(old.policy).state == "active"
    assert store.policies.get(new.policy).state == "retired"
    assert store.policies.get(other.policy).state == "active"


def test_a_shadow_decides_beside_until_it_is_swapped_in(store):
    store.policies.register("math", {"n": 1}, "f1", 1)
    store.policies.propose("math", {"n": 2}, "f2", 2, shadow=True)
    shadow = store.policies.propose("math", {"n": 3}, "f3", 3, shadow=True)
    assert [row.state for row in store.policies.all()] == ["active", "retired", "shadow"]
    store.policies.activate(shadow.policy)
    assert [row.state for row in store.policies.all()] == ["retired", "retired", "active"]
    with pytest.raises(StoreError, match="version 3 of the policy 'math' answers already; it is no shadow"):
        store.policies.propose("math", {"n": 3}, "f3", 4, shadow=True)
    store.policies.retire(shadow.policy)
    assert [row.state for row in store.policies.all()] == ["retired"] * 3


def test_replicas_that_register_at_once_agree_on_versions_and_on_who_answers(place, store):
    rows = replicas(place, 4, lambda own, mine: own.policies.register("math", {"n": mine % 2}, f"f{mine % 2}", 1))
    assert (rows[0].policy, rows[1].policy) == (rows[2].policy, rows[3].policy)
    assert sorted((row.version, row.state) for row in store.policies.all()) == [(1, "retired"), (2, "active")]


def test_a_policy_that_is_not_there_or_damaged_is_one_line(store):
    with pytest.raises(StoreError, match="there is no policy number 7 in this store"):
        store.policies.activate(7)
    store.policies.register("math", {}, "f", 1)
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE demur_policies SET document = '[]'"))
    with pytest.raises(StoreError, match=r"is damaged: .*document is"):
        store.policies.all()


# --- budgets -------------------------------------------------------------------------------------------------------


def test_spending_adds_up_per_key_and_window(store):
    assert store.spending.spend("k", 60, 16, 900).paths == 16
    assert store.spending.spend("k", 60, 4, 100).tokens == 1000
    assert store.spending.spend("k", 120, 1).paths == store.spending.spend("j", 60, 1).paths == 1
    assert (store.spending.spent("k", 60).paths, store.spending.spent("x", 60).paths) == (20, 0)
    store.spending.forget(120)
    assert (store.spending.spent("k", 60).paths, store.spending.spent("k", 120).paths) == (0, 1)


def test_what_would_pass_a_limit_is_not_spent_and_what_is_given_back_always_is(store):
    assert store.spending.spend("k", 0, 10, most_paths=10).granted
    refused = store.spending.spend("k", 0, 1, 5, most_paths=10)
    assert (refused.granted, refused.paths, refused.tokens) == (False, 10, 0)
    assert not store.spending.spend("k", 0, 0, 7, most_tokens=6).granted
    assert store.spending.spend("k", 0, -4, 9, most_paths=1, most_tokens=9).paths == 6
    assert store.spending.spend("k", 0, -100).paths == 0


def test_charges_at_once_add_up_exactly_and_pass_no_limit(place, store):
    def charge(own, _):
        return sum(own.spending.spend("k", 0, 3, 1, most_paths=100).granted for _ in range(15))

    assert sum(replicas(place, 4, charge)) == 33
    assert (store.spending.spent("k", 0).paths, store.spending.spent("k", 0).tokens) == (99, 33)


@pytest.mark.parametrize("paths", [1.5, "3", None, True, 2**60])
def test_a_charge_that_is_no_whole_number_is_refused(store, paths):
    with pytest.raises(InvalidValue, match="paths and tokens are whole numbers"):
        store.spending.spend("k", 0, paths)


# --- idempotency keys ----------------------------------------------------------------------------------------------


def whose(store, request, body="b", seconds=60.0, caller="k"):
    repeat = store.repeats.begin(caller, "key", body, request, 1, seconds)
    return repeat.whose, repeat.request


def test_one_request_does_the_work_and_the_others_hear_of_it(store):
    assert whose(store, "r1") == ("mine", "r1")
    assert whose(store, "r1") == ("mine", "r1")
    assert whose(store, "r2") == ("running", "r1")
    assert whose(store, "r2", body="c") == ("another body", "r1")
    assert whose(store, "r2", caller="") == ("mine", "r2")
    assert not store.repeats.finish("k", "key", "r2")
    assert store.repeats.finish("k", "key", "r1")
    assert whose(store, "r3") == ("done", "r1")


def test_work_that_was_left_is_taken_over_and_its_first_owner_is_told(store):
    whose(store, "r1", seconds=0.05)
    time.sleep(0.1)
    assert whose(store, "r2") == ("mine", "r2")
    assert not store.repeats.renew("k", "key", "r1")
    assert not store.repeats.finish("k", "key", "r1")
    assert store.repeats.renew("k", "key", "r2")


def test_a_key_given_back_or_forgotten_is_free_again(store):
    whose(store, "r1")
    store.repeats.drop("k", "key", "r2")
    assert whose(store, "r2") == ("running", "r1")
    store.repeats.drop("k", "key", "r1")
    assert whose(store, "r2") == ("mine", "r2")
    store.repeats.finish("k", "key", "r2")
    store.repeats.drop("k", "key", "r2")
    assert whose(store, "r3") == ("done", "r2")
    store.repeats.forget(2)
    assert whose(store, "r4") == ("mine", "r4")


def test_of_many_that_begin_at_once_one_does_the_work(place, store):
    results = replicas(place, 6, lambda own, mine: whose(own, f"r{mine}"))
    assert sorted(kind for kind, _ in results) == ["mine"] + ["running"] * 5
    assert len({request for _, request in results}) == 1


# --- monitors ------------------------------------------------------------------------------------------------------


def test_a_monitor_is_replaced_only_by_who_saw_its_last_state(store):
    assert store.monitors.read(1, "drift") is None
    assert not store.monitors.replace(1, "drift", {"n": 9}, 3)
    assert store.monitors.replace(1, "drift", {"n": 1}, 0)
    assert not store.monitors.replace(1, "drift", {"n": 9}, 0)
    assert store.monitors.replace(1, "drift", {"n": 2}, 1)
    assert store.monitors.read(1, "drift") == MonitorState(2, {"n": 2})
    assert store.monitors.read(2, "drift") is store.monitors.read(1, "errors") is None


def test_observations_of_many_replicas_are_all_counted_once(place, store):
    def observe(own, _):
        for _ in range(10):
            while True:
                state = own.monitors.read(1, "drift") or MonitorState(0, {"n": 0})
                if own.monitors.replace(1, "drift", {"n": state.document["n"] + 1}, state.version):
                    break

    assert replicas(place, 3, observe) == [None] * 3
    assert store.monitors.read(1, "drift") == MonitorState(30, {"n": 30})


# --- events --------------------------------------------------------------------------------------------------------


def test_events_come_the_last_first_and_by_page(store):
    for at in range(5):
        store.events.note(at, "alarm" if at % 2 else "start", f"at {at}", policy=at if at else None, facts={"at": at})
    assert [event.at for event in store.events.latest(limit=2)] == [4, 3]
    page = store.events.latest(limit=2)
    assert [event.at for event in store.events.latest(before=page[-1], limit=2)] == [2, 1]
    assert [event.at for event in store.events.latest(policy=3)] == [3, 0]
    assert [event.facts for event in store.events.latest(kind="alarm", since=2)] == [{"at": 3}]


def test_what_several_replicas_notice_is_noted_once(place, store):
    noted = replicas(place, 4, lambda own, mine: own.events.note(mine, "model", "another model", policy=1, once="m-2"))
    assert len({event.at for event in noted}) == len(store.events.latest()) == 1
    store.events.note(1, "model", "another model", policy=2, once="m-2")
    assert len(store.events.latest()) == 2


# --- canaries ------------------------------------------------------------------------------------------------------


def test_every_canary_is_asked_once_per_policy(store):
    first = store.canaries.claim_next(1, ["a", "b"], 1)
    second = store.canaries.claim_next(1, ["a", "b"], 2)
    assert (first.problem, second.problem, store.canaries.claim_next(1, ["a", "b"], 3)) == ("a", "b", None)
    assert store.canaries.settle(1, "a", first.lease_token, answered=True)
    assert store.canaries.settle(1, "b", second.lease_token, answered=False)
    assert [(canary.problem, canary.state) for canary in store.canaries.all(1)] == [("a", "answered"), ("b", "failed")]
    assert store.canaries.claim_next(2, ["a", "b"], 4).problem == "a"


def test_a_canary_that_was_left_is_asked_again_and_only_one_result_counts(store):
    first = store.canaries.claim_next(1, ["a"], 1, seconds=0.05)
    time.sleep(0.1)
    second = store.canaries.claim_next(1, ["a"], 2)
    assert not store.canaries.settle(1, "a", first.lease_token, answered=True)
    assert store.canaries.settle(1, "a", second.lease_token, answered=True)
    assert store.canaries.settle(1, "a", second.lease_token, answered=True)
    assert not store.canaries.settle(1, "a", second.lease_token, answered=False)
    assert store.canaries.claim_next(1, ["a"], 3) is None


def test_replicas_that_claim_canaries_at_once_never_get_the_same(place, store):
    problems = [f"q{number:02}" for number in range(30)]

    def claim(own, _):
        mine = []
        while (canary := own.canaries.claim_next(1, problems, 1)) is not None:
            mine.append(canary.problem)
        return mine

    assert sorted(chain.from_iterable(replicas(place, 3, claim))) == problems
