"""What a backend is asked, what it gives, and the Protocol between."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from demur.answers.completions import deviation_of, logprobs_of, mean_of, text_of, written
from demur.answers.extraction import was_cut
from demur.errors import EndpointRefused
from demur.prompts import Prompt


@dataclass(frozen=True, slots=True)
class Settings:
    """How paths are drawn. Nothing is cut off the distribution unless asked: log-probabilities are the model's own."""

    temperature: float = 0.8
    top_p: float = 1.0
    max_tokens: int = 1024
    stop: tuple[str, ...] = ()
    logprobs: bool = True


class Wanted(NamedTuple):
    """A path that is still missing: its index in the pool, and the seed it is drawn with."""

    path: int
    seed: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one answer of a server cost, and what the server said of itself; None where it said nothing."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    model: str | None = None
    system_fingerprint: str | None = None


class Completion(NamedTuple):
    """One path as a model gave it."""

    path: int
    text: str
    finish_reason: str | None = None
    logprobs: tuple[float, ...] | None = None
    """Of each token, at temperature 1; None where the model gave none."""
    seed: int | None = None
    latency: float | None = None
    n_tokens: int | None = None
    receipt: Receipt | None = None
    """Of the answer that it came in; only the first path of an answer has it."""

    @property
    def truncated(self) -> bool:
        return was_cut(self.finish_reason)

    @property
    def logprob_mean(self) -> float | None:
        return mean_of(self.logprobs) if self.logprobs else None

    @property
    def logprob_std(self) -> float | None:
        return deviation_of(self.logprobs) if self.logprobs else None


class ReportedModels:
    """The names of the models that replies to one requested model say they are from, and how many paths each gave.

    `known` are the paths of earlier replies. A reply that names no model is not compared. Raises EndpointRefused when
    a reply names another model, unless `mixed`, which is the setting `option` of the user.
    """

    def __init__(
        self, known: Mapping[str, int] | None = None, *, mixed: bool = False, option: str = "mixed_models=True"
    ) -> None:
        self.known, self.mixed, self._option = dict(known or {}), mixed, option
        self.paths = Counter[str]()
        """Of the replies that were taken here."""

    def take(self, completions: Sequence[Completion]) -> None:
        """Count the paths of some replies; none of them where a name differs."""
        name, came = None, Counter[str]()
        for completion in completions:
            if completion.receipt is not None:  # the first path of a reply
                name = completion.receipt.model
            if name is not None:
                came[name] += 1
        self.add(came)

    def add(self, came: Mapping[str, int]) -> None:
        """Count paths by the name of their model; none of them where a name differs."""
        names = list(dict.fromkeys([*self.known, *self.paths, *came]))
        if came and len(names) > 1 and not self.mixed:
            raise EndpointRefused(
                f"replies to one requested model come from several models: {', '.join(map(repr, names[:3]))}",
                f"name an endpoint that serves one model, or take the replies of all of them with {{{self._option}}}",
            )
        self.paths.update(came)

    @property
    def told(self) -> str:
        """The share of the paths that each model gave, in words; blank unless there are several models."""
        total = self.paths + Counter(self.known)
        shares = [f"{name} {paths / total.total():.1%}" for name, paths in total.most_common()]
        return ", ".join(shares) if len(shares) > 1 else ""


Portions = AsyncGenerator[list[Completion], None]


class Backend(Protocol):
    """Anything that can sample paths."""

    concurrency: int
    """How many problems may be under way at once."""

    def describe(self) -> dict[str, Any]:
        """What decides its paths (kind and model): part of the fingerprint. No addresses, no keys."""
        ...

    def sample(self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]) -> Portions:
        """The wanted paths, in whatever portions they arrive. May end early: what is missing is asked for again."""
        ...

    async def close(self) -> None: ...


