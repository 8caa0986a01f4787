"""Several stages under one promise: the first that is confident enough answers, and a person has what is left."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from demur.calibration import Level, RankGuarantee, Rule, settle_by_size
from demur.calibration.cascade import JointVotes, ranks_of
from demur.errors import InvalidValue
from demur.evidence.strata import Strata
from demur.policy.cascade_decisions import CascadeDecision, CascadeDecisions, decide_table
from demur.policy.cascade_forecast import CascadeForecast, CurvePoint, curve_of, expected
from demur.policy.policy import Policy
from demur.policy.seen import Seen
from demur.pools.label_rule import LabelRule
from demur.records import Decision, Problem
from demur.shown.frames import frame_of
from demur.shown.html import html_of_columns
from demur.voting.cases import Cases
from demur.voting.votes import Votes

if TYPE_CHECKING:
    from demur.policy.signature import Key
    from demur.pools.voted_pools import VotedPools

PoolOf = Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None
"""One pool by the names that `Policy.decide` has: answers, and scores, tie_break and columns where the stage looks at
them; or what draws it; None where it is not drawn yet."""
_PARTS = ("answers", "scores", "tie_break", "columns")


@dataclass(frozen=True, eq=False)
class CascadeStage:
    """One stage: who votes, at which threshold, at what cost."""

    name: str
    policy: Policy
    """Decides on this stage's votes. Its threshold is that of the cascade, and so is its promise."""
    cost: float
    """Of one question that gets here."""
    rank: int
    """How many of the allowed errors are this stage's."""

    @property
    def rule(self) -> Rule:
        return self.policy.point()

    @property
    def asked(self) -> bool:
        """False where it can never answer, so that it is passed over and costs nothing."""
        return not self.rule.never_answers


