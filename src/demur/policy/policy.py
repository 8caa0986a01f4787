"""The calibrated artifact: decides, explains itself, and refuses votes made another way."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from demur.calibration import Forecast, Rule, exact_alpha, forecast
from demur.errors import CalibrationLeak, InvalidValue, PipelineMismatch, PolicyFileError
from demur.evidence.counts import Floats
from demur.policy import file
from demur.policy.decisions import Decisions, decision_on
from demur.policy.document import PolicyParts, from_document, to_document
from demur.policy.signature import Key
from demur.pools.splits import Texts
from demur.records import Decision
from demur.voting.one_pool import vote_one
from demur.voting.votes import Votes

if TYPE_CHECKING:
    from demur.pools.source import PoolSource
    from demur.pools.voted_pools import VotedPools


@dataclass(frozen=True, eq=False)
class Policy(PolicyParts):
    """Answer above the threshold, abstain otherwise; one operating point per guarantee and alpha.

    `points` are its rules, the smallest alpha first; `evidence` the calibration votes as counts; `recipe` how votes
    are made; `n_paths` the smallest and largest pool it may decide; `seen` the problems that calibrated it.
    """

    @property
    def n(self) -> int:
        """Calibration questions, duplicates counted once."""
        return self.evidence.n

    @property
    def feasible(self) -> bool:
        """False where some alpha has too few calibration questions, so that it abstains always."""
        return all(rule.feasible for rule in self.points)

    @property
    def threshold(self) -> float:
        """λ̂ of the strictest operating point."""
        return self.point().threshold

    @property
    def score(self) -> str | None:
        """The name of its score; None for the majority vote."""
        return self.upstream.score.get("name")

    @property
    def pipeline(self) -> dict[str, Any]:
        """How votes must be made to be decided by this policy, stage by stage, as plain values."""
        return self.description.document()

    @cached_property
    def fingerprint(self) -> str:
        return self.description.fingerprint

    def point(self, alpha: float | None = None, guarantee: str | None = None) -> Rule:
        """The rule of an alpha and a guarantee's name; the strictest of those that what is named leaves."""
        wanted = None if alpha is None else float(exact_alpha(alpha))
        fitting = (rule for rule in self.points if wanted in (None, rule.alpha))
        left = [rule for rule in fitting if guarantee in (None, rule.guarantee.name)]
        named = {f"alpha = {alpha}": alpha, f"guarantee {guarantee!r}": guarantee}
        asked = " and ".join(text for text, value in named.items() if value is not None)
        known = ", ".join(f"{rule.alpha:g} ({rule.guarantee.name})" for rule in self.points)
        if not left:
            raise InvalidValue(f"this policy was not calibrated for {asked}; it holds {known}")
        if alpha is not None and len(left) > 1:
            raise InvalidValue(f"this policy holds several guarantees for {asked}: {known}", "name one as {guarantee}")
        return left[0]

    def decide(
        self,
        answers: Any,
        scores: Any = None,
        *,
        alpha: float | None = None,
        guarantee: str | None = None,
        tie_break: float | None = None,
        id: str | None = None,  # noqa: A002 - the record's own word
    ) -> Decision:
        """Vote on one pool the way the policy was calibrated, and answer or abstain."""
        rule = self.point(alpha, guarantee)
        if not self.recipe.coded and isinstance(answers, np.ndarray) and np.issubdtype(answers.dtype, np.integer):
            raise PipelineMismatch(["vote.answers is 'keys' in the policy, 'codes' here"])
        vote = vote_one(self.recipe.for_pools(tie_break), answers, scores, id=id)
        if not self.n_paths[0] <= vote.n_paths <= self.n_paths[1]:
            raise PipelineMismatch([f"n_paths is {self._sizes} in the policy, {vote.n_paths} in this pool"])
        key = (vote.confidence,) if vote.secondary is None else (vote.confidence, vote.secondary)
        return decision_on(vote, rule, self.evidence.p_value_of(key), answered=key > rule.threshold_key)

    def vote(
        self,
        source: PoolSource,
        *,
        labelled: bool = False,
        correct: str | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> VotedPools:
        """Vote on the pools of a file or a run the way the policy was calibrated."""
        from demur.pools.fields import FieldChoice  # arrays do without what reads and compares answers
        from demur.pools.source import vote_pools

        how = FieldChoice.of(self.description), self.recipe
        return vote_pools(source, *how, labelled=labelled, correct=correct, assumed=self.upstream, say=say)

    def decide_votes(self, votes: Votes, *, alpha: float | None = None, guarantee: str | None = None) -> Decisions:
        """Answer or abstain on many votes at once; refuses votes that were made another way."""
        rule = self.point(alpha, guarantee)
        self.check(votes)
        return Decisions(votes, rule, rule.answers(votes.key), self.evidence.p_value(votes.key))

    def check(self, votes: Votes) -> None:
        """Raise PipelineMismatch, with the differences, unless the votes were made as calibrated."""
        differences = []
        if votes.recipe is not self.recipe or votes.upstream is not self.upstream:
            differences = self.description.differences(votes.description)
        sizes, (low, high) = votes.n_paths, self.n_paths
        outside = np.flatnonzero((sizes < low) | (sizes > high))
        if outside.size:
            row = int(outside[0])
            name = f"pool {row}" if votes.ids is None else f"pool {votes.ids[row]!r}"
            differences.append(f"n_paths is {self._sizes} in the policy, {int(sizes[row])} in {name}")
        if differences:
            raise PipelineMismatch(differences)

    @property
    def _sizes(self) -> str:
        low, high = self.n_paths
        return f"{low}" if low == high else f"{low} to {high}"

    def p_value(self, votes: Votes) -> Floats:
        """The conformal p-value of each vote: answered at a marginal alpha exactly when p ≤ alpha."""
        self.check(votes)
        return self.evidence.p_value(votes.key)

    def forecast(self, alpha: float | None = None, guarantee: str | None = None) -> Forecast:
        """What to expect at an alpha, from calibration data alone."""
        return forecast(self.evidence, self.point(alpha, guarantee))

    def refuse_seen(self, ids: Sequence[str], questions: Texts | None = None, clusters: Texts | None = None) -> None:
        """Raise CalibrationLeak if any of these problems calibrated this policy: by id, question text or cluster."""
        rows = self.seen.rows(ids, questions, clusters)
        if rows:
            raise CalibrationLeak(
                f"{len(rows)} of {len(ids)} problems calibrated this policy (the first is {ids[rows[0]]!r}), so they "
                "cannot test it",
                "calibrate with {hold_out=0.5} to keep some back, give other problems, or evaluate by repeated splits",
            )

    def summary(self) -> str:
        """The promise and the forecast of each operating point, in words."""
        lines = [f"{self.n} calibration questions, vote accuracy {_show(self.evidence.vote_accuracy)}"]
        for rule in self.points:
            expected = forecast(self.evidence, rule)
            lines.append(f"alpha {rule.alpha:g} ({rule.guarantee.name.replace('_', ' ')}): {rule.promise}")
            if not rule.feasible:
                lines.append(f"  abstains always: needs {rule.guarantee.n_needed()} calibration questions")
                continue
            lines.append(
                f"  answers above {rule.threshold:.4g}: expect {_show(expected.answered)} answered, "
                f"{_show(expected.selective_accuracy_corrected)} of those right "
                f"(at least {_show(expected.accuracy_at_least)} with 95 % confidence), "
                f"{_show(expected.expected_confident_error)} of all questions answered wrongly, "
                f"{_show(expected.false_abstention)} right but withheld"
            )
        return "\n".join(lines)

    def save(self, path: str | os.PathLike[str], *, key: Key | None = None) -> None:
        """Write the policy as JSON, signed where there is a key."""
        file.write(to_document(self), path, key)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, key: Key | None = None) -> Policy:
        """Read a policy, check each of its values, and that its thresholds follow from its own evidence.

        With a key, a file that was not signed with it is refused; without one, no signature is looked at.
        """
        document = file.read(path, key)
        try:
            return cls(**vars(from_document(document)))
        except ValueError as error:
            raise PolicyFileError(f"{path} is not a usable policy: {error}") from None


def _show(rate: float) -> str:
    return "–" if math.isnan(rate) else f"{100 * rate:.1f} %"
