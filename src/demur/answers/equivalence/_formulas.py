"""Which answers are put to the slow path, and how they are spelled there.

A formula is made of tokens that have one meaning, each written so that no reader can take it for two things. All else
is no formula: words, units, percent signs, bases, mixed numbers, thousands, lists, relations, integrals and sums
without bounds. A grader of formulas drops what it does not know, and calls the rest the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_LONGEST = 300
_DEEPEST = 40
_SIGNS = {
    **dict.fromkeys("−–", "-"), **dict.fromkeys("×·⋅", r"\cdot "), "∑": r"\sum ", "∏": r"\prod ", "∫": r"\int ",
    "π": r"\pi ", "∞": r"\infty ", "→": r"\to ", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ",
    "√": r"\sqrt ",
}  # fmt: skip
_TRANSLATION = str.maketrans(_SIGNS)
_QUOTED = re.compile(r"""(["'`]|\*\*|\$\$?|\\\(|\\\[)(.*)(["'`]|\*\*|\$\$?|\\\)|\\\])""", re.S)
_CLOSING = {r"\(": r"\)", r"\[": r"\]"}
_CLOSES = {"(": ")", "{": "}"}
_DRESS = re.compile(
    r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|textstyle|limits|nolimits)(?![a-zA-Z])|\\[,;:! ]|\s+|~"
)
_RENAMED = re.compile(r"\\(?:(?P<frac>[dtc]frac)|(?P<cdot>times|ast)|(?P<to>rightarrow|longrightarrow))(?![a-zA-Z])")
_ROMAN = re.compile(r"\\(?:mathrm|operatorname|text)\s*\{\s*(d|gcd|lcm|max|min|det)\s*\}")
_TOKEN = re.compile(
    r"(?P<number>\d+(?:\.\d+)?|\.\d+)|(?P<matrix>\\(?:begin|end)\{[pbv]matrix\})|(?P<command>\\[a-zA-Z]+)"
    r"|(?P<letters>[a-zA-Z]+)|(?P<row>\\\\|&)|(?P<sign>[-+*/^_()\[\]{}|!,=])",
    re.ASCII,
)


def _commands(names: str) -> frozenset[str]:
    return frozenset("\\" + name for name in names.split())


_GREEK = _commands("alpha beta delta epsilon theta lambda mu nu rho sigma tau phi chi psi omega")
_FUNCTIONS = _commands("sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh ln log exp")
_BOUNDED = _commands("sum prod int lim")
_OF_LISTS = _commands("gcd lcm max min")
_ENDS = _commands("pi infty rfloor rceil")
_BETWEEN = _commands("cdot div to rfloor rceil")
_OTHERS = _commands("frac binom sqrt lfloor lceil det")
_COMMANDS = _GREEK | _FUNCTIONS | _BOUNDED | _OF_LISTS | _ENDS | _BETWEEN | _OTHERS
_LIST = re.compile(r"-?\d+(?:,-?\d+)+", re.ASCII)
_NAMES_OF_FUNCTIONS = frozenset("fghuvw")
_CONSTANTS = frozenset("ei")
_MOST_LETTERS = 3
_COMMAND = re.compile(r"\\(?:begin|end)\{\w+\}|\\([a-zA-Z]+)")
_WORD = re.compile(r"[a-zA-Z]+")
_DIFFERENTIAL = re.compile(r"\bd([a-zA-Z])\b")

Token = tuple[str, str]
_END: Token = ("end", "")


class _NoFormula(Exception):
    """A token that is not known, or that could mean two things."""


def sides(answer: str) -> list[str] | None:
    """The sides of an equation, or the answer alone, dollar signs and quotes taken off; None where it cannot be one."""
    text = answer.strip().rstrip(".").strip() if len(answer) <= _LONGEST else ""
    if (quoted := _QUOTED.fullmatch(text)) and _CLOSING.get(quoted[1], quoted[1]) == quoted[3] not in quoted[2]:
        text = quoted[2].strip()
    text = text.translate(_TRANSLATION)
    depth, parts = 0, [""]
    for character in text:
        depth += (character in "{([") - (character in "])}")
        if character == "=" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts if len(parts) <= 2 and all(map(str.strip, parts)) else None


def formula(text: str) -> str | None:
    """A text as a formula in which nothing is left to guess; None where it is none."""
    try:
        return _Formula(_tokens(text)).written()
    except _NoFormula:
        return None


def accounts_for(names: Iterable[str], written: str) -> bool:
    """Whether every letter of a formula is in these names, so that none of it was dropped."""
    bare = _COMMAND.sub(lambda command: f" {command[1]} " if command[0] in _GREEK else " ", written)
    letters = set(_WORD.findall(_DIFFERENTIAL.sub(r"\1", bare) if r"\int" in written else bare))
    return letters - _CONSTANTS <= {letter for name in names for letter in _WORD.findall(name)}


def _tokens(text: str) -> list[Token]:
    text = _ROMAN.sub(lambda named: named[1] if named[1] == "d" else f"\\{named[1]} ", text)
    text = _RENAMED.sub(lambda named: f"\\{named.lastgroup} ", text)
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        if dress := _DRESS.match(text, position):
            position = dress.end()
            continue
        token = _TOKEN.match(text, position)
        if token is None or token.lastgroup is None:
            raise _NoFormula(text[position])
        if token.lastgroup == "command" and token.group() not in _COMMANDS:
            raise _NoFormula(token.group())
        tokens.append((token.lastgroup, token.group()))
        position = token.end()
    return _with_differentials(tokens)


def _with_differentials(tokens: list[Token]) -> list[Token]:
    """Letters one by one; behind an integral sign a last d and its letter are its differential, one for each."""
    integrals = tokens.count(("command", r"\int"))
    result: list[Token] = []
    for kind, text in tokens:
        if kind != "letters":
            result.append((kind, text))
            continue
        if integrals and len(text) > 1 and text[-2] == "d":
            text, differential = text[:-2], [("differential", text[-2:])]
        else:
            differential = []
        if len(text) > _MOST_LETTERS or (integrals and "d" in text):
            raise _NoFormula(text)
        result += [("letter", letter) for letter in text] + differential
    if integrals != sum(kind == "differential" for kind, _ in result):
        raise _NoFormula("an integral without its differential")
    return result


class _Formula:
    """Tokens written out one after the other: arguments in braces, products with their sign."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.position, self.depth = tokens, 0, 0
        self.is_barred = False
        """Between the bars of an absolute value."""
        self.is_factor = False
        """What was written last can be multiplied by what comes next."""

    def peek(self, ahead: int = 0) -> Token:
        index = self.position + ahead
        return self.tokens[index] if 0 <= index < len(self.tokens) else _END

    def take(self) -> Token:
        token = self.peek()
        self.position += 1
        return token

    def written(self, until: Token = _END) -> str:
        """All tokens up to one that ends them."""
        parts: list[str] = []
        self.is_factor = False
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _NoFormula("too deep")
        while self.peek() != until:
            if self.is_factor and self.starts_factor():
                parts.append(r"\cdot")
            self.is_factor = True
            parts.append(self.one())
        self.take()
        self.is_factor = True
        self.depth -= 1
        return " ".join(parts)

    def starts_factor(self) -> bool:
        """Whether what comes next would be a product with what was before."""
        kind, text = self.peek()
        if kind == "command":
            return text not in _BETWEEN
        opens = text in ("(", "{") or text.startswith(r"\begin") or (text == "|" and not self.is_barred)
        return opens or kind in ("number", "letter")

    def one(self) -> str:
        """One token with the arguments that belong to it."""
        before, (kind, text), after = self.peek(-1), self.take(), self.peek()
        if kind == "number":
            # 1 000 and 2 \frac12 may be one number; x2 and (x)2 may be anything
            if after[0] == "number" or after[1] in ("_", r"\frac") or before[0] == "letter" or before[1] == ")":
                raise _NoFormula("numbers side by side")
            return text
        if kind == "differential":
            if self.starts_factor():
                raise _NoFormula("a factor behind an integral")
            return text
        if _is_letter((kind, text)):
            return self.letter(text)
        if kind == "command":
            return self.command(text)
        if kind == "sign":
            return self.sign(text, before, after)
        if kind == "end" or not any(token == "matrix" for token, _ in self.tokens):
            raise _NoFormula("a table of nothing, or an open bracket")
        self.is_factor = text.startswith(r"\end")
        return text

    def letter(self, text: str) -> str:
        if text == "d" and _is_letter(self.peek()):
            raise _NoFormula("a product, or a derivative")
        if self.peek() == ("sign", "(") and (text in _NAMES_OF_FUNCTIONS or text.isupper()):
            raise _NoFormula("a function, or a product")
        if self.peek() != ("sign", "_"):
            return text
        self.take()
        return f"{text}_{self.argument()}"

    def sign(self, text: str, before: Token, after: Token) -> str:
        if text in ("(", "{") and (text, before) != ("{", _END):  # braces around it all may be a set
            return f"{text} {self.written(('sign', _CLOSES[text]))} {_CLOSES[text]}"
        if text == "^":
            return "^" + self.argument()
        if text == "/":
            return "/ " + self.divisor()
        if text in "[](){}_," or (text in "!*|" and after == ("sign", text)):
            raise _NoFormula(text)
        if text == "|":
            if self.tokens.count(("sign", "|")) != 2:
                raise _NoFormula("bars that open or close")
            self.is_barred = not self.is_barred
        self.is_factor = text == "!" or (text == "|" and not self.is_barred)
        return text

    def divisor(self) -> str:
        """What is divided by: one factor, which no other follows by mere blank: 1/2x may be x/2, or 1/(2x)."""
        factor = self.one()
        while self.peek()[1] in ("^", "!"):
            factor += " " + self.one()
        if not self.is_factor or self.starts_factor():
            raise _NoFormula("where the divisor begins or ends")
        return factor

    def command(self, name: str) -> str:
        if name in _BOUNDED:
            bounds = self.bounds("_" if name == r"\lim" else "_^")
            self.is_factor = False
            return name + bounds
        if name in (r"\frac", r"\binom"):
            return name + self.two_arguments()
        if name == r"\sqrt":
            return name + (self.degree() if self.peek() == ("sign", "[") else "") + self.argument()
        if name in _FUNCTIONS:
            return name + self.function(name)
        if name in _OF_LISTS:
            return f"{name} ( {self.listed()} )"
        self.is_factor = name in _ENDS
        return name

    def bounds(self, signs: str) -> str:
        bounds = ""
        for sign in signs:
            if self.take() != ("sign", sign):
                raise _NoFormula("bounds")
            bounds += sign + self.argument()
        return bounds

    def function(self, name: str) -> str:
        """Powers, base and argument of a function: brackets, or a single term that nothing follows by mere blank."""
        marks = ""
        while self.peek()[1] in ("^", "_"):
            mark = self.take()[1]
            if mark == "_" and name != r"\log":
                raise _NoFormula(name)
            marks += mark + self.argument()
        if self.peek()[1] in ("(", "{"):
            argument = self.written(("sign", _CLOSES[self.take()[1]]))
            goes_on = self.peek()[1] in ("^", "!")
        else:
            argument = self.take()[1] if self.peek()[0] == "number" else ""
            if _is_letter(self.peek()) or self.peek()[1] == r"\pi":
                argument += (r" \cdot " if argument else "") + self.take()[1]
            goes_on = self.peek()[1] in ("^", "_", "/", "!")
            goes_on |= self.starts_factor() and self.peek()[1] not in _FUNCTIONS
        if goes_on or not argument:
            raise _NoFormula("where the argument ends")
        return f"{marks} ( {argument} )"

    def listed(self) -> str:
        """Whole numbers in brackets, those of a greatest or smallest."""
        listed = "" if self.take() == ("sign", "(") else "none"
        while (token := self.take()) != ("sign", ")"):
            if token[0] != "number" and token not in (("sign", ","), ("sign", "-")):
                raise _NoFormula("a list of numbers")
            listed += token[1]
        if not _LIST.fullmatch(listed):
            raise _NoFormula("a list of numbers")
        return listed.replace(",", " , ")

    def degree(self) -> str:
        self.take()
        kind, text = self.take()
        if kind != "number" or self.take() != ("sign", "]"):
            raise _NoFormula("the degree of a root")
        return f"[{text}]"

    def argument(self) -> str:
        """What stands in braces, or the whole number or the letter that follows: nobody writes 2^10 for 2^1 times 0."""
        kind, text = self.take()
        if (kind, text) == ("sign", "{"):
            return "{" + self.written(("sign", "}")) + "}"
        if kind == "number" or _is_letter((kind, text)) or text in (r"\pi", r"\infty"):
            return "{" + text + "}"
        raise _NoFormula("an argument")

    def two_arguments(self) -> str:
        """Those of a fraction; digits without braces are one digit each."""
        kind, text = self.peek()
        if kind != "number":
            return self.argument() + self.argument()
        self.take()
        if len(text) == 2 and text.isdigit():
            return f"{{{text[0]}}}{{{text[1]}}}"
        if len(text) > 1 or len(self.peek()[1]) > 1:
            raise _NoFormula("where the numerator ends")
        return f"{{{text}}}" + self.argument()


def _is_letter(token: Token) -> bool:
    return token[0] == "letter" or token[1] in _GREEK
