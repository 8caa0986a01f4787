"""Open questions: what is marked as the answer, what is said to be it, else the last sentence."""

from __future__ import annotations

import re

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.extraction import Extraction, Table, by_evidence
from demur.answers.extraction.marks import boxed, hashes, json_answer, tagged
from demur.answers.extraction.part import Found, Part
from demur.answers.extraction.said import behind_markers, said, worded

_YES_NO_QUESTION = re.compile(
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|shall|may|might|must"
    r"|isn't|aren't|wasn't|weren't|don't|doesn't|didn't)\s",
    re.I,
)
_YES_NO = re.compile(
    r"[\s*_\"'“(]{0,4}(yes|no)\b(?=\s?[,.;:!—–-]|[*_\"'”)]|\s*\Z|\s(?:both|they|it|he|she|the|neither|not)\b)", re.I
)
_EITHER = re.compile(r"\b(?:yes|no)\b", re.I)
_OR = re.compile(r"\s(?:or|who|which|what)\s", re.I)
_COPULA = re.compile(r"\s(?:is|was|are|were|would be|will be)\s", re.I)
_WORDS = re.compile(r"\w+")
_EMPTY = """
    a an the it this that they he she there of in on at to for from by with as s so thus therefore hence and will would
    be is are was were been being we you i
"""
_EMPTY_WORDS = frozenset(_EMPTY.split())
_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)"
)
_DATE = re.compile(
    rf"(?<![\d/-])(?:\d{{1,4}}[/.-]\d{{1,2}}[/.-]\d{{1,4}}|{_MONTH}\.?\s\d{{1,2}}(?:st|nd|rd|th)?,?\s\d{{4}}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?(?:\sof)?\s{_MONTH}\.?,?\s\d{{4}})(?![\d/-])",
    re.I,
)
_ASKS_DATE = re.compile(
    r"\b(?:what|which) (?:is|was|will be) the (?:\w+ )?date\b|\bwhat date\b|\bon (?:what|which) (?:date|day)\b"
    r"|MM/DD|DD/MM|YYYY|\bwhen\b",
    re.I,
)
_SENTENCES_BACK = 3
_NO_ANSWER = re.compile(
    r"""
    i\ hope\ (?:this|that|it)\b | let\ me\ know\b | feel\ free\b | would\ you\ like\b
    | (?:the\ |our\ |my\ )?(?:final\ )?answer:?\s?
      (?:is\ (?:correct|right|wrong|incorrect|as\ follows|not\ known|unknown))?:?\Z
    """,
    re.I | re.X,
)
"""Courtesies, and words that only speak of an answer."""
_LEAD = re.compile(r"\s*(?:(?:so|thus|therefore|hence|finally|in conclusion|overall|in short),?\s+)?", re.I)


def _said(part: Part) -> Found | None:
    found = next((found for found, _ in said(part) if not found.answer.endswith("?")), None)
    if found is None:
        return None
    return _last_date(part, found.start, found.end) or _new_side(part, found)


def _yes_or_no(part: Part) -> Found | None:
    """The yes or no that a sentence begins with, where that is what was asked."""
    question = part.asked.question
    if not _EITHER.search(part.text) or (question is not None and not is_yes_no(question)):
        return None
    starts = [found.start for found, _ in said(part)][:1]
    sentence = part.last_sentence()
    starts += [] if sentence is None else [sentence[0]]
    for start in (*starts, *([0] if question is not None else [])):
        lead = _LEAD.match(part.text, start)
        word = _YES_NO.match(part.text, lead.end() if lead else start)
        if word is not None:
            return Found(word.group(1), word.start(1), word.end(1))
    return None


def is_yes_no(question: str) -> bool:
    """Whether the last sentence of a question wants a yes or a no."""
    last = re.split(r"(?<=[.!?:])\s+", question.strip())[-1]
    return _YES_NO_QUESTION.match(last) is not None and _OR.search(last) is None


def _closing_date(part: Part) -> Found | None:
    """The last date of the last sentence, where a date was asked for."""
    sentence = part.last_sentence()
    return None if sentence is None else _last_date(part, *sentence)


def _last_date(part: Part, start: int, end: int) -> Found | None:
    if part.asked.question is None or _ASKS_DATE.search(part.asked.question) is None:
        return None
    dates = list(_DATE.finditer(part.text, start, end))
    return None if not dates else Found(dates[-1].group(), *dates[-1].span())


def _last_sentence(part: Part) -> Found | None:
    end: int | None = None
    for _ in range(_SENTENCES_BACK):
        sentence = part.last_sentence(end)
        if sentence is None:
            return None
        asks = part.text[sentence[1] :].lstrip(" \"'*)").startswith("?")
        lead = _LEAD.match(part.text, *sentence)
        found = worded(part.found(lead.end() if lead else sentence[0], sentence[1]))
        if found is not None and not asks and not _NO_ANSWER.match(found.answer):
            return _new_side(part, found)
        end = sentence[0]
    return None


def _new_side(part: Part, found: Found) -> Found:
    """Of "the capital is Paris", the side of the verb that the question does not have already; else all of it."""
    if part.asked.question is None or len(found.answer) > 300:
        return found
    known = _EMPTY_WORDS | set(map(str.lower, _WORDS.findall(part.asked.question)))
    for verb in _COPULA.finditer(part.text, found.start, found.end):
        left, right = part.found(found.start, verb.start()), part.found(verb.end(), found.end)
        if left is None or right is None:
            continue
        words = [set(map(str.lower, _WORDS.findall(side.answer))) for side in (left, right)]
        repeats = [known >= side for side in words]
        if repeats[0] != repeats[1] or words[0] <= _EMPTY_WORDS:
            return right if repeats[0] else left
    return found


TABLE: Table = (
    ("marker", behind_markers),
    ("JSON", json_answer),
    ("answer tag", tagged),
    ("boxed", boxed),
    ("####", hashes),
    ("yes or no", _yes_or_no),
    ("answer is", _said),
    ("closing date", _closing_date),
    ("last sentence", _last_sentence),
)


def extract(text: str, asked: Asked = NOTHING_SAID) -> Extraction:
    """What a path says in the end."""
    return by_evidence(TABLE, text, asked)
