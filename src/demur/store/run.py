"""One run: its problems, the paths sampled for them so far, their scores, and what was done to it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Engine, Select, func, select

from demur.descriptions import Description
from demur.errors import StoreError
from demur.records import Problem
from demur.stopping import stopping_of
from demur.store._tables import paths, problems, runs, sessions, texts
from demur.store.connection import damaged, insert_new, reading, writing
from demur.store.ended_pools import ends_of, keys_of_paths
from demur.store.patience import Patience, patient
from demur.store.rows import (
    PlacedPath,
    check_id,
    check_place,
    pack,
    path_row,
    plain,
    problem_row,
    text,
    tokens_of,
    what_is_asked,
)
from demur.store.shared_work import count_as_sampled
from demur.store.sharing import RunSharing
from demur.store.worker import Worker


class Run(RunSharing):
    """Reads and writes one run. Every write is one transaction; writing twice changes nothing."""

    def __init__(
        self,
        engine: Engine,
        place: str,
        key: int,
        name: str,
        n_paths: int | None,
        patience: Patience,
        description: Description,
    ) -> None:
        super().__init__(engine, place, key, name, n_paths, patience)
        self.description = description
        self.stopping, self.read_by = stopping_of(description.sampling), description.answers

    @patient
    def add_problems(self, wanted: Sequence[Problem]) -> int:
        """Add the problems that are not there yet; how many were added.

        One id must stay one question, put the same way; gold and whatever else does not reach the model may change.
        """
        with writing(self.engine, self.place, alone=True) as connection:
            self._refuse_if_gone(connection)
            there = {row.id: row for row in connection.execute(select(problems).where(problems.c.run == self.key))}
            with_paths = select(paths.c.number).where(paths.c.run == self.key).distinct()
            sampled = set(connection.execute(with_paths).scalars())
            rows: dict[str, dict[str, Any]] = {}
            for problem in wanted:
                row = problem_row(problem)
                if problem.id in rows:
                    raise StoreError(f"the id {problem.id!r} occurs twice among the problems; ids must differ")
                rows[problem.id] = row
                before = there.get(problem.id)
                asked_before = None if before is None or before.number not in sampled else before._mapping
                if asked_before is not None and what_is_asked(row) != self._asked(asked_before):
                    raise StoreError(
                        f"problem {problem.id!r} is another question in this run", "choose another {run}, or file"
                    )
            new = [row for name, row in rows.items() if name not in there]
            for number, row in enumerate(new, start=len(there)):
                check_id(row["id"])
                row |= {"run": self.key, "number": number}
            insert_new(connection, problems, new)
            for name, row in rows.items():
                before = there.get(name)
                if before is not None and any(before._mapping[field] != value for field, value in row.items()):
                    this = (problems.c.run == self.key) & (problems.c.number == before.number)
                    connection.execute(problems.update().where(this).values(row))
        return len(new)

    def _asked(self, row: Any) -> tuple[Any, ...]:
        try:
            return what_is_asked(row)
        except (ValueError, AttributeError) as error:
            raise damaged(self.place, str(error)) from None

    def save(self, batch: Sequence[PlacedPath], worker: Worker | None = None) -> int:
        """Save paths in one transaction; those that are there stay as they are, and how many were there is told."""
        in_vain = self._save(batch, worker)
        if worker is not None:
            worker.counted([placed.number for placed in batch], tokens_of(batch))
        return in_vain

    @patient
    def _save(self, batch: Sequence[PlacedPath], worker: Worker | None) -> int:
        rows, written = [], []
        for number, place, path in sorted(batch, key=lambda placed: placed[:2]):  # so that no two writers get entangled
            check_place(place, number)
            key = {"run": self.key, "number": number, "path": place}
            rows.append(key | path_row(path))
            if path.text is not None:
                written.append(key | {"text": pack(path.text)})
        with writing(self.engine, self.place) as connection:
            self._refuse_if_gone(connection)
            in_vain = len(rows) - insert_new(connection, paths, rows)
            if worker is None and in_vain < len(rows):
                count_as_sampled(connection, self.key, len(rows) - in_vain, tokens_of(batch))
            if in_vain:  # those that another attempt of ours has brought are no other's
                in_vain = self._not_ours(connection, rows)
            insert_new(connection, texts, written)
            if worker is not None:
                worker.came(connection, len(rows), tokens_of(batch))
        return in_vain

    def _not_ours(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int:
        """How many paths are there as somebody else brought them."""
        columns = ("number", "path", "seed", "latency", "logprob_mean")
        numbers = {row["number"] for row in rows}
        query = select(*(paths.c[name] for name in columns)).where(paths.c.run == self.key, paths.c.number.in_(numbers))
        there = {tuple(row) for row in connection.execute(query)}
        return sum(tuple(row[name] for name in columns) not in there for row in rows)

    def _refuse_if_gone(self, connection: Connection) -> None:
        """Raise where another command made the run anew meanwhile, as it may as long as there is no path.

        Another command may also have given it more paths.
        """
        this = select(runs.c.n_paths).where(runs.c.run == self.key).with_for_update(read=True)
        if (there := connection.execute(this).first()) is None:
            raise StoreError(
                f"the run {self.name!r} was made anew by another command, in another way", "choose another {run}"
            )
        self.n_paths = there.n_paths

    @patient
    def note(self, command: str, started: str, facts: Mapping[str, Any]) -> None:
        """Keep what a command did: versions, timings, counts; the same only once."""
        row = {"run": self.key, "command": command, "started": started, "facts": plain(dict(facts))}
        with writing(self.engine, self.place) as connection:
            same = [sessions.c[name] == value for name, value in row.items()]
            if connection.execute(select(sessions.c.session).where(*same)).first() is None:
                connection.execute(sessions.insert(), row)

    @patient
    def reported_models(self) -> Counter[str]:
        """How many paths the replies of each model brought, as the commands that sampled or imported them noted."""
        noted = select(sessions.c.facts).where(sessions.c.run == self.key).order_by(sessions.c.session)
        with reading(self.engine, self.place) as connection:
            told = [json.loads(facts).get("models", {}) for facts in connection.execute(noted).scalars()]
        return sum(map(Counter, told), Counter[str]())

    @patient
    def summary(self) -> dict[str, Any]:
        """Counts, scores and the commands that made the run."""

        def count(rows: Select[int]) -> Select[int]:
            return select(func.count()).select_from(rows.subquery())

        mine, whole = select(problems.c.number).where(problems.c.run == self.key), self.whole_pools()
        answers, tokens, logprobs = paths.c.answer, paths.c.n_tokens, paths.c.logprob_mean
        columns = (func.count(), func.count(answers), func.sum(tokens), func.count(logprobs))
        commands = select(sessions).where(sessions.c.run == self.key).order_by(sessions.c.session)
        with reading(self.engine, self.place) as connection:
            n_problems, n_pools = (connection.execute(count(rows)).scalar_one() for rows in (mine, whole))
            if self.stopping is not None:
                n_pools = len(ends_of(keys_of_paths(connection, self.key, self.read_by), self.stopping))
            of_paths = connection.execute(select(*columns).where(paths.c.run == self.key)).one()
            noted = [
                (text(row.command), row.started, dict(json.loads(row.facts))) for row in connection.execute(commands)
            ]
        return {
            "run": self.name,
            "problems": n_problems,
            "pools": n_pools,
            "n_paths": self.n_paths,
            "paths": of_paths[0],
            "with_answer": of_paths[1],
            "tokens": of_paths[2] or 0,
            "with_logprobs": of_paths[3],
            "scores": self.scorers(),
            "pipeline": self.description.document(),
            "fingerprint": self.description.fingerprint,
            "commands": [{"command": name, "started": started, **facts} for name, started, facts in noted],
            **self.shared(),
        }
