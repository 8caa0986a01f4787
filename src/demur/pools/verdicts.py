"""Verdicts on whether an answer agrees with gold: by a judge, and by the people who checked it.

A verdict is about one question, one answer and one gold; for another of the three it says nothing. People overrule the
judge. Verdicts are labels: nothing upstream of the labels may see one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from demur.errors import InvalidValue
from demur.pools.label_rule import PEOPLE, LabelJudge

Pair = tuple[str, str, frozenset[str]]
"""What a verdict is about: the question's digest, the answer, and all that is accepted."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one answer agrees with gold."""

    digest: str
    """Of what is asked: see `records.question_digest`."""
    question: str
    answer: str
    accepted: tuple[str, ...]
    agrees: bool | None = None
    """By the judge; None: it said neither yes nor no."""
    by: str | None = None
    """The judge, its prompt included; None where it was not asked."""
    person: bool | None = None
    """What somebody says who checked it."""
    drawn: bool = False
    """Whether it was drawn at random to be checked, and was; with no `person`, somebody could not tell."""
    id: str | None = None

    @property
    def pair(self) -> Pair:
        return self.digest, self.answer, frozenset(self.accepted)

    @property
    def right(self) -> bool:
        """The label: the person's word, or else the judge's; neither is wrong."""
        return bool(self.agrees if self.person is None else self.person)

    @property
    def confirmed(self) -> bool:
        """Whether somebody checked it and found as the judge did."""
        return self.person is not None and self.person == bool(self.agrees)


class Verdicts:
    """Verdicts, each pair once: of several rows the last says, and the last person's word stands."""

    def __init__(self, rows: Iterable[Verdict]) -> None:
        merged: dict[Pair, Verdict] = {}
        for row in rows:
            merged[row.pair] = _merged(merged[row.pair], row) if row.pair in merged else row
        self._rows = tuple(merged.values())
        judges = sorted({row.by for row in self._rows if row.by is not None})
        if len(judges) > 1:
            raise InvalidValue(
                f"these verdicts are by {len(judges)} judges ({', '.join(judges)}), and a label has one",
                "keep those of one judge in a file",
            )
        self._judge = judges[0] if judges else PEOPLE

    @property
    def judge(self) -> LabelJudge:
        """Who says it, and how much of it people have checked at random."""
        drawn = [row for row in self._rows if row.drawn]
        return LabelJudge(self._judge, sum(row.confirmed for row in drawn), len(drawn))

    @cached_property
    def _by_question(self) -> dict[str, list[Verdict]]:
        by_question: dict[str, list[Verdict]] = {}
        for row in self._rows:
            by_question.setdefault(row.digest, []).append(row)
        return by_question

    def of_question(self, digest: str | None) -> Sequence[Verdict]:
        """All verdicts on answers to one question."""
        return [] if digest is None else self._by_question.get(digest, [])

    def on(
        self, digest: str | None, accepted: Iterable[str], key_of: Callable[[str], str | None]
    ) -> dict[str, Verdict]:
        """The verdicts on one question and gold, by the key of their answers; a person's word goes before others."""
        wanted, found = frozenset(accepted), dict[str, Verdict]()
        for row in self.of_question(digest):
            key = key_of(row.answer) if frozenset(row.accepted) == wanted else None
            if key is not None and (key not in found or found[key].person is None or row.person is not None):
                found[key] = row
        return found

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self._rows)


def _merged(first: Verdict, then: Verdict) -> Verdict:
    """Two rows on one pair: the later one, with what the earlier knew and it does not say."""
    judged = then if then.by is not None else first
    person = first.person if then.person is None else then.person
    return replace(then, agrees=judged.agrees, by=judged.by, person=person, drawn=first.drawn or then.drawn)
