"""One run: its problems, the paths sampled for them so far, their scores, and what is still missing."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine, Table, func, select
from sqlalchemy.dialects import postgresql, sqlite

from quorate.answers.relations import as_written
from quorate.errors import StoreError
from quorate.records import Path, Pool, Problem
from quorate.store.connection import reading, writing
from quorate.store.tables import paths, pools, problems, scorers, scores, sessions


@dataclass(frozen=True, slots=True)
class SavedPath:
    """A sampled path on its way into the store."""

    number: int
    path: int
    text: str | None
    answer: str | None
    extraction: str | None
    finish_reason: str | None = None
    n_tokens: int | None = None
    logprob_mean: float | None = None
    logprob_std: float | None = None
    seed: int | None = None
    latency: float | None = None
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Pending:
    """A problem that lacks paths, and which."""

    number: int
    problem: Problem
    missing: tuple[int, ...]


class Run:
    """Reads and writes one run. Every write is one transaction; writing twice changes nothing."""

    def __init__(
        self, engine: Engine, place: str, key: int, name: str, pipeline: dict[str, Any], n_paths: int | None
    ) -> None:
        self.engine, self.place, self.key, self.name = engine, place, key, name
        self.pipeline, self.n_paths = pipeline, n_paths

    def add_problems(self, wanted: Sequence[Problem]) -> int:
        """Add the problems that are not there yet; how many were added. One id must stay one question."""
        with writing(self.engine, self.place, alone=True) as connection:
            held = {
                row.id: row.question
                for row in connection.execute(
                    select(problems.c.id, problems.c.question).where(problems.c.run == self.key)
                )
            }
            new: dict[str, Problem] = {}
            for problem in wanted:
                if problem.id in held:
                    if held[problem.id] != storable(problem.question):
                        raise StoreError(
                            f"problem {problem.id!r} is another question in this run; choose another --run or file"
                        )
                elif new.setdefault(problem.id, problem) is not problem:
                    raise StoreError(f"the id {problem.id!r} occurs twice among the problems; ids must differ")
            rows = [
                {
                    "run": self.key, "number": number, "id": problem.id, "question": storable(problem.question),
                    "gold": _json(list(problem.gold)), "cluster": problem.cluster, "kind": problem.group,
                    "extra": _json(dict(problem.extra)),
                }
                for number, problem in enumerate(new.values(), start=len(held))
            ]  # fmt: skip
            self._insert(connection, problems, rows)
        return len(rows)

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
                found.append(Pending(row.number, _problem(row), missing))
        return found

    def save(self, batch: Sequence[SavedPath]) -> None:
        """Save paths, and mark the pools they make whole, in one transaction."""
        rows = [
            {
                "run": self.key, "number": each.number, "path": each.path, "text": pack(each.text),
                "answer": storable(each.answer), "extraction": each.extraction, "finish_reason": each.finish_reason,
                "n_tokens": each.n_tokens, "logprob_mean": each.logprob_mean, "logprob_std": each.logprob_std,
                "seed": each.seed, "latency": each.latency, "extra": _json(each.extra) if each.extra else None,
            }
            for each in batch
        ]  # fmt: skip
        touched = sorted({each.number for each in batch})
        with writing(self.engine, self.place) as connection:
            self._insert(connection, paths, rows)
            counts = connection.execute(
                select(paths.c.number, func.count())
                .where(paths.c.run == self.key, paths.c.number.in_(touched))
                .group_by(paths.c.number)
            ).all()
            now = _now()
            whole = [
                {"run": self.key, "number": number, "n_paths": count, "completed": now}
                for number, count in counts
                if self.n_paths is None or count >= self.n_paths
            ]
            self._insert(connection, pools, whole)

    def pools(self, *, texts: bool = False, complete: bool = True, ids: Iterable[str] | None = None) -> list[Pool]:
        """The pools as records, whole ones unless told otherwise; texts only if asked for, they are most of a run."""
        wanted = None if ids is None else set(ids)
        columns = [c for c in paths.c if c.name not in ("run", "text") or (texts and c.name == "text")]
        with reading(self.engine, self.place) as connection:
            whole = set(connection.execute(select(pools.c.number).where(pools.c.run == self.key)).scalars())
            held = connection.execute(
                select(problems).where(problems.c.run == self.key).order_by(problems.c.number)
            ).all()
            scored: dict[tuple[int, int], dict[str, float]] = {}
            for number, path, name, value in connection.execute(
                select(scores.c.number, scores.c.path, scores.c.name, scores.c.value).where(scores.c.run == self.key)
            ):
                scored.setdefault((number, path), {})[name] = value
            by_problem: dict[int, list[Path]] = {}
            found = connection.execute(
                select(*columns).where(paths.c.run == self.key).order_by(paths.c.number, paths.c.path)
            )
            for row in found:
                by_problem.setdefault(row.number, []).append(_path(row, scored.get((row.number, row.path), {}), texts))
        return [
            Pool(_problem(row), tuple(by_problem[row.number]))
            for row in held
            if row.number in by_problem
            and (not complete or row.number in whole)
            and (wanted is None or row.id in wanted)
        ]

    def unscored(self, name: str) -> list[tuple[int, Pool]]:
        """Whole pools some of whose paths lack a score, with their numbers. Texts are read."""
        numbers = self.numbers()
        return [
            (numbers[pool.problem.id], pool)
            for pool in self.pools(texts=True)
            if any(name not in path.scores for path in pool.paths)
        ]

    def save_scores(self, name: str, identity: Mapping[str, Any], rows: Iterable[tuple[int, int, float]]) -> None:
        """Save a score of some paths, given as (problem number, path index, value), under a scorer's identity."""
        described = json.dumps(identity, sort_keys=True)
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
                [{"run": self.key, "name": name, "number": n, "path": p, "value": value} for n, p, value in rows],
            )  # fmt: skip

    def scorers(self) -> dict[str, dict[str, Any]]:
        """The identity of every score in the run, by name."""
        with reading(self.engine, self.place) as connection:
            rows = connection.execute(
                select(scorers.c.name, scorers.c.identity).where(scorers.c.run == self.key).order_by(scorers.c.name)
            ).all()
        return {row.name: json.loads(row.identity) for row in rows}

    def note(self, command: str, started: str, facts: Mapping[str, Any]) -> None:
        """Keep what a command did: versions, timings, counts."""
        with writing(self.engine, self.place) as connection:
            row = {"run": self.key, "command": command, "started": started, "facts": _json(dict(facts))}
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
            "commands": [{"command": row.command, "started": row.started, **json.loads(row.facts)} for row in noted],
        }

    def _insert(self, connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows; those whose key is there already stay as they are."""
        if rows:
            dialect = sqlite if self.engine.dialect.name == "sqlite" else postgresql
            connection.execute(dialect.insert(table).on_conflict_do_nothing(), list(rows))


def storable(text: str | None) -> str | None:
    """Text that every database takes: no NUL, no half of a surrogate pair."""
    return None if text is None else text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def pack(text: str | None) -> bytes | None:
    return None if text is None else zlib.compress(text.encode("utf-8", "surrogatepass"), level=3)


def unpack(packed: bytes | None) -> str | None:
    return None if packed is None else zlib.decompress(packed).decode("utf-8", "surrogatepass")


_PATH_FACTS = ("finish_reason", "n_tokens", "logprob_mean", "logprob_std", "seed", "latency")


def saved(number: int, position: int, path: Path) -> SavedPath:
    """A path of a file as it is stored."""
    facts = {name: path.extra.get(name) for name in _PATH_FACTS}
    kept = {name: value for name, value in path.extra.items() if name not in (*_PATH_FACTS, "extraction")}
    extraction = path.extra.get("extraction") or ("given" if path.has_answer_field else None)
    answer = as_written(path.answer)
    return SavedPath(number, position, path.text, answer, extraction, **facts, extra=kept)


def _problem(row: Any) -> Problem:
    return Problem(
        id=row.id, question=row.question, gold=tuple(json.loads(row.gold)), cluster=row.cluster, group=row.kind,
        extra=json.loads(row.extra),
    )  # fmt: skip


def _path(row: Any, scored: Mapping[str, float], texts: bool) -> Path:
    extra = {name: value for name in _PATH_FACTS if (value := getattr(row, name)) is not None}
    if row.extraction is not None:
        extra["extraction"] = row.extraction
    if row.extra is not None:
        extra |= json.loads(row.extra)
    return Path(
        answer=row.answer, text=unpack(row.text) if texts else None, scores=scored, extra=extra,
        has_answer_field=row.extraction is not None,
    )  # fmt: skip


def _json(value: Any) -> str:
    return json.dumps(value)  # ASCII, so that no database minds what a model wrote


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
