"""Sheets for other labelling tools: the queue as CSV or JSON lines, one row per vote, from the top down.

    place  id  question  options  answer  share  paths  others  verdict  by  queue

Whoever labels writes right, wrong or skip under `verdict`, from the top down, and may stop anywhere. `queue` ties each
row to the votes that it is about.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from demur.errors import InvalidValue
from demur.files.atomic import written_whole
from demur.files.cells import harmless, looks_like_formula
from demur.files.inputs import lines_of, text_of
from demur.files.strict_json import NotJson, as_json, parse
from demur.pipeline.label_cards import LabelCard
from demur.pipeline.label_file import RIGHT, SKIP, WRONG, Label, LabelHeader

COLUMNS = ("place", "id", "question", "options", "answer", "share", "paths", "others", "verdict", "by", "queue")
_MEANS = {RIGHT: RIGHT, WRONG: WRONG, SKIP: SKIP, "yes": RIGHT, "no": WRONG, "y": RIGHT, "n": WRONG, "s": SKIP}
_MEANS |= {"1": RIGHT, "0": WRONG, "1.0": RIGHT, "0.0": WRONG, "true": RIGHT, "false": WRONG, "skipped": SKIP}


def write_sheet(path: Path, cards: Iterable[LabelCard], header: LabelHeader) -> int:
    """Write a sheet, CSV or JSON lines by its name; how many rows it has."""
    rows = [_row(place, card, header) for place, card in enumerate(cards, start=1)]
    text = io.StringIO(newline="")
    if is_csv(path):
        writer = csv.DictWriter(text, COLUMNS)
        writer.writeheader()
        writer.writerows({name: harmless(value) for name, value in row.items()} for row in rows)
    else:
        text.writelines(as_json(row, ensure_ascii=True) + "\n" for row in rows)
    if path.exists():
        raise InvalidValue(f"{path} is there already, and may be filled in; choose another name")
    with written_whole(path, InvalidValue) as unfinished:
        unfinished.write_text(text.getvalue(), encoding="utf-8", errors="backslashreplace", newline="")
    return len(rows)


def read_sheet(
    path: Path, header: LabelHeader, standing: Mapping[str, Label], *, queue: Collection[str], by: str
) -> list[Label]:
    """What people wrote on a sheet, without what the labels have already.

    `queue` holds the ids that may be labelled; `by` said it where the sheet does not say who did.
    """
    labels: dict[str, Label] = {}
    lines: dict[str, int] = {}
    for number, row in _csv_rows(path) if is_csv(path) else _json_rows(path):
        where = f"{path}, line {number}"
        if lacking := [name for name in ("id", "verdict", "queue") if name not in row]:
            raise InvalidValue(f"{where} has no {lacking[0]!r}: this is no sheet that labels were asked for on")
        said = _said(row["verdict"], where)
        if row["queue"] != header.queue:
            raise InvalidValue(
                f"{where} is of another queue ({row['queue']!r:.30}) than these labels ({header.queue:.20}…)",
                "read it into the file of labels that it was written from",
            )
        if said is None:
            continue
        name = str(row["id"])
        if name not in queue:
            raise InvalidValue(f"{where}: {name!r:.60} is not in the queue of {len(queue)} questions", "remove the row")
        if name in labels:
            raise InvalidValue(
                f"{where}: {name!r:.60} has a verdict already, in line {lines[name]}; a question has one",
                "keep one of the two",
            )
        before = standing.get(name)
        if before is not None and before.said not in (SKIP, said):
            raise InvalidValue(
                f"{where} says {said!r} of {name!r:.60}, and {before.by or 'somebody'} said {before.said!r} before; a "
                "question has one verdict",
                "keep one of the two",
            )
        labels[name], lines[name] = Label.now(name, said, str(row.get("by") or by)), number
    if not labels:
        raise InvalidValue(f"no verdict is filled in on {path}", f"write {RIGHT}, {WRONG} or {SKIP} under `verdict`")
    return [label for name, label in labels.items() if name not in standing or standing[name].said != label.said]


def is_csv(path: Path) -> bool:
    """Whether a sheet is CSV, by its name; else it is JSON lines."""
    if path.suffix.lower() not in (".csv", ".jsonl", ".json"):
        raise InvalidValue(f"a sheet is CSV or JSON lines, by its name: .csv or .jsonl, got {path.name!r:.60}")
    return path.suffix.lower() == ".csv"


def _row(place: int, card: LabelCard, header: LabelHeader) -> dict[str, Any]:
    asked = "\n\n".join([*(f"{name}: {text}" for name, text in card.beside), card.question])
    others = "; ".join(f"{other.answer} (×{other.paths})" for other in card.others)
    won = {"answer": card.winner.answer, "share": round(card.winner.share, 4)}
    paths = f"{card.winner.paths} of {card.n_paths}"
    shown = {"question": asked, "options": "\n".join(card.options), **won, "paths": paths, "others": others}
    return {"place": place, "id": card.id, **shown, "verdict": "", "by": "", "queue": header.queue}


def _said(verdict: Any, where: str) -> str | None:
    if verdict is None or (isinstance(verdict, str) and not verdict.strip()):
        return None
    word = str(verdict).strip().lower()
    if word not in _MEANS:
        raise InvalidValue(f"{where}: the verdict {word!r:.40} is not known", f"write {RIGHT}, {WRONG} or {SKIP}")
    return _MEANS[word]


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    limit = csv.field_size_limit(sys.maxsize)
    try:
        reader = csv.DictReader(io.StringIO(text_of(path, InvalidValue), newline=""), strict=True)
        for row in reader:
            if None in row or None in row.values():
                raise InvalidValue(f"{path}, line {reader.line_num}: it does not have the cells of its header")
            known = {name.strip().lower(): cell for name, cell in row.items()}
            if "id" in known and known["id"].startswith("'") and looks_like_formula(known["id"]):
                known["id"] = known["id"][1:]
            yield reader.line_num, known
    except csv.Error as error:
        raise InvalidValue(f"{path}, line {reader.line_num}: {error}") from None
    finally:
        csv.field_size_limit(limit)


def _json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in lines_of(path, InvalidValue):
        if line.isspace():
            continue
        try:
            row = parse(line)
        except NotJson as error:
            raise InvalidValue(f"{path}, line {number}: expected a JSON object: {error}") from None
        if not isinstance(row, dict):
            raise InvalidValue(f"{path}, line {number}: expected a JSON object, got {line.strip()!r:.40}")
        yield number, row
