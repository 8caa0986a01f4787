"""What abstaining on outliers behind the thresholds does on recorded pools.

On more questions of the set that calibrated, and where half of the questions in use are of another set.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import demur as dm
from demur.evidence.counts import Evidence, exceeds
from demur.pools.fields import FieldChoice
from demur.pools.jsonl import read_pools
from demur.pools.source import PoolSource, vote_pools
from demur.questions.features import features
from demur.study.tables import Table, Value

ALPHAS = (0.1, 0.05)
LEVEL = 0.05
_SPLITS, _N_CAL, _IN_USE = 400, 200, 400
_EXPECTED = int(LEVEL * (_N_CAL // 2 + 1)) / (_N_CAL // 2 + 1)
"""The share of like questions that are turned away, if no two lie equally far."""

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Asked:
    """The votes on one set of questions, one of each, and what its texts are like."""

    name: str
    keys: NDArray[np.float64]
    right: NDArray[np.bool_]
    texts: list[tuple[str, str]]
    """By digest."""
    features: NDArray[np.float64]

    @classmethod
    def of(cls, file: Path, name: str, fields: FieldChoice) -> Asked:
        voted = vote_pools(PoolSource(read_pools(file)), fields)
        rows = voted.counted
        assert voted.table is not None
        texts = [(str(voted.table.digests[row]), str(voted.table.questions[row])) for row in rows]
        told = features([text for _, text in texts])
        return cls(name, voted.votes.key[rows], voted.labelled[rows], texts, told)


def outcomes(own: Asked, other: Asked, alpha: float) -> list[list[Value]]:
    """A row per kind of traffic: shares answered wrongly and answered, without and with the gate, and turned away."""
    found: dict[str, list[tuple[float, ...]]] = {f"{own.name} alone": [], f"half {other.name}": []}
    for split in range(_SPLITS):
        rng = np.random.default_rng(split)
        rows, foreign = rng.permutation(len(own.keys)), rng.permutation(len(other.keys))
        cal, use = rows[:_N_CAL], rows[_N_CAL : _N_CAL + _IN_USE]
        rule = dm.Marginal(alpha).settle(Evidence.of(own.keys[cal], own.right[cal]))
        gate = dm.OutlierGate.of_texts([own.texts[row] for row in cal], level=LEVEL)
        sides = [_decided(part, some, rule.threshold_key, gate) for part, some in ((own, use), (other, foreign))]
        half = _IN_USE // 2
        mixed = [np.concatenate([mine[:half], theirs[:half]]) for mine, theirs in zip(*sides, strict=True)]
        for kind, (answered, wrong, away) in zip(found, (sides[0], mixed), strict=True):
            both = [
                given & still
                for still in (np.ones(len(away), dtype=np.bool_), ~away)
                for given in (answered & wrong, answered)
            ]
            found[kind].append((*(float(column.mean()) for column in both), float(away.mean())))
    table = []
    for kind, rates in found.items():
        mean, spread = np.mean(rates, axis=0), np.std(rates, axis=0, ddof=1) / np.sqrt(_SPLITS)
        errors = [f"{mean[at]:.3f} ± {spread[at]:.3f}" for at in (0, 2)]
        shares = [f"{mean[at]:.0%}" for at in (1, 3)]
        table.append(
            [
                own.name,
                kind,
                f"{alpha:g}",
                errors[0],
                shares[0],
                errors[1],
                shares[1],
                f"{mean[4]:.1%} ± {spread[4]:.1%}",
            ]
        )
    return table


def _decided(asked: Asked, rows: Rows, threshold: tuple[float, ...], gate: dm.OutlierGate) -> list[NDArray[np.bool_]]:
    """Whether votes are answered, are wrong, and whether their questions are turned away."""
    distances = gate.distance(asked.features[rows])
    p_value = (1 + len(gate.ranked) - np.searchsorted(gate.ranked, distances)) / (1 + len(gate.ranked))
    return [exceeds(asked.keys[rows], threshold), ~asked.right[rows], p_value <= LEVEL]


def outlier_part(folder: Path) -> list[str]:
    """The part of the page about questions unlike the calibration ones."""
    files = (("zeroeval_gsm8k", "GSM8K", ()), ("zeroeval_math_l5", "MATH level 5", ("___",)))
    school, contest = (
        Asked.of(folder / f"{file}.jsonl.gz", name, FieldChoice("answer_x", missing=missing))
        for file, name, missing in files
    )
    rows = [
        row for alpha in ALPHAS for pair in ((school, contest), (contest, school)) for row in outcomes(*pair, alpha)
    ]
    header = ["calibration", "in use", "alpha", "wrong", "answered", "wrong with the gate", "answered", "turned away"]
    table = Table("outliers", "Abstaining on questions unlike the calibration ones", header, rows)
    return [_ABOUT, "", table.markdown()]


_ABOUT = (
    f"With `outlier_level={LEVEL:g}` the {_N_CAL} calibration questions themselves say what is usual, behind a "
    f"threshold that stays what it is. Of new questions of the same set {_EXPECTED:.2%} are turned away on average, "
    "which costs at most as many answers, and errors only fall. Where half of the questions in use are of another set, "
    "nothing is promised, with or without it; but what is turned away is not answered wrongly. Majority votes of the "
    f"same models with jitter; means with their standard error over {_SPLITS} splits."
)


if __name__ == "__main__":
    print("\n".join(outlier_part(Path(sys.argv[1]))))
