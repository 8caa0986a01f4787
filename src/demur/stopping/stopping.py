"""A rule in use: looked at behind each wave of paths, up to the most that a pool has.

beta(0.95, wave=4)                        what `Pipeline(stop=)`, `vote(stop=)` and `PoolSource.stopped_by` take
beta(0.95).at_most(16).size(keys)         how many of a pool's paths are enough; None where more are wanted
beta(0.95).sizes(codes)                   the same of n × m answers as whole numbers, by arrays
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from demur.errors import InvalidValue
from demur.stopping.rules import Agreement, Beta, Fixed, Rule, level_of, parse_rule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WAVE = 4
"""Paths of a wave, unless it is said."""
_ENTRIES = 1 << 20
"""Comparisons of paths that are worked on at once."""


@dataclass(frozen=True)
class Stopping:
    """A rule, the paths of a wave, and how many paths a pool has at most."""

    rule: Rule
    wave: int = WAVE
    most: int | None = None
    """None: as many as a whole pool has."""

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule):
            raise InvalidValue(f"a stopping rule is stopping.beta(0.95) or another such, got {self.rule!r:.60}")
        for name, paths in (("a wave", self.wave), ("a pool", 1 if self.most is None else self.most)):
            if isinstance(paths, bool) or not isinstance(paths, int) or paths < 1:
                raise InvalidValue(f"{name} has a whole number of paths, at least one, got {paths!r:.60}")

    def __str__(self) -> str:
        most = "" if self.most is None else f", at most {self.most} paths"
        return f"{self.rule.spec} in waves of {self.wave}{most}"

    @property
    def stops(self) -> bool:
        """Whether it may ever stop before the last path."""
        return not isinstance(self.rule, Fixed)

    def at_most(self, paths: int) -> Stopping:
        """The same for whole pools of so many paths, unless it says itself how many."""
        return self if self.most is not None else replace(self, most=paths)

    def looks(self, paths: int) -> range:
        """After how many paths the rule is looked at, of pools that have so many."""
        return range(self.wave, min(paths, paths if self.most is None else self.most), self.wave)

    def size(self, keys: Sequence[Any]) -> int | None:
        """How many of these paths are enough; None where the rule wants more than there are."""
        for drawn in self.looks(len(keys) + 1):
            if self.rule.enough(keys[:drawn]):
                return drawn
        return self.most if self.most is not None and self.most <= len(keys) else None

    def wanted(self, keys: Mapping[int, Any]) -> list[int]:
        """The paths to draw next, given the answers of those that are there, by index; none where they are enough."""
        if self.most is None:
            raise InvalidValue("paths are drawn up to a number, and this rule does not say how many there are at most")
        for drawn in (*self.looks(self.most), self.most):
            if lacking := [path for path in range(drawn) if path not in keys]:
                return lacking
            if drawn == self.most or self.rule.enough([keys[path] for path in range(drawn)]):
                break
        return []

    def sizes(self, codes: NDArray[np.integer[Any]], paths: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
        """How many paths are enough, of each of many pools; 0 where the rule wants more than there are.

        `codes` are n × m whole numbers, negative where a path has no answer; `paths` says how many each pool has.
        """
        import numpy as np

        width = codes.shape[1]
        if self.most is None:
            return self.at_most(width).sizes(codes, paths)  # whose last look needs no looking
        there = np.full(len(codes), width) if paths is None else np.asarray(paths)
        found = np.where(there >= self.most, self.most, 0)
        for start in range(0, len(codes), step := max(1, _ENTRIES // width**2)):
            block = slice(start, start + step)
            going_on, some = np.arange(len(codes))[block], _narrow(codes[block])
            for drawn in self.looks(width + 1):
                going_on = going_on[there[going_on] >= drawn]
                done = self.rule.enough_in(some[going_on - start, :drawn])
                found[going_on[done]] = drawn
                going_on = going_on[~done]
        return found

    def describe(self) -> dict[str, Any]:
        """As a description has it, in its stage `sampling`; `of` reads it back."""
        return {"rule": self.rule.spec, "wave": self.wave, "most": self.most}

    @classmethod
    def of(cls, document: Any) -> Stopping | None:
        """From plain values; None where there are none."""
        if document is None:
            return None
        if not isinstance(document, Mapping) or set(document) != {"rule", "wave", "most"}:
            raise InvalidValue(f"sampling.stopping must have a rule, a wave and most paths, got {document!r:.60}")
        if not isinstance(document["most"], int):
            raise InvalidValue(f"sampling.stopping.most must be a number of paths, got {document['most']!r:.60}")
        return cls(parse_rule(document["rule"]), document["wave"], document["most"])


def _narrow(codes: NDArray[np.integer[Any]]) -> NDArray[np.integer[Any]]:
    """The same numbers in as few bytes as hold them: comparing paths is what a replay does."""
    import numpy as np

    kinds = (np.int8, np.int16)
    low, high = (int(codes.min()), int(codes.max())) if codes.size else (0, 0)
    kind = next((kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max), None)
    return codes if kind is None else codes.astype(kind)


def fixed() -> Stopping:
    """All paths: no rule."""
    return Stopping(Fixed())


def agreement(window: int, *, wave: int = WAVE) -> Stopping:
    """Stop where the last `window` paths gave one answer."""
    return Stopping(Agreement(window), wave)


def beta(level: float | str | Fraction, *, wave: int = WAVE) -> Stopping:
    """Stop where the answer in front stays there with probability at least `level`."""
    return Stopping(Beta(level_of(str(level))), wave)


def parse_stopping(text: str, wave: int | None = None) -> Stopping:
    """A rule by its name, looked at behind each wave."""
    return Stopping(parse_rule(text), WAVE if wave is None else wave)


def as_stopping(stopping: Any, n_paths: int) -> Stopping | None:
    """A rule for pools of so many paths at most; None where it never ends one before."""
    if not isinstance(stopping, Stopping):
        raise InvalidValue(f"a stopping rule is stopping.beta(0.95) or another such, got {stopping!r:.60}")
    if stopping.most not in (None, n_paths):
        raise InvalidValue(f"a pool has {n_paths} paths at most, and the rule {stopping} says otherwise")
    return stopping.at_most(n_paths) if stopping.stops else None


def stopping_of(sampling: Mapping[str, Any]) -> Stopping | None:
    """The rule that a description's stage `sampling` tells of; None where all paths were drawn."""
    return Stopping.of(sampling.get("stopping"))
