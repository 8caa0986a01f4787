"""A promise per group on recorded pools: errors in each group with one threshold for all, and with one each.

    python docs/groups_results.py FOLDER

prints the part of docs/results.md that `docs/results.py` puts there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from demur.calibration import Grouped, Marginal
from demur.evaluation.group_splits import ALL, GroupResult, evaluate_groups
from demur.pools.fields import FieldChoice
from demur.pools.jsonl import read_pools
from demur.pools.source import PoolSource, vote_pools
from demur.study.tables import Table, Value

FILE, FIELD = "mmlupro_text_1in8", "category"
SPLITS, N_CAL = 400, 750
ALPHAS = (0.1, 0.05)


def groups_part(folder: Path) -> list[str]:
    """The part of the page about promises per group."""
    source = PoolSource(read_pools(folder / f"{FILE}.jsonl.gz"))
    voted = vote_pools(source, FieldChoice(group_field=FIELD), source.recipe(tie_break="jitter:0"))
    tables = []
    for alpha in ALPHAS:
        guarantees = [Marginal(alpha), Grouped(Marginal(alpha))]
        results = evaluate_groups(voted, guarantees, n_cal=N_CAL, splits=SPLITS)
        tables.append(_table(alpha, results))
    return ["## Group by group", "", _INTRODUCTION, "", *(table.markdown() for table in tables)]


def _table(alpha: float, results: Sequence[GroupResult]) -> Table:
    pooled, own = (
        {one.group: one for one in results if isinstance(one.guarantee, kind)} for kind in (Marginal, Grouped)
    )
    rows: list[list[Value]] = []
    for name, one in own.items():
        all_ = pooled[name]
        exact = "–" if name == ALL else f"{one.exact_mean:.3f} (z {one.z:+.1f})"
        rows.append([name, one.n, f"{all_.confident_error.mean:.3f}", f"{one.confident_error.mean:.3f}", exact,
                     f"{all_.answered.mean:.0%}", f"{one.answered.mean:.0%}"])  # fmt: skip
    header = ["Category", "questions", "wrong, one threshold", "wrong, one per group", "exact mean",
              "answered, one threshold", "answered, one per group"]  # fmt: skip
    rates = {kind: [one.confident_error.mean for name, one in found.items() if name != ALL]
             for kind, found in (("pooled", pooled), ("own", own))}  # fmt: skip
    above = {kind: sum(rate > alpha for rate in values) for kind, values in rates.items()}
    note = (
        f"One threshold for all exceeds alpha in {above['pooled']} of {len(own) - 1} categories, by up to "
        f"{max(rates['pooled']) - alpha:.3f}; one per category in {above['own']}, the largest rate being "
        f"{max(rates['own']):.3f}."
    )
    return Table("groups", f"MMLU-Pro / 28 models by category, alpha {alpha:g}", header, rows, note=note)


_INTRODUCTION = (
    f"MMLU-Pro has a category per question. Over {SPLITS} random splits, {N_CAL} of 1503 questions calibrate the "
    "jittered majority vote, all of them labelled: once with one threshold for all (`Marginal`), once with one per "
    "category (`Grouped(Marginal)`). One threshold keeps its promise over all questions, and neither keeps nor spends "
    "it in each category; with a threshold each, every category keeps it. Few questions of a category allow few whole "
    "errors, so that less than alpha is spent: that is the price. The exact mean is given how many questions of a "
    "category calibrate in each split, and z counts its standard errors."
)


if __name__ == "__main__":
    print("\n".join(groups_part(Path(sys.argv[1]))))
