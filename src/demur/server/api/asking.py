"""From the body of a chat completion to one question, in the policy's template; or why it is not one.

A policy promises for questions put the way its calibration questions were. What a client may say without changing that
is ignored and named in the reply; what would change it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from demur.calibration import Rule
from demur.errors import DemurError, InvalidValue
from demur.policy.system_prompts import other_systems
from demur.prompts.conversations import Conversation, conversation_of, system_of
from demur.records import Problem
from demur.server.api.forms import ChatRequest, Extension
from demur.server.errors import refused
from demur.server.served import Models, Served
from demur.tasks import MC, task_named

_REFUSED = {
    "tools": "the policy was not calibrated on requests with tools",
    "functions": "the policy was not calibrated on requests with functions",
    "tool_choice": "the policy was not calibrated on requests with tools",
    "function_call": "the policy was not calibrated on requests with functions",
    "audio": "answers are texts: audio cannot be asked for",
    "web_search_options": "the policy was not calibrated on requests that search the web",
    "logprobs": "a decision rests on many paths, and has no log-probabilities of its own",
    "top_logprobs": "a decision rests on many paths, and has no log-probabilities of its own",
}
_CHOICES = ("tool_choice", "function_call")
"""Where there are no tools, these say nothing."""


@dataclass(frozen=True)
class Question:
    """One question to one policy at one operating point."""

    served: Served
    rule: Rule
    problem: Problem
    model: str
    """The model id as the client wrote it."""
    ignored: tuple[str, ...] = ()
    stream: bool = False
    include_usage: bool = False
    instead_of: Rule | None = None
    """The operating point that was asked for, where the promise is in doubt and a stricter one decides."""

    @property
    def alpha(self) -> Any:
        return self.rule.guarantee.alpha

    @property
    def guarantee(self) -> str:
        return self.rule.guarantee.name


def question_of(request: ChatRequest, models: Models) -> Question:
    """The question of a request; raises ApiError where the policy makes no promise for it."""
    beside = request.demur or Extension()
    served, rule = models.find(request.model, beside.alpha, beside.guarantee)
    ignored = _look_at_fields(request.model_extra or {}, served)
    if beside.group and not served.policy.strata.groups:
        ignored = (*ignored, "demur.group")
    problem = problem_of(served, request.messages, beside)
    options = request.stream_options
    return Question(
        served,
        rule,
        problem,
        request.model,
        ignored,
        stream=bool(request.stream),
        include_usage=options is not None and options.include_usage,
    )


def _look_at_fields(given: Mapping[str, Any], served: Served) -> tuple[str, ...]:
    """The fields that are ignored; raises where one may not be."""
    said = {name: value for name, value in given.items() if value is not None}
    for name, reason in _REFUSED.items():
        if name in said and said[name] not in (False, 0, [], *(("none", "auto") if name in _CHOICES else ())):
            raise refused(reason, name)
    if said.get("n", 1) != 1:
        raise refused("a request gets one decision: n must be 1 (the policy says how many paths are drawn)", "n")
    if said.get("modalities") not in (None, ["text"]):
        raise refused("answers are texts", "modalities")
    _look_at_format(said.get("response_format"), served)
    known = {*_REFUSED, "n", "modalities", "response_format"}
    return tuple(sorted(name[:60] for name in said if name not in known))


def _look_at_format(wanted: Any, served: Served) -> None:
    if wanted is None or wanted == {"type": "text"}:
        return
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind == "json_schema" and served.schema is not None:
        described = wanted.get("json_schema")
        if isinstance(described, dict) and described.get("schema") == served.schema:
            return
        raise refused("this policy was calibrated on answers of another schema", "response_format")
    raise refused("the policy was not calibrated on answers of this format", "response_format")


def problem_of(served: Served, messages: Sequence[Mapping[str, Any]], beside: Extension) -> Problem:
    """The question that messages put, as the policy's pipeline takes it."""
    groups = [beside.group] if isinstance(beside.group, str) else beside.group or ()
    fields: dict[str, Any] = {"options": beside.options, "passages": beside.passages}
    if served.template.kind == "conversation":
        talk = _conversation_in(messages)
        if other_systems(served.policy, [talk.question]):
            told = "without a system prompt" if not system_of(talk.question) else "with this system prompt"
            raise refused(f"the policy was not calibrated on conversations {told}", "messages")
        question, fields = talk.question, fields | dict(talk.fields)
    else:
        question = _question_in(served, messages)
    _look_at_slots(served, beside)
    problem = served.problem(question, fields, groups)
    try:
        served.answerer.check(problem)
    except DemurError as error:
        raise refused(str(error), "messages", "not_askable") from None
    return problem


def _look_at_slots(served: Served, beside: Extension) -> None:
    """Raise where something is given that would not reach the model."""
    for name in ("options", "passages"):
        reads_them = name == "options" and task_named(served.policy.upstream.answers.get("task")) is MC
        if getattr(beside, name) and f"{{{name}}}" not in served.template.user and not reads_them:
            raise refused(f"the policy was not calibrated on questions with {name}", f"demur.{name}")


def _conversation_in(messages: Sequence[Mapping[str, Any]]) -> Conversation:
    try:
        return conversation_of(list(messages))
    except InvalidValue as error:
        raise refused(str(error), "messages", "not_askable") from None


def _question_in(served: Served, messages: Sequence[Mapping[str, Any]]) -> str:
    """The last user message, which must stand alone but for the policy's own system prompt."""
    *earlier, last = _conversation_in(messages).messages
    for message in earlier:
        if message["role"] not in ("system", "developer"):
            raise refused(
                "the policy was calibrated on single questions, not on conversations; send the question alone",
                "messages",
            )
        if message["content"] != served.template.system:
            raise refused("the policy was not calibrated with this system prompt; leave it out", "messages")
    if len(earlier) > 1:
        raise refused("the policy was calibrated with its system prompt once", "messages")
    return last["content"]
