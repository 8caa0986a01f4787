"""The review page in a real Chromium: by keyboard, on a phone, by two people at once, through an outage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from browser.chromium import find
from demur.store.service import ReviewFilter
from patience import wait_until
from reviewing import ask, nasty, reviewed_app
from serving import listening

pytestmark = pytest.mark.skipif(find() is None, reason="no Chromium was found; run: make browser")
PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
PICTURES = os.environ.get("DEMUR_PICTURES")
"""A folder that keeps pictures of the page, where somebody wants to look at them."""


@pytest.fixture
def serve(model, policy, store):
    """A service with the questions given, and its address."""
    running = []

    def start(*numbers, **settings):
        block = listening(reviewed_app(model.url, policy, store, **{"audit_share": 1e-9, **settings}))
        address = block.__enter__()
        running.append(block)
        ask(address, *numbers)
        return address

    yield start
    for block in running:
        block.__exit__(None, None, None)


@pytest.fixture
def visit(browser):
    """Open the page; the test fails on any error in it, but that the service is out of reach where that is meant."""
    opened = []

    def open_page(address, path="/review", outages=False, **context):
        page = browser.new_context(**context).new_page()
        page.troubles, page.outages = [], outages
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("console", lambda said: page.troubles.append(said.text) if said.type == "error" else None)
        page.on("dialog", lambda dialog: page.troubles.append(dialog.message))
        page.goto(address + path)
        opened.append(page)
        return page

    yield open_page
    for page in opened:
        unwanted = [said for said in page.troubles if not (page.outages and "Failed to load resource" in said)]
        page.context.close()
        assert unwanted == []


def shown(page, question):
    """Wait until an item is shown, and a key would be taken for it."""
    page.wait_for_function(
        "words => !document.getElementById('shown').hidden && !document.body.hasAttribute('aria-busy')"
        " && document.getElementById('asked').innerText.includes(words)",
        arg=question,
    )
    page.wait_for_timeout(300)


def nothing_waits(page):
    page.wait_for_selector("#nothing:not([hidden])")


def judged(store):
    """Each request's verdict and true answer, by its question."""
    items = store.reviews.queue(ReviewFilter(state="done"))
    words = store.feedback.latest([item.request for item in items])
    made = store.decisions.several(list(words))
    return {made[name].question: (said[-1].verdict, said[-1].answer) for name, said in words.items()}


def picture(page, name):
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png")


def test_a_queue_is_worked_through_by_keyboard_alone(serve, visit, store):
    page = visit(serve(1, 5, 13))
    shown(page, "What is 1 + 1?")
    assert "3 abstentions and 0 audits wait" in page.inner_text("#counts")
    for _ in range(2):
        page.keyboard.press("j")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Path 2 of 5"
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Path 1 of 5"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("t")
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    shown(page, "What is 5 + 1?")
    assert "you: wrong, the true answer 2" in page.inner_text("#last")
    page.keyboard.press("r")
    shown(page, "What is 13 + 1?")
    page.keyboard.press("w")
    nothing_waits(page)
    assert page.inner_text("#say") == "Nothing waits for you."
    assert judged(store) == {
        "What is 1 + 1?": ("wrong", "2"), "What is 5 + 1?": ("right", None), "What is 13 + 1?": ("wrong", None),
    }  # fmt: skip


def test_a_digit_is_the_true_answer_and_z_takes_a_verdict_back(serve, visit, store):
    page = visit(serve(1))
    shown(page, "What is 1 + 1?")
    second = page.inner_text("#answers li:nth-child(2) .answer")
    page.keyboard.press("2")
    nothing_waits(page)
    assert judged(store) == {"What is 1 + 1?": ("wrong", second)}
    page.keyboard.press("z")
    shown(page, "What is 1 + 1?")
    assert judged(store) == {}
    page.keyboard.press("1")
    nothing_waits(page)
    assert [verdict for verdict, _ in judged(store).values()] == ["right"]


