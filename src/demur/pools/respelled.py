"""Problems whose answers are spelled another way than they were written.

Which answers are, is settled before gold is looked at, and gold only follows: what was right stays right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from demur.records import Problem


def accepting_spellings(problem: Problem, spellings: Mapping[str, str], key_of: Callable[[Any], str | None]) -> Problem:
    """The problem, accepting the new spelling of every answer that it accepts.

    `spellings` has, for the keys of the answers that changed, how they are spelled now.
    """
    accepted = {key for entry in problem.gold if (key := key_of(entry)) is not None}
    added = {spelling for key in accepted if (spelling := spellings.get(key)) and key_of(spelling) not in accepted}
    return replace(problem, gold=(*problem.gold, *sorted(added))) if added else problem
