"""Policies to watch, shared by the tests of monitors: votes of one path each, ordered by a number of their own."""

from __future__ import annotations

import numpy as np

import demur as dm
from demur.voting.key import Column


def votes_of(second):
    return dm.vote([["a"]] * len(second), tie_break=(Column(second), "none"))


def policy_of(second, right, **how):
    ids = [f"c{row}" for row in range(len(second))]
    votes = dm.vote([["a"]] * len(second), tie_break=(Column(second), "none"), ids=ids)
    return dm.calibrate(votes, right, **(how or {"alpha": 0.1}))


def drawn(seed, n=200, wrong=0.4):
    """Keys that know nothing of the labels, so that the true rate above a threshold s is wrong · (1 − s)."""
    rng = np.random.default_rng(seed)
    return rng.random(n), rng.random(n) > wrong


def keys(second):
    """The keys of such votes."""
    return np.column_stack([np.ones(len(second)), second])


def same(one, other):
    """Whether two monitors are in the same state, to the last bit."""
    return one.document() == other.document()
