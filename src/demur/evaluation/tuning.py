"""Choosing how to vote on a part of the labelled problems, so that the rest may calibrate the choice.

Each way to vote is ranked by its expected yield at the alphas asked for, of a calibration as large as the rest of the
problems: exact over calibration sets drawn from the tune split (`evidence.yield_law`). Standard errors are over
questions, by the jackknife: a part of the questions is left out at a time, the same for every way to vote, so that a
difference is that of two ways on the same questions. The simplest way is chosen that is no further behind the best than
one standard error of their difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.calibration import CLUSTER, QUESTION, Guarantee, RankGuarantee
from demur.errors import InvalidValue
from demur.evaluation.candidates import Candidate, Configuration, LabelledPools, configurations, lacking
from demur.evaluation.learned_candidate import LearnedKey
from demur.evaluation.resampling import LabelledVotes
from demur.evidence.counts import Evidence, Floats
from demur.evidence.yield_law import YieldLaw
from demur.policy.calibrate import Alphas, Guarantees, as_guarantees
from demur.policy.tuned import Tuned, TunedRow
from demur.pools.fields import FieldChoice
from demur.pools.label_rule import LabelRule, as_label_rule
from demur.pools.parts import every_problem
from demur.pools.source import PoolSource
from demur.pools.splits import split
from demur.pools.splits import units as units_of
from demur.voting.problems import Problems

_FEWEST = 30
"""Questions that tell ways to vote apart at all."""
_FOLDS = 40


def tune(
    source: PoolSource,
    fields: FieldChoice = FieldChoice(),  # noqa: B008 - frozen
    *,
    alpha: Alphas | None = None,
    guarantee: Guarantees | None = None,
    share: float = 0.3,
    seed: int = 0,
    weight: str | None = None,
    normaliser: str | None = None,
    tie_break: str | None = None,
    correct: str | LabelRule | None = None,
    candidates: Sequence[Candidate] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Tuned:
    """Choose score, weight, normaliser, tie-break and key on a share of the labelled problems, drawn by the seed.

    Problems that share a cluster or a question stay together. What is given is not varied: the score that `fields`
    names, a weight, a normaliser, a tie-break. A learned key is compared where nothing but the score is given, if it is
    better than the share of the vote by more than its standard error. `candidates` are compared besides: see
    `evaluation.candidates`. The problems it was chosen on are part of the result, and `calibrate(…, tuned=…)` leaves
    them out.
    """
    guarantees = _ranked(as_guarantees(alpha, guarantee))
    if not 0 < share < 1:
        raise InvalidValue(f"share must lie strictly between 0 and 1, got {share:g}")
    source.recipe(
        fields.score or "any", normaliser, weight, tie_break
    )  # what is no way to vote is said before the work
    named = list(every_problem(source.pools))
    ids, digests, clusters = ([getattr(problem, name) for problem in named] for name in ("id", "digest", "cluster"))
    parts = split(ids, clusters=clusters, questions=digests, seed=seed, tune=share)
    unit = units_of(ids, clusters, digests)
    n, n_cal = (len(np.unique(unit[rows])) for rows in (parts.tune, parts.calibration))
    _refuse_few(n, n_cal, guarantees)
    pools = LabelledPools(source, parts.tune.tolist(), fields, as_label_rule(correct))
    scores, skipped = _scores(source, fields)
    given = {"weight": weight, "normaliser": normaliser, "tie_break": tie_break}
    wanted: list[Candidate] = [*configurations(source, scores=scores, **given), *(candidates or ())]
    if not any(given.values()):
        wanted.append(LearnedKey(fields.score))
    compared: list[_Compared] = []
    for candidate in wanted:
        try:
            one = _Compared(candidate, candidate.ranked(pools))
            if not any(one.same_as(other) for other in compared):
                compared.append(one)
        except InvalidValue as error:
            if candidate == Configuration():
                raise
            skipped.append(f"{candidate.name}: {error.message}")
    for reason in skipped:
        say(f"note: not compared: {reason}")
    ranking = Ranking.of([one.votes for one in compared], guarantees, n_cal)
    at = ranking.choose([one.candidate.distance for one in compared])
    chosen = compared[at].candidate.chosen(pools)
    rows = tuple(ranking.row(number, one.candidate.name) for number, one in enumerate(compared))
    problems = Problems.of(chosen.votes.ids or (), chosen.questions, chosen.clusters)
    return Tuned(
        chosen.votes.description,
        problems,
        rows,
        at,
        n,
        n_cal,
        CLUSTER if chosen.clustered else QUESTION,
        tuple(one.alpha for one in guarantees),
        share,
        seed,
        tuple(skipped),
    )


def _scores(source: PoolSource, fields: FieldChoice) -> tuple[list[str], list[str]]:
    """The scores to compare, and why others are not."""
    names = source.score_names if fields.score is None else [fields.score]
    filled = isinstance(fields.unscored, (int, float))
    without = {name: 0 if filled else lacking(source, name) for name in names}
    if fields.score is not None and without[fields.score]:
        return [fields.score], []  # reading it says what is wrong
    skipped = [f"{name}: {pools} pools have a path without it" for name, pools in without.items() if pools]
    return [name for name, pools in without.items() if not pools], skipped


def _refuse_few(n: int, n_cal: int, guarantees: Sequence[RankGuarantee]) -> None:
    needed = max(one.n_needed() for one in guarantees)
    if n >= _FEWEST and n_cal >= needed:
        return
    alpha = min(one.alpha for one in guarantees)
    raise InvalidValue(
        f"{n + n_cal} labelled questions are too few to split: {n} to choose on, of at least {_FEWEST}, and {n_cal} to "
        f"calibrate on, of at least {needed} at alpha = {alpha:g}",
        "label more; or choose by the labels of all and calibrate on all with {chosen_from=J}, which pays for a choice "
        "among J ways to vote",
    )


@dataclass(frozen=True, eq=False)
class _Compared:
    """A way to vote, and its votes in an order that all of them share."""

    candidate: Candidate
    votes: LabelledVotes

    def same_as(self, other: _Compared) -> bool:
        """Whether both put the votes in one order, and have the same of them right: then the first will do."""
        mine, theirs = self.votes, other.votes
        return np.array_equal(mine.level, theirs.level) and np.array_equal(mine.right, theirs.right)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Expected yields of several ways to vote, on all questions and on all but a part of them."""

    answered: Floats
    """One per way."""
    without: Floats
    """folds × ways: with a part of the questions left out."""

    @classmethod
    def of(cls, votes: Sequence[LabelledVotes], guarantees: Sequence[RankGuarantee], n_cal: int) -> Ranking:
        ranks = [(one.rank(n_cal), n_cal) for one in guarantees]
        n = len(votes[0].right)
        fold, questions = np.arange(n) % min(_FOLDS, n), np.arange(n)
        parts = [questions[fold != left_out] for left_out in range(fold.max() + 1)]
        answered = np.array([_expected(one.evidence, ranks) for one in votes])
        without = [[_expected(one.drawn(part), ranks) for one in votes] for part in parts]
        return cls(answered, np.array(without))

    def error(self, values: NDArray[Any]) -> float:
        """The standard error of what was computed with each part left out."""
        folds = len(values)
        return float(np.sqrt((folds - 1) / folds * ((values - values.mean()) ** 2).sum()))

    def choose(self, distances: Sequence[int]) -> int:
        """The way nearest to the default among those that are no more than one standard error behind the best."""
        best = int(np.argmax(self.answered))
        behind = self.answered[best] - self.answered
        errors = [self.error(self.without[:, best] - self.without[:, at]) for at in range(len(behind))]
        eligible = [at for at in range(len(behind)) if behind[at] <= errors[at] or at == best]
        return min(eligible, key=lambda at: (distances[at], -self.answered[at], at))

    def row(self, at: int, name: str) -> TunedRow:
        paired = self.error(self.without[:, at] - self.without[:, 0])
        over = float(self.answered[at] - self.answered[0])
        return TunedRow(name, float(self.answered[at]), self.error(self.without[:, at]), over, paired)


def _expected(evidence: Evidence, ranks: Sequence[tuple[int, int]]) -> float:
    return float(np.mean([told.answered for told in YieldLaw.of(evidence).expect(ranks)]))


def _ranked(guarantees: Sequence[Guarantee]) -> list[RankGuarantee]:
    """The guarantees, each of which must have an exact law of its yield."""
    ranked = [one for one in guarantees if isinstance(one, RankGuarantee)]
    if other := next((one for one in guarantees if not isinstance(one, RankGuarantee)), None):
        raise InvalidValue(
            f"ways to vote are compared by expected yields, which the guarantee {other.name} has no law for",
            "tune for alpha alone, and calibrate with that guarantee",
        )
    return ranked
