"""The report in a real Chromium: the slider moves everything, rows filter and open, nothing that is written runs."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from browser.chromium import find
from demur.calibration import (
    Grouped,
    HighProbability,
    JudgeMarginal,
    Marginal,
    Selective,
    Simultaneous,
    settle_by_size,
)
from demur.calibration.guarantee import NOWHERE_FEW_ENOUGH
from demur.calibration.labelling import LabelQueue
from demur.policy.calibrate import calibrate
from demur.policy.explanations import UNLIKE
from demur.pools.fields import FieldChoice
from demur.pools.source import PoolSource, vote_pools
from demur.questions.outliers import OutlierGate
from demur.records import Path, Pool, Problem
from demur.reports.facts import report_facts
from demur.reports.page import page_of
from reports.test_facts import NASTY, made, pools
from reports.test_judged_labels import facts_of
from reports.test_report_guarantees import SEVERAL, with_learned_key
from reports.test_report_sets import made as with_sets

pytestmark = pytest.mark.skipif(find() is None, reason="no Chromium was found; run: make browser")


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
    index = [point["alpha"] for point in facts["points"] if point["family"] == 0].index(alpha)
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


def test_a_page_that_lists_a_part_of_the_questions_says_so(show):
    source, voted, policy = made(n=300)
    page = show(report_facts(source, voted, policy, title="Part", most=60))
    said = page.inner_text("#listed")
    assert said.startswith("This page lists 60 questions of 300: the 6 wrong votes that are surest, and others")
    assert "of 60 listed questions" in page.inner_text("#row-count")
    page.click("#rows tr")
    assert page.query_selector(".path") is not None
    assert show(report_facts(source, voted, policy, title="All")).inner_text("#listed") == ""


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


WIDTHS = (1280, 768, 360)
NAMES = [f"a_rather_long_name_of_a_score_{at:02d}_by_a_model" for at in range(12)]


def scored(n_scores, n=160):
    """A report on pools with several scores of long names, options, passages, and answers read off their texts."""
    rng = np.random.default_rng(n_scores)
    made = []
    for row, pool in enumerate(pools(n=n)):
        paths = []
        for at, path in enumerate(pool.paths):
            noise = rng.normal(size=n_scores).tolist()
            scores = {
                name: path.scores["s"] + 0.3 * k * e for k, (name, e) in enumerate(zip(NAMES, noise, strict=False))
            }
            answer = None if (row + at) % 9 == 0 else f"{path.answer}.0" if at % 2 else path.answer
            text = f"It is {answer}."
            read = {} if answer is None else {"extraction": "answer is", "found_at": [6, 6 + len(answer)]}
            paths.append(Path(answer, text, scores, read))
        extra = {"options": ["0", "1", "2"], "passages": ["First passage.", "Second passage."]}
        made.append(Pool(Problem(pool.problem.id, pool.problem.question, pool.problem.gold, extra=extra), tuple(paths)))
    source = PoolSource(made)
    voted = vote_pools(source, FieldChoice(score=NAMES[0]))
    policy = calibrate(voted, alpha=[0.05, 0.1], hold_out=0.5)
    return report_facts(source, voted, policy, title="Scores")


@pytest.fixture(scope="module")
def by_scores():
    return {n_scores: scored(n_scores) for n_scores in (2, 12)}


@pytest.mark.parametrize("n_scores", [2, 12])
@pytest.mark.parametrize("width", WIDTHS)
def test_many_scores_fit_every_width_with_their_names_whole(show, by_scores, n_scores, width):
    page = show(by_scores[n_scores], viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 1
    drawn = page.eval_on_selector_all("#chart-scores svg text", "all => all.map(e => e.textContent)")
    joined = "".join(drawn)
    listed = page.eval_on_selector_all("#scores-rows th", "all => all.map(e => e.textContent)")
    for name in NAMES[:n_scores]:
        assert name in joined
        assert any(name in row for row in listed)
    outside = """() => [...document.querySelectorAll('.plot svg text')].filter(text => {
        const box = text.getBoundingClientRect(), picture = text.closest('.plot').getBoundingClientRect();
        return box.width && (box.left < picture.left - 8 || box.right > picture.right + 8);
    }).map(text => text.textContent)"""
    assert page.evaluate(outside) == []
    cut = """() => [...document.querySelectorAll('#scores-rows th, .key .data, .scores-table td')]
        .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)"""
    assert page.evaluate(cut) == []


def test_no_two_of_twelve_curves_are_drawn_alike_and_each_is_in_the_key(show, by_scores):
    page = show(by_scores[12])
    styles = page.eval_on_selector_all(
        "#chart-frontier .plot > svg > path.curve", "all => all.map(e => `${e.getAttribute('style')} ${e.classList}`)"
    )
    assert len(styles) == 15  # eleven other scores, two majority votes, all votes, and the policy
    assert len(set(styles)) == len(styles)
    keyed = page.eval_on_selector_all("#chart-frontier .key li", "all => all.map(e => e.textContent)")
    assert len(keyed) == 15
    assert set(NAMES[1:]) < set(keyed)


def test_the_best_vote_in_words_is_that_of_the_table_and_noise_is_called_so(show, by_scores):
    facts = by_scores[12]
    page = show(facts)
    best = max(facts["scores"], key=lambda score: score["common_auc"])
    said = page.inner_text("#chart-scores .reading")
    first = page.locator("#scores-rows tr").first
    assert best["title"] in said
    assert best["title"] in first.locator("th").inner_text()
    assert first.locator("td").nth(1).inner_text() == "best"
    alike = [score["title"] for score in facts["scores"] if score["within_noise"]]
    assert alike
    assert ("Within noise of it" in said) == bool(alike)
    rows = page.locator("#scores-rows tr").all()
    assert sum("within noise" in row.inner_text() for row in rows) == len(alike)
    for alpha in (0.02, 0.3):  # whatever the slider says, the same vote is the best
        set_alpha(page, facts, alpha)
        assert best["title"] in page.inner_text("#chart-scores .reading")


def test_yields_in_the_table_are_those_of_the_calibrated_alpha(show, by_scores):
    facts = by_scores[2]
    page = show(facts)
    for at, alpha in enumerate((0.05, 0.1)):
        set_alpha(page, facts, alpha)
        assert page.inner_text("#scores-answered") == f"Answered at α = {alpha}"
        ranked = sorted(facts["scores"], key=lambda score: -score["common_auc"])
        shown = page.locator("#scores-rows tr").first.locator(".answered-cell").inner_text()
        assert f"{100 * ranked[0]['answered'][at][0]:.1f}" in shown


def test_the_headline_is_another_where_the_slider_leaves_the_calibrated_alphas(show, case):
    facts, _ = case
    page = show(facts)
    assert page.inner_text("#promise").startswith("At alpha = 0.05, on new questions")
    set_alpha(page, facts, 0.075)
    said = page.inner_text("#promise")
    assert said.startswith("Exploring alpha = 0.075: about ")
    assert "Nothing is promised here" in said
    assert "at most" not in said
    assert "calibrated for 0.05, 0.1" in page.inner_text("#print")
    set_alpha(page, facts, 0.1)
    assert page.inner_text("#promise").startswith("At alpha = 0.1, on new questions")


def test_an_opened_question_shows_what_was_asked_accepted_and_read(show, by_scores):
    facts = by_scores[2]
    page = show(facts)
    row = next(at for at, paths in enumerate(facts["paths"]) if None in paths["class"])
    page.evaluate("id => { location.hash = `#q=${id}` }", facts["questions"]["id"][row])
    detail = page.locator(f"tr[data-detail='{row}']")
    detail.wait_for()
    text = detail.inner_text()
    gold = facts["questions"]["gold"][row][0]
    assert f"Accepted answer: {gold}" in text
    assert "A. 0" in text
    assert "B. 1" in text
    assert "Passages (2)" in text
    detail.locator("details.asked summary").click()
    assert "Second passage." in detail.inner_text()
    without = facts["paths"][row]["class"].count(None)
    assert f"Vote: {without} of 6 paths without an answer" in text
    assert "Read by the rule “answer is”: It is" in text
    paths = facts["paths"][row]
    at = next(at for at, own in enumerate(paths["answer"]) if own and own.endswith(".0"))
    head = detail.locator(".path-head").nth(at).inner_text()
    assert paths["answer"][at] in head
    spelled = paths["classes"][paths["class"][at]]
    assert (f"counts as {spelled}" in " ".join(head.split())) == (spelled != paths["answer"][at])


@pytest.mark.parametrize("name", ["q150", "with blank & %/#?=+", "ü 字 <b>", "%E0%A4%A"])
def test_a_link_opens_its_question_wherever_it_is_in_the_table(browser, tmp_path, case, name):
    facts = {**case[0], "questions": {**case[0]["questions"]}}
    facts["questions"]["id"] = [name if at == 150 else f"r{at}" for at in range(300)]
    file = tmp_path / "report.html"
    file.write_text(page_of(facts), encoding="utf-8")
    page = browser.new_context().new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("#rows tr")
    page.click("#page-last")
    page.fill("#filter-text", "r299")
    address = page.evaluate("linkOf(150)")
    page.goto("about:blank")
    page.goto(file.as_uri() + address)
    page.wait_for_selector("tr[data-detail='150']")
    assert page.locator("tr.detail").count() == 1
    link = page.locator("tr.detail .links a")
    assert link.get_attribute("href") == address
    assert page.evaluate("document.activeElement.dataset.row") == "150"
    top = page.evaluate("document.querySelector('tr[data-row=\"150\"]').getBoundingClientRect().top")
    assert 0 <= top < 720
    page.context.close()


def test_a_link_to_no_question_says_so(show, case):
    page = show(case[0])
    page.evaluate("location.hash = '#q=<img src=x onerror=window.hacked=1>'")
    page.locator("#row-count", has_text="No question here has the id <img").wait_for()
    assert page.evaluate("window.hacked") is None
    assert page.locator("tr.detail").count() == 0


def test_the_link_is_copied_or_stands_in_the_address_bar(show, case):
    page = show(case[0])
    page.eval_on_selector("#rows tr[data-row]", "row => row.click()")
    page.click("tr.detail .links button")
    button = page.locator("tr.detail .links button", has_text=re.compile("Copied|See the address bar"))
    button.wait_for()
    if button.inner_text() != "Copied":
        assert page.url.endswith("#q=q0")


@pytest.mark.parametrize("n_scores", [2, 12])
def test_on_paper_pictures_are_drawn_for_it_and_no_page_is_left_half_empty(browser, tmp_path, by_scores, n_scores):
    """Pages are columns here: what is laid out in columns of a page's size breaks where paper breaks."""
    file = tmp_path / "report.html"
    file.write_text(page_of(by_scores[n_scores]), encoding="utf-8")
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("#rows tr")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    widths = page.eval_on_selector_all(".plot > svg", "all => all.map(e => Number(e.getAttribute('width')))")
    assert sorted(set(widths)) == [328, 680]
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 688, "height": 1017})
    filled = page.evaluate("""() => {
        Object.assign(document.body.style, {width: '688px', height: '1017px', columnWidth: '688px', columnGap: '40px',
                                            columnFill: 'auto'});
        const lowest = [];
        for (const part of document.querySelectorAll('p, svg, tr.row td, li, h2, h3, .path, dd')) {
            for (const {left, bottom, height} of part.getClientRects()) {
                const at = Math.floor((left + scrollX) / 728);
                if (height) lowest[at] = Math.max(lowest[at] ?? 0, bottom);
            }
        }
        return lowest;
    }""")
    assert len(filled) >= 4
    assert min(filled[:-1]) > 0.7 * 1017
    page.context.close()


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


