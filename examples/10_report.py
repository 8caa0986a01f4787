"""A table, votes, a policy, figures and a page, as in a notebook: simulated pools, half of them kept back to check."""

import tempfile
from pathlib import Path

import demur as dm

frame = dm.PoolSource(dm.simulate_pools(400, seed=11).pools()).to_frame()  # one row per path, as tables of your own
source = dm.read_pools(frame)
voted = dm.vote_pools(source, dm.FieldChoice(score="simulated"))
policy = dm.calibrate(voted, alpha=[0.05, 0.1], hold_out=0.5)
print(voted.to_frame().head(3).to_string(index=False))

with tempfile.TemporaryDirectory() as folder:
    page = dm.report(source, policy, voted=voted, title="Simulated pools").save(Path(folder) / "report.html")
    dm.plot.frontier(voted, policy).save(Path(folder) / "frontier.html")
    print(f"a page of {page.stat().st_size / 1e6:.1f} MB, and one for every figure of dm.plot")

for point in dm.audit_policy(policy, voted):
    expected = policy.forecast(point.rule.alpha)
    print(
        f"alpha {point.rule.alpha:g}: {expected.answered:.1%} expected to be answered, {point.answered:.1%} were; "
        f"{expected.expected_confident_error:.1%} expected wrong, {point.confident_error:.1%} were. {point.verdict}"
    )
