"""What a check by people found of a judge's labels: how often its "right" is false, and its "wrong".

A judge's false "right" is what breaks promises; a false "wrong" costs answers only.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.evidence.predictor import Interval
from demur.pools.checks import Checks


@dataclass(frozen=True)
class JudgeCheck:
    """Counts of the checked votes by what the judge said of them, and what people found."""

    votes: int
    """All that the judge labelled."""
    right: int
    """Drawn to be checked, and called right by the judge."""
    false_right: int
    """Of those, wrong by the people."""
    right_unchecked: int
    """Of those, without a word by people so far."""
    wrong: int
    """Drawn to be checked, and called wrong by the judge, or not labelled by it."""
    false_wrong: int
    """Of those, right by the people."""
    wrong_unchecked: int
    """Of those, without a word by people so far."""

    def __post_init__(self) -> None:
        counts = [getattr(self, each.name) for each in fields(self)]
        plain = all(type(count) is int and count >= 0 for count in counts)
        if not plain or not (
            self.false_right + self.right_unchecked <= self.right
            and self.false_wrong + self.wrong_unchecked <= self.wrong
            and 0 < self.drawn <= self.votes
        ):
            raise InvalidValue(f"counts of a checked judge must make sense, got {counts}")

    @classmethod
    def of(cls, judged: NDArray[np.bool_], checks: Checks, votes: int) -> Self:
        """From a judge's labels and what people found, of all `votes` or of those that were drawn."""
        drawn, known, right = checks.drawn, checks.known, checks.right

        def count(rows: NDArray[np.bool_]) -> tuple[int, int, int]:
            return (
                int((drawn & rows).sum()),
                int((drawn & rows & known & (right != judged)).sum()),
                int((drawn & rows & ~known).sum()),
            )

        return cls(votes, *count(judged), *count(~judged))

    @property
    def drawn(self) -> int:
        return self.right + self.wrong

    @property
    def checked(self) -> int:
        """Drawn, and looked at."""
        return self.drawn - self.unchecked

    @property
    def unchecked(self) -> int:
        """Drawn, and not looked at so far."""
        return self.right_unchecked + self.wrong_unchecked

    @property
    def false_right_rate(self) -> Interval:
        """Of what the judge calls right, the share that is wrong, with its exact interval (95 %).

        Votes that were drawn and not looked at may be either: they widen the interval on both sides.
        """
        looked_at = self.right - self.right_unchecked
        least, most = (
            Interval.exact(self.false_right + doubtful, self.right) for doubtful in (0, self.right_unchecked)
        )
        return Interval(Interval.exact(self.false_right, looked_at).estimate, least.lower, most.upper)

    def describe(self) -> dict[str, int]:
        """As plain values: what a policy holds; `of_document` reads it back."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def of_document(cls, described: Any) -> Self:
        names = {each.name for each in fields(cls)}
        if not isinstance(described, dict) or set(described) != names:
            raise InvalidValue(f"a checked judge must be told by {', '.join(sorted(names))}, got {described!r:.60}")
        return cls(**described)

    def facts(self) -> dict[str, Any]:
        """What is shown of it, by name."""
        rate = self.false_right_rate
        known = {"drawn": self.drawn, "checked": self.checked, "false_right_rate": rate.estimate}
        return {**self.describe(), **known, "false_right_interval": [rate.lower, rate.upper]}

    @property
    def sentence(self) -> str:
        """The rate of false "right", with its interval."""
        rate, looked_at = self.false_right_rate, self.right - self.right_unchecked
        interval = f"95 % interval {rate.lower:.1%} to {rate.upper:.1%}"
        found = f"{self.false_right} of {looked_at} that the judge calls right are wrong"
        estimate = f"{rate.estimate:.1%}, " if looked_at else ""
        other = f"{self.false_wrong} of {self.wrong - self.wrong_unchecked} that it calls wrong are right"
        return f'The judge\'s false "right": by the people, {found} ({estimate}{interval}); {other}'
