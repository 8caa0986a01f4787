"""Open questions: short answers compared word by word, their numbers, dates and clock times by value.

    does not count                                          counts
    case, blank space, the marks that end or part           + # % $ @ / < > = ^ wherever they stand, - and : between
    sentences, quotes, brackets around words                figures, ! behind a figure, ' and " behind a figure
    "the"; "a" and "an" that begin an answer                A that ends one (Vitamin A), that is dotted, that is a note
    dots of initials; a hyphen between words                accents, apostrophes within words, the order of words

What no rule reads stays in the key. An answer of more than 2000 characters is compared as it stands, but for case and
blanks; one without letter, figure or symbol is no answer.
"""

from __future__ import annotations

import re
from functools import lru_cache

from demur.answers.equivalence.dates import date_key, full_year, with_plain_times
from demur.answers.equivalence.dress import undressed
from demur.answers.equivalence.marks import LETTER, PARTS, SAYS_NOTHING, folded, unmarked
from demur.answers.equivalence.number_words import SCALES, read

MAX_LENGTH = 2000
_LONGEST_FOLDED = 4 * MAX_LENGTH

_NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)"
_SENTENCE_MARKS = ".:!?…。।؟'\""
_MEANT = re.compile(r"[!'\"]+")  # factorial, feet and inches, a derivative
_ENDS_IN_A_QUANTITY = re.compile(rf"(?:\d|\)|^{LETTER})$")
_INITIALS = re.compile(rf"({LETTER}(?:\.{LETTER})*)\.")
_INITIALS_AND_NAME = re.compile(rf"((?:{LETTER}\.)++)({LETTER}{{2}}.*)")
_DEGREES = ("ph.d", "m.sc", "b.sc", "m.ed", "b.ed", "ed.d", "d.phil", "m.phil", "ll.b", "ll.m", "ll.d")
_SHORT_YEAR = re.compile(r"'(\d\d)(s?)[.:!?'\"]*", re.A)
_FIGURES = re.compile(rf"(?:\+(?!-))?(-?[$€£¥]?)({_NUMBER})", re.A)
_DECIMAL = re.compile(r"(?<![\w.])(\d*)\.(\d+)(?!\w|\.\d)", re.A)
_CURRENCIES = {"dollars": "$", "usd": "$", "euros": "€", "eur": "€"}
_BEHIND_FIGURES = {"%": "%", "percent": "%", "degrees": "°"}
_SCALES_OF_DEGREES = {"c": "c", "f": "f", "celsius": "c", "fahrenheit": "f"}
_CASED = "m mm mg ms ml mw mhz mv mj mpa mn mbar kb mb gb tb kbps mbps gbps"
_CASED_UNITS = frozenset(_CASED.split())
"""Units of two meanings by case, behind a number: metre and million, milliwatt and megawatt, bit and byte."""
_RAISED_OR_LOWERED = re.compile(r"[\^_]")
_GLUED_METRES = re.compile(r"\d[\d.]*m[snvj]?", re.I | re.A)
_ARTICLES = ("a", "an", "the")
_AFTER_A_LETTER = """
    and or nor but to is was are has in of on for with than not vs minor major flat sharp natural level levels star
    positive negative plus minus priori posteriori fortiori cappella la few little
"""
_NO_ARTICLE_BEFORE = frozenset(_AFTER_A_LETTER.split())
"""Words before which a first "a" is a letter, a note or a grade, or changes what follows: A minor, a few."""


@lru_cache(maxsize=65_536)
def key(answer: str) -> str | None:
    """What answers to an open question share that are the same; None where nothing is said."""
    stripped = answer.strip()
    if len(stripped) > MAX_LENGTH:
        return "p:" + " ".join(stripped.lower().split())
    text = folded(undressed(stripped))
    if SAYS_NOTHING.fullmatch(text):
        return None
    if len(text) > _LONGEST_FOLDED:
        return "p:" + text.lower()
    return date_key(text.lower().strip(" '\"").rstrip(".!?")) or _words_key(text)


def _words_key(text: str) -> str | None:
    tokens = _without_articles(_with_numbers(_joined_initials(_tokens(unmarked(with_plain_times(text))))))
    return "p:" + (" ".join(tokens) or text.lower())


def _tokens(text: str) -> list[str]:
    """Words, figures and signs without the marks at their ends; commas apart; initials end in a dot."""
    tokens: list[str] = []
    for raw in PARTS.sub(" , ", text).split():
        if year := _SHORT_YEAR.fullmatch(raw):
            tokens.append(f"{full_year(year.group(1)) or year.group(1)}{year.group(2)}")
            continue
        token = raw.lstrip("¡¿'\"")
        bare = token.rstrip(_SENTENCE_MARKS)
        tail = token[len(bare) :]
        if bare.lower() in _DEGREES:
            tokens.append(bare.replace(".", ""))
        elif name := _INITIALS_AND_NAME.fullmatch(bare):
            tokens += name.groups()
        elif _INITIALS.fullmatch(bare + ".") and ("." in bare or tail.startswith(".")):
            tokens.append(bare + ".")
        elif bare.lower() == "no" and tail == ".":
            tokens.append("no.")
        elif bare:
            meant = _MEANT.match(tail) if _ENDS_IN_A_QUANTITY.search(bare) else None
            tokens.append(bare + (meant.group() if meant else ""))
    return tokens


