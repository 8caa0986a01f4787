"""A backend that says what it is told to: for tests, docs and examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from demur.backends.protocol import Completion, Portions, Settings, Wanted
from demur.prompts import Prompt

Script = Callable[[Prompt, Wanted], str | Completion]


class Scripted:
    """Says `script(prompt, wanted)`; or, given texts by problem id, the text of that index, over and over."""

    def __init__(
        self, script: Script | Mapping[str, Sequence[str]], *, model: str = "scripted", concurrency: int = 8
    ) -> None:
        self._script: Script = script if callable(script) else _reader(script)
        self.model, self.concurrency = model, concurrency
        self.asked: list[tuple[Prompt, tuple[Wanted, ...]]] = []
        """Every request, in order."""

    def describe(self) -> dict[str, Any]:
        return {"backend": "scripted", "model": self.model}

    async def sample(self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]) -> Portions:
        self.asked.append((prompt, tuple(wanted)))
        for want in wanted:
            said = self._script(prompt, want)
            yield [Completion(want.path, said, "stop", seed=want.seed) if isinstance(said, str) else said]

    async def close(self) -> None:
        pass


def _reader(texts: Mapping[str, Sequence[str]]) -> Script:
    return lambda prompt, want: texts[prompt.problem][want.path % len(texts[prompt.problem])]
