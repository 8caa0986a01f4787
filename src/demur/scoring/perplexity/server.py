"""Perplexity of stored text from a server: vLLM's `prompt_logprobs`, or completions that echo their prompt.

Which tokens are the path's is found by comparing with the prompt alone, and their text must be the path's: a server
whose template drops or rewrites part of a path is refused, not believed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from demur.answers.completions import ROUNDING, clamped
from demur.backends.endpoint import Refused
from demur.errors import InvalidValue, LogprobsMissing, NoSuchRoute, ScoringError
from demur.prompts import Prompt
from demur.scoring.model_scorer import Item, ServerScorer, refusal
from demur.scoring.perplexity.rescored import Rescored
from demur.scoring.protocol import as_number

PROMPT_LOGPROBS, ECHO = "prompt_logprobs", "echo"
ROUTES = (PROMPT_LOGPROBS, ECHO)
_JOINT = 2
"""Tokens of a prompt's end that may melt with the beginning of a path."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token that a server read."""

    key: str
    """Its id, or its text where the server gives no ids."""
    logprob: float | None
    text: str | None


class ServerRescored(ServerScorer, Rescored):
    """A server that tells the log-probabilities of what it is given to read."""

    def __init__(self, *asked: Any, **how: Any) -> None:
        super().__init__(*asked, **how)
        if self.route == ECHO and self.template.kind != "completion":
            raise InvalidValue("the route echo reads a text; a chat is scored by prompt_logprobs")
        self._prompts: dict[str, asyncio.Task[list[Token]]] = {}

    async def prepare(self) -> None:
        """Find the route that works, on a few tokens."""
        probe, routes = Prompt("probe", text="1, 2, 3,"), [*ROUTES]
        if self.template.kind != "completion":
            probe, routes = Prompt("probe", messages=({"role": "user", "content": "Count."},)), [PROMPT_LOGPROBS]
        reasons = []
        for route in [self.route] if self.route else routes:
            self.route = route
            try:
                if self._path(await self._read(probe, ""), await self._read(probe, " 4, 5"), " 4, 5"):
                    return
            except (NoSuchRoute, ScoringError, LogprobsMissing, Refused) as error:
                reasons.append(f"{route}: {error}")
        self.route = None
        raise LogprobsMissing(
            f"the endpoint does not tell the log-probabilities of stored text ({'; '.join(reasons)}); vLLM does, and "
            "so does a model in this process: set perplexity.model to a GGUF file"
        )

    async def logprobs(self, items: Sequence[Item]) -> Sequence[Sequence[float]]:
        return await asyncio.gather(*(self._one(item) for item in items))

    async def _one(self, item: Item) -> list[float]:
        prompt = self.template.render(item.problem)
        try:
            alone = await asyncio.shield(self._prompt_tokens(prompt))
            return self._path(alone, await self._read(prompt, item.text), item.text)
        except Refused as refused:
            raise refusal(refused) from None

    def _prompt_tokens(self, prompt: Prompt) -> asyncio.Task[list[Token]]:
        """The tokens of a prompt without a path: asked for once, for all paths of its problem."""
        key = repr((prompt.text, prompt.messages))
        if key not in self._prompts:
            if len(self._prompts) > 4 * self.concurrency:  # of problems long done
                self._prompts.pop(next(iter(self._prompts)))
            self._prompts[key] = asyncio.ensure_future(self._read(prompt, ""))
        return self._prompts[key]

    async def _read(self, prompt: Prompt, text: str) -> list[Token]:
        body: dict[str, Any] = {"model": self.model, "temperature": 0, "max_tokens": 1}
        if self.route == ECHO:
            body |= {"prompt": (prompt.text or "") + text, "echo": True, "max_tokens": 0, "logprobs": 1}
            return _echoed(await self.endpoint.post("/completions", body))
        body |= {"prompt_logprobs": 0, "return_token_ids": True}
        if prompt.text is not None:
            return _prompt_tokens(await self.endpoint.post("/completions", body | {"prompt": prompt.text + text}))
        messages = [dict(message) for message in prompt.messages]
        if text:
            messages.append({"role": "assistant", "content": text})
            body |= {"add_generation_prompt": False, "continue_final_message": True}
        return _prompt_tokens(await self.endpoint.post("/chat/completions", body | {"messages": messages}))

    def _path(self, prompt: Sequence[Token], whole: Sequence[Token], text: str) -> list[float]:
        """The log-probabilities of the tokens behind the prompt."""
        start = 0
        while start < min(len(prompt), len(whole)) and prompt[start].key == whole[start].key:
            start += 1
        if start < len(prompt) - _JOINT:
            raise ScoringError("the server reads another prompt when a path stands behind it: its tokens differ")
        melted = "".join(token.text or "" for token in prompt[start:])
        tokens = _of_text(whole[start:], melted + text)
        logprobs = [token.logprob for token in tokens if token.logprob is not None]
        if any(not logprob <= ROUNDING for logprob in logprobs):
            raise ScoringError("the endpoint gives numbers that cannot be log-probabilities")
        if not logprobs or len(logprobs) < len(tokens):
            raise LogprobsMissing("the endpoint left out the log-probability of some token of a path")
        return list(map(clamped, logprobs))

    async def close(self) -> None:
        for task in self._prompts.values():
            task.cancel()
        await asyncio.gather(*self._prompts.values(), return_exceptions=True)
        self._prompts.clear()
        await super().close()


