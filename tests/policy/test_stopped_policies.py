"""Policies under a stopping rule: the promise holds with the same rule in use, for all sizes together, and breaks with
the rule in use alone; pools that were made another way are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

import demur as dm
from demur import stopping
from demur.calibration import Marginal
from demur.descriptions import digest
from demur.errors import InvalidValue, PipelineMismatch, PolicyFileError
from demur.evidence.counts import Evidence, exceeds
from demur.stopping import Stopping
from demur.voting.key import FewerPaths, MorePaths

RULE = stopping.beta(0.95, wave=4)


def drawn_pools(n, seed, n_paths=16):
    return dm.simulate_pools(n, n_paths=n_paths, seed=seed, missing=0.05)


def names(n, start=0):
    return [f"q{row}" for row in range(start, start + n)]


def policy_of(n=400, stop=RULE, **how):
    pools = drawn_pools(n, seed=5)
    votes = dm.vote(pools.answers, ids=names(n), stop=stop, **how)
    return dm.calibrate(votes, pools.is_right(votes.answer), alpha=[0.05, 0.1])


def error_rates(calibrating, in_use, alpha, n=199, of=500, sets=150):
    """Answered wrongly on new questions, for many calibration sets: their pools ended by one rule, new by another."""
    rates = []
    for seed in range(sets):
        old, new = drawn_pools(n, seed), drawn_pools(of, 10_000 + seed)
        tie = ["jitter:0"]
        first = dm.vote(old.answers, ids=names(n), stop=calibrating, tie_break=tie)
        second = dm.vote(new.answers, ids=names(of, n), stop=in_use, tie_break=tie)
        threshold = Marginal(alpha).settle(Evidence.of(first.key, old.is_right(first.answer))).threshold_key
        rates.append((exceeds(second.key, threshold) & ~new.is_right(second.answer)).mean())
    return np.array(rates)


@pytest.mark.parametrize("stop", [RULE, stopping.agreement(3, wave=1), stopping.beta("0.6", wave=2)], ids=str)
@pytest.mark.parametrize("alpha", [0.1, 0.05])
def test_with_the_same_rule_in_use_the_mean_error_is_that_of_the_law(stop, alpha):
    """k/(n + 1) = alpha at n = 199, whatever the rule, greedy ones included; within four standard errors."""
    rates = error_rates(stop, stop, alpha)
    assert abs(rates.mean() - alpha) < 4 * rates.std(ddof=1) / len(rates) ** 0.5


@pytest.mark.parametrize("alpha", [0.1, 0.05])
def test_a_greedy_rule_in_use_alone_breaks_the_promise(alpha):
    """The negative control: thresholds of whole pools, new pools ended early; far above alpha, not by chance."""
    rates = error_rates(None, stopping.beta("0.6", wave=2), alpha)
    assert rates.mean() - alpha > 10 * rates.std(ddof=1) / len(rates) ** 0.5
    assert rates.mean() > 1.3 * alpha


def test_leaving_one_out_of_every_small_bag_keeps_the_promise_over_all_sizes():
    """Read literally, in fractions: of any bag of stopped pools, hold out each in turn and calibrate on the others; the
    share of members answered wrongly is at most alpha, with one threshold for pools of two, four and six paths."""
    rng = np.random.default_rng(3)
    stop = stopping.agreement(2, wave=2)
    for _ in range(60):
        codes = np.where(rng.random((10, 6)) < 0.6, 0, rng.integers(-1, 3, (10, 6)))
        votes = dm.vote(codes, ids=names(10), stop=stop)
        right = rng.random(10) < 0.6
        right &= votes.has_answer
        for alpha in ("0.1", "0.2", "0.3"):
            wrong = 0
            for out in range(10):
                rest = np.delete(np.arange(10), out)
                policy = dm.calibrate(votes.take(rest), right[rest], alpha=alpha, strict=True)
                decided = policy.decide_votes(votes.take([out]))
                wrong += bool(decided.answered[0]) and not right[out]
            assert Fraction(wrong, 10) <= Fraction(alpha)


def test_one_threshold_serves_all_sizes_and_sizes_that_calibration_did_not_see():
    policy = policy_of()
    assert policy.strata.by_chance
    assert policy.sizes.keys() == {4, 8, 12, 16}
    assert all(not rule.by_size for rule in policy.points)
    easy = np.zeros((30, 16), dtype=np.int64)  # all end after four paths
    votes = dm.vote(easy, ids=names(30), stop=RULE)
    right = np.arange(30) % 10 > 0
    narrow = dm.calibrate(votes, right, alpha=0.2)
    assert (set(narrow.sizes), narrow.n_paths, narrow.told_sizes) == ({4}, 16, "4 to 16")
    late = [0, 1, 0, 1, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    size = narrow.stopping.size(late)
    assert size > 4
    assert narrow.decide(np.array(late[:size]), id="late").n_paths == size


def test_without_a_rule_sizes_that_vary_have_thresholds_of_their_own():
    """What the rule spares: the same pools, whose sizes nobody says a rule made."""
    pools = drawn_pools(400, seed=5)
    sizes = RULE.at_most(16).sizes(pools.answers)
    keys = [[None if code < 0 else code for code in row[:size]] for row, size in zip(pools.answers, sizes, strict=True)]
    votes = dm.vote(keys, ids=names(400))
    apart = dm.calibrate(votes, np.array([gold == won for gold, won in zip(pools.gold, votes.winners, strict=True)]),
                         alpha=0.1)  # fmt: skip
    assert apart.points[0].by_size


def test_votes_of_whole_pools_are_refused_and_so_are_stopped_ones_by_a_policy_of_whole_pools():
    new = drawn_pools(50, seed=9)
    stopped, whole = policy_of(), policy_of(stop=None)
    by_rule = dm.vote(new.answers, ids=names(50, 1000), stop=RULE)
    by_other = dm.vote(new.answers, ids=names(50, 1000), stop=stopping.beta(0.9, wave=4))
    in_other_waves = dm.vote(new.answers, ids=names(50, 1000), stop=stopping.beta(0.95, wave=2))
    of_fewer = dm.vote(new.answers[:, :12], ids=names(50, 1000), stop=RULE)
    of_all = dm.vote(new.answers, ids=names(50, 1000))
    stopped.decide_votes(by_rule)
    whole.decide_votes(of_all)
    refused = [(stopped, of_all), (stopped, by_other), (stopped, in_other_waves), (stopped, of_fewer), (whole, by_rule)]
    for policy, votes in refused:
        with pytest.raises(PipelineMismatch, match=r"sampling\.stopping"):
            policy.decide_votes(votes)


def test_a_single_pool_that_the_rule_would_have_ended_elsewhere_is_refused():
    policy = policy_of()
    four, eight = np.zeros(4, dtype=np.int64), np.array([0, 1, 0, 1, 0, 0, 0, 0])
    assert policy.decide(four, id="new").n_paths == 4
    with pytest.raises(PipelineMismatch, match="and of these 16 paths its first 4"):
        policy.decide(np.zeros(16, dtype=np.int64), id="new")
    with pytest.raises(PipelineMismatch, match="and of these 8 paths more than that"):
        policy.decide(eight, id="new")
    with pytest.raises(PipelineMismatch, match="n_paths is 4 to 16 in the policy, 3 in this pool"):
        policy.decide(four[:3], id="new")


def test_a_policy_is_read_back_with_its_rule_and_a_file_that_contradicts_itself_is_refused(tmp_path):
    policy = policy_of()
    policy.save(tmp_path / "policy.json")
    again = dm.Policy.load(tmp_path / "policy.json")
    assert (again.stopping, again.strata.reach, again.fingerprint) == (RULE.at_most(16), (4, 16), policy.fingerprint)
    assert "Paths are drawn in waves of 4 until beta@1:0.95 stops, at most 16" in again.summary()
    document = policy.document()
    assert document["pipeline"]["sampling"]["stopping"] == {"rule": "beta@1:0.95", "wave": 4, "most": 16}
    apart = json.loads(json.dumps(document)) | {"sizes_by_chance": False}
    with pytest.raises(PolicyFileError, match="makes its sizes, and it keeps them apart"):
        dm.Policy.of_document(apart)
    for told, said in (({"rule": "beta@1:0.95", "wave": 4, "most": 8}, "its stopping rule is"), ("beta", "must have")):
        other = json.loads(json.dumps(document))
        other["pipeline"]["sampling"]["stopping"] = told
        other["fingerprint"] = digest(other["pipeline"])
        with pytest.raises(PolicyFileError, match=said):
            dm.Policy.of_document(other)


@pytest.mark.parametrize("part", [FewerPaths, MorePaths])
def test_four_of_four_and_sixteen_of_sixteen_are_ordered_by_a_declared_rule(part):
    """By default the sooner ended comes first; either order is stored, and jitter breaks what ties remain."""
    codes = np.zeros((2, 16), dtype=np.int64)
    codes[1, :3] = [1, 1, -1]
    votes = dm.vote([[0] * 4, [0] * 16], ids=["a", "b"], tie_break=[part(), "jitter:0"])
    assert votes.confidence.tolist() == [1.0, 1.0]
    first, second = votes.key.tolist()
    assert (first > second) is (part is FewerPaths)
    assert votes.recipe.describe()["tie_break"] == [part.spec, "jitter@3:0"]
    stopped = dm.vote(codes, ids=["a", "b"], stop=stopping.agreement(4))
    assert stopped.n_paths.tolist() == [4, 8]
    assert [component.name for component in stopped.recipe.key] == ["share", "fewer_paths", "jitter"]
    assert stopped.key[:, 1].tolist() == [-4.0, -8.0]


def test_one_pool_has_the_key_that_it_has_in_a_table():
    policy, new = policy_of(), drawn_pools(60, seed=11)
    votes = dm.vote(new.answers, ids=names(60, 2000), stop=RULE)
    for row, decision in enumerate(policy.decide_votes(votes)):
        single = policy.decide(new.answers[row, : votes.n_paths[row]], id=votes.ids[row])
        assert (single.answer, single.key, single.p_value) == (decision.answer, decision.key, decision.p_value)


@pytest.mark.parametrize("weight", [dm.exponential(), dm.uniform()], ids=str)
def test_scores_columns_and_sources_are_cut_with_the_pools(weight):
    """A vote on cut pools is the vote on the pools that were cut by hand."""
    pools = drawn_pools(80, seed=2)
    sizes = RULE.at_most(16).sizes(pools.answers).tolist()
    more = {"other": (pools.scores * 2).tolist()}
    how = {"weight": weight, "normaliser": dm.normalisers.pool_z, "ids": names(80), "tie_break": ["mean_score:other"]}
    stopped = dm.vote(pools.answers, pools.scores, columns=more, stop=RULE, **how)
    keys = [[None if code < 0 else code for code in row[:size]]
            for row, size in zip(pools.answers.tolist(), sizes, strict=True)]  # fmt: skip
    cut = [[row[:size] for row, size in zip(column, sizes, strict=True)] for column in (pools.scores, more["other"])]
    by_hand = dm.vote(keys, cut[0], columns={"other": cut[1]}, **how)
    assert np.array_equal(stopped.key, by_hand.key)
    assert [-1 if won is None else won for won in by_hand.winners] == stopped.winners.tolist()
    assert stopped[7].support == {int(key): paths for key, paths in by_hand[7].support.items()}


def test_pools_that_end_before_the_rule_does_are_refused_or_left_out():
    pools = [[0, 1, 0, 1] * 4, [0] * 4, [0, 1, 0], [0] * 16]
    with pytest.raises(InvalidValue, match=r"1 of 4 pools have fewer paths .*: 'q2' has 3"):
        dm.vote(pools, ids=names(4), stop=RULE.at_most(16))
    source = dm.PoolSource([
        dm.Pool(dm.Problem(f"p{at}", f"q{at}", ("0",)), tuple(dm.Path(str(key)) for key in pool))
        for at, pool in enumerate(pools)
    ])  # fmt: skip
    with pytest.raises(InvalidValue, match="'p2' has 3"):
        source.stopped_by(RULE.at_most(16))
    said = []
    kept = source.stopped_by(RULE.at_most(16), partial=True, say=said.append)
    assert [pool.problem.id for pool in kept.pools] == ["p0", "p3"], "short ones are left out, whatever they say"
    assert ([len(pool.paths) for pool in kept.pools], kept.left_out) == ([16, 4], 2)
    assert "2 of 4 pools end before" in said[0]


def test_whole_pools_have_as_many_paths_as_the_largest_and_none_is_cut_in_silence():
    """Most pools that a rule drew are short, and say nothing of how many paths there might have been."""
    pools = [[0] * 4] * 3 + [[0, 1] * 8]
    votes = dm.vote(pools, ids=names(4), stop=RULE)
    assert (votes.stopping.most, votes.n_paths.tolist()) == (16, [4, 4, 4, 16])


@pytest.mark.parametrize("scorer", [{"scorer": "self-consistency"}, {"scorer": "a plugin's"}], ids=str)
def test_a_score_of_whole_pools_breaks_no_tie_on_replay(scorer):
    """Its numbers are made of paths that the rule would not have drawn."""
    paths = tuple(dm.Path("0", scores={"sc": 0.5, "mine": 0.1}) for _ in range(16))
    pools = [dm.Pool(dm.Problem(f"p{at}", f"q{at}", ("0",)), paths) for at in range(3)]
    ended = dm.PoolSource(pools, scorers={"sc": scorer}).stopped_by(RULE)
    for broken in ("mean_score:sc", "mean_score:mine"):
        recipe = ended.recipe(tie_break=broken)
        if broken.endswith("sc"):
            with pytest.raises(InvalidValue, match="'sc' looks at all paths of a pool"):
                dm.vote_pools(ended, recipe=recipe)
        else:
            assert len(dm.vote_pools(ended, recipe=recipe)) == 3


def test_a_cascade_takes_whole_pools():
    pools = drawn_pools(100, seed=1)
    votes = [dm.vote(pools.answers, ids=names(100), stop=stop) for stop in (RULE, None)]
    stages = [dm.Stage(name, one, pools.is_right(one.answer)) for name, one in zip(("a", "b"), votes, strict=True)]
    with pytest.raises(InvalidValue, match="a cascade takes whole pools"):
        dm.calibrate_cascade(stages, alpha=0.1)


def test_the_order_of_problems_changes_nothing():
    codes = drawn_pools(4, seed=8).answers
    keys = {tuple(sorted(map(tuple, dm.vote(codes[list(order)], stop=RULE).key.tolist())))
            for order in permutations(range(4))}  # fmt: skip
    assert len(keys) == 1


def test_a_description_names_the_rule_and_fixed_names_none():
    codes = drawn_pools(5, seed=8).answers
    assert dm.vote(codes, stop=RULE).stopping == Stopping(RULE.rule, 4, 16)
    assert dm.vote(codes, stop=stopping.fixed()).description == dm.vote(codes).description
    assert replace(RULE, wave=3) != RULE
