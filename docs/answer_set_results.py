"""Answer sets on recorded pools: do they cover given abstention, how large are they, and in which order is best?

An order gives every answer of a pool a place; larger places enter a set first. What `results.py` tabulates beside
demur's own are the usual ones, with OTHER in every set or in none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demur.calibration import Marginal
from demur.calibration.answer_sets import AnswerSets, SetEvidence, SetRule, right_places
from demur.pools.splits import repeated
from demur.pools.voted_pools import VotedPools
from demur.study.tables import Table, Value

Floats = NDArray[np.float64]
ALPHA, LEVELS, SPLITS = 0.05, (0.1, 0.2), 400
_LAST = -1e6
"""The place of OTHER where it enters every set or none."""
_SELDOM = 0.1
"""Where sets are promised in no more splits than this, nothing is said of them."""


@dataclass(frozen=True)
class Answers:
    """The distinct answers of every pool: n × the most of them, the largest tally first."""

    tally: Floats
    """Paths behind each answer; 0 where a pool has fewer answers."""
    right: NDArray[np.bool_]
    novelty: Floats

    @property
    def there(self) -> NDArray[np.bool_]:
        return self.tally > 0

    @property
    def share(self) -> Floats:
        """Of all paths with an answer."""
        return self.tally / np.maximum(self.tally.sum(axis=1, keepdims=True), 1)

    @property
    def part(self) -> Floats:
        """Of the winner's votes."""
        return self.tally / np.maximum(self.tally.max(axis=1, keepdims=True), 1)

    def ahead(self, of: Floats) -> Floats:
        """The sum of `of` over the answers of the same pool that have more votes, for each answer."""
        return np.stack([np.where(self.tally > one[:, None], of, 0.0).sum(axis=1) for one in self.tally.T], axis=1)


def answers_of(voted: VotedPools) -> Answers:
    """One row for each question that counts."""
    assert voted.table is not None
    assert voted.labels is not None
    rows = voted.counted
    counts = [Counter(key for key in voted.table.answers[row] if key is not None).most_common() for row in rows]
    tally = np.zeros((len(rows), max(map(len, counts))))
    right = np.zeros(tally.shape, dtype=np.bool_)
    for place, (row, answers) in enumerate(zip(rows.tolist(), counts, strict=True)):
        tally[place, : len(answers)] = [paths for _, paths in answers]
        right[place, : len(answers)] = [voted.labels.is_right(row, key) for key, _ in answers]
    return Answers(tally, right, voted.votes.standings(rows).novelty)


Order = Callable[[Answers], Floats]
"""The place of every answer; those of its columns that hold none are not looked at."""
OWN = "demur"
ORDERS: Mapping[str, Order] = {
    OWN: lambda answers: np.where(answers.part == 1, 1.0, answers.part * answers.share),
    "part of the winner's votes": lambda answers: answers.part,
    "share of the vote": lambda answers: answers.share,
    "mass of those ahead": lambda answers: -answers.ahead(answers.share),
    "rank": lambda answers: -answers.ahead(answers.there.astype(np.float64)),
}


@dataclass(frozen=True)
class Outcome:
    """Sets of one order on one file: means over the splits in which they are promised."""

    promised: float
    """The share of those splits."""
    abstained: float
    coverage: float
    """Of the sets of all splits together: they are promised given abstention, however often that is."""
    size: float
    """Answers per set, OTHER not counted."""
    other: float
    """The share of sets with OTHER."""
    pool: float
    """Answers per abstained pool."""


