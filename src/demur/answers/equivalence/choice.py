"""Multiple choice: a letter or digit however it is dressed, an option by its own words, a label where labels are said.

B, (b), b., [B], **B**, \\text{B}, \\boxed{B}, Option B, B) Paris      o:B
Paris, where it is the second option                                 o:B
(2)                                                                  o:2, a label of its own
True, where the labels are true, false and uncertain                 o:true
anything else                                                        as an open answer
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.characters import cleaned
from demur.answers.equivalence import text
from demur.answers.equivalence.dress import undressed
from demur.answers.languages import with_points

_SAID = (
    r"(?:(?:the |my )?(?:correct |final |best )?(?:option|choice|answer|letter|alternative)"
    r"(?: is)?(?:[ :]{1,3}|(?=[(\[*])))?"
)
_OPENING = r"(?:\*\*|[(\[{]){0,6} ?"
LETTER = re.compile(rf"{_SAID}{_OPENING}([A-Z]) ?(?:\*\*|[)\]}}.:,;!?]){{0,6}}", re.I | re.A)
_DIGIT = re.compile(rf"{_SAID}{_OPENING}(0|[1-9]\d?) ?(?:\*\*|[)\]}}.:]){{0,6}}", re.I | re.A)
_IN_BRACKETS = r" ?[)\]}](?:\*\*)?[.:,]? ?"
_LETTER_AND_TEXT = re.compile(
    rf"{_SAID}{_OPENING}(?:([A-Za-z]|[1-9]\d?){_IN_BRACKETS}|([A-Za-z]): ?|([A-Z])(?:\. | - ))(?:\*\*)? ?(\S.*)", re.A
)
_MORE = re.compile(rf"(?:and|or|&|,|/|\+)(?![a-z])|{_OPENING}[A-Z][)\]}}.:,]|{LETTER.pattern}$", re.I | re.A)
"""What follows a letter where several are chosen: A) and C), (A), (C)."""


@lru_cache(maxsize=65_536)
def key(answer: str, asked: Asked = NOTHING_SAID) -> str | None:
    """The label, letter or digit that is chosen; the key of an open answer where none is."""
    stripped = answer.strip()
    if len(stripped) > text.MAX_LENGTH:
        return text.key(stripped)
    bare = " ".join(unicodedata.normalize("NFKC", undressed(stripped)).split())
    words = text.key(stripped)
    if asked.labels:
        label = _find(_labels(asked), bare, words, _letter(bare))
        if label is not None or not asked.options:
            return words if label is None else f"o:{label}"
    letter, known = _letter(bare), len(asked.options)
    if letter is not None and letter.isalpha() and (not known or ord(letter) - ord("A") < known):
        return f"o:{letter}"
    option = _find(_options(asked), bare, words) if known else None
    if option is None and letter is None:
        option = _letter_before_text(bare, known)
    chosen = option or letter
    return words if chosen is None else f"o:{chosen}"


def _letter(bare: str) -> str | None:
    """A lone letter, in upper case, or a lone digit."""
    found = LETTER.fullmatch(bare) or _DIGIT.fullmatch(bare)
    return found.group(1).upper() if found else None


def _letter_before_text(bare: str, known: int) -> str | None:
    """The letter of `B) Paris`, where only one is chosen and there is such an option."""
    found = _LETTER_AND_TEXT.fullmatch(bare)
    if found is None or _MORE.match(found.group(4)):
        return None
    letter = (found.group(1) or found.group(2) or found.group(3)).upper()
    return letter if not known or letter.isdigit() or ord(letter) - ord("A") < known else None


def _find(table: dict[str, str], bare: str, *keys: str | None) -> str | None:
    """What an answer names: as it is written, else by the first key that names one thing only."""
    wanted = (f"={bare}", f"~{bare.lower()}", *(key for key in keys if key is not None))
    return next((table[key] for key in wanted if key in table), None)


@lru_cache(maxsize=4096)
def _labels(asked: Asked) -> dict[str, str]:
    names = [_written(label, asked).lower() for label in asked.labels]
    names = [name.upper() if len(name) == 1 else name for name in names]
    return _table(asked.labels, names, asked) | {name: name for name in names if len(name) == 1}


@lru_cache(maxsize=4096)
def _options(asked: Asked) -> dict[str, str]:
    """Options by their words, and by letter and words together where no option has just those words."""
    names = [chr(ord("A") + place) if place < 26 else f"#{place + 1}" for place in range(len(asked.options))]
    both = [f"{name} {option}" for name, option in zip(names, asked.options, strict=True)]
    behind = [f"{option} {name}" for name, option in zip(names, asked.options, strict=True)]
    return _table(both, names, asked) | _table(behind, names, asked) | _table(asked.options, names, asked)


def _table(texts: Sequence[str], names: Sequence[str], asked: Asked) -> dict[str, str]:
    """Names by how their texts are written, with and without case, and by their key as open answers.

    What several share names none of them.
    """
    written = [_written(text, asked) for text in texts]
    spellings: list[Callable[[str], str | None]] = [lambda t: f"={t}", lambda t: f"~{t.lower()}", text.key]
    table: dict[str, str] = {}
    for spelling in spellings:
        keys = [spelling(one) for one in written]
        times = Counter(keys)
        table |= {key: name for key, name in zip(keys, names, strict=True) if key is not None and times[key] == 1}
    return table


def _written(option: str, asked: Asked) -> str:
    """An option as an answer would be read."""
    bare = undressed(with_points(cleaned(option), asked.language))
    return " ".join(unicodedata.normalize("NFKC", bare).split())
