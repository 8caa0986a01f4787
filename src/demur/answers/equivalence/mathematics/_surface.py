"""The written surface of a mathematical answer, tidied: one spelling for what LaTeX and Unicode spell in many ways.

Every step is a linear pass over at most MAX_LENGTH characters. Nothing is evaluated here. What later stages need and
LaTeX has no sign for is said with one character: AND and OR between statements, DEGREE inside trigonometric functions.
Signs of percent, degrees and money are units: alone they are dropped, and in lists they become words, as lists may mix
them.
"""

from __future__ import annotations

import re
import unicodedata

from demur.answers.equivalence.mathematics._units import letters_in_text

MAX_LENGTH = 2000
AND, OR, DEGREE = "∧", "∨", "°"

_SYMBOLS = {
    **dict.fromkeys("−–—‐‑", "-"), **dict.fromkeys("×·∗⋅", r"\cdot "), **dict.fromkeys("÷∕⁄", "/"),
    **dict.fromkeys("≤⩽", r"\le "), **dict.fromkeys("≥⩾", r"\ge "), **dict.fromkeys("′’", "'"),
    **dict.fromkeys("€£¥₹₽₩₱\u200b\ufeff", ""), "¢": " cents", "\u00a0": " ",
    "√": r"\sqrt ", "π": r"\pi ", "∞": r"\infty ", "≠": r"\ne ", "≈": r"\approx ", "∪": r"\cup ", "∈": r"\in ",
    "±": r"\pm ", "º": "°", "℃": "°C", "℉": "°F", "∘": r"\circ ", "∅": r"\emptyset ",
    "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ",
    "λ": r"\lambda ", "μ": r"\mu ", "σ": r"\sigma ", "φ": r"\phi ", "ω": r"\omega ",
    "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}",
    "⅕": r"\frac{1}{5}", "⅙": r"\frac{1}{6}", "⅛": r"\frac{1}{8}", "⅜": r"\frac{3}{8}", "⅝": r"\frac{5}{8}",
    "⅞": r"\frac{7}{8}",
}  # fmt: skip
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ", "0123456789n")
_SUPERSCRIPT_RUN = re.compile("[⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ]+")
_TRANSLATION = str.maketrans(_SYMBOLS)

