"""Open answers that hold the words of a gold answer: "It was William Shakespeare" where gold is Shakespeare.

The words are those of the text relation: case, articles and punctuation aside, numbers by value. A label that calls a
wrong answer right breaks the promise in silence, and one that calls a right answer wrong only costs yield, so what is
in doubt is not held:

    longer answers              more than `MOST_WORDS` words: a list of everything holds the right one too
    lists and alternatives      "Paris, London, Rome"; "Paris or London"; a neighbour behind or before "and"
    negations and doubts        "not Paris", "anywhere but Paris", "maybe Paris", wherever they stand in the answer
    bounds and directions       "before 1912", "near Paris", "less than 5"
    short and common gold       yes, no, true, both, a letter, up to three letters: only the whole answer
    numbers                     a gold number beside words such as "in" or "the year" only ("5 million" is not 5);
                                with a number in gold, no other number in the answer

The lists are English. What they miss ("Paris Hilton" holds Paris) is for a judge, or for people.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from demur.answers.relations import text

MOST_WORDS = 20
_LONGEST = 400
"""Characters of an answer that are looked at: more than so many words."""
_WHOLE_LETTERS = 3
_SHORT_ENTRY = 3
_FEWEST_ENTRIES = 3
_SENTINEL = "zq"
_SEPARATOR = re.compile(r"[,;|\n•]+")
_ALTERNATIVE = str.maketrans({"/": " or ", "\\": " or ", "&": " and ", "≠": " not ", "≈": " about "})
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)

_COMMON = """
    yes no true false none unknown uncertain unsure maybe both neither either all some any many few most same different
    equal more less higher lower left right above below before after first last north south east west male female
    positive negative good bad high low agree disagree correct incorrect wrong possible impossible entailment neutral
    contradiction increase decrease nothing nobody everyone
"""
_TURNING = """
    not no never neither nor none without except excluding besides but rather instead unlike isnt wasnt arent werent
    doesnt didnt dont cant cannot couldnt wont wouldnt shouldnt hasnt havent non false wrong incorrect untrue opposite
    or either maybe perhaps possibly probably might may could unless unsure uncertain unknown whether alternatively
    versus vs if
    before after until since than under over below above least near nearby outside beyond between beside behind against
    anti half almost nearly
"""
_HARMLESS = """
    in on at by it its is was were are be been of for there year years ad ce circa answer total number so thus
    therefore hence they he she this that has have had exactly equals
"""
_CONTRACTED = "isn't wasn't aren't weren't doesn't didn't don't can't couldn't won't wouldn't shouldn't hasn't haven't"
_WHOLE_ONLY, _TURNS = frozenset(_COMMON.split()), frozenset((*_TURNING.split(), *_CONTRACTED.split()))
_AROUND_NUMBERS = frozenset(_HARMLESS.split())


def holds(answer: str, gold: str) -> bool:
    """Whether an answer holds the words of a gold answer, by the rules above."""
    said, wanted = words_of(answer), words_of(gold)
    if not wanted or not said or len(said) > MOST_WORDS or len(answer) > _LONGEST:
        return False
    if said == wanted:  # what words do not show may still differ: C++ and C#
        return text.key(answer) == text.key(gold)
    return any(_stands_at(place, said, wanted, answer) for place in _places(said, wanted))


@lru_cache(maxsize=65_536)
def words_of(written: str) -> tuple[str, ...]:
    """The words of a text as the text relation has them, dates too; none where it has none."""
    # Behind another word a date is not read as a date, nor an article alone as an answer.
    key = text.key(f"{_SENTINEL} {written[: 2 * _LONGEST].translate(_ALTERNATIVE)}") or ""
    kind, _, words = key.partition(":")
    first, *others = words.split(" ") if kind == "p" else ("",)
    return tuple(others) if first == _SENTINEL else ()


def _places(said: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where the words stand as one run."""
    length = len(wanted)
    return [place for place in range(len(said) - length + 1) if tuple(said[place : place + length]) == tuple(wanted)]


def _stands_at(place: int, said: Sequence[str], wanted: Sequence[str], answer: str) -> bool:
    before, behind = said[:place], said[place + len(wanted) :]
    beside = (*before, *behind)
    if len(wanted) == 1 and _must_be_whole(wanted[0]):
        return False
    if not _TURNS.isdisjoint(beside) or "and" in (*before[-1:], *behind[:1]) or _is_list(answer):
        return False
    numbers = {word for word in wanted if _NUMBER.fullmatch(word)}
    if len(wanted) == 1 and numbers:
        return _AROUND_NUMBERS.issuperset(beside)
    return not numbers or not any(_NUMBER.fullmatch(word) for word in beside if word not in numbers)


def _must_be_whole(word: str) -> bool:
    """A word so short or so common that it stands in many an answer by chance."""
    return not _NUMBER.fullmatch(word) and (len(word) <= _WHOLE_LETTERS or word in _WHOLE_ONLY)


def _is_list(answer: str) -> bool:
    """Three or more short entries between commas, or one a line."""
    entries = [entry.split() for entry in _SEPARATOR.split(answer) if entry.strip()]
    return len(entries) >= _FEWEST_ENTRIES and all(len(entry) <= _SHORT_ENTRY for entry in entries)
