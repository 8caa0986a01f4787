"""Drift of keys: p-values by counting, false alarms within their level, shifts found, and what must fail fails."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import demur as dm
from demur.errors import InvalidValue, MonitorFileError, PipelineMismatch
from demur.monitoring import DriftMonitor, cells, drift
from demur.monitoring.cells import Cells
from demur.voting.key import Column
from monitored import drawn, keys, policy_of, same, votes_of

DELTA, RUNS = 0.1, 300
TOO_MANY = int(stats.binom.isf(1e-6, RUNS, DELTA))
"""A monitor that keeps its level has more alarms than this once in a million."""


@pytest.fixture
def p_values(monkeypatch):
    """The p-values that are bet on, as they come."""
    bet_on, factors = [], drift._factors

    def noting(p):
        bet_on.extend(np.ravel(p).tolist())
        return factors(p)

    monkeypatch.setattr(drift, "_factors", noting)
    return bet_on


def by_counting(calibrated, stream, uniforms):
    """The definition, in O(n²): places among all keys before, those of one gap between calibration keys alike."""
    edges = sorted((*key, uniforms[-1 - row]) for row, key in enumerate(sorted(map(tuple, calibrated))))
    p_values, gaps = [], [1] * (len(edges) + 1)
    for at, key in enumerate(map(tuple, stream)):
        gap = sum(edge < (*key, uniforms[2 * at]) for edge in edges)
        p_values.append((sum(gaps[gap + 1 :]) + uniforms[2 * at + 1] * gaps[gap]) / sum(gaps))
        gaps[gap] += 1
    return p_values


@pytest.mark.parametrize("decimals", [1, 12])
def test_p_values_are_what_counting_says(p_values, decimals):
    second, right = drawn(0, n=60)
    second, stream = second.round(decimals), np.random.default_rng(1).random(200).round(decimals)
    monitor = DriftMonitor(policy_of(second, right), seed=5).update(keys(stream))
    assert p_values == by_counting(keys(second), keys(stream), monitor._uniforms)


@pytest.mark.parametrize("most", [2, 3, 256])
def test_cells_of_the_stream_have_their_exact_law_over_all_orders(most, monkeypatch):
    """Six keys, three of which calibrate: over all 720 orders each cell is met as often as its places say."""
    monkeypatch.setattr(cells, "MOST_CELLS", most)
    seen = []
    for order in itertools.permutations([[0.1], [0.2], [0.3], [0.4], [0.5], [0.6]]):
        counted = Cells(np.array(order[:3]))
        met, stream = [], cells.ordered_bytes(np.array(order[3:]))
        for key in stream:
            before = counted.counts
            counted.add(key)
            met.append(int(np.argmax(np.array(counted.counts) - before)))
        seen.append(tuple(met))
    gaps = Cells(np.array([[0.1], [0.2], [0.3]])).gaps
    assert sum(gaps) == 4
    for met in itertools.product(range(len(gaps)), repeat=3):
        chance = Fraction(1)
        for at, cell in enumerate(met):
            chance *= Fraction(gaps[cell] + met[:at].count(cell), 4 + at)
        assert Fraction(seen.count(met), 720) == chance


@pytest.mark.parametrize("decimals", [1, 12])
def test_p_values_are_uniform_and_independent_ties_or_not(p_values, decimals):
    second, right = drawn(2, n=100)
    DriftMonitor(policy_of(second.round(decimals), right)).update(
        keys(np.random.default_rng(3).random(4000).round(decimals))
    )
    assert stats.kstest(p_values, "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(p_values[1:], p_values[:-1])[0, 1]) < 5 / np.sqrt(4000)


def alarms(n=60, stream=400, runs=RUNS):
    """Runs without any drift that sound an alarm, over calibration sets too."""
    count = 0
    for seed in range(runs):
        second, right = drawn(seed, n=n)
        fresh = np.random.default_rng(10_000 + seed).random(stream)
        count += DriftMonitor(policy_of(second, right), delta=DELTA, seed=seed).update(keys(fresh)).alarm
    return count


def test_false_alarms_are_as_rare_as_promised_but_not_impossible():
    assert 0 < alarms() <= TOO_MANY


def test_ranks_among_the_calibration_keys_alone_break_the_promise(monkeypatch):
    """The negative control: p-values that share one fixed reference are dependent."""

    def without_the_stream(self, keys):
        below = np.array([sum(edge < key for edge in self._edges) for key in keys])
        return len(self._edges) - below, 1 + 0 * below, len(self._edges) + 1 + 0 * below

    monkeypatch.setattr(Cells, "add_many", without_the_stream)
    assert alarms(n=30, stream=1500, runs=RUNS) > TOO_MANY


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_part_of_the_traffic_that_was_marked_on_arrival_is_enough(share):
    """Marks know nothing of keys: the level holds; and a shift is found after about as many keys of the part."""
    count, delays = 0, []
    for seed in range(RUNS // 2):
        rng = np.random.default_rng(20_000 + seed)
        traffic = rng.random(round(300 / share))
        marked = traffic[rng.random(len(traffic)) < share]
        policy = policy_of(*drawn(seed, n=60))
        count += DriftMonitor(policy, delta=DELTA, seed=seed).update(keys(marked)).alarm
        delays.append(DriftMonitor(policy, delta=DELTA, seed=seed).update(keys(marked**3)).alarm_at or np.inf)
    assert count <= stats.binom.isf(1e-6, RUNS // 2, DELTA)
    assert np.median(delays) < 60


def test_the_part_of_the_traffic_that_was_not_stopped_early_is_not_enough():
    """The negative control: sampling stops early where votes are clear, so that what is drawn whole is contested."""
    count = 0
    for seed in range(60):
        traffic = np.random.default_rng(seed).random(400)
        count += DriftMonitor(policy_of(*drawn(seed, n=200)), delta=DELTA).update(keys(traffic[traffic < 0.6])).alarm
    assert count > 50


@pytest.mark.parametrize(("order", "kept"), [(np.random.default_rng(0).permutation, True), (np.sort, False)])
def test_any_order_will_do_that_does_not_depend_on_the_keys(order, kept):
    """Replicas may add keys in another order than they came in; but not the clear ones first, which are done first."""
    count = 0
    for seed in range(100):
        fresh = np.random.default_rng(10_000 + seed).random(400)
        count += DriftMonitor(policy_of(*drawn(seed, n=60)), delta=DELTA, seed=seed).update(keys(order(fresh))).alarm
    assert (count <= stats.binom.isf(1e-6, 100, DELTA)) == kept


def test_what_it_keeps_does_not_grow_with_the_stream():
    policy = policy_of(*drawn(0, n=1000))
    monitor = DriftMonitor(policy).update(keys(np.random.default_rng(1).random(100_000)))
    counts = monitor.state()["cells"]["0"]
    assert len(counts) == cells.MOST_CELLS
    assert sum(counts) == 100_000
    most = monitor.document()
    most["state"]["cells"]["0"] = [10**12] * cells.MOST_CELLS  # a billion years
    assert len(json.dumps(most)) < 5000


def test_coarse_cells_find_a_shift_as_soon_as_fine_ones(monkeypatch):
    delays = {}
    for most in (64, 256, 100_000):
        monkeypatch.setattr(cells, "MOST_CELLS", most)
        policy = policy_of(*drawn(0, n=2000))
        found = [
            DriftMonitor(policy, seed=seed).update(keys(np.random.default_rng(seed).random(2000) ** 1.5)).alarm_at
            for seed in range(20)
        ]
        delays[most] = np.median(found)
    assert max(delays.values()) <= 1.1 * min(delays.values())


@pytest.mark.parametrize(
    ("shifted", "change"),
    [
        (lambda u: u**2, "lower"),
        (lambda u: np.sqrt(u), "higher"),
        (lambda u: 0.5 + (u - 0.5) * 0.4, "drawn together"),
        (lambda u: np.where(u < 0.5, 4 * u**3, 1 - 4 * (1 - u) ** 3), "spread out"),
    ],
)
def test_shifts_of_every_kind_are_found_soon(shifted, change):
    found = []
    for seed in range(20):
        second, right = drawn(seed, n=400)
        rng = np.random.default_rng(500 + seed)
        monitor = DriftMonitor(policy_of(second, right), delta=0.01).update(keys(rng.random(500)))
        before = monitor.alarm
        monitor.update(keys(shifted(rng.random(400))))
        found.append(monitor.alarm and not before and monitor.change == change)
    assert sum(found) >= 18


def test_a_shift_after_a_long_time_is_found_too():
    second, right = drawn(0, n=400)
    rng = np.random.default_rng(1)
    monitor = DriftMonitor(policy_of(second, right), delta=0.01).update(keys(rng.random(30_000)))
    assert not monitor.alarm
    monitor.update(keys(rng.random(600) ** 2))
    assert 30_000 < monitor.alarm_at < 30_300


def test_one_by_one_in_batches_and_after_a_pause_is_the_same(tmp_path):
    policy = policy_of(*drawn(0))
    stream = keys(np.random.default_rng(1).random(300) ** 1.5)
    whole, single, paused = (DriftMonitor(policy, seed=9) for _ in range(3))
    whole.update(stream)
    for key in stream:
        single.update(key)
    for start in range(0, 300, 70):
        paused.update(stream[start : start + 70])
        paused.save(tmp_path / "drift.json")
        paused = DriftMonitor.load(tmp_path / "drift.json", policy)
    assert same(whole, single)
    assert same(whole, paused)
    assert (whole.n, whole.log_e, whole.p_value) == (300, paused.log_e, paused.p_value)


def test_the_order_of_calibration_rows_does_not_matter():
    second, right = drawn(0)
    order = np.random.default_rng(1).permutation(200)
    stream = keys(np.random.default_rng(2).random(100))
    assert same(
        DriftMonitor(policy_of(second, right)).update(stream),
        DriftMonitor(policy_of(second[order], right[order])).update(stream),
    )


def test_votes_are_taken_as_they_are_and_refused_when_made_another_way():
    policy = policy_of(*drawn(0))
    fresh = np.random.default_rng(1).random(50)
    assert same(DriftMonitor(policy).update(votes_of(fresh)), DriftMonitor(policy).update(keys(fresh)))
    with pytest.raises(PipelineMismatch):
        DriftMonitor(policy).update(dm.vote([["a"]] * 3))


def test_keys_of_one_number_come_as_numbers():
    rng = np.random.default_rng(0)
    votes = dm.vote([list(row) for row in rng.choice(list("aaab"), (100, 5))], ids=range(100), tie_break="none")
    policy = dm.calibrate(votes, rng.random(100) < 0.7, alpha=0.2)
    stream = np.random.default_rng(1).choice([0.6, 0.8, 1.0], 50)
    one = DriftMonitor(policy).update(stream)
    other = DriftMonitor(policy)
    for confidence in stream.tolist():
        other.update(confidence)
    assert same(one, other)


def of_two_sizes(**how):
    second, right = drawn(3)
    answers = [["a"] * 4] * 100 + [["a"] * 6] * 100
    votes = dm.vote(
        answers,
        tie_break=(Column(np.where(np.arange(200) < 100, second, second - 1)), "none"),
        ids=list(map(str, range(200))),
    )
    return dm.calibrate(votes, right, alpha=0.2, **how)


def test_sizes_that_are_kept_apart_may_occur_as_they_like(tmp_path):
    """Keys of six paths lie below those of four; a stream of six alone is no drift among pools of its own size."""
    policy = of_two_sizes()
    stream = keys(np.random.default_rng(1).random(600) - 1)
    monitor = DriftMonitor(policy).update(stream, np.full(600, 6))
    assert not monitor.alarm
    monitor.save(tmp_path / "drift.json")
    assert same(DriftMonitor.load(tmp_path / "drift.json", policy), monitor)
    assert DriftMonitor(of_two_sizes(sizes_by_chance=True)).update(stream).alarm  # there it is
    with pytest.raises(
        InvalidValue, match=r"keeps pools of 4 or 6 paths apart, and keys come without sizes; give n_paths"
    ):
        DriftMonitor(policy).update(stream)
    with pytest.raises(InvalidValue, match="n_paths must hold one size per key, 600 of them"):
        DriftMonitor(policy).update(stream, [6])
    with pytest.raises(InvalidValue, match="n_paths must be a count"):
        DriftMonitor(policy).update(stream[0], [6.5])


@given(st.integers(0, 10**6), st.lists(st.integers(0, 600), max_size=4), st.sampled_from([1, 12]))
@settings(max_examples=40, deadline=None)
def test_batches_of_any_size_are_single_keys_one_after_another_to_the_last_bit(seed, batches, decimals):
    """Ties or none, and pools of two sizes and of one that calibration never saw."""
    rng, policy = np.random.default_rng(seed), of_two_sizes()
    in_batches, single = DriftMonitor(policy, seed=seed), DriftMonitor(policy, seed=seed)
    for count in batches:
        rows, sizes = keys(rng.random(count).round(decimals)).reshape(-1, 2), rng.choice([4, 6, 9], count)
        in_batches.update(rows, sizes)
        for row, size in zip(rows, sizes, strict=True):
            single.update(row, [size])
        assert vars(in_batches.stakes) == vars(single.stakes)
    assert same(in_batches, single)


def test_a_size_that_calibration_never_saw_says_nothing():
    policy = of_two_sizes()
    monitor = DriftMonitor(policy).update(keys(np.random.default_rng(1).random(300) / 9), np.full(300, 9))
    assert (monitor.log_e, monitor.n) == (pytest.approx(0), 300)
    assert same(DriftMonitor.of_document(monitor.document(), policy), monitor)


def test_sizes_do_not_share_the_draws_that_tell_equal_keys_apart():
    """They would know of each other's: with every key equal, draws are all there is."""
    answers = [["a"] * 4] * 30 + [["a"] * 6] * 30
    count = 0
    for seed in range(RUNS):
        votes = dm.vote(answers, tie_break="none", ids=list(map(str, range(60))))
        policy = dm.calibrate(votes, np.arange(60) % 3 > 0, alpha=0.2)
        monitor = DriftMonitor(policy, delta=DELTA, seed=seed).update(np.ones(300), [4, 6] * 150)
        one, other = (part._edges for part in monitor._cells.values())
        assert not set(one) & set(other)
        count += monitor.alarm
    assert count <= TOO_MANY


