"""Reading a run: its pools as records, and what they still lack."""

from __future__ import annotations

import gc
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, Engine, Select, Table, func, select

from demur.errors import StoreError
from demur.files.bounds import UNPACKED
from demur.records import Path, Pool, Problem
from demur.stopping import Stopping
from demur.store._tables import paths, problems, scores, sessions, texts
from demur.store.connection import reading, shown
from demur.store.ended_pools import Keys, ends_of, keys_of_paths
from demur.store.patience import Patience, patient
from demur.store.rows import MOST_PATHS, PATH_FACTS, path_of, problem_of, score_of, unpack

_UNSCORED: Any = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Pending:
    """A problem that lacks paths, and which. Without gold: nothing that samples may see it."""

    number: int
    problem: Problem
    missing: tuple[int, ...]
    again: tuple[int, ...] = ()
    """Paths that are there without the log-probabilities they should have."""
    first_seed: int | None = None
    """The seed of path 0, as the paths that are there have it."""


class RunReader:
    """The pools of one run."""

    def __init__(
        self, engine: Engine, place: str, key: int, name: str, n_paths: int | None, patience: Patience
    ) -> None:
        self.engine, self.place, self.key, self.name, self.n_paths = engine, place, key, name, n_paths
        self.patience = patience
        self.stopping: Stopping | None = None
        """The rule that ends pools; None where whole ones have `n_paths`."""
        self.read_by: Mapping[str, Any] = {}
        """How answers are read, as the run's description has it."""

    @property
    def whole(self) -> int:
        """How many paths make a pool whole. Imported pools come whole, whatever their size."""
        return self.n_paths or 1

    def whole_pools(self) -> Select[int]:
        """The numbers of the problems whose pools are whole."""
        counted = select(paths.c.number).where(paths.c.run == self.key).group_by(paths.c.number)
        return counted.having(func.count() >= self.whole)

    def whole_between(self, first: int, last: int) -> set[int]:
        """The numbers of the problems of a stretch whose pools are whole."""
        if self.stopping is not None:
            return set(self.ends(self.stopping, range(first, last + 1)))
        query = self.whole_pools().where(paths.c.number.between(first, last))
        return {row.number for row in self._rows(query)}

    def is_empty(self) -> bool:
        """Whether no path was ever saved."""
        return not self._rows(select(paths.c.path).where(paths.c.run == self.key).limit(1))

    def has_whole_pools(self) -> bool:
        """Whether there is anything to score."""
        if self.stopping is not None:
            return bool(self.ends(self.stopping))
        return bool(self._rows(self.whole_pools().limit(1)))

    @patient
    def keys_of_paths(self, numbers: Collection[int] | None = None) -> Keys:
        """The answers of paths as keys, by their task: what a stopping rule looks at."""
        with reading(self.engine, self.place) as connection:
            return keys_of_paths(connection, self.key, self.read_by, numbers)

    def not_ended(self, pending: Sequence[Pending], stopping: Stopping) -> list[Pending]:
        """Those of the problems that lack paths of which a rule wants more, or of which some are drawn again."""
        keys = self.keys_of_paths()
        return [one for one in pending if one.again or stopping.wanted(keys.get(one.number, {}))]

    def ends(self, stopping: Stopping, numbers: Collection[int] | None = None) -> dict[int, int]:
        """How many paths each pool has that a rule has ended, by the number of its problem."""
        return ends_of(self.keys_of_paths(numbers), stopping)

    @patient
    def does_without_logprobs(self) -> bool:
        """Whether paths of it were sampled without log-probabilities on purpose."""
        asking = sessions.c.command.in_(("sample", "export"))
        noted = select(sessions.c.facts).where(sessions.c.run == self.key, asking)
        with reading(self.engine, self.place) as connection:
            return any(dict(json.loads(facts)).get("logprobs") is False for (facts,) in connection.execute(noted))

    def numbers(self) -> dict[str, int]:
        """The number of each problem, by id."""
        query = select(problems.c.id, problems.c.number).where(problems.c.run == self.key)
        return {row.id: row.number for row in self._rows(query)}

    def questions(self) -> list[tuple[int, Problem]]:
        """Every problem and its number, in the order they were added; without gold, as for `pending`."""
        rows = self._rows(select(problems).where(problems.c.run == self.key).order_by(problems.c.number))
        return [(row.number, replace(problem_of(row), gold=())) for row in rows]

    @patient
    def pending(
        self,
        ids: Collection[str] | None = None,
        *,
        with_logprobs: bool = False,
        n_paths: int | None = None,
        numbers: Collection[int] | None = None,
    ) -> list[Pending]:
        """Problems that lack paths, in the order they were added; only those named or numbered, if any are.

        `with_logprobs`: or whose paths lack token log-probabilities. `n_paths`: as if whole pools had so many.
        """
        wanted = None if ids is None else set(ids)
        mine = select(problems).where(problems.c.run == self.key).order_by(problems.c.number)
        sampled = select(paths.c.number, paths.c.path, paths.c.seed).where(paths.c.run == self.key)
        if numbers is not None:
            mine, sampled = mine.where(problems.c.number.in_(numbers)), sampled.where(paths.c.number.in_(numbers))
        saved: dict[int, dict[int, int | None]] = {}
        # Of a run that was sampled without them on purpose, all would be paid for again.
        redraws = with_logprobs and self.n_paths is not None and not self.does_without_logprobs()
        with reading(self.engine, self.place) as connection:
            rows = connection.execute(mine).all()
            for number, path, seed in connection.execute(sampled):
                saved.setdefault(number, {})[path] = seed
            again = self._without_logprobs(connection, numbers) if redraws else {}
            lacking = []
            for row in rows:
                if wanted is not None and row.id not in wanted:
                    continue
                seeds, mute = saved.get(row.number, {}), tuple(again.get(row.number, ()))
                missing = tuple(path for path in range(n_paths or self.n_paths or 0) if path not in seeds)
                if missing or mute:
                    first = next((seed - path for path, seed in seeds.items() if seed is not None), None)
                    lacking.append(Pending(row.number, replace(problem_of(row), gold=()), missing, mute, first))
            return lacking

    def _without_logprobs(self, connection: Connection, numbers: Collection[int] | None) -> dict[int, list[int]]:
        """The paths that say something and came without log-probabilities, by the number of their problem."""
        same = (texts.c.run == paths.c.run) & (texts.c.number == paths.c.number) & (texts.c.path == paths.c.path)
        query = select(paths.c.number, paths.c.path, paths.c.n_tokens, texts.c.text)
        query = query.select_from(paths.outerjoin(texts, same))
        query = query.where(paths.c.run == self.key, paths.c.logprob_mean.is_(None))
        query = query if numbers is None else query.where(paths.c.number.in_(numbers))
        mute: dict[int, list[int]] = {}
        for number, path, n_tokens, text in connection.execute(query.order_by(paths.c.number, paths.c.path)):
            if n_tokens or (unpack(text) or "").strip():
                mute.setdefault(number, []).append(path)
        return mute

    @patient
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

        def rows(table: Table, *columns: str, order: Sequence[str] = ()) -> Any:
            mine = table.c.run == self.key
            mine = mine if numbers is None else mine & table.c.number.in_(numbers)
            query = select(*(table.c[name] for name in columns)).where(mine)
            return connection.execute(query.order_by(*(table.c[name] for name in order))).all()

        ends = self.ends(self.stopping, numbers) if complete and self.stopping is not None else None
        scored: dict[int, dict[str, float]] = {}
        packed: dict[int, bytes] = {}
        by_problem: dict[int, list[Path]] = {}
        with _collector_at_rest(), reading(self.engine, self.place) as connection:
            asked = rows(problems, *problems.c.keys(), order=["number"])
            for number, path, name, value in rows(scores, "number", "path", "name", "value"):
                scored.setdefault(number * MOST_PATHS + path, {})[name] = score_of(value)
            for number, path, content in rows(texts, "number", "path", "text") if with_texts else ():
                packed[number * MOST_PATHS + path] = content
            unpacked, size = 0, sum(map(len, packed.values()))
            for row in rows(paths, *names, order=["number", "path"]):
                key = row[0] * MOST_PATHS + row[1]
                path = path_of(row, packed.get(key), scored.get(key, _UNSCORED), facts=facts)
                unpacked += len(path.text or "")
                if unpacked > UNPACKED.always:
                    UNPACKED.refuse(unpacked, size, shown(self.place), StoreError)
                by_problem.setdefault(row[0], []).append(path)
            if ends is not None:
                by_problem = {number: by_problem[number][:size] for number, size in ends.items()}
            fewest = self.whole if complete and ends is None else 1
            kept = [row for row in asked if len(by_problem.get(row.number, ())) >= fewest]
            return [Pool(problem_of(row), tuple(by_problem[row.number])) for row in kept]

    @patient
    def _rows(self, query: Any) -> Sequence[Any]:
        """What a query finds, in a transaction of its own."""
        with reading(self.engine, self.place) as connection:
            return connection.execute(query).all()


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
