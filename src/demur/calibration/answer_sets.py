"""Answer sets: where the policy abstains, a few answers among which a right one is with probability 1 − α.

Notation:
    place    of an answer r(y) ∈ [0, 1], its nearness to the winner; of OTHER, which stands for all answers that no path
             gave, g − 2 ∈ [−2, −1], g being the pool's novelty (`voting.standings`): OTHER comes after every answer
    n        questions that the policy abstains from, among those that calibrate sets; none of them set a threshold
    k        ⌊(n + 1)α⌋, how many of n + 1 may be missed
    cut      the k-th smallest place of what is right: the best right answer's or, where no path gave one, OTHER's

A set holds whatever is not below the cut. Thresholds are set by other questions, so the abstained ones are exchangeable
with a new one that the policy abstains from, and what is right there falls below the k-th smallest with probability at
most k / (n + 1) ≤ α. That is marginal over calibration sets, and conditional on abstaining. Calibrated on all
questions, sets would not cover: those that are answered have their right answer far up. What makes the policy abstain
is the rule's to say; sets look at tallies alone. Pools of different sizes have a cut each, for a part of the winner's
votes means another thing among few paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.calibration.guarantee import CLUSTER, QUESTION, Rule, exact_alpha, shown
from demur.errors import InvalidValue
from demur.evidence.counts import Counts, Floats
from demur.evidence.laws import ErrorLaw
from demur.pools.voted_pools import VotedPools
from demur.records import OTHER, Vote
from demur.voting.standings import standings_in

_AFTER = 2.0
"""How far OTHER comes after the answers: no novelty reaches a nearness."""
_ALL_SIZES = 0
"""Stands for pools of every size, where those vary by chance in use as in calibration."""


@dataclass(frozen=True)
class AnswerSets:
    """Sets that miss with probability at most alpha, given that the policy abstains.

    `share` of the calibration questions are kept from the thresholds, and those of them that the policy abstains from
    calibrate the sets.
    """

    alpha: float
    share: float = 0.3
    level: Fraction = field(init=False, repr=False)
    """Alpha, exactly."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", exact_alpha(self.alpha, "the alpha of answer sets"))
        object.__setattr__(self, "alpha", float(self.level))
        share: Any = self.share
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
            raise InvalidValue(
                f"the share of questions that calibrate answer sets must lie strictly between 0 and 1, got {share!r}"
            )

    def refuse_others(self, voted: VotedPools) -> None:
        """Raise unless labels say of every answer of a pool whether it is right, and questions count alike."""
        if voted.votes.importance is not None:
            raise InvalidValue(
                "answer sets cover questions like those that calibrate them, and these have weights for others",
                "leave {answer_sets} out, or the weights",
            )
        if not voted.knows_right_answers:
            raise InvalidValue(
                "answer sets need to know which answer is right where the vote's is wrong, and these labels say at "
                "most whether the vote's is right",
                "give gold for all problems, or leave {answer_sets} out",
            )

    def settle(self, voted: VotedPools, rule: Rule, *, by_chance: bool) -> SetRule:
        """The sets for what a rule abstains from, by questions that set no threshold; one of each unit counts."""
        votes, rows = voted.votes, voted.counted
        rows = rows[~rule.answers(votes.cases.take(rows))]
        places = right_places(voted, rows)
        sizes = np.full(len(rows), _ALL_SIZES) if by_chance else votes.n_paths[rows]
        parts = {size: SetEvidence.of(places[sizes == size]) for size in np.unique(sizes).tolist()}
        return SetRule(self.level, parts, len(voted.counted), rule.unit, by_chance)


def is_place(value: float) -> bool:
    """Whether something can stand there: an answer, or OTHER."""
    return 0 <= value <= 1 or -_AFTER <= value <= 1 - _AFTER


def right_places(voted: VotedPools, rows: NDArray[np.intp]) -> Floats:
    """The place of what is right in each of some pools: the best right answer, or OTHER where no path gave one."""
    if not len(rows):
        return np.empty(0)
    stand = voted.votes.standings(rows)
    best = np.where(voted.right_paths(rows, stand.answers), stand.nearness, -1.0).max(axis=1)
    return np.asarray(np.where(best >= 0, best, stand.novelty - _AFTER))


@dataclass(frozen=True, eq=False)
class SetEvidence:
    """The places of what is right, for the questions that calibrate sets."""

    levels: Floats
    """Distinct places, ascending."""
    counts: Counts

    @classmethod
    def of(cls, places: Floats) -> SetEvidence:
        levels, counts = np.unique(places, return_counts=True)
        return cls(levels, counts.astype(np.int64))

    @cached_property
    def n(self) -> int:
        return int(self.counts.sum())

    @property
    def without(self) -> int:
        """Questions to which no path gave a right answer."""
        return int(self.counts[self.levels < 0].sum())

    @property
    def rows(self) -> list[list[float]]:
        """Each place, and how many questions have it."""
        return [[place, count] for place, count in zip(self.levels.tolist(), self.counts.tolist(), strict=True)]

    def smallest(self, k: int) -> float:
        """The k-th smallest place, 1 ≤ k ≤ n."""
        return float(self.levels[np.searchsorted(np.cumsum(self.counts), k)])


