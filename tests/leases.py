"""Leases of a run that grow old at once, for tests: who waited for them would race with a busy machine."""

from __future__ import annotations

from sqlalchemy import text


def let_time_pass(run, worker, seconds):
    """As if a worker had last been seen so many seconds before it was."""
    earlier = ", ".join(f"{name} = {name} - :milliseconds" for name in ("begun", "seen", "until"))
    with run.engine.begin() as connection:
        connection.execute(
            text(f"UPDATE demur_workers SET {earlier} WHERE worker = :worker"),
            {"milliseconds": int(1000 * seconds), "worker": worker._key},
        )
