"""Where runs live: a SQLite file by default, PostgreSQL by URL, with the same tables and the same code."""

from __future__ import annotations

from demur.store.budgets import Budget
from demur.store.reading import Pending
from demur.store.rows import PathScore, PlacedPath
from demur.store.run import Run
from demur.store.scores import Unscored
from demur.store.store import Store
from demur.store.worker import Worker

__all__ = ["Budget", "PathScore", "Pending", "PlacedPath", "Run", "Store", "Unscored", "Worker"]
