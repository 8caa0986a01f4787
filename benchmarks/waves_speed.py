"""Claim: seeing whether a decision is certain costs less, after each path, than the decision itself."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from claims import at_most, print_report
from stopwatch import alternate

import demur as dm

POOLS, PATHS, ROUNDS = 300, 16, 7


def main() -> None:
    table = dm.simulate_pools(POOLS, n_paths=PATHS, seed=1)
    answers = [[None if code < 0 else f"n:{code}" for code in row] for row in table.answers.tolist()]
    scores = (1 / (1 + np.exp(-table.scores))).tolist()
    questions = [f"question {row}" for row in range(POOLS)]
    ways = {
        "majority vote": dm.vote(answers, questions=questions),
        "weighted vote": dm.vote(answers, scores, questions=questions),
        "behind pool_z": dm.vote(answers, scores, normaliser=dm.normalisers.pool_z, questions=questions),
    }
    calls: dict[str, Any] = {}
    for name, votes in ways.items():
        correct = np.array([answer == f"n:{gold}" for answer, gold in zip(votes.answer, table.gold, strict=True)])
        policy, used = dm.calibrate(votes, correct, alpha=0.1), None if name == "majority vote" else scores
        calls[f"{name}, decided"] = partial(decide, policy, answers, used, questions)
        calls[f"{name}, checked"] = partial(check, watched(policy, questions), answers, used)
        calls[f"{name}, made ready"] = partial(watched, policy, questions)
    seconds = alternate(calls, rounds=ROUNDS)
    per_call = {name: 1e6 * taken.median / POOLS for name, taken in seconds.items()}
    per_call |= {name: value / (PATHS - 1) for name, value in per_call.items() if name.endswith("checked")}
    print_report(
        "is the decision certain?",
        [
            at_most(0.5, f"{name}: a check after a path / a decision, CPU", per_call[f"{name}, checked"] / decided)
            for name in ways
            if (decided := per_call[f"{name}, decided"])
        ],
        packages=["demur", "numpy"],
        setting={"pools": POOLS, "paths": PATHS, "rounds": ROUNDS},
        cpu_microseconds=per_call,
    )


def decide(policy: dm.Policy, answers: list[Any], scores: Any, questions: list[str]) -> None:
    for row, question in enumerate(questions):
        policy.decide(answers[row], None if scores is None else scores[row], question=question)


def watched(policy: dm.Policy, questions: list[str]) -> list[dm.Curtailment]:
    return [dm.Curtailment(policy, question=question, within=(0.0, 1.0), all_scored=True) for question in questions]


def check(curtailments: list[dm.Curtailment], answers: list[Any], scores: Any) -> None:
    """After every path but the last."""
    for row, curtailment in enumerate(curtailments):
        for drawn in range(1, PATHS):
            curtailment.early(answers[row][:drawn], None if scores is None else scores[row][:drawn])


if __name__ == "__main__":
    main()
