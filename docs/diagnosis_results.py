"""How often the diagnosis of an alarm is right, wrong and open: months with a change at a random time, simulated.

    python docs/diagnosis_results.py

prints the table of docs/serving_alarms.md. Questions, pools and policies are those of `monitoring_results`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from monitoring_results import (
    ALPHA,
    AUDITS,
    CALIBRATED,
    DAYS,
    LEVELS,
    Change,
    Floats,
    draw_pools,
    draw_questions,
    with_odds,
)
from numpy.typing import NDArray

import demur as dm
from demur.monitoring import CanaryMonitor, DriftMonitor, Moved
from demur.study.tables import Table, Value

PER_DAY = 24
"""Canaries per day, as `demur serve` asks them."""
MONTHS = 400
FIRST, LAST = 2.0, 25.0
"""Between these days something changes."""
MODEL, QUESTIONS = "model", "questions"

WEAKER, STRONGER = with_odds(1 / 3), with_odds(3)
CASES: tuple[tuple[Change, float, str], ...] = (
    (Change("nothing"), 1.0, ""),
    (Change("the model: weaker", WEAKER), 1.0, MODEL),
    (Change("the model: stronger", STRONGER), 1.0, MODEL),
    (Change("the model: half of the calls go to a weaker one", WEAKER), 0.5, MODEL),
    (Change("the questions: harder", hardness=2.5), 1.0, QUESTIONS),
    (Change("the questions: easier", hardness=0.3), 1.0, QUESTIONS),
    (Change("both: harder questions, a weaker model", WEAKER, 2.5), 1.0, MODEL),
)
"""A change, the share of calls that it is about, and what must not be cleared."""


@dataclass(frozen=True)
class Month:
    """What was seen in a month, by the day; infinite where there was no alarm."""

    changed: float
    drift: float
    began: float
    """When the drift began, as estimated."""
    change: str | None
    canary: float
    signs: NDArray[np.int64]
    """Of each canary, whether its key is higher, lower or as it was."""

    def moved(self, since: float, until: float) -> Moved:
        """The canaries that were asked in a time."""
        asked = np.arange(1, len(self.signs) + 1) / PER_DAY
        signs = self.signs[(asked > since) & (asked <= until)]
        return Moved(int((signs > 0).sum()), int((signs < 0).sum()), int((signs == 0).sum()))

    def says(self, day: float) -> str | None:
        """What the diagnosis names on a day; None where there is no alarm, or it is not known yet."""
        if self.canary <= day:
            return MODEL
        if self.drift > day or not self.moved(self.began, day).speaks_against(self.change):
            return None
        return QUESTIONS

    def said_before(self, day: float) -> str | None:
        """The same by the rule of earlier versions: twelve canaries from a week before the alarm on, and no alarm."""
        if self.canary <= day:
            return MODEL
        return QUESTIONS if self.drift <= day and self.moved(self.drift - 7, day).n >= 12 else None

    def looks(self) -> Floats:
        """Every hour from the first alarm to the end of the month."""
        first = min(self.drift, self.canary)
        return np.arange(first, DAYS + 1e-9, 1 / 24) if first <= DAYS else np.empty(0)


def simulate_month(seed: int, change: Change, share: float) -> Month:
    """A month in which something changes at a random time; the calibration is drawn anew too."""
    rng = np.random.default_rng(seed)
    known = draw_questions(rng, CALIBRATED)
    old = draw_pools(rng, known)
    votes = dm.vote(old, ids=[f"{seed}:{row}" for row in range(CALIBRATED)])
    policy = dm.calibrate(votes, votes.winners == 0, alpha=ALPHA)
    changed = float(rng.uniform(FIRST, LAST))

    def asked_of_another(chances: Floats) -> Floats:
        return np.where(rng.random(len(chances))[:, None] < share, change.model(chances), chances)

    before = round(changed * AUDITS)
    later = asked_of_another(draw_questions(rng, DAYS * AUDITS - before, change.hardness))
    fresh = dm.vote(
        draw_pools(rng, np.concatenate([draw_questions(rng, before), later])),
        ids=[f"{seed}:new:{row}" for row in range(DAYS * AUDITS)],
    )
    drift = DriftMonitor(policy, delta=LEVELS["drift"], seed=seed).update(fresh)

    rows, first = rng.permutation(CALIBRATED)[: DAYS * PER_DAY], round(changed * PER_DAY)
    new = draw_pools(rng, np.concatenate([known[rows[:first]], asked_of_another(known[rows[first:]])]))
    again = dm.vote(new, ids=[f"{seed}:{row}" for row in rows])
    canaries = CanaryMonitor(policy, delta=LEVELS["canaries"], seed=seed)
    for at, row in enumerate(rows.tolist()):
        answers = {"old_answers": old[row].tolist(), "new_answers": new[at].tolist()}
        canaries.update(votes.key[row], again.key[at], id=str(row), **answers)
    signs = np.sign(again.key[:, 0] - votes.key[rows, 0]).astype(np.int64)
    return Month(
        changed,
        _day(drift.alarm_at, AUDITS),
        _day(drift.change_from, AUDITS),
        drift.change,
        _day(canaries.alarm_at, PER_DAY),
        signs,
    )


def _day(number: int | None, per_day: int) -> float:
    return np.inf if number is None else number / per_day


def months(change: Change, share: float, n: int = MONTHS) -> list[Month]:
    return [simulate_month(seed, change, share) for seed in range(n)]


def counted(seen: Sequence[Month], truth: str, says: Callable[[Month, float], str | None]) -> tuple[int, int, int]:
    """Months with an alarm: right at their end, wrong at any time, and open at the end without having been wrong."""
    right = wrong = alarms = 0
    for month in seen:
        told = [says(month, float(day)) for day in month.looks()]
        alarms += bool(told)
        mistaken = any(one is not None and one != truth for one in told)
        wrong += mistaken
        right += bool(told) and not mistaken and told[-1] == truth
    return right, wrong, alarms - right - wrong


def table(n: int = MONTHS) -> Table:
    rows: list[list[Value]] = []
    for change, share, truth in CASES:
        seen = months(change, share, n)
        alarms = [month for month in seen if len(month.looks())]
        right, wrong, still = counted(seen, truth, Month.says)
        days = [_settled(month, truth) for month in alarms]
        waits = [day for day in days if day < np.inf]
        before = counted(seen, truth, Month.said_before)
        wait = f"{np.median(waits):.1f} days" if len(waits) > len(alarms) / 2 else "–"
        told = f"{before[0]} / {before[1]} / {before[2]}"
        rows.append([change.name, f"{len(alarms)} of {n}", right, wrong, still, wait, told])
    header = ["What changes", "months with an alarm", "right", "wrong", "open", "until settled", "earlier rule"]
    return Table("diagnosis", "Diagnoses in simulated months", header, rows)


def _settled(month: Month, truth: str) -> float:
    """How long after the first alarm the diagnosis was right."""
    looks = month.looks()
    return next((float(day - looks[0]) for day in looks if month.says(float(day)) == truth), np.inf)


if __name__ == "__main__":
    print(table().markdown())
