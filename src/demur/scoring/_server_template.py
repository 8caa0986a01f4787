"""The chat template of a vLLM server, without its tokenizer: what stands before and behind a mark put into a chat.

Routes that take raw text apply no template, so it must be in what they are sent; and no second beginning-of-text token
may be put before it (`add_special_tokens: false`, or a text without one).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from demur.backends.chat_template import LONGEST_TEXT
from demur.backends.endpoint import Endpoint
from demur.errors import ScoringError

MARK = "DEMURMARKDEMUR"
Chat = Sequence[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Around:
    """Templated text before and behind what a chat is about."""

    before: str
    behind: str


async def text_around_mark(endpoint: Endpoint, model: str, chat: Chat, *, to_be_answered: bool) -> Around:
    """The templated chat, split at the mark. `to_be_answered`: the template opens the assistant's turn at the end."""
    how = {"chat_template_kwargs": {"enable_thinking": False}} if to_be_answered else {}
    tokens = await _tokens(endpoint, model, messages=list(chat), add_generation_prompt=to_be_answered, **how)
    text = await _text(endpoint, model, tokens)
    written = sum(len(message["content"]) for message in chat)
    if isinstance(text, str) and len(text) > written + LONGEST_TEXT:
        raise ScoringError("the server's chat template makes far more of a chat than stands in it")
    if not isinstance(text, str) or text.count(MARK) != 1:
        raise ScoringError("the server's chat template does not keep a message as it is; ask it by chat instead")
    before, _, behind = text.partition(MARK)
    return Around(before, behind)


async def token_of(endpoint: Endpoint, model: str, text: str) -> int:
    """The first token of a text."""
    return (await _tokens(endpoint, model, prompt=text, add_special_tokens=False))[0]


async def doubled_start(endpoint: Endpoint, model: str, before: str, chat: Chat) -> str:
    """What must be left off a templated text for a route that puts its own beginning-of-text token before it."""
    wanted = (await _tokens(endpoint, model, messages=list(chat), add_generation_prompt=False))[:2]
    for left_off in ("", str(await _text(endpoint, model, wanted[:1]))):
        raw = before.removeprefix(left_off)
        if (await _tokens(endpoint, model, prompt=raw, add_special_tokens=True))[:2] == wanted:
            return left_off
    raise ScoringError("the server does not make the template's tokens of the template's text; ask it by chat instead")


async def _tokens(endpoint: Endpoint, model: str, **asked: Any) -> list[int]:
    document = await endpoint.post("/tokenize", {"model": model, **asked}, at_root=True)
    tokens = document.get("tokens") if isinstance(document, dict) else None
    if not isinstance(tokens, list) or not tokens or not all(type(token) is int for token in tokens):
        raise ScoringError("the server's /tokenize gives no tokens")
    return tokens


async def _text(endpoint: Endpoint, model: str, tokens: list[int]) -> Any:
    document = await endpoint.post("/detokenize", {"model": model, "tokens": tokens}, at_root=True)
    return document.get("prompt") if isinstance(document, dict) else None


def read_results(document: Any, wanted: int, field: str) -> list[Any]:
    """The entries of a scoring route's `data`, in the order asked; raises unless there are as many as asked for."""
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, list) or len(data) != wanted:
        got = f"{len(data)} results" if isinstance(data, list) else "no results"
        raise ScoringError(f"the endpoint gave {got} for {wanted} paths")
    results: dict[int, Any] = {}
    for position, entry in enumerate(data):
        if not isinstance(entry, dict) or field not in entry:
            raise ScoringError(f"a result of the endpoint has no {field!r}")
        index = entry.get("index", position)
        results[index if type(index) is int else position] = entry[field]
    if sorted(results) != list(range(wanted)):
        raise ScoringError("the endpoint's results do not say which path they are of: their indexes are not 0, 1, 2 …")
    return [results[index] for index in range(wanted)]
