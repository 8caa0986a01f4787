"""Which fields of pools hold what, and the columns they make. Never looks at gold."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.answers.kinds import counted
from demur.answers.relations import Relation, as_written, relation_named, relation_of_spec
from demur.descriptions import Description
from demur.errors import InvalidValue, PipelineMismatch, PoolFileError
from demur.pools.answer_keys import keys_serve, refuse_other_keys
from demur.pools.field_names import answer_fields, there_is
from demur.pools.frame_table import Spellings, Texts, digests_of, keys_of, stored_keys, surfaces_of
from demur.pools.frames import FramePools
from demur.pools.groups import GROUP, read_groups
from demur.pools.parts import with_field, without_texts
from demur.pools.scores import ABSENT, as_unscored, field_of, refuse_label_name, scores_or_dropped
from demur.pools.spellings import spellings_by_key, suspects_among
from demur.pools.weights import Weighing, describe_weights, weight_field
from demur.records import Pool, Problem
from demur.tasks import asked_by, by_task, chosen, is_known_relation, known_relations, relations_of, task_named, task_of
from demur.voting.cases import GroupColumn
from demur.voting.codes import taken
from demur.voting.recipe import Unscored
from demur.voting.rows import KeyRows, ScoreRows


@dataclass(frozen=True)
class FieldChoice:
    """Which fields of a pool file are the answer and the score, and how answers are compared."""

    answer_field: str = "answer"
    score: str | None = None
    missing: tuple[str, ...] = ()
    """Spellings of "no answer", besides blank ones."""
    relation: str | None = None
    """The name of the relation that says when two answers are the same; None: by each problem's task."""
    unscored: Unscored = None
    """What becomes of pools with a path that has no score: see `voting.recipe.Unscored`."""
    task: str | None = None
    """The task of all problems, whatever they name."""
    labels: tuple[str, ...] = ()
    """Names that are chosen, where options have no letters: yes, no."""
    markers: tuple[str, ...] = ()
    """Words behind which texts have their answer, where the prompt asked for them."""
    among: tuple[str, ...] = ()
    """The relations, with their versions, that a policy's tasks had; where a file has no others, it is read alike."""
    in_use: bool = False
    """The choice is a policy's: pools that lack the score are read as it says, be they all."""
    group_field: str = GROUP
    """The field of problems that holds their groups."""
    weights: Weighing | None = None
    """How much each question counts: by a fitted ratio, or by the field of problems that is named."""

    def __post_init__(self) -> None:
        as_unscored(self.unscored)
        if self.relation is not None:
            relation = relation_named(self.relation)
            if relation.structure is not None:  # with its rules, whatever becomes of the file that they stand in
                object.__setattr__(self, "relation", relation.spec)
        if self.task is not None:
            (task_named if self.in_use else chosen)(self.task)  # a policy is a file, which loads no plugin

    def relation_of(self, problem: Problem) -> Relation:
        """When two answers to this problem are the same."""
        if self.relation is not None:
            return relation_named(self.relation)
        return (task_of(problem) if self.task is None else task_named(self.task)).relation

    def key_of(self, problem: Problem) -> Callable[[Any], str | None]:
        """What an answer to this problem shares with all that are the same."""
        relation, asked = self.relation_of(problem), asked_by(problem, self.labels, self.markers)

        def key(answer: Any) -> str | None:
            if isinstance(answer, (dict, list)):
                _refuse_structured(answer, relation, f"problem {problem.id!r}")
            return relation.key(answer, asked)

        return key

    def read(self, answers: Iterable[Any], asked: Any = None) -> tuple[list[str | None], dict[str, str]]:
        """The keys of one pool's answers as they are written, and how the answer behind each key is written."""
        relation = self._relation_here(asked)
        said = asked_by(asked if isinstance(asked, Problem) else Problem(""), self.labels, self.markers)
        texts = [None if (raw := as_written(answer)) is None else raw.strip() or None for answer in answers]
        named = {spelling.strip() for spelling in self.missing}
        key_of = {text: None if text is None or text in named else relation.key(text, said) for text in texts}
        return [key_of[text] for text in texts], spellings_by_key(key_of, Counter(texts))

    def _relation_here(self, asked: Any) -> Relation:
        """How the answers to one question are compared, which may be a problem that names its task."""
        if self.relation is not None:
            return relation_named(self.relation)
        if self.task is not None:
            return task_named(self.task).relation
        if isinstance(asked, Problem) and "task" in asked.extra:
            relation = task_of(asked).relation
            if relation.spec not in self.among:
                calibrated = by_task(self.among)
                raise PipelineMismatch([f"answers.relation is {calibrated!r} in the policy, {relation.spec!r} here"])
            return relation
        if len(self.among) != 1:
            raise InvalidValue(
                f"this policy compares answers by the task of each question ({', '.join(self.among)})",
                "give {question} as a Problem whose extra names the task",
            )
        return relation_of_spec(self.among[0])

    def describe(self, problems: Iterable[Problem]) -> dict[str, Any]:
        """Its part of the stage `answers` of a description, for these problems; `of` reads it back."""
        relation = self.told_relation(problems)
        known = {"field": self.answer_field, "missing": sorted(self.missing), "relation": relation}
        said = {"read_as": self.task, "labels": list(self.labels), "markers": list(self.markers)}
        said |= {} if self.group_field == GROUP else {"group_field": self.group_field}
        said |= {} if self.weights is None else {"weights": describe_weights(self.weights)}
        return known | {name: value for name, value in said.items() if value}

    def told_relation(self, problems: Iterable[Problem]) -> str:
        """How answers to these problems are compared, as a description has it."""
        if self.relation is not None:
            return relation_named(self.relation).spec
        used = {self.relation_of(problem).spec for problem in problems}
        return by_task(self.among if used <= set(self.among) else used)

    def describe_score(self) -> dict[str, Any]:
        """Its part of the stage `score`."""
        return {"name": self.score} | ({} if self.unscored is None else {"unscored": self.unscored})

    @classmethod
    def of(cls, description: Description) -> FieldChoice:
        """The choice that a description tells of."""
        stage, score = description.answers, description.score.get("name")
        if not all(isinstance(stage.get(name), (str, list)) for name in ("field", "missing", "relation")):
            raise InvalidValue(
                "this policy was calibrated on a table in Python, not on a pool file; decide in Python, or calibrate a "
                "file"
            )
        compared = tuple(relations_of(stage["relation"]))
        if not all(map(is_known_relation, compared)):
            raise InvalidValue(
                f"this policy compares answers by {stage['relation']:.200}, and this demur knows "
                f"{', '.join(sorted(known_relations()))}; calibrate again"
            )
        alone = None if stage["relation"] == by_task(compared) else compared[0]
        unscored = as_unscored(description.score.get("unscored"))
        among = compared if alone is None else ()
        labels, markers = (tuple(stage.get(name, ())) for name in ("labels", "markers"))
        how = (stage["field"], score, tuple(stage["missing"]), alone, unscored, stage.get("read_as"))
        kind = {"group_field": stage.get("group_field", GROUP), "weights": weight_field(stage.get("weights"))}
        return cls(*how, labels, markers, among, in_use=True, **kind)