def test_labels_used_are_shown_and_what_they_do_not_tell_is_not(show):
    source, voted, _ = made(n=300)
    right, queue = voted.labelled, LabelQueue(voted, [Marginal(0.1)])
    while (row := queue.next) is not None:
        queue.label(row, right=bool(right[row]))
    policy = calibrate(queue.labelled_votes(), alpha=[0.05, 0.1], partly_labelled=True)
    facts = report_facts(source, replace(voted, correct=None, labels=None), policy, title="In part")
    page = show(facts)
    text = page.inner_text("body")
    assert f"{queue.n_labelled} of 300 calibration questions are labelled, and the others count as wrong" in text
    assert f"300, {queue.n_labelled} labelled" in text
    used = page.inner_text("#used")
    assert f"Labelled\n{queue.n_labelled}\n" in used
    assert f"Without a label, counted as wrong\n{300 - queue.n_labelled}\n" in used
    assert "Of these answered at alpha = 0.05\n0" in used
    point = set_alpha(page, facts, 0.5)
    assert point["unlabelled_above"] > 0
    assert f"Of these answered at alpha = 0.5\n{point['unlabelled_above']}" in page.inner_text("#used")
    set_alpha(page, facts, 0.05)
    assert "Only some of the calibration votes are labelled, so this is not known." in text
    assert page.inner_text("#big-answered").startswith(f"{100 * policy.forecast(0.05).answered:.1f}")