def test_where_promises_are_per_group_another_mix_of_groups_is_drift_and_said_to_be():
    pools = dm.simulate_pools(400, n_paths=8, seed=0)
    votes = dm.vote(
        pools.answers, ids=list(map(str, range(400))), groups=["hard" if row % 2 else "easy" for row in range(400)]
    )
    policy = dm.calibrate(dm.VotedPools.of(votes, gold=pools.gold), guarantee=dm.Grouped(dm.Marginal(0.2)))
    low = np.sort(votes.key[:, 0])[: len(votes) // 2]
    monitor = DriftMonitor(policy).update(np.column_stack([np.tile(low, 2), np.random.default_rng(0).random(400)]))
    assert monitor.alarm
    assert "It may be that groups occur in another mix" in monitor.sentence


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ([[1.0, float("nan")]], "hold no NaN, got \\(1.0, nan\\)"),
        ([[float("nan"), 0.5]], "a confidence in \\[0, 1\\]"),
        ([[1.5, 0.5]], "got \\(1.5, 0.5\\)"),
        ([[0.5, float("inf")]], "got \\(0.5, inf\\)"),
        ([0.5], "hold 2 numbers each, got an array of shape \\(1, 1\\)"),
        ([[1.0, 0.5, 0.5]], "hold 2 numbers each"),
        ("high", "keys must be numbers, got 'high'"),
    ],
)
def test_keys_that_are_none_are_refused_before_any_is_taken(odd, said):
    monitor = DriftMonitor(policy_of(*drawn(0)))
    with pytest.raises(InvalidValue, match=said):
        monitor.update(odd)
    assert monitor.n == 0


