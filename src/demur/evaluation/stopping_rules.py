"""Stopping rules side by side on pools that have all their paths: what each draws, and what its policy answers.

Each rule is replayed on the same pools, calibrated and tested on the same random splits, at the same alpha: every row
keeps the promise, and what differs is the price. Yields are compared split by split. Their standard errors are those of
questions, drawn again with replacement: of splits there are as many as one likes, and all are of the same questions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.evaluation.friendly_sizes import ranks_of
from demur.evaluation.repeated_splits import SplitResult, evaluate_splits
from demur.evaluation.summaries import Summary
from demur.evidence.counts import Evidence, levels_below
from demur.policy.calibrate import Alphas, Guarantees
from demur.pools.fields import FieldChoice
from demur.pools.label_rule import LabelRule
from demur.pools.parts import first_paths, sizes_of, some_of
from demur.pools.source import PoolSource, Say, vote_pools
from demur.pools.voted_pools import VotedPools
from demur.shown.frames import frame_of
from demur.shown.html import html_of_columns
from demur.stopping import Stopping, fixed
from demur.voting.key import TieBreak

_DRAWS = 200
_MUCH = 0.02
_SURE = 2.0
"""A loss of yield is told where it is this large, and so many standard errors from none."""
_GREEDY = (
    "is greedy: it ends pools where the answer in front would often not stay there, and no threshold then tells those "
    "that agree from those that agree by chance; doubling from two paths until three quarters agree lost 11 to 55 % of "
    "the yield at alpha = 0.05 on recorded pools (docs/stopping.md)"
)


@dataclass(frozen=True)
class StoppingRow:
    """One rule at one alpha."""

    stopping: Stopping
    paths: Summary
    """Drawn per question, over questions."""
    vote_accuracy: Summary
    """Without abstaining, over questions."""
    result: SplitResult = field(repr=False)
    answered: Summary
    """Its yield over splits; the standard error is by the chance of the questions."""
    against_all: Summary
    """By how much more it answers than all paths do, likewise."""

    @property
    def share(self) -> float:
        """Of all paths, those drawn."""
        return self.paths.mean / (self.stopping.most or math.nan)

    @property
    def paths_per_answer(self) -> float:
        """Paths drawn for each question that is answered; infinite where none is."""
        return self.paths.mean / self.result.answered.mean if self.result.answered.mean else math.inf

    @property
    def loss(self) -> str:
        """That the rule answers clearly less than all paths do, in words; blank where it does not."""
        lost = -self.against_all.mean
        if lost <= _MUCH or lost <= _SURE * self.against_all.se:
            return ""
        told = f"{100 * lost:.1f} points less than all paths at alpha = {self.result.alpha:g}"
        return f"{self.stopping.rule.spec} answers {told}"

    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "rule": self.stopping.rule.spec,
            "wave": self.stopping.wave,
            "most": self.stopping.most,
            "paths": asdict(self.paths),
            "share_of_paths": self.share,
            "vote_accuracy": asdict(self.vote_accuracy),
            "against_all": asdict(self.against_all),
            "paths_per_answer": self.paths_per_answer,
            **self.result.document(),
            "answered": asdict(self.answered),
        }


@dataclass(frozen=True, eq=False)
class StoppingComparison:
    """Rules on one set of pools, all paths first; a row for each alpha and rule."""

    rows: tuple[StoppingRow, ...]
    n: int
    n_cal: int
    splits: int
    left_out: int
    """Pools with fewer paths than most have, or without a score that casts their vote."""

    def __repr__(self) -> str:
        return f"StoppingComparison({len(self.rows)} rows on {self.n:,} questions, {self.splits} splits)"

    def _repr_html_(self) -> str:
        return html_of_columns(repr(self), self.columns(), note=" ".join(self.warnings))

    @property
    def warnings(self) -> list[str]:
        """Of rules that are greedy, or cost yield."""
        greedy = dict.fromkeys(row.stopping.rule.spec for row in self.rows if row.stopping.rule.greedy)
        return [*(f"{spec} {_GREEDY}" for spec in greedy), *(row.loss for row in self.rows if row.loss)]

    def columns(self) -> dict[str, list[Any]]:
        """One entry per row, by name."""
        return {
            "alpha": [row.result.alpha for row in self.rows],
            "rule": [row.stopping.rule.spec for row in self.rows],
            "paths": [row.paths.mean for row in self.rows],
            "share_of_paths": [row.share for row in self.rows],
            "answered": [row.answered.mean for row in self.rows],
            "answered_error": [row.answered.se for row in self.rows],
            "against_all": [row.against_all.mean for row in self.rows],
            "against_all_error": [row.against_all.se for row in self.rows],
            "vote_accuracy": [row.vote_accuracy.mean for row in self.rows],
            "confident_error": [row.result.confident_error.mean for row in self.rows],
            "paths_per_answer": [row.paths_per_answer for row in self.rows],
        }

    def to_frame(self, library: str | None = None) -> Any:
        """One row per alpha and rule, as a DataFrame of pandas, or of "polars" or "arrow"."""
        return frame_of(self.columns(), library)


def compare_stopping(
    source: PoolSource,
    stops: Sequence[Stopping],
    fields: FieldChoice = FieldChoice(),  # noqa: B008 - frozen
    *,
    alpha: Alphas | None = None,
    guarantee: Guarantees | None = None,
    n_cal: int | None = None,
    splits: int = 100,
    seed: int = 0,
    correct: str | LabelRule | None = None,
    normaliser: str | None = None,
    weight: str | None = None,
    tie_break: TieBreak = None,
    say: Say = lambda _: None,
) -> StoppingComparison:
    """Replay rules on labelled pools that have all their paths, beside all paths; 200 calibrate, or half of fewer.

    Pools with fewer paths than most have are left out, and of larger ones the first paths count. Where pools without a
    score cast no vote, those that lack it in any path are left out under all rules: the same questions are compared.
    """
    if source.stopping is not None:
        raise InvalidValue(
            f"these pools were drawn until {source.stopping} stopped, and cannot tell what others would have drawn",
            "compare rules on pools that have all their paths",
        )
    sizes = sizes_of(source.pools)
    most = Counter(sizes.tolist()).most_common(1)[0][0]
    enough = np.flatnonzero(sizes >= most)
    whole = first_paths(some_of(source.pools, enough), np.full(len(enough), most))
    same = replace(source, pools=whole).with_columns(fields)
    if same.read is not None and len(unscored := same.read[1].unscored):
        say(f"note: {len(unscored)} of {len(whole)} pools have a path without the score {fields.score!r}: left out")
        same = replace(same, pools=some_of(whole, np.delete(np.arange(len(whole)), unscored))).with_columns(fields)
    left_out = len(source.pools) - len(same.pools)
    rules = [fixed().at_most(most), *(stop.at_most(most) for stop in stops if stop.stops)]
    how = normaliser, weight, tie_break
    cells = [_voted(same, rule, fields, correct, how, _quiet if at else say) for at, rule in enumerate(rules)]
    n = len(cells[0].in_order)
    n_cal = n_cal if n_cal is not None else 200 if n >= 400 else n // 2
    named = {str(at): voted for at, voted in enumerate(cells)}
    results = evaluate_splits(named, alpha=alpha, guarantee=guarantee, n_cal=n_cal, splits=splits, seed=seed)
    first = {(one.guarantee.name, one.alpha): one for one in results if one.cell == "0"}
    drawn_again = {promise: _yields_drawn_again(cells, one, seed) for promise, one in first.items()}
    rows = []
    for one in sorted(results, key=lambda one: (one.alpha, one.guarantee.name, int(one.cell))):
        voted, base = cells[int(one.cell)], first[one.guarantee.name, one.alpha]
        counted = voted.in_order
        drawn = Summary.of(voted.votes.n_paths[counted].astype(np.float64))
        right = Summary.of(voted.labelled[counted].astype(np.float64))
        yields = drawn_again[one.guarantee.name, one.alpha]
        mine, others = yields[int(one.cell)], yields[0]
        answered = replace(one.answered, se=float(mine.std(ddof=1)))
        against_all = replace(Summary.of(one.yields - base.yields), se=float((mine - others).std(ddof=1)))
        rows.append(StoppingRow(rules[int(one.cell)], drawn, right, one, answered, against_all))
    return StoppingComparison(tuple(rows), n, n_cal, splits, left_out)


def _voted(
    source: PoolSource, rule: Stopping, fields: FieldChoice, correct: str | LabelRule | None, how: Any, say: Say
) -> VotedPools:
    ended = source.stopped_by(rule, fields)
    return vote_pools(ended, fields, ended.recipe(fields.score, *how), correct=correct, say=say).scored


def _quiet(_: str) -> None:
    """What is said of the pools is the same under each rule."""


def _yields_drawn_again(cells: Sequence[VotedPools], result: SplitResult, seed: int) -> NDArray[np.float64]:
    """What each rule answers on average over splits, of the same questions drawn with replacement: rules × draws.

    The k-th wrong vote of those that calibrate is the j-th of all with a chance that does not depend on the votes.
    """
    from scipy.special import gammaln

    def ways(of: Any, chosen: int) -> Any:
        return gammaln(of + 1) - gammaln(chosen + 1) - gammaln(of - chosen + 1)

    rng, n, n_cal = np.random.default_rng(seed), result.n, result.n_cal
    k = min(ranks_of(result.guarantee, n_cal), default=0)
    yields = np.zeros((len(cells), _DRAWS))
    if not k:
        return yields
    j = np.arange(k, n - n_cal + k + 1)
    chance = np.exp(ways(j - 1, k - 1) + ways(n - j, n_cal - k) - ways(n, n_cal))
    by_key = [_by_key(voted) for voted in cells]
    for draw in range(_DRAWS):
        times = np.bincount(rng.integers(n, size=n), minlength=n)
        for cell, (order, wrong, above) in enumerate(by_key):
            drawn = np.concatenate([[0], np.cumsum(times[order])])
            yields[cell, draw] = chance @ drawn[above[np.searchsorted(np.cumsum(times[order] * wrong), j)]] / n
    return yields


def _by_key(voted: VotedPools) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.intp]]:
    """The questions from the largest key down, which votes are wrong, and how many have a larger key than each; behind
    the last, how many may be answered at all."""
    rows = voted.in_order
    keys, labels = voted.votes.key[rows], voted.labelled[rows]
    rank = np.where(keys[:, 0] > 0, 1 + levels_below(Evidence.of(keys, labels).levels, keys), 0)
    order = np.argsort(-rank, kind="stable")
    above = np.searchsorted(-rank[order], -rank[order])
    return order, ~labels[order], np.append(above, int((rank > 0).sum()))
