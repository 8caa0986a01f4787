"""Reward: the scalar r of a reward model for a question and a path, as it is: no sigmoid, no softmax (theory 1.4).

A sigmoid squeezes all good paths together at 1, so a server that puts one in place of r is found out on a probe and
refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from demur.errors import InvalidValue
from demur.prompts import Template
from demur.prompts.conversations import MESSAGES, with_transcript
from demur.records import Problem
from demur.scoring.model_scorer import DescribedScorer, Item

BUILT_IN = "built-in@1"
_QUESTION = Template("{question}")
_WITH = {"passages": Template("{passages}\n\nQuestion: {question}"), "options": Template("{question}\n\n{options}")}
PROBES = (
    Item(Problem("probe", "What is 2 + 3?"), "2 + 3 = 5. The answer is 5."),
    Item(Problem("probe", "What is the capital of France?"), "Bananas are yellow."),
    Item(Problem("probe", "What is 2 + 4?"), "<think>\nTwo and four.\n</think>\n\nIt is 6."),  # templates rewrite these
)


class Reward(DescribedScorer):
    """A subclass asks a reward model."""

    name = "reward"
    normaliser = "pool_z"
    activation = "none"

    def __init__(self, template: Template | None = None, *, too_long: str = "cut") -> None:
        super().__init__(too_long=too_long)
        if template is not None and (template.kind == "completion" or template.system):
            raise InvalidValue("a reward model's prompt is a chat with a user's message only")
        self.template = template

    def identity(self) -> dict[str, Any]:
        prompt = BUILT_IN if self.template is None else self.template.describe()
        asked = {"activation": self.activation, "prompt": prompt, "too_long": self.too_long}
        return {"scorer": "reward", "version": 1, **self.describe_model(), **asked}

    def chat(self, problem: Problem, text: str) -> list[dict[str, str]]:
        """The conversation that is rewarded: the question, with its passages or options, and the path.

        Where the question is a conversation, all its messages are, the passages or options with the last.
        """
        template = self.template or next((_WITH[part] for part in _WITH if problem.extra.get(part)), _QUESTION)
        if self.template is None and with_transcript(problem).extra.get(MESSAGES):
            template = replace(template, kind="conversation")
        asked = [dict(message) for message in template.render(problem).messages]
        return [*asked, {"role": "assistant", "content": text.strip()}]
