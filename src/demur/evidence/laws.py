"""The exact laws of realised error rates.

    n    calibration votes            k    rank of the threshold: the k-th largest wrong confidence
    N    fresh test votes             T    rows of one fixed file that is split at random

Fresh data: given no ties, the number of confident errors among N is BetaBinomial(N, k, n + 1 − k), the Beta being the
law of the true error rate over calibration sets. Ties and a scarcity of wrong votes only make errors fewer, so the
upper tail stays valid and the lower does not.
Splits of one file: the mean error rate over splits has the exact expectation of `split_expectation`, ties and all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, betaincc, betaln, gammaln

from demur.errors import InvalidValue
from demur.evidence.counts import Counts, Evidence, Floats, or_above

_CHUNK_ENTRIES = 2_000_000


@dataclass(frozen=True)
class ErrorLaw:
    """The errors of a threshold at the k-th largest wrong key of n votes, on votes that are new."""

    k: int
    n: int

    def __post_init__(self) -> None:
        if not 0 <= self.k <= self.n + 1:
            raise InvalidValue(f"a rank must lie between 0 and n + 1, got k={self.k}, n={self.n}")

    @property
    def answers(self) -> bool:
        """False where the rank is 0, so that nothing is ever answered."""
        return self.k > 0

    @property
    def expected(self) -> float:
        """k / (n + 1), the mean rate of confident errors where there are no ties."""
        return self.k / (self.n + 1)

    def counts(self, fresh: int) -> Floats:
        """P(J = 0), …, P(J = N) of the number J of confident errors among `fresh` new votes."""
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

    def upper_tail(self, errors: int, fresh: int) -> float:
        """P(J ≥ errors): small when so many errors do not fit the promise."""
        return 1.0 if errors <= 0 else min(1.0, float(self.counts(fresh)[errors:].sum()))

    def interval(self, fresh: int, *, mass: float = 0.95) -> tuple[int, int]:
        """The central interval that holds the error count with probability at least `mass`."""
        cumulative = np.cumsum(self.counts(fresh))
        tail = (1 - mass) / 2
        low, high = np.searchsorted(cumulative, [tail, 1 - tail])
        return min(int(low), fresh), min(int(high), fresh)

    def capped(self, wrong: float) -> float:
        """The mean rate where there are no more errors than a share `wrong` of all votes (theory 3.1)."""
        if self.k == 0:
            return 0.0
        a, b = self.k, self.n + 1 - self.k
        return a / (a + b) * float(betainc(a + 1, b, wrong)) + wrong * float(betaincc(a, b, wrong))

    def deviation(self, fresh: int) -> float:
        """The standard deviation of the rate among `fresh` new votes, without ties."""
        if self.k == 0:
            return 0.0
        a, b = self.k, self.n + 1 - self.k
        return math.sqrt(a * b * (a + b + fresh) / (fresh * (a + b) ** 2 * (a + b + 1)))


def split_expectation(evidence: Evidence, k: int, n_cal: int) -> float:
    """E[confident-error rate on the rest] when `n_cal` of the file's rows, drawn at random, calibrate at rank k.

    With c_j wrong rows at level j > 0 and C_j at that level or above: Σ_j (c_j / T) · P(H_j ≤ k − 1), H_j being
    hypergeometric: how many of the other C_j − 1 land among n_cal of the T − 1 other rows.
    """
    total = evidence.n
    if not 0 < n_cal < total:
        raise InvalidValue(f"n_cal must lie between 1 and {total - 1}, got {n_cal}")
    possible = (evidence.wrong > 0) & (evidence.levels[:, 0] > 0)
    if k <= 0 or not possible.any():
        return 0.0
    others = or_above(evidence.wrong)[:-1][possible] - 1
    return float(np.dot(evidence.wrong[possible] / total, _hypergeometric_cdf(k - 1, total - 1, others, n_cal)))


def _hypergeometric_cdf(at_most: int, population: int, marked: Counts, drawn: int) -> Floats:
    """P(marked among drawn ≤ at_most), for each number of marked."""
    result = np.empty(len(marked))
    hits = np.arange(at_most + 1)
    step = max(1, _CHUNK_ENTRIES // len(hits))
    for start in range(0, len(marked), step):
        m = np.asarray(marked[start : start + step], dtype=np.float64)[:, None]
        possible = (hits <= m) & (drawn - hits <= population - m) & (hits <= drawn)
        i = np.where(possible, hits, np.maximum(0, drawn - (population - m)))
        log_p = _log_choose(m, i) + _log_choose(population - m, drawn - i) - _log_choose(population, drawn)
        result[start : start + step] = np.where(possible, np.exp(log_p), 0.0).sum(axis=1)
    return np.minimum(result, 1.0)


def _log_choose(n: Floats | int, k: Floats | int) -> Floats:
    return np.asarray(gammaln(np.add(n, 1)) - gammaln(np.add(k, 1)) - gammaln(np.subtract(n, k) + 1))
