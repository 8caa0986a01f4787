"""What scorers in this process share, by transformers, on a GPU or on the CPU.

Paths of similar length go through the model together, so that little of a batch is padding.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from demur.scoring.model_scorer import InProcessScorer, Item, TooLong
from demur.scoring.transformers_model import TransformersModel


class TransformersScorer(InProcessScorer):
    """Blocks of pools, batches by length, one at a time."""

    pools_at_once = 64
    model: TransformersModel

    async def prepare(self) -> None:
        await self._run(self.model.load)
        await super().prepare()

    def portions(self, items: Sequence[Item]) -> Iterable[Sequence[int]]:
        return self.model.batches([len(self._ids(item)) for item in items], self._most)

    def _most(self, length: int) -> int:
        """Most rows of a length at once, beyond what holds for every model."""
        return self.model.batch

    @abstractmethod
    def _ids(self, item: Item) -> list[int]:
        """The tokens that the model reads for an item."""

    def _rows(self, items: Sequence[Item]) -> list[list[int]]:
        rows = [self._ids(item) for item in items]
        longest, most = max(map(len, rows)), self.model.longest
        if longest > most:
            raise TooLong(f"a path has {longest} tokens with its prompt, and {self.model.name} reads {most}")
        return rows
