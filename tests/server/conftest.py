from __future__ import annotations

import pytest

from demur.server.access import key_ring
from demur.server.api import health
from serving import PROBLEMS, adder, adding_pipeline, listening, made_app, service_of


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """On a busy machine keys may not be read within seconds, nor a store be looked at."""
    monkeypatch.setattr(key_ring, "_LONGEST_READ", 60.0)
    monkeypatch.setattr(health, "_PATIENCE", 20.0)


@pytest.fixture(scope="package")
def sums_policy(tmp_path_factory):
    """A policy of the adding model at two alphas."""
    from loopback import Loopback

    server = Loopback(behave=adder).start()
    folder = tmp_path_factory.mktemp("sums")
    try:
        return adding_pipeline(server.url).run(PROBLEMS, folder / "run.db").calibrate(alpha=[0.1, 0.3])
    finally:
        server.stop()


@pytest.fixture
def upstream(server):
    server.behave = adder
    return server


@pytest.fixture
def majority(upstream, tmp_path):
    """A policy of the majority vote, whose paths can be certain early."""
    from demur.backends import OpenAI
    from demur.backends.protocol import Settings
    from demur.pipeline.pipeline import Pipeline

    pipeline = Pipeline(OpenAI(upstream.url, "adder"), n_paths=8, score=None, settings=Settings(logprobs=False))
    policy = pipeline.run(PROBLEMS, tmp_path / "run.db").calibrate(alpha=[0.1, 0.3])
    upstream.requests.clear()
    return policy


@pytest.fixture
def service(upstream, sums_policy):
    return service_of(upstream.url, sums_policy, aliases={"gpt-4o": "sums@0.3"})


@pytest.fixture
def address(service):
    with listening(made_app(service)) as url:
        yield url
