"""Calibration votes as a policy file holds them: rows of a key and counts, by stratum."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.calibration.down_to import refuse_labels_below
from demur.calibration.guarantee import without_infinity
from demur.evidence.counts import Counts, Evidence, Floats, ThresholdKey
from demur.evidence.strata import Strata, Stratum
from demur.policy.file import COLUMNS, Document
from demur.policy.plain_values import is_count, is_number, typed

MOST_PATHS = 1 << 20
MOST_ROWS = 100_000
"""More rows than these stand in a file as packed columns."""
_TYPES = {1: "u1", 2: "u2", 4: "u4", 8: "i8"}
"""What packed counts may be, by their bytes; before schema 4 all were of 8."""
_ROUNDING = 1e-9


def counts_of(strata: Strata) -> Document | list[Document]:
    """Rows of (key, right, wrong), by number of paths; with how many are unlabelled, in evidence where some are.

    Where votes have groups or weights, a list of strata, each with what it has of them.
    """
    weighted = any(part.weighted for part in strata.parts.values())
    if not strata.groups and not weighted:
        return {str(size): rows_of(part) for size, part in strata.by_size.items()}
    return [
        {
            **({"groups": list(groups)} if groups else {}),
            "n_paths": size,
            "rows": rows_of(part),
            **({"weights": _weights(part)} if part.weighted else {}),
        }
        for (groups, size), part in strata.parts.items()
    ]


def rows_of(evidence: Evidence) -> list[list[Any]] | Document:
    """Rows of a key and counts; columns if they are very many, counts in as few bytes as the largest needs."""
    counts = [evidence.right, evidence.wrong]
    counts += [] if evidence.unlabelled is None else [evidence.unlabelled]
    if len(evidence.levels) > MOST_ROWS:
        return _packed([evidence.levels.astype("<f8"), *map(_narrow, counts)])
    columns = zip(evidence.levels.tolist(), *(column.tolist() for column in counts), strict=True)
    return [[*without_infinity(level), *numbers] for level, *numbers in columns]


def _packed(columns: Iterable[NDArray[Any]]) -> Document:
    return {COLUMNS: [base64.b64encode(column.tobytes()).decode("ascii") for column in columns]}


def _narrow(counts: Counts) -> NDArray[Any]:
    """Counts in the narrowest type that holds them all."""
    highest = int(counts.max())
    return counts.astype(next(f"<{kind}" for kind in _TYPES.values() if highest <= np.iinfo(kind).max))


def _weights(evidence: Evidence) -> list[list[float]] | Document:
    """For each row, the summed weights of its right votes and of the others, and the sum of their squares."""
    sums = (evidence.right_weight, evidence.not_right_weight, evidence.squared_weight)
    columns = [column for column in sums if column is not None]
    if len(evidence.levels) > MOST_ROWS:
        return _packed(column.astype("<f8") for column in columns)
    return np.stack(columns, axis=1).tolist()  # type: ignore[no-any-return]


def strata_of(document: Document, name: str, *, width: int, by_chance: bool) -> Strata:
    if document.get(name) and isinstance(document[name], list):
        return _strata_of_list(document[name], name, width=width, by_chance=by_chance)
    parts = typed(document, name, dict)
    sizes = [int(size) for size in parts if size.isascii() and size.isdigit() and len(size) < 9]
    ascending = sizes and list(parts) == [str(size) for size in sorted(set(sizes))]
    if not ascending or not 1 <= sizes[0] <= sizes[-1] <= MOST_PATHS:
        raise ValueError(f"`{name}` must hold rows by number of paths, ascending, got {list(parts)!r:.60}")
    return Strata({((), size): evidence_of(parts[str(size)], width=width) for size in sizes}, by_chance)


def _strata_of_list(parts: list[Any], name: str, *, width: int, by_chance: bool) -> Strata:
    read: dict[Stratum, Evidence] = {}
    for part in parts:
        if not isinstance(part, dict) or not set(part) <= {"groups", "n_paths", "rows", "weights"}:
            raise ValueError(f"`{name}` must hold strata with groups, n_paths, rows and weights, got {part!r:.60}")
        groups, size = part.get("groups", []), part.get("n_paths", 0)
        named = isinstance(groups, list) and all(isinstance(group, str) and group.strip() for group in groups)
        if not named or groups != sorted(set(groups)):
            raise ValueError(f"groups must be texts, each once and in order, got {groups!r:.60}")
        if not (is_count(size) and 1 <= size <= MOST_PATHS):
            raise ValueError(f"n_paths of a stratum must be a number of paths, got {size!r:.60}")
        evidence = evidence_of(part.get("rows"), width=width)
        if "weights" in part:
            evidence = _weighted(evidence, part["weights"])
        read[tuple(groups), size] = evidence
    if list(read) != sorted(read) or len(read) < len(parts):
        raise ValueError(f"the strata of `{name}` must stand in order, each once")
    if len({part.weighted for part in read.values()}) > 1:
        raise ValueError(f"either all strata of `{name}` have weights or none")
    if all(part.weighted and part.total_weight == 0 for part in read.values()):
        raise ValueError("weights must not all be 0")
    return Strata(read, by_chance)


def _weighted(evidence: Evidence, rows: Any) -> Evidence:
    """Evidence with the weights of its rows, which must be there where votes are and nowhere else."""
    right, not_right, squared = _weight_columns(rows, len(evidence.levels))
    if (right[evidence.right == 0] > 0).any() or (not_right[evidence.not_right == 0] > 0).any():
        raise ValueError("weights must be 0 where no vote is")
    whole, votes = (right + not_right) ** 2, evidence.right + evidence.not_right
    if (squared > whole * (1 + _ROUNDING)).any() or (squared < whole / votes * (1 - _ROUNDING)).any():
        raise ValueError("the squares of weights do not fit their sums")
    return replace(evidence, right_weight=right, not_right_weight=not_right, squared_weight=squared)


def _weight_columns(rows: Any, n: int) -> Floats:
    """Three columns of weights, from rows or packed."""
    if isinstance(rows, dict):
        held = _bytes_of(rows, (3,), "weights")
        if any(len(part) != 8 * n for part in held):
            raise ValueError(f"the columns of weights must hold a number for each of {n} rows of evidence")
        columns = np.array([np.frombuffer(part, dtype="<f8") for part in held], dtype=np.float64)
        if not (np.isfinite(columns) & (columns >= 0)).all():
            raise ValueError("weights must be numbers, none of them negative")
        return columns
    triples = isinstance(rows, list) and all(isinstance(row, list) and len(row) == 3 for row in rows)
    if not triples or len(rows) != n:
        raise ValueError(f"weights must hold three numbers for each row of evidence, got {rows!r:.60}")
    if not all(is_number(value) and value >= 0 for row in rows for value in row):
        raise ValueError("weights must be numbers, none of them negative")
    return np.array(rows, dtype=np.float64).T


def _bytes_of(stored: Document, widths: tuple[int, ...], name: str) -> list[bytes]:
    """The bytes of packed columns, as many as one of `widths`."""
    packed = stored.get(COLUMNS)
    if not isinstance(packed, list) or len(packed) not in widths or not all(isinstance(part, str) for part in packed):
        raise ValueError(f"{name} must be rows, or {' or '.join(map(str, widths))} packed columns")
    try:
        return [base64.b64decode(part, validate=True) for part in packed]
    except ValueError:  # binascii.Error is one, and so is what is no ASCII
        raise ValueError(f"the columns of {name} are damaged") from None


def _unpacked(stored: Document, width: int) -> Evidence:
    """Evidence whose columns stand as they are; ValueError where they make none."""
    first, *others = _bytes_of(stored, (3, 4), "its evidence")
    if len(first) % (8 * width):
        raise ValueError("the columns of its evidence are damaged")
    levels = np.frombuffer(first, dtype="<f8").astype(np.float64).reshape(-1, width)
    if not len(levels) or any(len(part) not in (size * len(levels) for size in _TYPES) for part in others):
        raise ValueError("the columns of its evidence must be of one length")
    counts = [np.frombuffer(part, dtype=f"<{_TYPES[len(part) // len(levels)]}").astype(np.int64) for part in others]
    if min(int(column.min()) for column in counts) < 0 or not np.logical_or.reduce(counts).all():
        raise ValueError("counts of its evidence must be whole numbers >= 0, not all 0")
    if not ((levels[:, 0] >= 0) & (levels[:, 0] <= 1)).all():
        raise ValueError("confidences of its evidence must lie in [0, 1]")
    if np.isnan(levels).any() or (levels == math.inf).any():
        raise ValueError("tie-breaks of its evidence must be numbers")
    rises = np.zeros(len(levels) - 1, dtype=np.bool_)
    for column in levels.T[::-1]:
        rises = (column[1:] > column[:-1]) | ((column[1:] == column[:-1]) & rises)
    if not rises.all():
        raise ValueError("its evidence must be at least one row, each level once and in order")
    return Evidence(levels, counts[0], counts[1], counts[2] if len(counts) == 3 else None)


def evidence_of(rows: Any, *, width: int) -> Evidence:
    if isinstance(rows, dict):
        return _unpacked(rows, width)
    if not isinstance(rows, list):
        raise ValueError(f"its evidence must be a list of rows, got {rows!r:.60}")
    counted = 3 if all(isinstance(row, list) and len(row) == width + 3 for row in rows) else 2
    for row in rows:
        if not isinstance(row, list) or len(row) != width + counted:
            raise ValueError(f"each row of its evidence must hold {width + counted} numbers, got {row!r:.60}")
        if not all(map(is_count, row[-counted:])) or sum(row[-counted:]) == 0:
            raise ValueError(f"counts of its evidence must be whole numbers >= 0, not all 0, got {row!r:.60}")
        if not (is_number(row[0]) and 0 <= row[0] <= 1):
            raise ValueError(f"confidences of its evidence must lie in [0, 1], got {row!r:.60}")
        if not all(entry is None or is_number(entry) for entry in row[1:-counted]):
            raise ValueError(f"tie-breaks of its evidence must be numbers, got {row!r:.60}")
    levels = [tuple(-math.inf if entry is None else float(entry) for entry in row[:-counted]) for row in rows]
    if not rows or any(low >= high for low, high in pairwise(levels)):
        raise ValueError("its evidence must be at least one row, each level once and in order")
    right, wrong, *unlabelled = (
        np.array([row[at] for row in rows], dtype=np.int64) for at in range(width, width + counted)
    )
    return Evidence(np.array(levels, dtype=np.float64), right, wrong, unlabelled[0] if unlabelled else None)


def down_to_document(key: ThresholdKey) -> list[float | None]:
    """A key without what is infinite behind it; null where there was nothing to break a tie by."""
    return without_infinity(bound for bound in key if bound < math.inf)


def down_to_of(stored: Any, evidence: Evidence) -> ThresholdKey:
    """The key at which labelling ended, of votes that it fits; ValueError where it does not."""
    width = evidence.levels.shape[1]
    if not isinstance(stored, list) or not 1 <= len(stored) <= width:
        raise ValueError(f"`down_to` must be a key of up to {width} numbers, got {stored!r:.60}")
    if not is_number(stored[0]) or not 0 <= stored[0] <= 1:
        raise ValueError(f"the confidence of `down_to` must lie in [0, 1], got {stored!r:.60}")
    if not all(entry is None or is_number(entry) for entry in stored[1:]):
        raise ValueError(f"tie-breaks of `down_to` must be numbers, got {stored!r:.60}")
    if not evidence.n_unlabelled:
        raise ValueError("`down_to` says where labelling ended, and all of its votes are labelled")
    bounds = [-math.inf if entry is None else float(entry) for entry in stored]
    key = (*bounds, *[math.inf] * (width - len(bounds)))
    refuse_labels_below(evidence, key)
    return key
