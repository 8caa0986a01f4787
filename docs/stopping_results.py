"""Stopping rules on recorded pools: what they draw, what their policies answer, and what breaks the promise.

    python docs/stopping_results.py FOLDER

FOLDER holds the recorded pools that `docs/results.py` names. Writes its tables into docs/stopping.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import demur as dm
from demur import stopping
from demur.calibration import Marginal
from demur.evaluation.repeated_splits import SplitResult, evaluate_splits
from demur.evidence.counts import Evidence, exceeds
from demur.pools.fields import FieldChoice, read_table
from demur.pools.jsonl import read_pools
from demur.pools.labels import read_labels
from demur.pools.splits import repeated
from demur.pools.voted_pools import VotedPools
from demur.stopping import Rule, Stopping
from demur.study.tables import Table, Value
from demur.voting.codes import code_answers

ALPHAS, SPLITS, SEED = (0.1, 0.05), 400, 0
ALL, DOUBLING, WAVE = "all paths", "doubling", 4
RULES = ("beta:0.95", "beta:0.99", "agreement:4")
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Recorded:
    """A file of recorded pools, and how many paths of each are drawn."""

    file: str
    name: str
    paths: int = 16
    answer_field: str = "answer"
    missing: tuple[str, ...] = ()
    n_cal: int = 200


FILES = (
    Recorded("wisdom_gpt35_nlu_asdiv_single_answer", "ASDiv / GPT-3.5 x 10", 10, "answer_x"),
    Recorded("faithfulcot_gsm8k_pool", "GSM8K / 41 configurations", missing=("None",)),
    Recorded("zeroeval_math_l5", "MATH level 5 / 41 models", 16, "answer_x", ("___",)),
    Recorded("zeroeval_gsm8k", "GSM8K / 43 models", 16, "answer_x"),
    Recorded("mmlupro_text_1in8", "MMLU-Pro / 28 models"),
    Recorded("verifycot_gpt35_date", "dates / GPT-3.5 x 10", 10, missing=("No answer!",), n_cal=100),
)
TARGETS = {FILES[0].name: 0.60, FILES[1].name: 0.75, FILES[2].name: 0.90}
"""The share of paths that beta:0.95 in waves of 4 is to draw at most, with a yield at alpha = 0.1 within one point."""


@dataclass(frozen=True)
class Doubling(Rule):
    """Three quarters of the paths agree: no rule of demur's, but the greedy one to be warned of."""

    @property
    def spec(self) -> str:
        return DOUBLING

    def enough(self, keys: Sequence[Any]) -> bool:
        known = [key for key in keys if key is not None]
        return bool(known) and 4 * max(map(known.count, known)) >= 3 * len(keys)

    def enough_in(self, codes: NDArray[Any]) -> Bools:
        times = ((codes[:, :, None] == codes[:, None, :]) & (codes >= 0)[:, None, :]).sum(axis=2)
        return np.asarray(4 * np.where(codes >= 0, times, 0).max(axis=1) >= 3 * codes.shape[1])


@dataclass(frozen=True)
class Doubled(Stopping):
    """A rule that is looked at after two paths, four, eight …"""

    def looks(self, paths: int) -> Any:
        most = min(paths, paths if self.most is None else self.most)
        return [2**power for power in range(1, 20) if 2**power < most]


