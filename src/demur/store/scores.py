"""The scores of a run: which paths lack one, values under their scorer's identity, flags."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, select

from demur.errors import StoreError
from demur.files.strict_json import as_json
from demur.records import Pool, blinded
from demur.store._tables import paths, scorers, scores
from demur.store.connection import damaged, insert_new, reading, writing
from demur.store.patience import patient
from demur.store.reading import RunReader
from demur.store.rows import PathScore, check_name, storable, text
from demur.store.worker import Worker

_POOLS_AT_ONCE = 200
IMPORTED = {"scorer": "imported"}
"""The identity of a score whose file did not say what it is."""


@dataclass(frozen=True, slots=True)
class Unscored:
    """A whole pool some of whose paths lack a score, and which. Without gold: nothing that scores may see it."""

    number: int
    pool: Pool
    missing: tuple[int, ...]
    known: Mapping[int, float] = field(default_factory=dict)
    """The scores of the paths that have one, by path."""


class RunScores(RunReader):
    """Reads and writes the scores of one run."""

    def lacking(self, name: str, numbers: Collection[int] | None = None) -> dict[int, tuple[int, ...]]:
        """The paths of whole pools that lack a score, by the number of their problem.

        With `numbers`, only of problems from the smallest of them to the largest.
        """
        this = (scores.c.run == paths.c.run) & (scores.c.number == paths.c.number) & (scores.c.path == paths.c.path)
        scored = paths.outerjoin(scores, this & (scores.c.name == name))
        query = select(paths.c.number, paths.c.path).select_from(scored)
        query = query.where(paths.c.run == self.key, scores.c.value.is_(None))
        ends = None if self.stopping is None else self.ends(self.stopping)
        query = query if ends is not None else query.where(paths.c.number.in_(self.whole_pools()))
        if numbers is not None:
            query = query.where(paths.c.number.between(min(numbers), max(numbers)))
        missing: dict[int, list[int]] = {}
        for number, path in self._rows(query.order_by(paths.c.number, paths.c.path)):
            if ends is None or path < ends.get(number, 0):
                missing.setdefault(number, []).append(path)
        return {number: tuple(places) for number, places in missing.items()}

    def unscored(self, name: str, lacking: Mapping[int, tuple[int, ...]]) -> Iterator[Unscored]:
        """The pools of the paths that lack a score, with texts and without gold; read some at a time."""
        order = sorted(lacking)
        for start in range(0, len(order), _POOLS_AT_ONCE):
            block = order[start : start + _POOLS_AT_ONCE]
            pools = self.pools(with_texts=True, numbers=block)
            if len(pools) < len(block):
                raise damaged(self.place, "it holds paths without their problems")
            for number, pool in zip(block, pools, strict=True):
                missing, scored = lacking[number], [path.scores for path in pool.paths]
                known = {at: has[name] for at, has in enumerate(scored) if name in has and at not in missing}
                yield Unscored(number, blinded(pool), missing, known)

    def save_scores(
        self, name: str, identity: Mapping[str, Any], values: Sequence[PathScore], worker: Worker | None = None
    ) -> int:
        """Save a score of some paths under a scorer's identity; how many were there already."""
        there = self._save_scores(name, identity, values, worker)
        if worker is not None:
            worker.counted([score.number for score in values], 0)
        return there

    @patient
    def _save_scores(
        self, name: str, identity: Mapping[str, Any], values: Sequence[PathScore], worker: Worker | None
    ) -> int:
        check_name("score", name, self.scorers)
        described = as_json(identity, sort_keys=True)
        rows = [
            {"run": self.key, "name": name, **score._asdict(), "flag": storable(score.flag, 20)}
            for score in sorted(values, key=lambda score: score[:2])
        ]
        for row in rows:
            if not math.isfinite(row["value"]):
                raise StoreError(
                    f"the score {name!r} of path {row['path']} of problem number {row['number']} is {row['value']}, "
                    "not a number"
                )
        with writing(self.engine, self.place) as connection:
            insert_new(connection, scorers, [{"run": self.key, "name": name, "identity": described}])
            this = select(scorers.c.identity).where(scorers.c.run == self.key, scorers.c.name == name)
            stored = connection.execute(this).scalar_one()
            if stored != described:
                raise StoreError(
                    f"the score {name!r} of this run was made by another scorer: {stored}; give it a new name"
                )
            there = len(rows) - insert_new(connection, scores, rows)
            if worker is not None:
                worker.came(connection, len(rows), 0)
        return there

    def forget_score(self, name: str) -> int:
        """Drop a score and its scorer; how many paths had it."""
        known = self.scorers()
        if name not in known:
            raise StoreError(f"the run {self.name!r} has no score {name!r:.60}; it has {', '.join(known) or 'none'}")
        with writing(self.engine, self.place) as connection:
            mine = (scores.c.run == self.key) & (scores.c.name == name)
            dropped = connection.execute(scores.delete().where(mine)).rowcount
            connection.execute(scorers.delete().where((scorers.c.run == self.key) & (scorers.c.name == name)))
        return int(dropped)

    @patient
    def scorers(self) -> dict[str, dict[str, Any]]:
        """The identity of every score in the run, by name."""
        query = select(scorers.c.name, scorers.c.identity).where(scorers.c.run == self.key).order_by(scorers.c.name)
        with reading(self.engine, self.place) as connection:
            identities = {text(row.name): json.loads(row.identity) for row in connection.execute(query)}
            if not all(isinstance(identity, dict) for identity in identities.values()):
                raise TypeError("the identity of a scorer")
        return identities

    def known_scorers(self) -> dict[str, dict[str, Any]]:
        """The identities, without those of scores that came from elsewhere and of which nothing is known."""
        return {name: identity for name, identity in self.scorers().items() if identity != IMPORTED}

    def flagged(self) -> dict[tuple[str, int], dict[str, str]]:
        """The flags of each path that has any, by score; a path is named by its problem's id and its place."""
        ids = {number: name for name, number in self.numbers().items()}
        query = select(scores.c.number, scores.c.path, scores.c.name, scores.c.flag)
        query = query.where(scores.c.run == self.key, scores.c.flag.is_not(None))
        flags: dict[tuple[str, int], dict[str, str]] = {}
        for number, path, name, flag in self._rows(query.order_by(scores.c.number, scores.c.path, scores.c.name)):
            flags.setdefault((ids[number], path), {})[name] = flag
        return flags

    def flags(self) -> dict[str, dict[str, int]]:
        """How many values of each score are flagged, by flag."""
        columns = (scores.c.name, scores.c.flag)
        query = select(*columns, func.count()).where(scores.c.run == self.key, scores.c.flag.is_not(None))
        counts: dict[str, dict[str, int]] = {}
        for name, flag, count in self._rows(query.group_by(*columns)):
            counts.setdefault(name, {})[str(flag)] = count
        return counts
