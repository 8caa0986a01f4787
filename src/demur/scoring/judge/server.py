"""Judges on a server, by three ways of reading log p(Y).

chat        any OpenAI-compatible server: the 20 likeliest first tokens; Y beyond them is a flagged floor
token_ids   vLLM, told which tokens are Y and N (`logprob_token_ids`): exact
scoring     vLLM's /generative_scoring: all paths of a pool in one request, exact, and without softmax, which would
            make it p(Y) / (p(Y) + p(N))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from demur.answers.completions import LOWEST, clamped
from demur.backends.endpoint import Refused
from demur.errors import EndpointRefused, NoSuchRoute, ScoringError
from demur.records import Problem
from demur.scoring._server_template import MARK, Around, doubled_start, read_results, text_around_mark, token_of
from demur.scoring.judge.judge import PROBE, Judge, Verdict, read_verdict, refuse_prose, top_tokens
from demur.scoring.model_scorer import Item, ServerScorer, refusal

CHAT, TOKEN_IDS, SCORING = "chat", "token_ids", "scoring"
ROUTES = (CHAT, TOKEN_IDS, SCORING)
_SPELLINGS = ("Y", " Y", "N", " N")
_UNLIKELY = "zebra"
"""A word whose first token no judge says: if it is told of, the server does heed the list of token ids."""


class ChatJudge(ServerScorer, Judge):
    """One chat per path, answered with one token. `route` None: token ids where the server heeds them, else chat."""

    _ids: Sequence[int] = ()
    _top = 20
    _length_field = "max_completion_tokens"
    _thinking_off = True
    _settled = False
    """Whether the way of asking is part of an identity by now, and stays."""

    def describe_model(self) -> dict[str, Any]:
        route = self.route if self.route == TOKEN_IDS else f"top {self._top}"
        thinking = "off" if self._thinking_off else "as the model has it"
        return {**super().describe_model(), "route": route, "thinking": thinking}

    async def prepare(self) -> None:
        if self._settled:
            return
        await super().prepare()
        if self.route != CHAT:
            heeded = await self._heeds_token_ids()
            if self.route == TOKEN_IDS and not heeded:
                raise ScoringError("the judge's endpoint does not heed logprob_token_ids; leave the route out, or chat")
            self.route = TOKEN_IDS if heeded else CHAT
        self._settled = True

    async def _heeds_token_ids(self) -> bool:
        """Whether the server tells of the tokens it is asked about, however unlikely they are."""
        try:
            ids = [await token_of(self.endpoint, self.model, text) for text in (*_SPELLINGS, _UNLIKELY)]
            self._ids = list(dict.fromkeys(ids))
            tokens = top_tokens(await self._post(PROBE))
        except (NoSuchRoute, ScoringError, Refused):
            tokens = []
        told = any(token.strip() and _UNLIKELY.startswith(token.strip()) for token, _ in tokens)
        self._ids = self._ids[:-1] if told else []
        return told

    async def verdicts(self, items: Sequence[Item]) -> Sequence[Verdict]:
        return [read_verdict(top_tokens(await self._put(item))) for item in items]

    async def _put(self, item: Item) -> Any:
        """The answer to one chat, put another way where the server minds a field."""
        while True:
            try:
                return await self._post(item)
            except Refused as refused:
                if self._settled or not self._put_another_way(str(refused)):
                    raise refusal(refused) from None

    async def _post(self, item: Item) -> Any:
        body: dict[str, Any] = {"model": self.model, "messages": self.chat(item.problem, item.text)}
        body |= {self._length_field: 1, "temperature": 0, "logprobs": True, "top_logprobs": self._top}
        if self._thinking_off:
            body["chat_template_kwargs"] = {"enable_thinking": False}
        if self._ids:
            body["logprob_token_ids"] = self._ids
        return await self.endpoint.post("/chat/completions", body)

    def _put_another_way(self, said: str) -> bool:
        words = said.lower()
        if '"messages"' in words:  # it only repeats the request
            return False
        if self._length_field in words and self._length_field == "max_completion_tokens":
            self._length_field = "max_tokens"
        elif self._thinking_off and "chat_template_kwargs" in words:
            self._thinking_off = False
        elif self._top > 5 and "logprob" in words:
            self._top = 5
        elif "logprob" in words:
            raise EndpointRefused(
                "the judge's endpoint gives no token log-probabilities, which a verdict is read from; start it with "
                f"them, or choose another judge ({said})"
            )
        else:
            return False
        return True


class ScoringJudge(ServerScorer, Judge):
    """All paths of a pool in one request to /generative_scoring."""

    at_once = 64
    _labels: Sequence[int] = ()
    _start = ""

    def describe_model(self) -> dict[str, Any]:
        return {**super().describe_model(), "route": "generative_scoring", "thinking": "off"}

    async def prepare(self) -> None:
        if not self._labels:
            chat = self.chat(PROBE.problem, MARK)
            around = await text_around_mark(self.endpoint, self.model, chat, to_be_answered=True)
            self._start = await doubled_start(self.endpoint, self.model, around.before, chat)
            yes, no = [await token_of(self.endpoint, self.model, text) for text in ("Y", "N")]
            self._labels = [no, yes]
            (against,) = await self.verdicts([PROBE])
            self._labels = [yes, no]
            (pro,) = await self.verdicts([PROBE])
            refuse_prose(math.exp(pro.value) + math.exp(against.value), "something else")

    async def verdicts(self, items: Sequence[Item]) -> Sequence[Verdict]:
        try:
            around = await self._around(items[0].problem)
            texts = [item.text.strip() + around.behind for item in items]
            body: dict[str, Any] = {"model": self.model, "query": around.before, "items": texts}
            body |= {"label_token_ids": self._labels, "apply_softmax": False}
            document = await self.endpoint.post("/generative_scoring", body, at_root=True)
        except Refused as refused:
            raise refusal(refused) from None
        return [_of_probability(value) for value in read_results(document, len(items), "score")]

    async def _around(self, problem: Problem) -> Around:
        """The templated prompt of a problem, split where the path goes."""
        around = await text_around_mark(self.endpoint, self.model, self.chat(problem, MARK), to_be_answered=True)
        return Around(around.before.removeprefix(self._start), around.behind)


def _of_probability(value: Any) -> Verdict:
    if not isinstance(value, (int, float)) or not 0 <= value <= 1 + 1e-6:
        raise ScoringError(f"the endpoint's score {value!r:.40} is no probability, which p(Y) must be")
    logprob = clamped(math.log(value)) if value > 0 else LOWEST
    return Verdict(logprob, logprob <= LOWEST, 1.0, "Y" if value >= 0.5 else "N")
