"""Promises under shift on recorded pools, and how well the outlier gate tells sets of questions apart.

Calibration asks mostly about subjects that calculate, use mostly about others, where wrong answers are given with
confidence. Weights are known by construction, or fitted to the words of the questions.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from outlier_results import outlier_part

import demur as dm
from demur.calibration import settle_by_size
from demur.evidence.strata import Strata
from demur.pools.fields import FieldChoice
from demur.pools.jsonl import read_pools
from demur.pools.source import PoolSource, vote_pools
from demur.questions.features import features
from demur.questions.fitting import area, fit_shift
from demur.study.tables import Table, Value
from demur.voting.cases import Cases

CALCULATED = ("business", "chemistry", "computer science", "engineering", "math", "physics")
IN_CALIBRATION, IN_USE = 0.8, 0.2
"""The share of questions that are about those subjects."""
ALPHAS = (0.1, 0.05)
_SPLITS, _N_CAL = 400, 200
_SPARE = 250
"""Questions of either side that weights are fitted on."""
_GATE_REFERENCE = 400

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Recorded:
    """The votes of one file, and which of its questions are about subjects that calculate."""

    cases: Cases
    right: NDArray[np.bool_]
    calculated: NDArray[np.bool_]
    problems: Sequence[dm.Problem]

    @classmethod
    def of(cls, file: Path) -> Recorded:
        pools = read_pools(file)
        voted = vote_pools(PoolSource(pools), FieldChoice())
        kinds = np.array([pool.problem.extra["category"] in CALCULATED for pool in pools])
        some = voted.counted
        keys = voted.votes.key[some]
        # Pools of 26 to 28 models: how many answered says nothing here.
        cases = Cases(keys, np.full(len(some), 28, dtype=np.intp))
        return cls(cases, voted.labelled[some], kinds[some], [pools[row].problem for row in some])

    def draw(self, rng: np.random.Generator, *parts: tuple[int, float]) -> list[Rows]:
        """Disjoint parts at random, each of so many questions, of which this share calculates."""
        left = {kind: rng.permutation(np.flatnonzero(self.calculated == kind)).tolist() for kind in (True, False)}
        drawn = []
        for n, share in parts:
            some = [left[bool(kind)].pop() for kind in rng.random(n) < share]
            drawn.append(np.array(some, dtype=np.intp))
        return drawn

    def weights(self, rows: Rows) -> NDArray[np.float64]:
        """How much more often a question occurs in use, as it is by construction."""
        often, seldom = IN_USE / IN_CALIBRATION, (1 - IN_USE) / (1 - IN_CALIBRATION)
        return np.where(self.calculated[rows], often, seldom)

    def outcome(self, guarantee: Any, cal: Rows, use: Rows, weights: Any = None) -> tuple[float, float]:
        """Of the questions in use, the shares answered wrongly and answered."""
        known, new = (None, None) if weights is None else (weights[0], weights[1])
        calibration = Cases(self.cases.keys[cal], self.cases.n_paths[cal], None, known)
        rule = settle_by_size(guarantee, Strata.of(calibration, self.right[cal]))
        answered = rule.answers(Cases(self.cases.keys[use], self.cases.n_paths[use], None, new))
        return float((answered & ~self.right[use]).mean()), float(answered.mean())


def errors_under_shift(recorded: Recorded, name: str, *, fitted: bool) -> list[list[Value]]:
    """A row per alpha and rule: errors with their standard error, and yield, over splits."""
    rows: list[list[Value]] = []
    outcomes: dict[tuple[float, str], list[tuple[float, float]]] = {}
    for split in range(_SPLITS):
        rng = np.random.default_rng(split)
        sides = (_N_CAL, IN_CALIBRATION), (250 if fitted else 1000, IN_USE)
        spare = ((_SPARE, IN_CALIBRATION), (_SPARE, IN_USE)) if fitted else ()
        cal, use, *others = recorded.draw(rng, *sides, *spare)
        ways: dict[str, Any] = {"plain": None, "known weights": (recorded.weights(cal), recorded.weights(use))}
        if fitted:
            reference, traffic = ([recorded.problems[row] for row in part] for part in others)
            ratio = fit_shift(traffic, reference)
            texts = ([str(recorded.problems[row].question) for row in part] for part in (cal, use))
            ways["fitted weights"] = tuple(map(ratio.weights, texts))
        for alpha in ALPHAS:
            for way, weights in ways.items():
                plain = dm.Marginal(alpha)
                guarantee = plain if weights is None else dm.Shifted(plain)
                outcomes.setdefault((alpha, way), []).append(recorded.outcome(guarantee, cal, use, weights))
    for (alpha, way), values in outcomes.items():
        error, answered = np.mean(values, axis=0)
        spread = np.std(values, axis=0, ddof=1)[0] / np.sqrt(len(values))
        rows.append([name, f"{alpha:g}", way, f"{error:.3f} ± {spread:.3f}", f"{answered:.0%}", len(values)])
    return rows


def shifted_table(folder: Path) -> Table:
    """Files with and without texts."""
    files = (("mmlupro_answers_all", "MMLU-Pro, all", False), ("mmlupro_text_1in8", "MMLU-Pro", True))
    rows = [
        row
        for file, name, fitted in files
        for row in errors_under_shift(Recorded.of(folder / f"{file}.jsonl.gz"), name, fitted=fitted)
    ]
    header = ["", "alpha", "calibration", "answered wrongly in use", "answered", "splits"]
    return Table("shifted", "Errors on shifted questions", header, rows)


def gate_table(folder: Path) -> Table:
    """How far questions of other sets lie from a reference: AUROC, and how many the gate turns away at 0.05."""
    asked = folder.parent / "questions"
    sets = {
        "GSM8K": _texts(asked / "gsm8k_test.jsonl.gz"),
        "MATH": _texts(asked / "math_test.jsonl.gz"),
        "MMLU-Pro": _texts(folder / "mmlupro_text_1in8.jsonl.gz"),
        "HotpotQA": _texts(asked / "hotpotqa_dev.jsonl.gz"),
    }
    rng, rows = np.random.default_rng(0), []
    shuffled = {name: [texts[row] for row in rng.permutation(len(texts))] for name, texts in sets.items()}
    for name, texts in shuffled.items():
        gate = dm.OutlierGate.fit(texts[:_GATE_REFERENCE])
        own = gate.distance(features(texts[_GATE_REFERENCE : _GATE_REFERENCE + 900]))
        row: list[Value] = [name]
        for other, questions in shuffled.items():
            some = questions[_GATE_REFERENCE : _GATE_REFERENCE + 900]
            away = f"{gate.closes(some).mean():.0%}"
            row.append(away if other == name else f"{area(own, gate.distance(features(some)))[0]:.2f} / {away}")
        rows.append(row)
    return Table("gate", "Questions of one set behind a gate of another", ["reference", *shuffled], rows)


def shift_part(folder: Path) -> list[str]:
    """The part of the page about shift."""
    return ["## Other questions than calibration had", "", _SHIFT, "", shifted_table(folder).markdown(), _GATE, "",
            gate_table(folder).markdown(), *outlier_part(folder)]  # fmt: skip


def _texts(file: Path) -> list[str]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return list(dict.fromkeys(json.loads(line)["question"] for line in lines))


_SHIFT = (
    f"{_N_CAL} questions calibrate, {IN_CALIBRATION:.0%} of them about subjects that calculate; in use {IN_USE:.0%} "
    "are. On the others wrong answers are given with more confidence, so that a plain calibration breaks its promise. "
    f"Weights are known by construction, or fitted to the words of {_SPARE} questions of the traffic against {_SPARE} "
    "others; what words do not show, fitted weights cannot mend. The vote is the majority vote with jitter; errors are "
    "means with their standard error over random splits of one file."
)
_GATE = (
    f"A gate is fitted on {_GATE_REFERENCE} questions of one set, at level 0.05. For other sets: how often one of "
    "their questions lies farther from the reference than a new question of the same set (AUROC), and how many are "
    "turned away. A mixed reference such as MMLU-Pro, which holds word problems and mathematics itself, shuts few out."
)


if __name__ == "__main__":
    print("\n".join(shift_part(Path(sys.argv[1]))))
