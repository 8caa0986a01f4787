"""A small parser for the mathematics of answers: numbers, letters, fractions, roots, powers, functions.

It yields nested tuples and never evaluates. Bounded by length, tokens and depth; what it cannot read raises Unreadable.

    expression  = term (("+" | "-" | "\\pm") term)*
    term        = factor (("*" | "/" | juxtaposition) factor)*
    factor      = ("-" | "+") factor | power
    power       = atom ("!" | "'")* ("^" factor)?
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from demur.answers.equivalence.mathematics._decimals import decimal_value

Node = tuple[Any, ...]

MAX_TOKENS = 300
MAX_DEPTH = 40

_GREEK_NAMES = """
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau upsilon
    phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell hbar
"""
GREEK = frozenset(_GREEK_NAMES.split())
_FUNCTION_NAMES = "sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan asin acos atan ln log exp lg"
FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
_PLAIN_NAMES = "|".join(sorted([*FUNCTIONS, "sqrt", "pi", "infty", "inf", "infinity", "cdot"], key=len, reverse=True))
_PLAIN = re.compile(rf"(?<![\\a-zA-Z])({_PLAIN_NAMES})(?![a-zA-Z])")
_PROSE = "mod for the was has had are can you she her his not but who how of is to by if so we he"
"""Short words that nobody means as a product of letters."""
_INDEXED = re.compile(r"(?<![a-zA-Z\\_{^])([a-df-zA-Z])(\d+)(?![\d.])", re.ASCII)
_TOKEN = re.compile(
    r"\s*(?:(\d+(?:\.\d*)?|\.\d+)|\\([a-zA-Z]+)|((?:(?<!_)(?<!_\{)[a-zA-Z]{4,}|[a-zA-Z]{2,}_(?=\w\w)|[a-z]{3,}_)\w*"
    rf"|(?<![a-zA-Z\\])(?:{_PROSE.replace(' ', '|')})(?![a-zA-Z]))|(\\[{{}}|])|(\S))"
)
_KINDS = ("number", "command", "name", "symbol", "symbol")
"""Of the groups of a token, one by one."""
UNKNOWN_FUNCTIONS = frozenset("fghFGHPQWuvw")
_TRIGONOMETRIC = frozenset(["sin", "cos", "tan", "cot", "sec", "csc"])
_DEGREE: Node = ("div", ("const", "pi"), ("num", Fraction(180)))
SERIES = ("sum", "prod")
MATRICES = range(0xE000, 0xE020)
"""Characters for private use: each stands for a matrix that was read before."""


class Unreadable(Exception):
    """Not in the grammar, or beyond its bounds."""


def tokenize(text: str) -> list[tuple[str, str]]:
    """(kind, text) pairs; kinds are number, command, symbol, and name: a word that stands for one quantity."""
    text = _INDEXED.sub(r"\1_{\2}", text)  # r1 is r_1
    text = _PLAIN.sub(lambda m: "\\infty " if m.group(1) in ("inf", "infinity") else f"\\{m.group(1)} ", text)
    parts = [pair for match in _TOKEN.finditer(text) for pair in zip(_KINDS, match.groups(), strict=True)]
    tokens = [(kind, part) for kind, part in parts if part]
    if len(tokens) > MAX_TOKENS:
        raise Unreadable("too many tokens")
    return tokens


def parse(text: str) -> Node:
    reader = _Reader(tokenize(text))
    node = reader.expression()
    if reader.position != len(reader.tokens):
        raise Unreadable(f"stray {reader.peek()}")
    return node


class _Reader:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens
        self.position = 0
        self.depth = 0
        self.angles = 0
        """How many trigonometric functions stand around the place where the reader is."""

    def peek(self, ahead: int = 0) -> tuple[str, str]:
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else ("end", "")

    def take(self) -> tuple[str, str]:
        token = self.peek()
        self.position += 1
        return token

    def accept(self, *texts: str) -> str | None:
        kind, text = self.peek()
        if kind in ("symbol", "command") and text in texts:
            self.position += 1
            return text
        return None

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise Unreadable(f"expected {text}, got {self.peek()[1]!r}")

    def until(self, closing: str) -> Node:
        """The expression up to a bracket that closes it."""
        node = self.expression()
        self.expect(closing)
        return node

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("too deep")
        node: Node = ("pm", ("num", Fraction(0)), self.term()) if self.accept("pm") else self.term()
        while sign := self.accept("+", "-", "pm"):
            right = self.term()
            node = ("pm", node, right) if sign == "pm" else ("add", node, right if sign == "+" else ("neg", right))
        self.depth -= 1
        return node

    def term(self) -> Node:
        node = self.factor()
        while True:
            if self.accept("*", "cdot"):
                node = ("mul", node, self.factor())
            elif self.accept("/"):
                node = ("div", node, self.factor())
            elif self.starts_atom() and self.peek(-1)[0] != "name":  # words multiply only where it is written
                node = ("mul", node, self.power())
            else:
                return node

    def factor(self) -> Node:
        sign = self.accept("-", "+")
        if sign:
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise Unreadable("too deep")
            inner = self.factor()
            self.depth -= 1
            return ("neg", inner) if sign == "-" else inner
        return self.power()

    def power(self) -> Node:
        node = self.atom()
        while sign := self.accept("!", "°"):
            if sign == "!":
                node = ("fact", node)
            elif self.angles:  # elsewhere it is a unit, and says nothing
                node = ("mul", node, _DEGREE)
        if self.accept("^"):
            node = ("pow", node, self.until("}") if self.accept("{") else self.factor())
        return node

    def starts_atom(self) -> bool:
        kind, text = self.peek()
        if kind == "number":
            # "2 3" and "1 to 2" are no products, but "3^5 5^4" and "\\pi 2" are
            if self.position > 1 and self.peek(-2) == ("symbol", "^"):
                return True
            before, last = self.peek(-1)
            return before == "command" or (before == "symbol" and not last.isalpha())
        if kind == "command":
            return text in GREEK or text in FUNCTIONS or text in ("frac", "sqrt", "pi", "infty", "binom", *SERIES)
        return kind == "symbol" and (text.isalpha() or text in ("(", "{", "[") or ord(text[0]) in MATRICES)

    def continues_argument(self) -> bool:
        """`\\sin 2x` takes the whole product, up to the next sign or function."""
        kind, text = self.peek()
        if kind == "symbol":
            return text.isalpha()
        return kind == "number" or (kind == "command" and (text in GREEK or text in ("pi", "frac")))

    def group(self) -> Node:
        """`{…}` or, as LaTeX has it, the next single token."""
        if self.accept("{"):
            return self.until("}")
        kind, text = self.peek()
        if kind == "number" and len(text) > 1 and text.isdigit():
            # \frac12: one digit each
            self.tokens[self.position] = ("number", text[1:])
            return ("num", Fraction(text[0]))
        return self.atom()

    def radicand(self) -> Node:
        """`{…}`, or the whole number that follows: nobody writes √10 for √1 times 0."""
        return self.atom() if self.peek()[0] == "number" else self.group()

    def atom(self) -> Node:
        kind, text = self.take()
        if kind == "number":
            return ("num", decimal_value(text))
        if kind == "command":
            return self.command(text)
        if kind == "name":
            return ("var", text)
        if kind == "symbol":
            if text.isalpha() and text.isascii():
                return self.letter(text)
            closing = {"(": ")", "{": "}", "[": "]"}.get(text)
            if closing:
                return self.until(closing)
            if text == "|":
                return ("fn", "abs", self.until("|"))
            if ord(text[0]) in MATRICES:
                return ("matrix", ord(text[0]) - MATRICES.start)
        raise Unreadable(f"unexpected {text!r}")

    def letter(self, name: str) -> Node:
        name += self.subscript()
        while self.accept("'"):
            name += "'"
        if name[0] in UNKNOWN_FUNCTIONS and self.peek() == ("symbol", "("):
            self.take()
            arguments = [self.expression()]
            while self.accept(","):
                arguments.append(self.expression())
            self.expect(")")
            return ("call", name, *arguments)
        return ("const" if name in ("e", "i") else "var", name)

    def subscript(self) -> str:
        if not self.accept("_"):
            return ""
        if not self.accept("{"):
            kind, text = self.take()
            if kind == "end":
                raise Unreadable("empty subscript")
            return "_" + text
        inside = ""
        while not self.accept("}"):
            kind, text = self.take()
            if kind == "end" or text in ("{", "^"):
                raise Unreadable("strange subscript")
            inside += text
        return "_" + inside

    def command(self, name: str) -> Node:
        if name == "frac":
            return ("div", self.group(), self.group())
        if name == "binom":
            return ("fn", "binom", self.group(), self.group())
        if name == "sqrt":
            degree = self.until("]") if self.accept("[") else ("num", Fraction(2))
            return ("root", self.radicand(), degree)
        if name == "pi":
            return ("const", "pi")
        if name == "infty":
            return ("inf",)
        if name in SERIES:
            return self.series(name)
        if name in GREEK:
            return ("var", "\\" + name + self.subscript())
        if name in FUNCTIONS:
            return self.function(name)
        raise Unreadable(f"command {name}")

    def series(self, name: str) -> Node:
        """`\\sum_{k=0}^{n} …`: nobody adds it up here; what it says is an unknown function of its parts."""
        self.expect("_")
        self.expect("{")
        index = self.atom()
        self.expect("=")
        first = self.until("}")
        self.expect("^")
        return ("call", name, index, first, self.group(), self.term())

    def function(self, name: str) -> Node:
        marked: dict[str, Node] = {}
        while mark := self.accept("^", "_"):
            if mark in marked:
                raise Unreadable("two marks of a kind")
            marked[mark] = self.group() if self.peek()[1] != "-" else self.factor()
        base, exponent = marked.get("_"), marked.get("^")
        self.angles += name in _TRIGONOMETRIC
        argument = self.argument()
        self.angles -= name in _TRIGONOMETRIC
        if exponent == ("neg", ("num", Fraction(1))):
            return ("fn", "arc" + name, argument)
        node: Node = ("fn", name, argument) if base is None else ("div", ("fn", "ln", argument), ("fn", "ln", base))
        return node if exponent is None else ("pow", node, exponent)

    def argument(self) -> Node:
        """What a function is taken of: a bracket, or the product that follows."""
        kind, text = self.peek()
        if kind == "symbol" and text in ("(", "{", "["):
            node = self.atom()
            while self.accept("°"):
                node = ("mul", node, _DEGREE) if self.angles else node
            return node
        node = self.power()
        while self.continues_argument():
            node = ("mul", node, self.power())
        return node