_NOTHING = SetEvidence(np.empty(0), np.empty(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class SetRule:
    """What an answer set holds where one rule of a policy abstains, and what is promised of it."""

    level: Fraction
    """Alpha, exactly."""
    by_size: Mapping[int, SetEvidence]
    """By number of paths; all under 0, where those vary by chance in use as here."""
    questions: int
    """How many were kept for sets; the policy abstained from n of them."""
    unit: str = QUESTION
    by_chance: bool = False

    @property
    def alpha(self) -> float:
        return float(self.level)

    @property
    def needed(self) -> int:
        """How many abstained questions it takes for any set to be promised."""
        return ceil((1 - self.level) / self.level)

    @property
    def n(self) -> int:
        """Abstained questions that calibrated the sets, of pools of all sizes."""
        return sum(part.n for part in self.by_size.values())

    def evidence_of(self, size: int) -> SetEvidence:
        """The questions that calibrate sets for pools of a size."""
        return self.by_size.get(_ALL_SIZES if self.by_chance else size, _NOTHING)

    def law_of(self, size: int) -> ErrorLaw:
        """The law of how many sets miss among new abstained questions; ties only make them fewer."""
        n = self.evidence_of(size).n
        return ErrorLaw(int((n + 1) * self.level), n)

    def cut_of(self, size: int) -> float | None:
        """The place that a set reaches down to; None where no set is promised."""
        k = self.law_of(size).k
        return self.evidence_of(size).smallest(k) if k else None

    def covers(self, places: Floats, n_paths: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether sets hold what is right; `places` are those of `right_places`."""
        covered = np.zeros(len(places), dtype=np.bool_)
        for size in np.unique(n_paths).tolist():
            if (cut := self.cut_of(size)) is not None:
                covered |= (n_paths == size) & (places >= cut)
        return covered

    def of(self, vote: Vote) -> tuple[Any, ...] | None:
        """The set for a vote that is abstained from, the nearest answer first; None where none is promised."""
        cut = None if vote.unscored else self.cut_of(vote.n_paths)
        if cut is None:
            return None
        nearness, novelty = standings_in(vote)
        held = tuple(answer for answer, near in nearness.items() if near >= cut)
        return (*held, OTHER) if novelty - _AFTER >= cut else held

    def promise(self, size: int) -> str:
        """What is promised of the set for a pool of this size on abstaining, or why nothing is, in a sentence."""
        part, cut = self.evidence_of(size), self.cut_of(size)
        like = "" if len(self.by_size) < 2 else f" with {size} paths"
        if cut is None:
            return (
                f"No answer set: of the {self.questions} calibration {self.unit}s kept for sets the policy abstained "
                f"from {part.n}{like}, and sets at alpha = {shown(self.level)} need {self.needed}."
            )
        new = "one question of a new cluster" if self.unit == CLUSTER else "a new question"
        other = ", or OTHER where no path gave one," if cut < 0 else ""
        return (
            f"Given that the policy abstains from {new}, exchangeable with the {part.n} calibration {self.unit}s{like} "
            f"that it abstained from and that set no threshold, the probability that its answer set holds a right "
            f"answer{other} is at least {shown(1 - self.level)}, averaged over calibration sets."
        )

    def remark(self, size: int) -> str:
        """Why sets hold OTHER, in a sentence; blank where none does."""
        part, cut = self.evidence_of(size), self.cut_of(size)
        if cut is None or cut >= 0:
            return ""
        novelty = cut + _AFTER
        where = f" where at least {novelty:.1%} of the vote is for answers that only one path gave, or for none"
        return (
            f"To {part.without} of those {part.n} no path gave a right answer, more than alpha allows: every set holds "
            f"all answers of its pool, and OTHER{where if novelty > 0 else ''}. A set with OTHER rules nothing out."
        )

    def told(self, sets: Sequence[tuple[Any, ...]], abstained: int) -> str:
        """How large the sets of abstained questions are, in a sentence; blank where nothing was abstained from."""
        if not abstained:
            return ""
        if not sets:
            return f"none of the {abstained} questions abstained from has an answer set."
        without = [len(held) for held in sets if OTHER not in held]
        told = f"{len(sets)} of {abstained} questions abstained from have an answer set"
        size = f"{np.mean(without):.1f} answers on average" if without else ""
        if len(without) == len(sets):
            return f"{told}, of {size}."
        rest = f"the other {len(without)} hold {size}" if without else "so that they rule nothing out"
        return f"{told}; {len(sets) - len(without)} hold all answers of their pool and OTHER, {rest}."

    def document(self) -> dict[str, Any]:
        """As plain values: what a policy file stores, and checks against its own evidence."""
        return {str(size): {"cut": self.cut_of(size), "places": part.rows} for size, part in self.by_size.items()}
