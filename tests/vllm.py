"""A model server that speaks vLLM's scoring formats, to be put behind `loopback.Loopback`.

Tokens are characters, and <s> is one. Numbers are functions of the tokens the model would read, so that a template
applied twice, a doubled <s> or a sigmoid in place of a reward shows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from aiohttp import web

from loopback import error

START = 1
UNHEARD_OF = -9999.0


def tokens_of(text: str) -> list[int]:
    found: list[int] = []
    while text:
        if text.startswith("<s>"):
            found.append(START)
            text = text[3:]
        else:
            found.append(ord(text[0]) + 10)
            text = text[1:]
    return found


def text_of(tokens: list[int]) -> str:
    return "".join("<s>" if token == START else chr(token - 10) for token in tokens)


def templated(messages: list[dict[str, str]], *, to_be_answered: bool, go_on: bool = False) -> str:
    said = [f"<|{each['role']}|>{each['content'].strip()}<|end|>" for each in messages]
    if go_on:
        said[-1] = said[-1].removesuffix("<|end|>")
    return "<s>" + "".join(said) + ("<|assistant|>" if to_be_answered else "")


def reward(tokens: list[int]) -> float:
    """Rewards of a range that no sigmoid has; a doubled start of text is punished."""
    assert tokens.count(START) == 1, "the start of text is doubled or missing"
    return sum(tokens) % 997 / 100 - 5


def log_yes(tokens: list[int]) -> float:
    assert tokens.count(START) == 1, "the start of text is doubled or missing"
    return -0.01 - sum(tokens) % 89 / 20


def log_no(yes: float) -> float:
    return math.log(max(1 - math.exp(yes) - 0.002, 1e-9))


def token_logprob(before: int, token: int) -> float:
    return -((before * 7 + token * 13) % 50) / 10 - 0.05


@dataclass
class Vllm:
    """How the server behaves; change a field to make it misbehave."""

    routes: tuple[str, ...] = (
        "/tokenize", "/detokenize", "/classify", "/pooling", "/generative_scoring", "/v1/chat/completions",
        "/v1/completions",
    )  # fmt: skip
    activation: str = "heeded"
    """heeded: a sigmoid unless use_activation is false; always: a sigmoid whatever is asked."""
    heeds_token_ids: bool = True
    listed: int = 20
    logprobs: bool = True
    refuses: tuple[str, ...] = ()
    """Fields that are answered with 400."""
    thinks: bool = False
    longest: int = 10**9
    results: int | None = None
    """How many results scoring routes give, whatever was asked."""
    drops_thoughts: bool = False
    before_answers: str = ""
    """What the template puts before an answer that is there already."""
    unreadable: str = ""
    """Characters whose tokens are shown as pieces."""
    seen: list[str] = field(default_factory=list)

    def __call__(self, number: int, body: dict[str, Any], request: web.Request) -> web.Response:
        self.seen.append(request.path)
        if request.path not in self.routes:
            return error(404, "Not Found")
        for name in self.refuses:
            if name in body:
                return error(400, f"unrecognized request argument: {name}")
        answer = getattr(self, "_" + request.path.rsplit("/", 1)[-1])(body, request.path)
        return answer if isinstance(answer, web.Response) else web.json_response(answer)

    def _tokenize(self, body: dict[str, Any], _: str) -> Any:
        if "messages" in body:
            return {"tokens": tokens_of(templated(body["messages"], to_be_answered=body["add_generation_prompt"]))}
        start = [START] if body.get("add_special_tokens", True) else []
        return {"tokens": start + tokens_of(body["prompt"])}

    def _detokenize(self, body: dict[str, Any], _: str) -> Any:
        return {"prompt": text_of(body["tokens"])}

    def _rewards(self, body: dict[str, Any]) -> Any:
        if "messages" in body:
            read = [tokens_of(templated(body["messages"], to_be_answered=False))]
        else:
            start = [START] if body.get("add_special_tokens", True) else []
            read = [start + tokens_of(text) for text in body["input"]]
        if any(len(tokens) > self.longest for tokens in read):
            return error(400, f"This model's maximum context length is {self.longest} tokens")
        rewards = [reward(tokens) for tokens in read]
        if self.activation == "always" or body.get("use_activation", True):
            rewards = [1 / (1 + math.exp(-r)) for r in rewards]
        return rewards if self.results is None else rewards[: self.results]

    def _classify(self, body: dict[str, Any], _: str) -> Any:
        rewards = self._rewards(body)
        if isinstance(rewards, web.Response):
            return rewards
        data = [{"index": i, "label": "LABEL_0", "probs": [r], "num_classes": 1} for i, r in enumerate(rewards)]
        return {"id": "classify-1", "object": "list", "data": data[::-1]}

    def _pooling(self, body: dict[str, Any], _: str) -> Any:
        assert body["task"] == "classify"
        rewards = self._rewards(body)
        return {
            "object": "list",
            "data": [{"index": i, "object": "pooling", "data": [r]} for i, r in enumerate(rewards)],
        }

    def _generative_scoring(self, body: dict[str, Any], _: str) -> Any:
        assert set(body["label_token_ids"]) == {tokens_of("Y")[0], tokens_of("N")[0]}
        found = []
        for item in body["items"]:
            log_p = log_yes([START, *tokens_of(body["query"] + item)])
            yes, no = math.exp(log_p), math.exp(log_no(log_p))
            first = yes if body["label_token_ids"][0] == tokens_of("Y")[0] else no
            found.append(first / (yes + no) if body.get("apply_softmax", True) else first)
        data = [{"index": i, "object": "score", "score": score} for i, score in enumerate(found)]
        return {"data": data[: self.results], "usage": {}}

    def _completions(self, body: dict[str, Any], path: str) -> Any:
        if "prompt_logprobs" in body or body.get("echo"):
            return self._read(body)
        messages = body["messages"]
        prompt = tokens_of(templated(messages, to_be_answered=True))
        if len(prompt) > self.longest:
            return error(400, f"the prompt is too long: {len(prompt)} tokens, the context holds {self.longest}")
        if not self.logprobs:
            return {"choices": [{"message": {"content": "Y"}, "logprobs": None}]}
        yes = log_yes(prompt)
        every = {"Y": yes, "N": log_no(yes), "The": math.log(0.001)}
        if self.thinks and not _thinking_off(body):
            every = {"<think>": -0.001, "Well": -8.0}
        if self.heeds_token_ids and "logprob_token_ids" in body:
            wanted = [text_of([token]) for token in body["logprob_token_ids"]]
            listed = [(token, every.get(token, UNHEARD_OF)) for token in wanted]
        else:
            listed = sorted(every.items(), key=lambda each: -each[1])[: min(self.listed, body["top_logprobs"])]
        top = [{"token": token, "logprob": value, "bytes": None} for token, value in listed]
        content = [{"token": listed[0][0], "logprob": listed[0][1], "top_logprobs": top}]
        return {"choices": [{"message": {"content": listed[0][0]}, "logprobs": {"content": content}}]}

    def _shown(self, token: int) -> str:
        text = text_of([token])
        return "\ufffd" if text in self.unreadable and self.unreadable else text

    def _read(self, body: dict[str, Any]) -> Any:
        """Prompt log-probabilities: of each token behind the one before it, likelier ones listed beside it."""
        if "messages" in body:
            go_on = bool(body.get("continue_final_message"))
            messages = body["messages"]
            if self.drops_thoughts:
                messages = [{**m, "content": m["content"].rpartition("</think>")[2]} for m in messages]
            if go_on:
                messages = [*messages[:-1], {**messages[-1], "content": self.before_answers + messages[-1]["content"]}]
            text = templated(messages, to_be_answered=body.get("add_generation_prompt", True), go_on=go_on)
            tokens = tokens_of(text)
        else:
            tokens = [START, *tokens_of(body["prompt"])]
        logprobs = [token_logprob(a, b) for a, b in pairwise(tokens)]
        if body.get("echo"):
            names = [text_of([token]) for token in tokens[1:]]
            return {"choices": [{"text": "", "logprobs": {"tokens": names, "token_logprobs": [None, *logprobs[1:]]}}]}
        entries: list[Any] = [None]
        for token, value in zip(tokens[1:], logprobs, strict=True):
            likelier = {"999999": {"logprob": -0.001, "rank": 1, "decoded_token": "zzz"}}
            entries.append({**likelier, str(token): {"logprob": value, "rank": 2, "decoded_token": self._shown(token)}})
        told = {"prompt_logprobs": entries, "prompt_token_ids": tokens}
        choice = {"message": {"content": "x"}, "text": "x", "logprobs": None}
        return {**told, "choices": [choice]} if "messages" in body else {"choices": [{**choice, **told}]}


def _thinking_off(body: dict[str, Any]) -> bool:
    return body.get("chat_template_kwargs", {}).get("enable_thinking") is False
