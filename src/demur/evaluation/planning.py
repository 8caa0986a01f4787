"""How many labels a promise needs, and what it will bring, said before anybody labels.

    from alpha and delta alone      how many votes each guarantee needs, which n are friendly, what rounding loses
    with a guessed accuracy         the same, and yields of simulated votes: a guess, and called so
    with a pilot of labelled votes  the same, and yields of the pilot's votes drawn again

For guarantees that are one rank, yields and labels from the top are exact (`evidence.yield_law`); of others many
calibration sets are drawn from the pilot. A spread is over calibration sets. A pilot has an error of its own besides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from demur.calibration import CLUSTER, QUESTION, Grouped, Guarantee, HighProbability, Marginal, Shifted
from demur.calibration.guarantee import RankGuarantee
from demur.errors import InvalidValue
from demur.evaluation.feasibility import Feasibility
from demur.evaluation.friendly_sizes import friendly_n, is_friendly, ranks_of
from demur.evaluation.guessed_votes import guessed_evidence
from demur.evaluation.repeated_splits import size_warning
from demur.evidence.counts import Evidence
from demur.evidence.yield_law import Expected, YieldLaw
from demur.policy.calibrate import Alphas, Guarantees, as_guarantees
from demur.pools.voted_pools import VotedPools
from demur.shown.frames import frame_of
from demur.shown.html import html_of_columns
from demur.voting.votes import Votes

PILOT, GUESS, NOTHING = "pilot", "guess", "nothing"
"""What yields are foretold from."""
_NEAR = (100, 200, 500, 1000)
_FEWEST = 20
_DRAWS = 200
_UNKNOWN = Expected(*[math.nan] * 6)


@dataclass(frozen=True)
class PlanRow:
    """One guarantee after a calibration on n votes. What needs a pilot or a guess is NaN without one."""

    guarantee: Guarantee
    n: int
    """Votes that calibrate: the labels in all, where every vote is labelled."""
    ranks: Mapping[int, float]
    """The rank of the threshold, with its chance: `Smoothed` has two. Empty where the guarantee is no rank."""
    friendly: bool
    """With one vote fewer the rank would be lower, so that none is labelled in vain; of every n where nothing is
    rounded."""
    expected: Expected
    standard_error: float = math.nan
    """Of the expected yield, for the pilot is a sample too."""
    price: float = math.nan
    """By how much the expected yield is smaller than that of `Marginal` at the same alpha and n; below 0, larger."""

    @property
    def alpha(self) -> float:
        return self.guarantee.alpha

    @property
    def k(self) -> int | None:
        """The rank, the smaller of two."""
        return min(self.ranks) if self.ranks else None

    @property
    def feasible(self) -> bool:
        return self.n >= self.guarantee.n_needed()

    @property
    def spent(self) -> float:
        """k / (n + 1): the expected share of wrong answers, if nothing ties and errors are not scarce."""
        return sum(chance * k / (self.n + 1) for k, chance in self.ranks.items()) if self.ranks else math.nan

    @property
    def unspent(self) -> float:
        """What that leaves of alpha: lost to rounding, and for a high probability its price. `Smoothed` spends all."""
        if not isinstance(self.guarantee, RankGuarantee):
            return math.nan
        return max(0.0, float(self.guarantee.level - Fraction(min(self.ranks), self.n + 1))) * (len(self.ranks) == 1)

    def document(self) -> dict[str, Any]:
        """As plain values."""
        told, promised = self.expected, {**self.guarantee.parameters(), "alpha": self.alpha}
        return {
            "guarantee": self.guarantee.name,
            **promised,
            "n": self.n,
            "n_needed": self.guarantee.n_needed(),
            "k": self.k,
            "feasible": self.feasible,
            "friendly": self.friendly,
            "spent": self.spent,
            "unspent": self.unspent,
            "confident_error": told.confident_error,
            "answered": told.answered,
            "answered_sd": told.answered_sd,
            "standard_error": self.standard_error,
            "price": self.price,
            "labels": self.n,
            "labels_from_the_top": told.labels,
            "labels_from_the_top_sd": told.labels_sd,
        }


@dataclass(frozen=True, eq=False)
class Plan:
    """What calibrations of several sizes would bring, under each guarantee."""

    rows: list[PlanRow]
    source: str
    """What yields are foretold from: a pilot, a guess, or nothing."""
    pilot: int = 0
    """Labelled votes of the pilot."""
    unit: str = QUESTION
    feasibility: list[Feasibility] = field(default_factory=list)
    """One per alpha; none without a pilot or a guess."""
    warnings: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        told = f"{self.pilot:,} {self.unit}s as a pilot" if self.source == PILOT else f"yields from {self.source}"
        return f"Plan({len(self.rows)} rows, {told})"

    def _repr_html_(self) -> str:
        note = " ".join([*(at.sentence for at in self.feasibility), *self.notes, *self.warnings])
        return html_of_columns(repr(self), self.columns(), note=note)

    @property
    def notes(self) -> list[str]:
        """What must be known of the figures."""
        if self.source == PILOT:
            return [
                f"A plan is foretold from {self.pilot} labelled {self.unit}s. If they helped to choose a score, an "
                "alpha or n, they may not calibrate as well: label others for that. To plan from alpha and n alone "
                "breaks nothing."
            ]
        if self.source == GUESS:
            return ["Yields are a guess: simulated votes that are as accurate as you guessed. A pilot tells more."]
        return ["Yields need a pilot of labelled votes, or a guessed accuracy."]

    def columns(self) -> dict[str, list[Any]]:
        """One entry per row, by name."""
        rows = [row.document() for row in self.rows]
        shared = [name for name in rows[0] if all(name in row for row in rows)]
        return {name: [row[name] for row in rows] for name in shared}

    def to_frame(self, library: str | None = None) -> Any:
        """One row per guarantee and n, as a DataFrame of pandas, or of "polars" or "arrow"."""
        return frame_of(self.columns(), library)

    def document(self) -> dict[str, Any]:
        """As plain values."""
        known = {"source": self.source, "pilot": self.pilot, "unit": self.unit}
        said = {"notes": self.notes, "warnings": self.warnings}
        feasibility = [at.document() for at in self.feasibility]
        return {**known, "feasibility": feasibility, "rows": [row.document() for row in self.rows], **said}


def plan(
    votes: Votes | VotedPools | None = None,
    correct: ArrayLike | None = None,
    *,
    alpha: Alphas | None = None,
    delta: Any = None,
    guarantee: Guarantees | None = None,
    accuracy: float | None = None,
    separation: float = 0.7,
    n_paths: int = 16,
    n: int | Sequence[int] | None = None,
    seed: int = 0,
) -> Plan:
    """Plan a calibration: from alpha alone, with a guessed `accuracy` of the vote, or with a labelled pilot.

    `alpha=a` plans `Marginal(a)`, and with `delta=d` also `HighProbability(a, d)`; or give guarantees. Rows are for n
    votes, or for the n that are friendly near 100, 200, 500 and 1000. A guess is made by the simulator, in which right
    paths score `separation` standard deviations higher and pools have `n_paths` paths.
    """
    guarantees = as_guarantees(alpha, guarantee)
    if delta is not None:
        if alpha is None:
            raise InvalidValue(f"delta = {delta} goes with alpha", "give {alpha}, or HighProbability as {guarantee}")
        guarantees += [HighProbability(one.level, delta) for one in guarantees]  # type: ignore[arg-type]
    if any(isinstance(one, Grouped) for one in guarantees):
        raise InvalidValue(
            "a promise per group needs enough votes of each group, which a plan does not know",
            "plan what is promised of one group, and read n as its votes",
        )
    if any(isinstance(one, Shifted) for one in guarantees):
        raise InvalidValue(
            "what a promise under shift brings depends on the weights of the questions, which a plan does not know",
            "plan Marginal, and read n as what the questions are worth: their effective sample size",
        )
    guarantees.sort(key=lambda one: (one.alpha, not isinstance(one, Marginal)))
    sizes = None if n is None else [n] if isinstance(n, int) else list(n)
    for size in sizes or ():
        if size < 1:
            raise InvalidValue(f"n must be at least 1, got {size}", "say how many votes are to calibrate")
    if votes is None:
        if accuracy is None:
            return Plan(_rows(guarantees, sizes), NOTHING)
        evidence = guessed_evidence(accuracy, separation=separation, n_paths=n_paths, seed=seed)
        law = YieldLaw.of(evidence)
        rows = _rows(guarantees, sizes, evidence, law, 0, seed)
        return Plan(rows, GUESS, feasibility=_feasibility(evidence, law, guarantees))
    if accuracy is not None:
        raise InvalidValue(f"a guessed accuracy of {accuracy:g} and a pilot are two ways", "leave {accuracy} out")
    voted = VotedPools.of(votes, correct).scored
    voted.refuse_fitted()
    voted.refuse_without_jitter()
    voted.labelled  # noqa: B018 - a pilot is labelled in full: what is unknown foretells nothing
    cases, labels, _ = voted.counted_cases
    _refuse_small(len(cases), guarantees)
    evidence = Evidence.of(cases.keys, labels)
    law = YieldLaw.of(evidence)
    return Plan(
        _rows(guarantees, sizes, evidence, law, evidence.n, seed),
        PILOT,
        evidence.n,
        CLUSTER if voted.clustered else QUESTION,
        _feasibility(evidence, law, guarantees),
        [*voted.score_warnings(), *size_warning(voted)],
    )


def _sizes(guarantee: Guarantee) -> list[int]:
    least = guarantee.n_needed()
    return sorted({least, *(friendly_n(guarantee, max(near, least)) for near in _NEAR)})


def _rows(
    guarantees: Sequence[Guarantee],
    sizes: Sequence[int] | None,
    evidence: Evidence | None = None,
    law: YieldLaw | None = None,
    pilot: int = 0,
    seed: int = 0,
) -> list[PlanRow]:
    """A row per guarantee and n; `pilot` counts the votes behind the evidence, 0 where they are made up."""
    wanted = [(one, n) for one in guarantees for n in (_sizes(one) if sizes is None else sorted(set(sizes)))]
    # Sizes that were not asked for are chosen so that they are friendly.
    known = [(one, n, ranks_of(one, n), sizes is None or is_friendly(one, n)) for one, n in wanted]
    if evidence is None or law is None:
        return [PlanRow(one, n, ranks, friendly, _UNKNOWN) for one, n, ranks, friendly in known]
    plain = {one.alpha: Marginal(getattr(one, "level", one.alpha)) for one in guarantees}
    pairs = list({(k, n) for one, n, ranks, _ in known for k in [*ranks, plain[one.alpha].rank(n)]})
    told = dict(zip(pairs, law.expect(pairs), strict=True))
    rows = []
    for one, n, ranks, friendly in known:
        parts = [(chance, told[k, n]) for k, chance in ranks.items()]
        ahead = Expected.mixed(parts) if parts else _drawn(one, n, evidence, seed)
        error = _standard_error(ahead, n, pilot) if pilot else math.nan
        price = told[plain[one.alpha].rank(n), n].answered - ahead.answered
        rows.append(PlanRow(one, n, ranks, friendly, ahead, error, price))
    return rows


def _standard_error(expected: Expected, n: int, pilot: int) -> float:
    """Of an expected yield Y = v + G(v), by the delta method, from how steep G is.

    Right and wrong votes above the threshold are counted on the pilot, and G is read where a mass v is wrong. The
    spread over calibration sets is 1 + G′ times that of v.
    """
    v = expected.confident_error
    if not 0 < v < 1:
        return 0.0
    right = expected.answered - v
    slope = max(0.0, expected.answered_sd / math.sqrt(v * (1 - v) / (n + 2)) - 1)
    variance = right * (1 - right) + slope**2 * v * (1 - v) + 2 * slope * right * v
    found = expected.found if not math.isnan(expected.found) else 1.0
    return found * math.sqrt(variance / pilot)


def _drawn(guarantee: Guarantee, n: int, evidence: Evidence, seed: int) -> Expected:
    """Means over calibration sets drawn from the votes with replacement, for a guarantee that is no rank."""
    rng, levels = np.random.default_rng(seed), len(evidence.levels)
    both = np.concatenate([evidence.right, evidence.wrong])
    answered = np.empty((_DRAWS, 2))
    for row in range(_DRAWS):
        right, wrong = np.split(rng.multinomial(n, both / evidence.n), [levels])
        some = right + wrong > 0
        rule = guarantee.settle(Evidence(evidence.levels[some], right[some], wrong[some]))
        answered[row] = rule.answered(evidence)
    rates = answered / evidence.n
    yields = rates.sum(axis=1)
    nothing = math.nan
    return Expected(float(yields.mean()), float(yields.std(ddof=1)), float(rates[:, 1].mean()), *[nothing] * 3)


def _feasibility(evidence: Evidence, law: YieldLaw, guarantees: Sequence[Guarantee]) -> list[Feasibility]:
    return [Feasibility.of(evidence, law, alpha) for alpha in sorted({one.alpha for one in guarantees})]


def _refuse_small(votes: int, guarantees: Sequence[Guarantee]) -> None:
    alpha = min(one.alpha for one in guarantees)
    needed = max(_FEWEST, math.ceil(1 / alpha))
    if votes < needed:
        raise InvalidValue(
            f"a pilot of {votes} labelled votes is too small to plan alpha = {alpha:g}: it takes {needed}",
            "label more, raise {alpha}, or plan without a pilot by a guessed {accuracy}",
        )
