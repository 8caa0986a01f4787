"""Sizes of the pools in traffic, against those of calibration: a difference is one event."""

from __future__ import annotations

from dataclasses import replace

import pytest

from demur.evidence.strata import Strata
from demur.server.alarms.pool_sizes import KIND
from demur.store.service import ServiceStore
from serving import listening
from watching import ask, look, watched_app


@pytest.fixture
def store(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as opened:
        yield opened


def calibrated_on(policy, sizes):
    """The same policy, as if pools of these sizes had calibrated it."""
    [part] = policy.strata.parts.values()
    return replace(policy, strata=Strata({((), size): part for size in sizes}, by_chance=len(sizes) > 1))


@pytest.mark.parametrize(("sizes", "events"), [((4, 5), 1), ((5,), 0)])
def test_traffic_that_has_one_of_two_sizes_is_one_event(upstream, sums_policy, store, sizes, events, caplog):
    app = watched_app(upstream.url, calibrated_on(sums_policy, sizes), store)
    with listening(app) as address:
        for number in range(49):
            ask(address, number)
        look(app)
        assert store.events.latest(kind=KIND) == []  # too few to look at
        for number in range(49, 105):
            ask(address, number)
        look(app)
        look(app)
    told = store.events.latest(kind=KIND)
    assert len(told) == events
    for event in told:
        assert event.words.startswith("sums:v1: pool sizes differ from calibration's (p = ")
        assert "100.0% of these 105 pools have 5 paths, 50.0% in calibration" in event.words
    assert sum("pool sizes differ" in line for line in caplog.messages) == events
