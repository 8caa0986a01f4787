"""On real pools from real models: given abstention, answer sets hold what is right as often as promised."""

from __future__ import annotations

import numpy as np
import pytest

import demur as dm
from demur.calibration.answer_sets import right_places

SPLITS, N = 40, 300
CELLS = [
    ("mmlupro_text_1in8", "answer", 0.1),
    ("zeroeval_math_l5", "answer_x", 0.2),
    ("openai_gsm8k_examples", "answer", 0.1),  # where paths hold no right answer too often
    ("faithfulcot_gsm8k_pool", "answer", 0.3),
]


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "field", "level"), CELLS)
def test_sets_cover_those_abstained_from_and_are_smaller_than_the_pool(recorded_pools, name, field, level):
    fields = dm.FieldChoice(field, missing=("None", "___"))
    voted = dm.vote_pools(dm.read_pools(recorded_pools / f"{name}.jsonl.gz"), fields)
    rows, rng = voted.counted, np.random.default_rng(0)
    covered, sizes, every, n = [], [], [], []
    for seed in range(SPLITS):
        drawn = rng.permutation(rows)
        wanted = dm.AnswerSets(level, share=0.4)
        policy = dm.calibrate(voted.take(drawn[:N]), alpha=0.05, answer_sets=wanted, seed=seed, sizes_by_chance=True)
        decided = policy.decide_votes(voted.votes)
        new = drawn[N:][~decided.answered[drawn[N:]]]
        (sets,) = policy.sets
        covered.append(sets.covers(right_places(voted, new), voted.votes.n_paths[new]).mean())
        some = [decided[row] for row in new[:20].tolist()]
        sizes += [len(decision.answer_set) for decision in some]
        every += [len(decision.support) + 1 for decision in some]
        n.append(sets.n)
    tolerance = 4 * np.sqrt(level * (1 - level) / np.mean(n) / SPLITS)
    assert np.mean(covered) >= 1 - level - tolerance
    assert np.mean(sizes) < (0.99 if name == "openai_gsm8k_examples" else 0.8) * np.mean(every)
