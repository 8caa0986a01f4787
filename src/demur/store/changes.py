"""What a run holds, changed: more paths to a pool, and paths drawn again in place of ones that lack something."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, func, inspect, select

from demur.errors import StoreError
from demur.records import Problem
from demur.store._tables import metadata, paths, problems, runs, scores, texts, unread
from demur.store.connection import insert_new, reading, writing
from demur.store.patience import patient
from demur.store.rows import PlacedPath, pack, path_row, plain, problem_of, tokens_of, unpack
from demur.store.scores import RunScores
from demur.store.worker import Worker

_READ = select(paths.c.path).where(*(paths.c[name] == unread.c[name] for name in ("run", "number", "path"))).exists()
"""What was kept unread is a path now."""


class RunChanges(RunScores):
    """Writes what replaces or extends what is there."""

    @patient
    def resize(self, n_paths: int) -> None:
        """Have whole pools hold so many paths: what is there stays, and pools that now lack some are sampled on.

        Raises where a problem has more already: paths are never dropped.
        """
        mine, of_pools = paths.c.run == self.key, self._scores_of_pools()
        with writing(self.engine, self.place, alone=True) as connection:
            most = connection.execute(select(func.max(paths.c.path)).where(mine)).scalar()
            if most is not None and most >= n_paths:
                raise StoreError(
                    f"the run {self.name!r} has problems with {most + 1} paths, more than the {n_paths} asked for",
                    "ask for as many, or choose another {run} or another file",
                )
            connection.execute(runs.update().where(runs.c.run == self.key).values(n_paths=n_paths))
            self.n_paths = n_paths
            self._forget(connection, of_pools, scores.c.number.not_in(self.whole_pools()))

    def replace(self, batch: Sequence[PlacedPath], worker: Worker | None = None) -> int:
        """Put paths that were drawn again in place of those without log-probabilities, whose scores go with them.

        How many were needed no more, because another command had drawn them.
        """
        in_vain = self._replace(batch, worker)
        if worker is not None:
            worker.counted([placed.number for placed in batch], tokens_of(batch))
        return in_vain

    @patient
    def _replace(self, batch: Sequence[PlacedPath], worker: Worker | None) -> int:
        of_pools = self._scores_of_pools()
        in_vain = 0
        with writing(self.engine, self.place) as connection:
            for number, place, path in batch:
                key = {"run": self.key, "number": number, "path": place}

                def this(table: Any, key: dict[str, int] = key) -> Any:
                    return [table.c[name] == value for name, value in key.items()]

                lacking = paths.update().where(*this(paths), paths.c.logprob_mean.is_(None))
                if connection.execute(lacking.values(path_row(path))).rowcount:
                    connection.execute(texts.delete().where(*this(texts)))
                    insert_new(connection, texts, [key | {"text": pack(path.text or "")}])
                    connection.execute(scores.delete().where(*this(scores)))
                    self._forget(connection, of_pools, scores.c.number == number)
                else:
                    in_vain += 1
            if worker is not None:
                worker.came(connection, len(batch), tokens_of(batch))
        return in_vain

    @patient
    def keep_unread(self, number: int, came: Mapping[int, tuple[str, Mapping[str, Any]]]) -> None:
        """Keep texts of a problem, and what is known of them, by path: their answers could not be read yet."""
        rows = [
            {"run": self.key, "number": number, "path": path, "facts": plain(dict(facts)), "text": pack(text)}
            for path, (text, facts) in came.items()
        ]
        with writing(self.engine, self.place, alone=True) as connection:
            metadata.create_all(connection, tables=[unread])
            insert_new(connection, unread, rows)

    @patient
    def unread(self) -> list[tuple[int, Problem, int, str, dict[str, Any]]]:
        """What was kept unread: number, problem without gold, path, text and what is known of it."""
        same = (problems.c.run == unread.c.run) & (problems.c.number == unread.c.number)
        kept = select(unread, problems).join(problems, same).where(unread.c.run == self.key, ~_READ)
        with reading(self.engine, self.place) as connection:
            if not inspect(connection).has_table(unread.name):
                return []
            rows = connection.execute(kept.order_by(unread.c.number, unread.c.path)).all()
        return [
            (row.number, replace(problem_of(row), gold=()), row.path, unpack(row.text) or "", json.loads(row.facts))
            for row in rows
        ]

    @patient
    def forget_read(self) -> None:
        """Forget what was kept unread and is a path now."""
        with writing(self.engine, self.place) as connection:
            connection.execute(unread.delete().where(unread.c.run == self.key, _READ))

    def _scores_of_pools(self) -> list[str]:
        """The scores that no model gave path by path: in another pool they may be other numbers."""
        return [name for name, identity in self.scorers().items() if "backend" not in identity]

    def _forget(self, connection: Connection, of_pools: Sequence[str], those: Any) -> None:
        """Drop what may be another number in another pool: such scores, and those of blank paths."""
        stale = scores.c.name.in_(of_pools) | scores.c.flag.contains("empty")
        connection.execute(scores.delete().where(scores.c.run == self.key, those, stale))
