"""Relations: when two written answers are the same, each under a versioned name.

A relation maps an answer to a key, and equal keys are equal answers. The key is a function of the answer alone, so
every relation is an equivalence relation by construction (reflexive, symmetric, transitive), and neither the order of
paths, nor other questions, nor gold can change a class.

Relations of structured answers take rules of the user: `json_relation`, `tool_calls_relation`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.characters import cleaned
from demur.answers.equivalence import auto as auto_keys
from demur.answers.equivalence import choice as choice_keys
from demur.answers.equivalence import plain as plain_keys
from demur.answers.equivalence import text as text_keys
from demur.answers.equivalence.mathematics import keys as mathematics_keys
from demur.answers.equivalence.structured import settings as structured_settings
from demur.answers.equivalence.structured.keys import JsonValues, Structure, ToolCalls
from demur.answers.equivalence.structured.rules import KeyOf
from demur.answers.extraction import TRUNCATED, Extraction, whole_text
from demur.answers.extraction import auto as auto_extraction
from demur.answers.extraction import choice as choice_extraction
from demur.answers.extraction import mathematics as mathematics_extraction
from demur.answers.extraction import structured as structured_extraction
from demur.answers.extraction import text as text_extraction
from demur.answers.languages import with_points
from demur.errors import InvalidValue
from demur.files import strict_json
from demur.files.strict_json import as_json


@dataclass(frozen=True)
class Relation:
    """How answers of one kind of task are read and compared."""

    name: str
    version: int
    _key: Callable[[str, Asked], str | None] = field(repr=False)
    _extract: Callable[[str, Asked], Extraction] = field(repr=False)
    structure: Structure | None = field(default=None, repr=False)
    """How answers are read that are objects and lists; None: they are texts and numbers."""

    @property
    def spec(self) -> str:
        """Name, version and, where there are any, the rules of the user, as a policy's fingerprint has it."""
        rules = "" if self.structure is None else self.structure.settings.written
        return f"{self.name}@{self.version}" + (f":{rules}" if rules else "")

    def key(self, answer: Any, asked: Asked = NOTHING_SAID) -> str | None:
        """What equal answers to one question share; None for no answer (None, NaN, blank)."""
        written = as_written(answer)
        if written is None:
            return None
        if self.structure is None:  # in JSON, texts count as they stand, and a comma is no part of a number
            written = with_points(cleaned(written), asked.language)
        return self._key(written, asked)

    def accepted(self, gold: Sequence[Any]) -> Sequence[Any]:
        """The answers that gold, a list of them, says are right."""
        return gold if self.structure is None else self.structure.accepted(gold)

    def extract(self, text: str, asked: Asked = NOTHING_SAID, *, truncated: bool = False) -> Extraction:
        """The answer that a path's text ends in, the rule that found it, and where."""
        return TRUNCATED if truncated else self._extract(text, asked)


def _unasked(key: Callable[[str], str | None]) -> Callable[[str, Asked], str | None]:
    """A key that depends on the answer alone, whatever the question says."""
    return lambda answer, _: key(answer)


mathematics = Relation("mathematics", 3, _unasked(mathematics_keys.key), mathematics_extraction.extract)
text = Relation("text", 3, _unasked(text_keys.key), text_extraction.extract)
choice = Relation("choice", 3, choice_keys.key, choice_extraction.extract)
plain = Relation("plain", 2, _unasked(plain_keys.key), whole_text)
auto = Relation("auto", 2, _unasked(auto_keys.key), auto_extraction.extract)

RELATIONS = {relation.name: relation for relation in (mathematics, text, choice, plain, auto)}


def json_relation(
    *,
    schema: Mapping[str, Any] | None = None,
    ignore: Sequence[str] = (),
    unordered: Sequence[str] = (),
    compare: Mapping[str, str] | None = None,
) -> Relation:
    """Answers that are JSON: numbers by value, members in any order, texts exactly.

    `schema` is a JSON schema; what it does not allow is no answer. `ignore` and `unordered` are JSON pointers, and
    `compare` names relations by pointer, `*` in all of them stands for every member or element: see
    `answers.equivalence.structured.rules`.
    """
    return _with_rules("json", {"schema": schema, "ignore": ignore, "unordered": unordered, "compare": compare})


