"""From answers as people have them to one integer code per path.

A table of pools is either an integer array n × m, whose entries are keys themselves and whose negative entries mean
"no answer", or a sequence of pools, each a sequence of keys: strings, numbers, or None for "no answer" (as are blank
strings, NaN and pandas' NA and NaT). Pools may differ in size. 1 and 1.0 are one key, and "1" is another.

Codes need to tell answers apart within a pool only, so keys are numbered as they come, afresh for every few hundred
pools. Such codes have no order; where a tie falls to the smaller key, `smallest_keys` looks at the keys themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from numbers import Real
from operator import getitem
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.records import is_nothing
from demur.voting.guards import refuse_mask
from demur.voting.rows import KeyRows, pad

BLOCK_ENTRIES = 131_072  # entries of a table worked on at once: small enough to stay in a core's cache

NUMBERED_TOGETHER = 32_000  # entries that share one numbering of keys: few enough for codes of two bytes

_KEYS = (str, Real, type(None))

Rows = slice | NDArray[np.intp]


@dataclass(frozen=True)
class CodedAnswers:
    """The answers of n pools as codes; −1 is no answer, and entries past a pool's size are padding."""

    codes: NDArray[Any]
    sizes: NDArray[np.intp] | None
    """Paths per pool; None where every pool fills its row."""
    pools: Sequence[Sequence[Any]] | None
    """The keys themselves; None where codes are keys."""

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def n_paths(self) -> NDArray[np.intp]:
        return np.broadcast_to(np.intp(self.codes.shape[1]), len(self)) if self.sizes is None else self.sizes

    def blocks(self) -> Iterator[tuple[Rows, int]]:
        """Rows that have the same number of paths, a cache-sized block at a time, and that number."""
        for width in [self.codes.shape[1]] if self.sizes is None else np.unique(self.sizes).tolist():
            step = max(1, BLOCK_ENTRIES // width)
            if self.sizes is None:
                yield from ((slice(start, start + step), width) for start in range(0, len(self), step))
            else:
                rows = np.flatnonzero(self.sizes == width)
                yield from ((rows[start : start + step], width) for start in range(0, len(rows), step))

    def keys_of(self, winners: NDArray[np.int64]) -> NDArray[Any]:
        """The key behind each pool's winning code; None (or −1, where codes are keys) where there is no answer."""
        if self.pools is None:
            return winners
        if isinstance(self.pools, KeyRows):
            return np.asarray(self.pools.keys[winners])
        position = np.empty(len(self), dtype=np.intp)
        for rows, width in self.blocks():
            position[rows] = (self.codes[rows, :width] == winners[rows, None]).argmax(axis=1)
        keys = np.empty(len(self), dtype=object)
        keys[:] = list(map(getitem, self.pools, position.tolist()))
        keys[winners < 0] = None
        return keys

    def smallest_keys(self, rows: NDArray[np.intp], candidates: NDArray[np.bool_]) -> NDArray[np.int64]:
        """For each of some pools, the code of the smallest key among its candidate paths (one row of booleans each).

        Numbers come before strings, and each by value.
        """
        assert self.pools is not None
        pool_of, path_of = np.nonzero(candidates)
        if isinstance(self.pools, KeyRows):
            keys = self.pools.keys[self.codes[rows[pool_of], path_of]].tolist()
        else:
            keys = list(map(getitem, map(self.pools.__getitem__, rows[pool_of].tolist()), path_of.tolist()))
        distinct = set(keys)
        strings = {key for key in distinct if isinstance(key, str)}
        place = {key: position for position, key in enumerate([*sorted(distinct - strings), *sorted(strings)])}
        # The smallest place of each pool, found together with the path it belongs to.
        ranked = np.fromiter(map(place.__getitem__, keys), dtype=np.int64, count=len(keys)) * len(keys)
        ranked += np.arange(len(keys))
        smallest = np.minimum.reduceat(ranked, np.flatnonzero(np.diff(pool_of, prepend=-1))) % len(keys)
        return np.asarray(self.codes[rows, path_of[smallest]], dtype=np.int64)

    def take(self, rows: NDArray[np.intp]) -> CodedAnswers:
        """Some of the pools, in that order."""
        return CodedAnswers(self.codes[rows], taken(self.sizes, rows), taken(self.pools, rows))


def taken(column: Any, rows: NDArray[np.intp]) -> Any:
    """Some entries of a column, be it an array or a sequence; None where there is no column."""
    if column is None or isinstance(column, np.ndarray):
        return None if column is None else column[rows]
    if hasattr(column, "take"):  # rows, names or groups of pools, which are arrays themselves
        return column.take(rows)
    return [column[row] for row in rows.tolist()]


def code_answers(answers: Any) -> CodedAnswers:
    """Code a table of pools."""
    if isinstance(answers, KeyRows):
        return CodedAnswers(answers.padded(-1), None if answers.even else answers.sizes, answers)
    refuse_mask(answers, "answers")
    if answers is None or isinstance(answers, (str, bytes)) or not hasattr(answers, "__iter__"):
        raise InvalidValue(f"answers must be an integer array or a sequence of pools, got {answers!r:.60}")
    if isinstance(answers, np.ndarray) and answers.ndim == 2:
        if not answers.size:
            raise InvalidValue(f"answers must hold at least one pool of at least one path, got shape {answers.shape}")
        if np.issubdtype(answers.dtype, np.integer):
            if answers.dtype.itemsize == 8 and answers.max() >= 2**63 - 1:
                raise InvalidValue(f"answer codes must be below 2**63 - 1, got {answers.max()}")
            return CodedAnswers(answers, None, None)
        answers = answers.tolist()
    pools = list(answers)
    if not set(map(type, pools)) <= {list, tuple}:
        pools = [_as_pool(pool, row) for row, pool in enumerate(pools)]
    sizes = np.fromiter(map(len, pools), dtype=np.intp, count=len(pools))
    if not len(pools):
        raise InvalidValue("answers must hold at least one pool, got none")
    if not sizes.all():
        raise InvalidValue(f"every pool needs at least one path; pool {int(np.argmin(sizes))} has none")
    width = int(sizes.max())
    step = max(1, NUMBERED_TOGETHER // width)
    codes = np.concatenate([_code(pools[start : start + step]) for start in range(0, len(pools), step)])
    if (sizes == width).all():
        return CodedAnswers(codes.reshape(-1, width), None, pools)
    return CodedAnswers(pad(codes, sizes, -1), sizes, pools)


def _as_pool(pool: Any, row: int) -> list[Any]:
    if isinstance(pool, (str, bytes)) or not hasattr(pool, "__iter__"):
        raise InvalidValue(f"each pool must be a sequence of answers; pool {row} is {pool!r}")
    return pool.tolist() if isinstance(pool, np.ndarray) else list(pool)


def _code(pools: list[Any]) -> NDArray[Any]:
    """The codes of some pools, laid end to end: keys numbered in order of first appearance."""
    code: defaultdict[Any, int] = defaultdict(count().__next__, {None: _NONE_AS_BYTE})
    try:
        codes = _as_bytes(code, pools)
        if codes is None:
            code[None] = -1
            places = map(code.__getitem__, chain.from_iterable(pools))
            codes = np.fromiter(places, dtype=np.int32, count=sum(map(len, pools)))
    except TypeError:
        every = chain.from_iterable(pools)
        # A tuple has a hash of its own and none where it holds a list, so what is no key at all is looked for too.
        offender = next(answer for answer in every if answer.__hash__ is None or not isinstance(answer, _KEYS))
        raise InvalidValue(f"an answer must be a string, a number or None, got {offender!r}") from None
    nothing = _codes_of_nothing(code)
    if 0 in code or 1 in code:
        refuse_merged(pools)
    return np.where(np.isin(codes, nothing), -1, codes) if nothing else codes


def _codes_of_nothing(code: dict[Any, int]) -> list[int]:
    """The codes of keys that stand for no answer; raises where something is no key at all."""
    nothing: list[int] = []
    for kind in set(map(type, code)) - {int, bool, type(None)}:
        keys = [key for key in code if type(key) is kind]
        blank = [key for key in keys if is_no_answer(key)]
        if not issubclass(kind, _KEYS) and len(blank) < len(keys):
            offender = next(key for key in keys if not is_no_answer(key))
            raise InvalidValue(f"an answer must be a string, a number or None, got {offender!r}")
        nothing += [code[key] for key in blank]
    return nothing


def is_no_answer(answer: Any) -> bool:
    """Whether a value stands for no answer: a blank text, None, NaN, or what a library of tables has for nothing."""
    return not answer or answer.isspace() if isinstance(answer, str) else is_nothing(answer)


def refuse_merged(pools: Iterable[Sequence[Any]]) -> None:
    """Raise where a pool holds a boolean and the number equal to it, which a dictionary takes for one key."""
    for pool in pools:
        booleans = {answer for answer in pool if isinstance(answer, bool)}
        for answer in pool if booleans else ():
            if answer in booleans and not isinstance(answer, bool):
                raise InvalidValue(
                    f"a pool holds the answers {bool(answer)} and {answer!r}, which Python takes for equal; write them "
                    "as strings"
                )


_NONE_AS_BYTE = 255  # reads as −1 in a signed byte


def _as_bytes(code: defaultdict[Any, int], pools: list[Any]) -> NDArray[np.int8] | None:
    """The codes as bytes, the fastest way out of Python objects; None where there are too many keys for that."""
    try:
        packed = bytes(map(code.__getitem__, chain.from_iterable(pools)))
    except ValueError:
        return None
    return np.frombuffer(packed, dtype=np.int8) if len(code) <= np.iinfo(np.int8).max else None
