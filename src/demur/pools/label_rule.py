"""What counts as right, said apart from what counts as the same: part of a policy, and no part of any vote.

relation       an answer that is the same as gold, or as one of its aliases; always right
tolerance      a number within this share of gold's value: |answer − gold| ≤ tolerance · |gold|; where gold is 0,
               |answer| ≤ tolerance. A year is a number too
containment    an open answer that holds the words of a gold answer: see `pools.containment`
judge          stored verdicts on what these do not decide, which people may overrule
field          ready-made labels, in place of all of these
people         what people said of each vote who saw its answer and no gold, in place of all of these
"""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from demur.errors import InvalidValue

if TYPE_CHECKING:
    from demur.pools.verdicts import Verdicts

_SHARE = re.compile(r"[0-9]{0,18}\.?[0-9]{1,18}(?:e-?[0-9]{1,2})?|[0-9]{1,18}/[0-9]{1,18}")
_CONTAINMENT = 1
"""The version of `pools.containment`: a change of what it takes is another."""
_RELATION = "relation"
PEOPLE = "people"
"""The name of the judge where nobody but people gave a verdict."""


@dataclass(frozen=True, slots=True)
class LabelJudge:
    """Who said what agrees with gold, and on how many verdicts, drawn at random, people found the same."""

    name: str
    confirmed: int = 0
    checked: int = 0

    def __post_init__(self) -> None:
        if not self.name.strip() or not 0 <= self.confirmed <= self.checked:
            raise InvalidValue(f"a judge of labels needs a name and counts that make sense, got {self}")

    @property
    def told(self) -> str:
        """The judge in words, with what people found."""
        if self.name == PEOPLE:
            return "the people who compared answers with gold"
        if not self.checked:
            return f"the judge {self.name} (unchecked)"
        counts = f"{self.confirmed} of {self.checked} verdicts checked at random"
        return f"the judge {self.name}, which people confirmed on {counts}"


@dataclass(frozen=True)
class LabelRule:
    """How answers are labelled right or wrong. Without arguments: right is what is the same as gold."""

    label_field: str | None = None
    """A field of the paths that holds true or false, in place of gold."""
    tolerance: Fraction | None = None
    containment: bool = False
    judge: LabelJudge | None = None
    people: bool = False
    """People labelled the votes, one by one."""
    callers: bool = False
    """Callers of a service were among these people: their feedback counted where no reviewer had spoken."""
    dropped: int | None = field(default=None, compare=False)
    """How many problems were left out because their label cannot be read; None: such problems are refused."""
    verdicts: Verdicts | None = field(default=None, compare=False, repr=False)
    """The judge's verdicts; a rule that was read from a policy has none."""

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            object.__setattr__(self, "tolerance", exact_tolerance(self.tolerance))
        if self.verdicts is not None:
            object.__setattr__(self, "judge", self.verdicts.judge)
        if self.callers and not self.people:
            raise InvalidValue("callers are among the people who label votes, and here no people label them")
        if self.people and replace(self, people=False, callers=False) != LabelRule():
            raise InvalidValue(
                "people labelled these votes, so neither gold nor a field is looked at",
                "leave {correct}, {gold_tolerance}, {gold_containment} and {label_verdicts} out",
            )
        if self.label_field is not None and replace(self, label_field=None) != LabelRule():
            raise InvalidValue(
                f"labels come ready-made from the field {self.label_field!r}, so gold is not looked at",
                "leave {correct} out, or {gold_tolerance}, {gold_containment} and {label_verdicts}",
            )

    @property
    def is_plain(self) -> bool:
        """Whether right is what is the same as gold, and nothing else."""
        return self == LabelRule()

    def describe(self) -> dict[str, Any]:
        """As plain values: what a policy holds; `of` reads it back."""
        left_out = {"dropped": self.dropped} if self.dropped else {}
        if self.label_field is not None:
            return {"field": self.label_field, **left_out}
        if self.people:
            return {"people": True, **({"callers": True} if self.callers else {})}
        known: dict[str, Any] = {"gold": _RELATION, **left_out}
        known |= {} if self.tolerance is None else {"tolerance": str(self.tolerance)}
        known |= {"containment": _CONTAINMENT} if self.containment else {}
        if self.judge is not None:
            counts = {"confirmed": self.judge.confirmed, "checked": self.judge.checked}
            known["judge"] = {"name": self.judge.name, **counts}
        return known

    @classmethod
    def of(cls, described: Any) -> LabelRule:
        """The rule that plain values tell of; ValueError where they tell of none. None: the plain one."""
        if described is None:
            return cls()
        known = {"field", "gold", "tolerance", "containment", "judge", "people", "callers", "dropped"}
        if not isinstance(described, dict) or not set(described) <= known:
            raise InvalidValue(f"a label rule must be an object of {', '.join(sorted(known))}, got {described!r:.80}")
        name, tolerance, judge = (described.get(part) for part in ("field", "tolerance", "judge"))
        texts = all(isinstance(value, (str, type(None))) for value in (name, tolerance))
        if not texts or described.get("gold", _RELATION) != _RELATION or name == "":
            raise InvalidValue(f"a label rule names a field, or gold by the relation, got {described!r:.80}")
        if described.get("containment") not in (None, _CONTAINMENT):
            raise InvalidValue(
                f"this demur has version {_CONTAINMENT} of containment, not {described['containment']!r:.20}"
            )
        for said in ("people", "callers"):
            if described.get(said, True) is not True:
                raise InvalidValue(f"`{said}` of a label rule is true or not there, got {described[said]!r:.20}")
        dropped = described.get("dropped")
        if dropped is not None and (type(dropped) is not int or dropped < 1):
            raise InvalidValue(f"`dropped` of a label rule is a count of problems, got {dropped!r:.20}")
        judged = None if judge is None else _judge(judge)
        people, callers = "people" in described, "callers" in described
        return cls(name, tolerance, "containment" in described, judged, people, callers, dropped)

    @property
    def told(self) -> str:
        """The rule in a few words."""
        if self.label_field is not None:
            return f"the field {self.label_field!r}"
        if self.people:
            return "what people said who saw the answers" + (
                ", callers of the service included" if self.callers else ""
            )
        ways = ["gold by the relation"]
        ways += [] if self.tolerance is None else [f"within {_shown(self.tolerance)} of its value"]
        ways += ["in an answer that holds its words"] if self.containment else []
        ways += [] if self.judge is None else [f"by {self.judge.told}"]
        return ", or ".join(ways)

    @property
    def wrong(self) -> str:
        """What "wrong" means in a promise, and of which questions; blank where it is "not the same as gold", of all."""
        left_out = f"{self.dropped} calibration questions whose label cannot be read are left out, and the promise is "
        parts = self._meaning, f"{left_out}about questions whose label can be read." if self.dropped else ""
        return " ".join(filter(None, parts))

    @property
    def _meaning(self) -> str:
        if self.is_plain:
            return ""
        if self.label_field is not None:
            return f"Wrong means wrong by the field {self.label_field!r} of the paths."
        if self.people:
            callers = " Where no reviewer spoke these were the callers of the service." if self.callers else ""
            return f"Wrong means wrong by the people who labelled the votes.{callers}"
        lenient = replace(self, judge=None, verdicts=None)
        right = [] if lenient.is_plain else [f"Right is {lenient.told}."]
        wrong = [] if self.judge is None else [f"Wrong means wrong by {self.judge.told}."]
        return " ".join([*right, *wrong])

    def differs(self, other: LabelRule) -> bool:
        """Whether another rule labels another way; what people have checked since does not make it another."""
        return _compared(self) != _compared(other)

    def options(self) -> list[str]:
        """The options that make this rule, as remedies name them."""
        judge = "{label_verdicts=FILE}" + (f" by {self.judge.name}" if self.judge else "")
        given = {
            f"{{correct={self.label_field}}}": self.label_field is not None,
            f"{{gold_tolerance={_shown(self.tolerance or Fraction(0))}}}": self.tolerance is not None,
            "{gold_containment=True}": self.containment,
            judge: self.judge is not None,
            "{label_file=FILE}": self.people,
        }
        return [option for option, is_given in given.items() if is_given]


