"""Stopping rules in a policy: which pools it takes, and what it says of their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from demur.errors import PipelineMismatch
from demur.stopping import Stopping

if TYPE_CHECKING:
    from demur.policy.policy import Policy


def refuse_ended_elsewhere(stopping: Stopping, keys: Sequence[Any]) -> None:
    """Raise where a pool did not end where the rule ends it, by its own answers in order of index."""
    enough = stopping.size(keys)
    if enough == len(keys):
        return
    wanted = "more than that" if enough is None else f"its first {enough}"
    raise PipelineMismatch([f"sampling.stopping is {stopping} in the policy, and of these {len(keys)} paths {wanted}"])


def told_stopping(policy: Policy) -> str:
    """By which rule paths are drawn, and how many that makes, in words; blank where there is none."""
    stopping = policy.stopping
    if stopping is None:
        return ""
    pools = sum(policy.sizes.values())
    mean = sum(size * many for size, many in policy.sizes.items()) / pools
    return (
        f"Paths are drawn in waves of {stopping.wave} until {stopping.rule.spec} stops, at most {stopping.most}: "
        f"{mean:.1f} on average in calibration. The rule is part of the policy, in use as in calibration."
    )
