"""What clients get, as the description of the interface has it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Reply(BaseModel):
    model_config = ConfigDict(extra="allow")


class ErrorTold(_Reply):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorReply(_Reply):
    """Why there is no decision, in OpenAI's shape."""

    error: ErrorTold


class Vote(_Reply):
    answer: Any
    paths: int = Field(ge=0)
    share: float = Field(ge=0, le=1)


class PathsUsed(_Reply):
    drawn: int = Field(ge=0)
    of: int = Field(ge=1)


class DecisionReply(_Reply):
    """All that is known of a decision."""

    request_id: str
    decision: Literal["answered", "abstained"]
    policy: str
    alpha: float = Field(gt=0, lt=1)
    guarantee: str
    promise: str
    answer: Any = Field(description="None where it was abstained.")
    confidence: float | None
    threshold: float | None
    calibrated_threshold: float | None = Field(default=None, description="Where audits have raised it: what it was.")
    p_value: float | None
    votes: list[Vote]
    without_answer: int = Field(ge=0)
    paths: PathsUsed
    reason: str | None = Field(default=None, description="Why it was abstained.")
    cause: str | None = Field(default=None, description="Why, where no vote decided it.")
    ignored: list[str] = Field(default_factory=list, description="Fields of the request that change nothing here.")


class Message(_Reply):
    role: Literal["assistant"]
    content: str
    refusal: str | None


class Choice(_Reply):
    index: Literal[0]
    message: Message
    logprobs: None
    finish_reason: Literal["stop"]


class Usage(_Reply):
    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)
    total_tokens: int = Field(ge=0)


class CompletionReply(_Reply):
    """A chat completion, with the decision beside it."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice] = Field(min_length=1, max_length=1)
    usage: Usage
    demur: DecisionReply


class FeedbackReply(_Reply):
    request_id: str
    verdict: Literal["right", "wrong", "unsure"] | None
    answer: str | None
    said_before: int = Field(ge=0, description="How often the same caller had said something else of it.")
    by: Literal["reviewer", "caller"] = Field(
        description="A reviewer's word is a label. A caller's is shown to reviewers, and counts for nothing."
    )


class ModelReply(_Reply):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelsReply(_Reply):
    object: Literal["list"]
    data: list[ModelReply]
