"""Extraction of your own: a regular expression, or a Python function `package.module:function` that takes the text."""

from __future__ import annotations

import re
from collections.abc import Callable

from demur.answers.extraction import NOTHING, TRUNCATED, Extraction, settle
from demur.answers.extraction.part import TAIL
from demur.errors import InvalidValue
from demur.foreign_code import function_named, names_function

Extractor = Callable[..., Extraction]


def parse_extractor(spec: str) -> Extractor:
    """`package.module:function`, or else a regular expression: its last match, or that match's first group."""
    extract = _function(spec) if names_function(spec) else _expression(spec)
    return lambda text, *, truncated=False: TRUNCATED if truncated else extract(text)


def _expression(pattern: str) -> Extractor:
    try:
        compiled = re.compile(pattern, re.S)
    except re.error as error:
        raise InvalidValue(
            f"the extractor {pattern!r} is neither package.module:function nor a regular expression: {error}"
        ) from None

    def extract(text: str) -> Extraction:
        matches = list(compiled.finditer(text[-TAIL:]))
        group = 1 if compiled.groups else 0
        return settle(matches[-1].group(group) or "", "expression") if matches else NOTHING

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
