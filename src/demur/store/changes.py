"""What a run holds, changed: more paths to a pool, and paths drawn again in place of ones that lack something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from demur.errors import StoreError
from demur.store._tables import paths, runs, scores, texts
from demur.store.connection import insert_new, writing
from demur.store.patience import patient
from demur.store.rows import PlacedPath, pack, path_row, tokens_of
from demur.store.scores import RunScores
from demur.store.worker import Worker


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

    def _scores_of_pools(self) -> list[str]:
        """The scores that no model gave path by path: in another pool they may be other numbers."""
        return [name for name, identity in self.scorers().items() if "backend" not in identity]

    def _forget(self, connection: Connection, of_pools: Sequence[str], those: Any) -> None:
        """Drop what may be another number in another pool: such scores, and those of blank paths."""
        stale = scores.c.name.in_(of_pools) | scores.c.flag.contains("empty")
        connection.execute(scores.delete().where(scores.c.run == self.key, those, stale))
