"""From the labelled votes of several stages on the same problems to a cascade."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import ArrayLike

from demur.calibration import CLUSTER, QUESTION, HighProbability, Level, Marginal, RankGuarantee, Smoothed
from demur.calibration.cascade import JointVotes, as_shares
from demur.errors import InfeasibleWarning, InsufficientCalibration, InvalidValue, LabelMismatch
from demur.policy.cascade import Cascade, StageParts, cascade_of
from demur.policy.cascade_problems import matched
from demur.policy.seen import Seen
from demur.pools.fitted_questions import refuse_gated
from demur.pools.label_rule import LabelRule
from demur.pools.splits import Split
from demur.pools.voted_pools import VotedPools
from demur.voting.problems import Problems
from demur.voting.votes import Votes

_LONGEST_NAME = 80


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage to calibrate: votes with labels, and what a question that gets there costs."""

    name: str
    votes: Votes | VotedPools
    correct: ArrayLike | None = None
    """One label per vote, where they are not voted pools."""
    cost: float | None = None
    """In whatever unit the costs of all stages are; None: the number of paths."""


def calibrate_cascade(
    stages: Sequence[Stage],
    *,
    alpha: Level | None = None,
    guarantee: RankGuarantee | None = None,
    shares: Sequence[Any] | None = None,
    person_cost: float | None = None,
    sizes_by_chance: bool = False,
    hold_out: float = 0.0,
    seed: int = 0,
    strict: bool = False,
) -> Cascade:
    """Calibrate a cascade: the first stage that is confident enough answers, under one promise for all of them.

    All stages must have voted on the same problems, each of them labelled. `alpha=a` is short for
    `guarantee=Marginal(a)`; `Smoothed` and `HighProbability` will do too. `shares` say how the allowed errors are
    divided among the stages, in equal parts unless told otherwise: a smaller share of the cheap stage answers more and
    costs more. They must be settled without a look at these labels. `person_cost` is that of a question that no stage
    answers. Rows that share a cluster or a question count once; pools of one stage must all have as many paths, unless
    `sizes_by_chance` declares that they vary by chance, in use as here. `hold_out` keeps a share of the problems back.
    """
    promised = _guarantee(alpha, guarantee)
    names = _names(stages)
    parts = as_shares([1] * len(names) if shares is None else shares, len(names))
    tables = [VotedPools.of(stage.votes, stage.correct) for stage in stages]
    for table in tables:
        table.labelled  # noqa: B018 - before anything else: all must have labels
        if table.votes.stopping is not None:
            raise InvalidValue(
                f"a cascade takes whole pools, and these were ended by {table.votes.stopping}",
                "take pools that have all their paths, and leave {stop} out",
            )
    same = [tables[0]]
    for name, table in zip(names[1:], tables[1:], strict=True):
        same.append(table.take(matched(tables[0], table, (names[0], name), all_of_them=True)))
    labels = _one_rule(names, same)
    problems = replace(same[0], questions=_first(same, "questions"), clusters=_first(same, "clusters"))
    if hold_out:
        kept = _split(problems, hold_out, seed).calibration
        problems, same = problems.take(kept), [table.take(kept) for table in same]
    for table in same:
        table.refuse_fitted()
        table.refuse_without_jitter()
        refuse_gated(table)
    rows = problems.counted
    votes = JointVotes(
        tuple(table.votes.key[rows] for table in same),
        tuple(table.labelled[rows] for table in same),
        tuple(table.votes.n_paths[rows] for table in same),
    )
    known = Problems.of(problems.votes.ids or (), problems.questions, problems.clusters)
    for table in same:
        known |= table.votes.fitted_on
    cascade = cascade_of(
        [
            StageParts(name, stage.cost, table.votes.recipe, table.votes.upstream)
            for name, stage, table in zip(names, stages, same, strict=True)
        ],
        votes,
        promised,
        parts,
        seen=Seen.by(known, hold_out or None),
        unit=CLUSTER if problems.clustered else QUESTION,
        labels=labels,
        sizes_by_chance=sizes_by_chance,
        person_cost=person_cost,
    )
    if not cascade.feasible:
        if strict:
            raise InsufficientCalibration(cascade.rule.too_few)
        warnings.warn(cascade.rule.too_few + "; the cascade abstains always", InfeasibleWarning, stacklevel=2)
    return cascade


def _guarantee(alpha: Level | None, guarantee: RankGuarantee | None) -> RankGuarantee:
    if (alpha is None) == (guarantee is None):
        raise InvalidValue("give either alpha or guarantee")
    if guarantee is None:
        return Marginal(alpha)  # type: ignore[arg-type]
    if not isinstance(guarantee, (Marginal, Smoothed, HighProbability)):
        raise InvalidValue(f"a cascade takes a Marginal, Smoothed or HighProbability guarantee, got {guarantee!r:.60}")
    return guarantee


def _names(stages: Sequence[Stage]) -> list[str]:
    if isinstance(stages, Stage) or not all(isinstance(stage, Stage) for stage in stages):
        raise InvalidValue("stages must be a list of Stage(name, votes)")
    names = [stage.name for stage in stages]
    check_names(names)
    return names


def check_names(names: Sequence[Any]) -> None:
    """Raise unless these name two stages or more."""
    if len(names) < 2:
        raise InvalidValue(f"a cascade needs at least two stages, got {len(names)}", "calibrate one stage by itself")
    for name in names:
        if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
            raise InvalidValue(f"a stage needs a name of up to {_LONGEST_NAME} characters, got {name!r:.60}")
        if names.count(name) > 1:
            raise InvalidValue(f"stages need names that differ; {name!r} occurs twice")


def _one_rule(names: Sequence[str], tables: Sequence[VotedPools]) -> LabelRule:
    """What counts as right, the same at all stages."""
    rules = [LabelRule() if table.labels is None else table.labels.rule for table in tables]
    for name, rule in zip(names[1:], rules[1:], strict=True):
        if rules[0].differs(rule):
            raise LabelMismatch(
                f"right is {rules[0].told} at stage {names[0]!r} and {rule.told} at stage {name!r}",
                "label all stages by one rule",
            )
    return rules[0]


def _first(tables: Sequence[VotedPools], name: str) -> Any:
    """The first of these columns that is known."""
    return next((column for table in tables if (column := getattr(table, name)) is not None), None)


def _split(problems: VotedPools, hold_out: float, seed: int) -> Split:
    if problems.votes.ids is None and problems.questions is None and problems.clusters is None:
        raise InvalidValue("problems without names cannot be kept back: nothing tells them apart", "vote with {ids}")
    return problems.split(hold_out=hold_out, seed=seed)
