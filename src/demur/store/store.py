"""A store: runs by name."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from sqlalchemy import insert, select

from demur.errors import StoreError
from demur.store.connection import connect, reading, shown, writing
from demur.store.run import Run
from demur.store.tables import problems, runs, scorers, sessions


class Store:
    """Runs in an SQLite file or a PostgreSQL database. `create` makes one where there is none."""

    def __init__(self, place: str | os.PathLike[str], *, create: bool = False) -> None:
        self.place = os.fspath(place)
        self.engine = connect(place, create=create)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.engine.dispose()

    def names(self) -> list[str]:
        """The names of all runs, the oldest first."""
        with reading(self.engine, self.place) as connection:
            return list(connection.execute(select(runs.c.name).order_by(runs.c.run)).scalars())

    def run(self, name: str | None = None) -> Run:
        """A run by name, or the only one."""
        names = self.names()
        if name is None and len(names) == 1:
            name = names[0]
        if name is None or name not in names:
            held = ", ".join(names) or "none"
            wanted = f"no run {name!r}" if name is not None else "several runs" if names else "no run"
            raise StoreError(f"{shown(self.place)} holds {wanted}; choose one with --run: {held}")
        with reading(self.engine, self.place) as connection:
            row = connection.execute(select(runs).where(runs.c.name == name)).one()
        pipeline = json.loads(row.pipeline)
        return Run(self.engine, self.place, row.run, row.name, pipeline, row.fingerprint, row.n_paths)

    def open_run(self, name: str, pipeline: Mapping[str, Any], n_paths: int | None) -> Run:
        """A new run, or the one of that name if it was made the same way."""
        described = json.dumps(pipeline, sort_keys=True)
        row = {
            "name": name, "pipeline": described, "n_paths": n_paths,
            "fingerprint": hashlib.sha256(described.encode()).hexdigest(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }  # fmt: skip
        with writing(self.engine, self.place, alone=True) as connection:
            if connection.execute(select(runs.c.run).where(runs.c.name == name)).first() is None:
                connection.execute(insert(runs), row)
        run = self.run(name)
        asked = json.loads(json.dumps(pipeline))
        differences = [
            f"{part} was {run.pipeline.get(part)!r:.80}, now {asked.get(part)!r:.80}"
            for part in dict.fromkeys([*run.pipeline, *asked])
            if run.pipeline.get(part) != asked.get(part)
        ]
        if run.n_paths != n_paths:
            differences.append(f"paths was {run.n_paths}, now {n_paths}")
        if differences and run.is_empty():  # nothing was paid for yet: what it was to be does not matter
            with writing(self.engine, self.place, alone=True) as connection:
                for table in (problems, sessions, scorers, runs):
                    connection.execute(table.delete().where(table.c.run == run.key))
            return self.open_run(name, pipeline, n_paths)
        if differences:
            raise StoreError(
                f"the run {name!r} was made another way: {'; '.join(differences)}; "
                "choose another --run or another file, or ask for what it was made with"
            )
        return run