def test_a_question_that_is_abstained_from_shows_its_answer_set(show):
    _, _, facts = with_sets()
    page = show(facts)
    for alpha, sets in ((point["alpha"], point["sets"]) for point in facts["answer_sets"]):
        set_alpha(page, facts, alpha)
        abstained, answered = (next(row for row, held in enumerate(sets) if (held is None) == none) for none in (0, 1))
        for row in (abstained, answered):
            page.evaluate("id => { location.hash = `#q=${id}` }", facts["questions"]["id"][row])
            page.locator(f"[data-detail='{row}']").wait_for()
        offered = page.locator(f"[data-detail='{abstained}'] .offered").inner_text()
        wanted = [*sets[abstained]["answers"], *(["OTHER"] if sets[abstained]["other"] else [])]
        assert offered.startswith(f"Answer set: {' · '.join(wanted)}. Given that the policy abstains")
        assert not page.locator(f"[data-detail='{answered}'] .offered").count()
    set_alpha(page, facts, 0.2)  # not calibrated, so nothing is promised of sets there
    assert not page.locator(".offered").count()


PER_GROUP = Grouped(Marginal(0.1))


def in_groups(n=400, guarantees=(PER_GROUP,)):
    """Pools of an easy and a hard group, some of both, a rare one, and its policy."""
    names = [["easy"], ["hard"], ["easy", "spoken"], ["hard", "spoken"]]
    some = [
        replace(pool, problem=replace(pool.problem, group=tuple(names[row % 4]) if row % 100 else (f"rare {NASTY}",)))
        for row, pool in enumerate(pools(n=n))
    ]
    source = PoolSource(some)
    voted = vote_pools(source, FieldChoice(score="s"), source.recipe("s", tie_break="jitter:0"))
    return source, voted, calibrate(voted, guarantee=list(guarantees), hold_out=0.5)


