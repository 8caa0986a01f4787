"""From a written mathematical answer to the key of its equivalence class.

The key says what kind of thing the answer is, and then its value in one canonical form:

    n: rational number      c: constant, to 15 digits     e: expression with letters, by values at fixed points
    i: pair or interval     t: tuple of three or more     u: union       m: matrix       {…} set or bare list
    q: equation             l: inequality                 a: values of names that count  v: one or the other
    b: number in a base     r: ratio or time              k: number with words or a unit that count
    w: word or letter       s: anything else, as tidied text

What a rule does not read stays in the key: it raises Unreadable, and the whole answer is compared as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from demur.answers.equivalence.mathematics import _values as values
from demur.answers.equivalence.mathematics._brackets import closes, split
from demur.answers.equivalence.mathematics._comparisons import (
    COMPARISON,
    bounded_name,
    equation_key,
    inequality_key,
    pair_key,
)
from demur.answers.equivalence.mathematics._matrices import lone_matrix, matrix_expression
from demur.answers.equivalence.mathematics._names import is_name, kept_name, plain_name
from demur.answers.equivalence.mathematics._numerals import NUMBER, number_key, numeral_key, rational_key
from demur.answers.equivalence.mathematics._surface import AND, MAX_LENGTH, OR, tidy
from demur.answers.equivalence.mathematics._syntax import SERIES, Node, Unreadable, parse
from demur.answers.equivalence.mathematics._times import clock_key
from demur.answers.equivalence.mathematics._units import is_unit, one_unit, split_words
from demur.answers.equivalence.mathematics._words import SHORT_WORDS, scaled, spoken

_BASE = re.compile(r"(-?\d[0-9A-Za-z]*+)\s*+_\s*+(?:\{\s*+)?(\d{1,2}|[a-z])\s*+\}?", re.ASCII)
_WORD = re.compile(r"\\text\s*\{([^{}]*)\}")
_NOT_A_WORD = re.compile(rf"[\d,{AND}{OR}]")
_PLAIN_WORDS = re.compile(r"[^\W\d_]+(?:(?:[.'] ?| |-)[^\W\d_]+)*")
_CODED = re.compile(r"0(?:x([0-9a-fA-F]+)|b([01]+))", re.ASCII)
_CAPITAL = re.compile(r"[A-Z][A-Za-z]{1,2}")
_LONG_WORD = re.compile(r"[^\W\d_]{4}")
_SPEECH = re.compile(rf"[A-Za-z]+(?:[ {AND}\-]+[A-Za-z]+)*")
_MEMBER = re.compile(r"\s*([a-zA-Z]\w*)\s*\\in(?![a-z])\s*(?!\s|\\text)")
_CASES = re.compile(r"\\begin\s*\{cases\}((?:(?!\\begin|\\end).)*)\\end\s*\{cases\}", re.S)
_ANOTHER_STATEMENT = re.compile(r"(?:[\d}\])] ?\s|[a-zA-Z] )[a-zA-Z](?:_\w)?$")
_INFINITY = {r"\infty": "inf", r"+\infty": "inf", r"-\infty": "-inf"}
_BLANKS = re.compile(r"(?<=[^\W\d_]{2}) (?=[^\W\d_]{2})|(?<=\d) (?=\d)|( )")
_SEPARATORS = ",;" + AND


_DERIVATIVE = re.compile(
    r"\\frac\s?\{\s?(?:\\partial|d)(?:\s?\^\s?\{?\d\}?)?\s?[a-zA-Z]?\s?\}\s?\{\s?(?:\\partial\s?|d)[a-zA-Z]"
)
_MONEY_RANGE = re.compile(r"[$€£]\s?([\d.,]+)\s?[-–—]\s?[$€£]\s?([\d.,]+)")


@lru_cache(maxsize=65_536)
def key(answer: str) -> str | None:
    """The key of a written answer; None where none is: no letter, no digit."""
    plain = answer.strip()
    if not plain:
        return None
    if number := NUMBER.fullmatch(plain):
        return number_key(number)
    if len(plain) > MAX_LENGTH:
        return "s:" + "".join(plain.split())
    text = tidy(answer)
    if _is_blank(plain) and _is_blank(text):
        return None
    if not text:
        return "s:" + "".join(plain.split())
    try:
        if range_ := _MONEY_RANGE.fullmatch(plain):
            return f"r:{range_.group(1)}-{range_.group(2)}"
        if _DERIVATIVE.search(text):
            raise Unreadable("a derivative is no fraction")
        return _statement(_unwrapped(text))
    except (Unreadable, RecursionError, OverflowError, ZeroDivisionError):
        return "s:" + _BLANKS.sub(lambda blank: "" if blank.group(1) else " ", text)


def unit_behind(answer: str) -> str:
    """The unit that an answer ends in and that its key does not have; "" where there is none."""
    return _unit(tidy(answer)) if len(answer) <= MAX_LENGTH else ""


def _is_blank(text: str) -> bool:
    """Nothing but a blank to fill in: ___, ?, --."""
    return not any(character.isalnum() or character == "\\" for character in text)


def _unwrapped(text: str) -> str:
    """`\\text{A, C}` and `\\text{3 cm}` without their wrapper; words keep it, which tells them from products."""
    wrapped = _WORD.fullmatch(text)
    return wrapped.group(1).strip() if wrapped and _NOT_A_WORD.search(wrapped.group(1)) else text


def _statement(text: str) -> str:
    """One statement, or several that are joined: by `or`, by a semicolon around commas, by commas and `and`."""
    if number := _spoken(text):
        return number
    if system := _CASES.fullmatch(text):
        return _listing([row.strip(" ,;") for row in system.group(1).split(r"\\") if row.strip()])
    if len(either := split(text, OR)) > 1:
        return _alternatives(either)
    groups = split(text, ";")
    if len(groups) > 1 and any(len(split(group, "," + AND)) > 1 for group in groups):
        return _set([_group(group) for group in groups])
    parts = split(text, _SEPARATORS)
    return _listing(parts) if len(parts) > 1 else _relation(text)


def _group(text: str) -> str:
    """One of several groups with semicolons between them: statements about names, or else values in an order."""
    parts = split(text, "," + AND)
    if len(parts) < 2 or any(map(_name, parts)):
        return _statement(text)
    return _ordered("(", _measures(parts, _relation), ")")


def _alternatives(either: list[str]) -> str:
    """One or the other. In `1, 2 or 3` the comma says `or` too, unless names or an `and` stand between."""
    parts = [part for group in either for part in split(group, ",;")]
    if any(AND in group for group in either) or len({name for part in parts if (name := _name(part))}) > 1:
        return "v:" + _join(sorted(_statement(group) for group in either))
    keys = _members(parts)
    if all(COMPARISON.search(part) for part in parts) and all(key.startswith("i:") for key in keys):
        return "u:" + _join(sorted(keys))
    return "v:" + _join(sorted(keys))


def _listing(parts: list[str]) -> str:
    """A bare list has no order. Values of several names belong to their names."""
    names = [_name(part) for part in parts]
    if any(names) and any(is_name(part) and len(part) == 1 for part in parts):
        raise Unreadable("x, y = 1, 2")
    if len({name for name in names if name}) < 2:
        return _set(_members(parts))
    named = [f"{name}={key}" if name else key for name, key in zip(names, _measures(parts, _without_name), strict=True)]
    return "a:" + _join(sorted(named))


def _name(part: str) -> str | None:
    """What a statement gives the value or the bounds of."""
    if COMPARISON.search(part):
        return bounded_name(part)
    sides = split(part, "=")
    return plain_name(sides[0]) if len(sides) == 2 and is_name(sides[0]) else None


def _members(parts: list[str]) -> list[str]:
    """The keys of a list's parts, each ± two of them."""
    keys = _measures(parts, _relation)
    return [member for part, key in zip(parts, keys, strict=True) for member in _opened(part, key)]


