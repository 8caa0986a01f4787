"""Extraction of your own: a regular expression, or a Python function `package.module:function` that takes the text."""

from __future__ import annotations

import re
from collections.abc import Callable

from demur.answers.extraction import NOTHING, TAIL, TRUNCATED, Extraction, settle
from demur.errors import InvalidValue
from demur.functions import function_named, names_function

Extractor = Callable[..., Extraction]


def parse_extractor(spec: str) -> Extractor:
    """`package.module:function`, or else a regular expression: its last match, or that match's first group."""
    return _function(spec) if names_function(spec) else _expression(spec)


def _expression(pattern: str) -> Extractor:
    try:
        compiled = re.compile(pattern, re.S)
    except re.error as error:
        raise InvalidValue(
            f"--extract {pattern!r} is neither package.module:function nor a regular expression: {error}"
        ) from None

    def extract(text: str, *, truncated: bool = False) -> Extraction:
        if truncated:
            return TRUNCATED
        matches = list(compiled.finditer(text[-TAIL:]))
        if not matches:
            return NOTHING
        return settle(matches[-1].group(1 if compiled.groups else 0) or "", "expression")

    return extract


def _function(spec: str) -> Extractor:
    function = function_named(spec, "--extract")

    def extract(text: str, *, truncated: bool = False) -> Extraction:
        if truncated:
            return TRUNCATED
        found = function(text)
        if not (found is None or isinstance(found, str)):
            raise InvalidValue(f"--extract {spec} must return a string or None, got {found!r:.60}")
        return NOTHING if found is None else settle(found, spec)

    return extract
