"""Any OpenAI-compatible server, over HTTP.

All paths of a pool in one request where the server can, fewer at a time where it limits, one by one where it must; what
it can do is found out once. What may succeed later is tried again, what cannot fails at once. The key comes from the
environment and goes nowhere but into the request.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import time
from collections.abc import AsyncIterator, Sequence
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from quorate.backends.pacing import Pace
from quorate.backends.protocol import Completion, Prompt, Settings, Wanted, read_choices
from quorate.errors import BackendError, EndpointRefused, MissingExtra

_LATER = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_TOO_MUCH = frozenset({429, 503, 529})
_NEVER = frozenset({401, 403, 404, 405})
_MOST_BYTES = 256 * 2**20
_MOST_TRIES = 8
_LONGEST_WAIT = 20.0


class OpenAI:
    """A model on a server that speaks the OpenAI API. `patience` is how long a server may be away, in seconds."""

    def __init__(
        self,
        base_url: str | None = None,
        model: str | None = None,
        *,
        concurrency: int = 32,
        connect_seconds: float = 10.0,
        read_seconds: float = 600.0,
        patience: float = 300.0,
        largest_n: int | None = None,
        key_variable: str = "OPENAI_API_KEY",
    ) -> None:
        address = base_url or os.environ.get("OPENAI_BASE_URL")
        if not address:
            raise BackendError("no endpoint is named; give --base-url or set OPENAI_BASE_URL")
        if urlsplit(address).scheme not in ("http", "https"):
            raise BackendError(f"an endpoint's address begins with http:// or https://, got {without_secrets(address)}")
        self.base_url, self._login = _without_login(address.rstrip("/"))
        self.model, self.concurrency = model or "default", concurrency
        self.patience, self.largest_n = patience, largest_n
        self.retries = 0
        """Requests that had to be tried again."""
        self._key = os.environ.get(key_variable, "")
        self._key_variable = key_variable
        self._timeouts = (connect_seconds, read_seconds)
        self._pace = Pace(concurrency)
        self._session: Any = None
        self._last_success: float | None = None
        self._old_length_field = False
        self._seeds = True

    def describe(self) -> dict[str, Any]:
        return {"backend": "openai", "model": self.model}

    async def sample(
        self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]
    ) -> AsyncIterator[list[Completion]]:
        """Paths as they arrive; asks again for what a server that takes smaller portions left out."""
        remaining = list(wanted)
        while remaining:
            size = len(remaining) if self.largest_n is None else self.largest_n
            portions = [remaining[start : start + size] for start in range(0, len(remaining), size)]
            tasks = [asyncio.ensure_future(self._portion(prompt, settings, portion)) for portion in portions]
            got: set[int] = set()
            try:
                for arriving in asyncio.as_completed(tasks):
                    completions = await arriving
                    got.update(each.path for each in completions)
                    if completions:
                        yield completions
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            remaining = [want for want in remaining if want.path not in got]

    async def _portion(self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]) -> list[Completion]:
        """One request's worth of paths: none where the server refuses that many at once."""
        asked = time.monotonic()
        try:
            document = await self.post(*self._request(prompt, settings, wanted))
            found = read_choices(document, wanted, time.monotonic() - asked)
        except Refused as refused:
            if self._give_way(refused, len(wanted)):
                return []
            raise BackendError(refused.message) from None
        except ValueError as error:
            raise BackendError(f"the endpoint's answer cannot be used: {error}") from None
        if len(found) < len(wanted):
            self.largest_n = min(self.largest_n or len(found), len(found))
        return found

    def _give_way(self, refused: Refused, n: int) -> bool:
        """Whether a refused request may be put another way, and put it so from now on."""
        said = refused.message.lower()
        if "max_completion_tokens" in said and not self._old_length_field:
            self._old_length_field = True
        elif "seed" in said and self._seeds:
            self._seeds = False
        elif "logprob" in said and n == 1:
            raise BackendError(
                "the endpoint gives no token log-probabilities; start it with them, or add --no-logprobs and choose a "
                f"score that does not need them ({refused.message})"
            )
        elif n > 1:
            self.largest_n = max(1, min(self.largest_n or n, n) // 2)
        else:
            return False
        return True

    def _request(self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]) -> tuple[str, dict[str, Any]]:
        body: dict[str, Any] = {"model": self.model, "temperature": settings.temperature}
        if settings.top_p != 1:
            body["top_p"] = settings.top_p
        if settings.stop:
            body["stop"] = list(settings.stop)
        if len(wanted) > 1:
            body["n"] = len(wanted)
        if self._seeds:
            body["seed"] = wanted[0].seed
        if prompt.text is not None:
            body |= {"prompt": prompt.text, "max_tokens": settings.max_tokens}
            if settings.logprobs:
                body["logprobs"] = 1
            return "/completions", body
        length = "max_tokens" if self._old_length_field else "max_completion_tokens"
        body |= {"messages": [dict(message) for message in prompt.messages], length: settings.max_tokens}
        if settings.logprobs:
            body |= {"logprobs": True, "top_logprobs": 0}
        return "/chat/completions", body

    async def post(self, route: str, body: dict[str, Any]) -> Any:
        """The parsed answer of a route. Tries again what may succeed later, within `patience`."""
        payload = json.dumps(body).encode()
        first_failure: float | None = None
        tries = 0
        while True:
            try:
                async with self._pace:
                    return await self._once(route, payload)
            except _Later as problem:
                now = time.monotonic()
                first_failure = first_failure or now
                tries += 1
                self.retries += 1
                # A server that answers others but never this one will not change its mind; one that is away may return.
                others = self._last_success is not None and self._last_success > first_failure
                if (others and tries >= _MOST_TRIES) or now - max(
                    first_failure, self._last_success or 0
                ) > self.patience:
                    raise BackendError(f"gave up after {tries} tries: {problem}") from None
                wait = max(problem.retry_after, min(_LONGEST_WAIT, 0.25 * 2**tries) * random.uniform(0.5, 1.0))
                await asyncio.sleep(wait)

    async def get(self, route: str) -> tuple[int, Any]:
        """Status and parsed body of a route, tried once: for probing."""
        session = self._open()
        async with session.get(self.base_url + route, allow_redirects=False) as response:
            return response.status, _parsed(await response.read())

    async def _once(self, route: str, payload: bytes) -> Any:
        import aiohttp

        session = self._open()
        try:
            async with session.post(self.base_url + route, data=payload, allow_redirects=False) as response:
                raw = await _body(response)
                status, retry_after = response.status, _seconds(response.headers.get("Retry-After"))
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            reason = str(error) or type(error).__name__
            raise _Later(
                f"the endpoint {without_secrets(self.base_url)} cannot be reached: {self._redact(reason)}"
            ) from None
        document = _parsed(raw)
        if status == 200:
            if document is None:
                raise _Later("the endpoint's answer is not JSON")
            if isinstance(document, dict) and document.get("error") and not document.get("choices"):
                raise _Later(f"the endpoint answered with an error: {self._said(document, raw)}")
            self._last_success = time.monotonic()
            self._pace.succeeded()
            return document
        said = f"the endpoint answered {status}: {self._said(document, raw)}"
        if status in _LATER:
            if status in _TOO_MUCH:
                self._pace.pushed_back(retry_after)
            raise _Later(said, retry_after)
        if status in _NEVER:
            hint = {401: f"; set {self._key_variable}", 403: f"; check {self._key_variable}"}.get(
                status, f"; check the address ({without_secrets(self.base_url)}) and the model ({self.model})"
            )
            raise EndpointRefused(said + hint)
        raise Refused(said)

    def _said(self, document: Any, raw: bytes) -> str:
        error = document.get("error", document) if isinstance(document, dict) else None
        message = error.get("message") or error.get("detail") if isinstance(error, dict) else error
        text = str(message) if message else raw[:300].decode("utf-8", "replace")
        return self._redact(" ".join(text.split())[:300]) or "nothing"

    def _redact(self, text: str) -> str:
        for secret in (self._key, self._login, self._login.partition(":")[2]):
            text = text.replace(secret, "[secret]") if secret else text
        return text.replace(self.base_url, without_secrets(self.base_url))

    def _open(self) -> Any:
        if self._session is None:
            try:
                import aiohttp
            except ImportError:
                raise MissingExtra("a server needs aiohttp; install it with: pip install 'quorate[http]'") from None
            connect, read = self._timeouts
            headers = {"Content-Type": "application/json"}
            if self._key or self._login:
                login = base64.b64encode(self._login.encode()).decode()
                headers["Authorization"] = f"Bearer {self._key}" if self._key else f"Basic {login}"
            self._session = aiohttp.ClientSession(
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=read),
                connector=aiohttp.TCPConnector(limit=0),  # the pace bounds requests
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


class _Later(Exception):
    """A failure that may pass."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Refused(Exception):
    """The server does not take the request as it is; it may take it put another way."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def _without_login(address: str) -> tuple[str, str]:
    """An address as it is asked, and the user and password that stood in it."""
    parts = urlsplit(address)
    login, _, host = parts.netloc.rpartition("@")
    return urlunsplit((parts.scheme, host, parts.path, parts.query, "")), unquote(login)


def without_secrets(address: str) -> str:
    """An address without user, password and query."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


async def _body(response: Any) -> bytes:
    """The whole body, unless it is beyond any sense."""
    found = bytearray()
    async for part in response.content.iter_any():
        found += part
        if len(found) > _MOST_BYTES:
            raise BackendError(f"the endpoint sent more than {_MOST_BYTES} bytes in one answer")
    return bytes(found)


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _seconds(header: str | None) -> float:
    """Retry-After, in seconds from now: a number or a date. At most ten minutes."""
    if not header:
        return 0.0
    try:
        wait = float(header)
    except ValueError:
        try:
            wait = parsedate_to_datetime(header).timestamp() - time.time()
        except ValueError:
            return 0.0
    return min(max(wait, 0.0), 600.0)
