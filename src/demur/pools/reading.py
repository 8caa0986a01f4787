"""Reading the answers of paths off their texts, and what is to be told of it: how they were found, what looks odd."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from demur.answers.extraction import NOTHING, Extraction, was_cut
from demur.answers.extraction.custom import Extractor, parse_extractor
from demur.answers.extraction.said import holds_marker
from demur.answers.relations import Relation, as_written
from demur.descriptions import Description
from demur.errors import InvalidValue
from demur.pools.fields import FieldChoice
from demur.pools.scores import field_of
from demur.records import Path, Pool, Problem
from demur.tasks import asked_by, task_named

GIVEN, NO_TEXT = "given", "no text"
_SAID = ("labels", "markers")
"""Parts of a choice of fields by which texts are read."""
EXAMPLES = 3
_MOST_ODD = 20
_MANY = 0.1
"""The share of paths without an answer, or of problems with odd classes, that is warned of."""
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_EMPTY_WORDS = frozenset(("the", "an", "is", "are", "of", "and", "or", "it", "text"))


@dataclass(frozen=True)
class PathRead:
    """One path: its answer, how and where it was found, and the key."""

    path: Path
    found: Extraction
    key: str | None

    @property
    def words(self) -> str | None:
        """The words that the answer was taken from, with a few on either side."""
        if self.path.text is None or self.found.span is None:
            return None
        start, end = self.found.span
        return (
            f"{self.path.text[max(0, start - 40) : start]}⟦{self.path.text[start:end]}⟧{self.path.text[end : end + 20]}"
        )


@dataclass
class AnswerReader:
    """Reads the answers of pools, and keeps what is to be told of it.

    Paths that have an answer keep it, unless texts are to be read whatever there is, by the relation's rules or by an
    extractor of one's own.
    """

    fields: FieldChoice
    extract: str | None = None
    """An extractor of one's own."""
    from_texts: bool = False
    known: Mapping[str, Any] = field(default_factory=dict)
    """How the answers that are there were read, as the description of the pools says: its stage `answers`."""
    methods: Counter[str] = field(default_factory=Counter)
    examples: dict[str, dict[str, None]] = field(default_factory=dict)
    """By method, a few answers that it found."""
    odd: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Keys that hold answers which look different, with two of them."""
    problems: int = 0
    odd_problems: int = 0
    without: int = 0
    """Paths that have no answer."""
    with_marker: int = 0
    ready: int = 0
    """Paths that have an answer already, so that their texts are not read."""

    def __post_init__(self) -> None:
        """Labels and markers are those that the pools were read with, unless others or another task are given."""
        if self.fields.relation is None and self.fields.task in (None, self.known.get("task")):
            labels, markers = (getattr(self.fields, name) or tuple(self.known.get(name, ())) for name in _SAID)
            self.fields = replace(self.fields, labels=labels, markers=markers)

    @cached_property
    def extractor(self) -> Extractor | None:
        return None if self.extract is None else parse_extractor(self.extract)

    @property
    def reads_anew(self) -> bool:
        """Whether texts are read whatever answers their paths have."""
        return self.from_texts or self.extract is not None

    @property
    def has_own_markers(self) -> bool:
        """Whether markers were given, other than those that the pools were read with."""
        return self.fields.markers != tuple(self.known.get("markers", ()))

    @property
    def _is_told_how(self) -> bool:
        """Whether the choice of fields says how texts are read."""
        fields, said = self.fields, [tuple(self.known.get(name, ())) for name in _SAID]
        return [fields.labels, fields.markers] != said or bool(fields.task or fields.relation)

    def described(self, known: Description, problems: Sequence[Problem], pools: Iterable[Pool]) -> Description:
        """What is known of pools, with how their answers are read once this has read them.

        If answers are read in several ways, or were read by nobody knows what, it says nothing of that.
        """
        said = known.answers
        if not known.document() or ("extract" in said and not self.reads_anew and not self._is_told_how):
            return known
        way = self._one_way(problems)
        if way == said or self.reads_anew:
            return replace(known, answers=way)
        has_others = "extract" in said or any(path.answer is not None for pool in pools for path in pool.paths)
        return replace(known, answers={} if has_others else way)

    def _one_way(self, problems: Sequence[Problem]) -> dict[str, Any]:
        """How this reads texts, as the stage `answers` of a description; nothing if in several ways."""
        fields = self.fields
        relations = {relation.spec: relation for relation in map(fields.relation_of, problems)}
        tasks = {fields.task or self.known.get("task") or problem.extra.get("task") for problem in problems}
        if len(relations) != 1 or len(tasks) != 1:
            return {}
        ((spec, relation),), (task,) = relations.items(), tasks
        if relation.structure is not None:
            return {}
        named = task_named(task if fields.relation is None else relation.name).name
        how = {name: list(given) for name in _SAID if (given := getattr(fields, name))}
        return {"task": named, "extract": self.extract or spec} | how

    def read(self, pool: Pool) -> list[PathRead]:
        """Each path of a pool with its answer."""
        relation = self.fields.relation_of(pool.problem)
        asked = asked_by(pool.problem, self.fields.labels, self.fields.markers)
        read = []
        for path in pool.paths:
            found = self._found(path, relation, asked)
            read.append(PathRead(path, found, relation.key(found.answer, asked)))
            self._note(path, found, read[-1].key)
        self.problems += 1
        odd = _odd(read)
        self.odd_problems += bool(odd)
        if len(self.odd) < _MOST_ODD:
            self.odd |= odd
        return read

    def _found(self, path: Path, relation: Relation, asked: Any) -> Extraction:
        name = self.fields.answer_field
        given = path.answer if name == "answer" else field_of(path, [name])
        readable = (str, int, float) if relation.structure is None else (str, int, float, dict, list)
        how = path.extra.get("extraction") if name == "answer" else None
        if isinstance(given, readable) and self.extractor is None and not (self.from_texts and path.text is not None):
            self.ready += 1
            return Extraction(
                (as_written(given) or "").strip() or None, how if isinstance(how, str) else GIVEN, place_of(path)
            )
        if given is None and isinstance(how, str) and self._was_read_otherwise(relation):
            return NOTHING._replace(method=how)
        if path.text is None:
            return Extraction(None, NO_TEXT)
        truncated = was_cut(path.extra.get("finish_reason"))
        if self.extractor is not None:
            return self.extractor(path.text, truncated=truncated)
        return relation.extract(path.text, asked, truncated=truncated)

    def _was_read_otherwise(self, relation: Relation) -> bool:
        """Whether paths without an answer were read in another way, which found none, and nobody asks for this one."""
        return (
            not self.reads_anew and not self._is_told_how and self.known.get("extract", relation.spec) != relation.spec
        )

    def _note(self, path: Path, found: Extraction, key: str | None) -> None:
        self.methods[found.method] += 1
        self.without += key is None
        shown = self.examples.setdefault(found.method, {})
        if len(shown) < EXAMPLES:
            told = found.answer if found.answer is not None else (path.text or "")[-60:]
            if told:
                shown[told] = None
        if self.fields.markers and path.text is not None:
            self.with_marker += holds_marker(path.text, self.fields.markers)

    def add(self, other: AnswerReader) -> None:
        """Keep what another reader of the same fields has to tell, too."""
        self.methods += other.methods
        for method, found in other.examples.items():
            shown = self.examples.setdefault(method, {})
            for told in list(found)[: max(0, EXAMPLES - len(shown))]:
                shown[told] = None
        if len(self.odd) < _MOST_ODD:
            self.odd |= other.odd
        for name in ("problems", "odd_problems", "without", "with_marker", "ready"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def paths(self) -> int:
        return sum(self.methods.values())

    @property
    def lacks_answers(self) -> bool:
        """Whether too many paths have none."""
        return self.paths > 0 and self.without / self.paths >= _MANY

    def warnings(self) -> list[str]:
        """What is the matter with the answers, loudly."""
        told = []
        if self.lacks_answers:
            told.append(
                f"{self.without:,} of {self.paths:,} paths ({self.without / self.paths:.0%}) have no answer; see how "
                "their texts end, and say what marks the answer, which labels there are, or what the task is"
            )
        if self.odd:
            some = "; ".join(f"{key} holds {a!r} and {b!r}" for key, (a, b) in list(self.odd.items())[:EXAMPLES])
            told.append(
                f"in {self.odd_problems:,} of {self.problems:,} problems one class holds what looks different: {some}"
            )
        return told

    def refuse_unused_marker(self) -> None:
        """Raise where no path whose text is read has any of the markers."""
        if self.fields.markers and self.has_own_markers and not self.with_marker and self.ready < self.paths:
            named = ", ".join(map(repr, self.fields.markers))
            raise InvalidValue(f"no path has the answer marker {named}", "see how texts end with `demur answers FILE`")


def place_of(path: Path) -> tuple[int, int] | None:
    """Where in its text the words stand that a path's answer was taken from, as far as that was written down."""
    place = path.extra.get("found_at")
    if path.text is None or not (isinstance(place, (list, tuple)) and len(place) == 2):
        return None
    start, end = place
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(path.text):
        return None
    return start, end