def read_choices(document: Any, wanted: Sequence[Wanted], latency: float | None = None) -> list[Completion]:
    """The choices of an OpenAI-style answer, chat or completion; raises ValueError where it has none.

    The choice of index k is the k-th path, also where others are missing: it was drawn with that path's seed, and those
    are asked for again with theirs. Of choices without places of their own the order counts. What a server sends beyond
    what was asked for is dropped.
    """
    if not has_choices(document):
        raise ValueError("the answer holds no choices")
    choices = document["choices"]
    places = [choice.get("index") for choice in choices]
    if not _are_places(places, max(len(wanted), len(choices))):
        places = list(range(len(choices)))
    choice_at = dict(zip(places, choices, strict=True))
    told = [(choice_at[place], want) for place, want in enumerate(wanted) if place in choice_at]
    receipt = _receipt(document)
    tokens = receipt.completion_tokens if len(choices) == 1 else None
    return [
        _completion(choice, want, latency, tokens, receipt if number == 0 else None)
        for number, (choice, want) in enumerate(told)
    ]


def _are_places(told: Sequence[Any], n: int) -> bool:
    """Whether these are whole numbers from 0 and below n, each once."""
    return all(type(place) is int and 0 <= place < n for place in told) and len(set(told)) == len(told)


def odd_choices(choices: Sequence[Mapping[str, Any]], n: int) -> str | None:
    """Why choices cannot be the paths of a request for n: a reason in few words, or None if they can be."""
    if not all(isinstance(choice.get("message"), dict) or isinstance(choice.get("text"), str) for choice in choices):
        return "a choice without message and text"
    told = [choice.get("index") for choice in choices]
    if any(place is not None for place in told) and not _are_places(told, max(n, len(told))):
        return "choices whose indexes are not 0, 1, 2, …, each once"
    return None


def _receipt(document: Mapping[str, Any]) -> Receipt:
    usage = document.get("usage")
    counted = usage if isinstance(usage, dict) else {}
    return Receipt(
        _count(counted.get("prompt_tokens")),
        _count(counted.get("completion_tokens")),
        model_named(document),
        _name(document.get("system_fingerprint")),
    )


def _count(told: Any) -> int | None:
    return told if type(told) is int and 0 <= told < 2**31 else None


def model_named(document: Mapping[str, Any]) -> str | None:
    """The model that a reply says it is from."""
    return _name(document.get("model"))


def _name(told: Any) -> str | None:
    return told[:200] if isinstance(told, str) and told else None


def has_choices(document: Any) -> bool:
    """Whether an answer is what it should be: an object with at least one choice."""
    choices = document.get("choices") if isinstance(document, dict) else None
    return isinstance(choices, list) and bool(choices) and all(isinstance(choice, dict) for choice in choices)


def _completion(
    choice: dict[str, Any], want: Wanted, latency: float | None, tokens: int | None, receipt: Receipt | None
) -> Completion:
    logprobs, reason = logprobs_of(choice.get("logprobs")), choice.get("finish_reason")
    ended, counted = str(reason)[:40] if reason else None, tokens if logprobs is None else len(logprobs)
    return Completion(want.path, _text(choice), ended, logprobs, want.seed, latency, counted, receipt)


def _text(choice: dict[str, Any]) -> str:
    """What was said; reasoning that came apart from it stands before it in a reasoning block."""
    message = choice.get("message")
    if not isinstance(message, dict):
        return written(choice.get("text"))
    content = message.get("content")
    if type(content) is str and content and not message.get("reasoning") and not message.get("reasoning_content"):
        return content  # as nearly all are
    content = written(content) or written(message.get("refusal"))
    return text_of(content, written(message.get("reasoning")) or written(message.get("reasoning_content")))


def consecutive(wanted: Sequence[Wanted], most: int) -> list[list[Wanted]]:
    """Portions of paths whose seeds follow each other: child k of a request is drawn with its seed plus k."""
    portions: list[list[Wanted]] = []
    for want in wanted:
        if portions and len(portions[-1]) < most and want.seed == portions[-1][-1].seed + 1:
            portions[-1].append(want)
        else:
            portions.append([want])
    return portions