@pytest.mark.parametrize("delta", [0, 1, -0.1, float("nan"), "0.1", True, None])
def test_a_level_lies_between_zero_and_one(delta):
    with pytest.raises(InvalidValue, match="delta must be a number strictly between 0 and 1, got"):
        DriftMonitor(policy_of(*drawn(0)), delta=delta)


def test_it_says_what_it_found_and_what_that_does_not_mean():
    monitor = DriftMonitor(policy_of(*drawn(0)), delta=0.05)
    assert monitor.sentence == (
        "No drift found in 0 keys (p = 1, alarm at 0.05). This says nothing of errors that leave the keys as they were."
    )
    monitor.update(keys(np.random.default_rng(1).random(200) / 4))
    assert monitor.sentence.startswith(f"Keys have drifted: alarm at key {monitor.alarm_at} of 200 (p = ")
    assert "they lie lower" in monitor.sentence


def started(at, n=600, seed=0, shift=lambda second: second / 2):
    """A monitor of a stream whose keys change with one of them; and what it was, one key at a time."""
    rng = np.random.default_rng(seed)
    second = np.concatenate([rng.random(at), shift(rng.random(n - at))])
    return DriftMonitor(policy_of(*drawn(seed)), seed=seed).update(keys(second)), second


@pytest.mark.parametrize(
    ("shift", "said"),
    [
        (lambda second: second / 2, "lower"),
        (lambda second: (1 + second) / 2, "higher"),
        (lambda second: (1 + second) / 3, "drawn together"),
        (np.round, "spread out"),
    ],
)
def test_the_key_that_a_change_began_with_is_estimated(shift, said):
    off = []
    for seed in range(20):
        monitor, _ = started(300, seed=seed, shift=shift)
        assert monitor.change == said
        assert 0 < monitor.change_from <= monitor.alarm_at
        off.append(monitor.change_from - 301)
    assert np.median(np.abs(off)) <= 20
    assert np.quantile(np.abs(off), 0.8) <= 60


