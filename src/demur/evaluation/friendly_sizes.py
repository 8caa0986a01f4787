"""Which numbers of calibration votes spend alpha well: those at which the rank of the threshold rises.

Between two of them further labels buy nothing. Where 1/alpha is whole they are the n with (n + 1)·alpha whole, at which
`Marginal` spends alpha to the last bit: 199, and not 200, for 0.05.
"""

from __future__ import annotations

from demur.calibration import Guarantee, Marginal, Smoothed
from demur.calibration.guarantee import RankGuarantee


def ranks_of(guarantee: Guarantee, n: int) -> dict[int, float]:
    """The rank with n votes; both of a `Smoothed` one, which is not drawn yet while it is planned."""
    if isinstance(guarantee, Smoothed):
        spend = (n + 1) * guarantee.level
        more = float(spend - int(spend))
        return {int(spend): 1 - more, int(spend) + 1: more} if more else {int(spend): 1.0}
    return {guarantee.rank(n): 1.0} if isinstance(guarantee, RankGuarantee) else {}


def friendly_n(guarantee: Guarantee, near: int) -> int:
    """The n nearest to a number at which the rank rises: where (n + 1)·alpha is whole, for `Marginal(1/20)` say."""
    step = _stepping(guarantee)
    if step is None:
        return max(near, guarantee.n_needed())
    k = step.rank(near)
    below, above = step.n_of_rank(k, near) if k else 0, step.n_of_rank(k + 1, near)
    return above if not below or above - near < near - below else below


def is_friendly(guarantee: Guarantee, n: int) -> bool:
    """Whether the rank would be lower with one vote fewer; any n is friendly to what rounds nothing."""
    step = _stepping(guarantee)
    return isinstance(guarantee, Smoothed) or step is None or not step.reaches(step.rank(n), n - 1)


def _stepping(guarantee: Guarantee) -> RankGuarantee | None:
    """The guarantee whose rank says which n are friendly; None where there is no rank."""
    if isinstance(guarantee, Smoothed):
        return Marginal(guarantee.level)  # type: ignore[arg-type]
    return guarantee if isinstance(guarantee, RankGuarantee) else None
