"""A new version from audits: the one that full pools would give, with a promise that only audits can keep."""

from __future__ import annotations

import hmac
import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import demur as dm
from audited import decided, decided_at_once, is_right, policy_on, pools_of
from demur.errors import InfeasibleWarning, InvalidValue
from demur.pipeline.audited_votes import audited_votes
from demur.pipeline.recalibration import recalibration, window_of
from demur.policy.recalibrate import guarantees_again, labels_to_get
from demur.pools.source import PoolSource
from demur.store.service import Feedback, ServiceStore


@pytest.fixture(scope="module")
def old():
    return policy_on(pools_of(300, 1))


@pytest.fixture
def store(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as opened:
        yield opened


def logged(store, policy, pools, *, labelled=lambda row: True, name="sums", **how):
    """A version with audits, some of them with a verdict; the decisions by request."""
    row = store.policies.register(name, policy.document(), policy.fingerprint, 1)
    made = [decided(policy, pool, number=row.policy, **how) for pool in pools]
    store.decisions.add(made)
    for place, (pool, decision) in enumerate(zip(pools, made, strict=True)):
        if labelled(place):
            verdict = "right" if is_right(pool, decision) else "wrong"
            store.feedback.give(decision.request, "ann", 5, verdict=verdict, source="review")
    return {decision.request: decision for decision in made}


def word(request, number=1, **said):
    known = {"verdict": None, "answer": None, "source": "review", "note": None}
    return Feedback(
        **{"feedback": number, "request": request, "who": f"p{number}", "turn": 0, "at": number, **known, **said}
    )


def without(document, *names):
    return {name: value for name, value in document.items() if name not in names}


@pytest.mark.parametrize("every", [1, 2, 5])
def test_the_new_version_is_what_calibrate_makes_of_the_same_votes_and_labels(old, store, every):
    pools = pools_of(400, 2, prefix="r")
    made = logged(store, old, pools, labelled=lambda row: row % every == 0)
    new = recalibration(store, "sums").new
    voted = old.vote(PoolSource(pools))
    labels = [is_right(pool, made[pool.problem.id]) if row % every == 0 else None for row, pool in enumerate(pools)]
    direct = dm.calibrate(
        dm.VotedPools.of(voted.votes, labels, partly_labelled=True), alpha=[0.05, 0.1], partly_labelled=True
    )
    assert without(new.document(), "labels") == without(direct.document(), "labels")
    assert [rule.threshold_key for rule in new.points] == [rule.threshold_key for rule in direct.points]


def test_what_is_kept_without_texts_makes_the_same_version(old, tmp_path):
    pools, versions = pools_of(300, 3, prefix="r"), []
    for place, texts in enumerate((True, False)):
        with ServiceStore(tmp_path / f"{place}.db", create=True) as store:
            kept = logged(store, old, pools, texts=True, labelled=lambda row: False)
            made = {
                name: one if texts else replace(one, winner=None, question=None, asked=None)
                for name, one in kept.items()
            }
            words = {
                pool.problem.id: [
                    word(pool.problem.id, verdict="right" if is_right(pool, kept[pool.problem.id]) else "wrong")
                ]
                for pool in pools
            }
            versions.append(audited_votes(made.values(), words, old).voted)
    one, other = versions
    assert np.array_equal(one.correct, other.correct)
    policies = [dm.calibrate(voted, alpha=0.1, partly_labelled=True).document() for voted in versions]
    assert policies[0] == policies[1]


def test_true_answers_are_compared_by_the_policys_own_relation(old):
    pool = pools_of(1, 4, start=999, hard=0.0)[0]
    made = replace(decided(old, pool), winner="1000")
    said = {"1,000": True, "1000.0": True, "\\frac{2000}{2}": True, "1001": False}
    for answer, right in said.items():
        found = audited_votes([made], {made.request: [word(made.request, answer=answer)]}, old)
        assert found.labels == {made.request: right}, answer


def test_a_true_answer_without_the_votes_text_says_nothing(old):
    made = replace(decided(old, pools_of(1, 4)[0]), winner=None)
    found = audited_votes([made], {made.request: [word(made.request, answer="1")]}, old)
    assert (found.labels, found.not_comparable) == ({made.request: None}, 1)


def test_the_last_word_that_says_something_counts(old):
    made = decided(old, pools_of(1, 4)[0])

    def label(*words):
        said = [word(made.request, number, **one) for number, one in enumerate(words)]
        return audited_votes([made], {made.request: said}, old).labels[made.request]

    assert label({"verdict": "right"}, {"verdict": "wrong"}) is False
    assert label({"verdict": "wrong"}, {"verdict": "right"}) is True
    assert label({"verdict": "right"}, {"verdict": "unsure"}) is True
    assert label({"verdict": "unsure"}) is None
    assert label({"verdict": "unsure", "answer": made.winner}) is None
    assert label({"verdict": "right", "answer": "-7"}) is False  # it contradicts itself, and makes nothing right
    assert label({"verdict": "right", "answer": "no number at all, nor anything"}) in (True, False)


def test_a_vote_without_any_answer_is_wrong_whatever_people_say(old):
    made = replace(decided(old, pools_of(1, 4)[0]), winner=None, document={"votes": []})
    assert audited_votes([made], {made.request: [word(made.request, verdict="right")]}, old).labels == {
        made.request: False
    }


def test_only_whole_audits_count(old):
    pools = pools_of(4, 5)
    audit, failed, early, other = (decided(old, pool) for pool in pools)
    failed, early = replace(failed, outcome="failed", vote_key=None), replace(early, vote_key=None)
    found = audited_votes([audit, failed, early, replace(other, audit=False)], {}, old)
    assert (found.audited, found.failed, found.voted.ids) == (3, 2, [audit.request])


def test_a_question_that_was_audited_twice_counts_once(old):
    pools = pools_of(50, 6)
    made = [decided(old, pool) for pool in pools]
    again = [replace(one, request=f"{one.request}-again") for one in made[:20]]
    found = audited_votes([*made, *again], {}, old)
    assert (found.questions, found.repeated, len(found.voted)) == (50, 20, 70)


def test_labels_that_are_still_worth_getting_are_counted_from_the_top(old, store):
    pools = pools_of(300, 7, prefix="r")
    made = logged(store, old, pools, labelled=lambda row: False)
    by_key = sorted(made.values(), key=lambda one: one.vote_key, reverse=True)
    by_id = {pool.problem.id: pool for pool in pools}
    store.feedback.give(by_key[0].request, "ann", 5, verdict="right", source="review")
    first = recalibration(store, "sums", alphas=[Fraction(1, 10)])
    assert first.wanted[0] == by_key[1].request
    for start in range(1, 300, 20):
        for one in by_key[start : start + 20]:
            right = is_right(by_id[one.request], one)
            store.feedback.give(one.request, "ann", 5, verdict="right" if right else "wrong", source="review")
        made_now = recalibration(store, "sums", alphas=[Fraction(1, 10)])
        if not made_now.wanted:
            break
    assert made_now.progress[0].errors_to_find == 0
    assert made_now.audits.labelled < 300
    for one in by_key:  # the rest of the labels changes nothing
        store.feedback.give(
            one.request, "bob", 6, verdict="right" if is_right(by_id[one.request], one) else "wrong", source="review"
        )
    full = recalibration(store, "sums", alphas=[Fraction(1, 10)]).new
    assert full.point().threshold_key == made_now.new.point().threshold_key


def test_both_versions_are_compared_on_the_same_audits(old, store):
    pools = pools_of(400, 8, prefix="r")
    made = logged(store, old, pools)
    found = recalibration(store, "sums")
    first = found.comparisons[0]
    rule = old.point(0.05)
    voted = old.vote(PoolSource(pools))
    answered = rule.answers(voted.votes.cases)
    wrong = np.array([not is_right(pool, made[pool.problem.id]) for pool in pools])
    assert (first.votes, first.old.answered, first.old.wrong) == (400, answered.sum(), (answered & wrong).sum())
    held = recalibration(store, "sums", hold_out=0.5)
    assert held.held_out == 200 == held.comparisons[0].votes
    assert held.new.n == 200


def test_audits_of_another_model_are_left_out_unless_a_time_is_given(old, store):
    logged(store, old, pools_of(150, 9, prefix="a"), at=1_000)
    logged(store, old, pools_of(150, 10, prefix="b"), at=3_000)
    store.events.note(2_000, "reported", "Another fingerprint.", policy=1)
    store.events.note(2_500, "alarm", "The questions changed.", policy=1, facts={"monitor": "drift"})
    store.events.note(2_600, "reported", "Of another policy.", policy=2)
    found = recalibration(store, "sums")
    assert (found.audits.audited, found.window.change.words) == (150, "Another fingerprint.")
    assert [alarm.words for alarm in found.window.alarms] == ["The questions changed."]
    assert recalibration(store, "sums", since=0).audits.audited == 300
    assert recalibration(store, "sums", since=0, until=2_000).audits.audited == 150
    with pytest.raises(InvalidValue, match="ends before it begins"):
        window_of(store, [1], 5, 5)


def test_a_canary_alarm_is_a_change_of_the_model(old, store):
    store.events.note(2_000, "alarm", "Old questions come to something else.", policy=1, facts={"monitor": "canaries"})
    assert window_of(store, [1]).since == 2_000


def test_audits_of_other_versions_are_taken_only_where_that_is_said(old, store):
    logged(store, old, pools_of(150, 9, prefix="a"))
    newer = recalibration(store, "sums").new
    row = store.policies.propose("sums", newer.document(), newer.fingerprint, 5)
    pools = pools_of(50, 10, prefix="b")
    store.decisions.add([decided(newer, pool, number=row.policy) for pool in pools])
    store.feedback.give(pools[0].problem.id, "ann", 5, verdict="right", source="review")
    with pytest.warns(InfeasibleWarning):
        assert recalibration(store, "sums", alphas=[Fraction(1, 100)]).audits.audited == 50
    assert recalibration(store, "sums", all_versions=True).audits.audited == 200


def test_what_cannot_be_made_is_said_in_one_line(old, store):
    with pytest.raises(InvalidValue, match="no policy named 'sums'; it has none"):
        recalibration(store, "sums")
    logged(store, old, [])
    with pytest.raises(InvalidValue, match="no audited request"):
        recalibration(store, "sums")
    pools = pools_of(30, 11, prefix="r")
    logged(store, old, pools, labelled=lambda row: False)
    with pytest.raises(InvalidValue, match="none of the 30 audited requests of sums:v1 has a label"):
        recalibration(store, "sums")
    store.feedback.give(pools[0].problem.id, "ann", 5, verdict="right", source="review")
    with pytest.warns(InfeasibleWarning):
        assert not recalibration(store, "sums", alphas=[Fraction(1, 100)]).new.feasible


def test_the_same_kind_of_promise_is_made_for_other_alphas():
    policy = policy_on(pools_of(200, 1), guarantee=[dm.HighProbability(0.1, 0.2)])
    (again,) = guarantees_again(policy, [Fraction(1, 5)])
    assert again == dm.HighProbability(0.2, 0.2)
    assert guarantees_again(policy) == [dm.HighProbability(0.1, 0.2)]
    mixed = policy_on(pools_of(200, 1), guarantee=[dm.HighProbability(0.1, 0.2), dm.Marginal(0.1)])
    with pytest.raises(InvalidValue, match="2 kinds of guarantee"):
        guarantees_again(mixed, [Fraction(1, 5)])


def test_a_policy_that_needs_all_labels_says_nothing_of_the_next_one(old):
    found = audited_votes([decided(old, pool) for pool in pools_of(20, 3)], {}, old)
    assert labels_to_get(found.voted, [dm.Selective(0.1, 0.1)]) == ([], [])


# The promise: audits keep it; what people look at for other reasons does not.

ALPHA, ROUNDS, AUDITS, FRESH = Fraction(1, 10), 150, 120, 200


def _errors(chosen):
    """The rate of confident errors of policies recalibrated on requests that `chosen` picks, and their yield."""
    old = policy_on(pools_of(300, 1), alpha=0.1)
    wrong = answered = 0
    for trial in range(ROUNDS):
        pools = pools_of(AUDITS + FRESH, 1_000 + trial, prefix=f"t{trial}-", hard=0.6)
        traffic, fresh = pools[:AUDITS], pools[AUDITS:]
        made = decided_at_once(old, traffic)
        words = {
            one.request: [word(one.request, verdict="right" if is_right(pool, one) else "wrong")]
            for pool, one in zip(traffic, made, strict=True)
        }
        picked = [one for pool, one in zip(traffic, made, strict=True) if chosen(pool, one)]
        new = dm.calibrate(audited_votes(picked, words, old).voted, alpha=ALPHA, partly_labelled=True)
        decisions = decided_at_once(new, fresh)
        confident = [(pool, one) for pool, one in zip(fresh, decisions, strict=True) if one.outcome == "answered"]
        answered += len(confident)
        wrong += sum(not is_right(pool, one) for pool, one in confident)
    return wrong / (ROUNDS * FRESH), answered / (ROUNDS * FRESH)


def _by_keyed_hash(_pool, one):
    digest = hmac.digest(b"a secret", one.request.encode(), "sha256")
    return int.from_bytes(digest[:8], "big") < 0.5 * 2**64


def _answers_found_right_and_abstentions(pool, one):
    """What comes back without audits: reviews of abstentions, and thanks for right answers; nobody complains."""
    return one.outcome == "abstained" or is_right(pool, one)


TOLERANCE = 0.011
"""Three standard errors of a rate of .1: by about .038 between sets of 60 audits, of which there are 150, and by chance
among the 30,000 questions that they decide."""


def test_recalibrating_on_audits_keeps_the_promise():
    rate, answered = _errors(_by_keyed_hash)
    assert rate <= float(ALPHA) + TOLERANCE
    assert rate >= float(ALPHA) / 2  # an alpha that is spent: abstaining always would fail here
    assert answered > 0.2


def test_recalibrating_on_what_people_review_breaks_it():
    rate, _ = _errors(_answers_found_right_and_abstentions)
    assert rate > float(ALPHA) + 3 * TOLERANCE


def test_careless_feedback_of_callers_moves_no_threshold(old, store):
    """400 requests, each followed by "right": counted, they bring the threshold to 0 and 4 wrong answers in 10."""
    pools = pools_of(800, 12, prefix="r", hard=0.95)
    traffic, fresh = pools[:400], pools[400:]
    made = logged(store, old, traffic, labelled=lambda row: False)
    for request in made:
        store.feedback.give(request, "k0123456789abcdef", 5, verdict="right")
    with pytest.raises(InvalidValue, match=r"has a label from a reviewer \(callers spoke of 400, which does not count"):
        recalibration(store, "sums")

    bent = recalibration(store, "sums", callers=True)
    assert (bent.audits.by_reviewers, bent.audits.by_callers, bent.audits.labelled) == (0, 400, 400)
    given = [one for one in zip(fresh, decided_at_once(bent.new, fresh), strict=True) if one[1].outcome == "answered"]
    assert bent.new.point().threshold == 0.0
    assert sum(not is_right(*one) for one in given) / len(fresh) > 0.35
    for rule in bent.new.points:
        assert "callers of the service" in rule.promise
    assert dm.Policy.of_document(json.loads(json.dumps(bent.new.document()))).labels.callers

    for pool, one in list(zip(traffic, made.values(), strict=True))[::2]:
        store.feedback.give(one.request, "ann", 6, verdict="right" if is_right(pool, one) else "wrong", source="review")
    found = recalibration(store, "sums")
    words = store.feedback.latest(made)
    alone = {request: [said for said in words[request] if said.who == "ann"] for request in words}
    without_callers = dm.calibrate(
        audited_votes(made.values(), alone, old).voted, alpha=[0.05, 0.1], partly_labelled=True
    )
    assert found.new.document() == without_callers.document()
    assert (found.audits.labelled, found.audits.by_callers) == (200, 200)
    assert "callers" not in found.new.point().promise
    given = [one for one in zip(fresh, decided_at_once(found.new, fresh), strict=True) if one[1].outcome == "answered"]
    assert sum(not is_right(*one) for one in given) / len(fresh) < 0.1


def test_a_callers_word_does_not_take_the_place_of_a_reviewers_under_the_same_name(old, store):
    """Without keys both have one name."""
    made = logged(store, old, pools_of(1, 4))
    request = next(iter(made))
    store.feedback.give(request, "anybody", 5, verdict="wrong", source="review")
    store.feedback.give(request, "anybody", 6, verdict="right")
    assert audited_votes(made.values(), store.feedback.latest(made), old).labels[request] is False


def test_a_version_is_data_only(old, store):
    logged(store, old, pools_of(150, 9, prefix="a"))
    document = recalibration(store, "sums").new.document()
    assert dm.Policy.of_document(json.loads(json.dumps(document))).document() == document


def test_a_version_names_the_seeds_of_those_before_it_on_the_same_audits(old, store):
    logged(store, old, pools_of(300, 4, prefix="r"))
    for place, seed in enumerate((0, 1, 0, 2)):
        new = recalibration(store, "sums", hold_out=0.5, seed=seed).new
        earlier = [seeds["hold_out"] for seeds in new.replaced]
        assert earlier == [[], [0], [0, 1], [0, 1]][place]
        if seed < 2:
            store.policies.propose("sums", new.document(), new.fingerprint, place + 2, shadow=True)
