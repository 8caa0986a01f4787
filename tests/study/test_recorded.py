"""The study's protocol on every file of recorded pools: the exact law and the identities hold on each."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import demur as dm
from demur.evidence.predictor import predicted_accuracy

_SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "results.py"
_SPEC = importlib.util.spec_from_file_location("results_page", _SCRIPT)
assert _SPEC is not None
assert _SPEC.loader is not None
results_page = importlib.util.module_from_spec(_SPEC)
sys.modules["results_page"] = results_page
_SPEC.loader.exec_module(results_page)


@pytest.mark.real_data
@pytest.mark.parametrize("recorded", results_page.FILES, ids=lambda each: each.file)
def test_the_exact_law_and_the_identities_hold(recorded_pools, recorded):
    result = results_page.cell_of(recorded_pools, recorded)
    for method in result.methods:
        for check in method.checks:
            assert check.p_value > 0.01 / 132, (method.name, check.alpha, check.z)  # so many in all files
        table = dm.Separability.of(method.evidence)
        some = table.answered > 0
        closed = predicted_accuracy(table.vote_accuracy, table.survival_right, table.survival_wrong)
        assert np.abs(closed - table.selective_accuracy)[some].max() < 1e-12
        error = (1 - table.selective_accuracy[some]) * table.answered[some]
        assert np.abs(error - table.confident_error[some]).max() < 1e-12
        hazards = dm.Hazards.of(method.evidence)
        at = np.searchsorted(table.threshold, hazards.edges)
        survival = np.cumprod(1 - np.nan_to_num(hazards.hazard_wrong))
        assert np.abs(survival - table.survival_wrong[at]).max() < 1e-12
