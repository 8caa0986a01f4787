"""A store of a service, on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest

from demur.store.service import ServiceStore


@pytest.fixture
def store(place):
    with ServiceStore(place, create=True) as opened:
        yield opened
