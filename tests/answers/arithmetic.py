"""A second opinion on formulas: what an answer is worth in floating point, by way of Python's own grammar.

It shares nothing with the relation that it checks. It reads little, and says so: where it cannot read, it has no value.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import string
import zlib

_FRACTION = re.compile(r"\\[dtc]?frac\s*(?:\{([^{}]*)\}|(\d))\s*(?:\{([^{}]*)\}|(\d))")
_ROOT = re.compile(r"(?:\\?sqrt|√)\s*(?:\{([^{}]*)\}|\(([^()]*)\)|(\d+))")
_READABLE = re.compile(r"(?:[\d.+\-*/() ]|[a-zA-Z](?![a-zA-Z]{3}))*")
_SYMBOLS = {
    "\\left": "", "\\right": "", "\\cdot": "*", "\\times": "*", "·": "*", "×": "*", "÷": "/", "−": "-", "\\pi": "(P)",
    "π": "(P)", "$": "", "%": "", "\\!": "", "\\,": "", "\\": "", "{": "(", "}": ")", "[": "(", "]": ")", "^": "**",
}  # fmt: skip
_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_LETTERS = {letter: 0.7 + 0.37 * place for place, letter in enumerate(string.ascii_letters) if letter != "P"}


def worth(answer: str) -> complex | None:
    """The value of an expression, letters given values of their own; None where this cannot read it."""
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", answer.strip().strip('"').rstrip(".")).replace("\x0crac", "\\frac")
    text = re.sub(r"(?<![\\a-zA-Z])(?:[a-z]+_\w+|(?!sqrt)[a-z]{4,})", lambda m: _stand_in(m[0]), text)
    text = re.sub(r"(?<![\d.])(\d{1,2})!", lambda m: str(math.factorial(int(m[1]))), text)
    text = re.sub(r"\|([^|]*)\|", r"((\1)**2)**0.5", text)
    text = re.sub(r"(?<![a-zA-Z\\])([a-zA-Z])_\{?(\d+)\}?|(?<![a-zA-Z\\])([a-zA-Z])(\d+)", _indexed, text)
    for _ in range(6):
        text = _FRACTION.sub(lambda m: f"(({m[1] or m[2]})/({m[3] or m[4]}))", text)
        text = _ROOT.sub(lambda m: f"(({m[1] or m[2] or m[3]})**0.5)", text)
    for symbol, plain in _SYMBOLS.items():
        text = text.replace(symbol, plain)
    if len(text) > 300 or "//" in text or "***" in text or not _READABLE.fullmatch(text):
        return None
    text = re.sub(r"(?<=\*\*\d) +(?=\d)|(?<=\*\*\d\d) +(?=\d)", "*", text)  # powers side by side are factors
    text = re.sub(r"(?<![\d.*]) *(?<!\d)(\d+) +(\d+)/(\d+)", r"(\1+\2/\3)", text)  # a mixed number
    text = re.sub(r"(?<=[\da-zA-Z).]) *(?=[a-zA-Z(])|(?<=[a-zA-Z)]) *(?=[\da-zA-Z.])", "*", text)
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, TypeError, RecursionError):
        return None


def _indexed(name: re.Match[str]) -> str:
    return _stand_in((name[1] or name[3]) + "_" + (name[2] or name[4]))


def _stand_in(name: str) -> str:
    """A number of its own for a name of several letters."""
    return f"({zlib.crc32(name.encode()) % 9973 / 997})"


def same_worth(a: str, b: str) -> bool:
    """Whether two expressions can both be read here and have one value, but for rounding."""
    first, second = worth(a), worth(b)
    return (
        first is not None and second is not None and abs(first - second) <= 1e-11 * max(abs(first), abs(second), 1e-300)
    )


def _value(node: ast.AST) -> complex:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    if isinstance(node, ast.Name):
        return math.pi if node.id == "P" else 1j if node.id == "i" else math.e if node.id == "e" else _LETTERS[node.id]
    if isinstance(node, ast.UnaryOp):
        return -_value(node.operand) if isinstance(node.op, ast.USub) else _value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.left), _value(node.right))  # type: ignore[no-any-return]
    raise ValueError("not arithmetic")
