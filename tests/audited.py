"""Traffic for tests of recalibration: pools of a model that adds, decided and logged as a service would."""

from __future__ import annotations

import random

import demur as dm
from demur.policy.policy import Policy
from demur.pools.source import PoolSource, vote_pools
from demur.records import Path, Pool, Problem
from demur.store.service import Decision

N_PATHS = 8


def pools_of(n, seed, *, prefix="q", start=0, hard=0.35):
    """Questions of which a share is hard: there most paths agree on something wrong as often as not."""
    rng, pools = random.Random(seed), []
    for k in range(start, start + n):
        right, chance = str(k + 1), rng.choice([0.35, 0.5]) if rng.random() < hard else rng.choice([0.7, 0.9])
        wrong = [str(k + 1 + shift) for shift in (10, 10, 20)]
        paths = tuple(Path(right if rng.random() < chance else rng.choice(wrong)) for _ in range(N_PATHS))
        problem = Problem(f"{prefix}{k}", f"What is {k} plus 1, {prefix}?", (right,), extra={"task": "math"})
        pools.append(Pool(problem, paths))
    return pools


def policy_on(pools, **how) -> Policy:
    return dm.calibrate(vote_pools(PoolSource(pools)), **(how or {"alpha": [0.05, 0.1]}))


def decided(policy, pool, *, number=1, at=1_000, audit=True, texts=True, alpha=None, **facts) -> Decision:
    """A pool as the service's log has it."""
    made = policy.decide([path.answer for path in pool.paths], question=pool.problem, id=pool.problem.id, alpha=alpha)
    winner = next(iter(made.support), None)
    known = {"votes": [{"paths": paths, "share": 0.0} for paths in made.support.values()]}
    return Decision(
        **{
            "request": pool.problem.id,
            "at": at,
            "policy": number,
            "model": "sums",
            "question_digest": pool.problem.digest or "none",
            "outcome": "abstained" if made.abstained else "answered",
            "drawn": len(pool.paths),
            "n_paths": N_PATHS,
            "milliseconds": 3,
            "alpha": f"{made.alpha:g}",
            "guarantee": "marginal",
            "question": pool.problem.question if texts else None,
            "asked": {} if texts else None,
            "winner": winner if texts else None,
            "confidence": made.confidence,
            "vote_key": made.key,
            "audit": audit,
            "document": known,
            **facts,
        }
    )


def decided_at_once(policy, pools, **facts) -> list[Decision]:
    """The same of many pools, by their votes."""
    votes = policy.vote(PoolSource(pools)).votes
    answered = policy.point().answers(votes.cases)
    known = {"policy": 1, "model": "sums", "drawn": N_PATHS, "n_paths": N_PATHS, "milliseconds": 3, "at": 1_000}
    return [
        Decision(
            **{
                "request": pool.problem.id,
                "question_digest": pool.problem.digest,
                "outcome": "answered" if answered[row] else "abstained",
                "question": pool.problem.question,
                "winner": votes.answer[row],
                "confidence": float(votes.confidence[row]),
                "vote_key": tuple(votes.key[row].tolist()),
                "audit": True,
                "document": {"votes": [{}]},
                **known,
                **facts,
            }
        )
        for row, pool in enumerate(pools)
    ]


def is_right(pool, decision) -> bool:
    """Whether the vote is right."""
    return decision.winner == str(int(pool.problem.question.split()[2]) + 1)
