"""The calibrated artifact: decides, explains itself, and refuses votes made another way."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quorate import policy_file
from quorate.calibration import GUARANTEES, Guarantee, Marginal, OperatingPoint, set_point
from quorate.decisions import Decisions
from quorate.errors import (
    CalibrationLeak,
    InfeasibleWarning,
    InsufficientCalibration,
    InvalidValue,
    PipelineMismatch,
    PolicyFileError,
)
from quorate.evidence import Evidence, ThresholdKey, as_labels, exceeds
from quorate.forecast import Forecast, forecast
from quorate.normalisers import parse_normaliser
from quorate.records import Decision
from quorate.splits import one_per_unit, question_digest, units
from quorate.tallies import TIE_RULE
from quorate.tie_breaks import parse_tie_break
from quorate.version import __version__
from quorate.voting import Recipe, Votes, vote_again
from quorate.weights import parse_weight

_VOTE_FIELDS = ("answers", "score", "normaliser", "weight", "tie_rule", "tie_break")


@dataclass(frozen=True)
class Seen:
    """The problems a policy was calibrated (or its normaliser tuned) on."""

    ids: frozenset[str] = frozenset()
    questions: frozenset[str] = frozenset()
    """Digests of their question texts."""
    hold_out: float | None = None
    """The share of problems that was set aside beforehand, if any."""

    def includes(self, name: str, question: str | None) -> bool:
        return name in self.ids or bool(
            self.questions and question and question.strip() and question_digest(question) in self.questions
        )


@dataclass(frozen=True, eq=False)
class Policy:
    """Answer above the threshold, abstain otherwise; one operating point per alpha."""

    points: tuple[OperatingPoint, ...]
    evidence: Evidence
    recipe: Recipe
    n_paths: tuple[int, int]
    """The smallest and the largest pool that was calibrated."""
    seen: Seen = field(default_factory=Seen)

    @property
    def n(self) -> int:
        """Calibration questions, duplicates counted once."""
        return self.evidence.n

    @property
    def feasible(self) -> bool:
        """False where some alpha has too few calibration questions, so that it abstains always."""
        return all(point.feasible for point in self.points)

    @property
    def threshold(self) -> float:
        """λ̂ of the strictest operating point."""
        return self.point().threshold

    @cached_property
    def pipeline(self) -> dict[str, Any]:
        """How votes must be made to be decided here."""
        return {**self.recipe.describe(), "n_paths": list(self.n_paths)}

    @cached_property
    def fingerprint(self) -> str:
        return policy_file.digest(self.pipeline)

    def point(self, alpha: float | None = None) -> OperatingPoint:
        """The operating point of an alpha; of the smallest where none is named."""
        if alpha is None:
            return self.points[0]
        for point in self.points:
            if point.alpha == alpha:
                return point
        held = ", ".join(f"{point.alpha:g}" for point in self.points)
        raise InvalidValue(f"this policy was not calibrated for alpha = {alpha}; it holds {held}")

    def decide(
        self,
        answers: Any,
        scores: Any = None,
        *,
        alpha: float | None = None,
        tie_break: float | None = None,
        id: str | None = None,  # noqa: A002 - the record's own word
    ) -> Decision:
        """Vote on one pool the way the policy was calibrated, and answer or abstain."""
        votes = vote_again(
            self.recipe,
            [answers] if not isinstance(answers, np.ndarray) else answers[None],
            None if scores is None else np.asarray(scores, dtype=np.float64)[None],
            tie_break=None if tie_break is None else [tie_break],
            ids=None if id is None else [id],
        )
        return self.decide_votes(votes, alpha=alpha)[0]

    def decide_votes(self, votes: Votes, *, alpha: float | None = None) -> Decisions:
        """Answer or abstain on many votes at once; refuses votes that were made another way."""
        point = self.point(alpha)
        self.check(votes)
        return Decisions(votes, point, exceeds(votes.key, point.threshold_key), self.evidence.p_value(votes.key))

    def check(self, votes: Votes) -> None:
        """Raise PipelineMismatch, with the differences, unless the votes were made as calibrated."""
        differences = describe_differences(self.recipe.describe(), votes.recipe.describe())
        low, high = self.n_paths
        outside = np.flatnonzero((votes.n_paths < low) | (votes.n_paths > high))
        if outside.size:
            row = int(outside[0])
            name = f"pool {row}" if votes.ids is None else f"pool {votes.ids[row]!r}"
            calibrated = f"{low}" if low == high else f"{low} to {high}"
            differences.append(f"n_paths is {calibrated} in the policy, {int(votes.n_paths[row])} in {name}")
        if differences:
            raise PipelineMismatch(differences)

    def p_value(self, votes: Votes) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The conformal p-value of each vote: answered at a marginal alpha exactly when p ≤ alpha."""
        self.check(votes)
        return self.evidence.p_value(votes.key)

    def forecast(self, alpha: float | None = None) -> Forecast:
        """What to expect at an alpha, from calibration data alone."""
        return forecast(self.evidence, self.point(alpha))

    def refuse_seen(self, ids: Sequence[str], questions: Sequence[str | None] | None = None) -> None:
        """Raise CalibrationLeak if any of these problems calibrated this policy."""
        rows = self.seen_rows(ids, questions)
        if rows:
            raise CalibrationLeak(
                f"{len(rows)} of {len(ids)} problems calibrated this policy (the first is {ids[rows[0]]!r}), so they "
                "cannot test it; calibrate with --hold-out 0.5 to keep some back, give a file of other problems, "
                "or evaluate without a policy to get repeated splits"
            )

    def seen_rows(self, ids: Sequence[str], questions: Sequence[str | None] | None = None) -> list[int]:
        """Rows whose id or question text calibrated this policy."""
        texts = questions if questions is not None else [None] * len(ids)
        return [row for row in range(len(ids)) if self.seen.includes(ids[row], texts[row])]

    def summary(self) -> str:
        """The promise and the forecast of each operating point, in words."""
        lines = [f"{self.n} calibration questions, vote accuracy {_show(self.evidence.vote_accuracy)}"]
        for point in self.points:
            expected = self.forecast(point.alpha)
            lines.append(
                f"alpha {point.alpha:g} ({point.guarantee.name.replace('_', ' ')}): " + point.guarantee.promise(self.n)
            )
            if not point.feasible:
                lines.append(f"  abstains always: needs {point.guarantee.n_needed()} calibration questions")
                continue
            lines.append(
                f"  answers above {point.threshold:.4g}: expect {_show(expected.answered)} answered, "
                f"{_show(expected.selective_accuracy)} of those right "
                f"(at least {_show(expected.accuracy_at_least)} with 95 % confidence), "
                f"{_show(expected.confident_error)} of all questions answered wrongly, "
                f"{_show(expected.false_abstention)} right but withheld"
            )
        return "\n".join(lines)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy as JSON."""
        policy_file.write(self._document(), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy and check that its numbers follow from its own evidence."""
        document = policy_file.read(path)
        try:
            return cls._from_document(document)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise PolicyFileError(f"{path} is not a usable policy: {what}") from None

    def _document(self) -> policy_file.Document:
        return {
            "quorate": __version__,
            "points": [
                {
                    "guarantee": point.guarantee.name,
                    **point.guarantee.parameters(),
                    "k": point.k,
                    "threshold": _without_infinity(point.threshold_key),
                }
                for point in self.points
            ],
            "n": self.n,
            "evidence": [
                [*_without_infinity(level), right, wrong]
                for level, right, wrong in zip(
                    self.evidence.levels.tolist(),
                    self.evidence.right.tolist(),
                    self.evidence.wrong.tolist(),
                    strict=True,
                )
            ],
            "pipeline": self.pipeline,
            "fingerprint": self.fingerprint,
            "calibration": {
                "ids": sorted(self.seen.ids),
                "questions": sorted(self.seen.questions),
                "hold_out": self.seen.hold_out,
            },
        }

    @classmethod
    def _from_document(cls, document: policy_file.Document) -> Policy:
        pipeline = document["pipeline"]
        n_paths = pipeline["n_paths"]
        upstream = {name: value for name, value in pipeline.items() if name not in (*_VOTE_FIELDS, "n_paths")}
        if pipeline["tie_rule"] != TIE_RULE:
            raise ValueError(
                f"its tie rule is {pipeline['tie_rule']}, and this quorate has {TIE_RULE}; calibrate again"
            )
        recipe = Recipe(
            weight=parse_weight(pipeline["weight"]),
            normaliser=parse_normaliser(pipeline["normaliser"]),
            tie_break=None if pipeline["tie_break"] is None else parse_tie_break(pipeline["tie_break"]),
            score=pipeline["score"],
            coded=pipeline["answers"] == "codes",
            upstream=upstream,
        )
        rows = document["evidence"]
        levels = np.array([[-math.inf if x is None else x for x in row[:-2]] for row in rows], dtype=np.float64)
        evidence = Evidence(
            levels,
            np.array([row[-2] for row in rows], dtype=np.int64),
            np.array([row[-1] for row in rows], dtype=np.int64),
        )
        if evidence.n != document["n"]:
            raise ValueError(f"its evidence counts {evidence.n} votes, and it says n = {document['n']}")
        points = []
        for stored in document["points"]:
            kind = GUARANTEES[stored["guarantee"]]
            point = set_point(
                kind(**{k: v for k, v in stored.items() if k not in ("guarantee", "k", "threshold")}),
                evidence,
            )
            if point.k != stored["k"] or _without_infinity(point.threshold_key) != stored["threshold"]:
                raise ValueError(f"the threshold of alpha = {point.alpha:g} does not follow from its evidence")
            points.append(point)
        calibration = document["calibration"]
        seen = Seen(frozenset(calibration["ids"]), frozenset(calibration["questions"]), calibration["hold_out"])
        policy = cls(tuple(points), evidence, recipe, (int(n_paths[0]), int(n_paths[1])), seen)
        if policy.fingerprint != document["fingerprint"]:
            raise ValueError("its fingerprint does not match its pipeline")
        return policy


