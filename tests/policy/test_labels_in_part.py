"""What promises about the answers given say of calibrations that know the labels of a part only."""

from __future__ import annotations

import numpy as np
import pytest

import demur as dm
from demur.errors import InvalidValue


@pytest.fixture
def votes():
    rng = np.random.default_rng(0)
    confidence = rng.random(300)
    votes = dm.vote([["a"]] * 300, tie_break=confidence, ids=[str(row) for row in range(300)])
    return votes, (rng.random(300) < 0.4 + 0.6 * confidence).tolist()


def test_a_batch_needs_every_label_and_a_selective_promise_does_with_some(votes):
    held, right = votes
    part = [label if row % 3 else None for row, label in enumerate(right)]
    policy = dm.calibrate(held, part, alpha=0.1, partly_labelled=True)
    new = dm.vote([["a"]] * 20, tie_break=np.linspace(0, 1, 20), ids=[f"new {row}" for row in range(20)])
    with pytest.raises(InvalidValue, match=r"100 of the 300 votes .* have no label"):
        policy.select(new, fdr=0.1)
    in_part = dm.calibrate(held, part, guarantee=dm.Selective(0.2, 0.1), partly_labelled=True)
    in_full = dm.calibrate(held, right, guarantee=dm.Selective(0.2, 0.1))
    assert in_part.point().threshold_key >= in_full.point().threshold_key  # what is not known counts as wrong


def test_a_monitor_of_errors_among_all_questions_is_of_no_promise_about_answers(votes):
    policy = dm.calibrate(*votes, guarantee=dm.Selective(0.2, 0.1))
    with pytest.raises(InvalidValue, match="is about the answers given"):
        dm.monitoring.ErrorMonitor(policy)


def test_a_plan_takes_a_selective_promise_beside_a_marginal_one(votes):
    plan = dm.plan(*votes, guarantee=[dm.Marginal(0.1), dm.Selective(0.2, 0.1)], n=[200])
    assert {row.guarantee.name for row in plan.rows} == {"marginal", "selective"}
