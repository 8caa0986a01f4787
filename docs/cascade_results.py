"""Rules for a cascade, side by side on recorded pools: a part of what `results.py` writes.

The paths of a file come from many models or prompts: the weaker half of them is the cheap stage, the stronger half the
strong one. Which is which is settled on half of the questions, and everything else happens on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath

import numpy as np
from numpy.typing import NDArray

from demur.calibration import Marginal
from demur.calibration.cascade import JointVotes, as_shares, ranks_of
from demur.evidence.counts import Evidence, Floats, ThresholdKey, above_all
from demur.pools.fields import FieldChoice
from demur.pools.jsonl import read_pools
from demur.pools.source import PoolSource, vote_pools
from demur.pools.splits import repeated, split
from demur.pools.voted_pools import VotedPools
from demur.records import Pool
from demur.study.tables import Table, Value

Rule = Callable[[JointVotes, float], Sequence[ThresholdKey]]
COSTS = (1.0, 10.0)
FILES = {
    "zeroeval_math_l5": ("MATH level 5", "answer_x", ("___",)),
    "faithfulcot_gsm8k_pool": ("GSM8K, 41 configurations", "answer", ("None",)),
    "zeroeval_gsm8k": ("GSM8K, 43 models", "answer_x", ()),
    "mmlupro_text_1in8": ("MMLU-Pro", "answer", ()),
}
SPLITS, N_CAL = 400, 200


def k_of(votes: JointVotes, alpha: float) -> int:
    return Marginal(alpha).rank(votes.n)


def apart(votes: JointVotes, ranks: Sequence[int]) -> list[ThresholdKey]:
    """A threshold of each stage from all questions, whether or not they get there."""
    stages = zip(votes.keys, votes.right, ranks, strict=True)
    return [Evidence.of(key, right).threshold(k) for key, right, k in stages]


def each_alone(votes: JointVotes, alpha: float) -> list[ThresholdKey]:
    """Alpha at each stage, as though it were the only one: no promise follows from that."""
    return apart(votes, [k_of(votes, alpha)] * len(votes.keys))


def split_budget(votes: JointVotes, alpha: float) -> list[ThresholdKey]:
    """Half of the errors to each stage, each calibrated on all questions."""
    return apart(votes, ranks_of(k_of(votes, alpha), as_shares([1, 1], 2)))


def envelope(votes: JointVotes, alpha: float) -> list[ThresholdKey]:
    """One threshold for both stages, on a loss made monotone: wrong at any threshold that is as high or higher.

    A question is then wrong below the largest key at which a stage is wrong that no earlier one has overtaken, which is
    one order statistic again. The path of thresholds is fixed: the same key at both stages.
    """
    highest, worst = (np.full(votes.keys[0].shape, -np.inf) for _ in range(2))
    for key, right in zip(votes.keys, votes.right, strict=True):
        overtakes = _larger(key, highest)
        worst = np.where((overtakes & ~right)[:, None], key, worst)
        highest = np.where(overtakes[:, None], key, highest)
    confident = worst[:, 0] > 0
    threshold = Evidence.of(np.where(confident[:, None], worst, 0.0), ~confident).threshold(k_of(votes, alpha))
    return [threshold] * len(votes.keys)


def _larger(keys: Floats, others: Floats) -> NDArray[np.bool_]:
    over, level = np.zeros(len(keys), dtype=np.bool_), np.ones(len(keys), dtype=np.bool_)
    for column, bound in zip(keys.T, others.T, strict=True):
        over |= level & (column > bound)
        level &= column == bound
    return over


def shared(cheap: int, strong: int) -> Rule:
    """`calibrate_cascade` with these shares."""
    parts = as_shares([cheap, strong], 2)
    return lambda votes, alpha: votes.thresholds(ranks_of(k_of(votes, alpha), parts))


RULES: dict[str, Rule] = {
    "alpha at each stage": each_alone,
    "split, all questions": split_budget,
    "envelope": envelope,
    "shares 1 : 3": shared(1, 3),
    "shares 1 : 1": shared(1, 1),
    "shares 3 : 1": shared(3, 1),
    "cheap alone": shared(1, 0),
    "strong alone": shared(0, 1),
}


@dataclass(frozen=True)
class Outcome:
    """One rule on one file, means over splits."""

    confident_error: float
    answered: float
    cost: float


def compare_rules(votes: JointVotes, alpha: float) -> dict[str, Outcome]:
    """Every rule on random splits of one file."""
    calibration, test = repeated(votes.n, N_CAL, SPLITS, 0)
    outcomes: dict[str, list[tuple[float, float, float]]] = {name: [] for name in RULES}
    for cal, rest in zip(calibration, test, strict=True):
        seen, fresh = votes.take(cal), votes.take(rest)
        for name, rule in RULES.items():
            thresholds = rule(seen, alpha)
            reached, wrong, cost = fresh.reached(thresholds), 0.0, 0.0
            for at, threshold in enumerate(thresholds):
                wrong += float((reached[at] & ~reached[at + 1] & ~fresh.right[at]).mean())
                if threshold != above_all(len(threshold)):  # a stage that never answers is not asked
                    cost += COSTS[at] * float(reached[at].mean())
            outcomes[name].append((wrong, 1 - float(reached[-1].mean()), cost))
    return {name: Outcome(*map(float, np.mean(rows, axis=0))) for name, rows in outcomes.items()}


def stages_of(source: PoolSource, fields: FieldChoice) -> list[VotedPools]:
    """The votes of the weaker and of the stronger half of a file's sources, on questions that did not tell which."""
    pools = source.pools
    halves = split([pool.problem.id for pool in pools], seed=0, tune=0.5)
    names = sorted({str(path.extra.get("src")) for pool in pools for path in pool.paths})

    def of(sources: set[str], rows: NDArray[np.intp]) -> VotedPools:
        some = [pools[row] for row in rows.tolist()]
        kept = [Pool(pool.problem, tuple(p for p in pool.paths if str(p.extra.get("src")) in sources)) for pool in some]
        part = replace(source, pools=[pool for pool in kept if pool.paths])
        return vote_pools(part, fields, part.recipe(tie_break="jitter:0"))

    accuracy = {name: float(of({name}, halves.tune).labelled.mean()) for name in names}
    ordered = sorted(names, key=lambda name: (accuracy[name], name))
    middle = len(ordered) // 2
    return [of(set(part), halves.calibration) for part in (ordered[:middle], ordered[middle:])]


