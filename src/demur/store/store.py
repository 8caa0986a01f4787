"""A store: runs by name."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import Any, Self

from sqlalchemy import func, insert, select

from demur.descriptions import Description
from demur.errors import InvalidValue, StoreError
from demur.files.strict_json import as_json
from demur.store._tables import paths, problems, runs, scorers, sessions, work, workers
from demur.store.connection import STALL_SECONDS, UNREADABLE, connect, reading, shown, writing
from demur.store.patience import SECONDS, Patience, patient
from demur.store.rows import MOST_PATHS, check_name, text
from demur.store.run import Run
from demur.store.shared_work import is_shared

_LONGEST_STALL = 3600.0


class Store:
    """Runs in an SQLite file or a PostgreSQL database. `create` makes one where there is none.

    Once it is open, a server that goes away is waited for, `patience` seconds long. A process that is stopped within a
    transaction has others wait no longer than `stall` seconds, with PostgreSQL, which ends the transaction then.
    """

    def __init__(
        self,
        place: str | os.PathLike[str],
        *,
        create: bool = False,
        patience: float = SECONDS,
        stall: float = STALL_SECONDS,
    ) -> None:
        if not 0 < stall <= _LONGEST_STALL:
            raise InvalidValue(f"a stall is a number of seconds above 0 and at most {_LONGEST_STALL:g}, got {stall!r}")
        self.place = os.fspath(place)
        self.patience = Patience(patience)
        self.engine = connect(place, create=create, patience=self.patience, stall=stall)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.engine.dispose()

    @patient
    def names(self) -> list[str]:
        """The names of all runs, the oldest first."""
        with reading(self.engine, self.place) as connection:
            return [text(name) for name in connection.execute(select(runs.c.name).order_by(runs.c.run)).scalars()]

    @patient
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
        return self._run_of(row)

    def _run_of(self, row: Any) -> Run:
        try:
            description = Description.of(json.loads(row.description))
            if row.n_paths is not None and not 1 <= row.n_paths <= MOST_PATHS:
                raise ValueError(f"its pools are to have {row.n_paths} paths")
        except UNREADABLE as error:
            raise StoreError(f"the run {row.name!r} of {shown(self.place)} cannot be read: {error}") from None
        return Run(self.engine, self.place, row.run, row.name, row.n_paths, self.patience, description)

    @patient
    def open_run(self, name: str, description: Description, n_paths: int | None) -> Run:
        """A new run, or the one of that name if it was made the same way; it is resized to another number of paths.

        A run that never got a path takes on whatever is asked for now, under a new key: whoever still samples into it
        as it was to be is refused.
        """
        check_name("run", name, self.names)
        if n_paths is not None and not 1 <= n_paths <= MOST_PATHS:
            raise InvalidValue(f"a pool has 1 to {MOST_PATHS} paths, got {n_paths}")
        described = as_json(description.document(), sort_keys=True)
        row = {"name": name, "description": described, "n_paths": n_paths, "fingerprint": description.fingerprint}
        row["created"] = datetime.now(UTC).isoformat(timespec="seconds")
        with writing(self.engine, self.place, alone=True) as connection:
            this = select(runs).where(runs.c.name == name).with_for_update()
            if (there := connection.execute(this).first()) is None:
                connection.execute(insert(runs), row)
                return self._run_of(connection.execute(this).one())
            run = self._run_of(there)
            differences = run.description.differences(Description.of(json.loads(described)), "the run", "now")
            resized = not differences and n_paths is not None and run.n_paths not in (None, n_paths)
            if run.n_paths != n_paths and not resized:
                differences.append(f"n_paths is {run.n_paths} in the run, {n_paths} now")
            sampled = select(paths.c.path).where(paths.c.run == run.key).limit(1)
            if differences and connection.execute(sampled).first() is None:  # nothing was paid for yet
                # SQLite would give the key of the last run again, once that is gone; PostgreSQL gives none twice.
                last = connection.execute(select(func.max(runs.c.run))).scalar_one()
                fresh = {"run": last + 1} if self.engine.dialect.name == "sqlite" else {}
                shared = (work, workers) if is_shared(connection) else ()
                for table in (problems, sessions, scorers, *shared, runs):
                    connection.execute(table.delete().where(table.c.run == run.key))
                connection.execute(insert(runs), row | fresh)
                return self._run_of(connection.execute(this).one())
        if differences:
            raise StoreError(
                f"the run {name!r} was made another way: {'; '.join(differences)}",
                "choose another {run} or another file, or ask for what it was made with",
            )
        if resized and n_paths is not None:
            run.resize(n_paths)
        return run
