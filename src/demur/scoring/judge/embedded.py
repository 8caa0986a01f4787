"""A judge in this process: llama.cpp, any GGUF file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from demur.errors import BackendError
from demur.scoring.judge.judge import Judge, Verdict, read_verdict, top_tokens
from demur.scoring.model_scorer import InProcessScorer, Item, TooLong, is_too_long

_TOP = 2000


class EmbeddedJudge(InProcessScorer, Judge):
    """A small model in this process. It tells the 2,000 likeliest tokens, so floors are rare."""

    way: ClassVar = {"route": f"top {_TOP}", "thinking": "off"}

    async def verdicts(self, items: Sequence[Item]) -> Sequence[Verdict]:
        return [await self._run(self._verdict, item) for item in items]

    def _verdict(self, item: Item) -> Verdict:
        body: dict[str, Any] = {"messages": self.chat(item.problem, item.text), "max_tokens": 1, "temperature": 0}
        body |= {"logprobs": True, "top_logprobs": _TOP, "chat_template_kwargs": {"enable_thinking": False}}
        try:
            return read_verdict(top_tokens(self.model.answer(body)))
        except BackendError as error:
            if is_too_long(str(error)):
                raise TooLong(str(error)) from None
            raise
