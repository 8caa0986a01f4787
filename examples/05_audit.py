"""Later: is the error rate still what was promised? The exact law says what is luck and what is not."""

import quorate as qr

table = qr.simulate_pools(400, seed=5)
votes = qr.vote(table.answers, table.scores)
policy = qr.calibrate(votes, votes.answer == table.gold, alpha=0.1)


def check(name, pools):
    fresh = qr.vote(pools.answers, pools.scores)
    audit = qr.audit_policy(policy, fresh, fresh.answer == pools.gold)[0]
    print(f"{name}: {audit.verdict}")
    print(f"  usual range {audit.interval[0]:.3f} to {audit.interval[1]:.3f}; answered {audit.answered:.1%}\n")


check("Questions like the calibration ones", qr.simulate_pools(600, seed=6))
check("Harder questions", qr.simulate_pools(600, seed=7, a=0.5, b=1.0))
