"""llama.cpp in this process: all paths of a pool in one batched decode over a shared prompt."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, Sequence
from functools import cached_property
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from demur import models
from demur.backends.protocol import Completion, Prompt, Settings, Wanted, consecutive, read_choices
from demur.errors import BackendError, MissingExtra


class Embedded:
    """A GGUF model, by path or by the name of one that ships as a package. One pool at a time, `batch` paths at once.

    The same seed gives the same path, as long as it is decoded in the same batch: floating-point sums depend on it.
    """

    concurrency = 1

    def __init__(
        self,
        model: str = models.DEFAULT,
        *,
        batch: int = 16,
        context: int = 512,
        threads: int | None = None,
        say: models.Say = lambda _: None,
    ) -> None:
        self.model, self.batch, self.context = model, batch, context
        self.threads = threads or max(1, (os.cpu_count() or 2) // 2)
        self._say = say
        self._server: Any = None

    @cached_property
    def path(self) -> Path:
        """The weights, fetched when they are first needed."""
        return models.locate(self.model, say=self._say)

    def describe(self) -> dict[str, Any]:
        name = self.model if self.model in models.KNOWN else Path(self.model).name
        known = models.KNOWN.get(self.model)
        return {
            "backend": "embedded",
            "model": name,
            "weights": known.sha256[:16] if known else models.weights_digest(self.path),
        }

    async def sample(
        self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]
    ) -> AsyncGenerator[list[Completion], None]:
        for run in consecutive(wanted, self.batch):
            yield await asyncio.to_thread(self.complete, prompt, settings, run)

    def complete(self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]) -> list[Completion]:
        """Paths whose seeds follow each other, decoded together."""
        body: dict[str, Any] = {
            "n": len(wanted), "seed": wanted[0].seed, "temperature": settings.temperature, "top_k": 0,
            "top_p": settings.top_p, "min_p": 0.0, "max_tokens": settings.max_tokens, "stop": list(settings.stop),
        }  # fmt: skip
        started = time.monotonic()
        if prompt.text is None:
            body |= {"messages": [dict(message) for message in prompt.messages], "logprobs": True, "top_logprobs": 1}
        else:
            body |= {"prompt": prompt.text, "logprobs": 1}
        try:
            answer = self.answer("chat" if prompt.text is None else "text", body)
            return read_choices(answer, wanted, time.monotonic() - started)
        except (BackendError, ValueError) as error:
            raise BackendError(f"problem {prompt.problem!r}: {error}") from None

    def answer(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        """The runtime's answer to a chat or to a text to go on from, as it came."""
        server = self._open()
        answer = server.handle_chat_completions(body) if kind == "chat" else server.handle_completions(body)
        if not isinstance(answer, dict) or "error" in answer:
            said = answer.get("error") if isinstance(answer, dict) else answer
            message = said.get("message", said) if isinstance(said, dict) else said
            raise BackendError(f"the embedded model refused: {message}")
        return answer

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text, from the runtime's own port on this machine: it has no other way to tell."""
        address = urlsplit(self._open().listening_address)
        connection = HTTPConnection(address.hostname or "127.0.0.1", address.port, timeout=60)
        try:
            body = json.dumps({"content": text, "add_special": False})
            connection.request("POST", "/tokenize", body, {"Content-Type": "application/json"})
            found = json.loads(connection.getresponse().read())
        except (OSError, HTTPException, ValueError) as error:
            raise BackendError(f"the embedded model cannot tell the tokens of a text: {error}") from None
        finally:
            connection.close()
        return [int(token) for token in found["tokens"]]

    def _open(self) -> Any:
        if self._server is None:
            os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads collapse on a busy machine
            try:
                import xllamacpp
            except ImportError:
                raise MissingExtra("the embedded model needs llama.cpp; install: pip install 'demur[local]'") from None
            settings = xllamacpp.CommonParams()
            settings.model.path = str(self.path)
            settings.n_parallel = self.batch
            settings.n_ctx = self.context * self.batch  # shared by all paths under way
            settings.kv_unified = True
            settings.verbosity = -1
            settings.warmup = False
            settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = self.threads
            try:
                self._server = xllamacpp.Server(settings)
            except (RuntimeError, ValueError) as error:
                raise BackendError(f"{self.path} cannot be loaded as a model: {error}") from None
        return self._server

    async def close(self) -> None:
        """Nothing: the weights stay loaded for the next question, as long as this object lives."""
