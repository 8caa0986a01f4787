"""Perplexity: how likely the model itself found a path (theory 1.4).

    perplexity               q =  mean of log p(token)     w = exp q is one over the path's perplexity
    perplexity-std           q =  std  of log p(token)     the paper's sign: a path of uneven confidence counts more
    perplexity-std-negated   q = −std  of log p(token)     the useful sign (theory, departure O)

The probabilities are those of the model itself, before temperature; the token that ends a sequence does not count.
They are taken as recorded while sampling; `rescoring` finds them anew from the text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from demur.backends.protocol import Completion
from demur.errors import LogprobsMissing
from demur.records import Path, Pool

MEAN, STD, STD_NEGATED = "perplexity", "perplexity-std", "perplexity-std-negated"
KINDS = (MEAN, STD, STD_NEGATED)


def statistic(kind: str, logprobs: Sequence[float]) -> float:
    path = Completion(0, "", logprobs=tuple(logprobs))
    value = path.logprob_mean if kind == MEAN else path.logprob_std
    assert value is not None
    return -value if kind == STD_NEGATED else value


def range_of_kind(kind: str) -> tuple[float, float]:
    """Between which numbers each of the three lies: no log-probability exceeds 0, and no spread falls below."""
    return (0.0, math.inf) if kind == STD else (-math.inf, 0.0)


def identity_of(kind: str) -> dict[str, Any]:
    """What the three have in their identities besides where the log-probabilities come from."""
    signs: dict[str, dict[str, int]] = {MEAN: {}, STD: {"sign": 1}, STD_NEGATED: {"sign": -1}}
    return {"scorer": MEAN if kind == MEAN else STD, "version": 1, **signs[kind]}


class Perplexity:
    """Of log-probabilities recorded while sampling."""

    normaliser = "pool_z"

    def __init__(self, kind: str = MEAN) -> None:
        self.name = self._kind = kind

    @property
    def within(self) -> tuple[float, float]:
        """See `scoring.protocol.range_of`."""
        return range_of_kind(self._kind)

    def stays(self, pool: Pool) -> bool:
        """Whether each path has its own score: one without a token has the lowest of the whole pool."""
        return all(self._recorded(path) is not None for path in pool.paths)

    def identity(self) -> dict[str, Any]:
        return {**identity_of(self._kind), "from": "sampled log-probabilities"}

    def score(self, pool: Pool) -> list[float]:
        """One number per path; a path without a token has the lowest of its pool, for it says nothing."""
        values = [self._recorded(path) for path in pool.paths]
        for position, (path, value) in enumerate(zip(pool.paths, values, strict=True)):
            if value is None and (path.text is None or path.text.strip() or path.extra.get("n_tokens")):
                raise LogprobsMissing(
                    f"path {position} of problem {pool.problem.id!r} has no token log-probabilities, which the "
                    f"score {self.name} needs",
                    "run the same `demur sample` again to have such paths drawn again (but none of a run sampled with "
                    "{logprobs=False}), leave their problems out when calibrating ({unscored=drop}), have them scored "
                    "from their text (docs/scores.md), or choose another score",
                )
        lowest = min((value for value in values if value is not None), default=0.0)
        return [lowest if value is None else value for value in values]

    def _recorded(self, path: Path) -> float | None:
        logprobs = path.extra.get("token_logprobs")
        if isinstance(logprobs, list) and logprobs and all(map(_is_number, logprobs)):
            return statistic(self._kind, logprobs)
        value: Any = path.extra.get("logprob_mean" if self._kind == MEAN else "logprob_std")
        return (-value if self._kind == STD_NEGATED else float(value)) if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
