"""What a request of a batch is called: which paths of which problem of which run it asks for, and proof of it.

    demur-RUN-PROBLEM-FIRST-COUNT-SEED-CHECK

RUN and PROBLEM are digests (of the run's name and how its paths are made; of the problem's id and question), FIRST and
COUNT say which paths, SEED is that of the first of them, and CHECK is a digest of all before it. At most 64 letters,
digits and hyphens, which every service takes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from demur.backends.protocol import Wanted
from demur.files.strict_json import as_json
from demur.records import Problem
from demur.store import Run
from demur.store.rows import MOST_PATHS

_SHAPE = re.compile(r"demur-([0-9a-f]{8})-([0-9a-f]{16})-(\d{1,7})-(\d{1,7})-(\d{1,10})-([0-9a-f]{4})")
_SEEDS = 2**31


@dataclass(frozen=True, slots=True)
class Asked:
    """What one request asks for."""

    problem: Problem
    wanted: tuple[Wanted, ...]


class BatchIds:
    """The ids of one run's requests."""

    def __init__(self, run: Run, problems: Iterable[Problem]) -> None:
        self._run = _digest(run.name, run.description.fingerprint, letters=8)
        self._name, self._by_digest = run.name, {_digest_of(problem): problem for problem in problems}

    def of(self, problem: Problem, wanted: Sequence[Wanted]) -> str:
        """The id of a request for paths whose indices and seeds follow each other."""
        first = wanted[0]
        told = f"demur-{self._run}-{_digest_of(problem)}-{first.path}-{len(wanted)}-{first.seed}"
        return f"{told}-{_digest(told, letters=4)}"

    def read(self, custom_id: str) -> Asked | str:
        """What a request asked for; or, of an id that is not of this run, why not."""
        shape = _SHAPE.fullmatch(custom_id)
        if shape is None:
            return "no id that demur gives"
        run, problem, first, count, seed, check = shape.groups()
        if check != _digest(custom_id.rpartition("-")[0], letters=4):
            return "an id that was changed"
        if run != self._run:
            return f"of another run than {self._name!r}, or of one that samples another way"
        known = self._by_digest.get(problem)
        paths = range(int(first), int(first) + int(count))
        if known is None or not paths or paths[-1] >= MOST_PATHS:
            return f"of a problem that the run {self._name!r} does not have"
        return Asked(known, tuple(Wanted(path, (int(seed) + at) % _SEEDS) for at, path in enumerate(paths)))


def _digest_of(problem: Problem) -> str:
    return _digest(problem.id, problem.digest or "", letters=16)


def _digest(*parts: str, letters: int) -> str:
    return hashlib.sha256(as_json(parts).encode()).hexdigest()[:letters]
