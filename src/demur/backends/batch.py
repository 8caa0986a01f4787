"""A model that is asked through files: OpenAI's batch format, which `vllm run-batch` and others take too.

    {"custom_id": "…", "method": "POST", "url": "/v1/chat/completions", "body": {…}}                 a request
    {"custom_id": "…", "response": {"status_code": 200, "body": {"choices": […]}}, "error": null}    its answer

Bodies are those of the same model behind an endpoint, and answers are read by the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from demur.backends.openai import request_of
from demur.backends.protocol import Portions, Settings, Wanted, has_choices
from demur.errors import BackendError, PoolFileError
from demur.prompts import Prompt


class Batch:
    """The model of an endpoint, of which requests are written and answers read by somebody else."""

    concurrency = 1

    def __init__(self, model: str) -> None:
        self.model = model

    def describe(self) -> dict[str, Any]:
        return {"backend": "openai", "model": self.model}

    def request(self, custom_id: str, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]) -> dict[str, Any]:
        """The line that asks for some paths of one prompt."""
        route, body = request_of(self.model, prompt, settings, wanted)
        return {"custom_id": custom_id, "method": "POST", "url": f"/v1{route}", "body": body}

    def sample(self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]) -> Portions:
        raise BackendError("this model is asked through files; nothing is sampled here")

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What one line of results or errors says."""

    custom_id: str
    document: Any = None
    """The server's answer, with its choices; None where the request failed."""
    failure: str | None = None
    """Why it failed, in few words that are the same for the same cause."""


def answer_of(record: Any, where: str) -> Answer:
    """A line of a file of results or of errors; raises where it is none."""
    named = record.get("custom_id") if isinstance(record, dict) else None
    if not isinstance(named, str) or not named:
        raise PoolFileError(
            f"{where}: an answer of a batch must have a `custom_id`, got {named!r:.60}; those before are in the run",
            "give it the id of its request, or leave the line out: the next export asks for its paths again",
        )
    if "method" in record or not {"response", "error"} & record.keys():
        raise PoolFileError(
            f"{where}: expected an answer, with `response` or `error`; this is no result of a batch",
            "give the output and error files of the batch, not its requests" if "method" in record else "",
        )
    response = record.get("response")
    told = response if isinstance(response, dict) else {}
    body, status = told.get("body"), told.get("status_code")
    if record.get("error") or (isinstance(status, int) and status >= 400) or not isinstance(response, dict):
        return Answer(named, failure=_cause(record.get("error"), status, body))
    return Answer(named, body) if has_choices(body) else Answer(named, failure="the answer holds no choices")


def _cause(error: Any, status: Any, body: Any) -> str:
    """A code rather than a message, for a message may name the request."""
    inner = [part.get("error", part) for part in (error, body) if isinstance(part, Mapping)]
    words: list[str] = [str(status)] if isinstance(status, int) and status >= 400 else []
    for part in inner:
        told = part if isinstance(part, Mapping) else {"message": part}
        said = [str(told[name])[:80] for name in ("code", "type", "message") if told.get(name)]
        if named := next((word for word in said if word not in words), None):
            words.append(named)
            break
    if not words and isinstance(error, str):
        words.append(error[:80])
    return " ".join(words) or "no answer, and no reason given"
