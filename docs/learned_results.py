"""What half of the labels gain when they fit a key and the other half calibrates it: what `results.py` tabulates."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from demur import Marginal
from demur.evaluation.learned_key import FEWEST_OF_EACH, LearnedKeyFit, fit_counted
from demur.evidence.counts import Floats
from demur.pools.path_fields import ORIGINS
from demur.pools.splits import repeated
from demur.pools.voted_pools import VotedPools
from demur.study.tables import Table, Value
from demur.voting.features import agreement, feature_names, features_of
from demur.voting.key import Counted
from demur.voting.learned import Learned
from demur.voting.problems import Problems

FEWEST = 700
LABELS = 400
SHARE, LEARNED, OFFERED = f"share, {LABELS} labels", "learned, 200 + 200", "learned where better"
_ORIGIN = ORIGINS[0]


@dataclass(frozen=True)
class Outcome:
    """One file: rates on the rest of it, means over splits."""

    answered: dict[tuple[str, float], float]
    wrong: dict[tuple[str, float], float]
    """Answered wrongly, of all."""
    offered: float
    """In how many splits the learned key was better on the tune split."""


def compare(voted: VotedPools, alphas: tuple[float, ...], splits: int, seed: int = 0) -> Outcome:
    """Random splits: so many labelled problems, of which each half in turn fits the key and the other calibrates it."""
    voted = voted.take(voted.counted)
    right, jitter = voted.labelled, voted.votes.key[:, -1]
    names = [name for name in voted.votes.beside.columns if name != voted.votes.upstream.score.get("name")]
    origin = _ORIGIN if _ORIGIN in set(voted.votes.beside.origins) else None
    counted, answered = voted.votes.counted(names, origin), voted.votes.has_answer
    seen = _Seen(counted)
    rates: dict[tuple[str, float], list[tuple[float, float]]] = {}
    better = []
    share = _ranks(voted.votes.confidence, jitter)
    for labelled, rest in zip(*repeated(len(right), LABELS, splits // 2, seed), strict=True):
        halves = np.random.default_rng([seed, len(better)]).permutation(labelled).reshape(2, -1)
        for tune, cal in (halves, halves[::-1]):  # each half in turn, so that which one calibrates is no noise
            known = tune[answered[tune]]
            fit = _fit(counted.take(known), right[known], origin)
            learned = share if fit is None else _ranks(seen.confidence(fit.key), jitter)
            better.append(fit is not None and fit.better)
            ways = ((SHARE, share, labelled), (LEARNED, learned, cal), (OFFERED, learned if better[-1] else share, cal))
            for alpha, (name, ranks, rows) in product(alphas, ways):
                rates.setdefault((name, alpha), []).append(_rates(ranks, right, rows, rest, alpha))
    means = {key: np.mean(found, axis=0) for key, found in rates.items()}
    return Outcome(
        {key: float(mean[0]) for key, mean in means.items()},
        {key: float(mean[1]) for key, mean in means.items()},
        float(np.mean(better)),
    )


def table(cells: list[tuple[str, VotedPools]], alphas: tuple[float, ...] = (0.05, 0.1), splits: int = 400) -> Table:
    """Yields of the share and of the learned key, and how often the latter is offered."""
    rows: list[list[Value]] = []
    for name, voted in cells:
        if len(voted.counted) < FEWEST:
            continue
        found = compare(voted, alphas, splits)
        told = [f"{found.answered[how, alpha]:.3f} / {found.wrong[how, alpha]:.3f}"
                for alpha in alphas for how in (SHARE, LEARNED, OFFERED)]  # fmt: skip
        rows.append([name, *told, f"{found.offered:.0%}"])
    header = ["", *(f"α = {alpha:g}: {how}" for alpha in alphas for how in (SHARE, LEARNED, OFFERED)), "offered"]
    return Table("learned-key", "A learned key", header, rows, note=_NOTE)


_NOTE = (
    "Yield and rate of wrong answers on the rest of the file, means over 400 random splits with 400 labelled "
    "questions, for files of more than 700. The share of the majority vote, with jitter behind it, calibrates on all "
    "400; a learned key is fitted on 200 of them and calibrates on the other 200, with jitter behind it too. In the "
    "third column of each alpha the learned key is used only where it is better on the tune split by more than its "
    "standard error, and else the share, calibrated on the same 200; the last column says how often. Penalties are "
    "chosen within each tune split."
)


class _Seen:
    """What keys look at in one file, looked up once for all splits."""

    def __init__(self, counted: Counted) -> None:
        self.names = feature_names(counted.columns, scores=counted.scores is not None)
        self.features = features_of(counted, self.names)
        self.sources = () if counted.origins is None else counted.origins.names
        self.agreement = agreement(counted, self.sources) if self.sources else np.zeros((len(self.features), 0))
        self.answered = counted.winner >= 0

    def confidence(self, key: Learned) -> Floats:
        """As `Learned.of` has it, but for the last digits."""
        odds = key.intercept + self.features @ np.array([key.weights.get(name, 0.0) for name in self.names])
        odds += self.agreement @ np.array([key.sources.get(name, 0.0) for name in self.sources])
        return np.where(self.answered, np.round(1 / (1 + np.exp(-odds)), 12), 0.0)


def _fit(counted: Counted, right: NDArray[np.bool_], origin: str | None) -> LearnedKeyFit | None:
    """The fit; None where the tune split has too few wrong votes for one."""
    if min(right.sum(), (~right).sum()) < FEWEST_OF_EACH:
        return None
    return fit_counted(counted, right, origin, Problems())


def _ranks(first: Floats, jitter: Floats) -> NDArray[np.intp]:
    """The place of each vote in the order of its key, 1 the least; votes of confidence 0 are never answered."""
    ranks = np.empty(len(first), dtype=np.intp)
    ranks[np.lexsort((jitter, first))] = np.arange(1, len(first) + 1)
    return np.where(first > 0, ranks, 0)


def _rates(
    ranks: NDArray[np.intp], right: NDArray[np.bool_], cal: NDArray[np.intp], rest: NDArray[np.intp], alpha: float
) -> tuple[float, float]:
    wrong, k = np.sort(ranks[cal][~right[cal]])[::-1], Marginal(alpha).rank(len(cal))
    bound = int(wrong[k - 1]) if len(wrong) >= k else 0
    answered = ranks[rest] > bound
    return float(answered.mean()), float((answered & ~right[rest]).mean())
