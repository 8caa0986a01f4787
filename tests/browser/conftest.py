"""A real Chromium, and a service on the adding model for its pages."""

from __future__ import annotations

import pytest

from browser.chromium import find
from demur.server.access import key_ring
from demur.store.service import ServiceStore
from loopback import Loopback
from serving import PROBLEMS, adder, adding_pipeline


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """On a busy machine keys may not be read within seconds."""
    monkeypatch.setattr(key_ring, "_LONGEST_READ", 60.0)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=find(), args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        new_context = running.new_context

        def patient_context(**how):
            context = new_context(**how)
            context.set_default_timeout(120_000)
            return context

        running.new_context = patient_context
        yield running
        running.close()


@pytest.fixture(scope="module")
def model():
    server = Loopback(behave=adder).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def policy(model, tmp_path_factory):
    run = adding_pipeline(model.url).run(PROBLEMS, tmp_path_factory.mktemp("sums") / "run.db")
    return run.calibrate(alpha=[0.1, 0.3])


@pytest.fixture
def store(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as opened:
        yield opened
