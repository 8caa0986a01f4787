"""Batches by labels that end at a key fixed beforehand, on recorded pools: what is answered, and what is wrong of it.

    python docs/label_end_results.py FOLDER

prints the part of docs/results.md that `docs/results.py` puts there.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from demur import DownTo
from demur.calibration.batch import cut_off
from demur.evidence.counts import Evidence, Floats, exceeds
from demur.pools.fields import FieldChoice
from demur.pools.jsonl import read_pools
from demur.pools.source import PoolSource, vote_pools
from demur.pools.splits import repeated
from demur.study.tables import Table, Value

FILES = {
    "GSM8K / 41 configurations": ("faithfulcot_gsm8k_pool", "answer", ("None",)),
    "ASDiv / GPT-3.5 x 10": ("wisdom_gpt35_nlu_asdiv_single_answer", "answer_x", ()),
    "MATH level 5 / 41 models": ("zeroeval_math_l5", "answer_x", ("___",)),
    "MMLU-Pro / 28 models": ("mmlupro_text_1in8", "answer", ()),
}
SHARES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), None)
SPLITS, N_CAL = 400, 200
LEVEL = Fraction(1, 10)


def label_end_part(folder: Path) -> list[str]:
    """The part of the page about batches by a part of the labels."""
    rows: list[list[Value]] = []
    for name, (file, field, missing) in FILES.items():
        source = PoolSource(read_pools(folder / f"{file}.jsonl.gz"))
        voted = vote_pools(source, FieldChoice(field, missing=missing), source.recipe(tie_break="jitter:0"))
        keys, right = voted.votes.key[voted.in_order], voted.labelled[voted.in_order]
        rows.append([name, *(_measured(keys, right, share) for share in SHARES)])
    header = ["", *("all labels" if share is None else f"top {float(share):.0%} labelled" for share in SHARES)]
    table = Table("label-end", f"Batches by a part of the labels, fdr {float(LEVEL):g}", header, rows)
    return ["## Batches by a part of the labels", "", _INTRODUCTION, "", table.markdown()]


def _measured(keys: Floats, right: NDArray[np.bool_], share: Fraction | None) -> str:
    """Mean yield and mean share of wrong ones among the answers, the rest of the file being the batch."""
    answered, wrong = [], []
    for cal, rest in zip(*repeated(len(right), N_CAL, SPLITS, 0), strict=True):
        known = None if share is None else exceeds(keys[cal], DownTo(share=share).key(keys[cal]))
        p_values = Evidence.of(keys[cal], right[cal], known).p_value(keys[rest])
        chosen = (p_values <= float(cut_off(p_values, LEVEL, N_CAL)) * (1 + 1e-12)) & (keys[rest, 0] > 0)
        answered.append(chosen.mean())
        wrong.append((chosen & ~right[rest]).sum() / max(1, int(chosen.sum())))
    return f"{np.mean(answered):.0%} / {np.mean(wrong):.3f}"


_INTRODUCTION = (
    f"{N_CAL} questions calibrate the jittered majority vote, and the rest of the file is one batch: means over "
    f"{SPLITS} random splits of what is answered, and of the share of wrong ones among the answers. Labels go through "
    "the most confident share of the calibration votes, said beforehand (`label --down-to 50%`), and the others count "
    "as wrong. A batch that ends above the last label is answered as with all of them; where it would go further, "
    "labels are what it lacks."
)


if __name__ == "__main__":
    print("\n".join(label_end_part(Path(sys.argv[1]))))
