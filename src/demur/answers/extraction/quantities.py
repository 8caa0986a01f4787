"""What mathematics can read of words: the formula or the number in them, or the words themselves."""

from __future__ import annotations

import re

from demur.answers.equivalence.mathematics import keys
from demur.answers.extraction.numbers import first, number_word, result
from demur.answers.extraction.part import Found, Part
from demur.answers.extraction.said import COMMENT, formula_at

_LONGEST = 400
_UNDECIDED = re.compile(
    r"\bcan(?:not|['’]t|\snot)\sbe\s(?:determined|answered|solved)|\bnot\senough\sinformation|\bcan(?:not|['’]t)\s(?:answer|determine)\b",
    re.I,
)
_SENTENCES_BACK = 6
_SCIENTIFIC = re.compile(r"-?\d[\d.]*\s?x\s?10\^\{?-?\d+\}?(?:\s?[A-Za-z/]{1,6})?")
_TIMES = re.compile(r"\d\s?x\s?\d")
_PLAIN = re.compile(r"[-+−]?[$€£]?\d[\d,]*(?:\.\d+)?%?")
_ASIDE = re.compile(r"\s?\([^()]{1,60}\)\Z")
_NAMES = re.compile(r"[A-Za-z](?=\w*_)\w++(?:\s?[-+*/]\s?\w++)*+|[a-z]++(?:[A-Z][a-z]++)++")
_NAMED = re.compile(
    r"(?!(?:sin|cos|tan|log|exp|det|max|min|lim)\b)[A-Za-z]{3,20}(?: [A-Za-z]{2,20}){0,9} ?= ?(?=\S)", re.I
)
"""Words for what is asked, in front of what is said to be the answer: Total number of eggs = 5."""
_VARIABLE = re.compile(r"[a-z]\w{2,40}")
_OPENS = re.compile(r"\\\[|\\\(|\$\$?|\\begin\s?\{(?:align|equation|gather|eqnarray|split)")
_FORMULA = re.compile(
    r"\\[a-zA-Z{]|\^|\w_\{|[√π±∞≤≥]|(?<!m)[²³]|[(\[{]\s?-?[\d.]+\s?,\s?-?[\d.]|\d\s?:\s?\d|\b[a-z]\s?[<>=]=?\s?-?\d|\d\s?[<>]|\d[xyzn]\b"
    r"|\b(?:sqrt|ln|log|sin|cos|tan)\b|\d_\d"
)
"""Signs that words around are a formula."""
_EMPTY = re.compile(
    r"(?:\\(?:begin|end)\s?\{\w++\*?\}|\\(?:blacksquare|square|qed|Box|checkmark|text|quad|\]|\[)|[\s.,;$\\{}\[\]&])*+"
)
_COMMAND = re.compile(r"(?<!\\)\\++(?:(?:begin|end)\s?\{\w{1,20}\*?\}|[a-zA-Z]++)")
_TEXT = re.compile(r"\\(?:text|mbox|mathrm|textbf|mathbf)\s?\{[^{}]{0,80}\}")
_CONNECTIVE = re.compile(r"\b(?:and|or)\b", re.I)
_FUNCTION = re.compile(r"\b(?:sqrt|log|sin|cos|tan|exp)\b")
_PROSE = re.compile(r"[A-Za-z]{3,}|\b(?:is|of|to|in|it|we|so|be|by|at|as|an|if|on|no|do|he|my|us|up|am)\b", re.I)
_STARTS_WITH_NUMBER = re.compile(r"[-+−$€£(]{0,3}\s?\.?\d")
_FEW_WORDS = re.compile(r"(?:\\\w+\s?\{)?[A-Za-z][\w'-]*(?: [\w'-]+)?\}?[.!]?")
_BRACES = r"\{[^{}\n]{0,80}(?:\{[^{}\n]{0,40}\}[^{}\n]{0,40}){0,4}\}"
_WORD = re.compile(rf"[^\s{{}}]*(?:{_BRACES}[^\s{{}}]*)*|\S+")


def quantity(part: Part, found: Found) -> Found | None:
    """Of what is said to be the answer, the part that mathematics can read; the words themselves where it has none."""
    answer = found.answer
    if _PLAIN.fullmatch(answer):
        return found
    if answer.endswith("?") or part.text.startswith("?", found.end) or _names_variable(part, answer):
        return None
    if (named := _NAMED.match(answer)) and "=" not in answer[named.end() :]:
        return quantity(part, Found(answer[named.end() :], found.start + named.end(), found.end))
    aside = _ASIDE.search(answer)
    if aside is not None and _PLAIN.fullmatch(answer[: aside.start()]):
        return part.found(found.start, found.start + aside.start())
    prose = _PROSE.search(_CONNECTIVE.sub(" ", _COMMAND.sub(" ", _TEXT.sub(" ", answer)))) is not None
    if prose and _STARTS_WITH_NUMBER.match(answer) and (keys.key(answer) or "s:")[:2] != "n:":
        beginning = first(part, found.start, found.end)
        if beginning is not None:
            return beginning
    if _is_readable(answer):
        return found
    if _SCIENTIFIC.fullmatch(answer):
        return found._replace(answer=answer.replace("x", "×"))
    return _in_sentence(part, found.start, found.end) or found


