"""Perplexity of stored text: the log-probability of each token of a path behind its prompt, found anew.

For runs that were sampled without log-probabilities, or to score one model's paths by another. The prompt is the run's
own, word for word.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from demur.errors import ScoringError
from demur.prompts import Template
from demur.scoring.model_scorer import DescribedScorer, Item, Value
from demur.scoring.perplexity.recorded import MEAN, identity_of, statistic


class Rescored(DescribedScorer):
    """A subclass has `logprobs`: those of the tokens of some paths, behind their prompts."""

    normaliser = "pool_z"
    needs_text = True

    def __init__(self, template: Template, kind: str = MEAN, *, too_long: str = "refuse") -> None:
        super().__init__(too_long=too_long)
        self.template = template
        self.name = self._kind = kind

    def identity(self) -> dict[str, Any]:
        asked = {"prompt": self.template.describe(), "too_long": self.too_long}
        return {**identity_of(self._kind), "from": "text scored again", **self.describe_model(), **asked}

    @abstractmethod
    async def logprobs(self, items: Sequence[Item]) -> Sequence[Sequence[float]]: ...

    async def ask(self, items: Sequence[Item]) -> Sequence[Value]:
        values = []
        for item, logprobs in zip(items, await self.logprobs(items), strict=True):
            if not logprobs:
                raise ScoringError(f"no token of the path {item.text[:20]!r} got a log-probability")
            values.append(Value(statistic(self._kind, logprobs)))
        return values