_PRIMES = re.compile(r"\^?\s?(?:\{\s?((?:\\prime\s?)+)\}|((?:\\prime(?![a-zA-Z])\s?)+))")
_DROPPED_NAMES = "left right big Big bigg Bigg bigl bigr Bigl Bigr displaystyle textstyle limits hfill"
_DROPPED = dict.fromkeys(_DROPPED_NAMES.split(), "")
_COMMANDS = {
    "dfrac": r"\frac", "tfrac": r"\frac", "cfrac": r"\frac", "leq": r"\le", "leqslant": r"\le", "geq": r"\ge",
    "geqslant": r"\ge", "neq": r"\ne", "times": r"\cdot", "ast": r"\cdot", "div": "/", "degree": DEGREE,
    "simeq": r"\approx", "doteq": r"\approx", "lt": "<", "gt": ">", "varnothing": r"\emptyset", "mid": "|", "vert": "|",
    "lvert": "|", "rvert": "|", "lbrace": r"\{", "rbrace": r"\}", "lbrack": "[", "rbrack": "]", "colon": ":",
    "land": AND, "lor": OR, "wedge": AND, "vee": OR, "quad": ",", "qquad": ",", "newline": ",", "enspace": " ",
    "thinspace": " ", "ldots": "...", "dots": "...", "cdots": "...", "dotsc": "...", "top": "T", **_DROPPED,
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
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_MOST_BOXES = 20
_LEADING_UP = re.compile(r"(?:[:.]|\b(?:is|are|be|equals|gives|get|thus|therefore|so|answer),?)[\s$*]*$", re.I)
_QUOTED = re.compile(r"""(["“”'‘’`]{1,3})([^"“”'‘’`]*)["“”'‘’`]{1,3}""")
_NUMERAL = r"(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d+)?"
_RUN = re.compile(r"[-+]?\d[-+\d.,]*")
_GROUPED = re.compile(rf"[-+]?{_NUMERAL}(?:[-+]{_NUMERAL})*", re.ASCII)
_GLUED_COMMA = re.compile(r"(?<=\d)(?:\{,\}|,\s?(?:\\!)+\s*)(?=\d{3}(?!\d))")
_PERCENT = re.compile(r"\\?%|(?<=\d)\s*(?:percentage points?|percentage|percent|pct)\b\.?", re.I)
_PERCENT_SIGN, _LISTED = re.compile(r"(?<!\s)\s*+%"), re.compile(f"[,;{AND}{OR}]")
_JOINS = re.compile(r"[,;&]|\b(?:and|or)\b", re.I)
_AMOUNT = re.compile(
    r"(?:\\?\$|([€£¥₹₽₩₱]))\s?(\d[\d.,]{0,30}(?<![.,])(?: (?:hundred|thousand|million|billion|trillion))?)"
    r"(?=\s?(?:\Z|[,;)\]}]|\.(?:\s|\Z)|\\\}|(?:and|or)\b))"
)
_MONEY_SIGNS = "$€£¥₹₽₩₱"
_CURRENCIES = {
    "": "dollar", "€": "euro", "£": "gbp", "¥": "yen", "₹": "rupee", "₽": "ruble", "₩": "won", "₱": "peso",
}  # fmt: skip
_DEGREES = re.compile(r"\^\s*(?:\{\s*(?:\\circ|°)\s*\}|\\circ(?![a-zA-Z])|°)|(?<=[\d}])\s*\\circ(?![a-zA-Z])")
_SCALE_OF_DEGREES = re.compile(r"°\s*(?:\\text\s*\{\s*[CF]\s*\}|[CF](?![a-zA-Z]))")
_TRIGONOMETRIC = re.compile(r"(?<![a-z])(?:sin|cos|tan|cot|sec|csc)(?![a-z])")
_WORDY = re.compile(r"\\text\s*\{([^{}]*)\}")
_TH = r"\s*(?:st|nd|rd|th)\s*"
_ORDINAL = re.compile(
    rf"(?<=\d)\s*(?:\^?\s*\\text\s*\{{{_TH}\}}|\^\s*\{{\s*\\text\s*\{{{_TH}\}}\s*\}}|\^\s*\{{{_TH}\}}|\^?{_TH}(?![a-zA-Z]))"
)
_PLAIN_PI = re.compile(r"(?<![\\a-zA-Z])pi(?![a-zA-Z])")
_MONEY = re.compile(r"(\\?\$|[€£¥])\s*(\d[\d,.]*) ?([kKMB])\.?")
_MONEY_SCALES = {"k": "thousand", "K": "thousand", "M": "million", "B": "billion"}
_UNEQUAL = re.compile(r"(?<![\d)!])!=|/=|=/=|<>")  # 5!=120 is a factorial
_CONJUNCTION = re.compile(r"(?<![a-zA-Z\\])([Aa]nd|AND|[Oo]r|(?<= )OR(?= ))(?![a-zA-Z])")
_GLUED_CONJUNCTION = re.compile(r"(?<=[\d)\]}])(and|or)(?=[a-zA-Z](?:_\w)?\s*[=<>(])")
_SEPARATORS = re.compile(r"(?<!\s)\s*+[,∧∨](?:\s*+[,∧∨])*+\s*+")
_ENDING = re.compile(r"(?<!\.)\.$|(?<![\\ ])[\\ ]++$")


_SUBSCRIPTS, _SUBSCRIPT_RUN = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789"), re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_NEGATION = re.compile(r"(?<![\w}\\])~(?=[A-Za-z(/])")  # elsewhere it is a space of TeX
_VECTORS = re.compile(r"\\(?:vec|mathbf|boldsymbol|bm|hat|overrightarrow)\b")
_CROSS = re.compile(r"\\times\b|×")
_SUBSCRIPT = re.compile(r"_\s?\{\s?(\w)\s?\}")


def tidy(answer: str) -> str:
    """One spelling; dollar signs, fonts, spacing commands and percent signs gone."""
    text = _UNESCAPED.sub(lambda m: _UNESCAPE[m.group()], answer)
    if _VECTORS.search(text):  # a cross product is no dot product
        text = _CROSS.sub(r"\\crossed ", text)
    if quoted := _QUOTED.fullmatch(text.strip()):
        text = quoted.group(2)
    if money := _MONEY.fullmatch(text.strip()):  # behind a currency sign the letter is no factor
        text = f"{money.group(2)} {_MONEY_SCALES[money.group(3)]}"
    text = _with_amounts(_GLUED_COMMA.sub("", letters_in_text(text)))
    text = _SUPERSCRIPT_RUN.sub(lambda m: "^{" + m.group().replace("⁻", "-").translate(_SUPERSCRIPTS) + "}", text)
    text = _SUBSCRIPT_RUN.sub(lambda m: "_{" + m.group().translate(_SUBSCRIPTS) + "}", text)
    text = _NEGATION.sub(r"\\neg ", text)
    text = unicodedata.normalize("NFKC", text.translate(_TRANSLATION)).translate(_TRANSLATION)
    text = _DOUBLED.sub(r"\\", text) if r"\begin" not in text or r"\\begin" in text else text
    text = _unboxed(text)
    text = _SUBSCRIPT.sub(r"_\1", text.replace(r"\$", ""))
    for mark in ("$", r"\(", r"\)", r"\[", r"\]"):
        text = text.replace(mark, " ")
    text = _SPACING.sub(lambda m: m.group() if m.group().startswith(r"\\") else " ", text)
    text = _FONT.sub(r"\\text", text)
    if r"\prime" in text:
        text = _PRIMES.sub(lambda m: "'" * m.group().count("p"), text)
    text = _COMMAND.sub(lambda m: _COMMANDS.get(m.group(1), m.group()) + (" " if m.group(1) in _COMMANDS else ""), text)
    text = _ungrouped(_PERCENT.sub("%", _degrees(text)))
    text = _PLAIN_PI.sub(r"\\pi ", _UNEQUAL.sub(r"\\ne ", _ORDINAL.sub("", text)))
    text = _CONJUNCTION.sub(_joined, _GLUED_CONJUNCTION.sub(_joined, _WORDY.sub(_conjunction, text)))
    text = _WORDY.sub(_plain_word, re.sub(r"\s+", " ", text).strip())
    return _signs_as_units(_SEPARATORS.sub(_separator, _without_ending(text)).strip(" ,;∧∨"))


def _unboxed(text: str) -> str:
    """Boxes opened. Words that lead up to a lone box go (`the answer is`); what else stands around it belongs to it."""
    boxes = list(_BOX.finditer(text))
    if len(boxes) > _MOST_BOXES:
        return text
    for box in reversed(boxes):
        close = _closing(text, box.end())
        before = text[: box.start()]
        if len(boxes) == 1 and _LEADING_UP.search(before[-40:]):
            before = ""
        text = before + text[box.end() : close] + text[close + 1 :]
    return text


def _closing(text: str, start: int) -> int:
    """Where the brace that was opened before `start` closes; the end of the text where it does not."""
    depth = 1
    for position in range(start, len(text)):
        depth += (text[position] == "{") - (text[position] == "}")
        if depth == 0:
            return position
    return len(text)


def _without_ending(text: str) -> str:
    """Without the full stop, and the strokes and blanks, that a text ends in; an ellipsis is kept."""
    while ending := _ENDING.search(text[-200:]):
        text = text[: -len(ending.group())]
    return text.strip()


def _degrees(text: str) -> str:
    """One degree sign, whatever the scale; in the company of a sine it says how an angle is measured."""
    if "°" not in text and r"\circ" not in text:
        return text
    return _SCALE_OF_DEGREES.sub(DEGREE, _DEGREES.sub(DEGREE, text))


def _with_amounts(text: str) -> str:
    """In what may be a list, amounts of money with the money behind them: `$3 and 4 cents`; `$3$, $4$` are formulas."""
    if not _JOINS.search(text) or not any(sign in text for sign in _MONEY_SIGNS):
        return text
    return _AMOUNT.sub(lambda amount: f"{amount.group(2)} {_CURRENCIES[amount.group(1) or '']}", text)


def _signs_as_units(text: str) -> str:
    """Percent and degree signs dropped, or words where a list may mix them with others."""
    if "%" not in text and DEGREE not in text:
        return text
    if not _LISTED.search(text):
        text = _PERCENT_SIGN.sub("", text)
        return text if _TRIGONOMETRIC.search(text) else text.replace(DEGREE, "")
    text = _PERCENT_SIGN.sub(" percent ", text)
    text = text if _TRIGONOMETRIC.search(text) else text.replace(DEGREE, " degree ")
    return re.sub(r"\s+(?=[\s,;)\]}∧∨]|$)", "", text)


def _ungrouped(text: str) -> str:
    """Numbers outside brackets without the commas between their thousands; where a run of numbers has others, none."""
    if "," not in text:
        return text
    pieces, depth, last = [], 0, 0
    for run in _RUN.finditer(text):
        between = text[last : run.start()]
        depth = max(0, depth + sum(map(between.count, "([{")) - sum(map(between.count, ")]}")))
        number = run.group().rstrip("-+.,")
        grouped = depth == 0 and text[run.start() - 1 : run.start()] != "," and _GROUPED.fullmatch(number)
        pieces += [between, number.replace(",", "") if grouped else number]
        last = run.start() + len(number)
    return "".join([*pieces, text[last:]])


def _joined(match: re.Match[str]) -> str:
    return OR if match.group(1).lower() == "or" else AND


def _conjunction(match: re.Match[str]) -> str:
    """`\\text{ and }` between quantities joins them; `\\text{ }` is a blank."""
    word = match.group(1).strip().lower()
    return {"and": AND, "or": OR, "": " "}.get(word, match.group())


def _separator(match: re.Match[str]) -> str:
    """`, and` is one word that joins."""
    signs = match.group()
    return OR if OR in signs else AND if AND in signs else ", "


def _plain_word(match: re.Match[str]) -> str:
    word = match.group(1).strip()
    return f" {word} " if re.fullmatch(r"[-+\d.,/()% ]*", word) else match.group()
