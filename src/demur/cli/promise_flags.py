"""The promises that flags ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import demur
from demur.cli.completion import FALLBACKS
from demur.cli.flag_groups import flags_given
from demur.errors import InvalidValue

if TYPE_CHECKING:
    from demur.calibration import Guarantee


def guarantees_of(
    alpha: Sequence[Any] | None,
    delta: Any,
    smoothed: bool,
    seed: int | None,
    *,
    selective: bool = False,
    simultaneous: bool = False,
    chosen_from: int | None = None,
) -> list[Guarantee]:
    """The guarantees that the flags ask for."""
    levels, chosen = alpha or [0.05], {"choices": 1 if chosen_from is None else chosen_from}
    asked = flags_given(selective=selective, smoothed=smoothed, simultaneous=simultaneous)
    if len(asked) > 1:
        raise InvalidValue(f"{' and '.join(asked)} are two guarantees; choose one")
    if selective and delta is None:
        raise InvalidValue(
            "--selective promises alpha for all but a share delta of calibration sets: say which with --delta, such "
            "as --delta 0.1; for an average over batches, `demur decide --fdr` needs no delta"
        )
    if simultaneous and delta is None:
        raise InvalidValue(
            "--simultaneous promises every alpha at once for all but a share delta of calibration sets: say which with "
            "--delta, such as --delta 0.1"
        )
    if selective:
        return [demur.Selective(a, delta, **chosen) for a in levels]
    if simultaneous:
        return [demur.Simultaneous(a, delta, **chosen) for a in levels]
    if smoothed and chosen_from is not None:
        raise InvalidValue("--smoothed knows no correction for a choice: leave it or --chosen-from out")
    if delta is not None and smoothed:
        raise InvalidValue("--delta and --smoothed are two guarantees; choose one")
    if delta is not None:
        return [demur.HighProbability(a, delta, **chosen) for a in levels]
    return [demur.Smoothed(a, seed) for a in levels] if smoothed else [demur.Marginal(a, **chosen) for a in levels]


def grouped(guarantees: Sequence[Guarantee], small_groups: str | None, *, by_group: bool) -> list[Guarantee]:
    """The guarantees, for each group by itself where the flags say so."""
    if small_groups is not None and not by_group:
        raise InvalidValue("--small-groups says what becomes of small groups: give --by-group with it")
    if not by_group:
        return list(guarantees)
    if small_groups not in (None, *FALLBACKS):
        raise InvalidValue(f"--small-groups is one of {', '.join(FALLBACKS)}, got {small_groups!r}")
    fallback = small_groups or FALLBACKS[0]
    return [demur.Grouped(one, fallback=fallback) for one in guarantees]  # type: ignore[arg-type]


def answer_sets_of(alpha: Any, share: float | None) -> demur.AnswerSets | None:
    """The answer sets that the flags ask for."""
    if alpha is None and share is not None:
        raise InvalidValue("--set-share goes with --answer-sets: the share of problems that calibrates them")
    if alpha is None:
        return None
    return demur.AnswerSets(alpha) if share is None else demur.AnswerSets(alpha, share)
