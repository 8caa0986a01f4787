"""A page to look at, and the facts behind it: simulated pools, calibrated on one half and shown on the other."""

import tempfile
from pathlib import Path

import demur as dm
from demur.electorate import Source, hold_vote
from demur.pool_table import Reading
from demur.report import page_of, report_facts

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
source, reading = Source(pools), Reading(score="simulated")
voted = hold_vote(source, reading, source.recipe(reading), labelled=True)
policy, held_out = voted.calibrate([dm.Marginal(0.05), dm.Marginal(0.1)], hold_out=0.5)
facts = report_facts(source, voted, policy, title="Simulated pools")

with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "report.html"
    page.write_text(page_of(facts), encoding="utf-8")
    print(
        f"a page of {page.stat().st_size / 1e6:.1f} MB; open one of your own with: demur report pools.jsonl --score …"
    )

for point in facts["points"]:
    if point["chosen"]:
        seen = point["observed"]
        print(
            f"alpha {point['alpha']:g}: {point['answered']:.1%} expected to be answered, {seen['answered']:.1%} were; "
            f"{point['confident_error']:.1%} expected wrong, {seen['confident_error']:.1%} were ({seen['verdict']})"
        )
