"""Pools that a stopping rule ends, replayed or as it drew them: the columns of the paths that are left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from demur.errors import InvalidValue
from demur.pools.fields import PoolTable, spellings_of
from demur.pools.frame_table import Spellings
from demur.pools.parts import first_paths, some_of
from demur.pools.scores import scores_or_dropped
from demur.records import Pool
from demur.stopping import Stopping
from demur.voting.codes import CodedAnswers, code_answers
from demur.voting.path_scores import as_scores
from demur.voting.stopped import Stopped

_OF_PATHS = ("perplexity", "perplexity-std", "judge", "reward", "imported")
"""Scorers that look at one path at a time; any other may see the whole pool, and give fewer paths other numbers."""
_EMPTY = "empty"
"""The flag of a score that a path without text has from others: the lowest of its pool."""


@dataclass(frozen=True, eq=False)
class StoppedPools:
    """Pools and their columns where a rule ended them."""

    pools: Sequence[Pool]
    table: PoolTable
    stopping: Stopping
    """With the number of paths that a pool has at most."""
    replayed: bool
    """Whether some had more paths than are left."""


def stop_pools(
    pools: Sequence[Pool],
    table: PoolTable,
    stopping: Stopping,
    scorers: Mapping[str, Mapping[str, Any]],
    flags: Mapping[str, Mapping[str, int]],
    *,
    partial: bool,
    drawn: bool,
    say: Callable[[str], None],
) -> StoppedPools:
    """End each pool where the rule does; `partial` leaves out those that end before.

    On replay these are all that have fewer paths than the rule may want: whether they happen to be enough is a matter
    of their answers, and who is left must not be. Pools that were `drawn` under the rule may only end by its word.
    """
    coded = code_answers(table.answers)
    ended = Stopped.at(stopping, coded)
    if not partial:
        ended.refuse_short(coded.n_paths, table.ids)
    elif len(ended.short):
        rows = np.flatnonzero(ended.sizes if drawn else coded.n_paths >= (ended.stopping.most or 0))
        if not len(rows):
            ended.refuse_short(coded.n_paths, table.ids)
        told = f"note: {len(pools) - len(rows)} of {len(pools)} pools end before the rule {ended.stopping} "
        contested = "does: left out. They are the contested ones, and nothing is promised for questions like them"
        say(told + (contested if drawn else "may: left out"))
        ended, table, pools = ended.take(rows), table.take(rows), some_of(pools, rows)
        coded = coded.take(rows)
    replayed = bool((ended.sizes < coded.n_paths).any())
    if replayed and table.fields.score is not None:
        refuse_scores_of_pools([table.fields.score], scorers)
        if has_lowest_of_others(table.fields.score, flags):
            _refuse_lowest_of_others(table, coded, ended)
    fields, kept, answers = table.fields, first_paths(pools, ended.sizes), ended.rows(table.answers)
    written: Sequence[dict[str, str]]
    if isinstance(table.written, Spellings):
        written = table.written.cut(ended.sizes)
    else:
        sizes = zip(ended.sizes.tolist(), coded.n_paths.tolist(), strict=True)
        written = [
            spelt if size == before else spellings_of(pool, keys, fields)
            for pool, keys, (size, before), spelt in zip(kept, answers, sizes, table.written, strict=True)
        ]
    scores, unscored = table.scores, list[int]()
    if fields.score is not None:
        scores, unscored = scores_or_dropped(kept, fields.score, fields.unscored, in_use=fields.in_use)
    table = replace(table, answers=answers, written=written, scores=scores, unscored=tuple(unscored))
    return StoppedPools(kept, table, ended.stopping, replayed)


def refuse_ended_elsewhere(table: PoolTable, stopping: Stopping) -> None:
    """Raise where a pool did not end where its rule ends it, by the answers as they are read here."""
    coded = code_answers(table.answers)
    ended = Stopped.at(stopping, coded)
    ended.refuse_short(coded.n_paths, table.ids)
    other = np.flatnonzero(ended.sizes != coded.n_paths)
    if len(other):
        row = int(other[0])
        raise InvalidValue(
            f"{len(other)} of {len(table.ids)} pools did not end where {stopping} ends them: {table.ids[row]!r} has "
            f"{int(coded.n_paths[row])} paths, and {int(ended.sizes[row])} are enough",
            "read and compare answers as when they were drawn",
        )


def refuse_scores_of_pools(names: Sequence[str], scorers: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise where a score may be of whole pools: a rule that is replayed would see what later paths brought."""
    for name in names:
        scorer = scorers.get(name, {}).get("scorer", _OF_PATHS[0])  # nothing is known of a column of the user's own
        if scorer not in _OF_PATHS:
            raise InvalidValue(
                f"the score {name!r} looks at all paths of a pool, and fewer would have other scores: a stopping rule "
                "cannot be replayed with it",
                "choose another {score}, or sample with the rule and score what it drew",
            )


def has_lowest_of_others(name: str, flags: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether paths without text have the lowest score of their pool."""
    return any(_EMPTY in flag.split("+") for flag in flags.get(name, {}))


def _refuse_lowest_of_others(table: PoolTable, coded: CodedAnswers, ended: Stopped) -> None:
    """Raise where a path without text may have the score of one that the rule would not have drawn.

    Which paths have no text is not read here. One that has none has no answer, and the lowest score of its pool; it
    keeps that where another path that is left has it too.
    """
    scores = as_scores(table.scores, coded)
    places = np.arange(scores.shape[1])
    there, kept = (places < sizes[:, None] for sizes in (coded.n_paths, ended.sizes))
    lowest = there & (scores == np.where(there, scores, np.inf).min(axis=1, keepdims=True))
    blank, borne = (lowest & kept & mute for mute in (coded.codes < 0, coded.codes >= 0))
    odd = blank.any(axis=1) & ~borne.any(axis=1) & (lowest & ~kept).any(axis=1)
    odd[list(table.unscored)] = False
    if odd.any():
        name, row = table.fields.score, int(np.argmax(odd))
        raise InvalidValue(
            f"a path without text has the lowest {name!r} of its pool, which in {int(odd.sum())} of {len(odd)} pools "
            f"is that of a path behind the end, as in {table.ids[row]!r}: a stopping rule cannot be replayed with it",
            "choose another {score}, or sample with the rule and score what it drew",
        )