@dataclass(frozen=True)
class PoolTable:
    """The columns of a file: one entry per problem, one per path within."""

    ids: Sequence[str]
    questions: Sequence[str | None]
    digests: Sequence[str | None]
    """Of what is asked: see `records.question_digest`."""
    clusters: Sequence[str | None]
    groups: GroupColumn
    answers: Sequence[list[str | None]]
    """Keys: equal for equal answers."""
    written: Sequence[dict[str, str]]
    """For each pool, how the answer behind a key is written: as most paths have it, then the shortest way."""
    scores: Sequence[list[float]] | None
    fields: FieldChoice = field(default_factory=FieldChoice)
    suspects: dict[str, int] = field(default_factory=dict)
    """Spellings that look like "no answer" but were not named as such, and how many paths have them."""
    unused_missing: tuple[str, ...] = ()
    """Named spellings of "no answer" that no path has."""
    relations: Mapping[str, int] = field(default_factory=dict)
    """The relations that compared its answers, and how many problems each."""
    unscored: tuple[int, ...] = ()
    """Rows of pools that are left out because a path of theirs has no score."""
    folded: Sequence[str | None] | None = None
    """Digests of the folded questions, which jitter is drawn from: see `records.folded`."""

    def comparison(self) -> str:
        """How its answers were compared, and what they were read as, in words."""
        if isinstance(self.answers, KeyRows):
            keys, paths = self.answers.keys.tolist(), self.answers.paths_of.tolist()
        else:
            times = Counter(key for pool in self.answers for key in pool)
            keys, paths = list(times), list(times.values())
        kinds = Counter[str]()
        for key, many in zip(keys, paths, strict=True):
            kinds.update(dict.fromkeys(counted([key]), many))
        lacking = sum(many for key, many in zip(keys, paths, strict=True) if key is None)
        listed = sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))
        told = ", ".join(f"{many:,} {kind}" for kind, many in listed if many)
        none = f"; {lacking:,} of {sum(paths):,} paths have none" if lacking else ""
        return f"Answers are compared by {' and '.join(sorted(self.relations))}: {told or 'none'}{none}."

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> PoolTable:
        """Some of the rows, in that order."""
        columns = ("ids", "questions", "digests", "clusters", "groups", "answers", "written", "scores", "folded")
        index = np.asarray(rows, dtype=np.intp)
        kept: dict[str, Any] = {name: taken(getattr(self, name), index) for name in columns}
        left_out: list[int] = np.flatnonzero(np.isin(index, self.unscored)).tolist() if self.unscored else []
        return replace(self, **kept, unscored=tuple(left_out))


