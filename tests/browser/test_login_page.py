"""The login page in a real Chromium: by keyboard, at 360 pixels, with nothing but this service's own files."""

from __future__ import annotations

import pytest

from browser.chromium import find
from demur.server import page_files
from guarded import guarded_app
from serving import listening

pytestmark = pytest.mark.skipif(find() is None, reason="no Chromium was found; run: make browser")


@pytest.fixture
def address(model, policy, store):
    with listening(guarded_app(model.url, policy, store)) as url:
        yield url


@pytest.fixture
def page(address):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find(), args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        page = browser.new_context(viewport={"width": 360, "height": 640}).new_page()
        page.troubles = []
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("request", lambda asked: asked.url.startswith(address) or page.troubles.append(asked.url))
        yield page
        assert page.troubles == []
        browser.close()


def test_whoever_has_a_key_logs_in_by_keyboard_and_out_again(page, address, store, tmp_path, monkeypatch):
    monkeypatch.setitem(page_files.FILES, "review.html", b"<!doctype html><title>Reviews</title>")
    secret = store.keys.create("<img src=x onerror=alert(1)>", ["review"], 1)[1]
    page.goto(f"{address}/review")
    assert page.url == f"{address}/login?then=review"
    page.wait_for_selector("#key:focus")
    page.keyboard.type("demur-forged")
    page.keyboard.press("Enter")
    page.locator("#trouble", has_text="no such key").wait_for()
    page.keyboard.type(secret)  # what was wrong is selected, and typed over
    page.keyboard.press("Enter")
    page.wait_for_url(f"{address}/review")
    page.goto(f"{address}/login")
    page.wait_for_selector("#inside:visible")
    assert page.text_content("#who") == "Logged in as <img src=x onerror=alert(1)>"
    assert page.evaluate("document.cookie") == ""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=tmp_path / "logged-in.png")
    page.click("#leave")
    page.wait_for_selector("#enter:visible")
    page.goto(f"{address}/review")
    assert page.url == f"{address}/login?then=review"


def test_a_key_without_the_role_is_told_so(page, address, store):
    secret = store.keys.create("asks", ["ask"], 1)[1]
    page.goto(f"{address}/login?then=review")
    page.fill("#key", secret)
    page.click("button[type=submit]")
    page.wait_for_selector("#inside:visible")
    assert "role review" in page.text_content("#trouble")
    assert page.url == f"{address}/login?then=review"


@pytest.mark.parametrize("then", ["https://evil.example", "//evil.example", "constructor", "javascript:alert(1)"])
def test_nobody_is_led_elsewhere_after_the_login(page, address, store, then):
    secret = store.keys.create("anna", ["review"], 1)[1]
    page.goto(f"{address}/login?then={then}")
    page.fill("#key", secret)
    page.click("button[type=submit]")
    page.wait_for_selector("#inside:visible")
    assert page.url.startswith(address)


def test_nothing_that_stands_in_a_page_runs(page, address, store, monkeypatch):
    store.keys.create("anna", ["review"], 1)
    written = page_files.FILES["login.html"].replace(b"</body>", b"<script>document.title = 'ran'</script></body>")
    monkeypatch.setitem(page_files.FILES, "login.html", written)
    page.goto(f"{address}/login")
    page.wait_for_selector("#enter:visible")
    assert page.title() == "Log in · demur"


def test_without_keys_the_page_says_so(page, address):
    page.goto(f"{address}/login")
    page.wait_for_selector("#inside:visible")
    assert page.text_content("#who") == "No keys are asked for"
    assert not page.is_visible("#leave")
