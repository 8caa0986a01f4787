"""The calibrated artifact: decides, explains itself, and refuses votes made another way."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from demur import policy_file
from demur.calibration import Guarantee, Marginal, OperatingPoint, exact_alpha, set_point
from demur.decisions import Decisions
from demur.errors import (
    CalibrationLeak,
    InfeasibleWarning,
    InsufficientCalibration,
    InvalidValue,
    PipelineMismatch,
    PolicyFileError,
)
from demur.evidence import Evidence, as_labels, exceeds
from demur.forecast import Forecast, forecast
from demur.policy_document import PolicyParts, from_document, to_document
from demur.records import Decision
from demur.seen import Seen
from demur.splits import one_per_unit, units
from demur.voting import Votes, vote_again


@dataclass(frozen=True, eq=False)
class Policy(PolicyParts):
    """Answer above the threshold, abstain otherwise; one operating point per alpha.

    `points` are its operating points, the smallest alpha first; `evidence` the calibration votes as counts; `recipe`
    how votes are made; `n_paths` the smallest and largest pool it may decide; `seen` the problems that calibrated it.
    """

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
    def fingerprint(self) -> str:
        return policy_file.digest(self.pipeline)

    def point(self, alpha: float | None = None) -> OperatingPoint:
        """The operating point of an alpha; of the smallest where none is named."""
        if alpha is None:
            return self.points[0]
        wanted = float(exact_alpha(alpha))
        for point in self.points:
            if point.alpha == wanted:
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

    def refuse_seen(
        self,
        ids: Sequence[str],
        questions: Sequence[str | None] | None = None,
        clusters: Sequence[str | None] | None = None,
    ) -> None:
        """Raise CalibrationLeak if any of these problems calibrated this policy: by id, question text or cluster."""
        rows = self.seen.rows(ids, questions, clusters)
        if rows:
            raise CalibrationLeak(
                f"{len(rows)} of {len(ids)} problems calibrated this policy (the first is {ids[rows[0]]!r}), so they "
                "cannot test it; calibrate with --hold-out 0.5 to keep some back, give a file of other problems, "
                "or evaluate without a policy to get repeated splits"
            )

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
                f"{_show(expected.selective_accuracy_corrected)} of those right "
                f"(at least {_show(expected.accuracy_at_least)} with 95 % confidence), "
                f"{_show(expected.expected_confident_error)} of all questions answered wrongly, "
                f"{_show(expected.false_abstention)} right but withheld"
            )
        return "\n".join(lines)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy as JSON."""
        policy_file.write(to_document(self), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy, check each of its values, and that its thresholds follow from its own evidence."""
        document = policy_file.read(path)
        try:
            parts = from_document(document)
        except ValueError as error:
            raise PolicyFileError(f"{path} is not a usable policy: {error}") from None
        return cls(parts.points, parts.evidence, parts.recipe, parts.n_paths, parts.seen)


IF_KNOWN = ("model", "temperature")
"""Parts of a pipeline that not every file names: compared only where both sides do."""


def calibrate(
    votes: Votes,
    correct: ArrayLike,
    *,
    alpha: float | Sequence[float] | None = None,
    guarantee: Guarantee | Sequence[Guarantee] | None = None,
    clusters: Sequence[str | None] | None = None,
    questions: Sequence[str | None] | None = None,
    n_paths: tuple[int, int] | None = None,
    hold_out: float | None = None,
    strict: bool = False,
) -> Policy:
    """Calibrate a policy on labelled votes.

    `alpha=a` is short for `guarantee=Marginal(a)`; both take several. Rows that share a cluster or a question text
    count once. Too few votes give a policy that abstains always, with a warning; `strict` raises instead. The policy
    will decide pools of the sizes it was calibrated on, or of those that `n_paths` says the questions come with.
    """
    labels = as_labels(correct, len(votes))
    if bool((labels & ~votes.answered).any()):
        row = int(np.argmax(labels & ~votes.answered))
        raise InvalidValue(f"vote {row} has no answer, so it cannot be labelled correct")
    ids = votes.ids
    for name, column in (("clusters", clusters), ("questions", questions)):
        if column is not None and len(column) != len(votes):
            raise InvalidValue(f"{name} must hold one entry per vote, {len(votes)} of them, got {len(column)}")
    if ids is None and votes.recipe.normaliser.fitted_on:
        raise InvalidValue(
            "a fitted normaliser needs votes with ids, to check that calibration does not use its problems"
        )
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
    seen = Seen.of(votes.recipe.normaliser.fitted_on.union(ids or ()), questions, clusters, hold_out)
    sizes = votes.n_paths
    low, high = n_paths or (int(sizes.min()), int(sizes.max()))
    if not 1 <= low <= int(sizes.min()) <= int(sizes.max()) <= high:
        raise InvalidValue(f"n_paths must include every calibrated pool, {sizes.min()} to {sizes.max()}, got {n_paths}")
    return Policy(points, evidence, votes.recipe, (low, high), seen)


def describe_differences(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """What differs between two pipeline descriptions, in words."""
    return [
        f"{name} is {expected.get(name)!r} in the policy, {found.get(name)!r} here"
        for name in dict.fromkeys([*expected, *found])
        if expected.get(name) != found.get(name)
        and not (name in IF_KNOWN and None in (expected.get(name), found.get(name)))
    ]


def as_guarantees(
    alpha: float | Sequence[float] | None, guarantee: Guarantee | Sequence[Guarantee] | None
) -> list[Guarantee]:
    if (alpha is None) == (guarantee is None):
        raise InvalidValue("give either alpha or guarantee")
    wanted: list[Guarantee]
    if guarantee is not None:
        wanted = list(guarantee) if isinstance(guarantee, Sequence) else [guarantee]
        if not all(isinstance(each, Guarantee) for each in wanted):
            raise InvalidValue(
                f"guarantee must be Marginal, Smoothed or HighProbability objects, got {guarantee!r:.60}"
            )
    else:
        wanted = [Marginal(a) for a in np.atleast_1d(np.asarray(alpha, dtype=object)).tolist()]
    if not wanted:
        raise InvalidValue("give at least one alpha")
    wanted.sort(key=lambda g: g.alpha)
    for first, second in pairwise(wanted):
        if first.alpha == second.alpha:
            raise InvalidValue(f"alpha = {first.alpha:g} occurs twice; a policy holds one guarantee per alpha")
    return wanted


def _show(rate: float) -> str:
    return "–" if math.isnan(rate) else f"{100 * rate:.1f} %"
