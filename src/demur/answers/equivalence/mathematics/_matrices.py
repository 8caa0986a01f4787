"""Matrices: tables of expressions, and what sums, multiples, products, powers and transposes of them come to.

The entries stay expressions; those without letters are worked out at once, so that entries stay small.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import chain

from demur.answers.equivalence.mathematics import _values as values
from demur.answers.equivalence.mathematics._syntax import MATRICES, Node, Unreadable, parse

Table = list[list[Node]]

_LARGEST = 64
"""Entries of a table."""
_MOST_NODES = 600
"""Nodes of a table's entries together."""
_MOST_POWER = 12
_ENVIRONMENT = re.compile(
    r"\\begin\s*\{((?:small|[pbvVB])?matrix|array)\}(?:\s*\{[lcr| ]*\})?((?:(?!\\begin|\\end).)*)\\end\s*\{\1\}", re.S
)
_NUMBERS = ("vmatrix", "Vmatrix")
"""Environments that stand for a number: a determinant, a norm."""
_TRANSPOSED: Node = ("var", "T")


def lone_matrix(text: str) -> list[list[str]] | None:
    """The cells, as written, of a text that is one matrix; None where it is not."""
    bare = text.strip()
    if bare[0] in "([" and bare[-1] in ")]":
        bare = bare[1:-1].strip()
    environment = _ENVIRONMENT.fullmatch(bare)
    return None if environment is None or environment.group(1) in _NUMBERS else _rows(environment.group(2))


def _rows(inside: str) -> list[list[str]]:
    return [row.split("&") for row in inside.split(r"\\") if row.strip()]


def matrix_expression(text: str) -> Table | Node:
    """What an expression with matrices in it comes to: a table, or a node without one."""
    read: list[Table | Node] = []

    def keep(environment: re.Match[str]) -> str:
        if len(read) == len(MATRICES):
            raise Unreadable("too many matrices")
        name, inside = environment.groups()
        table = [[parse(cell) for cell in row] for row in _rows(inside)]
        if name == "Vmatrix":
            raise Unreadable("a norm")
        read.append(_determinant(_checked(table)) if name == "vmatrix" else _checked(table))
        return f" {chr(MATRICES.start + len(read) - 1)} "

    if any(ord(character) in MATRICES for character in text):
        raise Unreadable("characters for private use")
    node = parse(_ENVIRONMENT.sub(keep, text))
    return _worked_out(node, read)


def _checked(table: Table) -> Table:
    """A table all of whose rows have one length."""
    lengths = {len(row) for row in table}
    if len(lengths) != 1 or len(table) * len(table[0]) > _LARGEST:
        raise Unreadable("rows of different lengths, or too many")
    smaller = [[_short(cell) for cell in row] for row in table]
    if sum(map(_size, chain(*smaller))) > _MOST_NODES:
        raise Unreadable("a matrix too large")
    return smaller


def _short(node: Node) -> Node:
    value = values.exact(node)
    return node if value is None else ("num", value)


def _size(node: Node) -> int:
    return 1 + sum(_size(child) for child in node[1:] if isinstance(child, tuple))


def _worked_out(node: Node, read: list[Table | Node]) -> Table | Node:
    kind = node[0]
    if kind == "matrix":
        if node[1] >= len(read):
            raise Unreadable("no such matrix")
        return read[node[1]]
    if not values.count(node, "matrix"):
        return node
    if kind == "pow" and node[2] == _TRANSPOSED:
        return _checked([list(column) for column in zip(*_table(_worked_out(node[1], read)), strict=True)])
    parts = [_worked_out(child, read) for child in node[1:]]
    if not any(isinstance(part, list) for part in parts):
        return (kind, *parts)
    if kind == "neg":
        return _each(parts[0], lambda cell: ("neg", cell))
    if kind not in ("add", "mul", "div", "pow"):
        raise Unreadable("a matrix there")
    left, right = parts
    if kind == "add":
        return _sum(_table(left), _table(right))
    if kind == "mul" and isinstance(left, list) and isinstance(right, list):
        return _product(left, right)
    if kind == "mul":
        factor, table = (right, left) if isinstance(left, list) else (left, right)
        return _each(table, lambda cell: ("mul", factor, cell))
    if isinstance(right, list):
        raise Unreadable("divided by a matrix, or raised to one")
    if kind == "div":
        return _each(left, lambda cell: ("div", cell, right))
    return _power(_table(left), right)


def _table(value: Table | Node) -> Table:
    if not isinstance(value, list):
        raise Unreadable("a number where a matrix belongs")
    return value


def _each(table: Table | Node, change: Callable[[Node], Node]) -> Table:
    return _checked([[change(cell) for cell in row] for row in _table(table)])


def _sum(left: Table, right: Table) -> Table:
    if [len(row) for row in left] != [len(row) for row in right]:
        raise Unreadable("matrices of different shapes")
    pairs = zip(left, right, strict=True)
    return _checked([[("add", a, b) for a, b in zip(*rows, strict=True)] for rows in pairs])


def _product(left: Table, right: Table) -> Table:
    if len(left[0]) != len(right):
        raise Unreadable("matrices that do not multiply")
    columns = list(zip(*right, strict=True))
    return _checked([[_dot(row, column) for column in columns] for row in left])


def _dot(row: Sequence[Node], column: Sequence[Node]) -> Node:
    total: Node = ("num", Fraction(0))
    for a, b in zip(row, column, strict=True):
        total = _short(("add", total, _short(("mul", a, b))))
    return total


def _power(table: Table, exponent: Node) -> Table:
    times = values.exact(exponent)
    if times is None or times.denominator != 1 or not 1 <= times <= _MOST_POWER:
        raise Unreadable("a strange power of a matrix")
    product = table
    for _ in range(int(times) - 1):
        product = _product(product, table)
    return product


def _determinant(table: Table) -> Node:
    """Expanded by the first row; at most four rows."""
    if len(table) != len(table[0]) or len(table) > 4:
        raise Unreadable("no determinant")
    if len(table) == 1:
        return table[0][0]
    total: Node = ("num", Fraction(0))
    for place, cell in enumerate(table[0]):
        minor = _determinant([row[:place] + row[place + 1 :] for row in table[1:]])
        term: Node = _short(("mul", cell, minor))
        total = _short(("add", total, term if place % 2 == 0 else ("neg", term)))
        if _size(total) > _MOST_NODES:
            raise Unreadable("a determinant too large")
    return total