def calibrate(
    votes: Votes,
    correct: ArrayLike,
    *,
    alpha: float | Sequence[float] | None = None,
    guarantee: Guarantee | Sequence[Guarantee] | None = None,
    clusters: Sequence[str | None] | None = None,
    questions: Sequence[str | None] | None = None,
    hold_out: float | None = None,
    strict: bool = False,
) -> Policy:
    """Calibrate a policy on labelled votes.

    `alpha=a` is short for `guarantee=Marginal(a)`; both take several. Rows that share a cluster or a question text
    count once. Too few votes give a policy that abstains always, with a warning; `strict` raises instead.
    """
    labels = as_labels(correct, len(votes))
    if bool((labels & ~votes.answered).any()):
        row = int(np.argmax(labels & ~votes.answered))
        raise InvalidValue(f"vote {row} has no answer, so it cannot be labelled correct")
    ids = votes.ids
    if ids is not None and votes.recipe.normaliser.fitted_on.intersection(ids):
        shared = next(name for name in ids if name in votes.recipe.normaliser.fitted_on)
        raise CalibrationLeak(
            f"the normaliser {votes.recipe.normaliser.name} was fitted on calibration problems ({shared!r}); "
            "fit it on a tune split that calibration does not use"
        )
    key = votes.key
    if clusters is not None or questions is not None:
        names = ids if ids is not None else [str(row) for row in range(len(votes))]
        rows = one_per_unit(names, units(names, clusters, questions))
        key, labels = key[rows], labels[rows]
    evidence = Evidence.of(key, labels)
    points = tuple(set_point(g, evidence) for g in as_guarantees(alpha, guarantee))
    for point in points:
        if not point.feasible:
            message = (
                f"{evidence.n} calibration questions are too few for alpha = {point.alpha:g} "
                f"({point.guarantee.name}), which needs {point.guarantee.n_needed()}"
            )
            if strict:
                raise InsufficientCalibration(message)
            warnings.warn(message + "; the policy abstains always", InfeasibleWarning, stacklevel=2)
    seen = Seen(
        frozenset(ids or ()) | votes.recipe.normaliser.fitted_on,
        frozenset(question_digest(text) for text in questions or () if text and text.strip()),
        hold_out,
    )
    sizes = votes.n_paths
    return Policy(points, evidence, votes.recipe, (int(sizes.min()), int(sizes.max())), seen)


