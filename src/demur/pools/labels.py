"""Which votes and paths are right, by a declared rule: see `pools.label_rule`.

Besides the file readers, only this and `pools.gold` look at gold. Which answers are the same is settled before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue, PoolFileError
from demur.pools.field_names import label_fields, there_is
from demur.pools.fields import PoolTable
from demur.pools.frames import FramePools
from demur.pools.gold import accepted, accepted_texts, leniently_right, other_number, without_aliases
from demur.pools.gold_columns import GoldColumn, gold_of_columns
from demur.pools.label_rule import LabelRule, as_label_rule, refuse_mixed_labels, written_label
from demur.pools.parts import every_problem, with_field, without_texts
from demur.pools.scores import ABSENT, field_of
from demur.pools.verdicts import Verdict, Verdicts
from demur.records import Path, Pool, Problem, is_nothing
from demur.voting.codes import taken
from demur.voting.rows import KeyRows
from demur.voting.votes import Votes

_ENOUGH_PATHS = 20
_DROP = "correct it, or leave such problems out with {drop_unreadable=True}"


@dataclass(frozen=True)
class Labels:
    """For each problem, which of its answers are right."""

    right: list[dict[str, bool]]
    """Answer key → right or wrong, for the answers the labels speak of."""
    gold: Sequence[frozenset[str]] | None
    """Keys of right answers: those of gold, and those in the pool that the rule takes for right."""
    conflicts: int = 0
    """Problems in which one answer carries both labels; such an answer counts as wrong."""
    rule: LabelRule = field(default_factory=LabelRule)
    judged: list[dict[str, Verdict | None]] = field(default_factory=list)
    """Where a judge is part of the rule: answer key → its verdict, None for none yet, where rules do not decide."""
    notes: tuple[str, ...] = ()
    """What is to be known of the verdicts that were, and were not, used."""
    known: Sequence[bool] | NDArray[np.bool_] | None = None
    """Which problems have a label, where some have none; None where all have one."""

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> Labels:
        """Those of some problems, in that order."""
        index = np.asarray(rows, dtype=np.intp)
        right, judged = (taken(column, index) if column else [] for column in (self.right, self.judged))
        return replace(self, right=right, gold=taken(self.gold, index), judged=judged, known=taken(self.known, index))

    def of_answers(self, chosen: Sequence[Any] | NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each problem's chosen answer is right; no answer is wrong."""
        if isinstance(self.gold, GoldColumn):
            return self.gold.right(chosen)
        return np.array([self.is_right(row, answer) for row, answer in enumerate(chosen)], dtype=np.bool_)

    def of_votes(self, votes: Votes) -> NDArray[np.bool_]:
        """Whether each vote's winner is right."""
        return self.of_answers(votes.winners)

    def of_paths(self, table: PoolTable) -> Sequence[list[bool]]:
        """Whether each path's answer is right."""
        if isinstance(self.gold, GoldColumn) and isinstance(table.answers, KeyRows):
            return self.gold.right_paths(table.answers)
        return [[self.is_right(row, key) for key in pool] for row, pool in enumerate(table.answers)]

    def is_right(self, row: int, answer: str | None) -> bool:
        """Whether an answer to one problem is right, by its key; no answer is wrong."""
        if answer is None:
            return False
        return answer in self.gold[row] if self.gold is not None else self.right[row].get(answer, False)


