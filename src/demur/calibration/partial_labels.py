"""Which guarantees stand on a part of the labels, and of which it is known what labels are of use.

A vote without a label counts as wrong. Errors above a threshold are then never too few.
"""

from __future__ import annotations

from collections.abc import Iterable

from demur.calibration.grouped import Grouped
from demur.calibration.guarantee import Guarantee, RankGuarantee
from demur.calibration.judged import JudgedGuarantee
from demur.calibration.selective import Selective
from demur.calibration.shifted import Shifted
from demur.errors import InvalidValue


def refuse_all_labels_needed(guarantees: Iterable[Guarantee]) -> None:
    """Raise unless each promise stands where votes without a label count as wrong, whichever they are.

    It does where errors above a threshold may only be too many: ranks, weighted or not, and a boundary that is kept at
    every threshold at once.
    """
    for guarantee in guarantees:
        if not isinstance(without_groups(guarantee), (RankGuarantee, Selective, Shifted)):
            raise _needs_all(guarantee)


def refuse_unranked(guarantees: Iterable[Guarantee]) -> None:
    """Raise unless each threshold is the k-th largest wrong key: of no other is it known which labels are of use."""
    for guarantee in guarantees:
        if isinstance(guarantee, Shifted):
            raise InvalidValue(
                "labels from the top are asked for by rank, and under weights there are no ranks",
                "label all votes, or some of them in any order, and calibrate with {partly_labelled}",
            )
        if isinstance(without_groups(guarantee), Selective):
            raise InvalidValue(
                "labels from the top are asked for by rank, and a promise about the answers given has none",
                "label for a promise about all questions, and calibrate with this one",
            )
        if not isinstance(without_groups(guarantee), RankGuarantee):
            raise _needs_all(guarantee)


def _needs_all(guarantee: Guarantee) -> InvalidValue:
    if isinstance(guarantee, JudgedGuarantee):
        return InvalidValue(
            f"the guarantee {guarantee.name} needs a judge's labels of all votes, and people's of a random part",
            "give what people found as {checked}",
        )
    return InvalidValue(
        f"the guarantee {guarantee.name} needs the labels of all votes: its errors need not fall as the "
        "threshold rises",
        "label the rest, or leave this guarantee out",
    )


def without_groups(guarantee: Guarantee) -> Guarantee:
    """The promise of each group, where it is made by group."""
    return guarantee.guarantee if isinstance(guarantee, Grouped) else guarantee
