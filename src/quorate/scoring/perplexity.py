"""Perplexity: the mean log-probability of a path's tokens, as the model gave it while sampling (theory 1.4).

The probabilities are those of the model itself, before temperature; the token that ends a sequence does not count.
"""

from __future__ import annotations

from typing import Any

from quorate.errors import LogprobsMissing
from quorate.records import Pool


class Perplexity:
    """q = (1/T) Σ log p(token): the negative log of the path's perplexity."""

    name = "perplexity"
    normaliser = "pool_z"

    def identity(self) -> dict[str, Any]:
        return {"scorer": "perplexity", "version": 1, "from": "sampled log-probabilities"}

    def score(self, pool: Pool) -> list[float]:
        """One mean per path; a path without a token has the lowest of its pool, for it says nothing."""
        means = [path.extra.get("logprob_mean") for path in pool.paths]
        known = [mean for mean in means if isinstance(mean, (int, float))]
        for position, (path, mean) in enumerate(zip(pool.paths, means, strict=True)):
            if mean is None and (path.text or path.extra.get("n_tokens")):
                raise LogprobsMissing(
                    f"path {position} of problem {pool.problem.id!r} has no token log-probabilities, which the "
                    "perplexity score needs; sample from an endpoint that gives them, or choose another score"
                )
        lowest = min(known, default=0.0)
        return [lowest if mean is None else float(mean) for mean in means]
