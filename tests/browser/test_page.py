"""The report in a real Chromium: the slider moves everything, rows filter and open, nothing that is written runs."""

from __future__ import annotations

import pytest

from browser.chromium import find
from demur.pools.fields import FieldChoice
from demur.pools.source import PoolSource, vote_pools
from demur.records import Path, Pool, Problem
from demur.reports.facts import report_facts
from demur.reports.page import page_of
from reports.test_facts import NASTY, made, pools
from reports.test_judged_labels import facts_of

pytestmark = pytest.mark.skipif(find() is None, reason="no Chromium was found; run: make browser")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=find(), args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield running
        running.close()


@pytest.fixture
def show(browser, tmp_path):
    """Open a report; the test fails on any error in the page or request to a network."""
    opened = []

    def open_page(facts, **context):
        file = tmp_path / f"report{len(opened)}.html"
        file.write_text(page_of(facts), encoding="utf-8")
        page = browser.new_context(**context).new_page()
        page.troubles = []
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("console", lambda said: page.troubles.append(said.text) if said.type == "error" else None)
        page.on("request", lambda asked: page.troubles.append(asked.url) if asked.url.startswith("http") else None)
        page.goto(file.as_uri())
        page.wait_for_selector("#rows tr")
        opened.append(page)
        return page

    yield open_page
    for page in opened:
        assert page.troubles == []
        page.context.close()


@pytest.fixture(scope="module")
def case():
    source, voted, policy = made(n=300)
    return report_facts(source, voted, policy, title="A report"), voted


def set_alpha(page, facts, alpha):
    index = [point["alpha"] for point in facts["points"]].index(alpha)
    page.eval_on_selector(
        "#alpha", f"e => {{ e.value = {index}; e.dispatchEvent(new Event('input', {{bubbles: true}})); }}"
    )
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return facts["points"][index]


def test_the_slider_moves_numbers_marks_and_decisions(show, case):
    facts, voted = case
    page = show(facts)
    seen = []
    for alpha in (0.02, 0.2):
        point = set_alpha(page, facts, alpha)
        answered = page.inner_text("#big-answered")
        assert f"{100 * point['answered']:.1f}" in answered.replace(",", "")
        assert page.inner_text("#alpha-value").strip() != ""
        marks = page.eval_on_selector_all(".mark-alpha", "all => all.map(e => e.outerHTML)")
        seen.append((answered, page.inner_text("#big-threshold"), marks, page.inner_text("#big-error")))
        page.select_option("#filter-decision", "answered")
        shown = page.inner_text("#row-count")
        wanted = int((voted.votes.confidence > point["threshold"][0]).sum())
        assert str(wanted) in shown
        page.select_option("#filter-decision", index=0)
    for before, after in zip(*seen, strict=True):
        assert before != after
    for chart in ("frontier", "control", "accuracy", "separability", "evidence"):
        assert page.query_selector(f"#chart-{chart} .mark-alpha") is not None


def test_the_slider_works_by_keyboard(show, case):
    facts, _ = case
    page = show(facts)
    before = page.inner_text("#alpha-value")
    page.focus("#alpha")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#alpha-value") != before


def test_rows_filter_sort_and_open(show, case):
    facts, _ = case
    page = show(facts)
    page.fill("#filter-text", "Question 17?")
    page.wait_for_function("document.querySelectorAll('#rows tr[data-row]').length === 1")
    row = page.query_selector("#rows tr[data-row]")
    assert row.get_attribute("data-row") == "17"
    assert row.get_attribute("data-decision") in ("answered", "abstained")
    row.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("document.body.innerText.includes('text 17')")
    page.fill("#filter-text", "")
    right = int(sum(facts["questions"]["right"]))
    page.select_option("#filter-right", "right")
    assert f"{right} of 300" in page.inner_text("#row-count")
    page.select_option("#filter-right", "wrong")
    assert f"{300 - right} of 300" in page.inner_text("#row-count")
    page.select_option("#filter-right", index=0)
    page.click("th[data-key='confidence'] button, th button:has-text('Confidence')")
    shown = page.eval_on_selector_all("#rows tr[data-row]", "rows => rows.map(row => Number(row.dataset.row))")
    confidences = [facts["questions"]["confidence"][row] for row in shown]
    assert confidences in (sorted(confidences), sorted(confidences, reverse=True))
    assert confidences[0] != confidences[-1] or len(set(facts["questions"]["confidence"])) == 1


