r"""Conversations: the messages that a model is to answer next, checked, and as the one text that they are known by.

    [system]
    Be brief.

    [user]
    What is 2 + 3?

    [assistant]
    5

    [user]
    And twice that?

A text that itself says [user] is written with [\user] there, and one with [\user] with [\\user], so that no text can
pass for a message and two conversations never read the same. A single message of a user is the plain question that it
asks, unless it begins like a transcript.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from demur.errors import InvalidValue
from demur.records import Problem, is_nothing

MESSAGES = "messages"
"""The field of a problem that holds them."""
MOST_MESSAGES = 1000
LONGEST = 1_000_000
"""Characters of all messages together."""
_FIRST = ("system", "developer")
_ROLES = (*_FIRST, "user", "assistant")
_MARK = re.compile(rf"\[(\\*)({'|'.join(_ROLES)})\]")
_HEADER = re.compile(rf"\s*\[({'|'.join(_ROLES)})\]")
_TURN = re.compile(rf"\n\n\[({'|'.join(role for role in _ROLES if role not in _FIRST)})\]\n")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_TOOLS = ("tool_calls", "tool_call_id", "function_call")


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages of {"role", "content"}, the last of them a user's. Make one by `conversation_of`."""

    messages: tuple[Mapping[str, str], ...]

    @property
    def is_plain(self) -> bool:
        """Whether it is a plain question: one message of a user, and nothing before it."""
        return len(self.messages) == 1 and _HEADER.match(self.messages[0]["content"]) is None

    @property
    def question(self) -> str:
        """What a problem has for its question: the transcript, or the plain question."""
        if self.is_plain:
            return self.messages[0]["content"]
        return "\n\n".join(map(_written, self.messages))

    @property
    def fields(self) -> dict[str, Any]:
        """What a problem has in `extra` beside it: the messages, and nothing for a plain question."""
        return {} if self.is_plain else {MESSAGES: [dict(message) for message in self.messages]}


def _written(message: Mapping[str, str]) -> str:
    return f"[{message['role']}]\n{_MARK.sub(_escaped, message['content'])}"


def _escaped(mark: re.Match[str]) -> str:
    return f"[\\{mark.group(1)}{mark.group(2)}]"


def conversation_of(messages: Any) -> Conversation:
    """The conversation that a list of messages is, as chat requests and question files have it; else InvalidValue.

    Roles are system and developer, which stand first, then user and assistant; the last message is a user's. A content
    in parts is joined as it stands, and fields of null or nothing are left out, as is an assistant's `refusal` beside
    what it said. All else that is not text (images, audio, tools, names) is refused.
    """
    if not isinstance(messages, (list, tuple)) or not messages:
        raise InvalidValue(f"messages must be a list of at least one message, got {_told(messages)}")
    if len(messages) > MOST_MESSAGES:
        raise InvalidValue(f"there are {len(messages)} messages, and at most {MOST_MESSAGES} are taken")
    checked = tuple(_message(message, f"message {number}") for number, message in enumerate(messages, start=1))
    roles = [message["role"] for message in checked]
    leading = next((at for at, role in enumerate(roles) if role not in _FIRST), len(roles))
    for at, role in enumerate(roles[leading:], start=leading):
        if role in _FIRST:
            raise InvalidValue(f"message {at + 1} is of the role {role}, which stands before all other messages only")
    if roles[-1] != "user":
        raise InvalidValue(f"the last message must be a user's, for the model to answer, got the role {roles[-1]}")
    letters = sum(len(message["content"]) for message in checked)
    if letters > LONGEST:
        raise InvalidValue(f"the messages have {letters} characters, and at most {LONGEST} are taken")
    return Conversation(checked)


def with_transcript(problem: Problem) -> Problem:
    """A problem whose question is what its messages say; as it is where it has none.

    A problem may leave out its question where it has messages, or say the last of them, or the transcript. InvalidValue
    where it says something else, or where its messages are no conversation.
    """
    messages = problem.extra.get(MESSAGES)
    if MESSAGES not in problem.extra:
        return problem
    others = {name: value for name, value in problem.extra.items() if name != MESSAGES}
    if is_nothing(messages):
        return replace(problem, extra=others)
    try:
        conversation = conversation_of(messages)
    except InvalidValue as error:
        raise InvalidValue(f"problem {problem.id!r:.60}: {error.message}", error.remedy) from None
    if not _agrees(problem.question, conversation):
        raise InvalidValue(
            f"problem {problem.id!r:.60} has a question that its messages do not end in: {problem.question!r:.60}",
            "leave out the question, or make it the last message",
        )
    return replace(problem, question=conversation.question, extra=others | conversation.fields)


