"""The exact law of error rates on fresh data.

    n    calibration votes            k    rank of the threshold: the k-th largest wrong confidence
    N    fresh test votes             c    P(wrong, ν > 0), the share of all votes that can be confident errors

Given no ties, the true error rate over calibration sets is R = min(V, c) with V ~ Beta(k, n + 1 − k): where fewer than
k votes with any confidence are wrong, all of them are answered. Then the number of confident errors among N is
Binomial(N, R), which is beta-binomial where the cap does not matter. Ties and the cap only make errors fewer, so the
upper tail of the beta-binomial stays valid and the lower does not. Splits of one fixed file have a law of their own
(`split_law`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betainc, betaincc, betaln, gammaln

from demur.errors import InvalidValue
from demur.evidence.counts import Floats

_NEGLIGIBLE = 1e-15


class CountLaw(ABC):
    """How many confident errors there are among new votes."""

    @abstractmethod
    def counts(self, fresh: int) -> Floats:
        """P(J = 0), …, P(J = N) of the number J of confident errors among `fresh` new votes."""

    def upper_tail(self, errors: int, fresh: int) -> float:
        """P(J ≥ errors): small when so many errors do not fit the promise."""
        return 1.0 if errors <= 0 else min(1.0, float(self.counts(fresh)[errors:].sum()))

    def interval(self, fresh: int, *, mass: float = 0.95) -> tuple[int, int]:
        """The central interval that holds the error count with probability at least `mass`, if there are no ties."""
        cumulative = np.cumsum(self.counts(fresh))
        tail = (1 - mass) / 2
        low, high = np.searchsorted(cumulative, [tail, 1 - tail])
        return min(int(low), fresh), min(int(high), fresh)

    def usual_at_most(self, fresh: int, *, mass: float = 0.95) -> int:
        """The smallest count that J does not exceed with probability at least `mass`: the one-sided limit."""
        return min(int(np.searchsorted(np.cumsum(self.counts(fresh)), mass)), fresh)


@dataclass(frozen=True)
class AnswerLaw(CountLaw):
    """The errors among answers whose share of errors is at most `rate`: `fresh` counts the answers given.

    Binomial at that rate: of all rates that a promise about answers allows, the one with the most errors.
    """

    rate: float
    answers: bool = True
    """False where calibration is too small for anything to be answered."""

    def counts(self, fresh: int) -> Floats:
        if fresh < 0:
            raise InvalidValue(f"need fresh >= 0, got {fresh}")
        j = np.arange(fresh + 1)
        choose = gammaln(fresh + 1) - gammaln(j + 1) - gammaln(fresh - j + 1)
        return np.asarray(np.exp(choose + j * math.log(self.rate) + (fresh - j) * math.log1p(-self.rate)))


@dataclass(frozen=True)
class LawPerGroup(CountLaw):
    """Each group has a law of its own: without the groups of new votes there is none for all of them."""

    answers: bool = True
    """False where every group is too small for anything to be answered."""

    def counts(self, fresh: int) -> Floats:
        raise InvalidValue(
            f"each group has a law of its own, and {fresh} votes alone do not say how many are of which",
            "give the votes themselves",
        )


@dataclass(frozen=True)
class UnionLaw(CountLaw):
    """The errors of several thresholds on new votes that some of them share, so that they are not independent.

    All errors together are no more than the sum. By the union bound, with probability 1 − p none of G parts has more
    errors than it exceeds with probability p/G by its own law; so P(J ≥ e) is at most the e-th largest of the numbers
    G·P(J_g ≥ j), over all parts g and all j ≥ 1.
    """

    parts: tuple[tuple[CountLaw, int], ...]
    """Each law, with its number of new votes."""

    def counts(self, fresh: int) -> Floats:
        tails = [np.cumsum(law.counts(votes)[::-1])[::-1][1:] for law, votes in self.parts if votes]
        together = np.sort(np.minimum(1.0, len(tails) * np.concatenate([*tails, np.zeros(fresh)])))[::-1][:fresh]
        return -np.diff(np.concatenate([[1.0], together, [0.0]]))


@dataclass(frozen=True)
class SumLaw(CountLaw):
    """The errors of several thresholds that were calibrated apart, each on new votes of its own."""

    parts: tuple[tuple[CountLaw, int], ...]
    """Each law, with its number of new votes."""

    def counts(self, fresh: int) -> Floats:
        if fresh != sum(votes for _, votes in self.parts):
            raise InvalidValue(f"these laws are of {sum(votes for _, votes in self.parts)} new votes, got {fresh}")
        together = np.ones(1)
        for law, votes in self.parts:
            together = np.convolve(together, law.counts(votes))
        return together


class BoundLaw(CountLaw):
    """A law of more errors than there are: what is known where the exact one is not."""

    @property
    @abstractmethod
    def answers(self) -> bool:
        """False where nothing is ever answered."""

    def interval(self, fresh: int, *, mass: float = 0.95) -> tuple[int, int]:
        """From none, for a bound says nothing of how few errors there may be."""
        return 0, self.usual_at_most(fresh, mass=mass)


@dataclass(frozen=True)
class TwoPartLaw(BoundLaw):
    """A bound on errors of two kinds, each with a threshold of its own, of which the larger counts.

    How the two depend on each other is not known. J + K ≥ e takes J ≥ x or K ≥ e + 1 − x, whatever x is, so that the
    smallest sum of those two chances bounds that of e errors. Counts have the law whose upper tail that bound is.
    """

    seen: ErrorLaw
    missed: ErrorLaw

    @property
    def answers(self) -> bool:
        """False where one rank is 0, so that nothing is ever answered."""
        return self.seen.answers and self.missed.answers

    def counts(self, fresh: int) -> Floats:
        if not self.answers:
            return ErrorLaw(0, 0).counts(fresh)
        # P(J ≥ 0), …, P(J ≥ N + 1)
        seen, missed = (np.append(np.cumsum(law.counts(fresh)[::-1])[::-1], 0.0) for law in (self.seen, self.missed))
        tail = np.ones(fresh + 2)
        for k in range(int((missed > _NEGLIGIBLE).sum()) + 1):  # x = e + 1 − k
            at = np.arange(max(0, k - 1), fresh + 1)
            tail[at] = np.minimum(tail[at], seen[at + 1 - k] + missed[min(k, fresh + 1)])
        tail[0], tail[-1] = 1.0, 0.0
        return -np.diff(np.minimum.accumulate(tail))


@dataclass(frozen=True)
class ErrorLaw(CountLaw):
    """The errors of a threshold at the k-th largest wrong key of n votes, on votes that are new."""

    k: int
    n: int
    choices: int = 1
    """J: the way to vote was chosen from so many by the labels that set the threshold. Errors are then at most those of
    the worst of J laws, P(J ≥ errors) being at most J times that of one."""

    def __post_init__(self) -> None:
        if not 0 <= self.k <= self.n + 1:
            raise InvalidValue(f"a rank must lie between 0 and n + 1, got k={self.k}, n={self.n}")

    @property
    def answers(self) -> bool:
        """False where the rank is 0, so that nothing is ever answered."""
        return self.k > 0

    def counts(self, fresh: int) -> Floats:
        one = self._counts_of_one(fresh)
        if self.choices == 1:
            return one
        at_least = np.minimum(1.0, self.choices * np.cumsum(one[::-1])[::-1])
        at_least[0] = 1.0
        return np.asarray(at_least - np.append(at_least[1:], 0.0))

    def interval(self, fresh: int, *, mass: float = 0.95) -> tuple[int, int]:
        one = replace(self, choices=1)
        return CountLaw.interval(one, fresh, mass=1 - (1 - mass) / self.choices)

    def _counts_of_one(self, fresh: int) -> Floats:
        """The counts of a way to vote that the labels did not choose."""
        if fresh < 0:
            raise InvalidValue(f"need fresh >= 0, got {fresh}")
        k, n = self.k, self.n
        if k == 0 or k == n + 1:  # abstains always; answers always, and nothing bounds the errors
            certain = np.zeros(fresh + 1)
            certain[0 if k == 0 else -1] = 1.0
            return certain
        j = np.arange(fresh + 1)
        choose = gammaln(fresh + 1) - gammaln(j + 1) - gammaln(fresh - j + 1)
        return np.asarray(np.exp(choose + betaln(j + k, fresh - j + n + 1 - k) - betaln(k, n + 1 - k)))

    def mean(self, cap: float = 1.0) -> float:
        """E[R] of one way to vote, where no more than a share `cap` of all votes can be confident errors."""
        return self._moment(1, cap)

    def sd(self, cap: float = 1.0, *, fresh: int | None = None) -> float:
        """The standard deviation of R over calibration sets, or of the rate among `fresh` new votes."""
        mean, square = self._moment(1, cap), self._moment(2, cap)
        sampling = 0.0 if fresh is None else (mean - square) / fresh  # E[R(1 − R)] / N: the votes of one test are few
        return math.sqrt(max(0.0, square - mean**2 + sampling))

    def _moment(self, order: int, cap: float) -> float:
        """E[min(V, c)^order]: V below c has its Beta moment there, and the rest lies at c."""
        a, b = self.k, self.n + 1 - self.k
        if a == 0 or b == 0:
            return 0.0 if a == 0 else cap**order
        whole = math.prod((a + i) / (a + b + i) for i in range(order))
        return whole * float(betainc(a + order, b, cap)) + cap**order * float(betaincc(a, b, cap))