def test_nothing_a_model_wrote_becomes_markup_or_script(show):
    source, _, policy = made(n=60)
    hostile = [
        Pool(
            Problem(f"{pool.problem.id}{NASTY}", f"{NASTY} {pool.problem.id}", pool.problem.gold, group=NASTY),
            tuple(Path(path.answer, NASTY, path.scores) for path in pool.paths),
        )
        for pool in source.pools
    ]
    again = PoolSource(hostile)
    voted = vote_pools(again, FieldChoice(score="s"), policy.recipe, labelled=True)
    facts = report_facts(again, voted, policy, title=NASTY)
    facts["run"]["model"] = NASTY
    facts["warnings"] = [NASTY]
    page = show(facts)
    page.eval_on_selector("#rows tr[data-row]", "row => row.click()")
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") is None
    assert page.query_selector("img") is None
    assert "<img src=x" in page.inner_text("body")


def test_ten_thousand_questions_open_and_answer(show):
    """A page of the table at a time, and a slider that decides on all of them."""
    source, voted, policy = made(n=300)
    facts = report_facts(source, voted, policy, title="large")
    times = 34
    facts["questions"] = {name: (values * times if isinstance(values, list) else values)
                          for name, values in facts["questions"].items()}  # fmt: skip
    facts["paths"] = facts["paths"] * times
    page = show(facts)
    assert page.eval_on_selector_all("#rows tr", "rows => rows.length") < 300
    point = set_alpha(page, facts, 0.1)
    page.select_option("#filter-decision", "answered")
    wanted = times * int((voted.votes.confidence > point["threshold"][0]).sum())
    assert str(wanted) in page.inner_text("#row-count").replace(",", "")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_in_light_and_dark(show, case, scheme):
    facts, _ = case
    page = show(facts, viewport={"width": 360, "height": 740}, color_scheme=scheme)
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 1
    colours = page.evaluate("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
    assert colours[0] != colours[1]


def test_labels_may_be_absent(show):
    policy = made(n=100)[2]
    bare = PoolSource(pools(n=40, gold=False))
    voted = vote_pools(bare, FieldChoice(score="s"), policy.recipe, labelled=False)
    page = show(report_facts(bare, voted, policy, title="unlabelled"))
    assert "unlabelled" in page.inner_text("body")


def test_the_pages_policy_lets_in_its_own_script_and_style_and_nothing_else(show, case):
    facts, _ = case
    text = page_of(facts)
    assert "unsafe-inline" not in text
    assert "@@" not in text.split('id="data"')[0]
    page = show(facts)
    assert page.eval_on_selector("#track .tick", "e => e.style.left") != ""
    assert page.eval_on_selector("body", "e => getComputedStyle(e).fontFamily") != "Times"
    page.evaluate(
        """() => {
            for (const text of ['window.ran = 1', 'window.ran = 2']) {
                const script = document.createElement('script');
                script.textContent = text;
                document.body.append(script);
            }
            const style = document.createElement('style');
            style.textContent = 'body { display: none }';
            document.head.append(style);
            document.body.insertAdjacentHTML('beforeend', '<img id="bad" src="x:" onerror="window.ran = 3">');
        }"""
    )
    page.wait_for_timeout(100)
    assert page.evaluate("window.ran") is None
    assert page.eval_on_selector("body", "e => getComputedStyle(e).display") != "none"
    assert any("Content Security Policy" in trouble for trouble in page.troubles)
    page.troubles.clear()


def test_labels_by_a_judge_are_a_table_and_without_one_there_is_none(show, case):
    facts, _ = facts_of(NASTY)
    page = show(facts)
    assert page.locator("#labels-rows tr").count() == 60
    assert "People confirmed 1 of 2 verdicts drawn at random" in page.locator("#labels-checked").inner_text()
    assert page.locator("#labels-said").inner_text().startswith("</script>")
    assert "Wrong means wrong by the judge" in page.locator("#promise").inner_text()
    assert page.evaluate("window.hacked") is None
    assert page.locator("#labels-rows tr").first.locator("td").last.inner_text() == "right"
    assert not show(case[0]).locator("#labels").is_visible()