def read_labels(
    pools: Sequence[Pool], table: PoolTable, correct: str | LabelRule | None = None, *, partly: bool = False
) -> Labels:
    """Labels by a rule: from gold by the relation of `answers`, or ready-made from a boolean field of the paths.

    With `partly`, problems may lack gold, or some of their paths that field: those have no label.
    """
    rule = as_label_rule(correct)
    if rule.label_field is not None:
        return replace(
            _from_field(with_field(pools, rule.label_field), table, rule.label_field, partly=partly), rule=rule
        )
    if rule.judge is not None and rule.verdicts is None:
        raise InvalidValue(f"these labels need the verdicts of {rule.judge.told}", "give {label_verdicts=FILE}")
    if isinstance(pools, FramePools) and rule.verdicts is None and rule.tolerance is None and not rule.containment:
        labels = _from_gold_column(pools, table, rule, partly=partly)
        if labels is not None:
            return labels
    with_gold, pools = set(labelled_rows(pools)), without_texts(pools)
    if not partly or not with_gold or len(with_gold) == len(pools):
        return _from_gold(pools, table, rule)
    rows = sorted(with_gold)
    labels = _from_gold([pools[row] for row in rows], table.take(rows), rule)
    assert labels.gold is not None
    gold, judged = dict(zip(rows, labels.gold, strict=True)), dict(zip(rows, labels.judged, strict=False))
    every = range(len(pools))
    return replace(
        labels,
        gold=[gold.get(row, frozenset()) for row in every],
        judged=[judged.get(row, {}) for row in every] if labels.judged else [],
        known=[row in with_gold for row in every],
    )


def labelled_rows(pools: Sequence[Pool]) -> list[int]:
    """The rows whose problems have a gold answer."""
    if isinstance(pools, FramePools):
        texts = gold_of_columns(pools, accepted_texts)
        if texts is not None:
            return np.flatnonzero(~texts.empty).tolist()
    return [row for row, pool in enumerate(pools) if accepted_texts(pool.problem)]


def readable_rows(pools: Sequence[Pool], table: PoolTable, rule: LabelRule, *, partly: bool = False) -> list[int]:
    """The rows whose problems have gold, or ready-made labels, that can be read; with `partly`, or that have none."""
    if rule.people:
        return list(range(len(pools)))
    if rule.label_field is None:
        problems = enumerate(every_problem(pools))
        return [
            row for row, problem in problems
            if _keys_of_gold(problem, table) or (partly and not accepted_texts(problem))
        ]  # fmt: skip
    steps = rule.label_field.removeprefix(".").split(".")

    def is_readable(path: Path, key: str | None) -> bool:
        label = field_of(path, steps)
        nothing = label is ABSENT or is_nothing(label)
        return key is None or (partly and nothing) or written_label(label) is not None

    rows = enumerate(zip(with_field(pools, rule.label_field), table.answers, strict=True))
    return [row for row, (pool, keys) in rows if all(map(is_readable, pool.paths, keys))]


def without_gold(pools: Sequence[Pool]) -> list[Pool]:
    """Pools as they are where nothing is known of what is right."""
    bare = [replace(pool.problem, gold=(), extra=without_aliases(pool.problem)) for pool in pools]
    return [replace(pool, problem=problem) for pool, problem in zip(pools, bare, strict=True)]


def with_gold_from(pools: Sequence[Pool], name: str) -> list[Pool]:
    """Pools whose gold is what a field of their problems holds, and nothing where it holds nothing."""
    given = []
    for pool in pools:
        accepted = pool.problem.extra.get(name)
        if isinstance(accepted, bool):
            raise PoolFileError(
                f"problem {pool.problem.id!r} has {str(accepted).lower()} under {name!r}, which does not say of which "
                "answer",
                "let the field hold what people accept as right, or be one of the paths",
            )
        gold = () if is_nothing(accepted) else tuple(accepted) if isinstance(accepted, (list, tuple)) else (accepted,)
        given.append(replace(pool, problem=replace(pool.problem, gold=gold, extra=without_aliases(pool.problem))))
    return given


def accepted_answers(pools: Sequence[Pool]) -> list[list[str]]:
    """What each problem accepts, as it is written: for people to read beside the answers."""
    return [list(accepted_texts(problem)) for problem in every_problem(pools)]


