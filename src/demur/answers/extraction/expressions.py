"""Regular expressions of users: they mean what Python's `re` says, and take time that grows with the text alone.

RE2 matches them, which never backtracks. Its `\\w`, `\\d`, `\\s` and `\\b` know ASCII alone, and its `$` is not before
a final line break, so it gets neither pattern nor text as they stand. Each kind of character that a pattern tells apart
becomes one letter: Python's own `re` says which characters `\\w`, `[^,;]` or `é` take, and both are respelt in these
letters. A pattern that cannot be matched in one pass is refused by name.
"""

from __future__ import annotations

import re
import string
import threading
from collections.abc import Callable, Iterator
from functools import cached_property
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple, Never

from demur.errors import InvalidValue

_LARGEST = 2000
"""Steps of a compiled pattern: time grows with them too."""
_IN_WORDS, _OTHERS = string.ascii_letters + string.digits + "_", "".join(map(chr, (*range(1, 10), *range(11, 48))))
_MORE = range(0x4E00, 0x9FFF)
_BREAK, _FINAL_BREAK = "\0", "\n"
_CATEGORIES = {"DIGIT": r"\d", "NOT_DIGIT": r"\D", "SPACE": r"\s", "NOT_SPACE": r"\S", "WORD": r"\w", "NOT_WORD": r"\W"}
_STARTS, _ENDS = ("AT_BEGINNING", "AT_BEGINNING_STRING"), ("AT_END", "AT_END_STRING")
_CANNOT = {
    "ASSERT": "looks ahead or behind",
    "ASSERT_NOT": "looks ahead or behind",
    "GROUPREF": "refers back to a group",
    "GROUPREF_EXISTS": "refers back to a group",
    "ATOMIC_GROUP": "has an atomic group",
    "POSSESSIVE_REPEAT": "has a possessive quantifier",
}


class _Atom(NamedTuple):
    """A part that takes one character, as Python's `re` writes it, with the flags that matter to it."""

    source: str
    flags: int


