"""Files of labels that people gave to votes: one JSON object per line, appended to as labels are given.

    {"format": "demur-labels", "schema": 1, "queue": "sha256:…", "pipeline": {…}, "guarantees": [{…}], …}
    {"id": "q1", "label": "right", "by": "ann", "at": "2026-11-17T20:00:00+00:00"}
    {"id": "q1", "undo": true, "by": "ann", "at": "2026-11-17T20:00:09+00:00"}

The first line, written before the first label, says which votes are labelled and for which guarantees: a rank that is
drawn is drawn by then. Labels of other votes are refused, and so are two on one question, unless the first was undone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from demur.calibration import GUARANTEES, Grouped, Guarantee
from demur.calibration.down_to import DownTo
from demur.calibration.guarantee import without_infinity
from demur.calibration.labelling import LabelQueue
from demur.descriptions import Description, digest
from demur.errors import InvalidValue, LabelMismatch
from demur.files.appended import AppendedLines
from demur.files.inputs import lines_of
from demur.files.strict_json import NotJson, as_json, parse
from demur.pools.checks import Checks, draw_checks
from demur.pools.label_rule import LabelRule
from demur.pools.labels import Labels
from demur.pools.splits import Rows
from demur.pools.voted_pools import VotedPools, as_part_of_labels

FORMAT, SCHEMA = "demur-labels", 1
RIGHT, WRONG, SKIP = "right", "wrong", "skip"
_SAID = (RIGHT, WRONG, SKIP)
_ANOTHER = "give the pools and options that the labels were begun with, or begin another file of labels"


@dataclass(frozen=True)
class Label:
    """What somebody said of one vote, and when."""

    id: str
    said: str
    """`right`, `wrong`, or `skip`: no label so far."""
    by: str
    at: str

    @classmethod
    def now(cls, name: str, said: str, by: str) -> Label:
        return cls(name, said, by, datetime.now(UTC).isoformat(timespec="seconds"))

    def line(self, *, undone: bool = False) -> str:
        """As its file has it; in ASCII, so that a line which is cut off is still text."""
        said = {"undo": True} if undone else {"label": self.said}
        return as_json({"id": self.id, **said, "by": self.by, "at": self.at})


@dataclass(frozen=True)
class LabelHeader:
    """Which votes are labelled, and what for."""

    queue: str
    """Of the questions, answers and keys to be labelled."""
    description: Description
    n: int
    guarantees: tuple[Guarantee, ...]
    sizes_by_chance: bool = False
    check: tuple[int, int] | None = None
    """How many votes were drawn at random, by which seed, where people check a judge's labels; None: all may be asked
    about."""
    down_to: DownTo | None = None
    """Where labelling ends, whatever the labels; None: where no label is of use any more."""

    @classmethod
    def of(
        cls,
        voted: VotedPools,
        guarantees: Iterable[Guarantee],
        *,
        sizes_by_chance: bool = False,
        check: tuple[int, int] | None = None,
        down_to: DownTo | None = None,
    ) -> LabelHeader:
        """Of votes that nobody has labelled yet."""
        if check is not None and down_to is not None:
            raise InvalidValue(
                "a judge is checked on votes that are drawn at random, and labels down to a key are no such part",
                "leave {check} or {down_to} out",
            )
        if check is not None:
            draw_checks(voted, check[0], seed=check[1])  # refuses more than there are
        counted = voted.scored.counted
        promised = tuple(guarantees)
        queue, described = _queue(voted, promised), voted.votes.description
        return cls(queue, described, len(counted), promised, sizes_by_chance, check, down_to)

    def drawn(self, voted: VotedPools) -> Rows | None:
        """The rows that were drawn to be checked; None where none were."""
        return None if self.check is None else draw_checks(voted, self.check[0], seed=self.check[1])

    def line(self) -> str:
        promised = [{"guarantee": one.name, **one.parameters()} for one in self.guarantees]
        known = {"format": FORMAT, "schema": SCHEMA, "queue": self.queue, "n": self.n, "guarantees": promised}
        chance: dict[str, Any] = {"sizes_by_chance": True} if self.sizes_by_chance else {}
        chance |= {} if self.check is None else {"check": dict(zip(("drawn", "seed"), self.check, strict=True))}
        chance |= {} if self.down_to is None else {"down_to": self.down_to.document()}
        return as_json({**known, **chance, "pipeline": self.description.document()})

    def refuse_other(self, voted: VotedPools, where: object) -> None:
        """Raise LabelMismatch unless these are the votes that were to be labelled."""
        if differences := self.description.differences(voted.votes.description, here=str(where)):
            raise LabelMismatch(
                f"{where} holds labels of votes that were made another way: {'; '.join(differences)}", _ANOTHER
            )
        if self.queue != _queue(voted, self.guarantees):
            n, groups = len(voted.scored.counted), ", groups" if _by_group(self.guarantees) else ""
            raise LabelMismatch(
                f"{where} holds labels for another queue: its {self.n} questions, answers{groups} and confidences are "
                f"not those of the {n} given here",
                _ANOTHER,
            )


@dataclass(frozen=True)
class LabelHistory:
    """A file of labels, as it stands."""

    header: LabelHeader | None = None
    """None where nothing has been written yet."""
    standing: Mapping[str, Label] = field(default_factory=dict)
    """The last word on each question, by its id, in the order in which they were said; undone ones are gone."""


def read_label_file(path: str | os.PathLike[str]) -> LabelHistory:
    """What a file of labels says; an error names the file and the line."""
    source, header = Path(path), None
    standing: dict[str, Label] = {}
    lines: dict[str, int] = {}
    for number, record in _records(source):
        where = f"{source}, line {number}"
        if header is None:
            header = _header(record, where)
            continue
        label, undone = _label(record, where)
        before = standing.pop(label.id, None)
        if undone:
            if before is None:
                raise InvalidValue(f"{where}: {label.id!r:.60} has no label that could be undone", "remove the line")
            continue
        if before is not None and before.said != SKIP:
            raise InvalidValue(
                f"{where}: {label.id!r:.60} has a label already, {before.said!r} in line {lines[label.id]}; a question "
                "has one",
                "remove one of the two lines",
            )
        standing[label.id], lines[label.id] = label, number
    return LabelHistory(header, standing)


class LabelFile(AppendedLines):
    """A file that labels are appended to."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, "labels", read_label_file)

    def begin(self, header: LabelHeader) -> None:
        """Say which votes are labelled, before the first label is."""
        self.append_lines([header.line()])

    def append(self, labels: Iterable[Label]) -> None:
        self.append_lines(label.line() for label in labels)

    def undo(self, label: Label, by: str) -> None:
        """Take a label back, and keep who did."""
        self.append_lines([Label.now(label.id, label.said, by).line(undone=True)])