def known_transcript(problem: Problem) -> Problem:
    """`with_transcript` for pools that were sampled elsewhere, where messages that are no such conversation (they may
    hold tool calls or images) are a field like others."""
    try:
        return with_transcript(problem)
    except InvalidValue:
        return problem


def is_transcript(problem: Problem) -> bool:
    """Whether a problem's question says all that its messages do."""
    try:
        return problem.extra.get(MESSAGES) is not None and with_transcript(problem) == problem
    except InvalidValue:
        return False


def last_asked(problem: Problem) -> str | None:
    """What is to be answered: the last message of a conversation, else the question."""
    messages = problem.extra.get(MESSAGES)
    if not problem.question or not isinstance(messages, (list, tuple)) or not messages:
        return problem.question
    last = messages[-1]
    known = isinstance(last, Mapping) and last.get("role") == "user" and isinstance(last.get("content"), str)
    return last["content"] if known and problem.question.endswith(_written(last)) else problem.question


def system_of(transcript: str) -> str:
    """What a transcript says before its first turn: its system and developer messages, or nothing.

    No text within a message can look like the header of a turn, so the first one found is one.
    """
    if not transcript.startswith(tuple(f"[{role}]\n" for role in _FIRST)):
        return ""
    turn = _TURN.search(transcript)
    return transcript if turn is None else transcript[: turn.start()]


def _agrees(question: str | None, conversation: Conversation) -> bool:
    """Whether a question is left out, or is the transcript or the last message, blank space aside."""
    asked = "" if question is None else " ".join(question.split())
    same = (conversation.question, conversation.messages[-1]["content"])
    return not asked or any(asked == " ".join(text.split()) for text in same)


def _message(message: Any, where: str) -> dict[str, str]:
    if not isinstance(message, Mapping):
        raise InvalidValue(f"{where} must be an object with role and content, got {_told(message)}")
    role = message.get("role")
    if role in ("tool", "function") or any(_is_given(message.get(field)) for field in _TOOLS):
        raise InvalidValue(f"{where} calls a tool or holds what one gave; only text can be put")
    if not isinstance(role, str) or role not in _ROLES:
        raise InvalidValue(f"{where} must have the role {', '.join(_ROLES[:-1])} or {_ROLES[-1]}, got {_told(role)}")
    others = ("role", "content", *(("refusal",) if role == "assistant" else ()))
    for field, value in message.items():
        if field not in others and _is_given(value):
            raise InvalidValue(f"{where} has the field {field!r:.40}, which cannot be put; only role and content can")
    content = _content(message.get("content"), where)
    if not content.strip():
        raise InvalidValue(f"{where} is blank")
    if odd := _UNSTORABLE.search(content):
        raise InvalidValue(f"{where} holds the character {odd.group()!r}, which is no text")
    return {"role": role, "content": content}


def _content(content: Any, where: str) -> str:
    """A message's text, its parts joined."""
    if isinstance(content, str):
        return content
    if not isinstance(content, (list, tuple)):
        raise InvalidValue(f"the content of {where} must be a text or a list of parts, got {_told(content)}")
    if len(content) > MOST_MESSAGES:
        raise InvalidValue(f"{where} has {len(content)} parts, and at most {MOST_MESSAGES} are taken")
    return "".join(_part(part, where) for part in content)


def _part(part: Any, where: str) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind is None or not isinstance(kind, str):
        raise InvalidValue(f"a part of {where} must be an object with a type, got {_told(part)}")
    if kind != "text":
        raise InvalidValue(f"{where} holds a part of the type {kind!r:.40}; only text can be put")
    text = part.get("text")
    if not isinstance(text, str):
        raise InvalidValue(f"the text of a part of {where} must be a text, got {_told(text)}")
    return text


def _is_given(value: Any) -> bool:
    return not (is_nothing(value) or (isinstance(value, (str, Sequence, Mapping)) and len(value) == 0))


def _told(value: Any) -> str:
    """A value in few words; what is nested is only named, for it may be so deeply that it cannot be written."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    return "nothing" if value is None else f"{value!r:.40}"