def refuse_labels_as_score(table: PoolTable, labels: Labels) -> None:
    """Raise if the score takes two values only and they are the labels: the vote would see what it must not.

    A handful of paths may fall that way by chance, so small files are let through.
    """
    if table.scores is None or sum(map(len, islice(table.scores, _ENOUGH_PATHS))) < _ENOUGH_PATHS:
        return
    by_label: dict[bool, set[float]] = {True: set(), False: set()}
    left_out = frozenset(table.unscored)
    rows = enumerate(zip(table.scores, _right_by_pool(labels, table), strict=True))
    for scores, rights in (row for at, row in rows if at not in left_out):
        for score, right in zip(scores, rights, strict=True):
            by_label[right].add(score)
            if len(by_label[right]) > 1:
                return
    if by_label[True] and by_label[False] and by_label[True].isdisjoint(by_label[False]):
        raise InvalidValue(
            f"the score {table.fields.score!r} is the label itself: one value on every right path, another on every "
            "wrong one; labels cannot be a score"
        )


def _right_by_pool(labels: Labels, table: PoolTable) -> Iterator[list[bool]]:
    """Whether each path is right, pool by pool: mostly the first few tell."""
    return ([labels.is_right(row, key) for key in pool] for row, pool in enumerate(table.answers))


def _from_gold_column(pools: FramePools, table: PoolTable, rule: LabelRule, *, partly: bool) -> Labels | None:
    """The same as `_from_gold`, from the columns of a table; None where gold is no column."""

    def keys_of(problem: Problem) -> Sequence[str]:
        right = _keys_of_gold(problem, table)
        if not right and accepted_texts(problem):
            raise _unreadable_gold(problem, table)
        return list(right)

    gold = gold_of_columns(pools, keys_of)
    if gold is None:
        return None
    empty = gold.empty
    if empty.any() and (not partly or empty.all()):
        raise _no_gold(pools.ids[int(np.argmax(empty))], int(empty.sum()), pools)
    return Labels(right=[], gold=gold, rule=rule, known=~empty if empty.any() else None)


def _no_gold(problem: str, unlabelled: int, pools: Sequence[Pool]) -> PoolFileError:
    return PoolFileError(
        f"problem {problem!r} has no gold answer ({unlabelled} of {len(pools)} have none); labels are needed here",
        "add gold, name ready-made labels as {correct}, or leave those problems out" + _left_out(unlabelled, pools),
    )


def _from_gold(pools: Sequence[Pool], table: PoolTable, rule: LabelRule) -> Labels:
    gold, judged = list[frozenset[str]](), list[dict[str, Verdict | None]]()
    for row, pool in enumerate(pools):
        right = _keys_of_gold(pool.problem, table)
        if not right and accepted_texts(pool.problem):
            raise _unreadable_gold(pool.problem, table)
        if not right:
            raise _no_gold(pool.problem.id, len(pools) - len(labelled_rows(pools)), pools)
        answers, relation = table.written[row], table.fields.relation_of(pool.problem)
        lenient = leniently_right(rule, relation, right, answers)
        if rule.verdicts is None:
            gold.append(frozenset(right) | lenient)
            continue
        key_of = table.fields.key_of(pool.problem)
        verdicts = rule.verdicts.on(pool.problem.digest, accepted_texts(pool.problem), key_of)
        lenient -= {key for key, verdict in verdicts.items() if verdict.person is False}
        undecided = {key: verdicts.get(key) for key in answers if key not in right and key not in lenient}
        undecided = {
            key: verdict
            for key, verdict in undecided.items()
            if not other_number(key, right) or (verdict is not None and verdict.person is not None)
        }
        agreeing = {key for key, verdict in undecided.items() if verdict is not None and verdict.right}
        judged.append(undecided)
        gold.append(frozenset(right) | lenient | agreeing)
    notes = () if rule.verdicts is None else tuple(_notes_on(rule.verdicts, judged, pools))
    return Labels(right=[], gold=gold, rule=rule, judged=judged, notes=notes)


def _left_out(unlabelled: int, pools: Sequence[Pool]) -> str:
    """The option that leaves problems without labels out, where others have some."""
    return " with {drop_unreadable=True}" + _in_part(unlabelled, pools) if unlabelled < len(pools) else ""


