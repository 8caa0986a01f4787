"""Mathematics: what is marked as the answer, what is said to be it, or the number or formula that the text ends in."""

from __future__ import annotations

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.extraction import Extraction, Rule, Table, by_evidence
from demur.answers.extraction.marks import boxed, hashes, json_answer, tagged
from demur.answers.extraction.part import Found, Part
from demur.answers.extraction.quantities import closing, closing_word, quantity, whole
from demur.answers.extraction.said import behind_markers, said


def _quantity(find: Rule) -> Rule:
    """What mathematics can read of the words that a rule finds."""

    def read(part: Part) -> Found | None:
        found = find(part)
        if found is None or not found.answer:
            return found
        if part.text.startswith(found.answer, found.start):
            return quantity(part, found)
        words = Part(found.answer, 0, part.asked)  # taken out of its quotes
        inner = quantity(words, Found(found.answer, 0, len(found.answer)))
        return None if inner is None else Found(inner.answer, found.start, found.end)

    return read


def _said(part: Part) -> Found | None:
    return next((found for each, _ in said(part) if (found := quantity(part, each)) is not None), None)


TABLE: Table = (
    ("marker", _quantity(behind_markers)),
    ("JSON", _quantity(json_answer)),
    ("answer tag", _quantity(tagged)),
    ("boxed", boxed),
    ("####", hashes),
    ("answer is", _said),
    ("whole text", whole),
    ("closing number", closing),
    ("closing number word", closing_word),
)


def extract(text: str, asked: Asked = NOTHING_SAID) -> Extraction:
    """The answer of one path that came to its end."""
    return by_evidence(TABLE, text, asked)
