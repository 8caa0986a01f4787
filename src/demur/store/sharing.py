"""A run as several processes share it: workers, who is at work, the budget."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, func, select

from demur.files.strict_json import as_json
from demur.stopping.paths_left import PathsLeft
from demur.store._tables import paths, problems, scores, work
from demur.store.budgets import Budget, Spending
from demur.store.changes import RunChanges
from demur.store.connection import reading
from demur.store.ended_pools import keys_of_paths
from demur.store.patience import patient
from demur.store.rows import check_name
from demur.store.shared_work import (
    LEASE_SECONDS,
    SAMPLING,
    AtWork,
    all_at_work,
    claiming,
    is_shared,
    now_of,
    open_account,
    prepare,
    spending_of,
)
from demur.store.worker import Worker


class RunSharing(RunChanges):
    """Shares the work on a run among processes."""

    def at_work(self, task: str, concurrency: int, lease: float = LEASE_SECONDS) -> Worker:
        """This process at a task of the run, seen by all others."""
        if task != SAMPLING:
            check_name("score", score_of_task(task), self.scorers)
        return Worker(self, task, concurrency, lease)

    @patient
    def set_budget(self, budget: Budget) -> None:
        """Have a limit in place of the one that was there."""
        if not budget.says_nothing:
            prepare(self.engine, self.place)
            with claiming(self.engine, self.place, self.key) as connection:
                open_account(connection, self.key, SAMPLING)
                this = (work.c.run == self.key) & (work.c.task == SAMPLING)
                connection.execute(work.update().where(this).values(**budget.columns()))

    @patient
    def came(self, task: str) -> int:
        """Paths that came to those who are or were at a task."""
        with reading(self.engine, self.place) as connection:
            if not is_shared(connection):
                return 0
            return spending_of(connection, self.key, task, all_at_work(connection, self.key, 0)).paths

    @patient
    def everybody_at_work(self) -> list[AtWork]:
        """Who is at work on the run; the earliest first."""
        with reading(self.engine, self.place) as connection:
            return all_at_work(connection, self.key, now_of(connection)) if is_shared(connection) else []

    @patient
    def shared(self) -> dict[str, Any]:
        """Who is at work on the run, when each task will be done at their pace, and its budget."""
        with reading(self.engine, self.place) as connection:
            if not is_shared(connection):
                return {"workers": [], "seconds_left": {}, "budget": None}
            everybody = all_at_work(connection, self.key, now_of(connection))
            spending = spending_of(connection, self.key, SAMPLING, everybody)
            left = {
                _words(task): self._seconds_left(connection, task, everybody)
                for task in dict.fromkeys(one.task for one in everybody)
            }
        told = [_told(one) for one in everybody]
        return {"workers": told, "seconds_left": left, "budget": _limited(spending)}

    def _seconds_left(self, connection: Connection, task: str, everybody: list[AtWork]) -> float | None:
        """How long a task will take at the pace of those who are at it; None where they have none."""
        rate = sum(one.rate for one in everybody if one.task == task and not (one.is_over or one.is_gone))
        there = select(func.count()).select_from(paths).where(paths.c.run == self.key)
        if task == SAMPLING:
            asked = select(problems.c.number).where(problems.c.run == self.key)
            numbers = connection.execute(asked).scalars().all()
            left: float = len(numbers) * self.whole - connection.execute(there).scalar_one()
            if self.stopping is not None:
                keys, paths_left = keys_of_paths(connection, self.key, self.read_by), PathsLeft(self.stopping)
                for number in numbers:
                    paths_left.note(number, keys.get(number, {}))
                left = paths_left.expected
        else:
            scored = select(func.count()).select_from(scores).where(scores.c.run == self.key)
            done = scored.where(scores.c.name == score_of_task(task))
            left = connection.execute(there).scalar_one() - connection.execute(done).scalar_one()
        return max(0, left) / rate if rate else None


def task_of_score(name: str, identity: Mapping[str, Any]) -> str:
    """The task of giving paths a score, by one scorer and no other of its name."""
    digest = hashlib.sha256(as_json(identity, sort_keys=True).encode()).hexdigest()[:8]
    return f"score:{digest}:{name}"


def score_of_task(task: str) -> str:
    return task.split(":", 2)[-1]


def _words(task: str) -> str:
    return task if task == SAMPLING else f"score {score_of_task(task)}"


def _told(one: AtWork) -> dict[str, Any]:
    return {
        "worker": one.name,
        "task": _words(one.task),
        "since": one.since,
        "paths": one.paths,
        "tokens": one.tokens,
        "seconds": one.seconds,
        "rate": one.rate,
        "problems": len(one.numbers),
        "unseen_seconds": one.unseen,
        "state": "gone" if one.is_gone else "silent" if one.is_over else "at work",
    }


def _limited(spending: Spending) -> dict[str, Any] | None:
    document = spending.document()
    return document if any(limit is not None for limit in document["limits"].values()) else None
