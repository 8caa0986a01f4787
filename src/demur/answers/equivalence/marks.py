"""The characters and marks of an open answer in one spelling, before it is parted into words.

Dropped are emphasis, quotes, brackets around words, and blanks around operators; what else stands between words stays.
"""

from __future__ import annotations

import re
import unicodedata

from demur.answers.equivalence.number_words import SCALES

LETTER = r"[^\W\d_]"

_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f™®©℠]")
_RAISED = re.compile("[⁰¹²³⁴-⁹⁺⁻ⁱⁿ]+")
_LOWERED = re.compile("[₀-₉₊₋]+")
_FRACTION = re.compile("(?<=\\d) ?(?=[¼-¾⅐-⅞↉])")
_FOLD = str.maketrans({
    **dict.fromkeys("’‘‛′`´", "'"), **dict.fromkeys("“”„«»″「」『』《》〈〉", '"'), **dict.fromkeys("–—―‒−‐‑", "-"),
    **dict.fromkeys("⁄∕", "/"), "、": ", ", "،": ", ", "؛": "; ", "；": "; ", "•": " ",
})  # fmt: skip
SAYS_NOTHING = re.compile(r"[\s_.,;:!?¡¿…·'\"()\[\]{}*`。।؟-]*")
"""Marks that are no answer by themselves: a blank to fill in, dots, empty quotes."""

_PLAIN = re.compile(r"[\w ]*")
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3})([^*]+)\1(?![\w*])")
_QUOTED = re.compile(r"""(?<![^\s(\[{])(["'])(?!\s)([^"']*)\1(?!\w)""")
_BRACKETED = re.compile(r"""(?<![^\s"'])([(\[{])([^()\[\]{}]*)([)\]}])(?![^\s"'.,;:!?])""")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_OPENING, _CLOSING = re.compile(r"[(\[{]"), re.compile(r"[)\]}]")
_STRAY_OPENING, _STRAY_CLOSING = re.compile(r"(?<!\S)[(\[{]"), re.compile(r"[)\]}](?![^\s.,;:!?])")
PARTS = re.compile(r"[,;]")
_WORD = re.compile(rf"{LETTER}{{2}}")
_AND = re.compile(r"(?<![&\\])&(?!&)")
_COMPARISON = re.compile(r" ?(<=|>=|!=|[=<>≤≥≠]) ?")
_COMPARISONS = {"<=": "≤", ">=": "≥", "!=": "≠"}
_SPACED_OPERATOR = re.compile(r"(?<=\S) ([+*/^×÷|]) (?=\S)")
_SPACED_MONEY = re.compile(r"(?<!\S)(-?[$€£¥]) (?=\d)")
_SPACED_RATIO = re.compile(r"(?<=\d) : (?=\d)")
_LONG_DASH = re.compile(rf"(?<={LETTER})-{{2,}}(?={LETTER})")
_DOTS = re.compile(r"\.{2,}")
_AND_SO_ON = re.compile(r"(?<=[\d,]) ?\.{3,}(?= ?(?:,|\d|$))")
_OPERATOR = "→←↔⇒⇔∧∨¬∪∩⊕+*/^=<>|"
_BEFORE_GROUP = re.compile(rf"(?:[{_OPERATOR}]|\b(?:and|or|not|xor|implies)) ?\Z", re.I)
_BEHIND_GROUP = re.compile(rf" ?(?:[{_OPERATOR}!]|(?:and|or|xor|implies)\b)", re.I)
_JOINS = re.compile(rf"[{_OPERATOR}-]|\b(?:and|or|not|xor|implies)\b|\d[a-z]", re.I)
_GROUPED = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w]|,\d)")
_SPACED = re.compile(r"[-+$€£]?[1-9]\d{0,2}(?: \d{3}){1,8}+(?![^\s%°.!?]|\.\d| \d)")
_HYPHEN = re.compile(rf"(?<={LETTER}{{2}})-(?={LETTER}{{2}}|\d)|(?<=\d)-(?={LETTER}{{2}})")
_GLUED = re.compile(
    r"(?<![\w.])(\d+(?:\.\d+)?)"
    rf"((?:km|cm|mm|kg|mg|lbs?|oz|ft|mph|[kmg]?hz|[kmgt]b|ml|[km]w|kwh|hrs?|mins?|secs?|{'|'.join(SCALES)})\b)", re.I
)  # fmt: skip


def folded(text: str) -> str:
    """One spelling of characters: NFKC, but x² is not x2, 10₂ is not 102 and 1½ is not 11/2."""
    if not text.isascii():
        text = _FRACTION.sub(" ", text)
        text = _RAISED.sub(lambda raised: "^" + raised.group(), text)
        text = _LOWERED.sub(lambda low: low.group() if _is_index(low) else "_" + low.group(), text)
        text = unicodedata.normalize("NFKC", _CONTROLS.sub("", text).translate(_FOLD)).translate(_FOLD)
    return " ".join(_CONTROLS.sub("", text).split())


def _is_index(low: re.Match[str]) -> bool:
    """Whether lowered digits only number a letter, as in H₂O."""
    before, after = low.string[low.start() - 1 : low.start()], low.string[low.end() : low.end() + 1]
    return before.isalpha() and not after.isdigit()


def unmarked(text: str) -> str:
    """Without emphasis, quotes, brackets around words; operators without blanks around them."""
    if _PLAIN.fullmatch(text):
        return text if text.isalpha() else _GLUED.sub(r"\1 \2", _joined_thousands(text))
    text = _AND_SO_ON.sub(" and so on ", _QUOTED.sub(r" \2 ", _EMPHASIS.sub(r"\2", text)))
    for _ in range(3):
        text = _BRACKETED.sub(_without_brackets, text)
    if not _OPENING.search(text):
        text = _STRAY_CLOSING.sub("", text)
    elif not _CLOSING.search(text):
        text = _STRAY_OPENING.sub("", text)
    text = _LONG_DASH.sub(" - ", _DOTS.sub(" ", _AND.sub(" and ", text)))
    text = _COMPARISON.sub(lambda sign: _COMPARISONS.get(sign.group(1), sign.group(1)), " ".join(text.split()))
    text = _SPACED_MONEY.sub(r"\1", _SPACED_RATIO.sub(":", _SPACED_OPERATOR.sub(r"\1", text)))
    text = _GROUPED.sub(lambda number: number.group().replace(",", ""), text)
    return _HYPHEN.sub(" ", _GLUED.sub(r"\1 \2", _joined_thousands(text)))


def _joined_thousands(text: str) -> str:
    """`10 000 people` with the number in one piece: at the beginning only, as elsewhere it may be two."""
    spaced = _SPACED.match(text)
    return text if spaced is None else spaced.group().replace(" ", "") + text[spaced.end() :]


def _without_brackets(bracketed: re.Match[str]) -> str:
    """Brackets say nothing around words or one thing; (0, 1) and [0, 1] are two."""
    opening, content, closing = bracketed.groups()
    is_list = PARTS.search(content) and not _WORD.search(content)
    groups = _BEFORE_GROUP.search(bracketed.string, 0, bracketed.start()) or _BEHIND_GROUP.match(
        bracketed.string, bracketed.end()
    )
    kept = closing != _BRACKETS[opening] or is_list or (groups and _JOINS.search(content))
    return bracketed.group() if kept else f" {content} "
