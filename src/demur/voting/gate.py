"""A gate before the key: where a question is unlike the reference ones, its vote has no confidence.

The gate is measured against questions that calibrate nothing, and is part of the calibrated statistic, in calibration
as in use. So whatever is promised of votes by their key is promised of gated ones too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from demur.errors import InvalidValue
from demur.questions.outliers import OutlierGate
from demur.voting._exact_sums import Floats
from demur.voting.key import READERS, Component, Counted, parse_component

GATED = "gated_"


class Gated(Component):
    """Another component, the first of a key; 0 wherever the gate is closed."""

    def __init__(self, inner: Component, gate: OutlierGate) -> None:
        self.inner, self.gate = inner, gate
        self.name, self.spec = f"{GATED}{inner.name}", f"gated@1:{inner.spec}:{gate.fingerprint}"
        self.fitted_on, self.needs = inner.fitted_on, inner.needs
        self.origin, self.looks_at_scores = inner.origin, inner.looks_at_scores

    def of(self, counted: Counted) -> Floats:
        if counted.asked is None:
            raise InvalidValue("an outlier gate looks at question texts, and none are known", "give {questions}")
        return np.where(self.gate.closes(counted.asked), 0.0, self.inner.of(counted))

    def document(self) -> Any:
        return {"component": "gated", "of": self.inner.document(), "gate": self.gate.document()}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Gated:
        """From plain values, each of which is checked."""
        if set(document) != {"component", "of", "gate"}:
            raise InvalidValue(f"a gated component holds a gate and what it is before, got {sorted(document)!r:.60}")
        inner = parse_component(document["of"])
        if isinstance(inner, Gated):
            raise InvalidValue("a key has one gate")
        return cls(inner, OutlierGate.of(document["gate"]))


READERS["gated"] = Gated.read
