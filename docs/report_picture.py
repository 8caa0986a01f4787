"""Draw the pictures of the report: pages about simulated pools, in a headless Chromium. `make picture` runs it.

One for the README, and those of docs/report.md: two and twelve scores, three widths, light, dark and on paper.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

from demur.policy.calibrate import calibrate
from demur.pools.fields import FieldChoice
from demur.pools.simulated import simulate_pools
from demur.pools.source import PoolSource, vote_pools
from demur.records import Path as ReasoningPath
from demur.records import Pool, Problem
from demur.reports.page import report_page

DOCS = Path(__file__).parent
SCORES = (
    "process_reward_model_7b_min",
    "process_reward_model_7b_last",
    "judge_yes_probability_llama_70b",
    "perplexity",
    "self_certainty_over_reasoning_tokens",
    "entropy_of_last_token",
    "p_true",
    "verifier_outcome_reward",
    "length_penalised_logprob",
    "embedding_consistency_bge_large",
    "rubric_score_v2",
    "random_numbers",
)
OPENED = "q31"
PAPER = (688, 1017)
"""A page of A4 within its margins, in pixels."""
_IN_COLUMNS = """([width, height]) => Object.assign(document.body.style, {
  width: `${width}px`, height: `${height}px`, columnWidth: `${width}px`, columnGap: '40px', columnFill: 'auto'})"""


@dataclass(frozen=True)
class Picture:
    """What is drawn of a page, and where it is kept."""

    file: str
    scores: int
    width: int
    height: int
    scheme: str = "light"
    at: str = "body"
    """What stands at the top of the picture."""
    opened: bool = False
    paper: bool = False


PICTURES = (
    Picture("report.png", 1, 1180, 1000),
    Picture("assets/report/two-1280-light.png", 2, 1280, 1000, at="#h-charts"),
    Picture("assets/report/twelve-1280-dark.png", 12, 1280, 780, "dark", at="#h-charts"),
    Picture("assets/report/twelve-768-light.png", 12, 768, 1000, at="#chart-scores"),
    Picture("assets/report/twelve-360-dark.png", 12, 360, 1000, "dark", at="#chart-scores"),
    Picture("assets/report/two-360-light.png", 2, 360, 1000),
    Picture("assets/report/question-768-light.png", 2, 768, 1000, opened=True),
    Picture("assets/report/twelve-paper.png", 12, 1280, 1000, paper=True),
)


def main() -> None:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.exit("the pictures of the report need Chromium: make browser")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        files = {n_scores: Path(folder) / f"{n_scores}.html" for n_scores in (1, 2, 12)}
        for n_scores, file in files.items():
            file.write_text(made(n_scores), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for picture in PICTURES:
            draw(browser, picture, files[picture.scores])
        browser.close()


def made(n_scores: int) -> str:
    """The report on simulated questions: the simulated score and, beside it, ever noisier copies."""
    table, rng = simulate_pools(1000, seed=7), np.random.default_rng(7)
    names = ("simulated",) if n_scores == 1 else SCORES[:n_scores]
    pools = []
    for row, (answers, scores, gold) in enumerate(zip(table.answers, table.scores, table.gold, strict=True)):
        noise = rng.normal(size=(len(answers), len(names))) * np.linspace(0, 1.5, len(names))
        paths = [
            _path(answer, at, dict(zip(names, (score + noise[at]).tolist(), strict=True)))
            for at, (answer, score) in enumerate(zip(answers, scores, strict=True))
        ]
        options = sorted({int(gold), *(int(answer) for answer in answers if answer is not None)})
        asked = {"options": [str(option) for option in options], "passages": [f"Of simulated question {row}."]}
        problem = Problem(f"q{row}", f"Simulated question {row}", (str(gold),), extra=asked)
        pools.append(Pool(problem, tuple(paths)))
    source = PoolSource(pools)
    voted = vote_pools(source, FieldChoice(score=names[0]))
    policy = calibrate(voted, alpha=[0.05, 0.1], hold_out=0.5)
    return report_page(source, voted, policy, title="Simulated pools")


def _path(answer: int | None, at: int, scores: dict[str, float]) -> ReasoningPath:
    """A path whose answer was read off its text; every third writes it in another way."""
    if answer is None:
        return ReasoningPath(None, "I cannot tell.", scores, {"extraction": "none"})
    written = f"{answer}.0" if at % 3 == 0 else str(answer)
    text = f"One number after the other, so the answer is {written}."
    start = text.index(written)
    return ReasoningPath(written, text, scores, {"extraction": "answer is", "found_at": [start, start + len(written)]})


def draw(browser: Browser, picture: Picture, file: Path) -> None:
    size = {"width": picture.width, "height": picture.height}
    page = browser.new_page(
        viewport=size,  # type: ignore[arg-type]
        color_scheme=picture.scheme,  # type: ignore[arg-type]
        reduced_motion="reduce",
        device_scale_factor=0.66 if picture.paper else 1,
    )
    page.goto(file.as_uri() + (f"#q={OPENED}" if picture.opened else ""))
    page.wait_for_selector("#rows tr")
    target = DOCS / picture.file
    target.parent.mkdir(parents=True, exist_ok=True)
    if picture.paper:
        _two_sheets(page, target)
    else:
        if not picture.opened:
            page.eval_on_selector(picture.at, "part => part.scrollIntoView()")
        page.screenshot(path=target)
    page.close()
    print(f"wrote {picture.file}, {target.stat().st_size // 1000} kB")


def _two_sheets(page: Page, target: Path) -> None:
    """The first two pages of paper side by side: columns break where paper does."""
    width, height = PAPER
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate(_IN_COLUMNS, PAPER)
    sheets = {"x": 0, "y": 0, "width": 2 * width + 40, "height": height}
    page.screenshot(path=target, full_page=True, clip=sheets)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
