"""Claim: exact calibration of a million votes costs a fraction of MAPIE's grid, and answers at least as often.

MAPIE tests 100 thresholds and promises a rate with confidence 0.9; `HighProbability(alpha, delta=0.1)` makes the same
promise, `alpha=` makes the marginal one. Both sides see the same votes; a yield is the share of those votes that
each side's threshold answers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claims import at_least, print_report
from mapie.risk_control import BinaryClassificationController, BinaryRisk
from stopwatch import alternate, peak_bytes

import demur

POOLS, PATHS = 1_000_000, 16
ALPHA, DELTA = 0.05, 0.1
ROUNDS = 7

CONFIDENT_ERROR = BinaryRisk(
    risk_occurrence=lambda correct, answered: (answered == 1) & (correct == 0),
    risk_condition=lambda correct, answered: np.repeat(True, len(correct)),
    higher_is_better=False,
)


def labelled_votes() -> tuple[demur.Votes, np.ndarray]:
    pools = demur.simulate_pools(POOLS, n_paths=PATHS, seed=0)
    votes = demur.vote(pools.answers, pools.scores)
    return votes, votes.answer == pools.gold


def calibrate_mapie(confidence: np.ndarray, correct: np.ndarray) -> BinaryClassificationController:
    return BinaryClassificationController(
        predict_function=lambda nu: np.column_stack([1 - nu, nu]),
        risk=CONFIDENT_ERROR,
        target_level=ALPHA,
        confidence_level=1 - DELTA,
        # A custom risk must name what to prefer among valid thresholds; recall is MAPIE's own choice beside its
        # false positive rate, and picks the threshold that answers most.
        best_predict_param_choice="recall",
        list_predict_params=np.linspace(0, 0.99, 100),
        fwer_method="fixed_sequence",
    ).calibrate(confidence, correct)


def describe(answered: np.ndarray, correct: np.ndarray, threshold: float) -> dict[str, float]:
    return {
        "threshold": threshold,
        "yield": float(answered.mean()),
        "confident_error": float((answered & ~correct).mean()),
    }


def main() -> None:
    votes, correct = labelled_votes()
    promise = demur.HighProbability(ALPHA, delta=DELTA)
    # A replaced object has none of the columns that votes remember once they were asked for.
    calls = {
        "demur (marginal)": lambda: demur.calibrate(replace(votes), correct, alpha=ALPHA),
        "demur (high probability)": lambda: demur.calibrate(replace(votes), correct, guarantee=promise),
        "MAPIE": lambda: calibrate_mapie(votes.confidence, correct),
    }
    seconds = alternate(calls, rounds=ROUNDS)
    peak = {name: peak_bytes(call) for name, call in calls.items()}

    theirs = calls["MAPIE"]()
    found = {"MAPIE": describe(votes.confidence >= theirs.best_predict_param, correct, theirs.best_predict_param)}
    for name in ("demur (marginal)", "demur (high probability)"):
        threshold = calls[name]().threshold
        found[name] = describe(votes.confidence > threshold, correct, threshold)

    claims = []
    for name in ("demur (marginal)", "demur (high probability)"):
        claims += [
            at_least(25, f"MAPIE / {name}, CPU", seconds["MAPIE"].median / seconds[name].median),
            at_least(20, f"MAPIE / {name}, memory", peak["MAPIE"] / peak[name]),
            at_least(1, f"{name} / MAPIE, yield", found[name]["yield"] / found["MAPIE"]["yield"]),
        ]
    print_report(
        "calibration speed",
        claims,
        packages=["demur", "numpy", "scipy", "mapie", "scikit-learn"],
        setting={"votes": POOLS, "paths": PATHS, "alpha": ALPHA, "delta": DELTA, "rounds": ROUNDS},
        cpu_seconds=seconds,
        peak_bytes=peak,
        found=found,
    )


if __name__ == "__main__":
    main()