def test_skipped_items_come_again_when_they_are_asked_for(serve, visit):
    page = visit(serve(1, 5))
    shown(page, "What is 1 + 1?")
    page.keyboard.press("s")
    shown(page, "What is 5 + 1?")
    page.keyboard.press("s")
    nothing_waits(page)
    page.click("text=Go through the 2 skipped again")
    shown(page, "What is 1 + 1?")


def test_an_audit_is_blind_until_the_verdict(serve, visit, store):
    page = visit(serve(1, 2, audit_share=1.0))
    shown(page, "What is 1 + 1?")
    seen = page.inner_text("main")
    assert "The vote is hidden" in seen
    assert "confidence" not in seen
    assert "%" not in seen
    assert page.query_selector(".meter") is None
    assert page.query_selector(".score") is None
    assert page.is_disabled("#right")
    assert page.inner_text("#wrong") == "W None is right"
    picture(page, "blind")
    page.keyboard.press("w")
    shown(page, "What is 2 + 1?")
    assert "the vote said 500" in page.inner_text("#last")
    assert "abstained" in page.inner_text("#last")
    page.keyboard.press("b")
    page.wait_for_selector(".meter")
    assert "Answered" in page.inner_text("#decided")
    page.keyboard.press("r")
    nothing_waits(page)
    assert judged(store) == {"What is 1 + 1?": ("wrong", None), "What is 2 + 1?": ("right", None)}


def test_two_people_at_once_never_see_one_item_and_judge_all(serve, visit, store):
    address = serve(1, 5, 9, 13, 17)
    pages = [visit(address), visit(address)]
    for page in pages:
        page.wait_for_selector("#shown:not([hidden])")
        page.wait_for_timeout(300)

    def all_are_judged():
        questions = [page.inner_text("#asked") for page in pages if page.is_visible("#shown")]
        assert len(questions) == len(set(questions))
        for page in pages:
            if page.is_visible("#shown"):
                page.keyboard.press("u")
            page.wait_for_timeout(300)
        return len(judged(store)) == 5

    wait_until(all_are_judged)
    assert all(
        len(store.feedback.history(item.request)) == 1 for item in store.reviews.queue(ReviewFilter(state="done"))
    )


def test_what_is_judged_in_an_outage_is_kept_and_sent_once(serve, visit, store):
    page = visit(serve(1, 5), outages=True)
    shown(page, "What is 1 + 1?")
    page.context.set_offline(True)
    page.keyboard.press("w")
    page.wait_for_function("() => document.getElementById('network').innerText.includes('One verdict is kept here')")
    assert page.is_visible("#network")
    assert judged(store) == {}
    page.context.set_offline(False)
    shown(page, "What is 5 + 1?")
    assert not page.is_visible("#network")
    assert judged(store) == {"What is 1 + 1?": ("wrong", None)}
    assert page.evaluate("Object.keys(localStorage).filter(name => name.startsWith('demur-verdict')).length") == 0


def test_a_reply_that_is_lost_doubles_nothing(serve, visit, store):
    page = visit(serve(1, 5), outages=True)
    shown(page, "What is 1 + 1?")
    times = []

    def lose(route):
        times.append(route.fetch().status)  # the service has it, and the page does not hear so
        route.abort() if len(times) == 1 else route.continue_()

    page.route("**/review/api/verdict", lose)
    page.keyboard.press("u")
    shown(page, "What is 5 + 1?")
    assert times[0] == 200
    (item,) = store.reviews.queue(ReviewFilter(state="done"))
    assert len(store.feedback.history(item.request)) == 1


def test_a_verdict_survives_the_page_and_is_sent_when_it_is_opened_again(serve, visit, store):
    address = serve(1, 5)
    page = visit(address, outages=True)
    shown(page, "What is 1 + 1?")
    page.route("**/review/api/**", lambda route: route.abort())
    page.keyboard.press("u")
    page.wait_for_function("() => document.getElementById('network').innerText.includes('kept here')")
    page.unroute("**/review/api/**")
    page.goto(address + "/review")
    shown(page, "What is 5 + 1?")
    assert judged(store) == {"What is 1 + 1?": ("unsure", None)}