def _in_part(unlabelled: int, pools: Sequence[Pool]) -> str:
    """How votes may calibrate of which some have no label; blank where none has one."""
    some = unlabelled < len(pools)
    return "; to count their votes as wrong, calibrate with {partly_labelled=True}" if some else ""


def _notes_on(verdicts: Verdicts, judged: Sequence[dict[str, Verdict | None]], pools: Sequence[Pool]) -> Iterator[str]:
    """Which answers have no verdict, and which verdicts are about something else."""
    found = [verdict for answers in judged for verdict in answers.values()]
    if without := sum(verdict is None for verdict in found):
        yield (
            f"warning: {without} of {len(found)} answers that need a verdict have none yet, and count as wrong; "
            "`demur judge-labels` asks for the rest"
        )
    if neither := sum(verdict is not None and verdict.agrees is verdict.person is None for verdict in found):
        yield f"note: the judge said neither yes nor no on {neither} answers, which count as wrong"
    golds: dict[str | None, set[frozenset[str]]] = {}
    for pool in pools:
        golds.setdefault(pool.problem.digest, set()).add(frozenset(accepted_texts(pool.problem)))
    elsewhere = sum(verdict.digest not in golds for verdict in verdicts)
    other_gold = sum(frozenset(row.accepted) not in golds[row.digest] for row in verdicts if row.digest in golds)
    for count, about in ((elsewhere, "other questions"), (other_gold, "another gold of these questions")):
        if count:
            yield f"note: {count} of {len(verdicts)} verdicts are about {about}, and change nothing"


def _unreadable_gold(problem: Problem, table: PoolTable) -> PoolFileError:
    """What to say of gold that the relation takes for no answer."""
    relation, gold = table.fields.relation_of(problem), accepted_texts(problem)[0]
    wanted = "no answer" if relation.structure is None else "no JSON value that this relation takes for an answer"
    return PoolFileError(
        f"the gold of problem {problem.id!r} is {wanted} by {relation.spec:.40}: {gold!r:.60}",
        "correct it, leave such problems out with {drop_unreadable=True}, compare by another {relation}, or name "
        "ready-made labels as {correct}",
    )


def _keys_of_gold(problem: Problem, table: PoolTable) -> dict[str, str]:
    """The keys of what a problem accepts, and how it is written."""
    key_of, relation = table.fields.key_of(problem), table.fields.relation_of(problem)
    return {key: str(entry) for entry in relation.accepted(accepted(problem)) if (key := key_of(entry)) is not None}


def _from_field(pools: Sequence[Pool], table: PoolTable, name: str, *, partly: bool) -> Labels:
    steps = name.removeprefix(".").split(".")
    right, conflicts, known, ways = [], 0, [True] * len(pools), set[str]()
    for row, (pool, keys) in enumerate(zip(pools, table.answers, strict=True)):
        verdicts: dict[str, bool] = {}
        conflict = False
        for position, (path, key) in enumerate(zip(pool.paths, keys, strict=True)):
            if key is None:
                continue
            label = field_of(path, steps)
            if partly and (label is ABSENT or is_nothing(label)):
                known[row] = False
                continue
            written = written_label(label)
            if written is None:
                got = f"nothing; {there_is(name, label_fields(pools))}" if label is ABSENT else f"{label!r:.60}"
                raise PoolFileError(
                    f"problem {pool.problem.id!r}, path {position}: the label {name!r} must be true or false, "
                    f"or 0 or 1, got {got}",
                    f"add it{_in_part(1, pools)}" if label is None or label is ABSENT else _DROP,
                )
            ways.add(written[0])
            conflict |= verdicts.setdefault(key, written[1]) != written[1]
            verdicts[key] &= written[1]
        conflicts += conflict
        right.append(verdicts)
    refuse_mixed_labels(ways, f"the field {name!r}")
    said = None if all(known) else known
    return Labels(right=right, gold=None, conflicts=conflicts, rule=LabelRule(name), known=said)
