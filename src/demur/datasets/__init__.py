"""Questions with gold answers: public benchmarks, your own files, and generated sets that a small model can half do.

load("gsm8k")                    from the hub (needs the extra [datasets])
load("questions.jsonl")          a file: ours, or in a benchmark's own format, which is recognised
load("builtin:addition")         generated here, seeded
"""

from __future__ import annotations

import os
import random
from pathlib import Path

from demur.datasets import builtin, hub, local
from demur.errors import DatasetError
from demur.records import Problem


def load(
    name: str | os.PathLike[str],
    *,
    split: str | None = None,
    limit: int | None = None,
    seed: int | None = None,
    level: int | None = None,
) -> list[Problem]:
    """Problems with a task (`math`, `qa` or `mc`) and gold.

    `limit` takes the first ones; with `seed`, a random selection that grows with the limit. `level` keeps one level of
    MATH. Ids do not depend on either.
    """
    text = os.fspath(name)
    if text.startswith("builtin:"):
        problems = builtin.generate(text.removeprefix("builtin:"))
    elif Path(text).exists():
        problems = local.read(Path(text))
    elif text in hub.NAMES:
        problems = hub.read(text, split)
    else:
        known = ", ".join([*hub.NAMES, *(f"builtin:{generated}" for generated in builtin.NAMES)])
        raise DatasetError(f"there is no file {text} and no dataset of that name; known: {known}")
    if level is not None or text == "math-hard":
        levels = (str(level or 5), f"Level {level or 5}")
        problems = [problem for problem in problems if str(problem.extra.get("level", "")) in levels]
    if not problems:
        raise DatasetError(f"{text} holds no problems" + (f" of level {level}" if level is not None else ""))
    seen: set[str] = set()
    for problem in problems:
        if problem.id in seen:
            raise DatasetError(f"{text}: the id {problem.id!r} occurs twice; ids must differ")
        seen.add(problem.id)
    if seed is not None:
        random.Random(seed).shuffle(problems)
    return problems if limit is None else problems[:limit]
