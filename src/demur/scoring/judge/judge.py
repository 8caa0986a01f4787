"""Judge: log p(Y) of a one-letter verdict on a path (theory 1.4), so that w = exp q is p(Y).

Where the model's list of likely tokens does not reach down to Y, the value is an upper bound of log p(Y), flagged as a
floor: never a number from nowhere. A judge that answers in prose is refused before anything of it is stored.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from demur.answers.completions import LOWEST, ROUNDING, clamped
from demur.errors import LogprobsMissing, ScoringError
from demur.prompts.judging import JudgePrompt, prompt_identity
from demur.records import Problem
from demur.scoring.model_scorer import DescribedScorer, Item, Value
from demur.scoring.protocol import FLOOR, as_number
from demur.tasks import task_of

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
    if any(not logprob <= ROUNDING for _, logprob in listed) or sum(math.exp(logp) for _, logp in listed) > _ALL:
        raise ScoringError("the judge's endpoint gives numbers that cannot be log-probabilities")
    if not listed:
        raise LogprobsMissing(
            "the judge's endpoint gives no token log-probabilities, which a verdict is read from; start it with them, "
            "or choose another judge"
        )
    clear = [(token, clamped(logprob)) for token, logprob in listed]
    likeliest = max(clear, key=lambda entry: entry[1])[0]
    yes = [logprob for token, logprob in clear if token == "Y"]
    letters = math.fsum(math.exp(logprob) for token, logprob in clear if token in ("Y", "N"))
    if yes and max(yes) > LOWEST:
        top = max(yes)
        value = top + math.log(math.fsum(math.exp(logprob - top) for logprob in yes))
        return Verdict(min(value, 0.0), False, letters, likeliest)
    rest = 1 - math.fsum(math.exp(logprob) for _, logprob in clear)
    bound = min(math.log(max(rest, 0.0) + _LOST), *(logprob for _, logprob in clear))
    return Verdict(bound, True, letters, likeliest)


class Judge(DescribedScorer):
    """Reads verdicts. A subclass has `verdicts`, which asks a model about paths."""

    name = "judge"
    normaliser = "none"
    within = (-math.inf, 0.0)
    """No log-probability exceeds 0."""

    def __init__(self, prompt: JudgePrompt | None = None, *, too_long: str = "cut") -> None:
        super().__init__(too_long=too_long)
        self.prompt = prompt

    def identity(self) -> dict[str, Any]:
        asked = {"prompt": prompt_identity(self.prompt), "too_long": self.too_long}
        return {"scorer": "judge", "version": 1, **self.describe_model(), **asked}

    def chat(self, problem: Problem, draft: str) -> list[dict[str, str]]:
        """What a judge is sent about a path."""
        return (self.prompt or task_of(problem).judge(problem)).render(problem, draft)

    @abstractmethod
    async def verdicts(self, items: Sequence[Item]) -> Sequence[Verdict]: ...

    async def prepare(self) -> None:
        """See that the judge gives verdicts at all, on a sum that anybody can check."""
        (verdict,) = await self.verdicts([PROBE])
        refuse_prose(verdict.letters, verdict.likeliest)

    async def ask(self, items: Sequence[Item]) -> Sequence[Value]:
        verdicts = await self.verdicts(items)
        return [Value(verdict.value, FLOOR if verdict.floor else None) for verdict in verdicts]


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
        tokens = first.get("top_logprobs") or [first]
        return [(str(token["token"]), as_number(token["logprob"], "a log-probability")) for token in tokens]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return []
