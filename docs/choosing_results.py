"""What choosing among ways to vote does to the promise on recorded pools: a part of what `results.py` writes.

    python docs/choosing_results.py FOLDER      prints the part alone

Each way to vote is one that `demur tune` compares, with scores that need nothing but the texts of the paths. A way to
choose takes one calibration set and says which way to vote, and at which threshold.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from demur.calibration import HighProbability, Marginal, RankGuarantee
from demur.errors import InvalidValue
from demur.evaluation.candidates import LabelledPools, configurations
from demur.evidence.counts import Evidence, levels_below
from demur.pools.fields import FieldChoice
from demur.pools.jsonl import read_pools
from demur.pools.label_rule import LabelRule
from demur.pools.source import PoolSource
from demur.pools.splits import repeated
from demur.records import Pool
from demur.study.tables import Table, Value

FILES = {
    "faithfulcot_gsm8k_pool": FieldChoice(missing=("None",)),
    "zeroeval_gsm8k": FieldChoice("answer_x"),
    "zeroeval_math_l5": FieldChoice("answer_x", missing=("___",)),
    "mmlupro_text_1in8": FieldChoice(),
}
N_CAL, SHARE, SPLITS, DELTA = 200, 0.3, 400, 0.1
Ranks = NDArray[np.int32]


@dataclass(frozen=True)
class Ways:
    """Every way to vote on one file: a row per way, a column per question."""

    rank: Ranks
    """The place of each vote among the way's levels, 0 for votes without confidence."""
    right: NDArray[np.bool_]

    def threshold(self, questions: NDArray[np.intp], k: int) -> Ranks:
        """The k-th largest wrong rank of each way among some questions; the largest rank there is for k = 0."""
        if k == 0:
            return self.rank.max(axis=1)
        wrong = np.where(self.right[:, questions], 0, self.rank[:, questions])
        return np.partition(wrong, -k, axis=1)[:, -k] if k <= wrong.shape[1] else np.zeros(len(wrong), np.int32)

    def answered(self, questions: NDArray[np.intp], threshold: Ranks) -> NDArray[np.float64]:
        """The yield of each way."""
        return np.asarray((self.rank[:, questions] > threshold[:, None]).mean(axis=1))

    def errors(self, questions: NDArray[np.intp], way: int, threshold: int) -> float:
        answered = self.rank[way, questions] > threshold
        return float((answered & ~self.right[way, questions]).mean())


Choice = tuple[int, int]
"""A way to vote, and its threshold."""


def best_of_all(ways: Ways, cal: NDArray[np.intp], guarantee: RankGuarantee) -> Choice:
    """The way that answers most of the questions that calibrate it."""
    threshold = ways.threshold(cal, guarantee.rank(len(cal)))
    way = int(np.argmax(ways.answered(cal, threshold)))
    return way, int(threshold[way])


def tuned(ways: Ways, cal: NDArray[np.intp], guarantee: RankGuarantee) -> Choice:
    """The way that answers most of a tune split at the same share of errors, calibrated on the rest."""
    first, rest = np.split(cal, [round(SHARE * len(cal))])
    k = guarantee.rank(len(rest))
    like = max(1, round(k * len(first) / len(rest)))
    way = int(np.argmax(ways.answered(first, ways.threshold(first, like))))
    return way, int(ways.threshold(rest, k)[way])


def default(ways: Ways, cal: NDArray[np.intp], guarantee: RankGuarantee) -> Choice:
    """The majority vote with jitter, on all questions."""
    return 0, int(ways.threshold(cal, guarantee.rank(len(cal)))[0])


Rule = tuple[str, Callable[[Ways, NDArray[np.intp], RankGuarantee], Choice], Callable[[float, int], RankGuarantee]]
RULES: tuple[Rule, ...] = (
    ("majority vote", default, lambda alpha, _: Marginal(alpha)),
    ("best of J, uncorrected", best_of_all, lambda alpha, _: Marginal(alpha)),
    ("tune split", tuned, lambda alpha, _: Marginal(alpha)),
    ("best of J, choices=J", best_of_all, lambda alpha, ways: Marginal(alpha, choices=ways)),
    ("high probability, choices=J", best_of_all, lambda alpha, ways: HighProbability(alpha, DELTA, choices=ways)),
)


