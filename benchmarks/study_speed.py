"""Claim: the statistics of a whole paper take seconds.

Ten cells of 1300 × 16 simulated paths with eight scores each: 20 splits at two alphas and at forty for the figures, and
400 to check the exact law, frontiers, and all ablations, from pools in memory to tables; drawing is not counted.
"""

from __future__ import annotations

import time

import numpy as np
from claims import at_most, print_report

from demur.pools.simulated import simulate_pools
from demur.pools.source import PoolSource
from demur.records import Path, Pool, Problem
from demur.study.cells import read_cell
from demur.study.description import Ablations, CellDescription, StudyDescription
from demur.study.figures import figures_of
from demur.study.protocol import evaluate_cell
from demur.study.tables import tables_of

CELLS, QUESTIONS, PATHS, SCORES = 10, 1300, 16, 8


def pools(seed: int) -> list[Pool]:
    table = simulate_pools(QUESTIONS, n_paths=PATHS, seed=seed)
    noise = np.random.default_rng(seed).normal(size=(QUESTIONS, PATHS, SCORES)) * np.linspace(0, 3, SCORES)
    return [
        Pool(
            Problem(f"c{seed}q{i}", f"cell {seed}, question {i}", (str(gold),), extra={"task": "math"}),
            tuple(
                Path(None if a is None else str(a), scores={f"s{k}": float(q + noise[i, j, k]) for k in range(SCORES)})
                for j, (a, q) in enumerate(zip(answers, scores, strict=True))
            ),
        )
        for i, (answers, scores, gold) in enumerate(zip(table.answers, table.scores, table.gold, strict=True))
    ]


def main() -> None:
    cells = [CellDescription(f"D{c % 4}", f"M{c}", pools="", normaliser="pool_z") for c in range(CELLS)]
    study = StudyDescription(
        "ten", cells,
        ablations=Ablations(
            m=[4, 8, 12, 16], n_cal=[50, 100, 150, 200, 300, 500],
            weights=["uniform", "linear", "exponential:1", "exponential:2", "exponential:5"],
        ),
    )  # fmt: skip
    sources = [PoolSource(pools(seed)) for seed in range(CELLS)]
    started = time.perf_counter()
    results = [evaluate_cell(read_cell(cell, source), study) for cell, source in zip(cells, sources, strict=True)]
    tables = tables_of(results, study)
    rows = sum(len(figure.rows) for figure in figures_of(results, study))
    seconds = time.perf_counter() - started
    print_report(
        "a study of ten cells", [at_most(30, "all statistics of a ten-cell study, wall seconds", seconds)],
        packages=["numpy", "scipy"], seconds=seconds, tables=len(tables), figure_rows=rows,
    )  # fmt: skip


if __name__ == "__main__":
    main()
