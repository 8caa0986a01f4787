"""llama.cpp in this process: all paths of a pool in one batched decode over a shared prompt.

The template that comes with a model is not given to llama.cpp, which would run it here without limits, when it loads
already: chats are rendered apart, and go through as they are.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from demur.backends import weights
from demur.backends.chat_template import ChatTemplate
from demur.backends.gguf_metadata import gguf_fields
from demur.backends.protocol import Completion, Portions, Settings, Wanted, consecutive, read_choices
from demur.errors import BackendError, MissingExtra
from demur.files.strict_json import as_json
from demur.prompts import Prompt

_AS_IT_IS = "{{ messages[0]['content'] }}"
_CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""What llama.cpp takes where a model brings no template."""


class Embedded:
    """A GGUF model, by path or by the name of one that ships as a package. One pool at a time, `batch` paths at once.

    The same seed gives the same path, as long as it is decoded in the same batch and what its prompt shares with
    earlier ones was kept from the same ones: floating-point sums depend on both. `repeatable`: nothing is kept from one
    prompt to the next, so that only the batch counts, whatever was asked before; short paths behind long prompts cost
    up to twice as much.
    """

    concurrency = 1
    needs_examples = True
    """A small model is shown how by examples in its prompt."""
    draws_for_free = True
    """Nobody is charged for a path, so none is tried alone before many are drawn."""

    def __init__(
        self,
        model: str = weights.DEFAULT,
        *,
        batch: int = 16,
        context: int = 512,
        threads: int | None = None,
        repeatable: bool = False,
        say: weights.Say = lambda _: None,
    ) -> None:
        self.model, self.batch, self.context, self.repeatable = model, batch, context, repeatable
        self.threads = threads or max(1, (os.cpu_count() or 2) // 2)
        self.thread = ThreadPoolExecutor(max_workers=1)
        """For what is asked one by one: sums in a batch are rounded by what else is in it."""
        self._say = say
        self._server: Any = None

    @cached_property
    def path(self) -> Path:
        """The weights, fetched when they are first needed."""
        return weights.locate(self.model, say=self._say)

    def describe(self) -> dict[str, Any]:
        known = weights.KNOWN.get(self.model)
        digest = known.sha256[:16] if known else weights.weights_digest(self.path)
        return {"backend": "embedded", "model": known.name if known else Path(self.model).name, "weights": digest}

    async def sample(self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]) -> Portions:
        for run in consecutive(wanted, self.batch):
            yield await asyncio.to_thread(self.complete, prompt, settings, run)

    def complete(self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]) -> list[Completion]:
        """Paths whose seeds follow each other, decoded together."""
        body: dict[str, Any] = {"n": len(wanted), "seed": wanted[0].seed, "top_k": 0, "min_p": 0.0}
        body |= {name: getattr(settings, name) for name in ("temperature", "top_p", "max_tokens")}
        body["stop"] = list(settings.stop)
        try:
            return self.go_on(prompt, body, wanted)
        except (BackendError, ValueError) as error:
            raise BackendError(f"problem {prompt.problem!r}: {error}") from None

    def go_on(self, prompt: Prompt, body: dict[str, Any], wanted: Sequence[Wanted]) -> list[Completion]:
        """What the runtime writes behind a prompt, with log-probabilities; `body` is the rest of the request."""
        asked: dict[str, Any] = {"prompt": prompt.text, "logprobs": 1}
        if prompt.text is None:
            asked = {"messages": [dict(message) for message in prompt.messages], "logprobs": True, "top_logprobs": 1}
        started = time.monotonic()
        answer = {**self.answer(body | asked), "model": self.path.name}  # not the folder that the weights lie in
        return read_choices(answer, wanted, time.monotonic() - started)

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """The runtime's answer to a chat or to a text to go on from, as it came."""
        server = self._open()
        if "messages" in body:
            answer = server.handle_chat_completions({**body, "messages": [self._rendered(body)]})
        else:
            answer = server.handle_completions(body)
        if not isinstance(answer, dict) or "error" in answer:
            said = answer.get("error") if isinstance(answer, dict) else answer
            message = said.get("message", said) if isinstance(said, dict) else said
            raise BackendError(f"the embedded model refused: {message}")
        return answer

    def _rendered(self, body: dict[str, Any]) -> dict[str, str]:
        """A chat by the model's template, as the one message that goes through as it is."""
        template, tokens = self._template
        usual = {"add_generation_prompt": True, "enable_thinking": True}
        context = {**tokens, **usual, **body.get("chat_template_kwargs", {})}
        chat = body["messages"]
        try:
            return {"role": "user", "content": template.render(chat, **context)}
        except BackendError:
            if [message["role"] for message in chat[:2]] != ["system", "user"]:
                raise
        # Some models know no system message: it then stands before the user's.
        first = {"role": "user", "content": f"{chat[0]['content']}\n{chat[1]['content']}"}
        return {"role": "user", "content": template.render([first, *chat[2:]], **context)}

    @cached_property
    def _template(self) -> tuple[ChatTemplate, dict[str, str]]:
        """The model's own template, and the tokens that it speaks of."""
        vocabulary, source = "tokenizer.ggml.tokens", "tokenizer.chat_template"
        ids = {f"{name}_token": f"tokenizer.ggml.{name}_token_id" for name in ("bos", "eos")}
        fields = gguf_fields(self.path, {source, vocabulary, *ids.values()})
        known = dict(enumerate(fields.get(vocabulary, [])))
        tokens = {name: known[fields[field]] for name, field in ids.items() if fields.get(field) in known}
        return ChatTemplate(str(fields.get(source, _CHATML)), self.path.name, extra="local"), tokens

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text, from the runtime's own port on this machine: it has no other way to tell."""
        address = urlsplit(self._open().listening_address)
        connection = HTTPConnection(address.hostname or "127.0.0.1", address.port, timeout=60)
        try:
            body = as_json({"content": text, "add_special": False})
            connection.request("POST", "/tokenize", body, {"Content-Type": "application/json"})
            document = json.loads(connection.getresponse().read())
        except (OSError, HTTPException, ValueError) as error:
            raise BackendError(f"the embedded model cannot tell the tokens of a text: {error}") from None
        finally:
            connection.close()
        return [int(token) for token in document["tokens"]]

    def _open(self) -> Any:
        if self._server is None:
            os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads collapse on a busy machine
            try:
                import xllamacpp
            except ImportError:
                raise MissingExtra("the embedded model needs llama.cpp", "local") from None
            settings = xllamacpp.CommonParams()
            settings.model.path = str(self.path)
            settings.n_parallel = self.batch
            settings.n_ctx = self.context * self.batch  # shared by all paths under way
            settings.kv_unified = True
            settings.chat_template = _AS_IT_IS
            settings.verbosity = -1
            settings.warmup = False
            if self.repeatable:  # nothing is kept from one prompt to the next, and each path has a place of its own
                settings.cache_prompt, settings.cache_ram_mib, settings.kv_unified = False, 0, False
            settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = self.threads
            try:
                self._server = xllamacpp.Server(settings)
            except (RuntimeError, ValueError) as error:
                raise BackendError(f"{self.path} cannot be loaded as a model: {error}") from None
        return self._server

    async def close(self) -> None:
        """Nothing: the weights stay loaded for the next question, as long as this object lives."""
