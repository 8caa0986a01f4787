"""Labels by a judge of which people checked a part, on recorded pools: what `results.py` tabulates.

Gold plays the people, and the judge is gold with seeded flips. Votes are known by their places in the file's order of
confidence, 0 being the most confident; a way to calibrate says how many places are answered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from demur.calibration import HighProbability, JudgeMarginal, Marginal, RankGuarantee
from demur.evaluation.comparison import JITTERED
from demur.evidence.region import region
from demur.study.cells import Cell
from demur.study.tables import Table, Value

Flags = NDArray[np.bool_]
Places = NDArray[np.intp]
CALIBRATION, CHECKED, SPLITS, DELTA, FEWEST = 400, 100, 400, 0.1, 700


@dataclass(frozen=True)
class Judge:
    """How often it calls a wrong vote right, in the more and in the less confident half, and a right one wrong."""

    top: float
    bottom: float
    false_wrong: float

    def says_wrong(self, wrong: Flags, seed: int = 0) -> Flags:
        """What it says of each vote, by place."""
        draw = np.random.default_rng(seed).random(len(wrong))
        misses = np.where(np.arange(len(wrong)) < len(wrong) / 2, self.top, self.bottom)
        return np.where(wrong, draw >= misses, draw < self.false_wrong)


JUDGES = {
    "good, misses 2 % of errors": Judge(0.02, 0.02, 0.01),
    "fair, misses 15 %": Judge(0.15, 0.15, 0.05),
    "misses half of the confident errors": Judge(0.5, 0.1, 0.02),
}


@dataclass(frozen=True)
class CheckedSet:
    """One calibration set: places, those of the checked part, and what people and judge say by place."""

    cal: Places
    checked: Places
    wrong: Flags
    said_wrong: Flags
    alpha: float
    delta: float | None

    @property
    def plain(self) -> RankGuarantee:
        return Marginal(self.alpha) if self.delta is None else HighProbability(self.alpha, self.delta)


def kth(places: Places, k: int, none: int) -> int:
    """Where the k-th bad vote stands: what is before it is answered."""
    return 0 if k == 0 else int(np.sort(places)[k - 1]) if len(places) >= k else none


def judges_labels(drawn: CheckedSet) -> int:
    return kth(drawn.cal[drawn.said_wrong[drawn.cal]], drawn.plain.rank(len(drawn.cal)), len(drawn.wrong))


def checked_alone(drawn: CheckedSet) -> int:
    return kth(drawn.checked[drawn.wrong[drawn.checked]], drawn.plain.rank(len(drawn.checked)), len(drawn.wrong))


def both(drawn: CheckedSet, share: str | None = None) -> int:
    """`JudgeMarginal`, with this share, or `JudgeHighProbability`."""
    n, checked, none = len(drawn.cal), len(drawn.checked), len(drawn.wrong)
    overruled = np.isin(drawn.cal, drawn.checked) & ~drawn.wrong[drawn.cal]
    seen = np.sort(drawn.cal[drawn.said_wrong[drawn.cal] & ~overruled])
    missed = np.sort(drawn.checked[drawn.wrong[drawn.checked] & ~drawn.said_wrong[drawn.checked]])
    if drawn.delta is None:
        first, second = JudgeMarginal(drawn.alpha, share).settled(checked).parts()
        return min(kth(seen, first.rank(n), none), kth(missed, second.rank(checked), none))
    allowed = region(n, checked, drawn.alpha, drawn.delta)
    places = np.sort(np.concatenate([seen, missed]))
    counts = (np.searchsorted(kind, places, side="right") for kind in (seen, missed))
    beyond = np.flatnonzero(~allowed.allows(*counts))
    return int(places[beyond[0]]) if len(beyond) else none if len(allowed.most) else 0


def normal_bound(drawn: CheckedSet) -> int:
    """An estimate with a normal margin: the judge's rate on all, corrected by what people found (PPI)."""
    margin = 0.0 if drawn.delta is None else float(ndtri(1 - drawn.delta))
    order, n, checked = np.sort(drawn.cal), len(drawn.cal), np.sort(drawn.checked)
    ends = np.append(order, len(drawn.wrong))
    # Answering what stands before each end: how many of either kind there are among all and among checked votes.
    judged = np.append(0, np.cumsum(drawn.said_wrong[order])) / n
    off = drawn.wrong[checked].astype(int) - drawn.said_wrong[checked].astype(int)
    before = np.searchsorted(checked, ends)
    mean = np.append(0, np.cumsum(off))[before] / len(checked)
    square = np.append(0, np.cumsum(off**2))[before] / len(checked)
    spread = np.sqrt(np.maximum(square - mean**2, 0) / len(checked) + judged * (1 - judged) / n)
    above = np.flatnonzero(judged + mean + margin * spread > drawn.alpha)
    return int(ends[above[0] - 1]) if len(above) and above[0] else 0 if len(above) else len(drawn.wrong)


