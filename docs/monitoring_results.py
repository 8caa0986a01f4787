"""A month of a service in simulation, and canaries on recorded pools: which alarm comes first, and how soon.

    python docs/monitoring_results.py FOLDER

prints the part of docs/results.md that `docs/results.py` puts there. FOLDER holds recorded pools.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import demur as dm
from demur.monitoring import AuditedQuestion, CanaryMonitor, DriftMonitor, ErrorMonitor, settled
from demur.pools.fields import FieldChoice, read_table
from demur.pools.jsonl import read_pools
from demur.pools.labels import read_labels
from demur.pools.splits import one_per_unit, units
from demur.study.tables import Table, Value

Floats = NDArray[np.float64]

PATHS, ANSWERS, CALIBRATED, ALPHA = 8, 6, 800, 0.1
DAYS, AUDITS, CANARIES = 30, 20, 40
"""Audited questions and questions asked again, per day."""
CHANGED = 10
"""The day after which something changes."""
LEVELS = {"drift": 0.01, "canaries": 0.01, "errors": 0.05}
"""The probability of a false alarm, ever, of each monitor."""
QUIET_MONTHS, MONTHS = 400, 100


@dataclass(frozen=True)
class Change:
    """What changes: the chances of the answers to one question under a new model, or which questions come."""

    name: str
    model: Callable[[Floats], Floats] = lambda chances: chances
    hardness: float = 1.0
    """Of the questions: 1 as they were, more where right answers are rarer."""


def with_odds(factor: float) -> Callable[[Floats], Floats]:
    """The odds of the right answer so many times as high, on every question."""

    def changed(chances: Floats) -> Floats:
        was = np.minimum(chances[:, :1], 1 - 1e-12)
        right = factor * was / (factor * was + 1 - was)
        return np.concatenate([right, chances[:, 1:] * (1 - right) / (1 - was)], axis=1)

    return changed


def _other_answers(chances: Floats) -> Floats:
    """On every third question, another answer has the chances that the right one had: as clear, and wrong."""
    moved = chances.copy()
    moved[::3] = np.roll(chances[::3], 1, axis=1)
    return moved


QUIET = Change("nothing")
WEAKER = Change("model: weaker (a third of the odds)", with_odds(1 / 3))
STRONGER = Change("model: stronger (three times the odds)", with_odds(3))
OTHERWISE = Change("model: other answers, as clear", _other_answers)
HARDER = Change("questions: harder", hardness=2.5)
CHANGES = (WEAKER, STRONGER, OTHERWISE, HARDER)


def draw_questions(rng: np.random.Generator, n: int, hardness: float = 1.0) -> Floats:
    """The chances of each answer, the right one first."""
    right = rng.beta(1.6, 0.6 * hardness, n)[:, None]
    return np.concatenate([right, (1 - right) * rng.dirichlet(np.full(ANSWERS - 1, 0.6), n)], axis=1)


def draw_pools(rng: np.random.Generator, chances: Floats) -> NDArray[np.int64]:
    """The answers of each pool's paths."""
    counts = rng.multinomial(PATHS, chances / chances.sum(axis=1, keepdims=True))
    return np.repeat(np.tile(np.arange(ANSWERS), len(counts)), counts.ravel()).reshape(-1, PATHS)


def simulate_month(seed: int, change: Change = QUIET, per_day: int = CANARIES) -> dict[str, float]:
    """The day of each monitor's alarm, infinite where it raised none; the calibration is drawn anew too."""
    rng = np.random.default_rng(seed)
    known = draw_questions(rng, CALIBRATED)
    old = draw_pools(rng, known)
    votes = dm.vote(old, ids=[f"{seed}:{row}" for row in range(CALIBRATED)])
    policy = dm.calibrate(votes, votes.winners == 0, alpha=ALPHA)

    before = CHANGED * AUDITS
    asked = np.concatenate(
        [draw_questions(rng, before), change.model(draw_questions(rng, DAYS * AUDITS - before, change.hardness))]
    )
    fresh = dm.vote(draw_pools(rng, asked), ids=[f"{seed}:new:{row}" for row in range(len(asked))])
    decided = policy.decide_votes(fresh)
    audits = [
        AuditedQuestion(bool(answered), bool(answered and winner != 0))
        for answered, winner in zip(decided.answered, fresh.winners, strict=True)
    ]
    drift = DriftMonitor(policy, delta=LEVELS["drift"], seed=seed).update(fresh)
    errors = ErrorMonitor(policy, delta=LEVELS["errors"]).update(settled(audits))

    canaries, rows = CanaryMonitor(policy, delta=LEVELS["canaries"], seed=seed), rng.permutation(CALIBRATED)
    first = CHANGED * per_day
    chances = np.concatenate([known[rows[:first]], change.model(known[rows[first : DAYS * per_day]])])
    new = draw_pools(rng, chances)
    again = dm.vote(new, ids=[f"{seed}:{row}" for row in rows[: len(new)]])
    for at, row in enumerate(rows[: len(new)].tolist()):
        answers = {"old_answers": old[row].tolist(), "new_answers": new[at].tolist()}
        canaries.update(votes.key[row], again.key[at], id=str(row), **answers)
    rates = {"drift": (drift, AUDITS), "canaries": (canaries, per_day), "errors": (errors, AUDITS)}
    return {
        name: np.inf if monitor.alarm_at is None else monitor.alarm_at / rate for name, (monitor, rate) in rates.items()
    }