@dataclass(frozen=True, eq=False)
class Cascade:
    """Stages in order, each answering above a threshold of its own; what none answers is for a person."""

    stages: tuple[CascadeStage, ...]
    votes: JointVotes
    """The votes of all stages on the same calibration questions."""
    guarantee: RankGuarantee
    shares: tuple[Fraction, ...]
    """The part of the allowed errors that each stage has, settled before the labels were looked at."""
    person_cost: float | None = None
    """Of one question that no stage answers, where it is known."""

    def __repr__(self) -> str:
        told = ", ".join(f"{stage.name} {stage.rule.told}" for stage in self.stages)
        return f"Cascade({self.n:,} {self.unit}s, alpha {self.guarantee.alpha:g}; {told})"

    def _repr_html_(self) -> str:
        return html_of_columns(f"Cascade of {self.n:,} calibration {self.unit}s", self.columns(), note=self.promise)

    def columns(self) -> dict[str, list[Any]]:
        """What each stage is expected to do, by name."""
        forecasts = self.forecast().stages
        rates = ("reached", "answered", "confident_error", "cost")
        return {
            "stage": [stage.name for stage in self.stages],
            "errors_allowed": [stage.rank for stage in self.stages],
            "threshold": [stage.rule.threshold for stage in self.stages],
            **{name: [getattr(one, name) for one in forecasts] for name in rates},
        }

    def to_frame(self, library: str | None = None) -> Any:
        """One row per stage, as a DataFrame of pandas, or of "polars" or "arrow"."""
        return frame_of(self.columns(), library)

    @property
    def n(self) -> int:
        """Calibration questions, or clusters, where `unit` says so."""
        return self.votes.n

    @property
    def k(self) -> int:
        """The errors allowed to all stages together."""
        return sum(stage.rank for stage in self.stages)

    @property
    def rule(self) -> Rule:
        """What is promised of all stages together, and the law of their errors; it has the first stage's threshold."""
        return self.stages[0].rule

    @property
    def promise(self) -> str:
        return self.rule.promise

    @property
    def feasible(self) -> bool:
        """False where there are too few calibration questions for any stage to answer."""
        return self.rule.feasible

    @property
    def unit(self) -> str:
        return self.stages[0].policy.unit

    @property
    def seen(self) -> Seen:
        """The problems that calibrated it."""
        return self.stages[0].policy.seen

    @property
    def labels(self) -> LabelRule:
        """What counted as right."""
        return self.stages[0].policy.labels

    @property
    def sizes_by_chance(self) -> bool:
        return self.stages[0].policy.strata.by_chance

    def stage(self, name: str) -> CascadeStage:
        """The stage of a name."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise InvalidValue(f"this cascade has no stage {name!r}; it has {', '.join(s.name for s in self.stages)}")

    def decide(
        self,
        pools: Sequence[PoolOf],
        *,
        id: str | None = None,  # noqa: A002 - the record's own word
        question: str | Problem | None = None,
    ) -> CascadeDecision:
        """Ask one stage after the other until one answers.

        There is one pool per stage, or a function that draws it, which is called only if the question gets there. None
        where a pool is not drawn yet: the decision then says which stage it needs.
        """
        if isinstance(pools, Mapping) or len(pools) != len(self.stages):
            raise InvalidValue(f"give one pool per stage, {len(self.stages)} of them: {self._told_names}")
        decisions: dict[str, Decision] = {}
        for stage, given in zip(self.stages, pools, strict=True):
            if not stage.asked:
                continue
            pool = given() if callable(given) else given
            if pool is None:
                return self.conclude(decisions, needs=stage.name, id=id)
            if not isinstance(pool, Mapping) or not {"answers"} <= pool.keys() <= set(_PARTS):
                raise InvalidValue(f"the pool of stage {stage.name!r} must hold answers, and may hold scores")
            decisions[stage.name] = stage.policy.decide(**pool, id=id, question=question)
            if not decisions[stage.name].abstained:
                break
        return self.conclude(decisions, id=id)

    def conclude(
        self,
        decisions: Mapping[str, Decision],
        *,
        needs: str | None = None,
        id: str | None = None,  # noqa: A002
    ) -> CascadeDecision:
        """What the decisions of the stages that were asked, in order, come to."""
        cost = sum(self.stage(name).cost for name in decisions)
        return CascadeDecision(
            dict(decisions), self.guarantee.alpha, cost, self.promise, needs, id=id, feasible=self.feasible
        )

    def decide_votes(self, votes: Sequence[Votes | VotedPools]) -> CascadeDecisions:
        """Decide on many questions at once, one table of votes per stage.

        The first holds all questions. Later ones may lack those that an earlier stage answers, or may not be there yet:
        what is left then is said to need them.
        """
        return decide_table(self, votes)

    def refuse_seen(self, voted: VotedPools) -> None:
        """Raise CalibrationLeak if any of these problems calibrated this cascade."""
        self.stages[0].policy.refuse_voted(voted)

    def forecast(self) -> CascadeForecast:
        """What to expect, from calibration data alone."""
        return expected(self.votes, [stage.rank for stage in self.stages], self.prices, self.person_cost)

    def curve(self, alphas: Sequence[Level] | None = None, *, points: int = 21) -> list[CurvePoint]:
        """Cost and yield for other shares of the first stage, the others keeping their proportions.

        To look at, not to choose from: the promise holds for shares and alphas settled before these labels were seen.
        Choose on other problems, and calibrate on these.
        """
        if points < 2:
            raise InvalidValue(f"a curve needs at least 2 points, got {points}")
        levels = [self.guarantee.level] if alphas is None else alphas
        ways = [replace(self.guarantee, alpha=str(level)) for level in levels]  # type: ignore[arg-type]
        how = self.votes, self.shares, self.prices, self.person_cost
        return [point for guarantee in ways for point in curve_of(guarantee, *how, points=points)]

    @property
    def prices(self) -> dict[str, float]:
        """What a question costs at each stage that it gets to, by name."""
        return {stage.name: stage.cost for stage in self.stages}

    @cached_property
    def _told_names(self) -> str:
        return ", ".join(stage.name for stage in self.stages)

    def summary(self) -> str:
        """The promise and the forecast, in words."""
        forecast = self.forecast()
        lines = [f"{self.n} calibration {self.unit}s, stages {self._told_names}", self.promise]
        if not self.feasible:
            return "\n".join([*lines, f"never answers: {self.rule.too_few}"])
        for stage, one in zip(self.stages, forecast.stages, strict=True):
            lines.append(
                f"  {stage.name} {stage.rule.told}: {_show(one.reached)} of questions get there, {_show(one.answered)} "
                f"are answered, {_show(one.confident_error)} wrongly"
            )
        person = "" if self.person_cost is None else ", a person's part included"
        lines.append(
            f"  a person has {_show(forecast.person)}; cost per question {forecast.cost:.4g}{person}; wrong answers "
            f"expected of new questions: at most {_show(forecast.error_at_most)}"
        )
        return "\n".join([*lines, *self.notes()])

    def notes(self) -> list[str]:
        """Which stages are never asked, and why."""
        notes = []
        for stage in self.stages:
            if self.feasible and not stage.asked:
                why = "wrong votes of full confidence use up its errors"
                if not stage.rank:
                    why = f"it has none of the {self.k} errors that are allowed"
                notes.append(f"stage {stage.name!r} never answers and is not asked: {why}")
        return notes

    def save(self, path: str | os.PathLike[str], *, key: Key | None = None) -> None:
        """Write the cascade as JSON, signed where there is a key."""
        from demur.policy import file
        from demur.policy.cascade_document import to_document

        file.write(to_document(self), path, key, file.CASCADE)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, key: Key | None = None) -> Cascade:
        """Read a cascade, check each of its values, and that its thresholds follow from its own evidence.

        With a key, a file that was not signed with it is refused; without one, no signature is looked at.
        """
        from demur.errors import PolicyFileError
        from demur.policy import file
        from demur.policy.cascade_document import from_document

        document = file.read(path, key, file.CASCADE)
        try:
            return from_document(document)
        except ValueError as error:
            raise PolicyFileError(f"{path} is not a usable cascade: {error}") from None


@dataclass(frozen=True)
class StageParts:
    """What a stage is made of, besides its votes."""

    name: str
    cost: float | None
    """None: as much as most of its pools have paths."""
    recipe: Any
    upstream: Any


def cascade_of(
    stages: Sequence[StageParts],
    votes: JointVotes,
    guarantee: RankGuarantee,
    shares: Sequence[Fraction],
    *,
    seen: Seen,
    unit: str,
    labels: LabelRule,
    sizes_by_chance: bool,
    person_cost: float | None,
) -> Cascade:
    """The cascade that follows from these votes: what calibrates one, and what a file is checked against."""
    ranks = ranks_of(guarantee.rank(votes.n), shares)
    together = "This is one promise for all stages of the cascade together."
    made = []
    for at, (stage, rank, threshold) in enumerate(zip(stages, ranks, votes.thresholds(ranks), strict=True)):
        cases = Cases(votes.keys[at], votes.n_paths[at])
        strata = Strata.of(cases, votes.right[at], by_chance=sizes_by_chance)
        if len(strata.sizes) > 1 and not sizes_by_chance:
            sizes = ", ".join(map(str, strata.sizes))
            raise InvalidValue(
                f"pools of stage {stage.name!r} have {sizes} paths, and a cascade has one threshold for all of a stage",
                "declare that sizes vary by chance, in use as here: {sizes_by_chance=True}",
            )
        rule = settle_by_size(guarantee, strata, unit, " ".join(filter(None, (together, labels.wrong))))
        policy = Policy(
            (replace(rule, threshold_key=threshold),), strata, stage.recipe, stage.upstream, seen, unit, labels=labels
        )
        made.append(CascadeStage(stage.name, policy, as_cost(stage.cost, policy.n_paths), rank))
    person = None if person_cost is None else as_cost(person_cost, 0)
    return Cascade(tuple(made), votes, guarantee, tuple(shares), person)


def as_cost(cost: Any, otherwise: int) -> float:
    """A cost, checked."""
    if cost is None:
        return float(otherwise)
    if isinstance(cost, bool) or not isinstance(cost, (int, float, np.number)) or not 0 <= float(cost) < math.inf:
        raise InvalidValue(f"a cost must be a number >= 0, got {cost!r:.60}")
    return float(cost)


def _show(rate: float) -> str:
    return f"{100 * rate:.1f} %"