def test_a_verdict_that_came_too_late_is_told_and_not_noted(serve, visit, store):
    page = visit(serve(1, 5), outages=True)
    shown(page, "What is 1 + 1?")
    item = store.reviews.held("anybody")[0]
    page.route("**/review/api/**", lambda route: route.abort())
    page.keyboard.press("u")
    page.wait_for_function("() => document.getElementById('network').innerText.includes('kept here')")
    store.reviews.release(item.request, item.lease_token)
    other = store.reviews.claim("another", request=item.request)
    page.unroute("**/review/api/**")
    page.wait_for_selector("#refused li")
    assert "Not noted: your verdict (unsure) on What is 1 + 1?" in page.inner_text("#refused")
    shown(page, "What is 5 + 1?")
    assert store.reviews.settle(item.request, other.lease_token, 1, verdict="wrong")
    assert [word.verdict for word in store.feedback.history(item.request)] == ["wrong"]
    page.click("text=Dismiss")
    assert page.query_selector("#refused li") is None


def test_a_verdict_in_an_outage_can_be_taken_back_before_it_is_sent(serve, visit, store):
    page = visit(serve(1), outages=True)
    shown(page, "What is 1 + 1?")
    page.route("**/review/api/verdict", lambda route: route.abort())
    page.keyboard.press("w")
    page.wait_for_function("() => document.getElementById('network').innerText.includes('kept here')")
    page.wait_for_function("() => !document.body.hasAttribute('aria-busy')")
    page.keyboard.press("z")
    shown(page, "What is 1 + 1?")
    page.unroute("**/review/api/verdict")
    page.keyboard.press("u")
    nothing_waits(page)
    assert judged(store) == {"What is 1 + 1?": ("unsure", None)}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_used_on_a_phone(serve, visit, store, scheme):
    page = visit(serve(1, 5), color_scheme=scheme, **PHONE)
    shown(page, "What is 1 + 1?")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    boxes = [page.query_selector(f"#{name}").bounding_box() for name in ("right", "wrong", "unsure", "skip", "undo")]
    assert all(box["height"] >= 44 for box in boxes)
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 360 for box in boxes)
    tops = page.eval_on_selector_all(".path", "all => all.map(one => one.getBoundingClientRect().left)")
    assert len(set(tops)) == 1, "paths stand below one another"
    picture(page, f"phone-{scheme}")
    page.tap("#wrong")
    shown(page, "What is 5 + 1?")
    page.tap("#answers li:nth-child(1) button")
    nothing_waits(page)
    assert [verdict for verdict, _ in judged(store).values()] == ["wrong", "right"]


def test_on_a_wide_screen_paths_stand_side_by_side(serve, visit):
    page = visit(serve(1), viewport={"width": 1280, "height": 800})
    shown(page, "What is 1 + 1?")
    tops = page.eval_on_selector_all(".path", "all => all.map(one => one.getBoundingClientRect().top)")
    assert len(tops) == 5
    assert len(set(tops)) == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    picture(page, "wide")


NASTY = (
    "<script>window.hurt = 1</script>", "</textarea><img src=x onerror='window.hurt = 1'>", "</script><b>bold</b>",
    "a\u202eb\u2066c", "${alert(1)}", "javascript:alert(1)",
)  # fmt: skip


def test_whatever_was_written_is_shown_as_text(serve, visit, store):
    address = serve()
    for at, text in enumerate(NASTY):
        store.decisions.add(
            *[[part] for part in nasty(f"r{at}", text, at=at, options=[text], passages=[text], groups=[text])]
        )
    page = visit(address)
    for text in NASTY:
        seen = text.replace("\u202e", "[U+202E]").replace("\u2066", "[U+2066]")
        shown(page, seen)
        assert seen in page.inner_text("#answers")
        assert seen in page.inner_text("#paths")
        assert page.evaluate("window.hurt") is None
        assert page.query_selector("main script, main img, main b b") is None
        page.keyboard.press("t")
        page.keyboard.insert_text(f"{text}!")
        page.keyboard.press("Enter")
        page.wait_for_function("words => document.getElementById('last').innerText.includes(words)", arg=seen[:20])
    nothing_waits(page)
    page.click("#queue summary")
    page.click("#see-done")
    page.wait_for_function("() => document.querySelectorAll('#items li').length === 6")
    assert page.evaluate("window.hurt") is None