def with_scores(pool: Pool) -> Pool:
    """A pool whose paths have scores that their texts alone give."""
    lengths = [float(len(path.text or "")) for path in pool.paths]
    middle = float(np.median(lengths))
    kinds = {"length": lambda size: size / 100, "brevity": lambda size: -size / 100,
             "typical length": lambda size: -abs(size - middle) / 100}  # fmt: skip
    paths = [
        replace(path, scores={name: kind(size) for name, kind in kinds.items()})
        for path, size in zip(pool.paths, lengths, strict=True)
    ]
    return replace(pool, paths=tuple(paths))


def ways_of(file: Path, fields: FieldChoice) -> Ways:
    """Every way to vote on a file that its scores allow, questions in an order that the file does not decide."""
    source = PoolSource([with_scores(pool) for pool in read_pools(file)])
    pools = LabelledPools(source, range(len(source.pools)), fields, LabelRule())
    ranks, rights = [], []
    for one in configurations(source):
        try:
            voted = one.chosen(pools)
        except InvalidValue:  # linear weights, of scores that are negative
            continue
        keys, right = voted.votes.key[voted.in_order], voted.labelled[voted.in_order]
        levels = Evidence.of(keys, right).levels
        ranks.append(np.where(keys[:, 0] > 0, 1 + levels_below(levels, keys), 0).astype(np.int32))
        rights.append(right)
    return Ways(np.array(ranks), np.array(rights))


def outcome(ways: Ways, rule: Rule, alpha: float, seed: int = 0) -> tuple[float, float, float]:
    """Mean error and yield on the rest of the file over splits; and how often the true rate of a set exceeds alpha.

    For the last, calibration sets are drawn with replacement: then the file is the population.
    """
    _, choose, promised = rule
    guarantee, n = promised(alpha, len(ways.rank)), ways.rank.shape[1]
    calibration, test = repeated(n, N_CAL, SPLITS, seed)
    drawn = np.random.default_rng(seed).integers(0, n, (SPLITS, N_CAL))
    everything = np.arange(n)
    errors, answered, violated = [], [], 0
    for cal, rest, draw in zip(calibration, test, drawn, strict=True):
        way, at = choose(ways, cal, guarantee)
        errors.append(ways.errors(rest, way, at))
        answered.append((ways.rank[way, rest] > at).mean())
        violated += ways.errors(everything, *choose(ways, draw, guarantee)) > alpha
    return float(np.mean(errors)), float(np.mean(answered)), violated / SPLITS


def table(files: dict[str, Ways], alpha: float) -> Table:
    rows: list[list[Value]] = []
    for name, ways in files.items():
        cells = []
        for rule in RULES:
            error, answered, violated = outcome(ways, rule, alpha)
            cells.append(f"{error:.4f} / {answered:.1%} / {violated:.0%}")
        rows.append([name, len(ways.rank), *cells])
    return Table("choosing", f"Choosing how to vote, alpha {alpha:g}", ["", "J", *(name for name, *_ in RULES)], rows)


def choosing_part(folder: Path, alphas: Sequence[float] = (0.1, 0.05)) -> list[str]:
    """The part of the page about choosing."""
    files = {name: ways_of(folder / f"{name}.jsonl.gz", fields) for name, fields in FILES.items()}
    return ["## Choosing how to vote", "", _CHOOSING, "", *(table(files, alpha).markdown() for alpha in alphas)]


_CHOOSING = (
    f"Of each calibration set of {N_CAL} questions, one of J ways to vote is chosen: score (length, brevity, typical "
    "length: what the texts alone give), weight, normaliser and tie-break, as `demur tune` compares them. Mean share "
    f"of all questions answered wrongly / answered, over {SPLITS} random splits of a file; then the share of {SPLITS} "
    "calibration sets, drawn with replacement, whose true rate is above alpha, which is to be about half for an "
    f"average and at most {DELTA:g} for the high-probability one. The best of J on the labels that calibrate it breaks "
    f"the promise on average; a tune split ({SHARE:.0%} of the same questions, the way chosen by its yield there) "
    "keeps it, and so do union-corrected ranks (`choices=J`), which pay for every way that might have been chosen."
)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print("\n".join(choosing_part(Path(sys.argv[1]))))