def measure(voted: VotedPools, n: int, level: float) -> dict[str, Outcome]:
    """Sets of each order on random splits: of n questions a share calibrates sets, the rest thresholds."""
    wanted, rows, answers = AnswerSets(level), voted.counted, answers_of(voted)
    wrong, rank = ~voted.labelled[rows], np.empty(len(rows), dtype=np.intp)
    rank[np.lexsort(voted.votes.key[rows].T[::-1])] = np.arange(len(rows))
    for_sets, (drawn, rest) = round(n * wanted.share), repeated(len(rows), n, SPLITS, seed=0)
    found = {}
    for name, order in ORDERS.items():
        places = np.where(answers.there, np.round(order(answers), 12), -np.inf)
        other = answers.novelty - 2 if name == OWN else np.full(len(rows), _LAST)
        best = np.where(answers.right, places, -np.inf).max(axis=1)
        right = np.where(np.isfinite(best), best, other)
        assert name != OWN or np.array_equal(right, right_places(voted, rows))
        sums, promised, abstentions, offered = np.zeros(4), 0, 0, 0
        for chosen, test in zip(drawn, rest, strict=True):
            sets, thresholds = chosen[:for_sets], chosen[for_sets:]
            k, errors = Marginal(ALPHA).rank(len(thresholds)), np.sort(rank[thresholds[wrong[thresholds]]])[::-1]
            bound = errors[k - 1] if k <= len(errors) else -1
            abstained, new = sets[rank[sets] <= bound], test[rank[test] <= bound]
            abstentions += len(new)
            cut = SetRule(wanted.level, {0: SetEvidence.of(right[abstained])}, n, by_chance=True).cut_of(0)
            if cut is None or not len(new):
                continue
            promised, offered = promised + 1, offered + len(new)
            held, there = places[new] >= cut, answers.there[new]
            sums += [(right[new] >= cut).sum(), (held & there).sum(), (other[new] >= cut).sum(), there.sum()]
        covered, size, with_other, pool = sums / offered if offered else np.full(4, np.nan)
        found[name] = Outcome(promised / SPLITS, abstentions / rest.size, covered, size, with_other, pool)
    return found


def answer_set_part(cells: Sequence[tuple[str, VotedPools, int]]) -> list[str]:
    """The part of the page about answer sets; a cell is its name, its pools, and how many questions calibrate."""
    tables, compared = [], []
    for level in LEVELS:
        rows: list[list[Value]] = []
        sizes: list[list[Value]] = []
        for name, voted, n in cells:
            outcomes = measure(voted, n, level)
            found = outcomes[OWN]
            rows.append([name, n, f"{found.abstained:.0%}", f"{found.promised:.0%}", *_shown(found)])
            if found.promised > _SELDOM:
                sizes.append([name, *(f"{each.size:.1f} / {each.other:.0%}" for each in outcomes.values())])
        tables.append(Table(f"sets-{level}", f"Answer sets at alpha {level:g}", _HEADER, rows).markdown())
        title = f"Answers per set and sets with OTHER at alpha {level:g}, by order"
        compared.append(Table(f"orders-{level}", title, ["", *ORDERS], sizes).markdown())
    return ["## Answer sets", "", _SETS, "", *tables, _ORDERS, "", *compared]


def _shown(found: Outcome) -> list[Value]:
    if found.promised <= _SELDOM:
        return ["–"] * 4
    return [f"{found.coverage:.3f}", f"{found.size:.1f}", f"{found.pool:.1f}", f"{found.other:.0%}"]


_HEADER = ["", "n", "abstained", "sets promised", "cover", "answers per set", "answers per pool", "with OTHER"]
_SETS = (
    f"The policy abstains at alpha {ALPHA:g} (jittered majority vote), and offers a set of answers then. n questions "
    f"calibrate, {AnswerSets(LEVELS[0]).share:.0%} of them the sets; means over {SPLITS} random splits, on the rest of "
    "the file. Cover is how many of the sets hold a right answer, or OTHER where no path gave one, given that the "
    "policy abstains. Sets are promised in those splits in which enough of the questions kept for them were abstained "
    "from: 9 for alpha 0.1, 4 for 0.2. Where the paths do not hold the right answer often enough, a set holds all of "
    "them, and OTHER where the vote is scattered; more paths, or a model that is right more often, would help there."
)
_ORDERS = (
    "Which answers enter a set first? demur takes the winner, then others by their part of the winner's votes times "
    "their share of all votes for answers, and OTHER after all of them, in pools of much novelty first. The other "
    "columns are the two factors alone, the mass of the answers ahead (as adaptive prediction sets have it) and the "
    "rank, each with OTHER in all sets or in none. Coverage is promised alike for each; shown are answers per set, and "
    "how many of the sets hold OTHER."
)
