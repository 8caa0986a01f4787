"""On real pools from real models: the mean confident error over 400 random splits is what the exact law says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import demur as dm
from demur.evidence.predictor import predicted_accuracy
from demur.pools.fields import FieldChoice, read_table
from demur.pools.jsonl import read_pools
from demur.pools.labels import read_labels
from demur.pools.splits import one_per_unit, units

MISSING = ("None", "No answer!", "___")

# file, field of the answer, score or none (the majority vote)
CELLS = [
    ("faithfulcot_gsm8k_pool", "answer", None),
    ("mmlupro_answers_all", "answer", None),
    ("mmlupro_text_1in8", "answer", None),
    ("openai_gsm8k_examples", "answer", None),
    ("qwen25math_rm_math100", "answer", None),
    ("qwen25math_rm_math100", "answer", "qwen25_math_rm"),
    ("smollm2_add1", "answer", None),
    ("smollm2_add1", "answer", ".logprob_mean"),
    ("smollm2_cap", "answer", ".logprob_mean"),
    ("smollm2_word1", "answer", ".logprob_mean"),
    ("verifycot_gpt35_date", "answer", None),
    ("wisdom_gpt35_nlu_asdiv_single_answer", "answer_x", None),
    ("zeroeval_gsm8k", "answer_x", None),
    ("zeroeval_math_l5", "answer_x", None),
]

TASKS = {"smollm2_add1": "math", "smollm2_cap": "qa", "smollm2_word1": "math"}
"""Of files that name something else as their task."""


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "field", "score"), CELLS)
def test_mean_confident_error_agrees_with_the_finite_population_law(recorded_pools, name, field, score):
    pools = read_pools(recorded_pools / f"{name}.jsonl.gz")
    table = read_table(pools, FieldChoice(field, score, MISSING, task=TASKS.get(name)))
    rows = one_per_unit(table.ids, units(table.ids, table.clusters, table.questions))
    labels = read_labels(pools, table)
    recipes = {"plain": {}, "jitter": {"tie_break": dm.jitter(1)}}
    if score is not None:
        recipes["secondary"] = {"tie_break": dm.mean_score(), "normaliser": dm.normalisers.pool_z}
    cells = {}
    for recipe, how in recipes.items():
        votes = dm.vote(table.answers, table.scores, ids=table.ids, **how)
        cells[recipe] = (votes.take(rows), labels.of_votes(votes)[rows])
    n_cal = min(200, len(rows) // 2)
    for result in dm.evaluate_splits(cells, alpha=[0.05, 0.1, 0.2], n_cal=n_cal, splits=400, seed=1):
        where = (result.cell, result.alpha)
        assert result.expected_confident_error <= result.alpha, where
        assert result.p_value > 0.01 / 100, where  # about a hundred comparisons in all


# Files with errors enough that the rank, not the file, decides how many are made.
PLENTY = ["mmlupro_answers_all", "mmlupro_text_1in8", "openai_gsm8k_examples", "verifycot_gpt35_date", "smollm2_add1"]


@pytest.mark.real_data
@pytest.mark.parametrize("name", PLENTY)
def test_a_rank_that_is_off_by_one_is_flagged_on_real_pools(recorded_pools, name):
    """Negative control: against the law of the rank above or below, the same splits are far from consistent."""
    pools = read_pools(recorded_pools / f"{name}.jsonl.gz")
    table = read_table(pools, FieldChoice(missing=MISSING, task=TASKS.get(name)))
    rows = one_per_unit(table.ids, units(table.ids, table.clusters, table.questions))
    votes = dm.vote(table.answers, ids=table.ids, tie_break=dm.jitter(1))
    cell = votes.take(rows), read_labels(pools, table).of_votes(votes)[rows]
    n_cal = min(200, len(rows) // 2)
    for result in dm.evaluate_splits({name: cell}, alpha=[0.05, 0.1], n_cal=n_cal, splits=2000, seed=3):
        assert result.p_value > 1e-3
        for shift in (1, -1):
            mutant = replace(result, law=replace(result.law, k=result.law.k + shift))
            assert mutant.p_value < 1e-6, (result.alpha, shift)


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "field", "score"), CELLS)
def test_the_predictor_is_the_empirical_accuracy_and_hazards_recover_survival(recorded_pools, name, field, score):
    pools = read_pools(recorded_pools / f"{name}.jsonl.gz")
    table = read_table(pools, FieldChoice(field, score, MISSING, task=TASKS.get(name)))
    votes = dm.vote(table.answers, table.scores)
    evidence = dm.Evidence.of(votes.key, read_labels(pools, table).of_votes(votes))
    at = dm.Separability.of(evidence)
    closed = predicted_accuracy(at.vote_accuracy, at.survival_right, at.survival_wrong)
    np.testing.assert_allclose(closed, at.selective_accuracy, atol=1e-12)
    hazard = dm.Hazards.of(evidence)
    here = dm.Separability.of(evidence, hazard.edges)
    for rate, survival in ((hazard.hazard_right, here.survival_right), (hazard.hazard_wrong, here.survival_wrong)):
        np.testing.assert_allclose(np.cumprod(1 - np.nan_to_num(rate)), survival, atol=1e-12)


@pytest.mark.real_data
def test_labels_in_the_files_are_refused_as_scores(recorded_pools):
    for name in ("openai_gsm8k_examples", "qwen25math_rm_math100", "verifycot_gpt35_date"):
        pools = read_pools(recorded_pools / f"{name}.jsonl.gz")
        with pytest.raises(ValueError, match="labels cannot be a score"):
            read_table(pools, FieldChoice(score=".correct_src"))
