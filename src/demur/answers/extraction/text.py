"""Open questions: what is marked as the answer, what is said to be it, else the last sentence."""

from __future__ import annotations

import re

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.extraction import Extraction, Table, by_evidence
from demur.answers.extraction.marks import boxed, hashes, json_answer, tagged
from demur.answers.extraction.part import Found, Part
from demur.answers.extraction.said import COMMENT, SOURCES, behind_markers, said, worded

_YES_NO_QUESTION = re.compile(
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|shall|may|might|must"
    r"|isn't|aren't|wasn't|weren't|don't|doesn't|didn't)\s",
    re.I,
)
_YES_NO = re.compile(
    r"[\s*_\"'“(]{0,4}(yes|no)\b(?!\.\s{0,2}\d)(?=\s?[,.;:!—–-]|[*_\"'”)]|\s*\Z|\s(?:both|they|it|he|she|the|neither|not)\b)",
    re.I,
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
_SENTENCES_BACK = 6
_OPENING = re.compile(
    r"[\s*_#>\"'“]{0,6}([^\s:?!.][^\n:?!.]{0,60}?)(?:[.!][*_\"'”]{0,4}(?=\s)|[*_\"'”]{0,4}[.!]?[ \t]*\n)"
)
"""A few words that a text begins with."""
_NO_OPENING = """
    is are was were be been has have had do does did can could will would should may might must i you we it he she they
    let okay ok sure well hmm alright great good yes no hello hi thanks think know see first here there this that what
    answer solution analysis reasoning explanation step steps summary conclusion thought thoughts background overview
    question final result response thinking approach method given fact facts context
"""
_NOT_OPENING = frozenset(_NO_OPENING.split())
"""Words of a whole sentence, of a heading, or of what is said before an answer."""
_GOES_ON = re.compile(
    r"(?:it|its|this|that|these|those|they|their|he|his|she|her|the|i|we|here|there|known|located|because|since|as|in|on|both)\b|[-•]\s",
    re.I,
)
_DESCRIBES = re.compile(
    r"(?:it|this|that|he|she|they|these|those)(?:['’]s|['’]re|\s(?:is|was|are|were))\s(?:also\s)?"
    r"(?:(?:the|an?|one\sof|known|located|situated|famous|home|found|part)\s)",
    re.I,
)
"""Says of something what it is like."""
_NAME = re.compile(r"(?<=[^\s.!?:]\s)[A-Z][\w-]")
_CHOOSES = re.compile(r"\bor\b|\bwhich\sof\b|\bbetween\b|,|:", re.I)
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
    sources = SOURCES.search(part.text)
    end = None if sources is None else sources.start()
    for _ in range(_SENTENCES_BACK):
        sentence = part.last_sentence(end)
        if sentence is None:
            return None
        asks = part.text[sentence[1] :].lstrip(" \"'*)").startswith("?")
        lead = _LEAD.match(part.text, *sentence)
        found = worded(part.found(lead.end() if lead else sentence[0], sentence[1]))
        if found is not None and not asks and not part.is_aside(*sentence) and not _comments(part, found):
            opening = _opening(part) if _GOES_ON.match(found.answer) or _COPULA.search(found.answer) else None
            return _new_side(part, found) if opening is None or opening.end > found.start else opening
        end = sentence[0]
    return None


def _comments(part: Part, found: Found) -> bool:
    """Whether a sentence comments on an answer, repeats the question, or describes what the one before it names."""
    if COMMENT.match(part.text, found.start):
        return True
    question = part.asked.question
    if question is not None and not is_yes_no(question) and not _CHOOSES.search(question):
        words = set(map(str.lower, _WORDS.findall(found.answer)))
        if words - _EMPTY_WORDS and words <= _EMPTY_WORDS | set(map(str.lower, _WORDS.findall(question))):
            return True
    before = part.last_sentence(found.start) if _DESCRIBES.match(found.answer) else None
    return before is not None and _NAME.search(part.text, *before) is not None


def _opening(part: Part) -> Found | None:
    """The few words that a text begins with, if they are no sentence, no heading and none of the question's."""
    opening = _OPENING.match(part.text)
    found = None if opening is None else worded(part.found(*opening.span(1)))
    if found is None:
        return None
    words = list(map(str.lower, _WORDS.findall(found.answer)))
    known = set() if part.asked.question is None else set(map(str.lower, _WORDS.findall(part.asked.question)))
    return None if len(words) > 6 or not _NOT_OPENING.isdisjoint(words) or known >= set(words) else found


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
