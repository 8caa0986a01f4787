"""Recorded pools as a backend: the paths that were sampled once, given again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from demur.backends.protocol import Completion, Portions, Settings, Wanted
from demur.errors import BackendError
from demur.prompts import Prompt
from demur.records import Pool


class Replay:
    """Gives path j of a problem's recorded pool as its path j."""

    concurrency = 32
    draws_for_free = True

    def __init__(self, pools: Sequence[Pool], *, model: str = "recorded") -> None:
        self._pools = {pool.problem.id: pool for pool in pools}
        self.model = model

    def describe(self) -> dict[str, Any]:
        return {"backend": "replay", "model": self.model}

    async def sample(self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]) -> Portions:
        pool = self._pools.get(prompt.problem)
        if pool is None or len(pool.paths) <= max(want.path for want in wanted):
            count = 0 if pool is None else len(pool.paths)
            raise BackendError(f"{count} paths are recorded for problem {prompt.problem!r}, fewer than asked for")
        completions = []
        for want in wanted:
            path = pool.paths[want.path]
            if path.text is None:
                raise BackendError(f"path {want.path} of problem {prompt.problem!r} was recorded without its text")
            logprobs = tuple(map(float, path.extra.get("token_logprobs") or ())) or None
            n_tokens = len(logprobs) if logprobs else path.extra.get("n_tokens")
            reason = path.extra.get("finish_reason")
            completions.append(Completion(want.path, path.text, reason, logprobs, want.seed, n_tokens=n_tokens))
        yield completions

    async def close(self) -> None:
        pass
