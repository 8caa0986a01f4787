"""From answers as people have them to one integer code per path.

A table of pools is either an integer array n × m, whose entries are keys themselves and whose negative entries mean
"no answer", or a sequence of pools, each a sequence of keys: strings, numbers, or None for "no answer" (NaN and
blank strings too). Pools may differ in size. Codes follow the sorted order of the keys, so they never depend on the
order of paths or pools.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.errors import InvalidValue

BLOCK_ENTRIES = 131_072  # entries of a table worked on at once: small enough to stay in a core's cache

Rows = slice | NDArray[np.intp]


@dataclass(frozen=True)
class CodedAnswers:
    """The answers of n pools as codes; −1 is no answer, and entries past a pool's size are padding."""

    codes: NDArray[Any]
    sizes: NDArray[np.intp] | None
    """Paths per pool; None where every pool fills its row."""
    keys: Sequence[Any] | None
    """What each code stands for; None where codes are keys themselves."""

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def n_paths(self) -> NDArray[np.intp]:
        if self.sizes is not None:
            return self.sizes
        return np.full(len(self.codes), self.codes.shape[1], dtype=np.intp)

    def blocks(self) -> Iterator[tuple[Rows, int]]:
        """Rows that have the same number of paths, a cache-sized block at a time, and that number."""
        if self.sizes is None:
            width = self.codes.shape[1]
            step = max(1, BLOCK_ENTRIES // width)
            for start in range(0, len(self.codes), step):
                yield slice(start, start + step), width
            return
        for width in np.unique(self.sizes).tolist():
            rows = np.flatnonzero(self.sizes == width)
            step = max(1, BLOCK_ENTRIES // width)
            for start in range(0, len(rows), step):
                yield rows[start : start + step], width

    def decode(self, winners: NDArray[np.int64]) -> NDArray[Any]:
        """Keys in place of codes; None (or −1, where codes are keys) where there is no answer."""
        if self.keys is None:
            return winners
        lookup = np.empty(len(self.keys) + 1, dtype=object)
        lookup[: len(self.keys)] = self.keys  # a winner of −1 finds the None at the end
        return lookup[winners]


def is_missing(answer: Any) -> bool:
    """None, NaN and blank strings are not answers."""
    return answer is None or answer != answer or (isinstance(answer, str) and not answer.strip())


def code_answers(answers: Any) -> CodedAnswers:
    """Code a table of pools."""
    if isinstance(answers, np.ndarray) and answers.ndim == 2:
        if not answers.size:
            raise InvalidValue(f"answers must hold at least one pool of at least one path, got shape {answers.shape}")
        if np.issubdtype(answers.dtype, np.integer):
            if answers.dtype == np.uint64 and answers.max() >= 2**63:
                raise InvalidValue(f"answer codes must be below 2**63, got {answers.max()}")
            return CodedAnswers(answers, None, None)
        width = answers.shape[1]
        codes, keys = _code(answers.ravel().tolist())
        return CodedAnswers(codes.reshape(-1, width), None, keys)
    pools = [pool if isinstance(pool, (list, tuple)) else _as_pool(pool, row) for row, pool in enumerate(answers)]
    sizes = np.fromiter(map(len, pools), dtype=np.intp, count=len(pools))
    if not len(pools):
        raise InvalidValue("answers must hold at least one pool, got none")
    if not sizes.all():
        raise InvalidValue(f"every pool needs at least one path; pool {int(np.argmin(sizes))} has none")
    codes, keys = _code(list(chain.from_iterable(pools)))
    width = int(sizes.max())
    if (sizes == width).all():
        return CodedAnswers(codes.reshape(-1, width), None, keys)
    return CodedAnswers(pad(codes, sizes, -1), sizes, keys)


def pad(flat: NDArray[Any], sizes: NDArray[np.intp], filler: float) -> NDArray[Any]:
    """Pools laid end to end, as rows of equal width."""
    width = int(sizes.max())
    table = np.full((len(sizes), width), filler, dtype=flat.dtype)
    table[np.arange(width) < sizes[:, None]] = flat
    return table


def _as_pool(pool: Any, row: int) -> list[Any]:
    if isinstance(pool, (str, bytes)) or not hasattr(pool, "__iter__"):
        raise InvalidValue(f"each pool must be a sequence of answers; pool {row} is {pool!r}")
    return pool.tolist() if isinstance(pool, np.ndarray) else list(pool)


def _code(flat: list[Any]) -> tuple[NDArray[np.int32], list[Any]]:
    try:
        distinct = set(flat)
    except TypeError:
        offender = next(a for a in flat if getattr(a, "__hash__", None) is None)
        raise InvalidValue(f"an answer must be a string, a number or None, got {offender!r}") from None
    for answer in distinct:
        if not (answer is None or isinstance(answer, (str, Real))):
            raise InvalidValue(f"an answer must be a string, a number or None, got {answer!r}")
    missing = [answer for answer in distinct if is_missing(answer)]
    keys = sorted(distinct.difference(missing), key=lambda key: (isinstance(key, str), key))
    code: dict[Any, int] = {key: position for position, key in enumerate(keys)}
    code.update(dict.fromkeys(missing, -1))
    return np.fromiter(map(code.__getitem__, flat), dtype=np.int32, count=len(flat)), keys
