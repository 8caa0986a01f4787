"""How votes are made, so that a policy can make them again the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.voting import normalisers
from demur.voting._exact_sums import Floats
from demur.voting._tally import TIE_RULE
from demur.voting.codes import Rows
from demur.voting.normalisers import Normaliser, parse_normaliser
from demur.voting.tie_breaks import Column, TieBreak, parse_tie_break
from demur.voting.weights import Uniform, Weight, parse_weight

DROP = "drop"
Unscored = str | float | None
"""What becomes of a pool with a path that has no score: None refuses the file, DROP leaves the pool out (in use it
abstains), and a number stands in for the score."""


@dataclass(frozen=True)
class Recipe:
    """Weight, normaliser and tie-break; the tie rule is that of `_tally`."""

    weight: Weight = field(default_factory=Uniform)
    normaliser: Normaliser = normalisers.none
    tie_break: TieBreak | None = None
    coded: bool = False
    """Answers are integer codes, negative where missing, rather than keys."""

    def describe(self) -> dict[str, Any]:
        """The stage `vote` of a description; `of` reads it back."""
        return {
            "answers": "codes" if self.coded else "keys",
            "normaliser": self.normaliser.spec,
            "weight": self.weight.spec,
            "tie_rule": TIE_RULE,
            "tie_break": None if self.tie_break is None else self.tie_break.spec,
        }

    @classmethod
    def of(cls, stage: Mapping[str, Any]) -> Recipe:
        """The recipe that a description tells of; ValueError where it is none."""
        for name in ("weight", "normaliser", "tie_rule", "answers"):
            if not isinstance(stage.get(name), str):
                raise InvalidValue(f"vote.{name} must be a string, got {stage.get(name)!r}")
        tie_break = stage.get("tie_break")
        if not isinstance(tie_break, (str, type(None))):
            raise InvalidValue(f"vote.tie_break must be a string or null, got {tie_break!r}")
        if stage["tie_rule"] != TIE_RULE:
            raise InvalidValue(f"its tie rule is {stage['tie_rule']}, and this demur has {TIE_RULE}; calibrate again")
        if stage["answers"] not in ("codes", "keys"):
            raise InvalidValue(f"vote.answers must be codes or keys, got {stage['answers']!r}")
        return cls(
            parse_weight(stage["weight"]),
            parse_normaliser(stage["normaliser"]),
            None if tie_break is None else parse_tie_break(tie_break),
            stage["answers"] == "codes",
        )

    def for_pools(self, tie_break: Any = None) -> Recipe:
        """This recipe for pools that bring the numbers of a tie-breaking column along, where it has one."""
        if not isinstance(self.tie_break, Column):
            return self
        if tie_break is None:
            raise InvalidValue(
                f"the policy breaks ties by {self.tie_break.spec}; give its value for this pool as tie_break="
            )
        return replace(self, tie_break=Column(tie_break, self.tie_break.name))

    def weights(self, scores: Floats, rows: Rows) -> Floats:
        """The weights of a block of pools of one size, each pool's largest being 1; `rows` names them in an error."""
        if self.normaliser is normalisers.none:
            return self.weight(scores)
        with np.errstate(over="ignore", invalid="ignore"):
            normalised = self.normaliser(scores)
        if not np.isfinite(normalised).all():
            pool, path = where(~np.isfinite(normalised), rows)
            raise InvalidValue(
                f"the normaliser {self.normaliser.name} overflows on the scores of pool {pool} (path {path}); "
                "scores must be of moderate size"
            )
        return self.weight(normalised)


def where(bad: NDArray[np.bool_], rows: Rows) -> tuple[int, int]:
    """The pool and the path of the first entry that is bad."""
    row, path = divmod(int(np.argmax(bad)), bad.shape[1])
    return int(rows[row]) if isinstance(rows, np.ndarray) else int(rows.start) + row, path
