"""What to expect of a cascade, and what it would do with other shares of the errors: cost against yield."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from demur.calibration import RankGuarantee
from demur.calibration.cascade import JointVotes, as_shares, ranks_of
from demur.evidence.counts import above_all


@dataclass(frozen=True)
class StageForecast:
    """What becomes of questions at one stage, as shares of all calibration questions."""

    name: str
    reached: float
    answered: float
    confident_error: float
    cost: float
    """Per question asked of the cascade."""


@dataclass(frozen=True)
class CascadeForecast:
    """What to expect of a cascade, from calibration data alone."""

    stages: tuple[StageForecast, ...]
    answered: float
    confident_error: float
    """Share of calibration questions that are answered wrongly."""
    error_at_most: float
    """The expected rate on new questions is at most k / (n + 1)."""
    person: float
    """Share of questions that no stage answers."""
    cost: float
    """Expected per question; a person's part included where that cost is known."""


@dataclass(frozen=True)
class CurvePoint:
    """What a cascade would do with another share of the errors at its first stage, or at another alpha."""

    alpha: float
    shares: tuple[float, ...]
    ranks: tuple[int, ...]
    answered: float
    confident_error: float
    cost: float


def expected(
    votes: JointVotes, ranks: Sequence[int], prices: Mapping[str, float], person_cost: float | None
) -> CascadeForecast:
    """What becomes of the calibration questions where stages, by name with their costs, have so many errors each."""
    thresholds = votes.thresholds(ranks)
    reached, stages = votes.reached(thresholds), []
    for at, ((name, price), threshold) in enumerate(zip(prices.items(), thresholds, strict=True)):
        answers = reached[at] & ~reached[at + 1]
        wrong, here = answers & ~votes.right[at], float(reached[at].mean())
        cost = 0.0 if threshold >= above_all(len(threshold)) else price * here  # it cannot answer, and is not asked
        stages.append(StageForecast(name, here, float(answers.mean()), float(wrong.mean()), cost))
    answered = sum(stage.answered for stage in stages)
    return CascadeForecast(
        tuple(stages),
        answered,
        sum(stage.confident_error for stage in stages),
        sum(ranks) / (votes.n + 1),
        1 - answered,
        sum(stage.cost for stage in stages) + (person_cost or 0.0) * (1 - answered),
    )


def curve_of(
    guarantee: RankGuarantee,
    votes: JointVotes,
    shares: Sequence[Fraction],
    prices: Mapping[str, float],
    person_cost: float | None,
    *,
    points: int,
) -> list[CurvePoint]:
    """Cost and yield, from no errors for the first stage to all of them; the others keep their proportions."""
    k = guarantee.rank(votes.n)
    others = as_shares(shares[1:] if sum(shares[1:]) else [1] * (len(shares) - 1), len(shares) - 1)
    curve = []
    for first in sorted({round(k * step / (points - 1)) for step in range(points)}):
        ranks = first, *ranks_of(k - first, others)
        found, parts = expected(votes, ranks, prices, person_cost), tuple(rank / k if k else 0.0 for rank in ranks)
        curve.append(CurvePoint(guarantee.alpha, parts, ranks, found.answered, found.confident_error, found.cost))
    return curve
