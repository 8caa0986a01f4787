"""Draw the picture of the report: a page about simulated pools, in a headless Chromium. `make picture` runs it."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from demur.calibration import Marginal
from demur.electorate import Source, hold_vote
from demur.pool_table import Reading
from demur.records import Path as ReasoningPath
from demur.records import Pool, Problem
from demur.report import page_of, report_facts
from demur.simulate import simulate_pools


def main() -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("the picture of the report needs Chromium: make browser")
    table = simulate_pools(1000, seed=7)
    pools = [
        Pool(
            Problem(f"q{row}", f"Simulated question {row}", (str(gold),)),
            tuple(
                ReasoningPath(None if a is None else str(a), scores={"simulated": float(q)})
                for a, q in zip(answers, scores, strict=True)
            ),
        )
        for row, (answers, scores, gold) in enumerate(zip(table.answers, table.scores, table.gold, strict=True))
    ]
    source, reading = Source(pools), Reading(score="simulated")
    voted = hold_vote(source, reading, source.recipe(reading), labelled=True)
    policy, _ = voted.calibrate([Marginal(0.05), Marginal(0.1)], hold_out=0.5)
    page = page_of(report_facts(source, voted, policy, title="Simulated pools"))
    target = Path(__file__).with_name("report.png")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "report.html"
        file.write_text(page, encoding="utf-8")
        running = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        shown = running.new_page(viewport={"width": 1180, "height": 1000})
        shown.goto(file.as_uri())
        shown.wait_for_selector("#rows tr")
        shown.screenshot(path=target)
        running.close()
    print(f"wrote {target.name}")


if __name__ == "__main__":
    main()
