"""The chat template of a vLLM server, without its tokenizer: what stands before and behind a mark put into a chat.

Routes that take raw text apply no template, so it must be in what they are sent; and no second beginning-of-text token
may be put before it (`add_special_tokens: false`, or a text without one).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from demur.backends.endpoint import Endpoint
from demur.errors import ScoringError

MARK = "DEMURMARKDEMUR"


@dataclass(frozen=True, slots=True)
class Around:
    """Templated text before and behind what a chat is about."""

    before: str
    behind: str


async def text_around_mark(
    endpoint: Endpoint, model: str, chat: Sequence[dict[str, str]], *, to_be_answered: bool
) -> Around:
    """The templated chat, split at the mark. `to_be_answered`: the template opens the assistant's turn at the end."""
    body = {"model": model, "messages": list(chat), "add_generation_prompt": to_be_answered}
    if to_be_answered:
        body["chat_template_kwargs"] = {"enable_thinking": False}
    tokens = _tokens(await endpoint.post("/tokenize", body, at_root=True))
    document = await endpoint.post("/detokenize", {"model": model, "tokens": tokens}, at_root=True)
    text = document.get("prompt") if isinstance(document, dict) else None
    if not isinstance(text, str) or text.count(MARK) != 1:
        raise ScoringError("the server's chat template does not keep a message as it is; ask it by chat instead")
    before, _, behind = text.partition(MARK)
    return Around(before, behind)


async def token_of(endpoint: Endpoint, model: str, text: str) -> int:
    """The first token of a text."""
    body = {"model": model, "prompt": text, "add_special_tokens": False}
    return _tokens(await endpoint.post("/tokenize", body, at_root=True))[0]


async def doubled_start(endpoint: Endpoint, model: str, before: str, chat: Sequence[dict[str, str]]) -> str:
    """What must be left off a templated text for a route that puts its own beginning-of-text token before it."""
    body = {"model": model, "messages": list(chat), "add_generation_prompt": False}
    wanted = _tokens(await endpoint.post("/tokenize", body, at_root=True))[:2]
    document = await endpoint.post("/detokenize", {"model": model, "tokens": wanted[:1]}, at_root=True)
    first = document.get("prompt") if isinstance(document, dict) else None
    for left_off in ("", str(first)):
        raw = {"model": model, "prompt": before.removeprefix(left_off), "add_special_tokens": True}
        if _tokens(await endpoint.post("/tokenize", raw, at_root=True))[:2] == wanted:
            return left_off
    raise ScoringError("the server does not make the template's tokens of the template's text; ask it by chat instead")


def _tokens(document: Any) -> list[int]:
    found = document.get("tokens") if isinstance(document, dict) else None
    if not isinstance(found, list) or not found or not all(type(token) is int for token in found):
        raise ScoringError("the server's /tokenize gives no tokens")
    return found
