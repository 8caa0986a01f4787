"""A task, a scorer and a backend that another package brings; installed, demur knows them by name.

demur sample questions.jsonl --task sums --backend abacus --backend-set slips=0.2 -o runs/sums.db
demur score runs/sums.db --score brevity
"""

from __future__ import annotations

import random
import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import demur as dm
from demur.backends import Completion, Prompt, Settings, Wanted
from demur.tasks import Task

SUMS = Task(
    "sums", dm.answers.mathematics, template=dm.Template("Add up: {question}\nEnd with \\boxed{{your answer}}.")
)


def brevity(pool: dm.Pool) -> list[float]:
    """Shorter is better. A scorer sees questions, texts and answers, and never gold."""
    return [-float(len(path.text or "")) for path in pool.paths]


class Abacus:
    """Adds the numbers of a question, and slips now and then."""

    def __init__(self, slips: str = "0.2") -> None:
        self.slips, self.concurrency = float(slips), 8

    def describe(self) -> dict[str, Any]:
        return {"backend": "abacus", "model": f"abacus with {self.slips:g} slips"}

    async def sample(
        self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]
    ) -> AsyncGenerator[list[Completion], None]:
        asked = "\n".join(message["content"] for message in prompt.messages)
        total = sum(map(int, re.findall(r"\d+", asked)))
        for want in wanted:
            slipped = random.Random(want.seed).random() < self.slips
            said = f"Let me see {'again ' * slipped}\\boxed{{{total + slipped}}}"
            yield [Completion(want.path, said, "stop", (-0.1,), want.seed)]

    async def close(self) -> None:
        """Nothing to let go of."""
