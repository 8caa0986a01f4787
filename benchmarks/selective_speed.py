"""Claim: promises about the answers given cost little more than the marginal one, and far less than MAPIE's grid.

MAPIE tests 100 thresholds in order, from the most confident, for a precision with confidence 0.9; `Selective(alpha,
delta=0.1)` makes the same promise at every threshold there is. Both sides see the same votes; a yield is the share of
those votes that each side's threshold answers. The boundary of `Selective` depends on n, alpha and delta alone and is
kept; it is timed with and without. Batch selection is Benjamini and Hochberg's rule on a million p-values.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from claims import at_least, at_most, print_report
from mapie.risk_control import BinaryClassificationController
from stopwatch import alternate, peak_bytes

import demur
from demur.calibration.batch import cut_off
from demur.calibration.boundary import boundary

PATHS = 16
ALPHA, DELTA, FDR = 0.05, 0.1, 0.1
ROUNDS = 7


def labelled_votes(pools: int, seed: int = 0) -> tuple[demur.Votes, np.ndarray]:
    simulated = demur.simulate_pools(pools, n_paths=PATHS, seed=seed)
    votes = demur.vote(simulated.answers, simulated.scores)
    return votes, votes.answer == simulated.gold


def calibrate_mapie(confidence: np.ndarray, correct: np.ndarray) -> BinaryClassificationController:
    return BinaryClassificationController(
        predict_function=lambda nu: np.column_stack([1 - nu, nu]),
        risk="precision",
        target_level=1 - ALPHA,
        confidence_level=1 - DELTA,
        list_predict_params=np.linspace(0, 0.99, 100),
        fwer_method="fixed_sequence",
    ).calibrate(confidence, correct.astype(int))


def calibrate_anew(votes: demur.Votes, correct: np.ndarray) -> demur.Policy:
    """With a boundary that is not remembered."""
    boundary.cache_clear()
    return demur.calibrate(replace(votes), correct, guarantee=demur.Selective(ALPHA, DELTA))


def against_marginal() -> tuple[list[dict], dict]:
    """Each calibration of 100,000 votes, in multiples of the marginal one."""
    votes, correct = labelled_votes(100_000)
    kinds = {"high probability": demur.HighProbability(ALPHA, DELTA), "smoothed": demur.Smoothed(ALPHA, 0)}
    kinds |= {"marginal": demur.Marginal(ALPHA), "selective": demur.Selective(ALPHA, DELTA)}
    # A replaced object has none of the columns that votes remember once they were asked for.
    calls = {
        name: lambda kind=kind: demur.calibrate(replace(votes), correct, guarantee=kind) for name, kind in kinds.items()
    }
    calls["selective, boundary anew"] = lambda: calibrate_anew(votes, correct)
    seconds = alternate(calls, rounds=ROUNDS)
    base = seconds["marginal"].median
    names = [name for name in calls if name != "marginal"]
    return [at_most(10, f"{name} / marginal at 10⁵, CPU", seconds[name].median / base) for name in names], seconds


def against_mapie() -> tuple[list[dict], dict]:
    """A million votes, the boundary computed anew each time."""
    votes, correct = labelled_votes(1_000_000)
    calls = {
        "demur (selective)": lambda: calibrate_anew(votes, correct),
        "MAPIE (fixed sequence)": lambda: calibrate_mapie(votes.confidence, correct),
    }
    seconds = alternate(calls, rounds=ROUNDS)
    ours, theirs = (seconds[name].median for name in calls)
    memory = {name: peak_bytes(call) for name, call in calls.items()}
    threshold = calls["demur (selective)"]().threshold
    found = calls["MAPIE (fixed sequence)"]().best_predict_param
    yields = float((votes.confidence > threshold).mean()), float((votes.confidence >= found).mean())
    claims = [
        at_least(20, "MAPIE / demur (selective), CPU", theirs / ours),
        at_least(
            20, "MAPIE / demur (selective), memory", memory["MAPIE (fixed sequence)"] / memory["demur (selective)"]
        ),
        at_least(1, "demur (selective) / MAPIE, yield", yields[0] / yields[1]),
    ]
    return claims, {"cpu_seconds": seconds, "peak_bytes": memory, "yields": yields, "thresholds": (threshold, found)}


def against_a_sort() -> tuple[list[dict], dict]:
    """Selection from a million votes, in multiples of sorting a million numbers."""
    calibration, correct = labelled_votes(10_000, seed=1)
    policy = demur.calibrate(calibration, correct, alpha=ALPHA)
    votes, _ = labelled_votes(1_000_000, seed=2)
    p_values, numbers = policy.p_value(votes), np.random.default_rng(0).random(len(votes))
    calls = {
        "one sort": lambda: np.sort(numbers),
        "Benjamini–Hochberg": lambda: cut_off(p_values, Fraction(str(FDR)), policy.n),
        "select, p-values and all": lambda: policy.select(replace(votes), fdr=FDR),
    }
    seconds = alternate(calls, rounds=ROUNDS)
    base = seconds["one sort"].median
    claims = [at_most(3, "Benjamini–Hochberg / one sort of 10⁶, CPU", seconds["Benjamini–Hochberg"].median / base)]
    return claims, seconds


def main() -> None:
    calibrations, calibration_seconds = against_marginal()
    peer, peer_figures = against_mapie()
    batch, batch_seconds = against_a_sort()
    print_report(
        "promises about answers",
        [*calibrations, *peer, *batch],
        packages=["demur", "numpy", "scipy", "mapie", "scikit-learn"],
        setting={"paths": PATHS, "alpha": ALPHA, "delta": DELTA, "fdr": FDR, "rounds": ROUNDS},
        calibration=calibration_seconds,
        mapie=peer_figures,
        selection=batch_seconds,
    )


if __name__ == "__main__":
    main()