@dataclass(frozen=True)
class PoolRow:
    """What a table has of one pool, as far as its vote needs it."""

    answers: list[str | None]
    written: dict[str, str]
    scores: list[float] | None


def read_row(pool: Pool, fields: FieldChoice) -> PoolRow:
    """What `read_table` reads of one pool, without the columns that only many have use for."""
    surfaces = _read_surfaces([pool], fields)[0]
    _refuse_unmet_pointers(fields, (surface for surface in surfaces if surface is not None))
    answers, written = _keys_in(pool.problem, surfaces, fields, {spelling.strip() for spelling in fields.missing})
    scores = None
    if fields.score is not None:
        scores = scores_or_dropped([pool], fields.score, fields.unscored, in_use=fields.in_use)[0][0]
    return PoolRow(answers, written, scores)


def _keys_in(
    problem: Problem, surfaces: Sequence[str | None], fields: FieldChoice, missing: Collection[str]
) -> tuple[list[str | None], dict[str, str]]:
    """The keys of one pool's answers, and how the answer behind each is written."""
    key, times = fields.key_of(problem), Counter(surfaces)
    key_of = {text: None if text is None or text in missing else key(text) for text in times}
    return [key_of[surface] for surface in surfaces], spellings_by_key(key_of, times)


def read_table(pools: Sequence[Pool], fields: FieldChoice) -> PoolTable:
    """Answers as keys and one score per path."""
    if isinstance(pools, FramePools):
        refuse_other_keys(pools, fields.describe(pools.kinds[1]))
        table = _read_columns(pools, fields)
        if table is not None:
            return table
    surfaces, problems = _read_surfaces(pools, fields), [pool.problem for pool in without_texts(pools)]
    counts = Counter(surface for pool in surfaces for surface in pool if surface is not None)
    named = {spelling.strip() for spelling in fields.missing}
    _refuse_unmet_pointers(fields, counts)
    keys, written, relations = [], [], Counter[str]()
    for problem, row in zip(problems, surfaces, strict=True):
        relations[fields.relation_of(problem).spec] += 1
        key, spelt = _keys_in(problem, row, fields, named)
        keys.append(key)
        written.append(spelt)
    scores, unscored = None, list[int]()
    if fields.score is not None:
        scores, unscored = scores_or_dropped(pools, fields.score, fields.unscored, in_use=fields.in_use)
    suspects = suspects_among(counts, named)
    unused = tuple(spelling for spelling in fields.missing if spelling.strip() not in counts)
    columns = ([getattr(problem, name) for problem in problems] for name in ("id", "question", "digest", "cluster"))
    ids, questions, digests, clusters = columns
    groups = read_groups(pools, fields.group_field, in_use=fields.in_use)
    known = (ids, questions, digests, clusters, groups, keys, written, scores, fields)
    folded = [problem.folded_digest for problem in problems]
    return PoolTable(*known, suspects, unused, relations, tuple(unscored), folded)


def read_keys(pool: Pool, fields: FieldChoice) -> tuple[list[str | None], list[str | None]]:
    """The answers of one pool as keys, and as they are written; of each path by itself."""
    texts, key = _surfaces_of(pool, fields), fields.key_of(pool.problem)
    named = {spelling.strip() for spelling in fields.missing}
    key_of = {text: None if text is None or text in named else key(text) for text in set(texts)}
    return [key_of[text] for text in texts], texts


def spellings_of(pool: Pool, keys: Sequence[str | None], fields: FieldChoice) -> dict[str, str]:
    """How the answer behind each key of a pool is written, of a pool whose keys are known."""
    texts = _surfaces_of(pool, fields)
    return spellings_by_key(dict(zip(texts, keys, strict=True)), Counter(texts))


