"""Where labelling ends, said before the first label: all votes above a key are labelled, and no others.

    K    the key: of a confidence, or below the most confident share of the calibration votes
    W    wrong, or not above K: what a vote without a label counts as

Whether a vote is W depends on nothing but that vote, so a promise about W stands as one does about full labels, and
what is wrong is W. Batches need that (theory: few wrong ones among the answers): where labels decide how far
labelling goes, W depends on the labels of other votes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from demur.calibration.guarantee import Level, exact_alpha
from demur.errors import InvalidValue
from demur.evidence.counts import Evidence, Floats, ThresholdKey, answer_all

_NUMBER = re.compile(r"[0-9]{0,18}\.?[0-9]{1,18}")


@dataclass(frozen=True)
class DownTo:
    """Labels go down to a confidence, without it, or through the most confident share of the votes; give one of both.

    It must be chosen before the first label: from a number, or from what is known of votes without labels.
    """

    confidence: float | None = None
    share: Level | None = None

    def __post_init__(self) -> None:
        if (self.confidence is None) == (self.share is None):
            raise InvalidValue("labels go down to a confidence or through a share of the votes; give one of the two")
        if self.share is not None:
            object.__setattr__(self, "share", exact_alpha(self.share, "share"))
            return
        number = isinstance(self.confidence, (int, float)) and not isinstance(self.confidence, bool)
        if not number or not 0 <= float(self.confidence or 0) < 1:
            raise InvalidValue(
                f"labels go down to a confidence of at least 0 and less than 1, got {self.confidence!r:.60}"
            )
        object.__setattr__(self, "confidence", float(self.confidence or 0))

    @classmethod
    def of(cls, text: str) -> DownTo:
        """From what people write: 0.8 is a confidence, 40% a share of the votes."""
        number = text.removesuffix("%")
        if not _NUMBER.fullmatch(number):
            raise InvalidValue(
                f"labels go down to a confidence, such as 0.8, or through a share of the votes, such as "
                f"40%; got {text!r:.60}"
            )
        return cls(float(number)) if number == text else cls(share=Fraction(number) / 100)

    @classmethod
    def of_document(cls, stored: Any) -> DownTo:
        """From plain values."""
        if not isinstance(stored, dict) or len(stored) != 1 or not set(stored) <= {"confidence", "share"}:
            raise InvalidValue(f"labels go down to a confidence or through a share, got {stored!r:.60}")
        return cls(**stored)

    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {"confidence": self.confidence} if self.share is None else {"share": str(self.share)}

    def __str__(self) -> str:
        """As people write it."""
        if self.share is None:
            return f"{self.confidence:g}"
        return f"{float(100 * Fraction(self.share)):g}%"

    def key(self, keys: Floats) -> ThresholdKey:
        """K: of these calibration votes, those that exceed it are to be labelled. Equal votes are together."""
        width = keys.shape[1]
        if self.confidence is not None:
            return (self.confidence, *[math.inf] * (width - 1))
        ordered = keys[np.lexsort(keys.T[::-1])[::-1]]
        last = tuple(ordered[math.ceil(Fraction(self.share or 0) * len(keys)) - 1].tolist())
        below = next((key for key in map(tuple, ordered.tolist()) if key < last), None)
        return answer_all(width) if below is None or below[0] == 0 else below


def refuse_labels_below(evidence: Evidence, down_to: ThresholdKey) -> None:
    """Raise if a vote at or below the key at which labelling was to end is known to be right.

    One that is known to be wrong counts as wrong with a label and without one.
    """
    below = evidence.n_right - evidence.above(down_to)[0]
    if below:
        raise InvalidValue(
            f"{below} votes are labelled right at or below {down_to[0]:.4g}, where labelling was to end",
            "leave these labels out, or leave {down_to} out",
        )