@dataclass(frozen=True)
class Cell:
    """Pools of one size, their paths in a random order, and which paths are right."""

    name: str
    ids: list[str]
    keys: list[list[Any]]
    right: list[list[bool]]
    n_cal: int

    @property
    def paths(self) -> int:
        return len(self.keys[0])

    def sizes(self, rule: str) -> NDArray[np.intp]:
        """Where a rule ends each pool."""
        if rule == ALL:
            return np.full(len(self.keys), self.paths)
        drawn = Doubled(Doubling()) if rule == DOUBLING else stopping.parse_stopping(rule, WAVE)
        return drawn.at_most(self.paths).sizes(code_answers(self.keys).codes)

    def voted(self, rule: str, order: str = "fewer_paths") -> VotedPools:
        """The votes of the paths that a rule leaves; `order` is what comes behind the share in their key."""
        sizes = self.sizes(rule).tolist()
        left = [keys[:size] for keys, size in zip(self.keys, sizes, strict=True)]
        tie_break = ["jitter:0"] if order == "none" or rule == ALL else [order, "jitter:0"]
        votes = dm.vote(left, ids=self.ids, tie_break=tie_break)
        return VotedPools.of(votes, np.array([self.is_right(row, won) for row, won in enumerate(votes.winners)]))

    def is_right(self, row: int, answer: Any) -> bool:
        """A key is right on every path of a pool or on none."""
        return answer is not None and self.right[row][self.keys[row].index(answer)]


def cell_of(folder: Path, recorded: Recorded) -> Cell:
    """The pools of a file that have as many paths, drawn from all of theirs in a random order."""
    pools = read_pools(folder / f"{recorded.file}.jsonl.gz")
    table = read_table(pools, FieldChoice(recorded.answer_field, missing=recorded.missing))
    rights, rng = read_labels(pools, table).of_paths(table), np.random.default_rng(SEED)
    ids, keys, right = [], [], []
    for name, answers, labels in zip(table.ids, table.answers, rights, strict=True):
        order = rng.permutation(len(answers))[: recorded.paths].tolist()
        if len(order) == recorded.paths:
            ids.append(name)
            keys.append([answers[path] for path in order])
            right.append([labels[path] for path in order])
    return Cell(recorded.name, ids, keys, right, recorded.n_cal)


def simulated() -> Cell:
    """Pools of a known law."""
    drawn = dm.simulate_pools(4000, n_paths=16, seed=SEED)
    keys = [[None if code < 0 else code for code in row] for row in drawn.answers.tolist()]
    right = [[key == gold for key in row] for row, gold in zip(keys, drawn.gold.tolist(), strict=True)]
    return Cell("simulated", [f"sim-{row}" for row in range(len(keys))], keys, right, 200)


def on_splits(cell: Cell, cells: dict[str, VotedPools]) -> dict[tuple[str, float], SplitResult]:
    results = evaluate_splits(cells, alpha=list(ALPHAS), n_cal=cell.n_cal, splits=SPLITS, seed=SEED)
    return {(one.cell, one.alpha): one for one in results}


def compared(cells: Sequence[Cell]) -> Table:
    """Rules at equal alpha, beside all paths."""
    rows: list[list[Value]] = []
    for cell in cells:
        rules = (ALL, *RULES, DOUBLING)
        found = on_splits(cell, {rule: cell.voted(rule) for rule in rules})
        for rule in rules:
            share, row = cell.sizes(rule).mean() / cell.paths, list[Value]()
            for alpha in ALPHAS:
                one, every = found[rule, alpha], found[ALL, alpha]
                more = one.yields - every.yields
                row += [f"{one.answered.mean:.4f}", f"{more.mean():+.4f} ± {more.std(ddof=1) / SPLITS**0.5:.4f}"]
                row += [f"{one.confident_error.mean:.4f}", f"{one.expected_confident_error:.4f}", f"{one.z:+.1f}"]
                if rule == RULES[0] and alpha == 0.1 and cell.name in TARGETS:
                    assert share <= TARGETS[cell.name], (cell.name, share)
                    assert abs(more.mean()) <= 0.01, (cell.name, more.mean())
            rows.append([cell.name, rule, f"{share:.1%}", f"{found[rule, 0.1].vote_accuracy:.4f}", *row])
    heads = ["answered", "against all", "wrong", "exact law", "z"]
    header = ["", "rule", "paths", "p_v", *(f"{head}, α = {alpha:g}" for alpha in ALPHAS for head in heads)]
    return Table("stopping", "Rules at equal alpha", header, rows)


