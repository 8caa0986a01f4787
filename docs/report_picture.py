"""Draw the picture of the report: a page about simulated pools, in a headless Chromium. `make picture` runs it."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from demur.policy.calibrate import calibrate
from demur.pools.fields import FieldChoice
from demur.pools.simulated import simulate_pools
from demur.pools.source import PoolSource, vote_pools
from demur.records import Path as ReasoningPath
from demur.records import Pool, Problem
from demur.reports.page import report_page


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
    source = PoolSource(pools)
    voted = vote_pools(source, FieldChoice(score="simulated"))
    policy = calibrate(voted, alpha=[0.05, 0.1], hold_out=0.5)
    page = report_page(source, voted, policy, title="Simulated pools")
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