def _measures(parts: list[str], read: Callable[[str], str]) -> list[str]:
    """The keys of parts, in order. A unit that all share, or that only the last has, is dropped; others stay."""
    keys, units = [read(part) for part in parts], [_unit(part) for part in parts]
    if not any(units[:-1]) or len(set(units)) == 1:
        return keys
    return [f"k:{key} {unit}" if unit else key for key, unit in zip(keys, units, strict=True)]


def _unit(part: str) -> str:
    """The unit that a part of a list ends in; "" where it has none."""
    words = split_words(part.rpartition("=")[2])[1]
    rest = scaled(words)[1]
    return one_unit(rest) if rest and is_unit(rest, letters=True) else ""


def _without_name(part: str) -> str:
    """The value or the bounds that a part gives to a name which stands in the key already."""
    key, name = _relation(part), _name(part)
    return key[len(f"a:{{{name}=") : -1] if name and key.startswith(f"a:{{{name}=") else key


def _opened(part: str, key: str) -> list[str]:
    """The members that ± makes of one part of a list."""
    return key[1:-1].split("|") if r"\pm" in part and key.startswith("{") else [key]


def _join(keys: list[str]) -> str:
    return "{" + "|".join(keys) + "}"


def _set(keys: list[str]) -> str:
    return keys[0] if len(keys) == 1 else _join(sorted(keys))