def orders(cells: Sequence[Cell]) -> Table:
    """What ranks stopped pools of one share: fewer paths first, more paths first, or a draw."""
    rows: list[list[Value]] = []
    for cell in cells:
        for rule in (RULES[0], RULES[2]):
            named = {order: cell.voted(rule, order) for order in ("fewer_paths", "more_paths", "none")}
            found = on_splits(cell, named)
            rows.append([cell.name, rule, *(f"{found[key].answered.mean:.4f}" for key in found)])
            heads = [f"{order.replace('none', 'jitter alone')}, α = {alpha:g}" for order, alpha in found]
    return Table("orders", "Yield by what comes behind the share", ["", "rule", *heads], rows)


def broken(cells: Sequence[Cell]) -> Table:
    """The negative control: thresholds of whole pools on pools that a rule ended."""
    rows: list[list[Value]] = []
    for cell in cells:
        whole = cell.voted(ALL)
        for rule in (RULES[0], RULES[2], DOUBLING):
            errors = errors_of_mismatch(whole, cell.voted(rule, "none"), cell.n_cal)
            rows.append([cell.name, rule, *(f"{rate:.4f} ± {error:.4f}" for rate, error in errors)])
    return Table("mismatch", "Calibrated on all paths, served stopped", ["", "rule", *map(_wrong, ALPHAS)], rows)


def errors_of_mismatch(whole: VotedPools, ended: VotedPools, n_cal: int) -> list[tuple[float, float]]:
    """Answered wrongly at each alpha, with thresholds from whole pools: mean over splits and its standard error."""
    calibration, test = repeated(len(whole), n_cal, SPLITS, SEED)
    found = []
    for alpha in ALPHAS:
        rates = []
        for cal, rest in zip(calibration, test, strict=True):
            evidence = Evidence.of(whole.votes.key[cal], whole.labelled[cal])
            threshold = Marginal(alpha).settle(evidence).threshold_key
            rates.append((exceeds(ended.votes.key[rest], threshold) & ~ended.labelled[rest]).mean())
        found.append((float(np.mean(rates)), float(np.std(rates, ddof=1) / SPLITS**0.5)))
    return found


def _wrong(alpha: float) -> str:
    return f"wrong, α = {alpha:g}"


def curtailed(cells: Sequence[Cell]) -> Table:
    """The lossless rule, for a given policy: every decision the one of all paths."""
    rows: list[list[Value]] = []
    for cell in cells:
        whole = cell.voted(ALL)
        half = np.arange(len(whole)) < len(whole) // 2
        policy = dm.calibrate(whole.take(half), alpha=0.1)
        same, drawn, rest = 0, 0, np.flatnonzero(~half).tolist()
        for row in rest:
            decided, paths = policy.decide(cell.keys[row], id=cell.ids[row]), cell.paths
            answer = decided.answer
            watched = dm.Curtailment(policy, n_paths=cell.paths, id=cell.ids[row])
            for size in range(WAVE, cell.paths, WAVE):
                if (early := watched.early(cell.keys[row][:size])) is not None:
                    answer, paths = early.answer, size
                    break
            same, drawn = same + (answer == decided.answer), drawn + paths
        rows.append([cell.name, len(rest), same, f"{drawn / len(rest) / cell.paths:.1%}"])
        assert same == len(rest), cell.name
    return Table("curtailed", "Curtailed at α = 0.1, in waves of 4", ["", "pools", "same decision", "paths"], rows)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cells = [cell_of(Path(sys.argv[1]), recorded) for recorded in FILES]
    from results import into_page

    page = Path(__file__).with_name("stopping.md")
    every = [*cells, simulated()]
    for name, table in (
        ("rules", compared(cells)),
        ("orders", orders(cells)),
        ("mismatch", broken(every)),
        ("curtailed", curtailed(cells)),
    ):
        into_page(page, name, table)
        print(table.markdown())


if __name__ == "__main__":
    main()
