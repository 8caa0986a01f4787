"""Calibration evidence by stratum: the groups of a question, and the number of paths.

Confidence among few paths is not confidence among many, so a promise needs pools in use to be of the sizes that
calibrated it (theory, n2). Where sizes differ, a vote must pass twice: against all calibration votes, and against
those of its own size. So the promise holds for each size by itself, however often sizes occur in use; a size that
calibration saw too seldom cannot pass. Where sizes vary by chance, in use as in calibration, the first test suffices;
so it does where one stopping rule makes them in both, and then sizes that it may end at are known, seen or not.

Strata are a partition: a question of several groups that overlap is in one stratum, that of all their names, and
`of_group` finds it by each of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.evidence.counts import Evidence, Floats, ThresholdKey
from demur.records import Groups
from demur.voting.cases import Cases

SIZE_LEVEL = 0.01
"""The level at which the sizes of pools in use are called unlike those of calibration."""
Stratum = tuple[Groups, int]
"""The groups of a question, of which there may be none, and its number of paths."""


@dataclass(frozen=True, eq=False)
class Strata:
    """Evidence of each stratum, of each pool size, of each group, and of all together."""

    parts: Mapping[Stratum, Evidence]
    """Groups ascend, and sizes within."""
    by_chance: bool = False
    """Sizes vary by chance, in use as in calibration, so that only all together count."""
    missed: Evidence | None = None
    """Of labels by a judge: see `Evidence.missed`."""
    reach: tuple[int, int] | None = None
    """The fewest and the most paths of a pool, where a stopping rule says so."""

    @classmethod
    def of(
        cls, cases: Cases, correct: ArrayLike, known: NDArray[np.bool_] | None = None, *, by_chance: bool = False
    ) -> Strata:
        """Count votes; `known` says which have a label, None that all have."""
        labels, parts = np.asarray(correct), {}
        for groups, some in cases.rows_by_groups().items() or {(): slice(None)}.items():
            kind = cases.take(some)
            right, there = labels[some], None if known is None else known[some]
            sizes = kind.rows_by_size() or {0: slice(None)}  # of nothing, evidence says that there is none
            for size, rows in sizes.items():
                weights = None if kind.weights is None else kind.weights[rows]
                own = None if there is None else there[rows]
                parts[groups, size] = Evidence.of(kind.keys[rows], right[rows], own, weights)
        return cls(parts, by_chance)

    @cached_property
    def by_size(self) -> Mapping[int, Evidence]:
        """Groups merged; sizes ascend."""
        sizes = defaultdict(list)
        for (_, size), part in self.parts.items():
            sizes[size].append(part)
        return {size: Evidence.merged(sizes[size]) for size in sorted(sizes)}

    @cached_property
    def pooled(self) -> Evidence:
        """All strata together."""
        merged = Evidence.merged(list(self.parts.values()))
        return merged if self.missed is None else replace(merged, missed=self.missed)

    @cached_property
    def groups(self) -> dict[str, int]:
        """How many votes there are of each group, in order; one of several groups is counted in each."""
        counts: dict[str, int] = defaultdict(int)
        for (groups, _), part in self.parts.items():
            for name in groups:
                counts[name] += part.n
        return dict(sorted(counts.items()))

    @property
    def overlapping(self) -> bool:
        """Whether some question is of several groups."""
        return any(len(groups) > 1 for groups, _ in self.parts)

    def of_group(self, name: str) -> Strata:
        """The strata of one group, whatever others they are of."""
        if name not in self._of_groups:
            self._of_groups[name] = self._some(lambda groups: name in groups)
        return self._of_groups[name]

    @cached_property
    def _of_groups(self) -> dict[str, Strata]:
        return {}

    def of_kind(self, groups: Groups) -> Strata:
        """The strata of questions that are of these groups and no others."""
        return self._some(lambda own: own == groups)

    def without_groups(self) -> Strata:
        """The same by number of paths alone."""
        return Strata({((), size): part for size, part in self.by_size.items()}, self.by_chance, reach=self.reach)

    def _some(self, takes: Callable[[Groups], bool]) -> Strata:
        some = {stratum: part for stratum, part in self.parts.items() if takes(stratum[0])}
        return Strata(some, self.by_chance, reach=self.reach)

    @cached_property
    def kinds(self) -> tuple[Groups, ...]:
        """The groups that questions have, together: a question is of one kind."""
        return tuple(dict.fromkeys(groups for groups, _ in self.parts))

    @cached_property
    def n(self) -> int:
        return sum(part.n for part in self.parts.values())

    @property
    def n_right(self) -> int:
        return sum(part.n_right for part in self.parts.values())

    @property
    def n_unlabelled(self) -> int:
        return sum(part.n_unlabelled for part in self.parts.values())

    @cached_property
    def sizes(self) -> dict[int, int]:
        """How many votes there are of each size."""
        sizes: dict[int, int] = defaultdict(int)
        for (_, size), part in self.parts.items():
            sizes[size] += part.n
        return dict(sorted(sizes.items()))

    @property
    def usual_size(self) -> int:
        """The size that most votes have, the larger of two."""
        return max(self.sizes, key=lambda size: (self.sizes[size], size))

    @property
    def between(self) -> tuple[int, int]:
        """The fewest and the most paths of a pool, where sizes vary by chance."""
        return (min(self.sizes), max(self.sizes)) if self.reach is None else self.reach

    def knows(self, size: Any) -> Any:
        """Whether calibration saw pools of a size, or where sizes vary by chance, smaller and larger ones.

        Takes one size, or many at once.
        """
        if self.by_chance:
            fewest, most = self.between
            return (fewest <= size) & (size <= most)
        return size in self.sizes if isinstance(size, int) else np.isin(size, list(self.sizes))

    def size_p_value(self, sizes: Mapping[int, int], level: float = SIZE_LEVEL) -> float:
        """The p-value of the hypothesis that pools of these sizes (size: pools) come from the law of calibration's.

        A permutation test, which needs no label: under the hypothesis every division of all these pools into two sets
        of these numbers is equally likely. The statistic is Pearson's χ² of the two histograms. The p-value is exact up
        to the number of divisions drawn, which suffices for the `level`, and is valid at any number.
        """
        names = sorted({*self.sizes, *sizes})
        here = np.array([sizes.get(size, 0) for size in names])
        both = here + np.array([self.sizes.get(size, 0) for size in names])
        expected = both * (here.sum() / both.sum())
        drawn = np.random.default_rng(0).multivariate_hypergeometric(
            both, int(here.sum()), size=max(1999, round(20 / level)), method="marginals"
        )
        found, others = (((counts - expected) ** 2 / expected).sum(axis=-1) for counts in (here, drawn))
        return float((1 + (others >= found - 1e-9).sum()) / (1 + len(drawn)))

    def p_value(self, cases: Cases) -> Floats:
        """The conformal p-value of each vote: the larger of that among all votes and that among those of its size."""
        p_value = self.pooled.p_value(cases.keys)
        for size, rows in cases.rows_by_size().items():
            if not self.knows(size):
                p_value[rows] = 1.0
            elif not self.by_chance and len(self.sizes) > 1:
                p_value[rows] = np.maximum(p_value[rows], self.by_size[size].p_value(cases.keys[rows]))
        return p_value

    def p_value_of(self, key: ThresholdKey, size: int) -> float:
        """The p-value of one vote, without arrays."""
        if self.by_chance or (len(self.sizes) == 1 and size in self.sizes):
            return self.pooled.p_value_of(key) if self.knows(size) else 1.0
        own = self.by_size.get(size)
        return 1.0 if own is None else max(self.pooled.p_value_of(key), own.p_value_of(key))
