"""Policies that a policy replaced, made of the same problems with other seeds.

Whoever keeps the seed that answers most has chosen by what the promise is about: errors exceed alpha. So a policy names
the seeds of those before it, each once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demur.errors import PolicyFileError
from demur.voting.problems import Names
from demur.voting.text_columns import DigestSet, bits_of

if TYPE_CHECKING:
    from demur.policy.policy import Policy

Seeds = Mapping[str, int]
JITTER, HOLD_OUT = "jitter", "hold_out"


def seeds_of(policy: Policy) -> Seeds:
    """The seeds that a policy was made with: of its jitter, and of what was held out."""
    jitter = policy.recipe.jitter
    known = {JITTER: None if jitter is None else jitter.seed, HOLD_OUT: policy.seen.seed}
    return {name: seed for name, seed in known.items() if seed is not None}


def replacing(new: Policy, *before: Policy) -> Policy:
    """A policy that takes the place of others: it names their seeds, if they share problems and a seed differs."""
    seeds, mine = list(new.replaced), seeds_of(new)
    for old in before:
        if _share_problems(old, new):
            theirs = seeds_of(old)
            seeds += old.replaced
            seeds += [theirs] if any(theirs[name] != mine[name] for name in theirs.keys() & mine.keys()) else []
    distinct = {tuple(sorted(one.items())): one for one in seeds}
    return replace(new, replaced=tuple(distinct.values()))


def replacing_file(new: Policy, path: str | os.PathLike[str] | None) -> Policy:
    """The same for a file that it is written to; a file that cannot be read as a policy names nothing."""
    if path is None or not Path(path).is_file() or not Path(path).stat().st_size:
        return new
    try:
        return replacing(new, type(new).load(path))
    except PolicyFileError:
        return new


def replaced_note(policy: Policy) -> str:
    """Which seeds were tried before, in words; blank if none were."""
    if not policy.replaced:
        return ""
    told = "; ".join(
        ", ".join(f"{name.replace('_', '-')} seed {seed}" for name, seed in sorted(seeds.items()))
        for seeds in policy.replaced
    )
    n = len(policy.replaced)
    return (
        f"replaces {n} {'policy' if n == 1 else 'policies'} of the same problems made with other seeds ({told}); "
        "errors exceed alpha if the seed that answers most is kept: keep the first"
    )


def replaced_of(stored: Any) -> tuple[Seeds, ...]:
    """From plain values; ValueError where they are no seeds."""
    if not isinstance(stored, list) or not all(_are_seeds(one) for one in stored):
        raise ValueError(f"`replaced` must be a list of seeds by name ({JITTER}, {HOLD_OUT}), got {stored!r:.80}")
    return tuple(stored)


def _are_seeds(one: Any) -> bool:
    return isinstance(one, dict) and all(name in (JITTER, HOLD_OUT) and type(seed) is int for name, seed in one.items())


def _share_problems(old: Policy, new: Policy) -> bool:
    """Whether some problem calibrated both: known by what is asked, or else by its id."""
    if old.seen.questions and new.seen.questions:
        return _overlap(old.seen.questions, new.seen.questions)
    return _overlap(old.seen.ids, new.seen.ids)


def _overlap(one: Names, other: Names) -> bool:
    if isinstance(other, DigestSet):
        bits = one.values if isinstance(one, DigestSet) else bits_of(one)
        return bool(other.has(bits).any())
    return not one.isdisjoint(other)
