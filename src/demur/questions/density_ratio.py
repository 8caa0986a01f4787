"""How much more often a question occurs in use than in calibration, read off its text: ω(x) = exp(a + b·φ(x)), clipped.

φ are the question's features. `fit_shift` finds a and b; this needs numpy alone. What was fitted is an estimate, so
that promises which rest on it hold approximately, and say so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from demur.descriptions import digest
from demur.errors import InvalidValue
from demur.questions.features import SIZE, VERSION, Floats, features

_FAR = 700.0
"""exp of more than this is no number."""
_FACTS = ("auroc", "auroc_error", "effective_share", "clipped_traffic", "clipped_reference")
_MOST = 10**7


@dataclass(frozen=True, eq=False)
class DensityRatio:
    """A fitted ratio between questions in use and reference questions."""

    intercept: float
    coefficients: Floats
    """One per feature."""
    clip: float
    """No weight is larger; the mean weight of reference questions is 1 before."""
    traffic: int
    """How many questions of the traffic it was fitted on."""
    reference: int
    fitted_on: frozenset[str] = field(repr=False)
    """Digests of those questions and of the reference ones: they may not calibrate."""
    auroc: float
    """How well it tells traffic from reference questions that it was not fitted on; 1/2 is no better than chance."""
    auroc_error: float
    """The standard error of that."""
    effective_share: float
    """ESS per reference question: what weighting leaves of a calibration set."""
    clipped_traffic: float
    """The share of the traffic whose weight is cut."""
    clipped_reference: float

    def __repr__(self) -> str:
        fitted = f"{self.traffic:,} questions of the traffic against {self.reference:,}"
        return f"DensityRatio({fitted}, AUROC {self.auroc:.3f} ± {self.auroc_error:.3f})"

    @property
    def shift_seen(self) -> bool:
        """Whether traffic and reference can be told apart beyond two standard errors."""
        return self.auroc > 0.5 + 2 * self.auroc_error

    def weights(self, questions: Sequence[str]) -> Floats:
        """ω of each question."""
        return np.minimum(self.unclipped(features(questions)), self.clip)

    def unclipped(self, table: Floats) -> Floats:
        """ω of questions with these features, before large ones are cut."""
        exponent = self.intercept + (table * self.coefficients).sum(axis=1)
        return np.asarray(np.exp(np.clip(np.round(exponent, 9), -_FAR, _FAR)))

    def weight(self, question: str) -> float:
        """ω of one question."""
        return float(self.weights([question])[0])

    @cached_property
    def fingerprint(self) -> str:
        """What tells this ratio from others."""
        return digest(self.document())

    def told(self) -> list[str]:
        """What is to be known of it before it is used, in words."""
        lines = [
            f"fitted on {self.traffic} questions of the traffic and {self.reference} reference questions, which may "
            f"not calibrate; told apart with an AUROC of {self.auroc:.3f} (standard error {self.auroc_error:.3f})",
            f"weighting leaves about {self.effective_share:.0%} of a calibration set's size; weights above "
            f"{self.clip:g} are cut: {self.clipped_traffic:.1%} of the traffic, {self.clipped_reference:.1%} of the "
            "reference",
        ]
        if not self.shift_seen:
            lines.append("no shift to see: traffic and reference cannot be told apart by their words")
        return lines

    def document(self) -> dict[str, Any]:
        """As plain values; `of` reads them back."""
        return {
            "features": VERSION,
            "intercept": self.intercept,
            "coefficients": self.coefficients.tolist(),
            "clip": self.clip,
            "traffic": self.traffic,
            "reference": self.reference,
            **{name: getattr(self, name) for name in _FACTS},
            "fitted_on": sorted(self.fitted_on),
        }

    @classmethod
    def of(cls, document: Any) -> DensityRatio:
        """The ratio that a document describes; ValueError where it is none."""
        if not isinstance(document, Mapping) or set(document) != _NAMES:
            raise InvalidValue(f"a density ratio holds {', '.join(sorted(_NAMES))}, got {document!r:.60}")
        if document["features"] != VERSION:
            raise InvalidValue(
                f"its features are of version {document['features']!r:.20}, and this demur has {VERSION}",
                "fit it again",
            )
        coefficients, digests = document["coefficients"], document["fitted_on"]
        if not (isinstance(coefficients, list) and len(coefficients) == SIZE and all(map(_is_number, coefficients))):
            raise InvalidValue(f"a density ratio has {SIZE} coefficients, all numbers")
        if not (isinstance(digests, list) and all(isinstance(entry, str) for entry in digests)):
            raise InvalidValue("a density ratio names the digests of the questions it was fitted on")
        for name in ("intercept", "clip", *_FACTS):
            if not _is_number(document[name]):
                raise InvalidValue(f"the {name} of a density ratio must be a number, got {document[name]!r:.40}")
        for name in ("traffic", "reference"):
            count = document[name]
            if not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= _MOST:
                raise InvalidValue(f"{name} must be a number of questions, got {count!r:.40}")
        for name in _FACTS:
            if not 0 <= document[name] <= 1:
                raise InvalidValue(f"{name} must lie in [0, 1], got {document[name]!r:.40}")
        return cls(
            float(document["intercept"]),
            np.array(coefficients, dtype=np.float64),
            checked_clip(document["clip"]),
            document["traffic"],
            document["reference"],
            frozenset(digests),
            **{name: float(document[name]) for name in _FACTS},
        )


_NAMES = {"features", "intercept", "coefficients", "clip", "traffic", "reference", "fitted_on", *_FACTS}


def checked_clip(clip: Any) -> float:
    """The largest weight that is not cut."""
    if not _is_number(clip) or not 1 <= clip <= 1e6:
        raise InvalidValue(f"clip must be a number from 1 to 1e6, got {clip!r:.40}")
    return float(clip)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
