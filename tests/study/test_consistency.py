"""The study's exact laws: what fresh data would do, and the verdict on all its comparisons together."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import pytest

import demur as dm
from demur.calibration.guarantee import RankGuarantee
from demur.evidence.split_law import SplitLaw
from demur.study import read_study, run_study
from demur.study.cells import TIED
from demur.study.protocol import comparisons, fresh_law, inconsistent


def test_fresh_data_have_no_more_errors_than_wrong_votes_with_confidence(found):
    """Mean and deviation both, against draws of V ~ Beta(k, n + 1 − k), its cap and a test; all-null pools are wrong,
    and never answered."""
    method, rng, rows = found.results[0].methods[2], np.random.default_rng(0), np.arange(300)
    point = method.points[0]
    size, k = point.n - point.n_cal, point.guarantee.rank(point.n_cal)
    for silent, wrong in ((0, 120), (0, 25), (105, 120), (30, 30), (29, 30), (10, 0)):
        nu = np.where(rows < silent, 0.0, (rows + 1) / 300)
        fresh = fresh_law(replace(method, evidence=dm.Evidence.of(nu, rows >= wrong)), point)
        rate = np.minimum(rng.beta(k, point.n_cal + 1 - k, 200_000), max(wrong - silent, 0) / 300)
        drawn = rng.binomial(size, rate) / size
        assert fresh.mean == pytest.approx(drawn.mean(), abs=4 * drawn.std() / np.sqrt(len(drawn)) + 1e-12)
        assert fresh.sd == pytest.approx(drawn.std(), rel=0.02, abs=1e-12)


def checked(found, p_values):
    """The study's results with checks that have these p-values instead of their own, in order."""

    @dataclass(frozen=True)
    class Known:
        alpha: float
        z: float
        p_value: float

    given = iter(p_values)
    results = []
    for result in found.results:
        methods = [
            replace(method, checks=[Known(check.alpha, 9.9, next(given)) for check in method.checks])
            for method in result.methods
        ]
        results.append(replace(result, methods=methods))
    return replace(found, results=results)


def test_the_level_of_the_verdict_is_shared_among_all_comparisons(found):
    """Each of twenty is suspected below 0.01 / 20, so that one study in a hundred raises a false alarm."""
    assert comparisons(found.results) == 20
    mild = checked(found, [0.0006] * 20)
    assert inconsistent(mild.results) == []
    assert mild.verdict.startswith("All 20 mean error rates")
    one = checked(found, [0.5] * 19 + [0.0004])
    ((name, point),) = inconsistent(one.results)
    assert (name, point.alpha) == (f"sums / B, large{TIED}", 0.05)
    assert "1 of 20 mean error rates do not agree" in one.verdict
    assert "large, ties by mean score at alpha 0.05 (z = 9.9)" in one.verdict
    alone = [replace(found.results[0], methods=found.results[0].methods[:1])]
    assert comparisons(alone) == 2
    assert len(inconsistent(checked(replace(found, results=alone), [0.004, 0.006]).results)) == 1


def test_the_verdict_is_over_the_many_splits_and_sees_a_rank_that_is_off_by_one(found, folder, monkeypatch):
    for result in found.results:
        for method in result.methods:
            assert {check.splits for check in method.checks} == {400}
            assert {point.splits for point in method.points} == {20}
    assert found.verdict.startswith("All 20")
    for shift in (1, -1):
        monkeypatch.setattr(
            RankGuarantee,
            "law_over_splits",
            lambda self, evidence, n_cal, by=shift: SplitLaw.of(evidence, self.rank(n_cal) + by, n_cal),
        )
        again = run_study(read_study(folder / "study.toml"), figures=())
        assert re.match(r"\d+ of 20 mean error rates do not agree", again.verdict)