def whole(part: Part) -> Found | None:
    """All of a text that is nothing but one quantity, or a word or two."""
    found = part.found(0, len(part.text)) if len(part.text) <= _LONGEST else None
    if found is None or _FEW_WORDS.fullmatch(found.answer):
        return found
    has_words = _PROSE.search(_CONNECTIVE.sub(" ", _COMMAND.sub(" ", _TEXT.sub(" ", found.answer)))) is not None
    if (has_words and not _STARTS_WITH_NUMBER.match(found.answer)) or part.without_code != part.text:
        return None
    kind = (keys.key(found.answer) or "s:")[:2]
    return found if kind == "n:" or (kind not in ("s:", "w:") and not has_words) else None


def closing(part: Part) -> Found | None:
    """The number or formula that the last sentence with one gives."""
    end: int | None = None
    for _ in range(_SENTENCES_BACK):
        sentence = part.last_sentence(end)
        if sentence is None:
            return None
        if _UNDECIDED.search(part.text, *sentence):
            return None
        asks = part.text[sentence[1] :].lstrip(" \"'*)").startswith("?")
        found = (
            None
            if asks or COMMENT.match(part.text, *sentence) or part.is_aside(*sentence)
            else _in_sentence(part, sentence[0], sentence[1], most=2)
        )
        if found is not None:
            return found
        end = sentence[0]
    return None


def closing_word(part: Part) -> Found | None:
    """The number that the last sentence gives in words, where the text has no other."""
    sentence = part.last_sentence()
    return None if sentence is None else number_word(part, *sentence)


def _in_sentence(part: Part, start: int, end: int, most: int = 0) -> Found | None:
    """The last formula of a sentence, or the number that it gives behind; a formula may close beyond its end."""
    formula = _last_formula(part, start, end + most) or _bare_formula(part, start, end)
    number = result(part, start, end)
    return formula if formula is not None and (number is None or number.start < formula.end) else number


def _names_variable(part: Part, answer: str) -> bool:
    """Whether the words only name what a program calculated."""
    if _NAMES.fullmatch(answer):
        return True
    return _VARIABLE.fullmatch(answer) is not None and re.search(rf"(?m)^[ \t]*{answer}[ \t]*=", part.text) is not None


def _is_readable(answer: str) -> bool:
    """Whether the words as a whole are a number, a formula, a list; or words without any number in them."""
    key = keys.key(answer) if len(answer) <= _LONGEST else None
    if key is None or _TIMES.search(answer):
        return False
    if key[:2] in ("s:", "w:"):
        return not any(character.isdigit() for character in answer) and "$" not in answer and "\\(" not in answer
    return True


def _last_formula(part: Part, start: int, end: int) -> Found | None:
    """The last formula that begins between two places."""
    text = part.without_code
    if "$" not in text and "\\" not in text:
        return None
    place, last = start, None
    while opening := _OPENS.search(text, place, end):
        formula = formula_at(text, opening.start())
        if formula is None or _EMPTY.fullmatch(formula.answer):
            place = opening.end() if formula is None else formula.end + 1
        else:
            last, place = formula, formula.end + 2
    return last


def _bare_formula(part: Part, start: int, end: int) -> Found | None:
    """The last run of LaTeX that nobody put between dollars: words without a run of plain letters."""
    text = part.without_code
    if not _FORMULA.search(text, start, end):
        return None
    runs: list[tuple[int, int] | None] = []
    for word in _WORD.finditer(text, start, end):
        last = runs[-1] if runs else None
        if _PROSE.search(_FUNCTION.sub("", _COMMAND.sub("", word.group()))):
            runs.append(None)
        elif last is not None:
            runs[-1] = (last[0], word.end())
        elif word.group():
            runs.append(word.span())
    for run in reversed(runs):
        if run is not None and _FORMULA.search(text, *run):
            found = part.found(*run)
            if found is None or "box" in found.answer or _EMPTY.fullmatch(found.answer):
                continue
            if _is_readable(found.answer.strip(" ,;:.=")):
                bare = found.answer.strip(" ,;:.=")
                start = found.start + found.answer.index(bare)
                return part.found(start, start + len(bare))
    return None