def test_the_estimate_is_the_same_key_after_key_and_stays_after_the_alarm():
    monitor, second = started(300)
    one = DriftMonitor(monitor.policy)
    for key in keys(second):
        one.update([key])
        if not one.alarm:
            assert one.change_from is None
    assert same(one, monitor)
    before = monitor.change_from
    assert monitor.update(keys(np.zeros(100))).change_from == before
    assert f"they lie lower, probably from key {before} on" in monitor.sentence


def test_a_file_from_before_leans_were_kept_is_read_and_looks_from_there_on():
    quiet, _ = started(300, n=300)
    document = quiet.document()
    del document["state"]["leans"]
    monitor = DriftMonitor.of_document(document, quiet.policy)
    assert set(monitor.starts.values()) == {301}
    monitor.update(keys(np.random.default_rng(5).random(300) / 2))
    assert 301 <= monitor.change_from <= monitor.alarm_at


@pytest.mark.parametrize("leans", [3, [[0, 0, 0]], [[0.0, 1.0, 0]] * 4, [[0.0, 0.0, 900]] * 4, [["a", 0, 0]] * 4])
def test_leans_that_cannot_be_are_refused(leans):
    quiet, _ = started(300, n=300)
    document = quiet.document()
    document["state"]["leans"] = leans
    with pytest.raises(MonitorFileError, match="its leans"):
        DriftMonitor.of_document(document, quiet.policy)
