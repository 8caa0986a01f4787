"""Extraction of your own: a regular expression, or a Python function `package.module:function` that takes the text."""

from __future__ import annotations

from collections.abc import Callable

from demur.answers.extraction import NOTHING, TRUNCATED, Extraction, settle
from demur.answers.extraction.expressions import Expression
from demur.answers.extraction.part import TAIL
from demur.errors import InvalidValue
from demur.foreign_code import function_named, names_function

Extractor = Callable[..., Extraction]


def parse_extractor(spec: str) -> Extractor:
    """`package.module:function`, or else a regular expression: its last match, or that match's first group."""
    extract = _function(spec) if names_function(spec) else _expression(spec)
    return lambda text, *, truncated=False: TRUNCATED if truncated else extract(text)


def _expression(pattern: str) -> Extractor:
    expression = Expression(pattern)

    def extract(text: str) -> Extraction:
        answer = expression.last_in(text[-TAIL:])
        return NOTHING if answer is None else settle(answer, "expression")

    return extract


def _function(spec: str) -> Extractor:
    function = function_named(spec, "the extractor")

    def extract(text: str) -> Extraction:
        try:
            answer = function(text)
        except Exception as error:  # whatever it is, it is this path's alone: it has no answer, and that is counted
            return Extraction(None, f"failed ({type(error).__name__})"[:40])
        if not (answer is None or isinstance(answer, str)):
            raise InvalidValue(f"the extractor {spec} must return a string or None, got {answer!r:.60}")
        return NOTHING if answer is None else settle(answer, spec)

    return extract
