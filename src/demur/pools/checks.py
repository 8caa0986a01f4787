"""What people found who checked a random part of the votes that a judge labelled.

The part must be drawn at random before anybody looks: whether it was cannot be seen afterwards, except where it holds
just the most confident votes, or the least. A vote that was drawn and has no word counts as wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from demur.errors import InvalidValue
from demur.pools.label_rule import LabelRule
from demur.pools.splits import Rows, in_drawn_order
from demur.pools.voted_pools import VotedPools, as_part_of_labels

_NO_CHANCE = math.log(1e-6)


@dataclass(frozen=True, eq=False)
class Checks:
    """Which votes were drawn to be checked, and what people said of them. One entry per vote."""

    drawn: NDArray[np.bool_]
    right: NDArray[np.bool_]
    """By the people; False where they said nothing."""
    known: NDArray[np.bool_]
    """Where they said something."""
    rule: LabelRule = field(default_factory=lambda: LabelRule(people=True))
    """How they label: what "right" means in the promise."""

    @classmethod
    def of(cls, checked: ArrayLike, rows: int) -> Checks:
        """From one label per vote, None or NaN where nobody checked it."""
        right, known = as_part_of_labels(checked, rows)
        return cls(known, right, known)

    def __post_init__(self) -> None:
        if not self.drawn.any():
            raise InvalidValue(
                "no vote was checked by people, so nothing can be promised of the judge's labels",
                "have a random part of them checked",
            )

    def take(self, rows: NDArray[np.intp]) -> Checks:
        """Those of some votes, in that order."""
        return Checks(self.drawn[rows], self.right[rows], self.known[rows], self.rule)

    def refuse_extremes(self, key: NDArray[np.float64]) -> None:
        """Raise if the drawn votes are just the most, or the least, confident ones, as chance would hardly have it."""
        n, drawn = len(key), int(self.drawn.sum())
        if drawn == n:
            return
        order = np.lexsort(key.T[::-1])
        for most, upwards in (("most", order[::-1]), ("least", order)):
            last = key[upwards[drawn - 1]]
            tied = (key == last).all(axis=1)
            first = np.zeros(n, dtype=np.bool_)
            first[upwards[:drawn]] = True
            if (self.drawn[~tied] == first[~tied]).all():
                chosen = int((self.drawn & tied).sum())
                if _log_choose(int(tied.sum()), chosen) - _log_choose(n, drawn) < _NO_CHANCE:
                    raise InvalidValue(
                        f"the {drawn} checked votes are just the {most} confident of the {n}, and so no random part",
                        "draw the part to be checked at random",
                    )


def draw_checks(voted: VotedPools, count: int, *, seed: int = 0) -> Rows:
    """So many rows of those that count, drawn at random by the seed and the problems' names, ascending.

    More of the same seed are the same ones, and others.
    """
    unscored = voted.votes.unscored
    counted = voted.counted if unscored is None else np.flatnonzero(~unscored)[voted.scored.counted]
    if not 1 <= count <= len(counted):
        raise InvalidValue(f"between 1 and {len(counted)} votes can be drawn to be checked, got {count}")
    names: Sequence[str] = [f"check {seed}: {voted.ids[row]}" for row in counted]
    return np.sort(counted[in_drawn_order(names)[:count]])


def _log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
