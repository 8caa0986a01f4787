"""How a judge is asked about a path: one letter, Y or N. It sees the question and the path; no passages, no gold.

The judge is to weigh the reasoning, not to look facts up, so passages are left out on purpose (as in the paper). A
prompt of your own holds {question} and {draft}, and may hold {options}.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from demur.errors import InvalidValue
from demur.prompts.templates import lettered
from demur.records import Problem
from demur.typed_toml import read_toml, typed_fields

_SLOT = re.compile(r"\{(\w+)\}")
VERSION = 1
"""Of the prompts below: change one of them, change this."""


@dataclass(frozen=True)
class JudgePrompt:
    """A user message, and a system message where there is one."""

    user: str
    system: str = ""

    def __post_init__(self) -> None:
        slots = set(_SLOT.findall(self.user))
        if not {"question", "draft"} <= slots:
            raise InvalidValue("a judge's prompt must hold {question} and {draft}")
        if unknown := sorted(slots - {"question", "draft", "options"}):
            raise InvalidValue(
                f"a judge's prompt cannot hold {{{unknown[0]}}}; it may hold {{question}}, {{draft}}, {{options}}"
            )

    def render(self, problem: Problem, draft: str) -> list[dict[str, str]]:
        """The chat about one path."""
        parts = {"question": (problem.question or "").strip(), "draft": draft.strip(), "options": lettered(problem)}
        if not parts["question"]:
            raise InvalidValue(f"problem {problem.id!r} has no question, which a judge must see")
        user = _SLOT.sub(lambda slot: parts[slot.group(1)], self.user)
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": user}]


MATHEMATICS = JudgePrompt(
    "Below is a mathematics problem and somebody's attempt at it. Is the reasoning sound, and does it end in the right "
    "answer? Reply with one letter: Y if it most likely does, N if not.\n\n"
    "Problem: {question}\n\nAttempt:\n{draft}\n\nVerdict (Y or N):"
)
QUESTION_ANSWERING = JudgePrompt(
    "Below is a question and somebody's reasoning towards an answer. Does each step follow, and is the answer it ends "
    "in most likely the right one? Reply with exactly one letter: Y for yes, N for no.\n\n"
    "Question: {question}\n\nReasoning:\n{draft}\n\nVerdict (Y or N):"
)
MULTIPLE_CHOICE = JudgePrompt(
    "Below is a multiple-choice question and somebody's reasoning towards one of the options. Is the option it ends in "
    "most likely the right one? Reply with exactly one letter: Y for yes, N for no.\n\n"
    "Question: {question}\n\n{options}\n\nReasoning:\n{draft}\n\nVerdict (Y or N):"
)


def prompt_identity(prompt: JudgePrompt | None) -> Any:
    """A prompt as an identity has it: the words of your own, or the version of ours."""
    return f"built-in@{VERSION}" if prompt is None else asdict(prompt)


def judge_prompt(described: Any) -> JudgePrompt | None:
    """A prompt from its description, or from a TOML file with `user` and perhaps `system`; None for ours."""
    if described is None or described == prompt_identity(None):
        return None
    if isinstance(described, dict):
        return JudgePrompt(**typed_fields(JudgePrompt, described, "the judge's prompt"))
    if str(described).startswith("built-in@"):
        raise InvalidValue(f"this demur has version {VERSION} of the judge's prompts, not {described}")
    path = Path(str(described))
    return JudgePrompt(**typed_fields(JudgePrompt, read_toml(path, "the judge's prompt"), str(path)))