Ways = dict[str, Callable[[CheckedSet], int]]
WAYS: Ways = {
    "judge's labels as they are": judges_labels,
    "checked votes alone": checked_alone,
    "judge and checks": both,
    "estimate, normal margin": normal_bound,
}


@dataclass(frozen=True)
class Outcome:
    """One way on one file."""

    answered: float
    error: float
    """Mean rate of wrong answers on the rest of the file."""
    violations: float
    """Of calibration sets drawn with replacement, the share whose true rate in the file exceeds alpha."""


def compare(
    wrong: Flags, confident: int, judge: Judge, alpha: float, delta: float | None, ways: Ways
) -> dict[str, Outcome]:
    """Every way on random splits of one file, and on draws from it with replacement."""
    rng, said = np.random.default_rng(0), judge.says_wrong(wrong)
    rates, n = np.append(0, np.cumsum(wrong)) / len(wrong), len(wrong)
    found: dict[str, list[tuple[float, float, bool]]] = {name: [] for name in ways}
    for _ in range(SPLITS):
        shuffled, again = rng.permutation(n), rng.integers(0, n, CALIBRATION)
        cal, rest = shuffled[:CALIBRATION], shuffled[CALIBRATION:]
        split, draw = (CheckedSet(one, one[:CHECKED], wrong, said, alpha, delta) for one in (cal, again))
        for name, way in ways.items():
            chosen = rest[rest < min(way(split), confident)]
            violated = bool(rates[min(way(draw), confident)] > alpha)
            found[name].append((len(chosen) / len(rest), wrong[chosen].sum() / len(rest), violated))
    return {name: Outcome(*(float(mean) for mean in np.mean(rows, axis=0))) for name, rows in found.items()}


def shares_of_alpha(cells: Sequence[Cell], alpha: float) -> Table:
    """`JudgeMarginal` with several shares of alpha for missed errors: yields, means over cells."""
    ways: Ways = {
        (share or "chosen by the number of checks"): partial(both, share=share)
        for share in (None, "0.1", "0.2", "0.3", "0.4", "0.5")
    }
    rows: list[list[Value]] = []
    files = [placed(cell) for cell in cells if cell.n >= FEWEST]
    for told, judge in JUDGES.items():
        found = [compare(*file, judge, alpha, None, ways) for file in files]
        rows.append([told, *(f"{np.mean([one[name].answered for one in found]):.1%}" for name in ways)])
    return Table("judged-shares", f"The share of alpha for missed errors, alpha {alpha:g}", ["judge", *ways], rows)


def placed(cell: Cell) -> tuple[Flags, int]:
    """Whether votes are wrong, the most confident first, and how many have any confidence."""
    votes, right = cell.votes(JITTERED)
    return ~right[np.lexsort(votes.key.T[::-1])[::-1]], int((votes.key[:, 0] > 0).sum())


def judged_cells(cells: Sequence[Cell], alpha: float, delta: float | None) -> Table:
    """Every judge on every cell that is large enough."""
    rows: list[list[Value]] = []
    for cell in cells:
        if cell.n < FEWEST:
            continue
        wrong, confident = placed(cell)
        for told, judge in JUDGES.items():
            found = compare(wrong, confident, judge, alpha, delta, WAYS)
            shown = [
                f"{one.answered:.0%} / {one.error:.3f}"
                if delta is None
                else f"{one.answered:.0%} / {one.violations:.0%}"
                for one in found.values()
            ]
            rows.append([cell.name, told, *shown])
    promise = "on average" if delta is None else f"for all but {delta:g} of calibration sets"
    return Table("judged", f"Labels by a judge, alpha {alpha:g} {promise}", ["", "judge", *WAYS], rows)


def judged_part(cells: Sequence[Cell]) -> list[str]:
    """The part of the page about labels by a judge."""
    wanted = ((0.1, None), (0.1, DELTA), (0.05, DELTA))
    tables = [judged_cells(cells, alpha, delta).markdown() for alpha, delta in wanted]
    return ["## Labels by a judge", "", _JUDGED, "", *tables, shares_of_alpha(cells, 0.1).markdown()]


_JUDGED = (
    f"A judge labels {CALIBRATION} calibration questions, and people check {CHECKED} of them, drawn at random; gold "
    "plays the people, the judge is gold with seeded flips, and the vote is the majority vote with jitter. First "
    "table, promise on average: yield and share of all questions answered wrongly on the rest of the file, means over "
    f"{SPLITS} random splits. The others: yield, and in how many of {SPLITS} calibration sets, drawn with "
    "replacement, the true rate exceeds alpha. A judge's labels taken as they are break the promise by what it misses. "
    "The checked votes alone keep it. So do the judge's labels and the checks together (`JudgeMarginal` in the first "
    "table, `JudgeHighProbability` in the others): on average they answer less, even where the judge is good; for all "
    "but delta of calibration sets they answer more where it is. The last column is no promise: a prediction-powered "
    "estimate, with a normal margin where there is a delta, which violates more often than that where errors are "
    "missed in the wrong place."
)
