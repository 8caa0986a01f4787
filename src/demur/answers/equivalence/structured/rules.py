"""Rules by JSON pointer: which parts of a value do not count, have no order, or are compared by another relation.

A pointer is one of RFC 6901 (`/items/0/price`, `~1` for a slash and `~0` for a tilde in a name, the empty one for the
whole value), and a step `*`, which the RFC does not have, stands for every element of a list or member of an object.

    ignore       /id, /items/*/time     as if it were not there
    unordered    /tags                  a list whose order does not count; how often an element stands in it does
    compare      /total: mathematics    a text, number or boolean by the key that a relation has for it as text
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import combinations
from typing import Any

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.equivalence.structured import values
from demur.errors import InvalidValue

KeyOf = Callable[[str, Asked], str | None]
Nodes = tuple["_Node", ...]

_BAD_ESCAPE = re.compile(r"~(?![01])")


@dataclass
class _Node:
    """A place that pointers lead to or through."""

    inner: dict[str, _Node] = field(default_factory=dict)
    pointers: set[str] = field(default_factory=set)
    ignored: bool = False
    unordered: bool = False
    key_of: KeyOf | None = None


class Rules:
    """The rules of one relation, ready to write values by."""

    def __init__(self, ignore: Sequence[str], unordered: Sequence[str], compare: Mapping[str, KeyOf]) -> None:
        self.pointers = frozenset((*ignore, *unordered, *compare))
        steps = {pointer: _steps(pointer) for pointer in sorted(self.pointers)}
        if "" in ignore:
            raise InvalidValue("the pointer '' is the whole answer, which cannot be ignored")
        for one, other in combinations(sorted(compare), 2):
            if compare[one] != compare[other] and _may_meet(steps[one], steps[other]):
                raise InvalidValue(f"{one!r} and {other!r} lead to one place and compare it in two ways")
        for pointer in unordered:
            _refuse_places_in(pointer, steps)
        self._root = _Node()
        for pointer, path in steps.items():
            node = self._root
            for step in path:
                node = node.inner.setdefault(step, _Node())
            node.pointers.add(pointer)
            node.ignored |= pointer in ignore
            node.unordered |= pointer in unordered
            node.key_of = compare.get(pointer, node.key_of)

    def written(self, value: Any, asked: Asked = NOTHING_SAID) -> str:
        """The one way to write all values that are the same by these rules."""
        return values.written(value) if not self.pointers else _written(value, (self._root,), asked)

    def calls_written(self, calls: Sequence[tuple[str, Any]], asked: Asked = NOTHING_SAID) -> str:
        """The same for calls of tools, each a name and its arguments, where pointers begin with the name."""
        parts = [part for name, arguments in calls if (part := self.written({name: arguments}, asked)) != "{}"]
        return "[" + ",".join(sorted(parts) if self._root.unordered else parts) + "]"

    def met_by(self, value: Any) -> set[str]:
        """The pointers that lead to something in a value."""
        return set(_met(value, (self._root,)))


def _steps(pointer: Any) -> tuple[str, ...]:
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")) or _BAD_ESCAPE.search(pointer):
        raise InvalidValue(f"{pointer!r:.80} is no JSON pointer", "write it like /items/*/price")
    return tuple(values.composed(step.replace("~1", "/").replace("~0", "~")) for step in pointer.split("/")[1:])


def _may_meet(one: Sequence[str], other: Sequence[str]) -> bool:
    return len(one) == len(other) and all(a == b or "*" in (a, b) for a, b in zip(one, other, strict=True))


def _refuse_places_in(unordered: str, steps: Mapping[str, tuple[str, ...]]) -> None:
    """Raise where a pointer leads to a place in a list whose order does not count."""
    until = len(steps[unordered])
    for pointer, path in steps.items():
        if len(path) > until and path[until].isdigit() and _may_meet(path[:until], steps[unordered]):
            raise InvalidValue(f"{pointer!r} names a place in {unordered!r}, which has no order")


def _inner(nodes: Nodes, step: str) -> Nodes:
    return tuple(node.inner[name] for node in nodes for name in dict.fromkeys((step, "*")) if name in node.inner)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from sorted(value.items())
    elif isinstance(value, list):
        yield from ((str(place), entry) for place, entry in enumerate(value))


def _written(value: Any, nodes: Nodes, asked: Asked) -> str:
    if not nodes:
        return values.written(value)
    if not isinstance(value, (dict, list)):
        key_of = next((node.key_of for node in nodes if node.key_of is not None), None)
        key = None if key_of is None else _key_as_text(value, key_of, asked)
        return values.scalar_written(value) if key is None else "~" + values.text_written(key)
    kept = [(name, entry, inner) for name, entry in _parts(value) if not _ignored(inner := _inner(nodes, name))]
    parts = [_written(entry, inner, asked) for _, entry, inner in kept]
    if isinstance(value, dict):
        names = [values.text_written(name) for name, _, _ in kept]
        return "{" + ",".join(f"{name}:{part}" for name, part in zip(names, parts, strict=True)) + "}"
    return "[" + ",".join(sorted(parts) if any(node.unordered for node in nodes) else parts) + "]"


def _ignored(nodes: Nodes) -> bool:
    return any(node.ignored for node in nodes)


def _key_as_text(value: Any, key_of: KeyOf, asked: Asked) -> str | None:
    """What a relation makes of a text, number or boolean; None, nothing, where it makes nothing of it."""
    if isinstance(value, str):
        return key_of(value, asked)
    if value is None:
        return None
    in_english = replace(asked, language=None)  # as JSON writes numbers, whatever language the texts have
    return key_of(
        values.number_written(value) if isinstance(value, Decimal) else values.scalar_written(value), in_english
    )


def _met(value: Any, nodes: Nodes) -> Iterable[str]:
    for node in nodes:
        yield from node.pointers
    for name, entry in _parts(value) if nodes else ():
        yield from _met(entry, _inner(nodes, name))
