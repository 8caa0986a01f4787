"""The child process of the slow path: reads requests, one JSON list a line, and writes a JSON value for each.

    ["same", a, b]     whether math-verify holds two answers equal, either way round
    ["value", formula] what its parser reads a whole formula as: the letters in it, and spellings of its value

It may be killed at any time; it holds nothing that matters. Its memory is limited by the system.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
from functools import lru_cache
from typing import Any

_LONGEST_SPELLING = 2000
_DIGITS = 40
_WRITTEN_ONE_WAY = (
    "Symbol Number NumberSymbol Add Mul Pow sin cos tan cot sec csc asin acos atan sinh cosh tanh exp log Abs"
)
_ERRORS = (MemoryError, RecursionError, ValueError, TypeError, ArithmeticError, AttributeError)


def main() -> None:
    """Serve until standard input ends."""
    limit = int(sys.argv[1]) * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        import math_verify  # noqa: F401
    except ImportError:
        print("missing", flush=True)
        return
    logging.disable(logging.CRITICAL)
    print("ready", flush=True)
    for line in sys.stdin:
        what, *of = json.loads(line)
        print(json.dumps(_same(*of) if what == "same" else _value(*of)), flush=True)


@lru_cache(maxsize=4096)
def _read(answer: str) -> Any:
    from math_verify import parse

    return parse(f"${answer}$", parsing_timeout=None)


def _same(a: str, b: str) -> bool:
    from math_verify import verify

    # Its own timeouts use signals and may be off: the parent's clock is what counts.
    try:
        first, second = _read(a), _read(b)
        return bool(verify(first, second, timeout_seconds=None) or verify(second, first, timeout_seconds=None))
    except _ERRORS:
        return False


def _value(formula: str) -> tuple[list[str], list[str]] | None:
    """The names in a formula and spellings of its value, the exact one first; None where it has none."""
    from latex2sympy2_extended.latex2sympy2 import ConversionConfig, latex2sympy
    from sympy import Float, Rational, Symbol

    case_counts = ConversionConfig(interpret_as_mixed_fractions=False, lowercase_symbols=False)
    try:
        parsed = latex2sympy(formula, normalization_config=None, conversion_config=case_counts)
        exactly = parsed.xreplace({decimal: Rational(str(decimal)) for decimal in parsed.atoms(Float)})
        spellings = _spellings(_worked_out(exactly)) if _is_usual(exactly) else []
    except Exception:  # its parser raises nothing more special
        return None
    return (sorted(symbol.name for symbol in parsed.atoms(Symbol)), spellings) if spellings else None


def _is_usual(parsed: Any) -> bool:
    """No sum or product runs downwards or by halves: sympy and schools read those differently."""
    from sympy import Product, Sum

    limits = [limit for operation in parsed.atoms(Sum, Product) for limit in operation.limits]
    steps = [high - low for _, low, high in limits if not (high - low).free_symbols]
    return all(step.is_infinite or (step.is_integer and step >= -1) for step in steps)


def _worked_out(parsed: Any) -> Any:
    """The value; a limit is the same from both sides, or raises."""
    from sympy import Limit, MatrixExpr, expand_func

    def from_both_sides(of: Any, name: Any, at: Any, side: Any) -> Any:
        return Limit(of, name, at, side if at.is_infinite else "+-")

    value = parsed.replace(Limit, from_both_sides).doit()
    if isinstance(value, MatrixExpr):
        return value.as_explicit()
    return expand_func(value)


def _spellings(value: Any) -> list[str]:
    """The value in LaTeX and, where it is a real number, as a long decimal; nothing where it is not all worked out."""
    import sympy

    parts = list(value.flat()) if isinstance(value, sympy.MatrixBase) else [value]
    if not all(isinstance(part, sympy.Expr) and _is_known(part) for part in parts):
        return []
    spellings = []
    # Only what is written one way: ζ(3) would be read as a product.
    written = tuple(getattr(sympy, name) for name in _WRITTEN_ONE_WAY.split())
    if all(isinstance(node, written) or node is sympy.I for part in parts for node in sympy.preorder_traversal(part)):
        options = {"mul_symbol": "dot", "ln_notation": True, "inv_trig_style": "full", "mat_str": "pmatrix"}
        spellings.append(sympy.latex(value, mat_delim="", **options))
    if parts == [value] and value.is_number and value.is_real and not value.is_rational:
        spellings.append(str(value.evalf(_DIGITS)))
    return [spelling for spelling in spellings if len(spelling) <= _LONGEST_SPELLING]


def _is_known(part: Any) -> bool:
    """A definite value, infinite at most as a whole."""
    from sympy import nan, oo, zoo

    return not part.has(nan, zoo) and (part in (oo, -oo) or not part.has(oo))


if __name__ == "__main__":
    main()