class Expression:
    """A pattern, and what its last match in a text gives."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._places: set[str] = set()
        try:
            self._tree = _parser.parse(pattern, re.S)
            self._parts = list(self._written(self._tree, self._tree.state.flags))
            atoms = dict.fromkeys(part for part in self._parts if isinstance(part, _Atom))
            self._atoms: dict[_Atom, Callable[[str], object]] = {
                atom: re.compile(atom.source, atom.flags).fullmatch for atom in atoms
            }
        except (re.error, OverflowError) as error:
            told = f"the extractor {pattern!r:.200} is neither package.module:function nor a regular expression"
            raise InvalidValue(f"{told}: {error}") from None
        except RecursionError:
            self._refuse("is nested too deeply", "use fewer brackets")
        self._look_at_places()
        self._turn = threading.Lock()
        self._letters, self._kinds = _Letters(self.letter), dict[tuple[bool, ...], str]()
        self._respelt(string.printable + pattern)  # too many kinds of characters are refused now, not in a text
        self.last_in("")

    def last_in(self, text: str) -> str | None:
        """The first group of the last match, or the match itself where there are no groups; None without a match."""
        with self._turn:  # a kind of characters that another thread comes upon changes letters and pattern
            respelt = self._respelt(text)
            match = self._compiled.match(respelt)
        if match is None or match.start(1) < 0:
            return None
        start, end = match.span(2 if self._tree.state.groups > 1 else 1)
        return text[start:end] if start >= match.start(1) else ""  # what an earlier match left in the group is not its

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return Expression, (self.pattern,)

    def letter(self, character: str) -> str:
        """The letter of a character: one for all that every part of the pattern takes or leaves alike."""
        if character == "\n":
            return _FINAL_BREAK if self._of_lines else _BREAK
        word = self._borders is not None and self._borders(character) is not None
        kind = (word, *(takes(character) is not None for takes in self._atoms.values()))
        if kind not in self._kinds:
            used = sum(known[0] == word for known in self._kinds)
            letters = _IN_WORDS if word else _OTHERS
            if word and used == len(letters):
                self._refuse("tells too many characters apart", "write classes, such as [a-z], for single characters")
            self._kinds[kind] = letters[used] if used < len(letters) else chr(_MORE[used])
            self.__dict__.pop("_compiled", None)
        return self._kinds[kind]

    def _respelt(self, text: str) -> str:
        respelt = text.translate(self._letters)
        if text.endswith("\n") and not self._of_lines:
            return respelt[:-1] + _FINAL_BREAK  # so that a `$` of lines is before this break, and before no other
        return respelt

    @cached_property
    def _compiled(self) -> Any:
        """Takes what matches where it does, and else one character: so one pass comes to the last of all matches."""
        import re2

        options = re2.Options()
        options.log_errors = False
        matched = "".join(part if isinstance(part, str) else self._class(part) for part in self._parts)
        try:
            compiled = re2.compile(rf"\A(?:({matched})|(?s:.))*", options)
        except re2.error as error:
            self._refuse(f"is too large or repeats a part too often ({str(error)[:60]})", "repeat parts less often")
        if compiled.programsize > _LARGEST:
            self._refuse("is too large", "repeat parts less often")
        return compiled

    def _class(self, atom: _Atom) -> str:
        place = 1 + list(self._atoms).index(atom)
        letters = [letter for kind, letter in self._kinds.items() if kind[place]]
        if self._atoms[atom]("\n"):
            letters += [_BREAK, _FINAL_BREAK]
        return "[{}]".format("".join(f"\\x{{{ord(one):x}}}" for one in letters) or r"^\x00-\x{10FFFF}")

    @property
    def _of_lines(self) -> bool:
        """Whether `^` and `$` are at every line break."""
        return not self._places.isdisjoint({"AT_BEGINNING in lines", "AT_END in lines"})

    @cached_property
    def _borders(self) -> Callable[[str], object] | None:
        """What is in a word where the pattern has borders of words."""
        borders = {place for place in self._places if "BOUNDARY" in place}
        if not borders:
            return None
        return re.compile(r"\w", re.A if any(place.endswith("ASCII") for place in borders) else 0).fullmatch

    def _look_at_places(self) -> None:
        if self._of_lines and "AT_END" in self._places:
            self._refuse("has a $ for the text beside signs for lines", r"write \Z for the end of the text")
        if len({place.endswith("ASCII") for place in self._places if "BOUNDARY" in place}) > 1:
            self._refuse("has borders of two kinds of words", "write (?a) at the start, or not at all")
        if not self._tree.getwidth()[0] and not self._is_whole_text:
            never = "may match nothing, so that its last match is the empty end of any text"
            self._refuse(never, "write + for *, or ^ and $ around it")

    @property
    def _is_whole_text(self) -> bool:
        """Whether it can match the whole text alone."""
        parts = list(self._tree)
        if self._of_lines or len(parts) < 2 or not str(parts[0][0]) == str(parts[-1][0]) == "AT":
            return False
        return str(parts[0][1]) in _STARTS and str(parts[-1][1]) in _ENDS

    def _written(self, tree: Any, flags: int) -> Iterator[str | _Atom]:
        """A parsed pattern in RE2's writing, with the parts that take one character left open."""
        for kind, value in tree:
            match str(kind):
                case "LITERAL":
                    yield _Atom(re.escape(chr(value)), flags & (re.I | re.A))
                case "NOT_LITERAL":
                    yield _Atom(f"[^{_spelt(value)}]", flags & (re.I | re.A))
                case "ANY":
                    yield _Atom(".", flags & re.S)
                case "IN":
                    yield _Atom(f"[{''.join(map(_item, value))}]", flags & (re.I | re.A))
                case "AT":
                    yield self._at(str(value), flags)
                case "BRANCH":
                    yield from self._choice(value[1], flags)
                case "SUBPATTERN":
                    yield from self._group(value, flags)
                case "MAX_REPEAT" | "MIN_REPEAT" as repeat:
                    yield from self._repeated(value, flags, "?" if repeat == "MIN_REPEAT" else "")
                case other:
                    told = _CANNOT.get(other, f"has a part of the kind {other}")
                    self._refuse(told, r"write what is before the answer, and the answer in a group: Answer: (\d+)")

    def _at(self, place: str, flags: int) -> str:
        if place in ("AT_BEGINNING", "AT_END"):
            self._places.add(place + " in lines" * bool(flags & re.M))
            starts = r"(?m:^)" if flags & re.M else r"\A"
            return starts if place == "AT_BEGINNING" else "(?m:$)"
        self._places.add(place + " ASCII" * bool(flags & re.A))
        return {
            "AT_BEGINNING_STRING": r"\A",
            "AT_END_STRING": r"\z",
            "AT_BOUNDARY": r"\b",
            "AT_NON_BOUNDARY": r"\B",
        }[place]

    def _choice(self, choices: Any, flags: int) -> Iterator[str | _Atom]:
        for number, choice in enumerate(choices):
            yield "|" if number else "(?:"
            yield from self._written(choice, flags)
        yield ")"

    def _group(self, group: Any, flags: int) -> Iterator[str | _Atom]:
        (number, added, taken, tree), kinds = group, re.A | re.U
        flags = ((flags & ~kinds if added & kinds else flags) | added) & ~taken
        yield "(" if number == 1 else "(?:"
        yield from self._written(tree, flags)
        yield ")"

    def _repeated(self, repeat: Any, flags: int, lazy: str) -> Iterator[str | _Atom]:
        least, most, tree = repeat
        if most != 1 and not tree.getwidth()[0]:  # how often nothing is repeated, engines see differently
            self._refuse("repeats a part that may match nothing", "write + for * in it")
        yield "(?:"
        yield from self._written(tree, flags)
        yield f"){{{least},{'' if str(most) == 'MAXREPEAT' else most}}}{lazy}"

    def _refuse(self, why: str, remedy: str) -> Never:
        raise InvalidValue(f"the regular expression {self.pattern!r:.200} {why}", remedy)


class _Letters(dict[int, str]):
    """The letters of characters, found out as they come."""

    def __init__(self, letter: Callable[[str], str]) -> None:
        self._letter = letter

    def __missing__(self, code: int) -> str:
        self[code] = self._letter(chr(code))
        return self[code]


def _spelt(code: int) -> str:
    return f"\\U{code:08x}"


def _item(item: Any) -> str:
    """One part of a class."""
    kind, value = str(item[0]), item[1]
    if kind == "NEGATE":
        return "^"
    if kind == "RANGE":
        return f"{_spelt(value[0])}-{_spelt(value[1])}"
    return _spelt(value) if kind == "LITERAL" else _CATEGORIES[str(value).removeprefix("CATEGORY_")]
