"""A study of two cells, and the pools they are made of."""

from __future__ import annotations

import json

import numpy as np

import demur as dm

STUDY = """
[study]
name = "two"
alphas = [0.1, 0.05]
n_cal = 60
splits = 20
compare = ["small", "large"]

[ablations]
m = [2, 4, 99]
n_cal = [30, 60, 9999]
weights = ["uniform", "linear", "exponential:1", "exponential:5"]

[[cells]]
dataset = "sums"
model = "A"
pools = "a.jsonl"
normaliser = "pool_z"

[[cells]]
dataset = "sums"
model = "B"
pools = "b.jsonl"
scores = ["large"]
"""


def write_pools(path, n, seed, *, gold=True, prefix="q"):
    """Simulated pools with two scores, one of them noisier."""
    table = dm.simulate_pools(n, n_paths=8, seed=seed)
    rng = np.random.default_rng(seed)
    with path.open("w") as stream:
        for i, (answers, scores, right) in enumerate(zip(table.answers, table.scores, table.gold, strict=True)):
            paths = [
                {
                    "answer": None if a is None else str(a),
                    "scores": {"large": float(q), "small": float(q + rng.normal())},
                }
                for a, q in zip(answers, scores, strict=True)
            ]
            line = {"id": f"{prefix}{i}", "question": f"{prefix} {i}?", "paths": paths}
            stream.write(json.dumps({**line, **({"gold": str(right)} if gold else {})}) + "\n")