def with_answers(pool: Pool, read: Sequence[PathRead]) -> Pool:
    """A pool whose paths have their answers, the rules that found them, the places and the keys."""
    paths = []
    for each in read:
        kept = {name: value for name, value in each.path.extra.items() if name != "found_at"}
        extra = {**kept, "extraction": each.found.method, "key": each.key}
        if each.found.span is not None:
            extra["found_at"] = list(each.found.span)
        paths.append(replace(each.path, answer=each.found.answer, has_answer_field=True, extra=extra))
    return replace(pool, paths=tuple(paths))


def _odd(read: Iterable[PathRead]) -> dict[str, tuple[str, str]]:
    """Classes with two answers each of which has a word that the other lacks."""
    spelled: dict[str, dict[str, frozenset[str]]] = {}
    for each in read:
        if each.key is not None and each.found.answer is not None:
            spelled.setdefault(each.key, {}).setdefault(each.found.answer, _words(each.found.answer))
    odd = {}
    for key, answers in spelled.items():
        distinct = {words: answer for answer, words in answers.items()}
        pairs = ((a, b) for a in distinct for b in distinct if a - b and b - a)
        first = next(pairs, None)
        if first is not None:
            odd[key] = tuple(sorted((distinct[first[0]], distinct[first[1]])))
    return odd  # type: ignore[return-value]


def _words(answer: str) -> frozenset[str]:
    return frozenset(map(str.lower, _WORD.findall(answer))) - _EMPTY_WORDS