def _read_columns(pools: FramePools, fields: FieldChoice) -> PoolTable | None:
    """The same from the columns of a table; None where it must be read path by path."""
    kind_of, problems = pools.kinds
    if any(fields.relation_of(problem).structure is not None for problem in problems):
        return None
    surfaces = surfaces_of(pools, fields.answer_field)
    if surfaces is None:
        return None
    scored = None
    if fields.score is not None:
        rows, left_out = scores_or_dropped(pools, fields.score, fields.unscored, in_use=fields.in_use)
        scored = ScoreRows.of(rows), left_out
    named = {spelling.strip() for spelling in fields.missing}
    answers = stored_keys(pools, surfaces, named) if keys_serve(pools, fields.describe(problems)) else None
    answers = answers or keys_of(pools, surfaces, named, fields.key_of)
    relations = Counter[str]()
    for problem, many in zip(problems, np.bincount(kind_of, minlength=len(problems)).tolist(), strict=True):
        relations[fields.relation_of(problem).spec] += many
    suspects = suspects_among(surfaces.counts, named)
    unused = tuple(spelling for spelling in fields.missing if spelling.strip() not in surfaces.counts)
    groups = read_groups(pools, fields.group_field, in_use=fields.in_use)
    scores, unscored = (None, []) if scored is None else scored
    known = (pools.ids, Texts(pools), digests_of(pools), pools.clusters, groups, answers)
    written = Spellings.of(answers, surfaces, spellings_by_key)
    how = (suspects, unused, relations, tuple(unscored), digests_of(pools, fold=True))
    return PoolTable(*known, written, scores, fields, *how)


def problems_of(pools: Sequence[Pool]) -> list[Problem]:
    """The problems of pools; of a table, one of each kind that is read in a way of its own."""
    if isinstance(pools, FramePools):
        return pools.kinds[1]
    return [pool.problem for pool in pools]


def _refuse_unmet_pointers(fields: FieldChoice, answers: Iterable[str]) -> None:
    """Raise where rules speak of parts that no answer of a file has; a policy's may lack them in a few new ones."""
    structure = None if fields.relation is None else relation_named(fields.relation).structure
    if structure is None or fields.in_use:
        return
    unmet = structure.unmet(answers)
    if unmet:
        named = ", ".join(map(repr, unmet[:5]))
        raise InvalidValue(f"the rules for answers name {named}, and no answer has that", "correct it or leave it out")


def named_sampling(pools: Sequence[Pool]) -> dict[str, Any]:
    """Model and temperature, as far as the file names them."""
    known = {}
    problems = problems_of(pools)
    for name in ("model", "temperature"):
        values = {repr(problem.extra.get(name)): problem.extra.get(name) for problem in problems}
        named = sorted(text for text, value in values.items() if isinstance(value, (str, int, float)))
        if len(values) == 1 and named:
            known[name] = next(iter(values.values()))
        elif len(named) > 1:
            known[name] = named[:20]  # a mixture is a pipeline of its own
    return known


def _read_surfaces(pools: Sequence[Pool], choice: FieldChoice) -> list[list[str | None]]:
    """Every answer as it is written, stripped; None where there is none."""
    name = choice.answer_field
    refuse_label_name(name)
    own, looked_at = name == "answer", with_field(pools, name)
    paths = (path for pool in looked_at for path in pool.paths)
    if not any(path.has_answer_field if own else field_of(path, [name]) not in (ABSENT, None) for path in paths):
        raise PoolFileError(f"no path in the file has an answer in the field {name!r}", _other_fields(pools, name))
    return [_surfaces_of(pool, choice) for pool in looked_at]


def _surfaces_of(pool: Pool, choice: FieldChoice) -> list[str | None]:
    """The answers of one pool as they are written, stripped."""
    name, relation = choice.answer_field, choice.relation_of(pool.problem)
    row: list[str | None] = []
    for position, path in enumerate(pool.paths):
        raw = path.answer if name == "answer" else field_of(path, [name])
        if type(raw) is str:
            row.append(raw.strip() or None)
            continue
        if isinstance(raw, (dict, list)) or (isinstance(raw, float) and math.isinf(raw)):
            _refuse_structured(raw, relation, f"problem {pool.problem.id!r}, path {position}")
        row.append(None if raw is ABSENT else (as_written(raw) or "").strip() or None)
    return row


def _other_fields(pools: Sequence[Pool], name: str) -> str:
    """Where the answers may be instead."""
    fields = answer_fields(pools)
    has_texts = any(path.text for pool in pools[:100] for path in pool.paths)
    if name == "answer" and has_texts and not any(field.startswith("answer") for field in fields):
        return "read them off the texts first: demur answers FILE -o COPY"
    if not fields:
        return (
            "if the paths have texts, read them off those first: demur answers FILE -o COPY" if name == "answer" else ""
        )
    return f"{there_is(name, fields)}; name one as {{answer_field}}"


def _refuse_structured(answer: Any, relation: Relation, where: str) -> None:
    """Raise where an answer is neither a string nor a number, unless its relation takes objects and lists."""
    if relation.structure is None or isinstance(answer, float):
        raise PoolFileError(f"{where}: an answer must be a string or a number, got {answer!r:.200}")