def _relation(text: str) -> str:
    """An inequality, a chain of equalities, a membership, or a quantity."""
    text = _before_approximation(text)
    if COMPARISON.search(text):
        return _of_name(bounded_name(text), text, inequality_key(text, _quantity))
    sides = split(text, "=")
    if len(sides) < 2:
        member = _MEMBER.match(text)
        return _quantity(text) if member is None else _of_name(member.group(1), text, _quantity(text[member.end() :]))
    if any(_ANOTHER_STATEMENT.search(side) for side in sides[1:-1]):
        raise Unreadable("statements without anything between them")
    first, last = sides[0], sides[-1]
    if len(sides) > 2 and is_name(first) and len(names := dict.fromkeys(filter(is_name, sides[:-1]))) > 1:  # x = y = 3
        return _listing([f"{name} = {last}" for name in names])
    if is_name(first) and not is_name(last):
        return _value_of(first, last, equation=len(sides) == 2)
    if is_name(last) and len(sides) == 2 and not is_name(first):
        return _value_of(last, first, equation=True)
    if not is_name(last) and not any(_has_letters(side) for side in sides[:-1]):
        value = _quantity(last)
        if not value.startswith(("e:", "w:")):
            return value
    if len(sides) > 2:
        raise Unreadable("a chain of equations")
    left, right = parse(first), parse(last)
    if (values.calls(left) | values.calls(right)) & set(SERIES):
        raise Unreadable("a sum that nobody adds up here")
    return "q:" + equation_key(left, right)


def _has_letters(side: str) -> bool:
    """Whether a side of an equation holds unknowns, and is more than a name."""
    if is_name(side):
        return False
    node = parse(side)
    return bool(values.letters(node)) or values.count(node, "call") > 0


def _value_of(name: str, text: str, *, equation: bool) -> str:
    """What a name is said to be; where the name stands on the other side too, nothing is said but the equation."""
    value = _quantity(text)
    if equation and len(name) == 1 and value.startswith("e:") and name in values.letters(node := parse(text)):
        return "q:" + equation_key(parse(name), node)
    return _of_name(name, text, value)


def _of_name(name: str | None, text: str, key: str) -> str:
    """A value with the name that it is given to, where that says which of several values is meant."""
    kept = kept_name(name, text) if name else None
    return key if kept is None else f"a:{{{kept}={key}}}"


def _before_approximation(text: str) -> str:
    """`x = 1/3 ≈ 0.33` is 1/3, and `x ≈ 11` is `x = 11`."""
    exactly, *roughly = text.split(r"\approx")
    if not roughly:
        return text
    if not exactly.strip():
        return roughly[0]
    return f"{exactly} = {roughly[0]}" if is_name(exactly.strip()) else exactly


def _quantity(text: str) -> str:
    """One number, word, bracket, matrix or expression, with or without a unit."""
    text = text.strip()
    if not text:
        raise Unreadable("nothing")
    if r"\cup" in text:
        return "u:" + _join(sorted(_quantity(part) for part in text.split(r"\cup")))
    if r"\begin" in text:
        return _matrix(text)
    if simple := numeral_key(text) or clock_key(text):
        return simple
    if coded := _CODED.fullmatch(text):
        return f"b:{coded.group(1).upper()}_16" if coded.group(1) else f"b:{coded.group(2)}_2"
    if (base := _BASE.fullmatch(text)) and _is_in_base(*base.groups()):
        return f"b:{base.group(1).upper()}_{base.group(2)}"
    head, words = split_words(text)
    if words and (measured := _measured(head, words)):
        return measured
    return _spoken(text, units=False) or _word(text) or _bracketed(text) or _expression(parse(text))


def _is_in_base(digits: str, base: str) -> bool:
    """Whether there are such digits in that base; a base that is a letter has decimal digits."""
    largest = max(int(digit, 36) for digit in digits.lstrip("-"))
    return largest < int(base) if base.isdigit() else largest < 10


def _measured(head: str, words: list[str]) -> str | None:
    """A quantity with words behind it: those that multiply do, units are dropped, all others stay."""
    scale, rest = scaled(words)
    if not rest or is_unit(rest, letters=True):
        return _quantity(head) if scale == 1 else _multiple(scale, head)
    if all(len(word) < 4 and word not in SHORT_WORDS for word in rest):
        return None
    value = numeral_key(head)
    return None if value is None else f"k:{value} {' '.join(words)}"


