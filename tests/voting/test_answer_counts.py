"""Shares of many pools at once: the same numbers as those of one pool, to the last bit."""

from __future__ import annotations

import numpy as np

from demur.voting.answer_counts import rounded


def test_shares_are_rounded_as_python_rounds_them():
    whole = np.random.default_rng(5).integers(10**12, size=20_000)
    halves = (whole + 0.5) / 1e12
    shares = np.concatenate([halves, np.nextafter(halves, 0), np.nextafter(halves, 1), whole / 1e12, [0.0, 1.0]])
    assert rounded(shares).tolist() == [round(share, 12) for share in shares.tolist()]
    assert rounded(shares).tolist() != np.round(shares, 12).tolist()
