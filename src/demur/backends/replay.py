"""Recorded pools as a backend: the paths that were sampled once, given again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from demur.backends.protocol import Completion, Prompt, Settings, Wanted
from demur.errors import BackendError
from demur.records import Pool


class Replay:
    """Gives path j of a problem's recorded pool as its path j."""

    concurrency = 32

    def __init__(self, pools: Sequence[Pool], *, model: str = "recorded") -> None:
        self._pools = {pool.problem.id: pool for pool in pools}
        self.model = model

    def describe(self) -> dict[str, Any]:
        return {"backend": "replay", "model": self.model}

    async def sample(
        self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]
    ) -> AsyncGenerator[list[Completion], None]:
        pool = self._pools.get(prompt.problem)
        if pool is None or len(pool.paths) <= max(want.path for want in wanted):
            held = 0 if pool is None else len(pool.paths)
            raise BackendError(f"{held} paths are recorded for problem {prompt.problem!r}, fewer than asked for")
        found = []
        for want in wanted:
            path = pool.paths[want.path]
            if path.text is None:
                raise BackendError(f"path {want.path} of problem {prompt.problem!r} was recorded without its text")
            logprobs = path.extra.get("token_logprobs")
            found.append(
                Completion(
                    want.path, path.text, path.extra.get("finish_reason"),
                    tuple(map(float, logprobs)) if logprobs else None, want.seed,
                    n_tokens=len(logprobs) if logprobs else path.extra.get("n_tokens"),
                )
            )  # fmt: skip
        yield found

    async def close(self) -> None:
        pass