def tool_calls_relation(
    *,
    schema: Mapping[str, Any] | None = None,
    ignore: Sequence[str] = (),
    unordered: Sequence[str] = (),
    compare: Mapping[str, str] | None = None,
) -> Relation:
    """Answers that are calls of tools, by names and arguments; rules as `json_relation` has them.

    Pointers begin with the name of a tool and go on in its arguments: `/search/query`, `/*/request_id`. The empty one
    in `unordered` says that the order of calls does not count.
    """
    return _with_rules("tool-calls", {"schema": schema, "ignore": ignore, "unordered": unordered, "compare": compare})


def _with_rules(name: str, rules: Any) -> Relation:
    settings = structured_settings.Settings.of(rules, _keys_named)
    if name == "json":
        values = JsonValues(settings)
        return Relation(name, 1, values.key, structured_extraction.extract_value(values), values)
    calls = ToolCalls(settings)
    return Relation(name, 1, calls.key, structured_extraction.extract_calls(calls), calls)


def _keys_named(name: str) -> tuple[str, KeyOf]:
    relation = relation_of_spec(name)
    return relation.spec, relation.key


RELATIONS |= {relation.name: relation for relation in (json_relation(), tool_calls_relation())}


def relation_named(name: str) -> Relation:
    """The relation of that name or spec; `json:RULES.json` is one with the rules of a file."""
    base, _, rules = name.partition(":")
    if rules and not rules.startswith("{") and _takes_rules(base):
        return _with_rules(base, structured_settings.document_in(Path(rules)))
    return relation_of_spec(name)


def _takes_rules(name: str) -> bool:
    return name in RELATIONS and RELATIONS[name].structure is not None


@lru_cache(maxsize=64)
def relation_of_spec(spec: str) -> Relation:
    """The relation that `spec` names, rules and all; reads no file."""
    base, _, rules = spec.partition(":")
    name, _, version = base.partition("@")
    if name not in RELATIONS:
        raise InvalidValue(f"unknown relation {name!r:.60}; expected one of {', '.join(RELATIONS)}")
    relation = RELATIONS[name]
    if version not in ("", str(relation.version)):
        raise InvalidValue(f"this demur has the relation {relation.spec}, not {base!r:.60}")
    if not rules:
        return relation
    if not _takes_rules(name):
        raise InvalidValue(f"the relation {name} takes no rules, got {rules!r:.60}")
    try:
        return _with_rules(name, strict_json.parse(rules, finite=True))
    except strict_json.NotJson as error:
        raise InvalidValue(f"the rules {rules!r:.60} are not JSON: {error}") from None


def specs_in(listed: str) -> list[str]:
    """The specs of a list with commas between them, which may stand in their rules too."""
    specs: list[str] = []
    start = at = 0
    while True:
        comma, rules = listed.find(",", at), listed.find(":{", at)
        if 0 <= rules < (comma if comma >= 0 else len(listed)):
            try:
                _, at = json.JSONDecoder().raw_decode(listed, rules + 1)
            except (ValueError, RecursionError):
                return [*specs, listed[start:]]
        elif comma >= 0:
            specs.append(listed[start:comma])
            start = at = comma + 1
        else:
            return [*specs, listed[start:]]


def as_written(answer: Any) -> str | None:
    """An answer as text: numbers as they print, without an exponent, objects and lists as JSON."""
    if isinstance(answer, (dict, list)):
        return _as_json(answer)
    if answer is None or answer != answer:
        return None
    if isinstance(answer, bool):
        return "true" if answer else "false"
    if isinstance(answer, float) and math.isfinite(answer):
        return format(Decimal(repr(answer)), "f")
    return str(answer)


def _as_json(answer: Any) -> str | None:
    """An object or a list as JSON; None where it is nested too deeply to be one."""
    if strict_json.is_deep(answer):
        return None
    try:
        written = as_json(answer, ensure_ascii=False, finite=True)
        written.encode()
    except UnicodeEncodeError:  # half a surrogate pair: only an escape can write it
        return as_json(answer)
    except ValueError:  # NaN and infinite numbers are no JSON, and so is their text: null would be another answer
        return str(answer)
    except TypeError as error:
        raise InvalidValue(f"the answer {answer!r:.60} is not JSON: {error}") from None
    return written
