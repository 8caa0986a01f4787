"""Answers and scores in a table; a policy with a guarantee in three lines."""

import demur as dm

# Stand-in for your own table: 500 questions, 16 sampled answers each (−1: no answer), a score per path, and gold.
table = dm.simulate_pools(500, seed=1)

votes = dm.vote(table.answers, table.scores, weight=dm.exponential())
policy = dm.calibrate(votes, votes.answer == table.gold, alpha=0.05)
policy.save("policy.json")

print(policy.summary())

# A new question: the policy votes the way it was calibrated, and answers or abstains.
new = dm.simulate_pools(3, seed=2)
for answers, scores in zip(new.answers, new.scores, strict=True):
    decision = policy.decide(answers, scores)
    said = "abstain" if decision.abstained else f"answer {decision.answer}"
    print(f"{said:10} confidence {decision.confidence:.3f}  p-value {decision.p_value:.3f}  {dict(decision.support)}")
