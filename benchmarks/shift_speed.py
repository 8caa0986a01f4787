"""Claim: calibration under shift costs at most ten times the marginal one at 100,000 votes; the fit is stated apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claims import at_most, print_report
from stopwatch import alternate

import demur
from demur.questions.features import features

POOLS, PATHS, QUESTIONS = 100_000, 8, 2000
ALPHA = 0.1
ROUNDS = 7


def questions(start: int, number: int) -> list[str]:
    kinds = ("apples at the market", "trains between two towns", "integrals of a function", "kings of a country")
    asked = "Question {n}: how many {kind} are there, if {known} are known?"
    return [asked.format(n=n, kind=kinds[n % len(kinds)], known=n * 7919) for n in range(start, number)]


def main() -> None:
    pools = demur.simulate_pools(POOLS, n_paths=PATHS, seed=0)
    weights = np.random.default_rng(0).exponential(size=POOLS)
    votes = demur.vote(pools.answers, pools.scores, importance=weights)
    correct = votes.answer == pools.gold
    plain = replace(votes, importance=None)
    shifted = demur.Shifted(demur.Marginal(ALPHA))
    traffic, reference = questions(0, QUESTIONS), questions(QUESTIONS, 2 * QUESTIONS)
    policy = demur.calibrate(votes, correct, guarantee=shifted)
    seconds = alternate(
        {
            "marginal": lambda: demur.calibrate(replace(plain), correct, alpha=ALPHA),
            "shifted": lambda: demur.calibrate(replace(votes), correct, guarantee=shifted),
            "decide all of them": lambda: policy.decide_votes(replace(votes)),
        },
        rounds=ROUNDS,
    )
    apart = alternate(
        {
            "fit, 2 × 2,000 questions": lambda: demur.fit_shift(traffic, reference),
            "features of 10,000 questions": lambda: features(questions(0, 10_000)),
        },
        rounds=1,
    )
    ratio = seconds["shifted"].median / seconds["marginal"].median
    print_report(
        "calibration under shift",
        [at_most(10, "shifted / marginal, CPU", ratio)],
        packages=["demur", "numpy", "scipy"],
        setting={"votes": POOLS, "paths": PATHS, "alpha": ALPHA, "rounds": ROUNDS},
        cpu_seconds=seconds,
        stated_apart=apart,
    )


if __name__ == "__main__":
    main()
