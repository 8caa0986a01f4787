"""The status page in a real Chromium: what is in doubt is said, an administrator clears it, others cannot."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from browser.chromium import find
from serving import listening
from watching import ask_all, judge, look, watched_app

pytestmark = pytest.mark.skipif(find() is None, reason="no Chromium was found; run: make browser")
NASTY = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'


@pytest.fixture
def in_doubt(model, policy, store):
    """The address of a service whose questions have changed, and whose answers have labels."""
    app = watched_app(model.url, policy, store, online_step=0.01)
    app.state.access.ring.fresh = 0.2
    with listening(app) as address:
        judge(store, ask_all(address, range(1001, 1101, 2)), "right")
        look(app)
        store.events.note(1, "note", NASTY, policy=1)
        yield address


@pytest.fixture
def opened(browser):
    """Open a page; the test fails on any error in it, and on any request to elsewhere."""
    pages = []

    def open_page(address, route="/status", **context):
        page = browser.new_context(**context).new_page()
        page.troubles = []
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("request", lambda asked: None if asked.url.startswith(address) else page.troubles.append(asked.url))
        page.goto(address + route)
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        assert page.troubles == []
        page.context.close()


def test_what_is_in_doubt_is_said_and_cleared(opened, in_doubt, store):
    page = opened(in_doubt)
    page.wait_for_selector(".verdict.doubt")
    assert "The promise is in doubt since" in page.inner_text(".verdict")
    assert "Keys have drifted" in page.inner_text(".verdict")
    assert "wrong answers among all requests, in audits" in page.inner_text("body")
    assert "confidence needed for an answer, now" in page.inner_text("body")
    assert "The calibrated threshold is in force." in page.inner_text("body")
    page.fill(".clear input", "the form was changed on purpose")
    page.press(".clear input", "Enter")
    page.wait_for_selector(".verdict:not(.doubt)")
    assert "nothing speaks against the promise" in page.inner_text(".verdict")
    [event] = store.events.latest(kind="cleared")
    assert event.facts["note"] == "the form was changed on purpose"
    assert event.words in page.inner_text("body")


def test_nothing_that_anybody_wrote_becomes_markup(opened, in_doubt):
    page = opened(in_doubt)
    page.wait_for_selector(".events")
    assert "<img src=x" in page.inner_text(".events")
    assert page.query_selector("img") is None
    assert page.evaluate("window.hacked") is None


def test_a_reviewer_sees_it_after_login_and_cannot_clear(opened, in_doubt, store):
    _, secret = store.keys.create("rita", ["review"], 1)
    time.sleep(0.3)  # until the service has learnt of the key
    page = opened(in_doubt)
    page.wait_for_url("**/login?then=status")
    page.fill("#key", secret)
    page.press("#key", "Enter")
    page.wait_for_selector(".verdict.doubt")
    assert page.query_selector(".clear") is None
    said = page.evaluate(
        """async () => {
            const { call } = await import("/pages/access.js");
            try { await call("/status/api/clear", { policy: "sums:v1" }); return "cleared"; }
            catch (error) { return error.status; }
        }"""
    )
    assert said == 403


def test_the_labels_are_words_of_their_own(opened, model, policy, store):
    """Nobody needs the documentation to read them; fifteen answers have no label."""
    app = watched_app(model.url, policy, store)
    with listening(app) as address:
        ask_all(address, range(1002, 1032, 2))
        look(app)
        page = opened(address, "/")  # the address alone leads here
        page.wait_for_selector(".card")
        assert page.url == f"{address}/status"
        day, _, audits, *_ = page.locator("dl").all()
        told, rows = (
            dict(zip(one.locator("dt").all_inner_texts(), one.locator("dd").all_inner_texts(), strict=True))
            for one in (audits, day)
        )
        assert told["audits so far"] == "15"
        assert told["audits waiting for a label"] == "15"
        assert told["wrong answers among all requests, as promised"] == "≤ 10.0%"
        assert rows["not answered, because something failed"] == "0 (0.0%)"
        assert "every reply says so" in page.inner_text("#told")
        assert not re.search(r"its limits|limits of that|have their turn|labels awaited", page.inner_text("body"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_it_fits_screens_in_light_and_dark(opened, in_doubt, scheme, width):
    page = opened(in_doubt, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.wait_for_selector(".verdict.doubt")
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 1
    if folder := os.environ.get("DEMUR_SCREENSHOTS"):
        page.screenshot(path=str(Path(folder) / f"status-{width}-{scheme}.png"), full_page=True)