def test_a_megabyte_of_text_is_shown_in_part_and_whole_where_that_is_asked_for(serve, visit, store):
    address = serve()
    store.decisions.add(*[[part] for part in nasty("r", "x" * 1_000_000, answer="7")])
    page = visit(address)
    page.wait_for_selector("#shown:not([hidden])")
    assert len(page.inner_text("main")) < 60_000
    page.click("#asked .more >> nth=0")
    assert len(page.inner_text("#asked")) >= 1_000_000
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_people_log_in_and_see_how_often_they_agree(serve, visit, store):
    keys = {name: store.keys.create(name, ["ask", "review"], 1)[1] for name in ("ann", "bob")}
    address = serve(second_opinions=1.0)
    ask(address, 1, Authorization=f"Bearer {keys['ann']}")
    pages = {}
    for name, verdict in (("ann", "w"), ("bob", "u")):
        page = pages[name] = visit(address)
        page.fill("#key", keys[name])
        page.keyboard.press("Enter")
        page.wait_for_selector("#shown:not([hidden])")
        shown(page, "What is 1 + 1?")
        assert page.inner_text("#who") == name
        assert "two opinions wanted" in page.inner_text("#about")
        page.keyboard.press(verdict)
        nothing_waits(page)
    assert "the other person disagrees" in pages["bob"].inner_text("#last")
    assert "agreed on 0" in pages["bob"].inner_text("#agreement")
    assert "wrong" not in pages["bob"].inner_text("main")


def test_the_queue_lists_what_waits_and_what_is_judged(serve, visit, store):
    page = visit(serve(1, 5, 13))
    shown(page, "What is 1 + 1?")
    page.click("#queue summary")
    page.wait_for_function("() => document.querySelectorAll('#items li').length === 3")
    page.click("#items li:nth-child(3) button")
    shown(page, "What is 13 + 1?")
    page.keyboard.press("u")
    shown(page, "What is 1 + 1?")
    page.click("#see-done")
    page.wait_for_function("() => document.getElementById('items').innerText.includes('you: unsure')")
    page.click("text=Take back")
    shown(page, "What is 13 + 1?")
    assert judged(store) == {}


def test_filters_choose_what_comes(serve, visit, store):
    address = serve(1)
    store.decisions.add(*[[part] for part in nasty("old", "From long ago?", reason="both")])
    page = visit(address)
    shown(page, "From long ago?")
    page.click("#choices summary")
    page.select_option("#age", label="Up to an hour")
    shown(page, "What is 1 + 1?")
    page.select_option("#age", label="Any")
    page.select_option("#reason", label="Audits")
    shown(page, "From long ago?")
    assert "1 audit wait" in page.inner_text("#counts")
    page.reload()
    shown(page, "From long ago?")
    assert page.input_value("#reason") == "audit"


def test_help_shows_the_keys_and_they_do_nothing_behind_it(serve, visit, store):
    page = visit(serve(1))
    shown(page, "What is 1 + 1?")
    page.keyboard.press("?")
    assert page.is_visible("#help")
    page.keyboard.press("w")
    page.wait_for_timeout(300)
    page.keyboard.press("Escape")
    assert not page.is_visible("#help")
    assert judged(store) == {}


def test_an_item_is_given_back_when_the_page_is_left(serve, visit, store):
    page = visit(serve(1))
    shown(page, "What is 1 + 1?")
    page.goto("about:blank")
    wait_until(lambda: not store.reviews.held("anybody"))
