"""To choose how to vote by labels costs the promise, unless other problems calibrate: tune, then calibrate on them."""

import demur as dm

source = dm.PoolSource(dm.simulate_pools(600, seed=3, separation=0.8).pools())
tuned = dm.tune(source, alpha=0.1, share=0.3)
print(tuned.sentence)
for row in tuned.rows[:5]:
    print(f"  {row.name:60} expected yield {row.answered:.1%} ± {row.standard_error:.1%}")

voted = tuned.vote(source)
policy = dm.calibrate(voted, alpha=0.1, tuned=tuned)  # the problems it was chosen on are left out
print(f"\ncalibrated on the other {policy.n} questions: {policy.forecast().answered:.1%} answered")

late = dm.calibrate(voted, guarantee=dm.Marginal(0.1, choices=len(tuned.rows)), tuned=tuned)
print(f"had it been chosen by the same labels, and paid for: {late.forecast().answered:.1%} answered")
