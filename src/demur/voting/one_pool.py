"""The vote of one pool, in plain Python: the same numbers as the table's, to the last bit, at a fraction of the cost.

Weights and exact sums are the table's own; only the choice of the winner is written here a second time, and a test
holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from demur.errors import InvalidValue
from demur.records import Vote
from demur.voting._exact_sums import grid, on_grid
from demur.voting._tally import CONFIDENCE_DECIMALS, TIE_WIDTH
from demur.voting.codes import CodedAnswers, is_no_answer, refuse_merged
from demur.voting.guards import refuse_booleans
from demur.voting.key import Beside, Jitter, Share, keys_of
from demur.voting.recipe import DROP, Recipe, Unscored
from demur.voting.sources import sources_of
from demur.voting.weights import Uniform

_ONE_ROW = slice(0, 1)


def vote_one(
    recipe: Recipe,
    answers: Sequence[Any],
    scores: Sequence[float] | None = None,
    *,
    id: str | None = None,  # noqa: A002
    question: str | None = None,
    folded: str | None = None,
    unscored: Unscored = None,
    beside: Beside = Beside(),  # noqa: B008 - frozen
) -> Vote:
    """The vote of one pool of keys (None: no answer), made the way `recipe` says.

    `question` is the digest of the question, and `folded` that of the folded one: jitter is drawn from them. `unscored`
    says what becomes of a score that is None; `beside` holds what else the key looks at.
    """
    keys = keys_in(recipe, answers)
    width = len(keys)
    if not width:
        raise InvalidValue("every pool needs at least one path; pool 0 has none")
    lacking = unscored is not None and scores is not None and any(score is None for score in scores)
    dropped = lacking and unscored == DROP
    if lacking and scores is not None:
        scores = [0.0 if dropped else unscored if score is None else score for score in scores]
        keys = [None] * width if dropped else keys
    row = None if scores is None else _row(scores, width)
    whole = [grid(width)] * width
    if not isinstance(recipe.weight, Uniform):
        if row is None:
            raise InvalidValue(f"{recipe.weight.name} weights need scores; give them, or use uniform weights")
        whole = on_grid(recipe.weights(row, _ONE_ROW))[0].tolist()
    tally, support = count(keys, whole)
    total = sum(whole)
    winner = _winner(keys, whole, tally, support, total)
    confidence = share_of(max(tally.values(), default=0.0), total)
    sources = sources_of(1, [question], [id], None if folded is None else [folded])
    if all(type(part) in (Share, Jitter) for part in recipe.key):
        key = tuple(float(part.draw(sources)[0]) if isinstance(part, Jitter) else confidence for part in recipe.key)
    else:
        codes = {key: code for code, key in enumerate(tally)}
        table = CodedAnswers(np.array([[-1 if key is None else codes[key] for key in keys]]), None, None)
        won = np.array([-1 if winner is None else codes[winner]])
        known = (table, won, np.array([confidence]), row, sources)
        counted = beside.counted(*known, recipe.needs, recipe.origin)
        key = tuple(keys_of(recipe.key, counted)[0].tolist())
    return Vote(
        answer=winner,
        confidence=confidence,
        unanimous=None not in keys and len(support) == 1,
        **in_order(tally, support, winner, width),
        total=total / grid(width),
        n_paths=width,
        key=key,
        id=id,
        unscored=dropped,
    )


def keys_in(recipe: Recipe, answers: Sequence[Any]) -> list[Any]:
    """The answers of one pool as the recipe takes them; None where a path has none."""
    keys = [_key(answer, coded=recipe.coded) for answer in answers]
    refuse_merged([keys])
    return keys


def share_of(tally: float, total: float) -> float:
    """A share of the vote, rounded as numpy rounds: never smaller for a larger tally."""
    scale = 10.0**CONFIDENCE_DECIMALS
    return round(tally / total * scale) / scale


def key_order(key: Any) -> tuple[bool, Any]:
    """What ranks keys where nothing else tells them apart, the smallest first."""
    return isinstance(key, str), key


def count(keys: Sequence[Any], whole: Sequence[float]) -> tuple[dict[Any, float], dict[Any, int]]:
    """The tally and the number of paths of each answer; `whole` are weights on the grid, whose sums are exact."""
    tally: dict[Any, float] = {}
    support: dict[Any, int] = {}
    for key, weight in zip(keys, whole, strict=True):
        if key is not None:
            tally[key] = tally.get(key, 0.0) + weight
            support[key] = support.get(key, 0) + 1
    return tally, support


def in_order(tally: Mapping[Any, float], support: Mapping[Any, int], winner: Any, width: int) -> dict[str, Any]:
    """Tally, in units of the largest weight, and support; the winner first, then by tally, paths and key."""
    order, one = list(support), grid(width)
    if len(order) > 1:
        order.sort(key=lambda key: (key != winner, -tally[key], -support[key], *key_order(key)))
    return {"tally": {key: tally[key] / one for key in order}, "support": {key: support[key] for key in order}}


def as_written(
    pool: Sequence[Any],
    codes: Sequence[int],
    whole: Sequence[float],
    winner: Any,
    spelled: Mapping[Any, str] | None,
) -> tuple[dict[Any, float], dict[Any, int]]:
    """`in_order` of a pool whose codes say which paths have an answer, its answers as they are `spelled`."""
    keys = [key if code >= 0 else None for key, code in zip(pool, codes, strict=True)]
    counted = in_order(*count(keys, whole), winner, len(whole))
    tally, support = counted["tally"], counted["support"]
    if spelled is None:
        return tally, support
    return {spelled[key]: votes for key, votes in tally.items()}, {spelled[key]: n for key, n in support.items()}


def _winner(
    keys: Sequence[Any], whole: Sequence[float], tally: dict[Any, float], support: dict[Any, int], total: float
) -> Any:
    """The tie rule of `_tally`: among near-equal tallies most paths, largest single weight, smallest key."""
    if not tally:
        return None
    near = max(tally.values()) - TIE_WIDTH * total
    tied = [key for key, votes in tally.items() if votes >= near]
    if len(tied) == 1:
        return tied[0]
    heaviest: dict[Any, float] = {}
    for key, weight in zip(keys, whole, strict=True):
        heaviest[key] = max(heaviest.get(key, 0.0), weight)
    return min(tied, key=lambda key: (-support[key], -heaviest[key], *key_order(key)))


def _key(answer: Any, *, coded: bool) -> Any:
    if isinstance(answer, np.generic):
        answer = answer.item()
    if is_no_answer(answer):
        return None
    if coded and isinstance(answer, int):
        return None if answer < 0 else answer
    if coded or not isinstance(answer, (str, Real)):
        wanted = "an integer code" if coded else "a string, a number or None"
        raise InvalidValue(f"an answer must be {wanted}, got {answer!r}")
    return answer


def _row(scores: Sequence[float], width: int) -> Any:
    refuse_booleans(scores, "scores")
    try:
        row = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValue(f"scores must be numbers, one per path: {error}") from None
    if row.shape != (width,):
        raise InvalidValue(f"scores must have one number per path, {width} of them, got shape {row.shape}")
    finite = np.isfinite(row)
    if not finite.all():
        path = int(np.argmin(finite))
        raise InvalidValue(f"scores must be finite; pool 0 has {row[path]} at path {path}")
    return row[None]
