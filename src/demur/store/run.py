"""One run: its problems, the paths sampled for them so far, their scores, and what is still missing."""

from __future__ import annotations

import gc
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, Engine, Table, func, select
from sqlalchemy.dialects import postgresql, sqlite

from demur.errors import StoreError
from demur.records import Path, Pool, Problem, blinded
from demur.store.connection import reading, writing
from demur.store.rows import (
    PATH_FACTS,
    SavedPath,
    Scored,
    asked,
    facts_of,
    pack,
    path_row,
    plain,
    problem_of,
    problem_row,
    unpack,
)
from demur.store.tables import paths, pools, problems, scorers, scores, sessions, texts


@dataclass(frozen=True, slots=True)
class Unscored:
    """A whole pool some of whose paths lack a score, and which. Without gold: nothing that scores may see it."""

    number: int
    pool: Pool
    missing: tuple[int, ...]
    known: Mapping[int, float] = field(default_factory=dict)
    """The scores of the paths that have one, by path."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A problem that lacks paths, and which. Without gold: nothing that samples may see it."""

    number: int
    problem: Problem
    missing: tuple[int, ...]


_MOST_PATHS = 1 << 20
_POOLS_AT_ONCE = 200
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Run:
    """Reads and writes one run. Every write is one transaction; writing twice changes nothing."""

    def __init__(
        self,
        engine: Engine,
        place: str,
        key: int,
        name: str,
        pipeline: dict[str, Any],
        fingerprint: str,
        n_paths: int | None,
    ) -> None:
        self.engine, self.place, self.key, self.name = engine, place, key, name
        self.pipeline, self.fingerprint, self.n_paths = pipeline, fingerprint, n_paths

    def add_problems(self, wanted: Sequence[Problem]) -> int:
        """Add the problems that are not there yet; how many were added.

        One id must stay one question, put the same way; gold and whatever else does not reach the model may change.
        """
        with writing(self.engine, self.place, alone=True) as connection:
            held = {row.id: row for row in connection.execute(select(problems).where(problems.c.run == self.key))}
            sampled = set(
                connection.execute(select(paths.c.number).where(paths.c.run == self.key).distinct()).scalars()
            )
            rows: dict[str, dict[str, Any]] = {}
            for problem in wanted:
                row = problem_row(problem)
                if problem.id in rows:
                    raise StoreError(f"the id {problem.id!r} occurs twice among the problems; ids must differ")
                rows[problem.id] = row
                before = held.get(problem.id)
                if before is not None and before.number in sampled and asked(row) != asked(dict(before._mapping)):
                    raise StoreError(
                        f"problem {problem.id!r} is another question in this run; choose another --run or file"
                    )
            new = [row for name, row in rows.items() if name not in held]
            for number, row in enumerate(new, start=len(held)):
                row |= {"run": self.key, "number": number}
            self._insert(connection, problems, new)
            for name, row in rows.items():
                before = held.get(name)
                if before is not None and any(before._mapping[field] != value for field, value in row.items()):
                    this = (problems.c.run == self.key) & (problems.c.number == before.number)
                    connection.execute(problems.update().where(this).values(**row))
        return len(new)

    def is_empty(self) -> bool:
        """Whether no path was ever saved."""
        with reading(self.engine, self.place) as connection:
            return connection.execute(select(paths.c.path).where(paths.c.run == self.key).limit(1)).first() is None

    def numbers(self) -> dict[str, int]:
        """The number of each problem, by id."""
        with reading(self.engine, self.place) as connection:
            rows = connection.execute(select(problems.c.id, problems.c.number).where(problems.c.run == self.key)).all()
        return {row.id: row.number for row in rows}

    def pending(self, ids: Iterable[str] | None = None) -> list[Pending]:
        """Problems that lack paths, in the order they were added; only those named, if any are."""
        wanted = None if ids is None else set(ids)
        with reading(self.engine, self.place) as connection:
            rows = connection.execute(
                select(problems).where(problems.c.run == self.key).order_by(problems.c.number)
            ).all()
            held: dict[int, set[int]] = {}
            for number, path in connection.execute(select(paths.c.number, paths.c.path).where(paths.c.run == self.key)):
                held.setdefault(number, set()).add(path)
        found = []
        for row in rows:
            if wanted is not None and row.id not in wanted:
                continue
            missing = tuple(path for path in range(self.n_paths or 0) if path not in held.get(row.number, ()))
            if missing:
                found.append(Pending(row.number, replace(problem_of(row), gold=()), missing))
        return found

    def save(self, batch: Sequence[SavedPath]) -> None:
        """Save paths, and mark the pools they make whole, in one transaction."""
        keys = [{"run": self.key, "number": each.number, "path": each.path} for each in batch]
        rows = [key | path_row(each) for key, each in zip(keys, batch, strict=True)]
        written = [
            key | {"text": pack(each.text)} for key, each in zip(keys, batch, strict=True) if each.text is not None
        ]
        with writing(self.engine, self.place) as connection:
            self._insert(connection, paths, rows)
            self._insert(connection, texts, written)
            counts = Counter(each.number for each in batch)
            partial = [number for number, count in counts.items() if count < (self.n_paths or 0)]
            if partial:
                counts |= dict(
                    connection.execute(
                        select(paths.c.number, func.count())
                        .where(paths.c.run == self.key, paths.c.number.in_(partial))
                        .group_by(paths.c.number)
                    ).all()
                )
            now = _now()
            whole = [
                {"run": self.key, "number": number, "n_paths": count, "completed": now}
                for number, count in counts.items()
                if self.n_paths is None or count >= self.n_paths
            ]
            self._insert(connection, pools, whole)

    def pools(
        self,
        *,
        with_texts: bool = False,
        facts: bool = True,
        complete: bool = True,
        numbers: Collection[int] | None = None,
    ) -> list[Pool]:
        """The pools as records, whole ones unless told otherwise; only those of some problems, if `numbers` says so.

        Texts come only if asked for, they are most of a run; without `facts` only answers and scores come, which is
        all that a vote needs.
        """
        names = ("number", "path", "answer", "extraction", *(("extra", *PATH_FACTS) if facts else ()))
        columns = [paths.c[name] for name in names]

        def of_run(table: Table) -> Any:
            mine = table.c.run == self.key
            return mine if numbers is None else mine & table.c.number.in_(numbers)

        with _collector_at_rest(), reading(self.engine, self.place) as connection:
            whole = set(connection.execute(select(pools.c.number).where(of_run(pools))).scalars())
            held = connection.execute(select(problems).where(of_run(problems)).order_by(problems.c.number)).all()
            scored: dict[int, dict[str, float]] = {}
            for number, path, name, value in connection.execute(
                select(scores.c.number, scores.c.path, scores.c.name, scores.c.value).where(of_run(scores))
            ).all():
                scored.setdefault(number * _MOST_PATHS + path, {})[name] = value
            packed: dict[int, bytes] = {}
            if with_texts:
                for number, path, content in connection.execute(
                    select(texts.c.number, texts.c.path, texts.c.text).where(of_run(texts))
                ).all():
                    packed[number * _MOST_PATHS + path] = content
            found = connection.execute(
                select(*columns).where(of_run(paths)).order_by(paths.c.number, paths.c.path)
            ).all()
            by_problem: dict[int, list[Path]] = {}
            for row in found:
                key = row[0] * _MOST_PATHS + row[1]
                extra = facts_of(row) if facts else _NOTHING
                path = Path(row[2], unpack(packed.get(key)), scored.get(key, _NOTHING), extra, row[3] is not None)
                by_problem.setdefault(row[0], []).append(path)
        return [
            Pool(problem_of(row), tuple(by_problem[row.number]))
            for row in held
            if row.number in by_problem and (not complete or row.number in whole)
        ]

    def lacking(self, name: str) -> dict[int, tuple[int, ...]]:
        """The paths of whole pools that lack a score, by the number of their problem."""
        whole = paths.join(pools, (pools.c.run == paths.c.run) & (pools.c.number == paths.c.number))
        this = (scores.c.run == paths.c.run) & (scores.c.number == paths.c.number) & (scores.c.path == paths.c.path)
        scored = whole.outerjoin(scores, this & (scores.c.name == name))
        with reading(self.engine, self.place) as connection:
            rows = connection.execute(
                select(paths.c.number, paths.c.path)
                .select_from(scored)
                .where(paths.c.run == self.key, scores.c.value.is_(None))
                .order_by(paths.c.number, paths.c.path)
            ).all()
        found: dict[int, list[int]] = {}
        for number, path in rows:
            found.setdefault(number, []).append(path)
        return {number: tuple(missing) for number, missing in found.items()}

    def unscored(self, name: str) -> Iterator[Unscored]:
        """Whole pools some of whose paths lack a score, with texts and without gold; read some at a time."""
        lacking = self.lacking(name)
        order = sorted(lacking)
        for start in range(0, len(order), _POOLS_AT_ONCE):
            block = order[start : start + _POOLS_AT_ONCE]
            for number, pool in zip(block, self.pools(with_texts=True, numbers=block), strict=True):
                known = {at: path.scores[name] for at, path in enumerate(pool.paths) if name in path.scores}
                yield Unscored(number, blinded(pool), lacking[number], known)

    def save_scores(
        self, name: str, identity: Mapping[str, Any], rows: Iterable[Scored | tuple[int, int, float]]
    ) -> None:
        """Save a score of some paths under a scorer's identity."""
        described = json.dumps(identity, sort_keys=True)
        found = [Scored(*row) for row in rows]
        for each in found:
            if not math.isfinite(each.value):
                raise StoreError(
                    f"the score {name!r} of path {each.path} of problem number {each.number} is {each.value}, "
                    "not a number"
                )
        with writing(self.engine, self.place) as connection:
            self._insert(connection, scorers, [{"run": self.key, "name": name, "identity": described}])
            held = connection.execute(
                select(scorers.c.identity).where(scorers.c.run == self.key, scorers.c.name == name)
            ).scalar_one()
            if held != described:
                raise StoreError(
                    f"the score {name!r} of this run was made by another scorer: {held}; give it a new name"
                )
            self._insert(
                connection, scores,
                [{"run": self.key, "name": name, **each._asdict()} for each in found],
            )  # fmt: skip

    def forget_score(self, name: str) -> int:
        """Drop a score and its scorer; how many paths had it."""
        with writing(self.engine, self.place) as connection:
            mine = (scores.c.run == self.key) & (scores.c.name == name)
            dropped = connection.execute(scores.delete().where(mine)).rowcount
            connection.execute(scorers.delete().where((scorers.c.run == self.key) & (scorers.c.name == name)))
        if not dropped:
            raise StoreError(
                f"the run {self.name!r} has no score {name!r}; it has {', '.join(self.scorers()) or 'none'}"
            )
        return int(dropped)

    def scorers(self) -> dict[str, dict[str, Any]]:
        """The identity of every score in the run, by name."""
        with reading(self.engine, self.place) as connection:
            rows = connection.execute(
                select(scorers.c.name, scorers.c.identity).where(scorers.c.run == self.key).order_by(scorers.c.name)
            ).all()
        return {row.name: json.loads(row.identity) for row in rows}

    def flags(self) -> dict[str, dict[str, int]]:
        """How many values of each score are flagged, by flag."""
        flagged = (scores.c.run == self.key) & scores.c.flag.is_not(None)
        with reading(self.engine, self.place) as connection:
            rows = connection.execute(
                select(scores.c.name, scores.c.flag, func.count()).where(flagged).group_by(scores.c.name, scores.c.flag)
            ).all()
        found: dict[str, dict[str, int]] = {}
        for name, flag, count in rows:
            found.setdefault(name, {})[flag] = count
        return found

    def note(self, command: str, started: str, facts: Mapping[str, Any]) -> None:
        """Keep what a command did: versions, timings, counts."""
        with writing(self.engine, self.place) as connection:
            row = {"run": self.key, "command": command, "started": started, "facts": plain(dict(facts))}
            connection.execute(sessions.insert(), row)

    def describe(self) -> dict[str, Any]:
        """Counts, scores and the commands that made the run."""
        with reading(self.engine, self.place) as connection:
            count = connection.execute(
                select(func.count()).select_from(problems).where(problems.c.run == self.key)
            ).scalar_one()
            whole = connection.execute(
                select(func.count()).select_from(pools).where(pools.c.run == self.key)
            ).scalar_one()
            of_paths = connection.execute(
                select(
                    func.count(),
                    func.count(paths.c.answer),
                    func.sum(paths.c.n_tokens),
                    func.count(paths.c.logprob_mean),
                ).where(paths.c.run == self.key)
            ).one()
            noted = connection.execute(
                select(sessions).where(sessions.c.run == self.key).order_by(sessions.c.session)
            ).all()
        return {
            "run": self.name,
            "problems": count,
            "pools": whole,
            "n_paths": self.n_paths,
            "paths": of_paths[0],
            "with_answer": of_paths[1],
            "tokens": of_paths[2] or 0,
            "with_logprobs": of_paths[3],
            "scores": self.scorers(),
            "pipeline": self.pipeline,
            "fingerprint": self.fingerprint,
            "commands": [{"command": row.command, "started": row.started, **json.loads(row.facts)} for row in noted],
        }

    def _insert(self, connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows; those whose key is there already stay as they are."""
        if rows:
            connection.execute(_insertion(table, self.engine.dialect.name), list(rows))


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Many small records at once would set off the garbage collector again and again, to find nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@cache
def _insertion(table: Table, dialect: str) -> Any:
    return (sqlite if dialect == "sqlite" else postgresql).insert(table).on_conflict_do_nothing()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
