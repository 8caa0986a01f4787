"""Every regular expression of the package takes time that grows with the text alone, however hostile the text is."""

from __future__ import annotations

import ast
import inspect
import re
import time
from collections import defaultdict
from functools import cache, partial

import pytest

from hostile import held, hostile, modules, ways_used, written

_REPEATED = (12, 24, 100, 4000)
"""From few to many: a pattern that doubles its work with each more never comes to the last."""
_PARTS = 8
_SPELT_BY_OTHERS = {
    "demur.answers.equivalence.dates:re.compile(pattern, re.ASCII)",
    "demur.answers.equivalence.structured.patterns:re.compile(one_character, re.ASCII)",
    "demur.answers.extraction.expressions:re.compile(atom.source, atom.flags)",
    "demur.backends.redaction:re.compile('|'.join(whole))",
    "demur.policy.file:re.compile(re.escape(policy.name) + '\\\\.[0-9a-f]{12}\\\\.calib",
}
"""Calls whose pattern stands in a variable: modules hold what they make, or it is one character or words alone."""


@cache
def _patterns():
    found = {}
    loaded = modules()
    users = _users(loaded)
    for name, module in loaded.items():
        for variable, value in vars(module).items():
            if isinstance(value, re.Pattern):
                ways = ways_used(variable, users[name, variable] + users[name, "*"])
                found.setdefault(value, (f"{name}.{variable}", set()))[1].update(ways)
    anyhow = {"search", "fullmatch"}
    seen = set()
    for name, module in loaded.items():
        for pattern, ways in held(vars(module), seen):
            found.setdefault(pattern, (name, ways))
        for place, pattern in written(module):
            if pattern is None:
                assert place in _SPELT_BY_OTHERS, f"{place}: no text that is known here"
            else:
                found.setdefault(pattern, (place, anyhow))
    return found


def _users(loaded):
    """The sources that may use a name of a module: its own, under `*`, and those that import it."""
    users = defaultdict(list)
    for name, module in loaded.items():
        tree = ast.parse(inspect.getsource(module))
        users[name, "*"].append(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for imported in node.names:
                    users[node.module, imported.name].append(tree)
    return users


def _seconds(match, text):
    start = time.process_time()
    match(text)
    return time.process_time() - start


def _is_bounded(pattern, way, start, piece):
    """Whether 4,000 repetitions take less than a tenth of a second of work, in one of five tries."""
    match = partial(_all_matches, pattern) if way == "search" else getattr(pattern, way)
    for end in ("\0", "\n\0"):
        for n in _REPEATED:
            text = start + piece * n + end
            text = text if isinstance(pattern.pattern, str) else text.encode()
            if all(_seconds(match, text) > 0.1 for _ in range(5)):
                return False
    return True


def _all_matches(pattern, text):
    for _ in pattern.finditer(text):
        pass


def test_the_patterns_of_the_package_are_found():
    places = [place for place, _ in _patterns().values()]
    assert len(places) > 350
    assert "demur.answers.extraction.quantities._EMPTY" in places
    assert any(place.startswith("demur.answers.extraction.choice:re.match(") for place in places)  # in a function
    assert any("(?P<odd>" in str(pattern.pattern) for pattern in _patterns())  # in a dict


@pytest.mark.parametrize("part", range(_PARTS))
def test_4000_repetitions_of_any_part_take_a_tenth_of_a_second(part):
    for pattern, (place, ways) in list(_patterns().items())[part::_PARTS]:
        for start, piece in hostile(pattern):
            for way in ways:
                assert _is_bounded(pattern, way, start, piece), f"{place}: {way} of {start!r} + {piece!r} * 4000"


@pytest.mark.parametrize(
    "mutant",
    [
        r"(?:\\(?:\]|\[)|[\\\[\]])*x",  # two ways to take a piece
        r"(?:[a-z]\w*\s*)+$",
        r"(?:a|ab|b)*c",
        r"\s+$",  # one way, from every place
        r"\w*_\w*-\w*!",
    ],
)
def test_patterns_that_try_again_and_again_are_caught(mutant):
    pattern = re.compile(mutant)
    assert not all(_is_bounded(pattern, "search", start, piece) for start, piece in hostile(pattern))
