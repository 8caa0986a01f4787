"""What became of a request: a decision, or an abstention because something failed; and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from demur.backends.redaction import redacted
from demur.evidence.counts import ThresholdKey
from demur.pipeline.answerer import Asked
from demur.pipeline.shadow_comparison import IN_DOUBT, RAISED
from demur.policy.explanations import comparison
from demur.server.api.asking import Question

CAUSES = {
    "upstream_failed": "the model gave no whole pool of paths",
    "scoring_failed": "the paths could not be scored",
    "too_slow": "the model took too long",
    "not_decidable": "the paths could not be voted on the way the policy was calibrated",
    "shutting_down": "the service was shutting down",
    IN_DOUBT: "the promise is in doubt, and the service abstains until that is settled",
    RAISED: "errors found in audits have raised this threshold above the calibrated one",
}
"""Why a request was abstained from that no vote decided, in the words that a client gets; the log has more."""


@dataclass(frozen=True)
class Failure:
    """Why there is no vote."""

    kind: str
    detail: str
    """For the log alone: it may name servers, and quote what was asked or written."""
    error: str
    """The name of the error's class, which quotes nothing."""

    @property
    def told(self) -> str:
        return CAUSES[self.kind]

    def logged(self, most: int, *, texts: bool) -> str:
        """The detail without secrets; without texts, the class of the error alone."""
        return redacted(self.detail)[:most] if texts else self.error


@dataclass(frozen=True)
class Doubt:
    """That the promise may not hold, and since when."""

    since: str
    words: str


@dataclass(frozen=True)
class MovedThreshold:
    """Where audits have brought the threshold of an operating point, as a process last read it."""

    raised_key: ThresholdKey | None
    """What must be exceeded besides the calibrated threshold; None where that one alone decides."""
    known_errors: int
    """How many audited errors that rests on: the log has it, so that a bound can say how old the state was."""


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
    """From the request to the decision, once it is committed; in the log itself, to the decision."""
    waited: float = 0.0
    """Of these, for models."""
    doubt: Doubt | None = None
    closed: bool = False
    """An alarm forbids answers."""
    moved: MovedThreshold | None = None
    """The threshold that audits move; None where they move none."""
    overruled: str | None = None
    """The cause that forbids it where the policy would have answered: an alarm, or a threshold that is raised."""
    shadow: Mapping[str, Any] | None = None
    """What a shadow would have done: for the log, and not for the caller."""
    caller: str | None = None
    """The id of the key that the request came with; None where no keys are asked for."""
    idempotency: str | None = None
    """The digest of the idempotency key that the request came with."""
    shown: int | None = None
    """The path that the caller is shown; None where they are shown the answer alone, or nothing."""

    @property
    def decision(self) -> Literal["answered", "abstained"]:
        asked = self.asked
        return "abstained" if asked is None or asked.decision.abstained or self.overruled else "answered"

    @property
    def raised_key(self) -> ThresholdKey | None:
        """The threshold that audits have raised above the policy's own; None where that one decided, or nothing."""
        raised = None if self.moved is None else self.moved.raised_key
        above = raised is not None and self.asked is not None and raised > self.asked.decision.threshold_key
        return raised if above else None

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
        made = self.asked.decision
        if self.overruled == RAISED and self.raised_key is not None:
            first, names = f"confidence {made.key[0]:.3f}", self.question.served.policy.recipe.names
            why = comparison(first, made.key, self.raised_key, names, answered=False, form=".3f")
            return f"Not answered: {why}; {CAUSES[RAISED]}."
        if self.overruled is not None:
            return f"Not answered: {CAUSES[self.overruled]}."
        why = made.explanation.partition(f" {self.question.rule.promise}")[0]
        return f"Not answered{why.removeprefix('Abstained')}"
