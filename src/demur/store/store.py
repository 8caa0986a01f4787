"""A store: runs by name."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import Self

from sqlalchemy import insert, select

from demur.descriptions import Description
from demur.errors import StoreError
from demur.store._tables import problems, runs, scorers, sessions
from demur.store.connection import connect, reading, shown, writing
from demur.store.run import Run


class Store:
    """Runs in an SQLite file or a PostgreSQL database. `create` makes one where there is none."""

    def __init__(self, place: str | os.PathLike[str], *, create: bool = False) -> None:
        self.place = os.fspath(place)
        self.engine = connect(place, create=create)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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
            wanted = f"no run {name!r}" if name is not None else "several runs" if names else "no run"
            remedy = f"choose one with {{run}}: {', '.join(names) or 'none'}"
            raise StoreError(f"{shown(self.place)} holds {wanted}", remedy)
        with reading(self.engine, self.place) as connection:
            row = connection.execute(select(runs).where(runs.c.name == name)).one()
        try:
            description = Description.of(json.loads(row.description))
        except ValueError as error:
            raise StoreError(f"the run {name!r} of {shown(self.place)} cannot be read: {error}") from None
        return Run(self.engine, self.place, row.run, row.name, row.n_paths, description)

    def open_run(self, name: str, description: Description, n_paths: int | None) -> Run:
        """A new run, or the one of that name if it was made the same way; it is resized to another number of paths."""
        described = json.dumps(description.document(), sort_keys=True)
        row = {"name": name, "description": described, "n_paths": n_paths, "fingerprint": description.fingerprint}
        row["created"] = datetime.now(UTC).isoformat(timespec="seconds")
        with writing(self.engine, self.place, alone=True) as connection:
            if connection.execute(select(runs.c.run).where(runs.c.name == name)).first() is None:
                connection.execute(insert(runs), row)
        run = self.run(name)
        differences = run.description.differences(Description.of(json.loads(described)), "the run", "now")
        if n_paths is not None and run.n_paths is not None and n_paths != run.n_paths and not differences:
            run.resize(n_paths)
        if run.n_paths != n_paths:
            differences.append(f"n_paths is {run.n_paths} in the run, {n_paths} now")
        if differences and run.is_empty():  # nothing was paid for yet: what it was to be does not matter
            with writing(self.engine, self.place, alone=True) as connection:
                for table in (problems, sessions, scorers, runs):
                    connection.execute(table.delete().where(table.c.run == run.key))
            return self.open_run(name, description, n_paths)
        if differences:
            raise StoreError(
                f"the run {name!r} was made another way: {'; '.join(differences)}",
                "choose another {run} or another file, or ask for what it was made with",
            )
        return run
