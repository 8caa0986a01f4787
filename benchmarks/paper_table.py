"""Claim: a table of the paper's size (20 splits, 2 alphas, 8 scores, 10 cells of 1300 questions) is a moment's work."""

from __future__ import annotations

import time

from claims import at_most, print_report
from stopwatch import alternate, peak_bytes

import demur
from demur.pools.simulated import SimulatedPools

CELLS, QUESTIONS, PATHS = 10, 1300, 16
SEPARATIONS = [0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5]  # one score each, from worthless to good
ALPHAS = [0.05, 0.1]
SPLITS = 20
ROUNDS = 7


def draw_pools() -> dict[str, SimulatedPools]:
    """Ten cells, as pairs of model and dataset would give, with the same answers under each of the eight scores."""
    return {
        f"cell {cell}, separation {separation}": demur.simulate_pools(
            QUESTIONS, n_paths=PATHS, seed=cell, separation=separation
        )
        for cell in range(CELLS)
        for separation in SEPARATIONS
    }


def main() -> None:
    pools = draw_pools()

    def vote() -> dict[str, tuple[demur.Votes, object]]:
        held = {name: demur.vote(cell.answers, cell.scores) for name, cell in pools.items()}
        return {name: (votes, votes.answer == pools[name].gold) for name, votes in held.items()}

    def evaluate(cells: dict[str, tuple[demur.Votes, object]]) -> object:
        return demur.evaluate_splits(cells, alpha=ALPHAS, splits=SPLITS)

    cells = vote()
    calls = {
        "votes and evaluation": lambda: evaluate(vote()),
        "evaluation alone": lambda: evaluate(cells),
    }
    cpu = alternate(calls, rounds=ROUNDS)
    wall = alternate(calls, rounds=ROUNDS, clock=time.perf_counter)
    peak = {name: peak_bytes(call) for name, call in calls.items()}
    print_report(
        "paper table",
        [
            at_most(2, f"{name}, {clock} seconds", seconds[name].median)
            for name in calls
            for clock, seconds in (("CPU", cpu), ("wall", wall))
        ],
        packages=["demur", "numpy", "scipy"],
        setting={
            "cells": CELLS,
            "questions": QUESTIONS,
            "paths": PATHS,
            "scores": len(SEPARATIONS),
            "alphas": ALPHAS,
            "splits": SPLITS,
            "rounds": ROUNDS,
        },
        cpu_seconds=cpu,
        wall_seconds=wall,
        peak_bytes=peak,
    )


if __name__ == "__main__":
    main()
