"""Claim: the report opens at once and its slider answers within a frame or two, in a headless Chromium.

A page of 1300 questions with 16 paths each. Opening is from the request for the file to the first row of the table; a
move of the slider is from the input event to the second frame after it, so that what was painted is counted.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

from claims import at_most, print_report
from study_speed import pools

from demur.policy.calibrate import calibrate
from demur.pools.fields import FieldChoice
from demur.pools.source import PoolSource, vote_pools
from demur.reports.page import report_page

MOVE = """async () => {
  const slider = document.getElementById('alpha'), taken = [];
  for (let step = 0; step < 60; step++) {
    slider.value = (step * 7) % (Number(slider.max) + 1);
    const began = performance.now();
    slider.dispatchEvent(new Event('input', {bubbles: true}));
    const handled = performance.now() - began;
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    taken.push([handled, performance.now() - began]);
  }
  return taken;
}"""


def main() -> int:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("no Chromium here", file=sys.stderr)
        return 1
    from playwright.sync_api import sync_playwright

    source = PoolSource(pools(0))
    voted = vote_pools(source, FieldChoice(score="s1"), source.recipe("s1", "pool_z"))
    policy = calibrate(voted, alpha=[0.05, 0.1], hold_out=0.5)
    page_text = report_page(source, voted, policy, title="1300 questions")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "report.html"
        file.write_text(page_text, encoding="utf-8")
        running = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        opened = []
        for _ in range(5):
            page = running.new_page()
            page.goto(file.as_uri())
            page.wait_for_selector("#rows tr")
            opened.append(page.evaluate("performance.now()") / 1000)
            moves = page.evaluate(MOVE)
            page.close()
        running.close()
    handled, painted = (median(each) for each in zip(*moves, strict=True))
    print_report(
        "the report in a browser",
        [
            at_most(2, "the report of 1300 questions opens, seconds", median(opened)),
            at_most(34, "a move of the slider until the second frame after it, milliseconds", painted),
        ],
        packages=["playwright"], megabytes=len(page_text.encode()) / 2**20, opened_seconds=opened,
        handler_milliseconds=handled,
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