def describe_differences(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """What differs between two pipeline descriptions, in words."""
    return [
        f"{name} is {expected.get(name)!r} in the policy, {found.get(name)!r} here"
        for name in dict.fromkeys([*expected, *found])
        if expected.get(name) != found.get(name)
    ]


def as_guarantees(
    alpha: float | Sequence[float] | None, guarantee: Guarantee | Sequence[Guarantee] | None
) -> list[Guarantee]:
    if (alpha is None) == (guarantee is None):
        raise InvalidValue("give either alpha or guarantee")
    wanted: list[Guarantee]
    if guarantee is not None:
        wanted = list(guarantee) if isinstance(guarantee, Sequence) else [guarantee]
    else:
        wanted = [Marginal(a) for a in np.atleast_1d(np.asarray(alpha, dtype=object)).tolist()]
    if not wanted:
        raise InvalidValue("give at least one alpha")
    wanted.sort(key=lambda g: g.alpha)
    for first, second in pairwise(wanted):
        if first.alpha == second.alpha:
            raise InvalidValue(f"alpha = {first.alpha:g} occurs twice; a policy holds one guarantee per alpha")
    return wanted


def _without_infinity(key: ThresholdKey | list[float]) -> list[float | None]:
    return [x if math.isfinite(x) else None for x in key]


def _show(rate: float) -> str:
    return "–" if math.isnan(rate) else f"{100 * rate:.1f} %"
