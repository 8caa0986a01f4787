"""How votes are made, so that a policy can make them again the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.questions.outliers import OutlierGate
from demur.voting import normalisers
from demur.voting._exact_sums import Floats
from demur.voting._tally import TIE_RULE
from demur.voting.codes import Rows
from demur.voting.gate import Gated
from demur.voting.key import LENGTH, NONE, Column, Component, Jitter, Key, Share, parse_component
from demur.voting.normalisers import Normaliser, parse_normaliser
from demur.voting.weights import Uniform, Weight, parse_weight

DROP = "drop"
Unscored = str | float | None
"""What becomes of a pool with a path that has no score: None refuses the file, DROP leaves the pool out (in use it
abstains), and a number stands in for the score."""


@dataclass(frozen=True)
class Recipe:
    """Weight, normaliser and key; the tie rule is that of `_tally`."""

    weight: Weight = field(default_factory=Uniform)
    normaliser: Normaliser = normalisers.none
    key: Key = field(default_factory=lambda: (Share(),))
    coded: bool = False
    """Answers are integer codes, negative where missing, rather than keys."""

    @property
    def ties(self) -> Key:
        """What breaks ties of the first component."""
        return self.key[1:]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each number of a key is."""
        return tuple(part.name for part in self.key)

    @cached_property
    def jitter(self) -> Jitter | None:
        """The last component, where it is a draw."""
        last = self.key[-1]
        return last if isinstance(last, Jitter) else None

    @cached_property
    def column(self) -> Column | None:
        """The number that pools have to bring along, where one breaks ties."""
        return next((part for part in self.key if isinstance(part, Column)), None)

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """Names of the numbers of paths that the key looks at, besides the scores of the vote."""
        return tuple(dict.fromkeys(name for part in self.key for name in part.needs))

    @property
    def other_scores(self) -> tuple[str, ...]:
        """Those of them that are scores: lengths are read off texts."""
        return tuple(name for name in self.needs if name != LENGTH)

    @cached_property
    def origin(self) -> str | None:
        """The field of paths that says where they come from, where the key looks at that."""
        return next((part.origin for part in self.key if part.origin is not None), None)

    def led_by(self, first: Component) -> Recipe:
        """The same with another confidence, in place of the winner's share or what led the key so far."""
        return replace(self, key=(first, *self.ties))

    @property
    def gate(self) -> OutlierGate | None:
        """What closes the key to outliers, where it has one."""
        return self.key[0].gate if isinstance(self.key[0], Gated) else None

    def gated(self, gate: OutlierGate | None) -> Recipe:
        """The same behind a gate: votes on questions that are unlike its reference have no confidence."""
        if gate is None:
            return self
        if self.gate is not None:
            raise InvalidValue("a key has one gate")
        return replace(self, key=(Gated(self.key[0], gate), *self.ties))

    @property
    def keeps_scores(self) -> bool:
        """Whether the scores of the vote have a say: those that break ties do even where all weights are equal."""
        return not isinstance(self.weight, Uniform) or any(part.looks_at_scores for part in self.key)

    @property
    def told_ties(self) -> str:
        """What breaks ties, in one word each."""
        return ", ".join(part.spec for part in self.ties) or NONE

    def told(self, score: str | None) -> str:
        """How votes are weighed and ranked, in a few words, given the name of the score if it has one."""
        named = "a score without a name" if score is None else f"score {score!r}"
        if isinstance(self.weight, Uniform):
            by_score = f", ties by {named}" if any(part.looks_at_scores for part in self.ties) else ""
            named = f"majority vote{by_score}"
        first = self.key[0].inner if isinstance(self.key[0], Gated) else self.key[0]
        return named if isinstance(first, Share) else f"{named}, confidence {first.name}"

    def describe(self) -> dict[str, Any]:
        """The stage `vote` of a description; `of` reads it back."""
        return {
            "answers": "codes" if self.coded else "keys",
            "normaliser": self.normaliser.spec,
            "weight": self.weight.spec,
            "tie_rule": TIE_RULE,
            "tie_break": _told([part.document() for part in self.ties]),
            **({} if isinstance(self.key[0], Share) else {"confidence": self.key[0].document()}),
        }

    @classmethod
    def of(cls, stage: Mapping[str, Any]) -> Recipe:
        """The recipe that a description tells of; ValueError where it is none."""
        for name in ("weight", "normaliser", "tie_rule", "answers"):
            if not isinstance(stage.get(name), str):
                raise InvalidValue(f"vote.{name} must be a string, got {stage.get(name)!r}")
        ties = stage.get("tie_break")
        if not isinstance(ties, (str, list, type(None))):
            raise InvalidValue(f"vote.tie_break must be a string, a list or null, got {ties!r:.60}")
        each = [] if ties is None else ties if isinstance(ties, list) else [ties]
        key = tuple(parse_component(part) for part in [stage.get("confidence", "share"), *each])
        if stage["tie_rule"] != TIE_RULE:
            raise InvalidValue(f"its tie rule is {stage['tie_rule']}, and this demur has {TIE_RULE}; calibrate again")
        if stage["answers"] not in ("codes", "keys"):
            raise InvalidValue(f"vote.answers must be codes or keys, got {stage['answers']!r}")
        return cls(
            parse_weight(stage["weight"]),
            parse_normaliser(stage["normaliser"]),
            key,
            stage["answers"] == "codes",
        )

    def for_pools(self, tie_break: Any = None) -> Recipe:
        """This recipe for pools that bring the numbers of a tie-breaking column along, where it has one."""
        column = self.column
        if column is None:
            return self
        if tie_break is None:
            raise InvalidValue(f"the policy breaks ties by {column.spec}; give its value for this pool as tie_break=")
        values = Column(tie_break, column.name)
        return replace(self, key=tuple(values if part is column else part for part in self.key))

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


def _told(documents: list[Any]) -> Any:
    """One tie-break as itself, none as null."""
    return documents if len(documents) > 1 else next(iter(documents), None)


def where(bad: NDArray[np.bool_], rows: Rows) -> tuple[int, int]:
    """The pool and the path of the first entry that is bad."""
    row, path = divmod(int(np.argmax(bad)), bad.shape[1])
    return int(rows[row]) if isinstance(rows, np.ndarray) else int(rows.start) + row, path
