"""Flags about the questions themselves: how they shift, and which are outliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import demur
from demur.cli.options import Text, mention, option
from demur.errors import InvalidValue

if TYPE_CHECKING:
    from demur.calibration import Guarantee

_SHIFT = "Promise for shifted traffic, by weights that `demur shift` fitted."
Shift = Annotated[Path | None, option("--shift", "FILE", _SHIFT)]
_WEIGHTS = "Promise for shifted traffic, by weights that are known: the field of problems that holds them."
ShiftWeights = Annotated[Text, option("--shift-weights", "FIELD", _WEIGHTS)]
_GATE = (
    "Abstain on questions that are unlike these, which may not calibrate: a question or pool file, a folder of them, "
    "or a run."
)
Gate = Annotated[Text, option("--gate", "QUESTIONS", _GATE)]
_GATE_LEVEL = "The share of questions like those of --gate that it turns away, at most.  [default: 0.05]"
GateLevel = Annotated[float | None, option("--gate-level", "E", _GATE_LEVEL)]
_OUTLIER_LEVEL = "Abstain as well on questions unlike the calibration ones: at most this share of questions like them."
OutlierLevel = Annotated[float | None, option("--outlier-level", "E", _OUTLIER_LEVEL)]


@dataclass(frozen=True)
class ShiftFlags:
    """What is known of traffic that is unlike calibration, as far as flags say."""

    shift: Shift = None
    shift_weights: ShiftWeights = None
    gate: Gate = None
    gate_level: GateLevel = None
    outlier_level: OutlierLevel = None

    def weights(self) -> demur.DensityRatio | str | None:
        """A fitted ratio, the name of a field, or nothing."""
        if self.shift is not None and self.shift_weights is not None:
            raise InvalidValue("--shift fits weights and --shift-weights knows them; choose one")
        return demur.read_shift(self.shift) if self.shift is not None else self.shift_weights

    def guarantees(self, plain: Sequence[Guarantee], weights: demur.DensityRatio | str | None) -> list[Guarantee]:
        """The guarantees under that shift; as they are where there is none."""
        return list(plain) if weights is None else [demur.Shifted(one, weights) for one in plain]

    def outlier_gate(self) -> demur.OutlierGate | None:
        """The gate before the key, where one is asked for."""
        if self.gate is None:
            if self.gate_level is not None:
                raise InvalidValue("--gate-level is of a gate; give its reference questions with --gate")
            return None
        level = 0.05 if self.gate_level is None else self.gate_level
        return demur.OutlierGate.fit(questions_in(self.gate), level=level)


def questions_in(place: str) -> list[demur.Problem]:
    """The questions of a question or pool file, of a folder of either, or of a run."""
    if not _holds_pools(place):
        return demur.datasets.load(place)
    from demur.pools.frames import FramePools

    pools = demur.read_pools(place, partial=True, say=mention).pools
    return list(pools.problems()) if isinstance(pools, FramePools) else [pool.problem for pool in pools]


def _holds_pools(place: str) -> bool:
    """Whether a place is read as pools: files of questions are JSON or CSV, and pools in those are read like them."""
    from demur.pipeline.sources import is_store
    from demur.pools.shards import ENDINGS, is_remote

    if Path(place).is_dir():
        return any(file.name.lower().endswith(ENDINGS) and file.name[0] not in "._" for file in Path(place).iterdir())
    return place.lower().endswith(ENDINGS) or is_remote(place) or is_store(place)
