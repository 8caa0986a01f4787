"""Canaries: questions of a run, whose old pools are compared with new ones of the model that is there now."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from demur.errors import InvalidValue
from demur.monitoring import CanaryMonitor
from demur.monitoring.agreement import MOST_PATHS
from demur.policy.policy import Policy
from demur.pools.source import PoolSource
from demur.records import Problem

Answers = Sequence[str | None]


@dataclass(frozen=True)
class OldPool:
    """What a question came to in the run."""

    problem: Problem
    key: tuple[float, ...]
    answers: Answers
    """By the keys under which answers are compared, one per path."""

    def beside(self, new: Answers) -> tuple[Answers, Answers] | None:
        """The answers of this pool and of a new one; None where there are too many to compare."""
        return (self.answers, new) if len(self.answers) == len(new) <= MOST_PATHS else None


@dataclass(frozen=True)
class CanaryQuestions:
    """The questions of a run that may be asked again, in an order that knows nothing of their pools."""

    pools: Mapping[str, OldPool]
    order: tuple[str, ...]

    @classmethod
    def of(cls, source: PoolSource, policy: Policy) -> CanaryQuestions:
        """Of a run that was sampled, read and scored as the policy's own; raises PipelineMismatch where it was not.

        Pools of another size than are drawn now are left out, and so are questions that the key was fitted on. Of
        problems that ask the same, one is asked again: their paths have the same seeds, and would come out alike.
        """
        voted = policy.vote(source, labelled=False)
        policy.check(voted.votes)
        fitted, answers = CanaryMonitor(policy).fitted_on, voted.table.answers if voted.table is not None else []
        pools = {
            pool.problem.id: OldPool(pool.problem, tuple(map(float, key)), tuple(row))
            for pool, key, row in zip(source.pools, voted.votes.key, answers, strict=True)
            if (len(pool.paths) == policy.n_paths or policy.stopping is not None)
            and pool.problem.question
            and pool.problem.id not in fitted
        }
        if not pools:
            raise InvalidValue(
                f"no question of this run can be asked again: none has a text and {policy.n_paths} paths",
                "name the run that the policy was calibrated on",
            )
        order = sorted(pools, key=lambda name: _draw(policy, name))
        first = {pools[name].problem.digest: name for name in reversed(order)}
        order = [name for name in order if first[pools[name].problem.digest] == name]
        return cls({name: pools[name] for name in order}, tuple(order))


def _draw(policy: Policy, name: str) -> bytes:
    """By policy and question alone."""
    return hashlib.sha256(f"{policy.fingerprint}:{name}".encode()).digest()