def test_each_group_has_its_row_and_its_threshold_decides(show):
    source, voted, policy = in_groups()
    facts = report_facts(source, voted, policy, title="In groups")
    page = show(facts)
    rule = policy.points[0]
    assert "in each group by itself" in page.inner_text("#promise")
    assert "For each group of at least 9 calibration questions by itself" in page.inner_text("#print")
    rows = page.locator("#groups-rows tr")
    names = [rows.nth(row).locator("th").inner_text() for row in range(rows.count())]
    assert names[:2] == ["easy", "hard"]
    assert names[-1] == "spoken"
    assert "too few" in rows.nth(2).inner_text()
    hard = rows.nth(1).inner_text()
    assert f"{rule.threshold_of(6, ('hard',))[0]:.3f}" in hard
    assert "consistent" in hard
    decided = policy.decide_votes(voted.votes)
    page.select_option("#filter-decision", "answered")
    assert f"{int(decided.answered.sum())} of 400" in page.inner_text("#row-count")
    page.select_option("#filter-decision", index=0)
    page.fill("#filter-text", "Question 100?")
    page.wait_for_function("document.querySelectorAll('#rows tr[data-row]').length === 1")
    page.query_selector("#rows tr[data-row]").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("document.body.innerText.includes('where alpha = 0.1 needs 9')")
    assert page.evaluate("window.hacked") is None


def test_the_slider_moves_the_groups_and_pages_without_groups_have_no_such_table(show, case):
    source, voted, policy = in_groups(guarantees=[Marginal(0.1), Grouped(HighProbability(0.1, 0.2))])
    facts = report_facts(source, voted, policy, title="In groups")
    page = show(facts)
    assert page.locator("#guarantee option").all_inner_texts() == ["Grouped high probability, delta = 0.2", "Marginal"]
    assert "in each group by itself, for all but a share 0.2 of calibration sets" in page.inner_text("#promise")
    before = page.inner_text("#groups-rows")
    point = set_alpha(page, facts, 0.3)
    assert page.inner_text("#groups-rows") != before
    assert page.inner_text("#groups-said").startswith("Exploring")
    assert f"{100 * point['groups'][0]['answered']:.1f}" in page.inner_text("#groups-rows")
    explored = settle_by_size(Grouped(HighProbability(0.3, 0.2)), policy.strata)
    assert decided(page) == explored.answers(voted.votes.cases).tolist()
    page.select_option("#guarantee", label="Marginal")  # one threshold for all has no table of groups
    assert not page.locator("#groups").is_visible()
    assert not show(case[0]).locator("#groups").is_visible()