def months(change: Change, n: int, per_day: int = CANARIES) -> dict[str, Floats]:
    """The day of each monitor's alarm in each of n months; infinite where it raised none."""
    days = [simulate_month(seed, change, per_day) for seed in range(n)]
    return {name: np.array([day[name] for day in days]) for name in LEVELS}


def months_table() -> Table:
    """Alarms without and with a change, and how long after it they came."""
    quiet = months(QUIET, QUIET_MONTHS)
    rows: list[list[Value]] = [["nothing", *(_alarms(quiet[name]) for name in LEVELS), "–"]]
    for change, per_day in [*((change, CANARIES) for change in CHANGES), (WEAKER, AUDITS)]:
        days = months(change, MONTHS, per_day)
        first = np.minimum.reduce(list(days.values()))
        firsts = ", ".join(
            f"{name} {share:.0%}" for name in LEVELS if (share := _share((days[name] == first) & (first < np.inf)))
        )
        name = change.name if per_day == CANARIES else f"{change.name}, with {per_day} canaries a day"
        rows.append([name, *(_delays(days[name]) for name in LEVELS), firsts])
    header = ["What changes", *(f"{name} (delta {level:g})" for name, level in LEVELS.items()), "first alarm"]
    return Table("months", "Simulated months", header, rows)


def _share(some: NDArray[np.bool_]) -> float:
    return float(some.mean())


def _alarms(days: Floats) -> str:
    return f"{int((days < np.inf).sum())} of {len(days)} months"


def _delays(days: Floats) -> str:
    """Months with an alarm, and after how many days half of the months, and nine in ten, had it."""
    found, early = int((days < np.inf).sum()), int((days <= CHANGED).sum())
    told = f"{found} of {len(days)}" + (f", {early} of them before" if early else "")
    if found - early <= len(days) / 2:
        return told
    middle, late = (float(np.quantile(days, share, method="higher")) - CHANGED for share in (0.5, 0.9))
    return f"{told}: {middle:.1f} days" + ("" if late == np.inf else f", 90 %: {late:.1f}")


@dataclass(frozen=True)
class Recorded:
    """The answers of one file, a row per question and a column per source of paths."""

    ids: list[str]
    sources: list[str]
    answers: NDArray[np.object_]
    policy: dm.Policy
    """That of its majority vote; canaries need no more of it than how votes are made."""

    @classmethod
    def of(cls, folder: Path, name: str, choice: FieldChoice) -> Recorded:
        pools = read_pools(folder / f"{name}.jsonl.gz")
        table = read_table(pools, choice)
        sources = [str(path.extra["src"]) for path in pools[0].paths]
        distinct = one_per_unit(table.ids, units(table.ids, table.clusters, table.questions))
        rows = [row for row in distinct.tolist() if len(table.answers[row]) == len(sources)]
        ids = [table.ids[row] for row in rows]
        votes = dm.vote([table.answers[row] for row in rows], ids=ids)
        right = read_labels([pools[row] for row in rows], read_table([pools[row] for row in rows], choice))
        answers = np.array([table.answers[row] for row in rows], dtype=object)
        return cls(ids, sources, answers, dm.calibrate(votes, right.of_votes(votes), alpha=ALPHA))

    def compare(
        self, old: NDArray[np.object_], new: NDArray[np.object_], rows: NDArray[np.intp], *, alike: bool, seed: int = 0
    ) -> CanaryMonitor:
        """Canaries in some order, `alike` where all paths of a pool are drawn alike."""
        ids = [self.ids[row] for row in rows]
        before, after = (dm.vote(pools[rows].tolist(), ids=ids) for pools in (old, new))
        monitor = CanaryMonitor(self.policy, delta=LEVELS["canaries"], seed=seed)
        for at, row in enumerate(rows):
            answers = {"old_answers": list(old[row]), "new_answers": list(new[row])} if alike else {}
            monitor.update(before.key[at], after.key[at], id=ids[at], **answers)
        return monitor

    def of_model(self, name: str) -> NDArray[np.object_]:
        """The paths of one model, a prompt each."""
        return self.answers[:, [source.split("_")[0] == name for source in self.sources]]


