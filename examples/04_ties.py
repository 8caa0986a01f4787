"""Unanimous pools all have confidence 1. What breaks ties, calibrated with it, tells them apart."""

import demur as dm

# An overconfident model: many unanimous pools, a good part of them wrong. The score knows a little.
table = dm.simulate_pools(1500, seed=4, a=0.4, b=0.16, concentration=0.02, separation=0.7, missing=0.0)
ids = [f"q{i}" for i in range(1500)]
plain = dm.vote(table.answers)
correct = plain.answer == table.gold
unanimous = plain.unanimous
print(f"{unanimous.mean():.0%} of the pools are unanimous, {(unanimous & ~correct).mean():.1%} unanimously wrong")

ways = {
    "majority vote": plain,
    "ties broken at random": dm.vote(table.answers, tie_break=dm.jitter(1), ids=ids),
    "ties broken by mean score": dm.vote(table.answers, table.scores, weight=dm.uniform(), tie_break=dm.mean_score()),
}
cells = {name: (votes, votes.answer == table.gold) for name, votes in ways.items()}
for result in dm.evaluate_splits(cells, alpha=0.05, n_cal=500, splits=50):
    print(
        f"{result.cell:26} answers {result.answered.mean:6.1%}, right {result.selective_accuracy.mean:.1%}, "
        f"wrong on {result.confident_error.mean:.2%} of questions (exact mean {result.expected_confident_error:.2%})"
    )
