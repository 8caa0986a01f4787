"""Do two pools of one question give the same answers? An exact permutation test.

    N_a     how often answer a occurs in both pools together, n of 2n paths being in each
    T       Σ_a (how often in the old pool) · (how often in the new): pairs of an old and a new path that agree

Where all 2n paths are drawn alike, each way to deal them out into an old and a new pool is as likely as any other. So
the law of T has nothing unknown in it, and p = P(T′ < T) + u·P(T′ = T), u uniform on [0, 1), is uniform on [0, 1). It
is small where the pools agree less than that. Paths without an answer are an answer of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import lru_cache
from math import comb

MOST_PATHS = 128
"""Per pool; the law of larger ones takes too long."""


def agreement_p_value(old: Sequence[Hashable], new: Sequence[Hashable], draw: float) -> float:
    """p of two pools of the same number of paths."""
    before, after = Counter(old), Counter(new)
    agreeing = sum(count * after[answer] for answer, count in before.items())
    law = agreement_law(tuple(sorted((before + after).values())))
    below = sum(ways for pairs, ways in law.items() if pairs < agreeing)
    return (below + draw * law[agreeing]) / sum(law.values())


@lru_cache(maxsize=4096)
def agreement_law(totals: tuple[int, ...]) -> dict[int, int]:
    """In how many ways of dealing out the paths T has each value; `totals` are the N_a."""
    half = sum(totals) // 2
    alone = totals.count(1)  # an answer that occurs once agrees with none, wherever it is
    ways = {(dealt, 0): comb(alone, dealt) for dealt in range(min(alone, half) + 1)}
    for total in totals:
        if total > 1:
            ways = _with_answer(ways, total, half)
    return {pairs: count for (dealt, pairs), count in ways.items() if dealt == half}


def _with_answer(ways: dict[tuple[int, int], int], total: int, half: int) -> dict[tuple[int, int], int]:
    """Ways by paths dealt to the old pool and by T, one answer more being dealt out."""
    more: Counter[tuple[int, int]] = Counter()
    for (dealt, pairs), count in ways.items():
        for old in range(min(total, half - dealt) + 1):
            more[dealt + old, pairs + old * (total - old)] += count * comb(total, old)
    return more