def queue_of(voted: VotedPools, history: LabelHistory, where: object) -> LabelQueue:
    """The queue of a file of labels, with what was said so far."""
    if history.header is None:
        raise InvalidValue(f"{where} holds no labels", "make some with `demur label`")
    history.header.refuse_other(voted, where)
    header = history.header
    how: dict[str, Any] = {"sizes_by_chance": header.sizes_by_chance, "rows": header.drawn(voted)}
    queue = LabelQueue(voted, header.guarantees, **how, down_to=header.down_to)
    rows = rows_by_id(voted, queue)
    for label in history.standing.values():
        if label.id not in rows:
            raise InvalidValue(
                f"{where} has a label for {label.id!r:.60}, which is not in the queue of {len(rows)} questions",
                "remove the line",
            )
        if label.said == SKIP:
            queue.skip(rows[label.id])
        else:
            queue.label(rows[label.id], right=label.said == RIGHT)
    return queue


def rows_by_id(voted: VotedPools, queue: LabelQueue) -> dict[str, int]:
    """The rows that may be labelled, by their ids."""
    return {voted.ids[row]: row for row in queue.rows.tolist()}


def labelled_by(voted: VotedPools, path: str | os.PathLike[str]) -> VotedPools:
    """Votes with the labels of a file, of which some may be missing: calibrate them with `partly_labelled`."""
    history = read_label_file(path)
    queue = queue_of(voted, history, path)
    if history.header is not None and history.header.check is not None:
        raise InvalidValue(
            f"{path} holds labels of a random part of the votes, by which a judge is checked",
            "read it with `checked_by`, and calibrate with {checked}",
        )
    labels = zip(voted.votes.winners.tolist(), queue.labels(), strict=True)
    said = [{} if key is None or right is None else {key: bool(right)} for key, right in labels]
    return replace(queue.labelled_votes(), labels=Labels(right=said, gold=None, rule=LabelRule(people=True)))


