"""Later: is the error rate still what was promised? The exact law says what is luck and what is not."""

import demur as dm

table = dm.simulate_pools(400, seed=5)
votes = dm.vote(table.answers, table.scores)
policy = dm.calibrate(votes, votes.answer == table.gold, alpha=0.1)


def check(name, pools):
    fresh = dm.vote(pools.answers, pools.scores)
    audit = dm.audit_policy(policy, fresh, fresh.answer == pools.gold)[0]
    print(f"{name}: {audit.verdict}")
    print(f"  {audit.confident_error:.3f}, usually at most {audit.usual_at_most:.3f}; answered {audit.answered:.1%}\n")


check("Questions like the calibration ones", dm.simulate_pools(600, seed=6))
check("Harder questions", dm.simulate_pools(600, seed=7, a=0.5, b=1.0))