def decided(page):
    """Which questions the page answers."""
    return page.evaluate("state.answered")


@pytest.mark.parametrize("guarantees", [SEVERAL, (Marginal(0.1), PER_GROUP, Grouped(HighProbability(0.1, 0.2)))])
def test_each_guarantee_can_be_chosen_and_decides_as_python_does(show, guarantees):
    """By keyboard: the list of guarantees is a plain one."""
    source, voted, policy = in_groups(guarantees=guarantees)
    page = show(report_facts(source, voted, policy, title="Several"))
    page.focus("#guarantee")
    seen = set()
    for at, family in enumerate(page.evaluate("facts.families")):
        if at:
            page.keyboard.press("ArrowDown")
        assert page.input_value("#guarantee") == str(at)
        for alpha in family["chosen"]:
            page.click(f"#chosen button:text-is('{alpha:g}')")
            page.focus("#guarantee")
            name = page.evaluate("now().guarantee")
            rule = policy.point(alpha, name)
            seen.add((alpha, name))
            assert decided(page) == policy.decide_votes(voted.votes, alpha=alpha, guarantee=name).answered.tolist()
            assert rule.promise in page.inner_text("#print")
            told = policy.forecast(alpha, name)
            assert page.inner_text("#big-answered").startswith(f"{100 * told.answered:.1f}")
            p_values = page.evaluate("questions.p_value")
            assert p_values == pytest.approx(rule.p_value(policy.strata, voted.votes.cases))
    assert seen == {(rule.alpha, rule.guarantee.name) for rule in policy.points}


def test_every_alpha_is_promised_on_the_slider_where_all_are_together(show):
    source, voted, policy = made((Simultaneous(0.1, 0.1),), n=400)
    facts = report_facts(source, voted, policy, title="At once")
    page = show(facts)
    assert not page.locator("#guarantee").is_visible()
    for alpha in (0.1, 0.155, 0.3):
        set_alpha(page, facts, alpha)
        text = " ".join(page.inner_text(part) for part in ("#promise", "#print", "#status"))
        assert "xploring" not in text
        assert "beforehand: the policy" not in text
        assert f"the rate of wrong answers on new questions is at most {100 * alpha:g}" in text
        assert "Every alpha is promised together: take any of them" in text
        assert "Choosing alpha by these labels costs" in text
        assert decided(page) == policy.decide_votes(voted.votes, alpha=alpha).answered.tolist()
    assert "Any alpha holds" in page.inner_text("#chosen")


def test_a_choice_and_its_price_are_told(show):
    source, voted, policy = made((Marginal(0.1, choices=12),), n=400)
    page = show(report_facts(source, voted, policy, title="Chosen"))
    assert "whichever of 12 ways to vote was chosen by the same labels" in page.inner_text("#promise")
    assert "Choosing one of 12 ways to vote by these labels costs" in page.inner_text("#print")


def test_a_limit_on_the_answers_is_drawn_and_told_as_one(show):
    source, voted, policy = made((Selective(0.1, 0.1),), n=600)
    page = show(report_facts(source, voted, policy, title="Selective"))
    assert "Limit: 10\u00a0% of the answers given" in page.inner_text("#sub-error")
    assert "limit 10\u00a0% of the answers" in page.inner_text("#chart-control .reading")
    assert "α times the share answered" in page.inner_text("#chart-control figcaption")


def test_where_no_threshold_keeps_a_promise_about_answers_the_page_says_so_and_names_none(show):
    source, voted, policy = made((Selective(0.02, 0.1),), n=600)
    page = show(report_facts(source, voted, policy, title="Nowhere"))
    for part in ("#promise", "#warnings", "#chart-accuracy .reading"):
        assert NOWHERE_FEW_ENOUGH[3:] in page.inner_text(part)
    assert page.inner_text("#big-threshold") == "none"
    page.eval_on_selector("#rows tr[data-row]", "row => row.click()")
    assert NOWHERE_FEW_ENOUGH[:-1] in page.inner_text("tr.detail .decided")


