"""Choices: a letter or number in every usual dress, an option by its words, or a label without letters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.equivalence import text as text_keys
from demur.answers.equivalence.choice import option_of_value
from demur.answers.extraction import Extraction, Rule, Table, by_evidence
from demur.answers.extraction.marks import boxed, hashes, json_answer, tagged
from demur.answers.extraction.part import Found, Part
from demur.answers.extraction.said import behind_markers, said

_DRESS = r"[\s($\[{*_\"'“‘`<]{0,8}(?:\\(?:boxed|text|textbf|mathrm|mathbf)\s?\{[\s(*]{0,3}){0,3}"
_NAMED = r"(?:(?:(?:the|answer|option|choice|letter|alternative|number)\s){0,3}|(?:option|choice|letter)[:\s]{0,3})"
_BEGINS = re.compile(
    rf"{_DRESS}(?i:{_NAMED}){_DRESS}"
    r"(?:(?P<letter>[A-Za-z])|(?P<number>\d{1,2}))"
    r"(?=[)\]}$*_\"'”’`>.,:;!?—–/-]|\s*\Z|\s*\n|\s+(?:because|since|as|for|which|is|with|due|\(|-|—|–)(?:\s|\b)|\s(?=[A-Z][a-z]))"
    r"(?!['’](?:s|m|ve|ll|d|re|t)\b)(?!\s+(?:and|or|&)\s)(?!,\s?[A-Z](?:\W|\Z))(?!/[A-Za-z])(?!\.[A-Za-z\d])(?!-[A-Za-z])"
)
_LINE = re.compile(r"(?m)^([^\n]{1,200})$")
_LONE = re.compile(r"(?m)^[ \t]{0,8}[(\[*_\"'`]{0,4}([A-Za-z])[)\].:*_\"'`]{0,4}[ \t]{0,8}$")
_LEADS = re.compile(r"[\s*_(\[]{0,6}([A-Z])(?:[)\].:][*_]{0,3}[ \t]+\S|(?<!I) (?=[A-Z][a-z]))")
_POINTED = re.compile(
    r"\b(?i:option|choice|alternative|letter)(?:\s(?:is|would\sbe|must\sbe)\s|[:\s]\s?)[(\[*\"']{0,4}"
    r"(?:([A-Z])(?=[)\]*\"'.,:;!?]|\s|\Z)|([a-z])(?=[)\]*\"'.,:;!?]|\s?\Z))"
)
_DRESSED = re.compile(r"(?<![\w\\])(?:\(([A-Za-z])\)|\[([A-Za-z])\]|\*\*\(?([A-Za-z])[).]?\*\*)(?!\w)")
_ALONE = re.compile(r"(?<![\w'’.])([B-HJ-Z])(?![\w'’]|\.\w)")
_NOT = re.compile(
    r"(?:\b(?:not|cannot|incorrect|wrong|false|eliminat\w+|rule[sd]? out|than|except|neither|nor"
    r"|nicht|keine?|pas|não|не)\b|n['’]t\b)"
    r"(?:(?!\bbut\b)[^.!?,;\n]){0,30}\Z",
    re.I,
)
_REFUTED = re.compile(
    r"""
    [)\]*"']{0,3} (?:\s\w+){0,4}? \s?
    (?:\b(?:is|are|was|seems|would\ be|can\ be)\s(?:not\b|in?correct|wrong|false|out\b|ruled|eliminated)
    | [-–—:(]\s?(?:incorrect|wrong|false|no\b) | \bcan(?:not|['’]t)\b | \b(?:is|are)n['’]t\b)
    """,
    re.I | re.X,
)
_EITHER = re.compile(
    r"(?i:\b(?:either|both|neither)\b)|\b[A-Z][)\]]?(?:\s(?:and|or|&)\s|,\s?(?:and\s|or\s)?)[(\[]?[A-Z]\b"
)
_HYPOTHETICAL = re.compile(
    r"""
    \b(?:unless|if(?!\sand\sonly)|had\s(?:it|he|she|they|we|there|the|this|that)|were\s(?:it|he|she|they|there|this|that)
    | (?:could|might|may)\shave)\b
    | (?<!\bi\s)(?<!\bwe\s)(?<!answer\s)(?<!option\s)(?<!choice\s)(?<!label\s)(?<!conclusion\s)\bwould\b
    """,
    re.I | re.X,
)
"""What might be, and is not said to be."""
_WOULD = re.compile(r"\b(?:would|could|might)\b", re.I)
_IF = re.compile(r"\b(?:if|unless|had|were)\b", re.I)
_SO = re.compile(r"\b(?:so|thus|hence|therefore)\b|:(?=\s)", re.I)
_SENTENCES_BACK = 4
_DETERMINER = re.compile(r"\s[a-z]|\.\s?\d")
_PICKED = re.compile(
    r"\b(?:choose|pick|select|it's|it’s|it is|be|go with|leaves|answer)\s[(*\"']{0,3}(A)(?![\w'’]|\s[a-z])", re.I
)
_USUAL = ("yes", "no", "true", "false", "uncertain", "entailment", "neutral", "contradiction")
"""Labels that answers may hold though nobody named them."""


def _chosen(find: Rule) -> Rule:
    """The choice that is made by the words that a rule finds."""

    def choose(part: Part) -> Found | None:
        found = find(part)
        return _choice(part, found) if found is not None and found.answer else found

    return choose


def _said(part: Part) -> Found | None:
    choices = (_choice(part, found, loud=behind_colon) for found, behind_colon in said(part))
    return next((choice for choice in choices if choice is not None), None)


def _choice(part: Part, found: Found, *, loud: bool = True) -> Found | None:
    """The choice that these words make; `loud`, where they hold little else."""
    words = Part(found.answer, 0, part.asked)
    end = len(found.answer)
    choice = _label(words, 0, end) or _value(words) or _letter(words) or _words(words, loud=loud)
    if choice is None:
        return None
    verbatim = part.text.startswith(found.answer, found.start)
    place = (found.start + choice.start, found.start + choice.end) if verbatim else (found.start, found.end)
    return Found(choice.answer, *place)


def _value(part: Part) -> Found | None:
    """The option that has the value of a number or formula, however that is written."""
    letter = option_of_value(part.text.rstrip(". "), part.asked) if part.asked.options else None
    return Found(letter, 0, len(part.text)) if letter else None


def _letter(part: Part) -> Found | None:
    """The letter or number that the words begin with; a lower-case one must be dressed, or be all there is."""
    text = part.text
    if part.asked.labels and not part.asked.options:
        return None
    begins = _BEGINS.match(text)
    if begins is None or _EITHER.match(text.lstrip(" ([*")) or _REFUTED.match(text, begins.end(), begins.end() + 60):
        return None
    group = "letter" if begins.group("letter") else "number"
    letter, following = begins.group(group), text[begins.end() : begins.end() + 1]
    if group == "number" and text[begins.end() :].strip(" )]}$*_.\"'”`"):
        return None
    if letter == "I" and following in (" ", "'", "’"):
        return None
    if letter.islower() and following and following not in ")]}*$\"'”.:`" and text[: begins.start(group)].strip() == "":
        return None
    return Found(letter.upper(), begins.start(group), begins.end())


def _words(part: Part, *, loud: bool) -> Found | None:
    """An option by its own words, the only one that is named; or the only letter there is."""
    text, asked = part.text, part.asked
    named = _named(text, 0, len(text), _by_key(asked.options))
    if named is not None:
        return named
    key = text_keys.key(text.rstrip(". "))
    if not asked.options and not asked.labels and key is not None and key[2:] in _USUAL:
        return Found(text, 0, len(text))
    if (loud or text.count(" ") < 4) and not asked.labels and not _EITHER.search(text):
        alone = list(_ALONE.finditer(text))
        if len(alone) == 1 and not _NOT.search(text, 0, alone[0].start()):
            return Found(alone[0].group(1), alone[0].start(), alone[0].end())
    return None


@lru_cache(maxsize=4096)
def _by_key(options: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Words that choose, and the letter of each; options that are written alike choose nothing."""
    written = [" ".join(option.split()).rstrip(".").casefold() for option in options]
    return tuple((text, chr(ord("A") + at)) for at, text in enumerate(written) if text and written.count(text) == 1)


def _named(text: str, start: int, end: int, choices: Iterable[tuple[str, str]]) -> Found | None:
    """The only choice that a stretch of text names, longer names before the shorter ones within them."""
    choices = sorted(choices, key=lambda choice: -len(choice[0]))
    if not choices or end - start > 2000:
        return None
    stretch = text[start:end].casefold()
    if len(stretch) != end - start:  # some letters fold into two: places would be wrong
        stretch = text[start:end].lower()
    if len(stretch) != end - start:
        return None
    taken: list[tuple[int, int]] = []
    chosen: dict[str, Found] = {}
    for words, choice in choices:
        place = stretch.find(words)
        while place >= 0:
            stop = place + len(words)
            if _is_whole(stretch, place, stop) and not any(a < stop and place < b for a, b in taken):
                taken.append((place, stop))
                if _stands(text, start + place, start + stop, start):
                    chosen[choice] = Found(choice, start + place, start + stop)
            place = stretch.find(words, stop)
            if len(taken) > 50:
                return None
    return next(iter(chosen.values())) if len(chosen) == 1 else None


def _stands(text: str, place: int, end: int, start: int = 0) -> bool:
    """Whether what is named is not said to be wrong, before or behind; "no snow" is no label either."""
    if _NOT.search(text, max(start, place - 40), place) or _REFUTED.match(text, end, end + 60):
        return False
    return text[place:end].lower() != "no" or not _DETERMINER.match(text, end)


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether words stand there whole, not within longer ones."""
    before, after = text[start - 1 : start], text[end : end + 1]
    inner = text[start:end]
    return not ((before.isalnum() or before == "-") and inner[0].isalnum()) and not (
        (after.isalnum() or (after == "-" and text[end + 1 : end + 2].isalnum())) and inner[-1].isalnum()
    )


def _label(part: Part, start: int, end: int) -> Found | None:
    labels = part.asked.labels
    return _named(part.text, start, end, [(label.casefold(), label) for label in labels]) if labels else None


def _closing_label(part: Part) -> Found | None:
    """The only label or option that the last sentence which says what is so names."""
    sentence = _asserting(part)
    if sentence is None:
        return None
    start, end = sentence
    return _label(part, start, end) or _named(part.text, start, end, _by_key(part.asked.options))


def _asserting(part: Part) -> tuple[int, int] | None:
    """The last sentence that says what is so: no supposition ("it would be true if …"), but its outcome ("so …")."""
    end: int | None = None
    for _ in range(_SENTENCES_BACK):
        sentence = part.last_sentence(end)
        if sentence is None:
            return None
        start, end = sentence
        if not _is_supposed(part, start, end) and not part.is_aside(start, end):
            return sentence
        for consequence in _SO.finditer(part.text, start, end):
            if not _is_supposed(part, consequence.end(), end):
                return consequence.end(), end
        end = start
    return None


def _is_supposed(part: Part, start: int, end: int) -> bool:
    """Whether words say what might be. Options have words of their own: both halves of a condition are looked for."""
    if part.asked.labels and not part.asked.options:
        return _HYPOTHETICAL.search(part.text, start, end) is not None
    return _WOULD.search(part.text, start, end) is not None and _IF.search(part.text, start, end) is not None


def _closing_letter(part: Part) -> Found | None:
    """A letter that stands alone on a line, or dressed in the last sentence."""
    if part.asked.labels and not part.asked.options:
        return None
    sentence = _asserting(part)
    if sentence is not None:
        start, end = sentence[0], min(len(part.text), sentence[1] + 4)
        several = _EITHER.search(part.text, start, end) is not None
        for pattern in (_POINTED, _DRESSED) if several else (_POINTED, _DRESSED, _ALONE, _PICKED):
            marks = [
                mark
                for mark in pattern.finditer(part.text, start, end)
                if _stands(part.text, *_letter_span(mark), start)
            ]
            letters = {next(filter(None, mark.groups())).upper() for mark in marks}
            if len(letters) == 1 and (not part.asked.options or letters <= _letters_of(part.asked.options)):
                return Found(letters.pop(), *_letter_span(marks[-1]))
            if letters:
                break
    lone = None
    for lone in _LONE.finditer(part.text):  # noqa: B007 - the last one
        pass
    if lone is not None:
        return Found(lone.group(1).upper(), lone.start(1), lone.end(1))
    leads = _LEADS.match(part.text) if len(part.text) < 400 else None
    if leads is not None:
        return Found(leads.group(1), *leads.span(1))
    return _letter(part) if len(part.text.strip()) < 40 else None


def _letter_span(mark: re.Match[str]) -> tuple[int, int]:
    return next(mark.span(group) for group in range(1, (mark.re.groups or 0) + 1) if mark.group(group))


def _letters_of(options: tuple[str, ...]) -> set[str]:
    return {chr(ord("A") + at) for at in range(len(options))}


def _opening_label(part: Part) -> Found | None:
    """A label that the text begins with, or that stands alone on its last such line; what follows explains it."""
    if not part.asked.labels:
        return None
    lines = [line for line in _LINE.finditer(part.text) if line.group(1).strip()]
    for line in (*reversed(lines), *lines[:1]):
        for label in sorted(part.asked.labels, key=len, reverse=True):
            alone = _bare(line.group(1)) == label.casefold()
            opens = line is lines[0] and re.match(
                rf"[\s*_\"'(]{{0,4}}{re.escape(label)}(?=[\s*_\"')]{{0,3}}(?:[.,;:!—–\n]|\Z))", line.group(1), re.I
            )
            if alone or opens:
                place = line.start(1) + line.group(1).casefold().find(label.casefold())
                return Found(label, place, place + len(label))
    return None


def _bare(line: str) -> str:
    return line.strip(" \t\r*_\"'`().:!#>").casefold()


TABLE: Table = (
    ("marker", _chosen(behind_markers)),
    ("JSON", _chosen(json_answer)),
    ("answer tag", _chosen(tagged)),
    ("boxed", _chosen(boxed)),
    ("####", _chosen(hashes)),
    ("answer is", _said),
    ("label", _opening_label),
    ("letter", _closing_letter),
    ("option's words", _closing_label),
)


def extract(text: str, asked: Asked = NOTHING_SAID) -> Extraction:
    """The option or label that a path chooses."""
    return by_evidence(TABLE, text, asked)
