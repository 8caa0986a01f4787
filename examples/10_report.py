"""A page to look at, and the facts behind it: simulated pools, calibrated on one half and shown on the other."""

import tempfile
from pathlib import Path

import demur as dm

table = dm.simulate_pools(400, seed=11)
pools = [
    dm.Pool(
        dm.Problem(f"q{row}", f"Simulated question {row}", (str(gold),)),
        tuple(
            dm.Path(None if a is None else str(a), scores={"simulated": float(q)})
            for a, q in zip(answers, scores, strict=True)
        ),
    )
    for row, (answers, scores, gold) in enumerate(zip(table.answers, table.scores, table.gold, strict=True))
]
source = dm.PoolSource(pools)
voted = dm.vote_pools(source, dm.FieldChoice(score="simulated"))
policy = dm.calibrate(voted, alpha=[0.05, 0.1], hold_out=0.5)

with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "report.html"
    page.write_text(dm.report_page(source, voted, policy, title="Simulated pools"), encoding="utf-8")
    print(
        f"a page of {page.stat().st_size / 1e6:.1f} MB; open one of your own with: demur report pools.jsonl --score …"
    )

for point in dm.audit_policy(policy, voted):
    expected = policy.forecast(point.rule.alpha)
    print(
        f"alpha {point.rule.alpha:g}: {expected.answered:.1%} expected to be answered, {point.answered:.1%} were; "
        f"{expected.expected_confident_error:.1%} expected wrong, {point.confident_error:.1%} were. {point.verdict}"
    )
