"""Judge: log p(Y) of a one-letter verdict on a path (theory 1.4), so that w = exp q is p(Y).

Where the model's list of likely tokens does not reach down to Y, the value is an upper bound of log p(Y), flagged as a
floor: never a number from nowhere. A judge that answers in prose is refused before anything of it is stored.
"""

from __future__ import annotations

import asyncio
import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from demur.backends.embedded import Embedded
from demur.errors import BackendError, LogprobsMissing, ScoringError
from demur.records import Problem
from demur.scoring.asking import Asking, Item, TooLong, Value, is_too_long
from demur.scoring.judge_prompts import JudgePrompt, describe, prompt_for
from demur.scoring.protocol import FLOOR, as_number

LOWEST = -100.0
"""A log-probability below this counts as this: servers write "impossible" in several ways."""
_ROUNDING = 1e-3
_ALL = 1.01
_LOST = 1e-5
"""Probability that single precision may lose in a sum: a bound must not be below the truth."""
_FEWEST_LETTERS = 0.01
PROBE = Item(Problem("probe", "What is 2 + 3?", extra={"task": "math"}), "2 + 3 = 5. The answer is 5.")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the first token of a judge's answer says."""

    value: float
    floor: bool
    letters: float
    """p(Y) + p(N), as far as they are listed."""
    likeliest: str


def read_verdict(tokens: Iterable[tuple[str, float]]) -> Verdict:
    """log p(Y) from the likely first tokens and their log-probabilities.

    Y may be spelt with blanks around it: all such tokens count together. Where there is none, log p(Y) is at most the
    smallest log-probability listed, and at most that of all tokens not listed.
    """
    listed = [(token.strip(), float(logprob)) for token, logprob in tokens]
    if any(not logprob <= _ROUNDING for _, logprob in listed) or sum(math.exp(each) for _, each in listed) > _ALL:
        raise ScoringError("the judge's endpoint gives numbers that cannot be log-probabilities")
    found = [(token, max(min(logprob, 0.0), LOWEST)) for token, logprob in listed]
    if not found:
        raise LogprobsMissing(
            "the judge's endpoint gives no token log-probabilities, which a verdict is read from; start it with them, "
            "or choose another judge"
        )
    likeliest = max(found, key=lambda each: each[1])[0]
    yes = [logprob for token, logprob in found if token == "Y"]
    letters = math.fsum(math.exp(logprob) for token, logprob in found if token in ("Y", "N"))
    if yes and max(yes) > LOWEST:
        return Verdict(min(_log_sum(yes), 0.0), False, letters, likeliest)
    rest = 1 - math.fsum(math.exp(logprob) for _, logprob in found)
    bound = min(math.log(max(rest, 0.0) + _LOST), *(logprob for _, logprob in found))
    return Verdict(bound, True, letters, likeliest)


class Judge(Asking):
    """Reads verdicts. A subclass has `verdicts`, which asks a model about paths."""

    name = "judge"
    normaliser = "none"

    def __init__(self, prompt: JudgePrompt | None = None, *, too_long: str = "cut") -> None:
        super().__init__(too_long=too_long)
        self.prompt = prompt

    def identity(self) -> dict[str, Any]:
        return {
            "scorer": "judge", "version": 1, **self.describe_model(), "prompt": describe(self.prompt),
            "too_long": self.too_long,
        }  # fmt: skip

    @abstractmethod
    def describe_model(self) -> dict[str, Any]:
        """The judge, and the way it is asked."""

    def chat(self, problem: Problem, draft: str) -> list[dict[str, str]]:
        """What a judge is sent about a path."""
        return (self.prompt or prompt_for(problem)).render(problem, draft)

    @abstractmethod
    async def verdicts(self, items: Sequence[Item]) -> Sequence[Verdict]: ...

    async def prepare(self) -> None:
        """See that the judge gives verdicts at all, on a sum that anybody can check."""
        (verdict,) = await self.verdicts([PROBE])
        refuse_prose(verdict.letters, verdict.likeliest)

    async def ask(self, items: Sequence[Item]) -> Sequence[Value]:
        found = await self.verdicts(items)
        return [Value(verdict.value, FLOOR if verdict.floor else None) for verdict in found]


class EmbeddedJudge(Judge):
    """A small model in this process. It tells the 2,000 likeliest tokens, so floors are rare."""

    _TOP = 2000

    def __init__(self, model: Embedded, prompt: JudgePrompt | None = None, *, too_long: str = "cut") -> None:
        super().__init__(prompt, too_long=too_long)
        self.model = model
        self._thread = ThreadPoolExecutor(max_workers=1)  # sums in a batch are rounded by what else is in it

    def describe_model(self) -> dict[str, Any]:
        return {**self.model.describe(), "route": f"top {self._TOP}", "thinking": "off"}

    async def verdicts(self, items: Sequence[Item]) -> Sequence[Verdict]:
        return [await asyncio.get_running_loop().run_in_executor(self._thread, self._verdict, item) for item in items]

    def _verdict(self, item: Item) -> Verdict:
        body = {
            "messages": self.chat(item.problem, item.text), "max_tokens": 1, "temperature": 0, "logprobs": True,
            "top_logprobs": self._TOP, "chat_template_kwargs": {"enable_thinking": False},
        }  # fmt: skip
        try:
            return read_verdict(top_tokens(self.model.answer("chat", body)))
        except BackendError as error:
            if is_too_long(str(error)):
                raise TooLong(str(error)) from None
            raise


def refuse_prose(letters: float, likeliest: str) -> None:
    """Raise for a judge that hardly thinks of answering Y or N."""
    if letters < _FEWEST_LETTERS:
        raise ScoringError(
            f"the judge says neither Y nor N: its answer begins with {likeliest!r:.40}; choose a judge that follows "
            "instructions, switch its thinking off, or give a prompt of your own (docs/scores.md)"
        )


def top_tokens(answer: Any) -> list[tuple[str, float]]:
    """The likely first tokens of a chat's answer, with their log-probabilities; none where there are none."""
    try:
        first = answer["choices"][0]["logprobs"]["content"][0]
        listed = first.get("top_logprobs") or [first]
        return [(str(each["token"]), as_number(each["logprob"], "a log-probability")) for each in listed]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return []


def _log_sum(values: Sequence[float]) -> float:
    top = max(values)
    return top + math.log(math.fsum(math.exp(value - top) for value in values))
