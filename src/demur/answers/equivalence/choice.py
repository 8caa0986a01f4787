"""Multiple choice: a letter or digit however it is dressed, an option by its own words, a label where labels are said.

o:B     B, (b), b., [B], **B**, \\text{B}, \\boxed{B}, Option B, B) Paris; Paris, where it is the second option
o:2     (2), a label of its own
o:B     \\frac12, where 1/2 is the second option: numbers and formulas by their value
o:true  True, where the labels are true, false and uncertain
p:…     anything else: as an open answer

Where letter and words disagree (`B) Rome`, and Rome is the third option), the letter is chosen: it is what was
asked for, and whoever grades the answer goes by it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.characters import cleaned
from demur.answers.equivalence import auto, text
from demur.answers.equivalence.dress import undressed
from demur.answers.languages import with_points

_SAID = (
    r"(?:\*\*)?(?i:(?:the |my )?(?:correct |final |best )?(?:option|choice|answer|letter|alternative)"
    r"(?: is)?(?:[ :]{1,3}|(?=[(\[*])))?"
)
_OPENING = r"(?:\*\*|[(\[{]){0,6} ?"
LETTER = re.compile(rf"{_SAID}{_OPENING}([A-Z]) ?(?:\*\*|[)\]}}.:,;!?]){{0,6}}", re.I | re.A)
_DIGIT = re.compile(rf"{_SAID}{_OPENING}(0|[1-9]\d?) ?(?:\*\*|[)\]}}.:]){{0,6}}", re.I | re.A)
_IN_BRACKETS = r" ?[)\]}](?:\*\*)?[.:,]? ?"
_LETTER_AND_TEXT = re.compile(
    rf"{_SAID}{_OPENING}(?:([A-Za-z]|[1-9]\d?){_IN_BRACKETS}|([A-Za-z]): ?|([A-Z])(?:\. | - ))(?:\*\*)? ?(\S.*)", re.A
)
_WORDS = ("p:", "d:", "w:", "s:")  # keys of what has no value
_MORE = re.compile(rf"(?:and|or|&|,|/|\+)(?![a-z])|{_OPENING}[A-Z][)\]}}.:,]|{LETTER.pattern}$", re.I | re.A)
"""What follows a letter where several are chosen: A) and C), (A), (C)."""


@lru_cache(maxsize=65_536)
def key(answer: str, asked: Asked = NOTHING_SAID) -> str | None:
    """The option, label, letter or digit that is chosen; the key of an open answer where none is."""
    stripped = answer.strip()
    if len(stripped) > text.MAX_LENGTH:
        return text.key(stripped)
    bare = _bare(stripped)
    chosen = _option(bare, asked) if asked.options else None
    if chosen is None and asked.labels:
        chosen = _labels(asked).get(f"={bare.lower()}") or _labels(asked).get(_words(bare))
        chosen = chosen or _labels(asked).get(f"={(_letter(bare) or '').lower()}")
    if chosen is None and (asked.options or not asked.labels):
        chosen = _letter(bare) or _letter_before_text(bare, asked)
    return f"o:{chosen}" if chosen else text.key(stripped)


def _option(bare: str, asked: Asked) -> str | None:
    """The letter of an option, by itself or by the option's words; "" where these are those of several."""
    letter = _letter(bare)
    if letter is not None and letter.isalpha() and ord(letter) - ord("A") < len(asked.options):
        return letter
    by_words = _options(asked).get(_words(bare))
    return option_of_value(bare, asked) if by_words is None else by_words


def option_of_value(answer: str, asked: Asked) -> str | None:
    """The letter of the only option with the value of a number or formula; None where there is none."""
    values = _values(asked)
    return values.get(auto.key(answer) or "") if values else None


@lru_cache(maxsize=4096)
def _values(asked: Asked) -> dict[str, str]:
    """Letters of options by their values; those that are words have none."""
    keys = {letter: auto.key(option) or "" for letter, option in _written(asked) if len(letter) == 1}
    numbers = {letter: key for letter, key in keys.items() if key and not key.startswith(_WORDS)}
    return _unique(list(numbers.values()), list(numbers))


def _letter(bare: str) -> str | None:
    """A lone letter, in upper case, or a lone digit."""
    found = LETTER.fullmatch(bare) or _DIGIT.fullmatch(bare)
    return found.group(1).upper() if found else None


def _letter_before_text(bare: str, asked: Asked) -> str | None:
    """The letter of `B) Paris`, where only one is chosen and, where there are options, it is one of theirs."""
    found = _LETTER_AND_TEXT.fullmatch(bare)
    if found is None or _MORE.match(found.group(4)):
        return None
    letter = (found.group(1) or found.group(2) or found.group(3)).upper()
    if letter.isdigit():
        return _options(asked).get(_words(found.group(4))) or letter
    return letter if not asked.options or ord(letter) - ord("A") < len(asked.options) else None


@lru_cache(maxsize=4096)
def _labels(asked: Asked) -> dict[str, str]:
    """Labels as they are written, in lower case, and by their words where these are no other label's."""
    written = [_bare(with_points(cleaned(label), asked.language)).lower() for label in asked.labels]
    names = [label.upper() if len(label) == 1 else label for label in written]
    return _unique([_words(label) for label in written], names) | _unique([f"={label}" for label in written], names)


@lru_cache(maxsize=4096)
def _options(asked: Asked) -> dict[str, str]:
    """Letters of options by the options' words, "" where these are those of several, and by letter and words."""
    names, written = zip(*_written(asked), strict=True) if asked.options else ((), ())
    own = [_words(option) for option in written]
    both = [_words(f"{name} {option}") for name, option in zip(names, written, strict=True)]
    both += [_words(f"{option} {name}") for name, option in zip(names, written, strict=True)]
    return _unique(both, names * 2) | dict.fromkeys(own, "") | _unique(own, names)


@lru_cache(maxsize=4096)
def _written(asked: Asked) -> tuple[tuple[str, str], ...]:
    """Options with their letters, the letters that they came with taken off."""
    names = [chr(ord("A") + place) if place < 26 else f"#{place + 1}" for place in range(len(asked.options))]
    written = [_bare(with_points(cleaned(option), asked.language)) for option in asked.options]
    lettered = [_LETTER_AND_TEXT.fullmatch(option) for option in written]
    if all(found and name in found.groups() for name, found in zip(names, lettered, strict=True)):
        written = [found.group(4) for found in lettered if found]  # they came with their letters
    return tuple(zip(names, written, strict=True))


def _unique(keys: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Names by their keys; what several share names none of them."""
    times = Counter(keys)
    return {key: name for key, name in zip(keys, names, strict=True) if times[key] == 1}


def _bare(written: str) -> str:
    """An answer without its dress, its characters in one form."""
    return " ".join(unicodedata.normalize("NFKC", undressed(written)).split())


def _words(bare: str) -> str:
    """The key of an open answer; signs without a word are themselves."""
    return text.key(bare) or f"={bare}"
