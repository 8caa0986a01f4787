"""Sheets on which people check a random part of a judge's verdicts: a short text file, filled in from the top down.

    [1/50] 3f2a9c0d1b2e4f56
    Question: Who wrote Hamlet?
    Accepted: William Shakespeare
    Given:    Shakespeare
    agrees: yes

What the judge said is not shown. Entries stand in a random order, so that whoever stops early has still checked at
random; whoever skips some has not, and is told so.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from demur.descriptions import canonical
from demur.errors import InvalidValue
from demur.files.inputs import text_of
from demur.pools.verdicts import Verdict, Verdicts

_HEAD = re.compile(r"\[\d+/\d+\] ([0-9a-f]{16})\s*")
_WORD = re.compile(r"agrees:\s*+(\w*+)\s*+", re.IGNORECASE)
_MEANS = {"yes": True, "y": True, "no": False, "n": False, "unsure": None}
_TOP = (
    "# Does each given answer say the same as an accepted one? Behind `agrees:` write yes, no or unsure.\n"
    "# Go from the top down and skip none; you may stop anywhere. What the judge said is not shown, on purpose.\n"
)
_LONGEST = 2000


def draw(verdicts: Verdicts, count: int, *, seed: int = 0) -> list[Verdict]:
    """The first so many of a judge's verdicts in a random order, without those that were drawn and checked before."""
    if count < 1:
        raise InvalidValue(f"at least one verdict is to be checked, got {count}")
    judged = [verdict for verdict in verdicts if verdict.by is not None]
    if not judged:
        raise InvalidValue("there are no verdicts of a judge to check")
    ordered = sorted(judged, key=lambda verdict: hashlib.sha256(f"{seed}:{_name(verdict)}".encode()).digest())
    return [verdict for verdict in ordered[:count] if not verdict.drawn]


def sheet_of(drawn: Sequence[Verdict]) -> str:
    """Verdicts to be checked, as text."""
    return _TOP + "".join(
        f"\n[{place}/{len(drawn)}] {_name(verdict)}\nQuestion: {_line(verdict.question)}\n"
        f"Accepted: {_line(' | '.join(verdict.accepted))}\nGiven:    {_line(verdict.answer)}\nagrees: \n"
        for place, verdict in enumerate(drawn, start=1)
    )


def read_sheet(path: Path, verdicts: Verdicts) -> list[Verdict]:
    """What people wrote on a sheet, as rows to be added to the verdicts that it was drawn from."""
    known = {_name(verdict): verdict for verdict in verdicts}
    checked, blank, name = list[Verdict](), "", None
    seen: set[str] = set()
    for number, line in enumerate(text_of(path, InvalidValue).splitlines(), start=1):
        where = f"{path}, line {number}"
        if head := _HEAD.fullmatch(line):
            name = head.group(1)
            if name not in known or name in seen:
                raise InvalidValue(f"{where}: {'it stands twice' if name in seen else 'it is not of these verdicts'}")
            seen.add(name)
        elif line.lower().startswith("agrees:"):
            said = _WORD.fullmatch(line)
            word = said.group(1).lower() if said else line
            if name is None or (word and word not in _MEANS):
                raise InvalidValue(f"{where}: write yes, no or unsure behind `agrees:`, got {line!r:.60}")
            if word and blank:
                raise InvalidValue(
                    f"{where} is filled in and {blank} is not: who skips some no longer checks at random",
                    "fill it in too, with unsure if need be",
                )
            if word:
                row = replace(known[name], agrees=None, by=None, person=_MEANS[word], drawn=True)
                checked.append(row)
            else:
                blank, name = blank or f"line {number}", None
    if not checked:
        raise InvalidValue(f"nothing is filled in on {path}; write yes, no or unsure behind each `agrees:`")
    return checked


def _name(verdict: Verdict) -> str:
    """What an entry is known by: its question, answer and gold."""
    about = [verdict.digest, verdict.answer, sorted(verdict.accepted)]
    return hashlib.sha256(canonical(about)).hexdigest()[:16]


def _line(text: str) -> str:
    """A text on one line, without what could pass for another part of a sheet."""
    shown = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(shown.split())[:_LONGEST]
