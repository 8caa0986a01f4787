"""What became of a request: a decision, or an abstention because something failed; and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from demur.pipeline.answerer import Asked
from demur.policy.explanations import compared_early, comparison
from demur.server.api.asking import Question

IN_DOUBT = "promise_in_doubt"
CAUSES = {
    "upstream_failed": "the model gave no whole pool of paths",
    "scoring_failed": "the paths could not be scored",
    "too_slow": "the model took too long",
    "not_decidable": "the paths could not be voted on the way the policy was calibrated",
    "shutting_down": "the service was shutting down",
    IN_DOUBT: "the promise is in doubt, and the service abstains until that is settled",
}
"""Why a request was abstained from without a vote, in the words that a client gets; the log has more."""


@dataclass(frozen=True)
class Failure:
    """Why there is no vote."""

    kind: str
    detail: str
    """For the log alone: it may name servers."""

    @property
    def told(self) -> str:
        return CAUSES[self.kind]


@dataclass(frozen=True)
class Doubt:
    """That the promise may not hold, and since when."""

    since: str
    words: str


@dataclass(frozen=True)
class Outcome:
    """One request, decided."""

    request_id: str
    question: Question
    at: int
    """When it arrived, in milliseconds since 1970."""
    asked: Asked | None
    """The decision and its pool; None where something failed."""
    failure: Failure | None = None
    audited: bool = False
    shared: bool = False
    """Whether its pool was drawn for another request of the same question."""
    seconds: float = 0.0
    """From the request to the decision."""
    waited: float = 0.0
    """Of these, for models."""
    doubt: Doubt | None = None
    overruled: bool = field(default=False)
    """The policy would have answered, and an alarm forbids it."""
    shadow: Mapping[str, Any] | None = None
    """What a shadow would have done: for the log, and not for the caller."""
    idempotency: str | None = None
    """The digest of the idempotency key that the request came with."""
    shown: int | None = None
    """The path that the caller is shown; None where they are shown the answer alone, or nothing."""

    @property
    def decision(self) -> Literal["answered", "abstained"]:
        asked = self.asked
        return "abstained" if asked is None or asked.decision.abstained or self.overruled else "answered"

    @property
    def n_paths(self) -> int:
        return self.question.served.policy.n_paths

    @property
    def reason(self) -> str | None:
        """Why it was abstained from, in one sentence; None where it was answered."""
        if self.decision == "answered":
            return None
        if self.failure is not None or self.asked is None:
            return f"Not answered: {self.failure.told if self.failure else CAUSES['upstream_failed']}."
        if self.overruled:
            return f"Not answered: {CAUSES[IN_DOUBT]}."
        made, names = self.asked.decision, self.question.served.policy.recipe.names
        if (early := self.asked.early) is not None:
            why = compared_early(early, made.key, made.threshold_key, names)
            return (
                f"Not answered after {early.n_paths} of {early.of} paths: {why}, calibrated for alpha {made.alpha:g}."
            )
        if made.outlier_p_value is not None and made.key > made.threshold_key:
            return "Not answered: the question is unlike the calibration questions."
        first = f"confidence {made.key[0]:.3f}"
        why = comparison(first, made.key, made.threshold_key, names, answered=False, form=".3f")
        return f"Not answered: {why}, calibrated for alpha {made.alpha:g}."
