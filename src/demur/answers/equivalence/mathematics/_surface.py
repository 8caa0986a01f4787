"""The written surface of a mathematical answer, tidied: one spelling for what LaTeX and Unicode spell in many ways.

Every step is a linear pass over at most MAX_LENGTH characters. Nothing is evaluated here.
"""

from __future__ import annotations

import re
import unicodedata

MAX_LENGTH = 2000

_SYMBOLS = {
    **dict.fromkeys("−–—‐‑", "-"), **dict.fromkeys("×·∗⋅", r"\cdot "), **dict.fromkeys("÷∕⁄", "/"),
    **dict.fromkeys("≤⩽", r"\le "), **dict.fromkeys("≥⩾", r"\ge "), **dict.fromkeys("′’", "'"),
    **dict.fromkeys("€£¥\u200b\ufeff", ""), "\u00a0": " ",
    "√": r"\sqrt ", "π": r"\pi ", "∞": r"\infty ", "≠": r"\ne ", "≈": r"\approx ", "∪": r"\cup ", "∈": r"\in ",
    "±": r"\pm ", "°": r"^\circ ", "∅": r"\emptyset ", "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ",
    "λ": r"\lambda ", "μ": r"\mu ", "σ": r"\sigma ", "φ": r"\phi ", "ω": r"\omega ",
    "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}",
    "⅕": r"\frac{1}{5}", "⅙": r"\frac{1}{6}", "⅛": r"\frac{1}{8}", "⅜": r"\frac{3}{8}", "⅝": r"\frac{5}{8}",
    "⅞": r"\frac{7}{8}",
}  # fmt: skip
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ", "0123456789n")
_SUPERSCRIPT_RUN = re.compile("[⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ]+")
_TRANSLATION = str.maketrans(_SYMBOLS)

_DROPPED_NAMES = "left right big Big bigg Bigg bigl bigr Bigl Bigr displaystyle textstyle limits hfill"
_DROPPED = dict.fromkeys(_DROPPED_NAMES.split(), "")
_COMMANDS = {
    "dfrac": r"\frac", "tfrac": r"\frac", "cfrac": r"\frac", "leq": r"\le", "leqslant": r"\le", "geq": r"\ge",
    "geqslant": r"\ge", "neq": r"\ne", "times": r"\cdot", "ast": r"\cdot", "div": "/", "degree": r"^\circ",
    "simeq": r"\approx", "doteq": r"\approx", "lt": "<", "gt": ">", "varnothing": r"\emptyset", "mid": "|", "vert": "|",
    "lvert": "|", "rvert": "|", "lbrace": r"\{", "rbrace": r"\}", "lbrack": "[", "rbrack": "]", "colon": ":",
    "land": ",", "lor": ",", "wedge": ",", "quad": ",", "qquad": ",", "newline": ",", "enspace": " ", "thinspace": " ",
    **_DROPPED,
}  # fmt: skip
_FONT = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal)|math(?:rm|bf|it|sf|tt|bb|cal)|boldsymbol|bm|[mh]box|operatorname\*?|emph|underline)"
    r"\s*(?=\{)"
)
_COMMAND = re.compile(r"\\([a-zA-Z]+)(?![a-zA-Z])")
_SPACING = re.compile(r"\\\\|\\[!,;: ~]|~")  # a row break first, so that what follows it is not taken for a space
_UNESCAPED = re.compile(r"\x0c(?=rac)|\x08(?=oxed|egin|inom|eta)|\t(?=ext|imes|frac|heta|an\b)|\r(?=ight|ho\b)")
_UNESCAPE = {"\x0c": r"\f", "\x08": r"\b", "\t": r"\t", "\r": r"\r"}  # what a JSON reader makes of \frac, \text …
_DOUBLED = re.compile(
    r"\\\\(?=(?:d|t|c)?frac|sqrt|text|math|pi\b|left|right|begin|end|boxed|cdot|times|pm|infty|le|ge|in\b|cup)"
)
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{(.*)\}", re.S)
_THOUSANDS = re.compile(r"(?<![\d.,(\[{])(?<![(\[{]\s)([1-9]\d{0,2})((?:,\d{3})+)(?![\d,)\]}])")
_GLUED_COMMA = re.compile(r"(?<=\d)(?:\{,\}|,(?:\\!)+\s*)(?=\d{3}(?!\d))")
_PERCENT = re.compile(r"\\?%|(?<=\d)\s*(?:percentage points?|percentage|percent|pct)\b\.?", re.I)
_WORDY = re.compile(r"\\text\s*\{([^{}]*)\}")
_CONJUNCTION = re.compile(r"(?<![a-zA-Z\\])(?:and|or)(?![a-zA-Z])")
_UNIT_TEXT = re.compile(r"(?<=[\d}\])a-zπ])\s*\\text\{\s*[^{}]*[a-zA-Z][^{}]*\}\s*(?:\^\s*(?:\{\d\}|\d))?\s*$")
_UNIT_WORDS = re.compile(r"(?<=[\d}])\s+(?:[a-zA-Z]{2,}\.?)(?:\s+[a-zA-Z]{2,}\.?){0,3}(?:\s*\^\s*\{?\d\}?)?$")


def tidy(answer: str) -> str:
    """One spelling; dollar signs, fonts, spacing commands and percent signs gone."""
    text = _UNESCAPED.sub(lambda m: _UNESCAPE[m.group()], answer)
    text = _SUPERSCRIPT_RUN.sub(lambda m: "^{" + m.group().replace("⁻", "-").translate(_SUPERSCRIPTS) + "}", text)
    text = unicodedata.normalize("NFKC", text.translate(_TRANSLATION)).translate(_TRANSLATION)
    text = _DOUBLED.sub(r"\\", text) if r"\begin" not in text or r"\\begin" in text else text
    if boxed := _BOXED.search(text):
        text = boxed.group(1)
    text = _GLUED_COMMA.sub("", text)
    text = text.replace(r"\$", "")
    for mark in ("$", r"\(", r"\)", r"\[", r"\]"):
        text = text.replace(mark, " ")
    text = _SPACING.sub(lambda m: m.group() if m.group().startswith(r"\\") else " ", text)
    text = _FONT.sub(r"\\text", text)
    text = _COMMAND.sub(lambda m: _COMMANDS.get(m.group(1), m.group()) + (" " if m.group(1) in _COMMANDS else ""), text)
    for degree in (r"^ \circ", r"^\circ", r"^{\circ}", r"^{ \circ }", r"\circ"):
        text = text.replace(degree, "")
    text = _PERCENT.sub("", text)
    text = _THOUSANDS.sub(lambda m: m.group(1) + m.group(2).replace(",", ""), text)
    text = _CONJUNCTION.sub(",", _WORDY.sub(_conjunction, text))
    text = _WORDY.sub(_plain_word, re.sub(r"\s+", " ", text).strip().rstrip(".\\ "))
    return re.sub(r"(?:\s*,\s*)+", ", ", text).strip().strip(",;").strip()


def without_unit(text: str) -> str:
    """A tidy text without the unit it ends in."""
    for unit in (_UNIT_TEXT, _UNIT_WORDS):
        text = unit.sub("", text).strip()
    return text.strip(",; ")


def _conjunction(match: re.Match[str]) -> str:
    """`\\text{ and }` between quantities is a comma."""
    return "," if match.group(1).strip().lower() in ("and", "or", "") else match.group()


def _plain_word(match: re.Match[str]) -> str:
    word = match.group(1).strip()
    return f" {word} " if re.fullmatch(r"[-+\d.,/() ]*", word) else match.group()
