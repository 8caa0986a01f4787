"""On real pools from real models: quiet while questions are drawn at random, loud once they are hard ones."""

from __future__ import annotations

import numpy as np
import pytest

import demur as dm
from demur.monitoring import DriftMonitor, ErrorMonitor
from demur.pools.fields import FieldChoice, read_table
from demur.pools.jsonl import read_pools
from demur.pools.labels import read_labels
from demur.pools.splits import one_per_unit, units

SPLITS = 20
FILES = [("mmlupro_text_1in8", "answer"), ("zeroeval_math_l5", "answer_x"), ("faithfulcot_gsm8k_pool", "answer")]


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "field"), FILES)
def test_random_questions_raise_no_alarm_and_hard_ones_soon_do(recorded_pools, name, field):
    pools = read_pools(recorded_pools / f"{name}.jsonl.gz")
    table = read_table(pools, FieldChoice(field, None, ("None", "No answer!", "___")))
    rows = one_per_unit(table.ids, units(table.ids, table.clusters, table.questions))
    votes = dm.vote(table.answers, ids=table.ids, tie_break=dm.jitter(1))
    right, votes = read_labels(pools, table).of_votes(votes)[rows], votes.take(rows)
    drifts = errors = 0
    for seed in range(SPLITS):
        order = np.random.default_rng(seed).permutation(len(votes))
        policy = dm.calibrate(votes.take(order[:300]), right[order[:300]], alpha=0.1)
        fresh = order[300:]
        drifts += DriftMonitor(policy, delta=0.01, seed=seed).update(votes.take(fresh)).alarm
        audited = policy.decide_votes(votes.take(fresh)).answered & ~right[fresh]
        errors += ErrorMonitor(policy, delta=0.05).update(audited).alarm
        hard = fresh[100:][~right[fresh[100:]]]
        monitor = DriftMonitor(policy, delta=0.01, seed=seed).update(votes.take(fresh[:100]))
        assert not monitor.alarm
        assert monitor.update(votes.take(hard)).alarm_at <= 300, seed
        assert monitor.change == "lower"
    assert drifts <= 2  # three or more of 20 at level 0.01: once in a thousand
    assert errors <= 4
