"""The last resort for answers that the rules cannot read: math-verify, in a child process with hard limits.

It is off unless asked for. It is asked only about classes of which at least one is compared as bare text, one verdict
per pair, both ways round; the closure of those verdicts merges classes, so the result does not depend on the order of
paths. The key of a merged class is the smallest of its keys. Verdicts are kept, and can be stored and replayed, so a
busy machine cannot change one later. A pair that runs into a limit is different, and counted; so is one whose child
ends time after time.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any, Self

from demur.errors import InvalidValue, MissingExtra
from demur.files.atomic import atomic_file
from demur.files.inputs import text_of
from demur.files.strict_json import parse
from demur.foreign_code import is_readable, isolated_python, without_secrets

_START_SECONDS = 60.0
_TRIES = 3
_FORMAT = "demur-verdicts"
_LONGEST_FORMULA = 300
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_WORD = re.compile(r"[A-Za-z]{4,}")


class SlowPath:
    """Pairwise verdicts of math-verify, bounded in time and memory, remembered.

    `store` names a file to replay verdicts from, and to write them to when the path is closed.
    """

    def __init__(
        self, *, seconds: float = 2.0, megabytes: int = 2048, store: str | os.PathLike[str] | None = None
    ) -> None:
        self.seconds, self.megabytes, self.store = seconds, megabytes, store
        self.verdicts: dict[tuple[str, str], bool] = {}
        self.killed = 0
        """Pairs that ran into a limit."""
        self.restarted = 0
        """Children that ended by themselves, or that somebody else ended."""
        self._worker: Popen[str] | None = None
        if store is not None and os.path.exists(store):
            self.verdicts.update(_read(store))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def same(self, a: str, b: str) -> bool:
        """Whether math-verify calls two answers equal, either way round."""
        pair = (min(a, b), max(a, b))
        if pair not in self.verdicts:
            self.verdicts[pair] = self._ask(pair)
        return self.verdicts[pair]

    def merge(self, keys: Sequence[str | None], surfaces: Sequence[Any]) -> list[str | None]:
        """The keys of one pool, classes that math-verify holds equal merged."""
        spelling: dict[str, str] = {}
        for key, surface in zip(keys, surfaces, strict=True):
            if key is not None:
                text = str(surface).strip()
                spelling[key] = min(spelling.get(key, text), text, key=lambda spelt: (len(spelt), spelt))
        root = {key: key for key in spelling}

        def find(key: str) -> str:
            while root[key] != key:
                key = root[key]
            return key

        for a, b in combinations(sorted(spelling), 2):
            undecided = a.startswith("s:") or b.startswith("s:")
            readable = not (_is_prose(spelling[a]) or _is_prose(spelling[b]))
            if undecided and readable and find(a) != find(b) and self.same(spelling[a], spelling[b]):
                low, high = sorted((find(a), find(b)))
                root[high] = low
        return [None if key is None else find(key) for key in keys]

    def close(self) -> None:
        """Stop the child, and write the verdicts if they have a store."""
        self._stop()
        if self.store is not None:
            rows = [[a, b, verdict] for (a, b), verdict in sorted(self.verdicts.items())]
            with atomic_file(self.store) as unfinished:
                unfinished.write_text(json.dumps({"format": _FORMAT, "verdicts": rows}), encoding="utf-8")

    def _ask(self, pair: tuple[str, str]) -> bool:
        """A verdict; a child that ended, whoever ended it, is no verdict: the next one is asked the same."""
        for _ in range(_TRIES):
            worker = self._worker or self._start()
            if worker is not None and (answer := self._answer(worker, pair)) is not None:
                break
            self._stop()
            self.restarted += 1
        else:
            answer = ""
        if answer in ("true", "false"):
            return answer == "true"
        self.killed += 1
        self._stop()
        return False

    def _answer(self, worker: Popen[str], pair: tuple[str, str]) -> str | None:
        """What the child says, nothing where time is up, or None where there is no child any more."""
        assert worker.stdin is not None
        try:
            worker.stdin.write(json.dumps(pair) + "\n")
            worker.stdin.flush()
        except OSError:
            return None
        return self._listen(worker, self.seconds)

    def _start(self) -> Popen[str] | None:
        """A child that is ready to be asked; None where it ended before it was."""
        command = isolated_python(str(Path(__file__).with_name("_slow_worker.py")), str(self.megabytes))
        self._worker = Popen(
            command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True, bufsize=1, env=without_secrets()
        )
        said = self._listen(self._worker, _START_SECONDS)
        if said == "missing":
            self._stop()
            raise MissingExtra("the slow path needs math-verify", "math")
        return self._worker if said == "ready" else None

    def _listen(self, worker: Popen[str], seconds: float) -> str | None:
        """A line of the child's, nothing where none came in time, or None where none will come."""
        assert worker.stdout is not None
        if not is_readable(worker.stdout, seconds):
            return ""
        line = worker.stdout.readline()
        return line.strip() if line.endswith("\n") else None

    def _stop(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker.communicate()
            self._worker = None


def _is_prose(answer: str) -> bool:
    """Words: a grader of formulas finds some number among them, and calls that the answer."""
    return len(answer) > _LONGEST_FORMULA or _WORD.search(_COMMAND.sub(" ", answer)) is not None


def _read(store: str | os.PathLike[str]) -> Iterable[tuple[tuple[str, str], bool]]:
    try:
        document = parse(text_of(Path(store), InvalidValue))
        if document["format"] != _FORMAT:
            raise ValueError("not a file of verdicts")
        rows = [((str(a), str(b)), verdict) for a, b, verdict in document["verdicts"]]
    except InvalidValue:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidValue(f"{store} cannot be read as verdicts: {error}") from None
    if not all(isinstance(verdict, bool) for _, verdict in rows):
        raise InvalidValue(f"{store} cannot be read as verdicts: they must be true or false")
    return rows