def checked_by(voted: VotedPools, path: str | os.PathLike[str]) -> Checks:
    """What people found on a random part of the votes, from a file that `demur label` began with a draw.

    What was drawn and has no label counts as wrong: calibrate with `checked=checked_by(voted, path)`.
    """
    history = read_label_file(path)
    queue = queue_of(voted, history, path)
    rows = None if history.header is None else history.header.drawn(voted)
    if rows is None:
        raise InvalidValue(
            f"{path} holds labels from the top, which are no random part: no judge can be checked by them",
            "calibrate with those labels alone, or have a random part checked",
        )
    drawn = np.zeros(len(voted), dtype=np.bool_)
    drawn[rows] = True
    right, known = as_part_of_labels(queue.labels(), len(voted))
    return Checks(drawn, right & drawn, known & drawn)


def _by_group(guarantees: Iterable[Guarantee]) -> bool:
    return any(isinstance(one, Grouped) for one in guarantees)


def _queue(voted: VotedPools, guarantees: Iterable[Guarantee]) -> str:
    some = voted.scored
    rows = some.counted.tolist()
    winners, keys = some.votes.winners.tolist(), some.votes.key.tolist()
    questions = some.questions if some.questions is not None else [None] * len(some)
    asked = sorted([some.ids[row], questions[row], winners[row], without_infinity(keys[row])] for row in rows)
    if not _by_group(guarantees) or some.votes.groups is None:
        return digest(asked)
    # Groups that were chosen behind labels would be made of them.
    return digest([asked, sorted([some.ids[row], list(some.votes.groups[row])] for row in rows)])


def _records(path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in lines_of(path, InvalidValue):
        if line.isspace():
            continue
        try:
            yield number, parse(line)
        except NotJson as error:
            if line.startswith("{") and not line.endswith("\n"):
                return  # the last one, cut off
            raise InvalidValue(f"{path}, line {number}: expected a label as a JSON object: {error}") from None


def _header(record: Any, where: str) -> LabelHeader:
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise InvalidValue(f"{where}: this is no file of labels; `demur label` writes such files")
    if (schema := record.get("schema")) != SCHEMA:
        raise InvalidValue(f"{where}: it has schema {schema!r:.20}, and this demur reads {SCHEMA}", "upgrade demur")
    queue, n, promised = record.get("queue"), record.get("n"), record.get("guarantees")
    by_chance = record.get("sizes_by_chance", False)
    plain = isinstance(queue, str) and isinstance(n, int) and isinstance(by_chance, bool)
    if not plain or not isinstance(promised, list) or not promised:
        raise InvalidValue(f"{where}: the first line must name the queue, its length and its guarantees")
    description, check = Description.of(record.get("pipeline")), _check(record.get("check"), where)
    guarantees = tuple(_guarantee(one, where) for one in promised)
    down_to = _down_to(record.get("down_to"), where)
    if check is not None and down_to is not None:
        raise InvalidValue(f"{where}: labels either check a random part or go down to a key, and this says both")
    return LabelHeader(str(queue), description, int(n or 0), guarantees, by_chance, check, down_to)


def _down_to(stored: Any, where: str) -> DownTo | None:
    try:
        return None if stored is None else DownTo.of_document(stored)
    except InvalidValue as error:
        raise InvalidValue(f"{where}: `down_to` cannot be read: {error}") from None


def _check(stored: Any, where: str) -> tuple[int, int] | None:
    if stored is None:
        return None
    drawn, seed = (stored.get("drawn"), stored.get("seed")) if isinstance(stored, dict) else (None, None)
    if type(drawn) is not int or type(seed) is not int or drawn < 1 or seed < 0:
        raise InvalidValue(f"{where}: `check` must say how many votes were drawn, by which seed, got {stored!r:.60}")
    return drawn, seed


def _guarantee(stored: Any, where: str) -> Guarantee:
    try:
        kind = GUARANTEES[stored["guarantee"]]
        return kind(**{name: value for name, value in stored.items() if name != "guarantee"})
    except (KeyError, TypeError, AttributeError):
        raise InvalidValue(f"{where}: this is no guarantee: {stored!r:.80}") from None


def _label(record: Any, where: str) -> tuple[Label, bool]:
    if not isinstance(record, dict) or not isinstance(record.get("id"), str):
        raise InvalidValue(f"{where}: a label is an object with an id, got {record!r:.60}")
    undone, said = record.get("undo", False), record.get("label")
    if not (undone is True and said is None) and not (undone is False and said in _SAID):
        raise InvalidValue(f"{where}: `label` must be one of {', '.join(_SAID)}, got {said!r:.40}")
    for name in ("by", "at"):
        if not isinstance(record.get(name, ""), str):
            raise InvalidValue(f"{where}: `{name}` must be a text, got {record[name]!r:.40}")
    return Label(record["id"], said or "", record.get("by", ""), record.get("at", "")), undone
