"""The part of a text that is read, its sentences, and places in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from demur.answers.asked import Asked
from demur.answers.extraction.programs import blank_fences, blank_programs

TAIL = 20_000  # characters of a path's end that are looked at

_CLOSED = re.compile(
    r"</(?:seed:)?(?:think|thinking|reasoning|thought|scratchpad)>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>"
    r"|<\|channel\|>final<\|message\|>",
    re.I,
)
_OPEN = re.compile(
    r"<(?:seed:)?(?:think|thinking|reasoning|thought|scratchpad)>|\[THINK\]|◁think▷|<\|begin_of_thought\|>"
    r"|<\|channel\|>analysis<\|message\|>",
    re.I,
)
_ENDING = re.compile(r"(?:<\|[a-z_]{2,20}\|>|</s>|<eos>)\Z", re.I)
_TURN = re.compile(r"<\|(?:endoftext|im_end|im_start|eot_id|end_of_text|eot|user)\|>")
_STOP = re.compile(r"(?<![.!?…。！？])[.!?…。！？]++[\"'”’»)\]*_]{0,4}(?=\s|$)|\n")
_IN_BRACKETS = r"[.!?…。！？][\"'”’»*_]{0,4}[)\]][\"'”’»)\]*_]{0,4}"
_CLOSES_BRACKETS, _STOP_IN_BRACKETS = re.compile(_IN_BRACKETS), re.compile(rf"{_IN_BRACKETS}\Z")
_WORD_BEFORE = re.compile(r"[\w.&'’-]{1,30}\Z")
_SHORTENED = """
    dr mr mrs ms mx prof st ste mt ft jr sr hon rev gen col capt lt sgt gov sen rep pres vs etc eg ie cf al inc ltd co
    corp llc plc bros dept univ assn fig figs eq eqs vol vols pp ed eds approx est min max avg ave blvd rd jan feb mar
    apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun ca op viz resp no nos art ch sec
"""
_BEFORE_NUMBERS = "no nos art ch sec fig figs eq eqs vol vols pp mar jan jun sun sat"
_FIRST_WORDS = """
    the this that these those it he she they we you i there here so thus therefore hence however but and or in on at as
    if when while since because then finally final answer my our his her their its to for from both
