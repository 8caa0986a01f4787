"""Files of verdicts: one JSON object per line, appended to as verdicts arrive.

    {"id": "q1", "question": "…", "digest": "…", "answer": "…", "gold": ["…"], "verdict": true, "by": "…"}

People overrule a judge with `person`, true or false, in its line or in one they add. A last line that was cut off, as
a kill leaves it, is no verdict.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from demur.answers.relations import as_written
from demur.errors import InvalidValue
from demur.files.appended import AppendedLines
from demur.files.inputs import lines_of
from demur.files.strict_json import NotJson, as_json, parse
from demur.pools.verdicts import Verdict, Verdicts
from demur.records import question_digest

_FIELDS = frozenset(("id", "question", "digest", "answer", "gold", "verdict", "by", "person", "drawn"))


def read_verdicts(path: str | os.PathLike[str], *, labelling: bool = False) -> Verdicts:
    """The verdicts of a file; an error names the file and the line. One that is to label answers must hold some."""
    verdicts = Verdicts(_rows(Path(path)))
    if labelling and not len(verdicts):
        raise InvalidValue(f"{path} holds no verdicts", "make some with `demur judge-labels`")
    return verdicts


def verdict_line(verdict: Verdict) -> str:
    """A verdict as its file has it; in ASCII, so that a line which is cut off is still text."""
    record: dict[str, Any] = {} if verdict.id is None else {"id": verdict.id}
    record |= {"question": verdict.question, "digest": verdict.digest, "answer": verdict.answer}
    record["gold"] = list(verdict.accepted)
    record |= {} if verdict.by is None else {"verdict": verdict.agrees, "by": verdict.by}
    record |= {} if verdict.person is None else {"person": verdict.person}
    record |= {"drawn": True} if verdict.drawn else {}
    return as_json(record)


class VerdictFile(AppendedLines):
    """A file that verdicts are appended to."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, "verdicts", read_verdicts)

    def append(self, verdicts: Iterable[Verdict]) -> None:
        """Write verdicts, and wait until the disk has them."""
        self.append_lines(map(verdict_line, verdicts))


def _rows(path: Path) -> Iterator[Verdict]:
    for number, line in lines_of(path, InvalidValue):
        if line.isspace():
            continue
        where = f"{path}, line {number}"
        try:
            record = parse(line)
        except NotJson as error:
            if line.startswith("{") and not line.endswith("\n"):
                return  # the last one, cut off
            raise InvalidValue(f"{where}: expected a verdict as a JSON object: {error}") from None
        yield _verdict(record, where)


def _verdict(record: Any, where: str) -> Verdict:
    if not isinstance(record, dict) or not {"answer", "gold"} <= set(record):
        expected = "an object with question, answer, gold and a verdict"
        raise InvalidValue(f"{where} is no verdict: expected {expected}; `demur judge-labels` writes such files")
    if unknown := sorted(set(record) - _FIELDS):
        raise InvalidValue(f"{where}: a verdict has no field {unknown[0]!r:.60}")
    for name in ("verdict", "person", "drawn"):
        if not isinstance(record.get(name), (bool, type(None))):
            raise InvalidValue(f"{where}: `{name}` must be true, false or null, got {record[name]!r:.40}")
    for name in ("id", "question", "digest", "by"):
        if not isinstance(record.get(name), (str, type(None))):
            raise InvalidValue(f"{where}: `{name}` must be a text, got {record[name]!r:.40}")
    gold = record["gold"] if isinstance(record["gold"], list) else [record["gold"]]
    accepted, answer = tuple(map(_written, gold)), _written(record["answer"])
    if not accepted or None in accepted or answer is None:
        raise InvalidValue(f"{where}: `answer` and each entry of `gold` must be a text or a number that is not blank")
    question, by = record.get("question") or "", record.get("by")
    digest = record.get("digest") or question_digest(question)
    if digest is None:
        raise InvalidValue(f"{where}: a verdict needs the `question` that it is about")
    if record.get("verdict") is not None and by is None:
        raise InvalidValue(f"{where}: a verdict names its judge in `by`; what a person says goes into `person`")
    said: dict[str, Any] = {"agrees": record.get("verdict"), "person": record.get("person")}
    said |= {"by": by, "drawn": bool(record.get("drawn")), "id": record.get("id")}
    return Verdict(digest, question, answer, tuple(map(str, accepted)), **said)


def _written(value: Any) -> str | None:
    """A text or a number as it is written; None for anything else, and for blank ones."""
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        return None
    return (as_written(value) or "").strip() or None