def _joined_initials(tokens: list[str]) -> list[str]:
    """`J. R. R. Tolkien` as `JRR Tolkien`. A lone initial keeps its dot: it is no article."""
    joined: list[str] = []
    for place, token in enumerate(tokens):
        is_initials = _INITIALS.fullmatch(token) is not None
        if is_initials and place and _INITIALS.fullmatch(tokens[place - 1]):
            joined[-1] += token
        else:
            joined.append(token)
    return [token if len(token) == 2 or not _INITIALS.fullmatch(token) else token.replace(".", "") for token in joined]


def _with_numbers(tokens: list[str]) -> list[str]:
    """Number words as figures, figures in one spelling and with their scale, all else in lower case."""
    words, result, place = [token.lower() for token in tokens], list[str](), 0
    while place < len(words):
        word, before = words[place], result[-1] if result else ""
        if number := read(words, place):
            value, place = number
            place = _append_number(result, str(value), words, place)
            continue
        place += 1
        following = words[place] if place < len(words) else ""
        if word == "-":
            place += _append_dash(result, tokens, place)
        elif word == "no.":
            result.append("number" if following[:1].isdigit() else "no")
        elif word[0] == "#" and word[1:].isdigit():
            result += ["number", word[1:]]
        elif word == "per" and following == "cent" and before[-1:].isdigit():
            result[-1], place = result[-1] + "%", place + 1
        elif (word in _BEHIND_FIGURES or word[0] == "°") and before[-1:].isdigit():
            result[-1] += _BEHIND_FIGURES.get(word, word)
        elif word in _SCALES_OF_DEGREES and before[-1:] == "°":
            result[-1] += _SCALES_OF_DEGREES[word]
        elif figures := _FIGURES.fullmatch(word):
            prefix, figure = figures.groups()
            plain = figure if before.isalpha() and not prefix else _plain(figure)
            sign = prefix.removeprefix("-") if plain == "0" else prefix
            place = _append_number(result, sign + plain, words, place)
        elif _GLUED_METRES.fullmatch(word) or (word in _CASED_UNITS and before[-1:].isdigit()):
            result.append(tokens[place - 1])
        else:
            written = tokens[place - 1] if _RAISED_OR_LOWERED.search(word) else word  # Y^l is not y^l
            result.append(_DECIMAL.sub(lambda decimal: _plain(decimal.group()), written))
    if len(result) > 1 and result[0] in ("minus", "negative") and _FIGURES.fullmatch("-" + result[1]):
        result[:2] = ["-" + result[1]]
    return result


def _append_number(result: list[str], number: str, words: list[str], place: int) -> int:
    """A number with the scale and the name of money behind it; returns where the rest begins."""
    scale = SCALES.get(words[place - 1], 0)
    while place < len(words) and SCALES.get(words[place], -1) >= scale:  # five hundred thousand
        scale, figure = SCALES[words[place]], number.lstrip("-$€£¥")
        number, place = number[: -len(figure)] + _times_ten(figure, scale), place + 1
    if place < len(words) and words[place] in _CURRENCIES and number.lstrip("-")[:1].isdigit():
        sign = "-" if number.startswith("-") else ""
        number, place = f"{sign}{_CURRENCIES[words[place]]}{number.removeprefix('-')}", place + 1
    result.append(number)
    return place


def _append_dash(result: list[str], tokens: list[str], place: int) -> int:
    """A dash among blanks joins figures and letters, parts words, else stays; returns how many tokens it takes."""
    before, after = result[-1] if result else "", tokens[place] if place < len(tokens) else ""
    if before and after and all(len(side) == 1 or not side.isalpha() for side in (before, after)):
        result[-1] = f"{before}-{_DECIMAL.sub(lambda decimal: _plain(decimal.group()), after.lower())}"
        return 1
    if not all(len(side) > 1 and side[:1].isalpha() for side in (before or "list", after)):
        result.append("-")
    return 0


def _plain(figure: str) -> str:
    """A number in one spelling; a whole one that begins with zero is a code, and stays."""
    whole, _, decimals = figure.partition(".")
    decimals = decimals.rstrip("0")
    return f"{whole or '0'}.{decimals}" if decimals else whole or "0"


def _times_ten(figure: str, power: int) -> str:
    whole, _, decimals = figure.partition(".")
    shifted = whole + decimals[:power].ljust(power, "0")
    return _plain(f"{shifted.lstrip('0') or '0'}.{decimals[power:]}")


def _without_articles(tokens: list[str]) -> list[str]:
    """Without commas, "the" before a word, and an "a" or "an" that begins the answer."""
    kept = []
    for place, token in enumerate(tokens):
        following = tokens[place + 1] if place + 1 < len(tokens) else ""
        if token != "," and not _is_article(token, following, first=place == 0):
            kept.append(token[0] if len(token) == 2 and token[1] == "." else token)
    return kept


def _is_article(token: str, following: str, *, first: bool) -> bool:
    if token not in _ARTICLES or following in ("", ",", *_ARTICLES):
        return False
    return token == "the" or (
        first and following.isalpha() and len(following) > 1 and following not in _NO_ARTICLE_BEFORE
    )
