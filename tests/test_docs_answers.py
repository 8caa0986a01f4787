"""The tables of docs/answers.md say what the rules do."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

from demur.answers import mathematics

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "answers.md").read_text(encoding="utf-8")


def rows():
    """The examples of each rule of mathematics: groups of the same, and groups of different answers."""
    table = PAGE.partition("| rule | the same | different |")[2].partition("\n\n")[0]
    for row in table.splitlines()[2:]:
        rule, same, different = (cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:4])
        groups = [[re.findall("`([^`]+)`", group) for group in cell.split(";")] for cell in (same, different)]
        yield pytest.param(*groups, id=rule[:60])


@pytest.mark.parametrize(("same", "different"), list(rows()))
def test_the_examples_of_a_rule_are_what_the_page_says(same, different):
    for group in same:
        assert len({mathematics.key(answer) for answer in group}) <= 1, group
    for group in different:
        for one, other in combinations(group, 2):
            keys = mathematics.key(one), mathematics.key(other)
            assert keys[0] != keys[1] or keys == (None, None), (one, other)


def test_the_table_has_rules():
    assert len(list(rows())) > 20
