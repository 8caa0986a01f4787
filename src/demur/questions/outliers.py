"""Is a question unlike the reference ones? A distance, and a conformal p-value for it.

    distance    how far a question's features lie from the mean of reference questions, each in units of its spread
    p-value     (1 + #{ranked reference questions at least as far}) / (1 + how many are ranked)

Half of the reference questions, drawn by their digests, say what is usual; the other half are ranked. So of new
questions that are like the reference at most a share ε has a p-value of ε or less, whatever the features are worth. A
gate turns answers to questions with p ≤ ε into abstentions. It says nothing about whether an answer is right.

The halves must be two: of questions that say what is usual themselves, fewer lie far from it than of new ones, so that
a new question ranked among them would be turned away too often.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.descriptions import digest
from demur.errors import InvalidValue
from demur.questions.asked import Asked, texts_of
from demur.questions.features import SIZE, VERSION, Floats, features
from demur.records import question_digest

FEWEST = 40
"""Reference questions below which nothing can be said about what is usual."""
LEVEL = 0.05
_MOST = 10**7
_LEAST_SPREAD = 0.01
"""Of questions that are all alike, so that a small difference is no large one."""
_NAMES = {"features", "mean", "spread", "ranked", "level", "fitted_on"}


@dataclass(frozen=True, eq=False)
class Likeness:
    """How much questions are like the reference of a gate."""

    p_value: Floats
    """0 where a question has no text, for nothing is known of what it is like."""
    unlike: NDArray[np.bool_]
    """Those that the gate is closed to."""


@dataclass(frozen=True, eq=False)
class OutlierGate:
    """Closed to questions that are unlike the reference ones."""

    mean: Floats
    spread: Floats
    ranked: Floats
    """Distances of the reference questions that p-values are counted among, ascending."""
    level: float
    """ε: p-values up to this close the gate."""
    fitted_on: frozenset[str] = field(repr=False)
    """Digests of the reference questions: they may not calibrate."""

    @classmethod
    def fit(cls, reference: Iterable[Asked], *, level: float = LEVEL) -> OutlierGate:
        """From questions that calibrate nothing: texts, or problems; one that stands twice counts once."""
        texts = texts_of(reference, "the reference", FEWEST)
        return replace(cls.of_texts(texts.items(), level=level), fitted_on=frozenset(texts))

    @classmethod
    def of_texts(cls, questions: Iterable[tuple[str, str]], *, level: float = LEVEL) -> OutlierGate:
        """From digests and texts of different questions: digests draw which of them are ranked. It names none."""
        table = features([text for _, text in sorted(questions)])
        usual, others = table[::2], table[1::2]
        mean, variance = usual.mean(axis=0), usual.var(axis=0)
        # Words that few questions have would count most: the usual spread is added to that of each.
        spread = np.sqrt(variance + variance.mean() + _LEAST_SPREAD**2)
        gate = cls(np.round(mean, 9), np.round(spread, 9), np.zeros(0), checked_level(level), frozenset())
        return replace(gate, ranked=np.sort(gate.distance(others))).checked()

    def __repr__(self) -> str:
        return f"OutlierGate(level {self.level:g}, {len(self.ranked):,} ranked reference questions)"

    def distance(self, table: Floats) -> Floats:
        """Of questions with these features: the root mean square of what they deviate, in units of the spread."""
        deviation = (table - self.mean) / self.spread
        return np.asarray(np.round(np.sqrt((deviation**2).mean(axis=1)), 9))

    def likeness(self, questions: Sequence[str | None]) -> Likeness:
        """The p-value of each question, and which of them are too unlike the reference to be answered."""
        p_value = self.p_value(questions)
        return Likeness(p_value, np.asarray(p_value <= self._largest))

    def p_value(self, questions: Sequence[str | None]) -> Floats:
        """The p-value of each question; 0 where it has no text, for nothing is known of what it is like."""
        known = np.array([question_digest(question) is not None for question in questions], dtype=np.bool_)
        farther = len(self.ranked) - np.searchsorted(self.ranked, self.distance(features(list(map(_text, questions)))))
        return np.where(known, (1 + farther) / (1 + len(self.ranked)), 0.0)

    def closes(self, questions: Sequence[str | None]) -> NDArray[np.bool_]:
        """Which questions are too unlike the reference to be answered."""
        return self.likeness(questions).unlike

    @cached_property
    def _largest(self) -> float:
        """The largest p-value that closes, counted in whole numbers."""
        among = len(self.ranked) + 1
        return int(Fraction(str(self.level)) * among) / among

    def checked(self) -> OutlierGate:
        """Itself, unless so few questions are ranked that no p-value could reach the level."""
        if self._largest == 0:
            raise InvalidValue(
                f"{len(self.ranked)} ranked reference questions are too few for a gate at level {self.level:g}, which "
                f"needs {questions_needed(self.level)} reference questions",
                "give more, or a larger {gate_level}",
            )
        return self

    @cached_property
    def fingerprint(self) -> str:
        """What tells this gate from others."""
        return digest(self.document())

    def document(self) -> dict[str, Any]:
        """As plain values; `of` reads them back."""
        numbers = {name: getattr(self, name).tolist() for name in ("mean", "spread", "ranked")}
        return {"features": VERSION, **numbers, "level": self.level, "fitted_on": sorted(self.fitted_on)}

    @classmethod
    def of(cls, document: Any) -> OutlierGate:
        """The gate that a document describes; ValueError where it is none."""
        if not isinstance(document, Mapping) or set(document) != _NAMES:
            raise InvalidValue(f"an outlier gate holds {', '.join(sorted(_NAMES))}, got {document!r:.60}")
        if document["features"] != VERSION:
            raise InvalidValue(
                f"its features are of version {document['features']!r:.20}, and this demur has {VERSION}",
                "calibrate again",
            )
        mean, spread, ranked = (_numbers(document, name) for name in ("mean", "spread", "ranked"))
        if len(mean) != SIZE or len(spread) != SIZE or (spread <= 0).any() or not 0 < len(ranked) <= _MOST:
            raise InvalidValue(f"an outlier gate has {SIZE} means, as many spreads above 0, and ranked distances")
        if (np.diff(ranked) < 0).any():
            raise InvalidValue("the ranked distances of an outlier gate must ascend")
        digests = document["fitted_on"]
        if not (isinstance(digests, list) and all(isinstance(entry, str) for entry in digests)):
            raise InvalidValue("an outlier gate names the digests of its reference questions")
        return cls(mean, spread, ranked, checked_level(document["level"]), frozenset(digests)).checked()


def checked_level(level: Any) -> float:
    """A level as a number strictly between 0 and 1."""
    if not isinstance(level, (int, float)) or isinstance(level, bool) or not 0 < level < 1:
        raise InvalidValue(f"a gate's level must lie strictly between 0 and 1, got {level!r:.40}")
    return float(level)


def questions_needed(level: float) -> int:
    """How many reference questions a gate at this level needs: half of them are ranked."""
    return max(FEWEST, 2 * math.ceil(1 / Fraction(str(level)) - 1))


def _numbers(document: Mapping[str, Any], name: str) -> Floats:
    values = document[name]
    plain = isinstance(values, list) and all(
        isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) for value in values
    )
    if not plain:
        raise InvalidValue(f"the {name} of an outlier gate must be numbers, got {values!r:.40}")
    return np.array(values, dtype=np.float64)


def _text(question: str | None) -> str:
    return question if isinstance(question, str) else ""
