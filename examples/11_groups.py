"""One threshold for all may be wrong often on hard questions and hardly ever on easy ones; one per group is not."""

import numpy as np

import demur as dm

easy, hard = dm.simulate_pools(4000, seed=1, a=3.0, b=1.0), dm.simulate_pools(4000, seed=2, a=1.0, b=1.5)
answers = np.concatenate([easy.answers, hard.answers])
gold = np.concatenate([easy.gold, hard.gold])
kinds = ["easy"] * 4000 + ["hard"] * 4000

ids = [f"q{i}" for i in range(8000)]
votes = dm.vote(answers, ids=ids, groups=kinds)
right = votes.answer == gold
rows = np.random.default_rng(0).permutation(8000)
calibration, fresh = rows[:1000], rows[1000:]
policy = dm.calibrate(
    votes.take(calibration), right[calibration], guarantee=[dm.Marginal(0.1), dm.Grouped(dm.Marginal(0.1))]
)
for name in ("marginal", "grouped_marginal"):
    answered = policy.decide_votes(votes.take(fresh), guarantee=name).answered
    wrong = answered & ~right[fresh]
    told = [f"{kind} {wrong[np.array(kinds)[fresh] == kind].mean():.1%}" for kind in ("easy", "hard")]
    print(f"{name:17} answers {answered.mean():.1%}, wrong on {wrong.mean():.1%} of all: {', '.join(told)}")
print("\n" + policy.point(0.1, "grouped_marginal").promise)
