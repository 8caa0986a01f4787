"""What the review page sends."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

MOST_SKIPPED = 500


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Wanted(_Form):
    """Which items of the queue are meant; what is left out is any."""

    reason: Literal["abstained", "audit"] | None = Field(
        default=None, description="abstained: not audited; audit: marked for audit, whatever became of it."
    )
    policy: StrictInt | None = Field(default=None, ge=0, description="The number of a policy's version.")
    since: StrictInt | None = Field(default=None, ge=0, description="Milliseconds since 1970.")
    until: StrictInt | None = Field(default=None, ge=0)
    order: Literal["oldest", "contested"] = "oldest"


class ClaimRequest(Wanted):
    """Give me an item to judge: the first that nobody holds, or that one."""

    request: StrictStr | None = Field(default=None, max_length=200)
    skipping: list[StrictStr] = Field(default=[], max_length=MOST_SKIPPED, description="Requests not wanted now.")
    blind: Literal["audits", "always", "never"] = "audits"


class LeaseRequest(_Form):
    """An item that is held, and the token of its lease."""

    request: StrictStr = Field(max_length=200)
    token: StrictStr = Field(max_length=200)


class VerdictRequest(LeaseRequest):
    """What a person found: whether the vote is right, or what the true answer is, or both."""

    verdict: Literal["right", "wrong", "unsure"] | None = Field(
        default=None, description="Left out, the true answer says whether the vote is right."
    )
    answer: StrictStr | None = Field(default=None, min_length=1, max_length=10_000, description="The true answer.")
    note: StrictStr | None = Field(default=None, max_length=2_000)


class UndoRequest(_Form):
    """Take back my verdict on a request."""

    request: StrictStr = Field(max_length=200)
