"""Fields that other programs keep of a question, as fields of a problem."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from demur.files.strict_json import is_deep

_OURS = frozenset({"id", "question", "gold", "cluster", "group", "paths", "messages", "choices", "task", "input"})
_ANSWERS = re.compile(r"(?i)(.+[_ ])?answers?|(final_?|correct_?|right_?|expected_?)?(answers?|results?|output)|labels")
_FINAL = re.compile(r"####\s*+((?:(?!####).)++)\s*+\Z")


def data_set_fields(told: Any) -> dict[str, Any]:
    """What a data set says of a question. Names that mean something here are put apart, and an answer is named as
    gold, so that no scorer is shown it."""
    named = told.items() if isinstance(told, Mapping) else ()
    return kept({_told_apart(str(name)): value for name, value in named})


def _told_apart(name: str) -> str:
    if holds_answers(name):
        return f"gold_{name}"
    return f"metadata_{name}" if name in _OURS else name


def holds_answers(name: str) -> bool:
    """Whether a field of a data set is named as one that holds right answers: `answer`, `best_answer`, `labels`."""
    return _ANSWERS.fullmatch(name) is not None


def kept(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """Fields as they are, but for those that are nested so deeply that no later step could write them."""
    shallow = ((name, value) for name, value in fields.items() if not isinstance(value, (dict, list)))
    nested = ((name, value) for name, value in fields.items() if isinstance(value, (dict, list)) and not is_deep(value))
    return {str(name): value for part in (shallow, nested) for name, value in part}


def accepted(target: Any) -> tuple[Any, ...]:
    """The right answers that a target names: several where it is a list, written as Python writes one too; of a
    solution that ends in #### 18, what stands behind the mark."""
    if isinstance(target, str):
        target = _list_of(target) or target
    several = target if isinstance(target, list) else [target]
    golds = [_final(one) if isinstance(one, str) else one for one in several]
    return tuple(gold for gold in golds if isinstance(gold, (str, int, float)) and str(gold).strip())


def _final(solution: str) -> str:
    final = _FINAL.search(solution)
    return solution if final is None else final.group(1).rstrip().replace(",", "")


def _list_of(text: str) -> list[str] | None:
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    named = isinstance(value, list) and value and all(isinstance(entry, str) for entry in value)
    return value if named else None
