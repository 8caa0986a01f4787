"""One model on several servers: requests spread by weight and load, a dead server set aside and tried again.

    Interchangeable([OpenAI(one, "m", patience=5), OpenAI(other, "m", patience=5)], weights=[1, 2])

Which server brought a path is no part of what the paths are: all must serve the same model. They are asked at first use
what they list and what they say of themselves, and are refused where that differs; one that was away is compared when
it is back. What differs later is kept as an event; a server that answers as another model is not asked again.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, NoReturn

from demur.backends.openai import OpenAI
from demur.backends.protocol import Completion, Portions, Settings, Wanted
from demur.errors import BackendError, EndpointRefused, EndpointSilent, InvalidValue
from demur.foreign_code import FromFile
from demur.prompts import Prompt

_LONGEST_PAUSE = 60.0
_WEIGHTED = re.compile(r"([^:/]*):(?=https?://)")
_MOST_EVENTS = 50
_Facts = dict[str, str]
_MODEL, _FINGERPRINT, _TOKENS = "model", "system fingerprint", "tokens of the same prompt"
_LOGPROBS = "token log-probabilities"
MEMBER_PATIENCE = 5.0
"""How long nothing may come from one of several servers before the others do its work, in seconds."""
_PATIENCE, _FIRST_CONTACT = 300.0, 5.0
_LIST_SECONDS = 30.0
"""How long a server may take to list its models: a busy one answers that too, and one that hangs does not."""


def weighted_address(text: str) -> tuple[float, str]:
    """A weight and an address, from `2:http://host/v1`; no address begins like that, and 1 where none is said."""
    said = _WEIGHTED.match(text)
    if said is None:
        return 1.0, text
    try:
        weight = float(said.group(1))
    except ValueError:
        weight = 0.0
    if not 0 < weight < 1e6:
        raise InvalidValue(
            f"the weight of an endpoint is a number above 0, as in 2:http://host/v1, got {said.group(1)!r:.40}"
        )
    address = text[said.end() :]
    return weight, FromFile(address, text.repeat) if isinstance(text, FromFile) else address


@dataclass
class _Member:
    """A server, and how it fares."""

    backend: OpenAI
    weight: float
    busy: int = 0
    """Problems that it is asked for now."""
    given: int = 0
    """Problems that it was ever asked for."""
    checked: bool = False
    """Whether it is known to serve the same model, and was not away since."""
    was_the_same: bool = False
    """Whether it ever did."""
    pause: float = 0.0
    retry_after: float = 0.0
    """The wait that it asked for itself, when it was set aside."""
    aside_until: float | None = None
    """When it is tried again; None: it is not set aside."""
    for_good: bool = False
    why: str = ""
    told: set[tuple[str, str]] = field(default_factory=set)

    @property
    def shown(self) -> str:
        return self.backend.endpoint.shown

    def may_be_asked(self, now: float) -> bool:
        """One that was set aside is tried with one problem at a time, when its time has come."""
        if self.for_good:
            return False
        return self.aside_until is None or (now >= self.aside_until and not self.busy)


class Interchangeable:
    """One model on several servers.

    `patience` is how long nothing may come from any of them, in seconds. A server that fails is set aside for `pause`
    seconds, twice as long each time that it fails again. With `mixed_models` replies may name several models.
    """

    def __init__(
        self,
        backends: Sequence[OpenAI],
        weights: Sequence[float] | None = None,
        *,
        patience: float | None = None,
        pause: float = 2.0,
        mixed_models: bool = False,
    ) -> None:
        if len({backend.model for backend in backends}) != 1:
            raise InvalidValue("several endpoints of one run serve one model: give each the same name of it")
        if len({backend.endpoint.base_url for backend in backends}) < len(backends):
            raise InvalidValue(
                "an endpoint is named twice", "name it once, with a weight if it is to get more: 2:http://host/v1"
            )
        given = [1.0] * len(backends) if weights is None else list(weights)
        self._members = [_Member(*pair) for pair in zip(backends, given, strict=True)]
        self.model, self.patience, self.pause = backends[0].model, patience, pause
        self._mixed_models = mixed_models
        self.concurrency = max(backend.concurrency for backend in backends)
        self.events: list[str] = []
        """What befell the servers."""
        self._same: _Facts = {}
        """What they say of themselves, as they were compared."""
        self._checking = asyncio.Lock()
        self._silent_since: float | None = None
        self._compared = False

    @property
    def told(self) -> str:
        """Where the servers are, in words."""
        return ", ".join(
            member.backend.endpoint.told + (f" (weight {member.weight:g})" if member.weight != 1 else "")
            for member in self._members
        )

    @property
    def retries(self) -> int:
        """Requests that had to be tried again."""
        return sum(member.backend.retries for member in self._members)

    @property
    def trouble(self) -> str:
        """Why the last of them had to."""
        aside = [f"{one.shown} is set aside: {one.why}" for one in self._members if one.aside_until is not None]
        return "; ".join(aside) or next((one.backend.trouble for one in self._members if one.backend.trouble), "")

    def describe(self) -> dict[str, Any]:
        return self._members[0].backend.describe()

    async def close(self) -> None:
        for member in self._members:
            await member.backend.close()

    async def reachable(self) -> bool:
        """Whether any of them answers."""
        for member in self._members:
            try:
                status, _ = await member.backend.endpoint.get("/models")
            except BackendError:
                continue
            if status < 500:
                return True
        return False

    async def sample(self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]) -> Portions:
        """Paths as they arrive. What one server does not bring is asked of the others; what none does is waited for."""
        await self._check_all(prompt, settings.logprobs)
        remaining, failures = list(wanted), dict[str, BackendError]()
        while remaining:
            member = await self._next(failures)
            member.busy += 1
            member.given += 1
            try:
                if not member.checked:
                    await self._check(member, prompt, settings.logprobs)
                async with aclosing(member.backend.sample(prompt, settings, remaining)) as portions:
                    async for portion in portions:
                        self._see(member, portion)
                        came = {completion.path for completion in portion}
                        remaining = [want for want in remaining if want.path not in came]
                        yield portion
                self._fares_well(member)
                failures.clear()
                if remaining:  # it gave fewer than it was asked for, and may do so again
                    return
            except BackendError as error:
                failures[member.shown] = error
                if isinstance(error, EndpointRefused) and not member.for_good:
                    self._set_aside(member, error)
            finally:
                member.busy -= 1

    async def _next(self, failures: dict[str, BackendError]) -> _Member:
        """The server with the least to do for its weight, and of these the one that was given least.

        Those that failed this problem come last, or never.
        """
        while True:
            now = time.monotonic()
            able = [one for one in self._members if one.shown not in failures and one.may_be_asked(now)]
            if able:
                return min(able, key=lambda one: (one.busy / one.weight, one.given / one.weight))
            refusals = [error for error in failures.values() if not isinstance(error, EndpointSilent)]
            if of_the_problem := [error for error in refusals if not isinstance(error, EndpointRefused)]:
                raise of_the_problem[-1]  # those that are set aside would not fare better: it is the same model
            others = [one for one in self._members if not one.for_good and one.shown not in failures]
            if refusals and not others:  # each that could be asked was: it is not the servers' fault
                raise refusals[-1]
            if all(one.for_good for one in self._members):
                raise EndpointRefused(f"none of the endpoints can be asked: {self._whys()}")
            self._refuse_silence(now)
            for name in [name for name, error in failures.items() if isinstance(error, EndpointSilent)]:
                del failures[name]  # it may be back
            await asyncio.sleep(0.1)

    def _refuse_silence(self, now: float) -> None:
        """Raise where none of them answered for longer than the patience, or each asks for a longer wait."""
        self._silent_since = now if self._silent_since is None else self._silent_since
        wait = math.ceil(min(one.retry_after for one in self._members if not one.for_good))
        if wait > self._longest:
            raise EndpointSilent(
                f"none of the endpoints answers: {self._whys()}",
                f"come back then, or have them waited for with {{patience={wait + 60}}}",
            )
        if now - self._silent_since >= self._longest:
            raise EndpointSilent(
                f"none of the endpoints answers: {self._whys()}",
                "check that they run, or wait longer for them with {patience=3600}",
            )

    @property
    def _longest(self) -> float:
        if self.patience is not None:
            return self.patience
        return _PATIENCE if any(one.backend.endpoint.ever_answered for one in self._members) else _FIRST_CONTACT

    def _whys(self) -> str:
        return "; ".join(f"{one.shown}: {one.why}" for one in self._members if one.why)

    def _fares_well(self, member: _Member) -> None:
        self._silent_since = None
        if member.aside_until is not None:
            if time.monotonic() < member.aside_until:
                return  # what was under way when it was set aside says nothing of now
            self._note(f"{member.shown} is back")
        member.aside_until, member.pause, member.retry_after, member.why = None, 0.0, 0.0, ""
        member.checked = member.was_the_same = True

    def _set_aside(self, member: _Member, error: BackendError) -> None:
        now = time.monotonic()
        if member.aside_until is None:
            self._note(f"{member.shown} is set aside: {error.message}")
        elif now < member.aside_until:
            return  # of all that was under way there, each fails: that is one failure
        member.pause = (min(2 * member.pause, _LONGEST_PAUSE) if self._compared else 0.0) or self.pause
        member.retry_after = error.retry_after if isinstance(error, EndpointSilent) else 0.0
        member.why, member.aside_until = error.message, now + max(member.pause, member.retry_after)
        member.checked = False  # who knows as what it comes back

    def _note(self, event: str) -> None:
        if len(self.events) < _MOST_EVENTS:
            self.events.append(event)

    async def _check_all(self, prompt: Prompt, logprobs: bool) -> None:
        """At first use: what all servers say of themselves, compared. Those that are away are compared when back."""
        if self._compared:
            return
        async with self._checking:
            if self._compared:
                return
            while not (answered := await self._answers(prompt, logprobs)):
                self._refuse_silence(time.monotonic())
                await asyncio.sleep(min(self.pause, self._longest))
            if differences := _differences(answered):
                raise EndpointRefused(
                    f"the endpoints do not serve the same model: {'; '.join(differences)}",
                    "name those that do as {base_url}",
                )
            self._same = {name: value for facts in answered.values() for name, value in facts.items()}
            for member in self._members:
                member.checked = member.was_the_same = member.shown in answered
            self._compared, self._silent_since = True, None

    async def _answers(self, prompt: Prompt, logprobs: bool) -> dict[str, _Facts]:
        """What each server says of itself that is there; the others are set aside."""
        now = time.monotonic()
        asked = [member for member in self._members if now >= (member.aside_until or 0.0) or not member.retry_after]
        told = await asyncio.gather(
            *(self._about(member, prompt, logprobs) for member in asked), return_exceptions=True
        )
        answered: dict[str, _Facts] = {}
        for member, about in zip(asked, told, strict=True):
            if isinstance(about, EndpointSilent):
                self._set_aside(member, about)
            elif isinstance(about, BackendError) and member.shown not in str(about):
                raise type(about)(f"{member.shown}: {about.message}", about.remedy)
            elif isinstance(about, BaseException):
                raise about
            else:
                answered[member.shown] = about
        for member in asked:
            if member.shown in answered and member.aside_until is not None:
                self._fares_well(member)
        return answered

    async def _check(self, member: _Member, prompt: Prompt, logprobs: bool) -> None:
        """What a server says of itself that was away, when the others were compared or since."""
        try:
            about = await self._about(member, prompt, logprobs)
        except EndpointRefused:
            raise
        except BackendError as error:  # it refuses what the others answered, whatever the problem
            raise EndpointRefused(error.message, error.remedy) from None
        if member.was_the_same:
            about.pop(_FINGERPRINT, None)  # a newer program may serve the same model; it is noted with the first paths
        if differences := _differences({"the others": self._same, member.shown: about}):
            self._leave(member, "; ".join(differences))
        member.checked = True

    async def _about(self, member: _Member, prompt: Prompt, logprobs: bool) -> _Facts:
        """What a server says of itself: whether it lists the model, what it calls itself, how it counts a prompt.

        And whether it gives the log-probabilities that are wanted: half of the paths without them serve nobody.
        """
        facts: _Facts = {}
        try:
            status, document = await member.backend.endpoint.get("/models", seconds=_LIST_SECONDS)
        except EndpointSilent:
            raise
        except BackendError:  # not everybody has a list
            status, document = 0, None
        listed = document.get("data") if status == 200 and isinstance(document, dict) else None
        entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
        if entries:
            named = [entry for entry in entries if entry.get("id") == self.model]
            facts["listed among its models"] = "yes" if named else "no"
            meta = named[0].get("meta") if named else None  # of llama.cpp
            known = meta if isinstance(meta, dict) else {}
            facts |= {name: str(known[name])[:40] for name in ("n_params", "n_vocab", "size") if name in known}
        words = "Say: one two three"
        chat = ({"role": "user", "content": words},)
        probe = Prompt("probe", chat) if prompt.text is None else Prompt("probe", text=words)
        first = Settings(temperature=0.0, max_tokens=1, logprobs=logprobs)
        async with aclosing(member.backend.sample(probe, first, [Wanted(0, 0)])) as portions:
            async for portion in portions:
                facts |= _said(portion)
                if self._mixed_models:
                    facts.pop(_MODEL, None)
                if logprobs and portion[0].text:  # a blank one has none to give
                    facts[_LOGPROBS] = "no" if portion[0].logprobs is None else "yes"
        return facts

    def _see(self, member: _Member, portion: Sequence[Completion]) -> None:
        """Raise where a server answers as another model; keep what else has changed."""
        for name, value in _said(portion).items():
            if name == _TOKENS or self._same.setdefault(name, value) == value:
                continue
            if name == _MODEL and not self._mixed_models:
                self._leave(member, f"it answers as {value!r}, not as {self._same[name]!r}")
            if (name, value) not in member.told:
                member.told.add((name, value))
                self._note(f"{member.shown}: its {name} is {value!r}, and {self._same[name]!r} was first seen")

    def _leave(self, member: _Member, why: str) -> NoReturn:
        """Ask a server no more: it serves another model."""
        if not member.for_good:
            self._note(f"{member.shown} is not asked any more: {why}")
        member.for_good, member.why = True, why
        raise EndpointRefused(f"{member.shown} serves another model: {why}")


def _said(portion: Sequence[Completion]) -> _Facts:
    """What a server says of itself with its answer."""
    facts: _Facts = {}
    for receipt in (completion.receipt for completion in portion):
        if receipt is not None:
            told = {_MODEL: receipt.model, _FINGERPRINT: receipt.system_fingerprint, _TOKENS: receipt.prompt_tokens}
            facts |= {name: str(value) for name, value in told.items() if value is not None}
    return facts


def _differences(answered: Mapping[str, _Facts]) -> list[str]:
    """What servers say differently of themselves; what one does not say is no difference."""
    names = dict.fromkeys(name for facts in answered.values() for name in facts)
    differences = []
    for name in names:
        said = {place: facts[name] for place, facts in answered.items() if name in facts}
        if len(set(said.values())) > 1:
            differences.append(f"{name}: " + ", ".join(f"{value!r} at {place}" for place, value in said.items()))
    return differences
