"""What becomes of the answers of pools when equal ones are put into classes: spellings, classes, winners."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from operator import ne

from demur.answers.equivalence.slow import SlowPath
from demur.answers.kinds import counted
from demur.pools.reading import AnswerReader, with_answers
from demur.pools.respelled import accepting_spellings
from demur.records import Pool


@dataclass
class AnswerClasses:
    """What became of the answers of a file: spellings, classes, winners."""

    relations: set[str] = field(default_factory=set)
    kinds: Counter[str] = field(default_factory=Counter)
    answers: set[str] = field(default_factory=set)
    merged: list[list[str]] = field(default_factory=list)
    spellings: int = 0
    classes: int = 0
    as_text: int = 0
    winners_changed: int = 0
    respelled: int = 0

    def classed(self, pool: Pool, reader: AnswerReader, slow: SlowPath | None) -> Pool:
        """A pool whose paths have their answers, and the rules and classes of those."""
        relation, read = reader.fields.relation_of(pool.problem), reader.read(pool)
        self.relations.add(relation.spec)
        written, keys = [each.found.answer for each in read], [each.key for each in read]
        classed = with_answers(pool, read)
        if slow is not None and relation.name == "mathematics" and (spelled := slow.spellings(keys, written)):
            # An answer that the slow path found equal to another is given that spelling, and gold accepts it where it
            # accepted the answer, so that every later command sees one class by the rules alone.
            key_of = reader.fields.key_of(pool.problem)
            surfaces = [spelled.get(key or "", surface) for key, surface in zip(keys, written, strict=True)]
            keys = [key_of(surface) for surface in surfaces]
            self.respelled += sum(map(ne, surfaces, written))
            paths = []
            for path, surface, answer, key in zip(classed.paths, surfaces, written, keys, strict=True):
                extra = {**path.extra, "key": key} | ({} if surface == answer else {"answer_written": answer})
                paths.append(replace(path, answer=surface, extra=extra))
            classed = replace(classed, problem=accepting_spellings(pool.problem, spelled, key_of), paths=tuple(paths))
        self.kinds.update(counted(keys))
        self._add(written, keys)
        return classed

    def add(self, other: AnswerClasses) -> None:
        """Count what became of the answers of other pools, too."""
        self.relations |= other.relations
        self.kinds += other.kinds
        self.answers |= other.answers
        self.merged += other.merged
        for name in ("spellings", "classes", "as_text", "winners_changed", "respelled"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def _add(self, surfaces: list[str | None], keys: list[str | None]) -> None:
        by_key: dict[str, set[str]] = {}
        for surface, key in zip(surfaces, keys, strict=True):
            if surface is not None and key is not None:
                by_key.setdefault(key, set()).add(surface)
        self.answers.update(*by_key.values())
        self.spellings += sum(map(len, by_key.values()))
        self.classes += len(by_key)
        self.as_text += sum(key.startswith("s:") for key in keys if key is not None)
        self.merged += [sorted(same)[:4] for same in by_key.values() if len(same) > 1]
        winners = {surface for key in _leaders(keys) for surface in by_key[key]}
        self.winners_changed += not winners >= _leaders(surfaces)


def _leaders(votes: list[str | None]) -> set[str]:
    """The entries with the most votes."""
    counts = Counter(vote for vote in votes if vote is not None)
    return {vote for vote, paths in counts.items() if paths == max(counts.values())}