def joint_votes(file: FilePath, answer_field: str, missing: tuple[str, ...]) -> JointVotes:
    """The votes of the two stages of a file, question by question."""
    tables = stages_of(PoolSource(read_pools(file)), FieldChoice(answer_field, missing=missing))
    assert tables[0].ids == tables[1].ids
    rows = tables[0].counted
    columns = [(table.votes.key[rows], table.labelled[rows], table.votes.n_paths[rows]) for table in tables]
    return JointVotes(*map(tuple, zip(*columns, strict=True)))


def cascade_part(folder: FilePath, alphas: Sequence[float]) -> list[str]:
    """The part of the page about cascades."""
    files = {told: joint_votes(folder / f"{name}.jsonl.gz", *how) for name, (told, *how) in FILES.items()}
    tables = []
    for alpha in alphas:
        rows: list[list[Value]] = []
        for told, votes in files.items():
            outcomes = compare_rules(votes, alpha)
            strong, halves = outcomes["strong alone"], outcomes["shares 1 : 1"]
            figures = [f"{o.confident_error:.3f} / {o.answered:.0%} / {o.cost:.1f}" for o in outcomes.values()]
            rows.append([told, *figures, f"{strong.answered * min(1.0, halves.cost / strong.cost):.0%}"])
        header = ["", *RULES, "strong, for the money of 1 : 1"]
        tables.append(Table("cascades", f"Cascades, alpha {alpha:g}", header, rows).markdown())
    return ["## Cascades", "", _CASCADES, "", *tables]


_CASCADES = (
    "Two stages on the same questions: the weaker half of a file's models or prompts at cost 1, the stronger half at "
    "cost 10. Which are weaker is settled on one half of the questions; the other half is split at random, 200 "
    f"questions calibrate, and means over {SPLITS} splits are shown: of all questions answered wrongly / answered / "
    "cost per question. Votes are majority votes with jitter. The first rule has no proof, and breaks the promise "
    "wherever errors are not scarce. The second shares the errors, but takes each threshold from all questions, those "
    "that an earlier stage answers too, and leaves a part of alpha unspent. The envelope and the shares of "
    "`calibrate_cascade` spend it; at equal cost they answer about as many, and shares can be chosen. A smaller share "
    "of the cheap stage answers more and costs more. The last column is the rival to beat: as many questions put to "
    "the strong stage alone as the money of equal shares buys. Where it answers more, the cheap stage is wrong too "
    "often for a cascade to pay."
)


if __name__ == "__main__":
    import sys

    print("\n".join(cascade_part(FilePath(sys.argv[1]), (0.1, 0.05))))