def _multiple(scale: int, head: str) -> str:
    value = numeral_key(head)
    if value is not None and value.startswith("n:"):
        return rational_key(scale * Fraction(value[2:]))
    return _expression(("mul", ("num", Fraction(scale)), parse(head)))


def _spoken(text: str, *, units: bool = True) -> str | None:
    """A number in words, with or without a unit; inside a list without, where units may differ."""
    wrapped = _WORD.fullmatch(text)
    bare = wrapped.group(1).strip() if wrapped else text
    if not _SPEECH.fullmatch(bare):
        return None
    counted = spoken(bare.lower().replace(AND, " and ").replace("-", " ").split())
    if counted is None:
        return None
    value, rest = counted
    return rational_key(value) if not rest or (units and is_unit(rest)) else None


def _word(text: str) -> str | None:
    """A single letter, or words: in `\\text{…}`, or of more letters than a product of variables has."""
    wrapped = _WORD.fullmatch(text)
    bare = (wrapped.group(1) if wrapped else text).strip('()., "“”')
    if not _PLAIN_WORDS.fullmatch(bare):
        return None
    if len(bare) == 1:
        return "w:" + bare
    if not wrapped and any(c in text for c in "(+"):
        return None
    known = bare.lower() in SHORT_WORDS or _CAPITAL.fullmatch(bare) or not bare.isascii()
    if wrapped or known or _LONG_WORD.search(bare):
        return "w:" + " ".join(bare.lower().split())
    return None


def _bracketed(text: str) -> str | None:
    """Tuples, intervals and sets; None where brackets only group."""
    if text == r"\emptyset":
        return "{}"
    if text.startswith(r"\{") and text.endswith(r"\}"):
        return _braces(text[2:-2])
    if text[0] == "{" and text[-1] == "}" and len(split(text[1:-1], _SEPARATORS)) > 1:
        return _braces(text[1:-1])
    if text[0] in "([" and text[-1] in ")]" and closes(text):
        inside = text[1:-1]
        parts = split(inside, _SEPARATORS)
        if len(parts) > 1:
            if len(split(inside, ";")) > 1 and len(split(inside, "," + AND)) > 1:
                raise Unreadable("commas and semicolons in one bracket")
            return _ordered(text[0], _measures(parts, _entry), text[-1])
    return None


def _entry(part: str) -> str:
    """What stands between two commas of a bracket."""
    return _INFINITY.get("".join(part.split())) or _statement(part)


def _braces(inside: str) -> str:
    parts = split(inside, _SEPARATORS)
    return _set(_members(parts)) if parts else "{}"


def _ordered(opening: str, keys: list[str], closing: str) -> str:
    return pair_key(opening, keys[0], keys[1], closing) if len(keys) == 2 else "t:(" + ",".join(keys) + ")"


def _matrix(text: str) -> str:
    """A matrix whose cells may hold anything, or what matrices come to."""
    if (cells := lone_matrix(text)) is not None:
        return _table([[_statement(cell) for cell in row] for row in cells])
    value = matrix_expression(text)
    if not isinstance(value, list):
        return _expression(value)
    return _table([[_expression(cell) for cell in row] for row in value])


def _table(cells: list[list[str]]) -> str:
    if len(cells) == 1 or all(len(row) == 1 for row in cells):  # a row or column vector is a tuple
        flat = [cell for row in cells for cell in row]
        return flat[0] if len(flat) == 1 else _ordered("(", flat, ")")
    return "m:" + ";".join(",".join(row) for row in cells)


def _expression(node: Node) -> str:
    signs = values.count(node, "pm")
    if signs > 3:
        raise Unreadable("too many ±")
    if signs:
        return _set(sorted({_expression(reading) for reading in values.readings(node)}))
    if node in (("inf",), ("neg", ("inf",))):
        return "inf" if node == ("inf",) else "-inf"
    value = values.exact(node)
    if value is not None:
        return rational_key(value)
    if node[0] == "var":
        return ("w:" if len(node[1]) == 1 else "e:") + str(node[1])
    if values.letters(node) or values.count(node, "call"):
        return ("s:" if values.calls(node) & set(SERIES) else "e:") + values.fingerprint(node)
    constant = values.numeric(node, 0)
    simple = values.as_fraction(constant)
    return "c:" + values.digits(constant) if simple is None else rational_key(simple)
