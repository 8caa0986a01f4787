"""Where runs live: a SQLite file by default, PostgreSQL by URL, with the same tables and the same code."""

from __future__ import annotations

from demur.store.rows import SavedPath, Scored
from demur.store.run import Pending, Run, Unscored
from demur.store.store import Store

__all__ = ["Pending", "Run", "SavedPath", "Scored", "Store", "Unscored"]