def test_a_question_that_the_gate_closes_is_told_from_one_of_low_confidence(show):
    words = ["red", "blue", "green", "tall", "small", "fast", "slow", "old"]
    rng = np.random.default_rng(1)
    asked = [f"{' '.join(rng.choice(words, 6))} {at}?" for at in range(100, 800)]
    source = PoolSource(
        [
            replace(pool, problem=replace(pool.problem, question=asked[at] if at % 9 else f"∑ {at} " * 90))
            for at, pool in enumerate(pools(n=300))
        ]
    )
    gate = OutlierGate.fit(asked[400:], level=0.05)
    recipe = vote_pools(source, FieldChoice(score="s")).votes.recipe.gated(gate)
    voted = vote_pools(source, FieldChoice(score="s"), recipe)
    policy = calibrate(voted, alpha=0.1, hold_out=0.5)
    page = show(report_facts(source, voted, policy, title="Gated"))
    closed = voted.votes.key[:, 0] == 0
    low = np.flatnonzero(~closed & ~policy.decide_votes(voted.votes).answered)[0]
    assert 30 < closed.sum() < 100
    for row, told in ((np.flatnonzero(closed)[0], True), (low, False)):
        page.evaluate("id => { location.hash = `#q=${id}` }", f"q{row}")
        page.locator(f"[data-detail='{row}']").wait_for()
        assert (UNLIKE in page.inner_text(f"[data-detail='{row}'] .decided")) == told
    assert "0 for questions that the gate takes for outliers" in page.inner_text("#run")
    assert decided(page) == policy.decide_votes(voted.votes).answered.tolist()


def test_labels_by_a_checked_judge_are_counted(show, case):
    source, voted, _ = made(n=400)
    rng, truth = np.random.default_rng(5), voted.labelled
    drawn, said = rng.random(400) < 0.5, np.where(rng.random(400) < 0.1, ~truth, truth)
    policy = calibrate(voted.with_labels(said), guarantee=JudgeMarginal(0.1), checked=np.where(drawn, truth, None))
    page = show(
        report_facts(source, voted.with_labels(said), policy, title="Judged"), viewport={"width": 400, "height": 800}
    )
    used, found = page.inner_text("#used"), policy.judge
    low, high = (100 * bound for bound in (found.false_right_rate.lower, found.false_right_rate.upper))
    assert f"{found.false_right} of {found.right}" in used
    assert f"{low:.1f} to {high:.1f}" in used
    assert f"Drawn for people to check\n{found.drawn}" in used
    assert "Set by the errors that the judge saw" in page.inner_text("#sub-threshold")
    assert "undefined" not in page.inner_text("body")
    assert not show(case[0]).locator("#used").is_visible()


def test_a_learned_confidence_stands_beside_the_share_it_replaces(show):
    source, voted, policy = with_learned_key()
    facts = report_facts(source, voted, policy, title="Learned")
    page = show(facts)
    heads = page.locator("#heads th").all_inner_texts()
    assert heads[3:5] == ["Learned confidence", "Share of the vote"]
    page.click("th[data-key='lead'] button")
    page.eval_on_selector("#rows tr[data-row]", "row => row.click()")
    row = int(page.locator("#rows tr[data-row]").first.get_attribute("data-row"))
    led, share = voted.votes.key[row, 0], voted.votes.confidence[row]
    assert f"learned confidence {led:.4f} (share of the vote {share:.4f})" in page.inner_text("tr.detail .decided")
    assert "Threshold on learned confidence, λ" in page.inner_text("#chart-accuracy")
    assert "learned, fitted on 150 labelled problems" in page.inner_text("#run")
    assert decided(page) == policy.decide_votes(voted.votes, alpha=0.05).answered.tolist()


@pytest.mark.parametrize("width", WIDTHS)
def test_groups_of_long_names_fit_every_width(show, width):
    source, voted, policy = in_groups(guarantees=[PER_GROUP, Grouped(Marginal(0.2), 20, "pooled")])
    page = show(report_facts(source, voted, policy, title="In groups"), viewport={"width": width, "height": 900})
    for at in ("0", "1"):
        page.select_option("#guarantee", at)
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 1
    assert "that of all" in page.inner_text("#groups-rows")
    assert "have no limit of their own" in page.inner_text("#groups-said")