_WAYS = {
    "'0' and '1'": {"0": False, "1": True, "0.0": False, "1.0": True},
    "'true' and 'false'": {"true": True, "false": False},
    "'yes' and 'no'": {"yes": True, "no": False},
}
"""How labels are written as texts."""


def written_label(value: Any) -> tuple[str, bool] | None:
    """In which way a label is written, and whether it says right; None where it is no label."""
    if isinstance(value, (bool, np.bool_)):
        return "true and false", bool(value)
    if isinstance(value, (int, float, np.integer, np.floating)):
        return ("0 and 1", bool(value)) if value in (0, 1) else None
    text = value.strip().lower() if isinstance(value, str) else None
    return next(((way, labels[text]) for way, labels in _WAYS.items() if text in labels), None)


def refuse_mixed_labels(ways: Collection[str], where: str) -> None:
    """Raise if labels are written in several ways, of which nobody knows what they mean together."""
    if len(ways) > 1:
        raise InvalidValue(f"{where} holds labels in several ways ({'; '.join(sorted(ways))}); write them all in one")


def as_label_rule(correct: str | LabelRule | None) -> LabelRule:
    """A rule; a name is that of a field with ready-made labels."""
    return correct if isinstance(correct, LabelRule) else LabelRule(label_field=correct)


def exact_tolerance(value: Any) -> Fraction:
    """A tolerance as the decimal or fraction it is written as."""
    share = Fraction(0)
    if _SHARE.fullmatch(str(value)):
        with suppress(ZeroDivisionError):
            share = Fraction(str(value))
    if not 0 < share < 1:
        raise InvalidValue(
            f"a tolerance is a share of gold's value, strictly between 0 and 1, such as 0.01; got {str(value)!r:.60}"
        )
    return share


def _judge(described: Any) -> LabelJudge:
    known = described if isinstance(described, dict) else {}
    name, counts = known.get("name"), [known.get(part, 0) for part in ("confirmed", "checked")]
    if not isinstance(name, str) or not all(type(count) is int and count >= 0 for count in counts):
        raise InvalidValue(f"a judge of labels needs a name and counts, got {described!r:.60}")
    return LabelJudge(name, *counts)


def _compared(rule: LabelRule) -> tuple[Any, ...]:
    judge = None if rule.judge is None else rule.judge.name
    return rule.label_field, rule.tolerance, rule.containment, judge, rule.people, rule.callers


def _shown(share: Fraction) -> str:
    """A share as people write it: a decimal where that is exact."""
    return f"{float(share):g}" if Fraction(f"{float(share):g}") == share else str(share)
