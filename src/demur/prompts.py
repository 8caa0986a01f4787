"""How a question is put to a model: templates per task, or your own from a file. Never sees gold.

A template holds {question}, and may hold {passages} and {options}. It is part of a pipeline's fingerprint as it stands.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from demur.backends.protocol import Prompt
from demur.errors import InvalidValue
from demur.records import Problem

_SLOT = re.compile(r"\{(question|passages|options)\}")


@dataclass(frozen=True)
class Template:
    """A chat of a system and a user message, or a text to complete (`system` is then empty)."""

    user: str
    system: str = ""
    kind: str = "chat"
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in ("chat", "completion"):
            raise InvalidValue(f"a prompt's kind is chat or completion, got {self.kind!r}")
        if "{question}" not in self.user:
            raise InvalidValue("a prompt must hold {question}")

    def render(self, problem: Problem) -> Prompt:
        """The prompt for one problem."""
        if not problem.question or not problem.question.strip():
            raise InvalidValue(f"problem {problem.id!r} has no question to ask")
        parts = {
            "question": problem.question.strip(),
            "passages": "\n\n".join(_texts(problem, "passages")),
            "options": "\n".join(f"{chr(65 + i)}. {text}" for i, text in enumerate(_texts(problem, "options"))),
        }
        for slot in ("passages", "options"):
            if f"{{{slot}}}" in self.user and not parts[slot]:
                raise InvalidValue(f"problem {problem.id!r} has no {slot}, which the prompt asks for")
        user = _SLOT.sub(lambda found: parts[found.group(1)], self.user)
        if self.kind == "completion":
            return Prompt(problem.id, text=user)
        system = ({"role": "system", "content": self.system},) if self.system else ()
        return Prompt(problem.id, messages=(*system, {"role": "user", "content": user}))

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
NAMED = {
    "mathematics": MATHEMATICS,
    "question-answering": QUESTION_ANSWERING,
    "open-question": OPEN_QUESTION,
    "multiple-choice": MULTIPLE_CHOICE,
    "few-shot-mathematics": FEW_SHOT_MATHEMATICS,
    "few-shot-facts": FEW_SHOT_FACTS,
}


def template_for(task: str, *, small: bool, passages: bool) -> Template:
    """The template of a task; for a small model one that shows how by examples."""
    if task == "math":
        return FEW_SHOT_MATHEMATICS if small else MATHEMATICS
    if task == "mc":
        return MULTIPLE_CHOICE
    if task == "qa" and passages:
        return QUESTION_ANSWERING
    if task == "qa":
        return FEW_SHOT_FACTS if small else OPEN_QUESTION
    raise InvalidValue(f"there is no prompt for the task {task!r}; expected math, qa or mc, or give --prompt")


def read_template(name: str) -> Template:
    """A template by name, or from a TOML file with `user`, `system`, `kind` and `stop`."""
    if name in NAMED:
        return NAMED[name]
    path = Path(name)
    if not path.is_file():
        raise InvalidValue(f"there is no prompt {name!r}; name a TOML file, or one of: {', '.join(NAMED)}")
    try:
        held = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidValue(f"the prompt {path} cannot be read: {error}") from None
    return template_of(held, str(path))


def template_of(held: dict[str, Any], where: str) -> Template:
    """A template from its description; unknown or ill-typed fields are refused."""
    unknown = set(held) - {"user", "system", "kind", "stop"}
    stop = held.get("stop", [])
    if unknown or not isinstance(held.get("user"), str):
        raise InvalidValue(f"{where}: a prompt has `user`, and may have `system`, `kind`, `stop`; got {sorted(held)}")
    if not (isinstance(stop, list) and all(isinstance(each, str) for each in stop)):
        raise InvalidValue(f"{where}: `stop` must be a list of strings")
    return Template(held["user"], str(held.get("system", "")), str(held.get("kind", "chat")), tuple(stop))


def _texts(problem: Problem, field: str) -> list[str]:
    held = problem.extra.get(field)
    return [str(each) for each in held] if isinstance(held, (list, tuple)) else []
