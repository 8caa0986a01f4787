"""Has the model changed, or its server? Questions of an old run, asked again: a betting test on pairs of pools.

    old, new    the keys of the two pools of one question, without the jitter, which both of them share
    s           the sign of new − old; 0 where they are equal
    e           Π (1 + b·s), mixed over b from −0.9 to 0.9, over bets on `agreement`, and over when the change began

Let a question be asked twice, in the same way, of a model that did not change. Given the question, its two pools are
drawn alike and independently of all else, so that which of them came first tells nothing: exchanging the two changes no
probability. So given that the keys differ, s is a fair coin, whatever the question, whatever other pairs came to, and
whatever questions people ask: each factor has mean 1, and P(e ever reaches 1/δ) ≤ δ (Ville). Equal keys move nothing.

A sign cannot see that other answers win as clearly as before. So where all paths of a pool are drawn alike, the answers
of both pools are compared too: `agreement` gives a p-value that is uniform, and bets are on small ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Self

from demur.calibration.choices import choices_of
from demur.errors import InvalidValue
from demur.monitoring.agreement import MOST_PATHS, agreement_p_value
from demur.monitoring.betting import Stakes, as_count
from demur.monitoring.diagnosis import Moved
from demur.monitoring.keys import as_key
from demur.monitoring.monitor import BettingMonitor, as_level, take
from demur.monitoring.uniforms import Uniforms
from demur.policy.policy import Policy
from demur.voting.key import Jitter
from demur.voting.problems import Names

_SIGN_BETS = (0.2, 0.5, 0.9, -0.2, -0.5, -0.9)
_BETS = (*("keys lie higher",) * 3, *("keys lie lower",) * 3, *("answers differ",) * 3)
"""What each bet is on, in the order of the factors."""


class CanaryMonitor(BettingMonitor):
    """Raises an alarm when questions of an old run, asked again, come out otherwise.

    While neither the model nor its server changed, the probability of any alarm, ever, is at most `delta`, whatever
    questions come from outside. Each question may be asked again once; which ones and when must not depend on what the
    old pool came to, nor may the old pool have shaped the key: fitted scores or tie-breaks exclude the questions they
    were fitted on. Both pools must have been asked for in the same way and be of the same size; one that failed is
    asked again, as it was then. No alarm does not say that nothing changed: canaries see the questions they ask, and
    what moves their keys or answers.
    """

    kind = "canaries"

    def __init__(self, policy: Policy, *, delta: float = 0.01, seed: int = 0) -> None:
        self.policy, self.delta = policy, as_level(delta)
        self.chosen = max(choices_of(rule.guarantee) for rule in policy.points)
        self.stakes = Stakes(len(_BETS), self.chosen / self.delta)
        self._uniforms = Uniforms(seed)
        self._width = policy.evidence.levels.shape[1]
        self._shared = [isinstance(part, Jitter) for part in policy.recipe.key]
        self.fitted_on: Names = policy.recipe.normaliser.fitted_on
        """The ids of questions that may not be asked again, for the key was fitted on their old pools."""
        for part in policy.recipe.key:
            self.fitted_on = self.fitted_on | part.fitted_on.ids
        self.higher = self.lower = 0
        """How many new keys lie above, and below, the old ones."""
        self._asked: dict[str, int | None] = {}
        """By id, the sign of the new key minus the old; None where a file from before does not say."""

    @property
    def seed(self) -> int:
        """What breaks ties between equal agreements."""
        return self._uniforms.seed

    @property
    def equal(self) -> int:
        """How many keys came out as they were."""
        return self.n - self.higher - self.lower

    @property
    def asked(self) -> list[str]:
        """The ids of the questions that were asked again, where they were given."""
        return sorted(self._asked)

    def moved(self, ids: Iterable[str]) -> Moved:
        """What became of the keys of some of the questions that were asked again."""
        signs = [self._asked.get(name) for name in ids]
        return Moved(signs.count(1), signs.count(-1), signs.count(0))

    @property
    def change(self) -> str | None:
        """What changed, by the bet that has won most; None before an alarm."""
        stakes = self.stakes.stakes
        return _BETS[stakes.index(max(stakes))] if self.alarm else None

    @property
    def sentence(self) -> str:
        """What it has found, and what that means."""
        told = f"{self.higher} keys higher, {self.lower} lower and {self.equal} as they were"
        if not self.alarm:
            return (
                f"No sign of a changed model in {self.n} questions asked again: {told} (p = {self.p_value:.3g}, "
                f"alarm at {self.delta:g}). This says nothing of changes that these questions do not show."
            )
        return (
            f"The model or its server changed: alarm at question {self.alarm_at} of {self.n} asked again "
            f"(p = {self.p_value:.3g}), {self.change}; {told}. The promise was about the model as it was; calibrate "
            "again."
        )

    def update(
        self,
        old_key: float | Iterable[float],
        new_key: float | Iterable[float],
        *,
        id: str | None = None,  # noqa: A002 - the record's own word
        old_answers: Sequence[Hashable] | None = None,
        new_answers: Sequence[Hashable] | None = None,
    ) -> Self:
        """Take the keys of one question's two pools, the old one and the new.

        With an `id`, a question that is asked a third time is refused. Answers, one per path and None where a path has
        none, are compared too; leave them out where paths are not drawn alike, but from several models or prompts.
        """
        old, new = (self._compared(as_key(key, self._width)) for key in (old_key, new_key))
        p = self._agreement(old_answers, new_answers)
        sign = (new > old) - (new < old)
        if id is not None:
            self._note(id, sign)
        self.higher += sign > 0
        self.lower += sign < 0
        by_answers = (1.0, 1.0, 1.0) if p is None else (1.5 - p, 2 * (1 - p), 4 * (1 - p) ** 3)
        self.stakes.bet((*(1 + bet * sign for bet in _SIGN_BETS), *by_answers))
        return self

    def _compared(self, key: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(entry for entry, shared in zip(key, self._shared, strict=True) if not shared)

    def _agreement(self, old: Sequence[Hashable] | None, new: Sequence[Hashable] | None) -> float | None:
        if old is None and new is None:
            return None
        if old is None or new is None or isinstance(old, str) or isinstance(new, str) or len(old) != len(new):
            sizes = " and ".join("none" if pool is None else str(len(pool)) for pool in (old, new))
            raise InvalidValue(
                f"the answers of two pools of the same number of paths are compared, got {sizes}",
                "give {old_answers} and {new_answers}, one answer per path, or neither",
            )
        if not 1 <= len(old) <= MOST_PATHS:
            raise InvalidValue(
                f"answers of pools of 1 to {MOST_PATHS} paths are compared, got {len(old)}", "leave them out"
            )
        return agreement_p_value(old, new, self._uniforms[self.n])

    def _note(self, name: str, sign: int | None) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidValue(f"an id must be a text, got {name!r:.60}")
        if name in self._asked:
            raise InvalidValue(
                f"question {name!r:.60} was asked again before, and its old pool must not count twice",
                "ask each question again once per policy",
            )
        if name in self.fitted_on:
            raise InvalidValue(
                f"the key was fitted on the old pool of question {name!r:.60}, so that a new one is not like it",
                "ask questions again that nothing was fitted on",
            )
        self._asked[name] = sign

    def state(self) -> dict[str, Any]:
        counts = {"higher": self.higher, "lower": self.lower, "asked": self.asked}
        signs = [self._asked[name] for name in self.asked]
        return {"delta": self.delta, "seed": self.seed, "stakes": self.stakes.document(), **counts, "signs": signs}

    @classmethod
    def of_state(cls, state: dict[str, Any], policy: Policy) -> Self:
        state = {"signs": None, **state}  # files from before have none
        names = ("delta", "seed", "stakes", "higher", "lower", "asked", "signs")
        delta, seed, stakes, higher, lower, asked, signs = take(state, *names)
        monitor = cls(policy, delta=delta, seed=seed)
        if not isinstance(stakes, dict) or not isinstance(asked, list):
            raise InvalidValue("its stakes must be an object, and the questions asked a list")
        monitor.stakes.restore(stakes)
        monitor.higher, monitor.lower = as_count(higher, "higher"), as_count(lower, "lower")
        for name in asked:
            monitor._note(name, None)
        if monitor.asked != asked or max(len(asked), monitor.higher + monitor.lower) > monitor.n:
            raise InvalidValue("its counts do not fit each other")
        signs = [None] * len(asked) if signs is None else signs
        if not isinstance(signs, list) or len(signs) != len(asked) or not all(map(_is_sign, signs)):
            raise InvalidValue(f"its signs must be -1, 0 or 1 for each question asked, got {signs!r:.60}")
        monitor._asked = dict(zip(asked, signs, strict=True))
        return monitor


def _is_sign(value: Any) -> bool:
    return value is None or (type(value) is int and value in (-1, 0, 1))
