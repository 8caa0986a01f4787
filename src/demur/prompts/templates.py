"""How a question is put to a model: templates per task, or your own from a file. Never sees gold.

A template holds {question}, and may hold {passages} and {options}. It is part of a pipeline's fingerprint as it stands.
One of the kind `conversation` puts the messages of a problem as they are: {question} is the last of them there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from demur.errors import InvalidValue
from demur.prompts.conversations import MESSAGES, with_transcript
from demur.records import Problem
from demur.typed_toml import read_toml, typed_fields

_SLOT = re.compile(r"\{(question|passages|options)\}")
Chat = tuple[Mapping[str, str], ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question as it is put to a model: chat messages, or a text to go on from."""

    problem: str
    """The problem's id."""
    messages: Chat = ()
    text: str | None = None
    """A text to complete; None for a chat."""


@dataclass(frozen=True)
class Template:
    """A chat of a system and a user message, a text to complete (`system` is then empty), or a whole conversation.

    For a conversation `user` is what becomes of the last message, which {question} stands for, and `system` what is
    said before all else: it leads the conversation's own first system or developer message, or is one where there is
    none. A problem without messages is a conversation of its question alone.
    """

    user: str
    system: str = ""
    kind: str = "chat"
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in ("chat", "completion", "conversation"):
            raise InvalidValue(f"a prompt's kind is chat, completion or conversation, got {self.kind!r}")
        if "{question}" not in self.user:
            raise InvalidValue("a prompt must hold {question}")

    def render(self, problem: Problem) -> Prompt:
        """The prompt for one problem."""
        problem = with_transcript(problem)
        if not problem.question or not problem.question.strip():
            raise InvalidValue(f"problem {problem.id!r} has no question to ask")
        chat: Chat = tuple(problem.extra.get(MESSAGES, ()))
        if self.kind == "conversation":
            return Prompt(problem.id, messages=self._conversation(problem, chat or _alone(problem.question)))
        if chat:
            talk = f"problem {problem.id!r:.60} is a conversation of {len(chat)} messages"
            raise InvalidValue(
                f"{talk}, and the prompt puts one question",
                "sample and calibrate with {prompt=conversation}, or with a template of that kind",
            )
        user = self._filled(problem, problem.question.strip())
        if self.kind == "completion":
            return Prompt(problem.id, text=user)
        system = ({"role": "system", "content": self.system},) if self.system else ()
        return Prompt(problem.id, messages=(*system, {"role": "user", "content": user}))

    def _conversation(self, problem: Problem, chat: Chat) -> Chat:
        """The messages as they are, but for what the template says before the first and around the last."""
        *earlier, last = chat
        put = [*earlier, {"role": "user", "content": self._filled(problem, last["content"])}]
        if not self.system:
            return tuple(put)
        role, text = put[0]["role"], put[0]["content"]
        if role in ("user", "assistant"):
            return ({"role": "system", "content": self.system}, *put)
        return ({"role": role, "content": f"{self.system}\n\n{text}"}, *put[1:])

    def _filled(self, problem: Problem, question: str) -> str:
        """The user's message, every slot filled."""
        passages = "\n\n".join(_texts(problem, "passages"))
        parts = {"question": question, "passages": passages, "options": lettered(problem)}
        for slot in ("passages", "options"):
            if f"{{{slot}}}" in self.user and not parts[slot]:
                raise InvalidValue(f"problem {problem.id!r} has no {slot}, which the prompt asks for")
        return _SLOT.sub(lambda slot: parts[slot.group(1)], self.user)

    def describe(self) -> dict[str, Any]:
        return {**asdict(self), "stop": list(self.stop)}


MATHEMATICS = Template(
    system="You solve mathematics problems. Reason step by step, briefly and carefully.",
    user="{question}\n\nReason step by step, and put your final answer in \\boxed{}.",
)
QUESTION_ANSWERING = Template(
    system="You answer questions from passages. Use only what they say.",
    user="{passages}\n\nQuestion: {question}\n\nThink it through in a few sentences. Then give the shortest exact "
    "answer, and nothing else, between <answer> and </answer>. If the passages do not tell, write "
    "<answer>I don't know</answer>.",
)
OPEN_QUESTION = Template(
    system="You answer questions.",
    user="{question}\n\nThink it through in a few sentences. Then give the shortest exact answer, and nothing else, "
    "between <answer> and </answer>. If you do not know, write <answer>I don't know</answer>.",
)
MULTIPLE_CHOICE = Template(
    system="You answer multiple-choice questions.",
    user="{question}\n\n{options}\n\nThink it through in a few sentences. Then write: The answer is (X), "
    "with the letter of your choice for X.",
)
FEW_SHOT_MATHEMATICS = Template(
    kind="completion",
    stop=("\n",),
    user="Question: What is 2 + 3?\nAnswer: 2 + 3 = 5\n\n"
    "Question: Tom has 9 pens. Tom gives away 4. How many pens are left?\nAnswer: 9 - 4 = 5\n\n"
    "Question: What is 7 + 6?\nAnswer: 7 + 6 = 13\n\n"
    "Question: Mia has 11 books. Mia buys 4 more. How many books does Mia have now?\nAnswer: 11 + 4 = 15\n\n"
    "Question: {question}\nAnswer:",
)
FEW_SHOT_FACTS = Template(
    kind="completion",
    stop=("\n",),
    user="Question: What is the capital of France?\nAnswer: Paris\n\n"
    "Question: What is the capital of Japan?\nAnswer: Tokyo\n\n"
    "Question: What is the capital of Canada?\nAnswer: Ottawa\n\n"
    "Question: What is the capital of the Netherlands?\nAnswer: Amsterdam\n\n"
    "Question: {question}\nAnswer:",
)
CONVERSATION = Template(kind="conversation", user="{question}")
NAMED = {
    "mathematics": MATHEMATICS,
    "question-answering": QUESTION_ANSWERING,
    "open-question": OPEN_QUESTION,
    "multiple-choice": MULTIPLE_CHOICE,
    "few-shot-mathematics": FEW_SHOT_MATHEMATICS,
    "few-shot-facts": FEW_SHOT_FACTS,
    "conversation": CONVERSATION,
}


def read_template(name: str) -> Template:
    """A template by name, or from a TOML file with `user`, `system`, `kind` and `stop`."""
    if name in NAMED:
        return NAMED[name]
    path = Path(name)
    if not path.is_file():
        raise InvalidValue(f"there is no prompt {name!r}; name a TOML file, or one of: {', '.join(NAMED)}")
    return template_of(read_toml(path, "the prompt"), str(path))


def template_of(described: Any, where: str) -> Template:
    """A template from its description; unknown or ill-typed fields are refused."""
    return Template(**typed_fields(Template, described, where))


def lettered(problem: Problem) -> str:
    """A problem's options, one a line, each behind its letter."""
    return "\n".join(f"{chr(65 + place)}. {text}" for place, text in enumerate(_texts(problem, "options")))


def _alone(question: str) -> Chat:
    return ({"role": "user", "content": question},)


def _texts(problem: Problem, field: str) -> list[str]:
    listed = problem.extra.get(field)
    return [str(text) for text in listed] if isinstance(listed, (list, tuple)) else []
