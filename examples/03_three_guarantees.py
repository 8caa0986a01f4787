"""Marginal, smoothed, high-probability: the same order statistic at three ranks, and what each promises."""

import numpy as np

import demur as dm

# Many calibrations of one system, to see what each promise means: the true error rate of each policy is measured
# on a large fresh set.
fresh = dm.simulate_pools(50_000, seed=0)
fresh_votes = dm.vote(fresh.answers, fresh.scores)
wrong = fresh_votes.answer != fresh.gold

alpha, delta, n = 0.1, 0.1, 205
guarantees = {
    "marginal": lambda seed: dm.Marginal(alpha),
    "smoothed": lambda seed: dm.Smoothed(alpha, seed),
    "high probability": lambda seed: dm.HighProbability(alpha, delta),
}
rates = {name: [] for name in guarantees}
for seed in range(1, 301):
    table = dm.simulate_pools(n, seed=seed)
    votes = dm.vote(table.answers, table.scores)
    for name, make in guarantees.items():
        policy = dm.calibrate(votes, votes.answer == table.gold, guarantee=make(seed))
        rates[name].append(np.mean(wrong & (fresh_votes.confidence > policy.threshold)))

print(f"alpha = {alpha}, {n} calibration questions, 300 calibrations")
for name, found in rates.items():
    above = np.mean(np.array(found) > alpha)
    print(
        f"{name:17} rank {guarantees[name](1).rank(n):2}  mean error {np.mean(found):.4f}  above alpha in {above:.0%}"
    )
print("\n" + dm.HighProbability(alpha, delta).promise(n))