def halves(recorded: Recorded, runs: int, most: int = 400) -> int:
    """False alarms: each pool of one model is dealt out at random into an old and a new half."""
    alarms, (n, width) = 0, recorded.answers.shape
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        dealt = rng.permuted(recorded.answers, axis=1)
        old, new = dealt[:, : width // 2], dealt[:, width // 2 : width // 2 * 2]
        alarms += recorded.compare(old, new, rng.permutation(n)[:most], alike=True, seed=seed).alarm
    return alarms


def swaps(recorded: Recorded, old: str, new: str, runs: int, most: int = 600) -> Floats:
    """How many canaries it takes to notice that another model answers, in orders at random; infinite where too many."""
    found = []
    for seed in range(runs):
        rows = np.random.default_rng(seed).permutation(len(recorded.ids))[:most]
        at = recorded.compare(recorded.of_model(old), recorded.of_model(new), rows, alike=False).alarm_at
        found.append(np.inf if at is None else at)
    return np.array(found)


RUNS_OF_ONE = "wisdom_gpt35_nlu_asdiv_single_answer", FieldChoice("answer_x")
MODELS = "faithfulcot_gsm8k_pool", FieldChoice("answer", None, ("None",))
OLD, NEW = "text003", ("gpt4", "gpt-3.5-turbo", "text002", "code001")
HALVES, ORDERS = 400, 20


def recorded_table(folder: Path) -> Table:
    """Canaries where nothing changed, and where another model answers the same questions."""
    one, models = (Recorded.of(folder, *which) for which in (RUNS_OF_ONE, MODELS))
    first, last = one.answers[:, :5], one.answers[:, 5:]
    later = one.compare(first, last, np.arange(len(one.ids)), alike=True)
    rows: list[list[Value]] = [
        [
            "GPT-3.5, ASDiv: halves of its pools at random",
            f"{halves(one, HALVES)} of {HALVES} runs of 400 canaries",
            "–",
        ],
        ["GPT-3.5, ASDiv: its first five runs, then its last five", _told(later), f"p = {later.p_value:.2g}"],
    ]
    for name in NEW:
        found = swaps(models, OLD, name, ORDERS)
        alarms = f"{int((found < np.inf).sum())} of {ORDERS} orders"
        rows.append([f"GSM8K: {OLD} becomes {name}", alarms, _canaries(found)])
    return Table("canaries", "Canaries on recorded pools", ["What is asked again", "alarms", "canaries needed"], rows)


def _told(monitor: CanaryMonitor) -> str:
    return f"alarm at canary {monitor.alarm_at}" if monitor.alarm else f"none in {monitor.n} canaries"


def _canaries(found: Floats) -> str:
    middle, late = (float(np.quantile(found, share, method="higher")) for share in (0.5, 0.9))
    return "too many" if middle == np.inf else f"{middle:.0f} (90 %: {'too many' if late == np.inf else f'{late:.0f}'})"


_INTRODUCTION = (
    f"A simulated month: {CALIBRATED} questions calibrate alpha {ALPHA:g} on pools of {PATHS} paths; a day brings "
    f"{AUDITS} audited questions, drawn whole and labelled at once, and {CANARIES} canaries, until each calibration "
    f"question has been asked again. After day {CHANGED} something changes: told are the months with an alarm, within "
    "how many days of the change half of the months had it, and within how many nine in ten. Every month calibrates "
    f"anew; {QUIET_MONTHS} are without a change, {MONTHS} with each."
)


def monitoring_part(folder: Path) -> list[str]:
    """The part of the page about alarms."""
    return [
        "## Alarms",
        "",
        _INTRODUCTION,
        "",
        months_table().markdown(),
        _RECORDED,
        "",
        recorded_table(folder).markdown(),
    ]


_RECORDED = (
    f"Canaries on recorded pools, at delta {LEVELS['canaries']:g}: ten runs of one model, where an alarm is false; and "
    "pools of one path from each of five prompts to a model, the same prompts to another model afterwards. These are "
    "compared by keys alone, for paths of several prompts are not drawn alike. How many canaries are needed is what "
    f"half of {ORDERS} random orders needed, and what nine in ten did."
)


if __name__ == "__main__":
    print("\n".join(monitoring_part(Path(sys.argv[1]))))
