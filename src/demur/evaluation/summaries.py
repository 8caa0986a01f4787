"""A rate over random splits, summed up."""

from __future__ import annotations

import math
from dataclasses import dataclass

from demur.evidence.counts import Floats


@dataclass(frozen=True)
class Summary:
    """A rate over splits: mean, standard deviation (ddof = 1) and standard error of the mean."""

    mean: float
    sd: float
    se: float

    @classmethod
    def of(cls, values: Floats) -> Summary:
        if not len(values):
            return cls(math.nan, math.nan, math.nan)
        sd = float(values.std(ddof=1)) if len(values) > 1 else math.nan
        return cls(float(values.mean()), sd, sd / math.sqrt(len(values)))
