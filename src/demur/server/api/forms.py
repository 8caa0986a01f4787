"""What clients send, as the description of the interface has it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

_Alpha = Annotated[StrictFloat, Field(gt=0, lt=1)]


class Extension(BaseModel):
    """The field `demur` of a request: what the API has no field for."""

    model_config = ConfigDict(extra="forbid")
    alpha: _Alpha | None = Field(default=None, description="One of the policy's calibrated alphas.")
    guarantee: StrictStr | None = Field(
        default=None, description="One of its guarantees, where it has several at one alpha."
    )
    options: list[StrictStr] | None = Field(default=None, max_length=100, description="Options to choose from.")
    passages: list[StrictStr] | None = Field(default=None, max_length=1000, description="Passages to read.")
    group: StrictStr | list[StrictStr] | None = Field(
        default=None, max_length=200, description="Groups of the question, where the promise is per group."
    )


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="allow")
    include_usage: StrictBool = False


class ChatRequest(BaseModel):
    """A chat completion that is asked for. Whatever else the API has is refused or ignored; see the documentation."""

    model_config = ConfigDict(extra="allow")
    model: StrictStr = Field(max_length=300, description="A policy, as `/v1/models` lists them.")
    messages: list[dict[str, Any]] = Field(min_length=1, max_length=1000)
    stream: StrictBool | None = False
    stream_options: StreamOptions | None = None
    demur: Extension | None = None


class SampledPath(BaseModel):
    """One path that was sampled elsewhere."""

    model_config = ConfigDict(extra="allow")
    text: StrictStr | None = Field(default=None, description="What the model wrote.")
    answer: StrictStr | StrictInt | StrictFloat | None = Field(
        default=None, description="Its answer, where it is known; else it is read from the text."
    )
    finish_reason: StrictStr | None = Field(default=None, max_length=40)
    scores: dict[str, StrictFloat | StrictInt] = Field(default_factory=dict)


class DecideRequest(BaseModel):
    """A pool that was sampled and scored elsewhere, the way the policy was calibrated."""

    model_config = ConfigDict(extra="forbid")
    model: StrictStr = Field(max_length=300)
    id: StrictStr | None = Field(default=None, max_length=300)
    question: StrictStr | None = None
    messages: list[dict[str, Any]] | None = Field(default=None, min_length=1, max_length=1000)
    paths: list[SampledPath] = Field(min_length=1, max_length=10_000)
    demur: Extension | None = None


class FeedbackRequest(BaseModel):
    """What turned out about a decision: the true answer, or whether the vote's answer was right."""

    model_config = ConfigDict(extra="forbid")
    request_id: StrictStr = Field(max_length=100)
    verdict: Literal["right", "wrong", "unsure"] | None = None
    answer: StrictStr | None = Field(default=None, max_length=10_000)
    note: StrictStr | None = Field(default=None, max_length=2_000)
