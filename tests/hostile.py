"""Every regular expression of the package, and texts that are hostile to it, made of its own parts."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from re import _parser
from types import FunctionType, MethodType, ModuleType

import demur

_CALLS = ("compile", "sub", "subn", "match", "search", "fullmatch", "split", "findall", "finditer")
_MOST_SAMPLES = 12
_WAYS = frozenset({"search", "match", "fullmatch"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SEARCHES = ("sub", "subn", "split", "findall", "finditer", "search")


def modules() -> dict[str, ModuleType]:
    """All modules of the package that can be imported here, by name."""
    for info in pkgutil.walk_packages(demur.__path__, "demur."):
        if info.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(info.name)
        except ImportError:  # of an extra that is not installed
            continue
    return {name: module for name, module in sys.modules.items() if name.split(".")[0] == "demur"}


def held(value: object, seen: set[int]) -> Iterator[tuple[re.Pattern[str], set[str]]]:
    """The patterns in an object, its containers, closures, defaults and caches, and how each is matched."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, re.Pattern):
        yield value, set(_WAYS)
        return
    if isinstance(receiver := getattr(value, "__self__", None), re.Pattern):
        yield receiver, {_way(value.__name__)}
        return
    inner: list[object] = []
    if isinstance(value, Mapping):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        inner = list(value)
    elif isinstance(value, partial):
        inner = [value.func, *value.args, *value.keywords.values()]
    elif isinstance(value, MethodType) or inspect.isbuiltin(value):
        inner = [getattr(value, "__self__", None), getattr(value, "__func__", None)]
    elif isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if cell != type(cell)()]
        inner = [*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    elif isinstance(value, (property, classmethod, staticmethod)):
        inner = [getattr(value, name, None) for name in ("fget", "fset", "__func__")]
    elif is_dataclass(value) and not isinstance(value, type):
        inner = [getattr(value, field.name, None) for field in fields(value)]
    if str(getattr(value, "__module__", "")).split(".")[0] == "demur":
        inner += [*getattr(value, "__dict__", {}).values(), getattr(value, "__wrapped__", None)]
    for each in inner:
        yield from held(each, seen)


def written(module: ModuleType) -> Iterator[tuple[str, re.Pattern[str] | None]]:
    """The pattern of each call of `re` in a function, by its line; None where a variable holds it.

    Names of a module's own texts are put into f-strings, and "x" for any other value.
    """
    functions = (each for each in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(each, _FUNCTIONS))
    for node in {id(each): each for function in functions for each in ast.walk(function)}.values():
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CALLS):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re"):
            continue
        spelt = _spelt(node.args[0], module)
        given = [each.value for each in node.keywords if each.arg == "flags"]
        given += node.args[1:2] if node.func.attr == "compile" else node.args[2:3]
        flags = 0
        for name in (each.attr for one in given for each in ast.walk(one) if isinstance(each, ast.Attribute)):
            flags |= getattr(re, name, 0)
        place = f"{module.__name__}:{ast.unparse(node)[:60]}"
        yield place, None if spelt is None else re.compile(spelt, flags)


def _spelt(node: ast.expr, module: ModuleType) -> str | bytes | None:
    match node:
        case ast.Constant(str() | bytes() as text):
            return text
        case ast.Name(name):
            value = vars(module).get(name)
            return value if isinstance(value, str) else None
        case ast.JoinedStr(values):
            return "".join(_spelt(value, module) or "x" for value in values)
        case ast.FormattedValue(value):
            return _spelt(value, module)
        case ast.BinOp(left, ast.Add(), right):
            parts = _spelt(left, module), _spelt(right, module)
            return None if None in parts else "".join(map(str, parts))
    return None


def _way(method: str) -> str:
    return "search" if method in _SEARCHES else method


