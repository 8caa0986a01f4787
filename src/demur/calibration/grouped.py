"""A guarantee for each group of questions by itself: a threshold per group, from the votes of that group alone.

A promise about all questions together may be kept by a policy that is nearly always wrong on the hard ones and hardly
ever on the easy ones. Given which questions are of a group, those of calibration and a new one are exchangeable among
themselves, so whatever a guarantee promises of n exchangeable questions it promises of the n of a group (Vovk 2012).

A question of several groups must exceed the threshold of each: in each of them errors only become fewer, so rank
guarantees hold in each. That is not so of a promise about the answers given, whose rate may rise with the threshold;
there groups must not overlap. Which groups are too small is decided by how many questions they have, never by labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.calibration.guarantee import QUESTION, Count, RankGuarantee, Rule, settle_by_size
from demur.calibration.selective import Selective
from demur.calibration.simultaneous import Simultaneous
from demur.errors import InvalidValue
from demur.evidence.counts import Evidence, Floats, ThresholdKey, above_all
from demur.evidence.laws import AnswerLaw, ErrorLaw, LawPerGroup
from demur.evidence.strata import Strata
from demur.records import Groups
from demur.voting.cases import Cases

ABSTAIN, POOLED = "abstain", "pooled"
FALLBACKS = (ABSTAIN, POOLED)
"""What becomes of questions whose groups have no threshold: no answer, or the threshold of all together."""
PREFIX = "grouped_"


@dataclass(frozen=True)
class Grouped:
    """What a guarantee promises, for each group of questions by itself."""

    guarantee: RankGuarantee | Selective
    smallest: int = 1
    """Groups with fewer calibration questions get no threshold of their own, nor do those that are too small for the
    promise anyway."""
    fallback: str = ABSTAIN
    """What becomes of questions of no group, of groups that calibration did not see, or saw too seldom."""

    def __post_init__(self) -> None:
        if not isinstance(self.guarantee, (RankGuarantee, Selective)) or isinstance(self.guarantee, Simultaneous):
            raise InvalidValue(
                f"Grouped needs a Marginal, Smoothed, HighProbability or Selective object, got {self.guarantee!r:.60}"
            )
        if not isinstance(self.smallest, int) or isinstance(self.smallest, bool) or self.smallest < 1:
            raise InvalidValue(f"smallest must be a number of questions, 1 or more, got {self.smallest!r:.60}")
        if self.fallback not in FALLBACKS:
            raise InvalidValue(f"fallback must be one of {', '.join(FALLBACKS)}, got {self.fallback!r:.60}")
        if self.fallback == POOLED and isinstance(self.guarantee, Selective):
            raise InvalidValue(
                "a promise about the answers given to all questions says nothing of those given to some of them",
                "let other questions abstain",
            )

    @property
    def name(self) -> str:
        return PREFIX + self.guarantee.name

    @property
    def alpha(self) -> float:
        return self.guarantee.alpha

    @property
    def level(self) -> Fraction:
        """Alpha, exactly."""
        return self.guarantee.level

    def at(self, alpha: float) -> Grouped:
        """The same at another alpha."""
        return replace(self, guarantee=replace(self.guarantee, alpha=alpha))

    def n_needed(self) -> int:
        """The fewest votes from which a group has a threshold."""
        return max(self.smallest, self.guarantee.n_needed())

    def parameters(self) -> dict[str, Any]:
        return {**self.guarantee.parameters(), "smallest": self.smallest, "fallback": self.fallback}

    def promise(self, n: Count, unit: str = QUESTION) -> str:
        each = f"For each group of at least {self.n_needed()} calibration {unit}s by itself, n being how many it has"
        others = "Questions of no group, or of one that has fewer,"
        if self.fallback == ABSTAIN:
            rest = f"{others} are not answered."
        else:
            rest = (
                f"{others} must exceed the threshold of all {n} {unit}s together, of which only this is promised, and "
                f"not of them by themselves: if every question were decided by it, "
                f"{_continued(self.guarantee.promise(n, unit))}"
            )
        return f"{each}: {_continued(self.guarantee.promise('n', unit))} {rest}"

    def settle(self, evidence: Evidence) -> Rule:
        """The rule where no question is of any group."""
        return self.settle_strata(Strata({((), 1): evidence}, by_chance=True))

    def settle_sizes(self, evidence: Strata) -> Rule:
        return self.settle_strata(evidence)

    def settle_strata(self, evidence: Strata) -> GroupedRule:
        """For each group that is large enough, what the guarantee settles on given the votes of that group."""
        if evidence.overlapping and isinstance(self.guarantee, Selective):
            kind = next(kind for kind in evidence.kinds if len(kind) > 1)
            raise InvalidValue(
                f"some questions are of several groups ({' and '.join(map(repr, kind[:2]))}), and a promise about the "
                "answers given cannot be kept in each: a larger threshold need not have a smaller rate",
                "give each question one group, or use a guarantee about all questions",
            )
        needed = self.n_needed()
        by_group = {
            name: settle_by_size(self.guarantee, evidence.of_group(name))
            for name, votes in evidence.groups.items()
            if votes >= needed
        }
        pooled = settle_by_size(self.guarantee, evidence.without_groups()) if self.fallback == POOLED else None
        rules = [*by_group.values(), *([] if pooled is None else [pooled])]
        width = next(iter(evidence.parts.values())).levels.shape[1]
        answers = any(rule.feasible for rule in rules)
        law = AnswerLaw(self.alpha, answers) if isinstance(self.guarantee, Selective) else LawPerGroup(answers)
        lowest = min((rule.lowest for rule in rules), default=above_all(width))
        return GroupedRule(
            self, evidence.n, law, lowest, by_group=by_group, pooled=pooled, group_sizes=dict(evidence.groups)
        )


def refuse_without_groups(cases: Cases) -> None:
    """Raise where a promise per group is asked for, and no question is of any."""
    if cases.groups is None or not any(cases.groups.kinds):
        raise InvalidValue(
            "a promise per group needs the groups of the questions, and none has one",
            "name the field that holds them as {group_field}, or vote with groups",
        )


def grouped_of(
    kind: Callable[..., RankGuarantee | Selective], *, smallest: int, fallback: str, **parameters: Any
) -> Grouped:
    """A guarantee for groups, made again from its parameters."""
    return Grouped(kind(**parameters), smallest, fallback)


@dataclass(frozen=True)
class GroupedRule(Rule):
    """A rule for each group; a question of several must be answered by each of theirs."""

    by_group: Mapping[str, Rule] = field(default_factory=dict)
    """Of the groups that calibration saw often enough."""
    pooled: Rule | None = None
    """The rule of all questions together, where those without one of their own take it."""
    group_sizes: Mapping[str, int] = field(default_factory=dict)
    """How many calibration votes there are of each group, small ones too."""

    needs_groups = True

    @property
    def feasible(self) -> bool:
        """False where no group has enough votes for the promise, nor all together where they may stand in."""
        return self.law.answers

    @property
    def too_few(self) -> str:
        most = max(self.group_sizes.values(), default=0)
        return (
            f"no group has enough calibration {self.unit}s for alpha = {self.alpha:g} ({self.guarantee.name}), which "
            f"needs {self.guarantee.n_needed()} of a group; the largest has {most}"
        )

    @property
    def never_answers(self) -> bool:
        rules = [*self.by_group.values(), *([] if self.pooled is None else [self.pooled])]
        return all(rule.never_answers for rule in rules)

    @property
    def told(self) -> str:
        if self.never_answers:
            return "never answers"
        return f"answers above {self.threshold:.4g} or more, by group"

    @property
    def n_thresholds(self) -> int:
        rules = [*self.by_group.values(), *([] if self.pooled is None else [self.pooled])]
        return max(1, sum(rule.n_thresholds for rule in rules))

    @property
    def small_groups(self) -> list[str]:
        """Groups that calibration saw too seldom."""
        return [name for name in self.group_sizes if name not in self.by_group]

    @cached_property
    def _kinds(self) -> dict[Groups, Rule]:
        return {}

    def of_kind(self, groups: Groups) -> Rule:
        """The rule for questions of these groups: it answers what the rule of each of them answers."""
        if groups not in self._kinds:
            self._kinds[groups] = self._combined(groups)
        return self._kinds[groups]

    def _combined(self, groups: Groups) -> Rule:
        rules = [self.by_group.get(name, self.pooled) for name in groups] or [self.pooled]
        each = [rule for rule in rules if rule is not None]
        guarantee, width = each[0].guarantee if each else self.guarantee, len(self.threshold_key)
        if len(each) < len(rules) or (self.among_answers and len(groups) > 1):
            law = AnswerLaw(self.alpha, answers=False) if self.among_answers else ErrorLaw(0, 0)
            return Rule(guarantee, 0, law, above_all(width), sizes=())
        if len(each) == 1:
            return each[0]
        sizes = tuple(size for size in each[0].sizes or () if all(rule.takes(size) for rule in each))
        keys = {size: max(rule.threshold_of(size) for rule in each) for size in sizes}
        smallest = min(each, key=lambda rule: rule.n)
        return Rule(guarantee, smallest.n, smallest.law, max(rule.threshold_key for rule in each), sizes, keys)

    def threshold_of(self, size: int, groups: Groups = (), weight: float | None = None) -> ThresholdKey:
        return self.of_kind(groups).threshold_of(size, groups, weight)

    def takes(self, size: int, groups: Groups = ()) -> bool:
        return self.of_kind(groups).takes(size)

    def refusal(self, groups: Groups) -> str | None:
        """Why no question of these groups is answered, whatever its confidence; None where some may be."""
        if self.of_kind(groups).feasible:
            return None
        if not groups:
            return "this question is of no group, and each promise here is about one group"
        if self.among_answers and len(groups) > 1:
            return "this question is of several groups, and a promise about the answers given cannot be kept in each"
        lacking = [name for name in groups if name not in self.by_group or not self.by_group[name].feasible]
        if not lacking:
            return f"calibration saw no number of paths often enough in each of its groups for alpha = {self.alpha:g}"
        name = lacking[0]
        return (
            f"{self.group_sizes.get(name, 0)} calibration {self.unit}s are of the group {name!r:.60}, where "
            f"alpha = {self.alpha:g} needs {self.guarantee.n_needed()}"
        )

    def takes_pooled(self, groups: Groups) -> bool:
        """Whether the threshold of all stands in for that of a question's group."""
        return self.pooled is not None and (not groups or any(name not in self.by_group for name in groups))

    def stand_in(self, groups: Groups) -> str:
        if not self.takes_pooled(groups):
            return ""
        small = next((name for name in groups if name not in self.by_group), None)
        of = "This question is of no group" if small is None else f"The group {small!r:.60} has no threshold of its own"
        return f"{of}, so that of all calibration {self.unit}s together stands in."

    def answers(self, cases: Cases) -> NDArray[np.bool_]:
        self.require_groups(cases)
        answered = np.zeros(len(cases), dtype=np.bool_)
        for groups, rows in cases.rows_by_groups().items():
            answered[rows] = self.of_kind(groups).answers(cases.take(rows))
        return answered

    def require_groups(self, cases: Cases) -> None:
        """Raise where it is not known which groups the questions are of."""
        if cases.groups is None:
            raise InvalidValue(
                f"the guarantee {self.guarantee.name} is for groups of questions, and these votes have none",
                "give the questions with their groups, or name a guarantee that needs none as {guarantee}",
            )

    def p_value(self, evidence: Strata, cases: Cases) -> Floats:
        """Among the votes of its own group, the largest where there are several; 1 where nothing is answered."""
        p_value = np.ones(len(cases))
        for groups, rows in cases.rows_by_groups().items():
            part = cases.take(rows)
            compared = self._compared(evidence, groups)
            if compared:
                p_value[rows] = np.max([strata.p_value(part) for strata in compared], axis=0)
        return p_value

    def p_value_of(
        self, evidence: Strata, key: ThresholdKey, size: int, groups: Groups = (), weight: float | None = None
    ) -> float:
        compared = self._compared(evidence, groups)
        return max((strata.p_value_of(key, size) for strata in compared), default=1.0)

    def _compared(self, evidence: Strata, groups: Groups) -> list[Strata]:
        """The votes that a question of these groups is compared with; none where it is not answered anyway."""
        if not self.of_kind(groups).feasible:
            return []
        own = [evidence.of_group(name) for name in groups if name in self.by_group]
        return own if groups and len(own) == len(groups) else [*own, evidence]

    def document(self) -> dict[str, Any]:
        settled: dict[str, Any] = {"by_group": {name: _settled(rule) for name, rule in self.by_group.items()}}
        settled |= {} if self.pooled is None else {"pooled": _settled(self.pooled)}
        return {"guarantee": self.guarantee.name, **self.guarantee.parameters(), **settled}


def _settled(rule: Rule) -> dict[str, Any]:
    """What a guarantee settled on, without the guarantee."""
    known = {"guarantee", *rule.guarantee.parameters()}
    return {name: value for name, value in rule.document().items() if name not in known}


def _continued(sentence: str) -> str:
    """A sentence as it goes on behind a colon."""
    return sentence[:1].lower() + sentence[1:]