def _of_text(tokens: Sequence[Token], text: str) -> Sequence[Token]:
    """The tokens that spell the text, without what a template puts behind it; raises where they spell another."""
    if any(token.text is None for token in tokens):
        raise ScoringError("the endpoint does not say which text its tokens spell, so they cannot be told apart")
    spelt, wanted = "", text.strip()
    for count, token in enumerate(tokens, start=1):
        spelt += token.text or ""
        if len(spelt.strip()) >= len(wanted) and spelt.strip().startswith(wanted):
            return tokens[:count]
    if _PIECES in spelt and _might_spell(spelt.strip(), wanted):
        return tokens
    raise ScoringError(
        f"the server reads {spelt[:40]!r} where the path {wanted[:40]!r} stands: its template changes paths, so their "
        "tokens cannot be scored there"
    )


_LONGEST_PIECE = 8
_PIECES = "\ufffd"
"""What a server writes for a token that is part of a character."""


def _might_spell(spelt: str, wanted: str) -> bool:
    """Whether a text with unreadable pieces may be the wanted one: all that is readable stands where it should."""
    first, *rest = re.split(f"{_PIECES}+", spelt)
    # Where what was read so far may end: all such places at once, so that nothing is ever tried twice.
    ends = {len(first)} if wanted.startswith(first) else set()
    for part in rest:
        starts = {end + gap for end in ends for gap in range(1, _LONGEST_PIECE + 1)}
        ends = {start + len(part) for start in starts if wanted.startswith(part, start)}
    return len(wanted) in ends


def _prompt_tokens(document: Any) -> list[Token]:
    """vLLM's `prompt_logprobs`: a null, then per token {"<id>": {"logprob", "decoded_token", …}, …}.

    The token that stands there is found by its id, not by its rank: likelier ones may be listed beside it.
    """
    choice = document["choices"][0]
    listed = document.get("prompt_logprobs") or choice.get("prompt_logprobs")
    if not isinstance(listed, list):
        raise LogprobsMissing("the answer holds no prompt_logprobs")
    ids = document.get("prompt_token_ids") or choice.get("prompt_token_ids")
    tokens = []
    for position, entry in enumerate(listed):
        key = str(ids[position]) if isinstance(ids, list) and position < len(ids) else None
        if entry is None:
            tokens.append(Token(key or "", None, ""))
            continue
        if key is None and isinstance(entry, dict) and len(entry) == 1:
            key = next(iter(entry))
        told = entry.get(key) if isinstance(entry, dict) and key is not None else None
        if not isinstance(told, dict) or not isinstance(told.get("logprob"), (int, float)):
            raise LogprobsMissing("the answer does not say which of its prompt_logprobs is of the token itself")
        spelt = told.get("decoded_token")
        logprob = as_number(told["logprob"], "a log-probability")
        tokens.append(Token(str(key), logprob, spelt if isinstance(spelt, str) else None))
    return tokens


def _echoed(document: Any) -> list[Token]:
    """A completion that repeats its prompt: parallel lists of tokens and log-probabilities."""
    told = document["choices"][0].get("logprobs")
    tokens, logprobs = (told.get("tokens"), told.get("token_logprobs")) if isinstance(told, dict) else (None, None)
    if not isinstance(tokens, list) or not isinstance(logprobs, list) or len(tokens) != len(logprobs):
        raise LogprobsMissing("the answer does not echo the prompt with its log-probabilities")
    return [
        Token(str(token), None if value is None else as_number(value, "a log-probability"), str(token))
        for token, value in zip(tokens, logprobs, strict=True)
    ]