def ways_used(name: str, trees: list[ast.Module]) -> frozenset[str]:
    """How a pattern of that name is matched in these sources; in every way where it is handed on."""
    called: set[str] = set()
    for tree in trees:
        of_attributes = {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                called.add(of_attributes.get(id(node), "handed on"))
    used = {_way(each) for each in called} - {"pattern", "flags"}
    return frozenset(used) if used and used <= _WAYS else _WAYS


def hostile(pattern: re.Pattern[str] | re.Pattern[bytes]) -> list[tuple[str, str]]:
    """What stands before, and what is repeated: for every repetition of a pattern its body, each way it can be spelt.

    So is the whole pattern, which a search meets over and over.
    """
    tree = _parser.parse(pattern.pattern, pattern.flags & ~re.U)
    found = {("", piece) for piece in _samples(tree)}
    for before, body, after in _repeated(tree, [""]):
        pieces = _samples(body)
        found |= {(before[0], piece) for piece in after}
        found |= {(start, piece) for piece in pieces for start in before}
        found |= {(before[0], one + other) for one in pieces[:4] for other in pieces[:4]}
    return sorted((start, piece) for start, piece in found if piece)


def _samples(tree) -> list[str]:
    """Texts that a parsed pattern takes, one of each of its alternatives at least."""
    made = [""]
    for node in tree:
        choices = _choices(node)
        # One at a time differs from the first of all: their product would be too many.
        made = [text + choices[0] for text in made] + [made[0] + other for other in choices[1:]]
        made = list(dict.fromkeys(made))[: _MOST_SAMPLES * 2]
    return made[: _MOST_SAMPLES * 2]


def _choices(node) -> list[str]:
    kind, value = str(node[0]), node[1]
    if kind == "LITERAL":
        return [chr(value)]
    if kind == "NOT_LITERAL":
        return [next(one for one in "a 1" if ord(one) != value)]
    if kind == "ANY":
        return ["a", " "]
    if kind == "IN":
        return _of_class(value)
    if kind == "BRANCH":
        return list(dict.fromkeys(text for branch in value[1] for text in _samples(branch)))[: _MOST_SAMPLES * 2]
    if kind == "SUBPATTERN":
        return _samples(value[3])
    if kind == "ATOMIC_GROUP":
        return _samples(value)
    if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, _, tree = value
        once = _samples(tree)
        return list(dict.fromkeys([once[0] * least, *(text * max(least, 1) for text in once)]))
    return [""]  # places, looks ahead and behind, references


_OF_CATEGORY = {"DIGIT": "1٣", "NOT_DIGIT": "a", "SPACE": " ", "NOT_SPACE": "a", "WORD": "a1", "NOT_WORD": " ."}


def _of_class(items) -> list[str]:
    if str(items[0][0]) == "NEGATE":
        taken = re.compile(f"[{''.join(map(_item, items))}]")
        return [one for one in 'a 1.\n("\\' if taken.fullmatch(one)][:4] or ["é"]
    found = []
    for kind, value in items:
        if str(kind) == "LITERAL":
            found.append(chr(value))
        elif str(kind) == "RANGE":
            found.append(chr(value[0]))
        else:
            found += _OF_CATEGORY[str(value).removeprefix("CATEGORY_")]
    return found[:_MOST_SAMPLES]


def _item(item) -> str:
    kind, value = str(item[0]), item[1]
    if kind == "NEGATE":
        return "^"
    if kind == "RANGE":
        return f"\\U{value[0]:08x}-\\U{value[1]:08x}"
    letters = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}
    if kind == "LITERAL":
        return f"\\U{value:08x}"
    name = str(value).removeprefix("CATEGORY_")
    return "\\" + (letters[name[4:]].upper() if name.startswith("NOT_") else letters[name])


def _repeated(tree, before: list[str]) -> Iterator[tuple[list[str], object, list[str]]]:
    """What stands before each repetition in a parsed pattern, its body, and what stands behind it."""
    for place, node in enumerate(tree):
        kind, value = str(node[0]), node[1]
        if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            if value[1] > 1:
                yield before, value[2], _samples(list(tree)[place + 1 :])[:6]
            yield from _repeated(value[2], before)
        elif kind == "BRANCH":
            for branch in value[1]:
                yield from _repeated(branch, before)
        elif kind == "SUBPATTERN":
            yield from _repeated(value[3], before)
        elif kind == "ATOMIC_GROUP":
            yield from _repeated(value, before)
        elif kind in ("ASSERT", "ASSERT_NOT"):
            yield from _repeated(value[1], before)
        choices = _choices(node)
        before = list(dict.fromkeys([before[0] + choice for choice in choices[:3]]))[:3]