"""
_ABBREVIATIONS, _ONLY_BEFORE_DIGITS = frozenset(_SHORTENED.split()), frozenset(_BEFORE_NUMBERS.split())
_STARTERS = frozenset(_FIRST_WORDS.split())
_COMPANY = re.compile(r"\s+(?:(?<=!\s)[a-z]|(?:Inc|Ltd|Co|Corp|LLC|PLC|plc|GmbH|AG|SA|LP|Records)\b)")
"""What continues a name after its mark: Yahoo! Inc."""
_ACRONYM = re.compile(r"(?:[A-Za-z]\.){2,}|[A-Z]\.", re.ASCII)
_NEXT_WORD = re.compile(r"\s+[\"'“‘(*_]{0,3}([\w’']+)")
_LEADING_MARKS, _TRAILING_MARKS = ' \t\r\n*_#>`"“”‘’«»', ' \t\r\n*_`"“”«»'


_ANOTHER = re.compile(
    r"\n[ \t*#]{0,6}(?:(?:Next |New |Another |Follow-up )?Question|Q)[ \t]{0,2}(?:\d{1,3})?[ \t*]{0,3}:"
)


class Found(NamedTuple):
    """An answer, and where in a part it was found."""

    answer: str
    start: int
    end: int


@dataclass(eq=False)
class Part:
    """What is read of a text: all that follows its last reasoning block."""

    text: str
    start: int
    """Where it begins in the whole text."""
    asked: Asked

    def placed(self, found: Found) -> tuple[int, int]:
        """A place in the whole text."""
        return self.start + found.start, self.start + found.end

    def found(self, start: int, end: int) -> Found | None:
        """The words between two places, without the marks around them; None where there are none."""
        while start < end and self.text[start] in _LEADING_MARKS:
            start += 1
        while start < end and self.text[end - 1] in _TRAILING_MARKS:
            end -= 1
        return Found(self.text[start:end], start, end) if start < end else None

    def before_another_question(self) -> Part | None:
        """What stands before the next question that a model made up and went on with; None where there is none."""
        if "uestion" not in self.text and "\nQ" not in self.text:
            return None
        another = _ANOTHER.search(self.text)
        if another is None or not self.text[: another.start()].strip():
            return None
        return Part(self.text[: another.start()], self.start, self.asked)

    @cached_property
    def without_programs(self) -> str:
        """The text with lines of program code blanked, in the same places."""
        return blank_programs(self.text)

    @cached_property
    def without_code(self) -> str:
        """The same with all fenced blocks blanked as well."""
        return blank_fences(self.without_programs)

    def sentence_end(self, start: int, most: int) -> int:
        """Where the sentence that begins here ends, its stop not included; at most so many characters on."""
        for stop in _STOP.finditer(self.text, start, min(len(self.text), start + most)):
            if not _continues(self.text, stop.start()):
                return self._with_last_dot(stop.start())
        return self._with_last_dot(min(len(self.text), start + most))

    def _with_last_dot(self, end: int) -> int:
        """The end of a sentence, the dot of "D.C." still in it."""
        word = _WORD_BEFORE.search(self.text, max(0, end - 30), end) if self.text.startswith(".", end) else None
        return end + 1 if word is not None and len(word.group()) > 1 and _ACRONYM.fullmatch(word.group() + ".") else end

    def is_aside(self, start: int, end: int) -> bool:
        """Whether a sentence stands in brackets, and others in front of it: "12 apples. (That is a dozen.)"."""
        return _CLOSES_BRACKETS.match(self.text, end) is not None and bool(self.text[:start].strip(_LEADING_MARKS))

    def last_sentence(self, end: int | None = None) -> tuple[int, int] | None:
        """Where the last sentence before a place begins and ends; None where there is none."""
        text, end = self.text, len(self.text) if end is None else end
        while end and not text[end - 1].isalnum() and text[end - 1] not in ")]}%$\\|°'’€£+#":
            end -= 1
        if not end:
            return None
        closed = _STOP_IN_BRACKETS.search(text, max(0, end - 10), end)  # (That is a dozen.)
        low, start = max(0, end - 2000), 0
        for stop in _STOP.finditer(text, low, end if closed is None else closed.start()):
            if not _continues(text, stop.start()):
                start = stop.end()
        start = max(start, low)
        if closed is not None:
            words = text[start : closed.start()].lstrip(_LEADING_MARKS)
            if words[:1] in ("(", "[") or words.count("(") + words.count("[") <= words.count(")") + words.count("]"):
                return start, closed.start()
        return start, self._with_last_dot(end)


def final_part(text: str, asked: Asked) -> Part:
    """What follows the last reasoning block; the whole text where there is none, nothing where it never closes."""
    offset = max(0, len(text) - TAIL)
    text = text[offset:]
    if text[-1:] == ">" or text[-1:].isspace():
        text = text.rstrip()
        while ending := _ENDING.search(text, max(0, len(text) - 25)):
            text = text[: ending.start()].rstrip()
    if "<|" in text:
        turn = _TURN.search(text)
        if turn is not None and text[: turn.start()].strip():
            text = text[: turn.start()]
    if "<" in text or "[" in text or "◁" in text:
        closed = None
        for closed in _CLOSED.finditer(text):  # noqa: B007 - the last one
            pass
        if closed is not None:
            if text[closed.end() :].strip():
                return Part(text[closed.end() :], offset + closed.end(), asked)
            text = text[: closed.start()]
        elif _OPEN.search(text):
            text = ""
    return Part(text, offset, asked)


def _continues(text: str, dot: int) -> bool:
    """Whether a full stop ends an abbreviation or an initial, or a name ends in a mark, and the sentence goes on."""
    if text[dot] in "!?" and _COMPANY.match(text, dot + 1):
        return True
    if text[dot] != "." or text.startswith("..", dot):
        return False
    following = _NEXT_WORD.match(text, _after_marks(text, dot + 1))
    if following is None:
        return False
    word = _WORD_BEFORE.search(text, max(0, dot - 30), dot)
    before, after = word.group() if word else "", following.group(1)
    if _ACRONYM.fullmatch(before + "."):  # D.C. and J. R. R. Tolkien
        return (len(before) == 1 and before != "I") or after.lower() not in _STARTERS or after[0].islower()
    bare = before.replace(".", "").lower()
    if bare not in _ABBREVIATIONS:
        return False
    if bare in _ONLY_BEFORE_DIGITS:
        return after[0].isdigit()
    return after.lower() not in _STARTERS or not after[0].isupper()


def _after_marks(text: str, place: int) -> int:
    while place < len(text) and text[place] in "\"'”’»)]*_":
        place += 1
    return place
