"""A judge in this process, by transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from demur.answers.completions import LOWEST, clamped
from demur.errors import ScoringError
from demur.scoring.judge.judge import Judge, Verdict
from demur.scoring.model_scorer import Item
from demur.scoring.transformers_scorer import TransformersScorer


class TransformersJudge(TransformersScorer, Judge):
    """A causal model asked for one letter; p(Y) is exact."""

    way: ClassVar = {"route": "exact", "thinking": "off"}

    async def verdicts(self, items: Sequence[Item]) -> Sequence[Verdict]:
        return await self._run(self._verdicts, items)  # type: ignore[no-any-return]

    def _ids(self, item: Item) -> list[int]:
        return self.model.chat_ids(self.chat(item.problem, item.text), to_be_answered=True, enable_thinking=False)

    def _letter(self, letter: str) -> list[int]:
        """Every single token that spells a letter, blanks aside."""
        spellings = [self.model.text_ids(text) for text in (letter, f" {letter}", f"\n{letter}")]
        tokens = {ids[-1] for ids in spellings if ids and self.model.tokenizer.decode([ids[-1]]).strip() == letter}
        if not tokens:
            raise ScoringError(f"{self.model.name} has no token for {letter!r}")
        return sorted(tokens)

    def _verdicts(self, items: Sequence[Item]) -> list[Verdict]:
        told = self.model.run(self._rows(items), left=True, logits_to_keep=1)[:, -1].float().log_softmax(-1)
        yes, letters = self._letter("Y"), [*self._letter("Y"), *self._letter("N")]
        verdicts = []
        for row in told:
            logprob, likeliest = row[yes].logsumexp(-1).item(), self.model.tokenizer.decode([int(row.argmax())])
            verdicts.append(Verdict(clamped(logprob), logprob <= LOWEST, row[letters].exp().sum().item(), likeliest))
        return verdicts
