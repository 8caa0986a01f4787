"""An HTTP endpoint: requests paced, tried again where that may help, failed at once where it cannot.

The key comes from the environment and goes nowhere but into the request, and only to an address that the user named;
no redirect is followed and no proxy asked. What a server says is freed of secrets before anything else is done with it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from demur.backends import tracing
from demur.backends._pacing import CHANCE, Pace
from demur.backends.addresses import is_web_address, same_address, usable_key, without_login
from demur.backends.protocol import ReportedModels, has_choices, model_named
from demur.backends.redaction import Secrets, secrets_of, shown_address
from demur.errors import BackendError, EndpointRefused, EndpointSilent, MissingExtra, NoSuchRoute
from demur.files.strict_json import as_json
from demur.foreign_code import FromFile

_LATER = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_TOO_MUCH = frozenset({429, 503, 529})
_AWAY = frozenset({502, 503, 504, 520, 522, 524})
_NEVER = frozenset({401, 402, 403, 404, 405})
_MOST_BYTES = 256 * 2**20
_MOST_TRIES = 8
_LONGEST_WAIT = 20.0
_ANSWER_SECONDS = 600.0
_PATIENCE = 300.0
_FIRST_CONTACT = 5.0


class Endpoint:
    """An address to post JSON to.

    `patience` is how long nothing may come from it, in seconds; unless it is given, 300, and 5 where nothing ever
    answered. `answer_seconds` is how long one answer may take, from the request to its last byte.
    `name` prefixes the environment variables that hold its address and key: NAME_BASE_URL, NAME_API_KEY.
    """

    def __init__(
        self,
        base_url: str | None,
        name: str,
        *,
        concurrency: int,
        connect_seconds: float = 10.0,
        answer_seconds: float | None = None,
        patience: float | None = None,
        serves: str = "what it serves",
    ) -> None:
        usual = os.environ.get(f"{name}_BASE_URL", "")
        address = base_url or usual
        if not address:
            raise BackendError("no endpoint is named", f"give {{base_url}} or set {name}_BASE_URL")
        if not is_web_address(address):
            raise BackendError(
                f"{shown_address(address)} is no address of an endpoint, such as http://localhost:8000/v1"
            )
        self.base_url, self._login = without_login(address.rstrip("/"))
        self.shown = shown_address(self.base_url)
        """The address as it may be printed."""
        self.patience, self.answer_seconds, self.serves = patience, answer_seconds, serves
        self.retries = 0
        """Requests that had to be tried again."""
        self.trouble = ""
        """Why the last of them had to."""
        self._key_variable = f"{name}_API_KEY"
        key = usable_key(os.environ.get(self._key_variable, ""), self._key_variable)
        self._withheld = bool(key) and isinstance(base_url, FromFile) and not same_address(base_url, usual)
        self._key = "" if self._withheld else key
        self._secrets = Secrets(key, self._login, *secrets_of(address))
        self._connect_seconds = connect_seconds
        self._pace = Pace(concurrency)
        self._session: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last_success: float | None = None
        self._silent_since: float | None = None
        """When it was first away or too busy, if nothing came since."""
        self.ever_answered = self._gave_up = False
        self._in_trouble = 0
        """Requests that failed and are tried again."""
        self.reported: ReportedModels | None = None
        """What compares the models that replies name; None if nothing does here."""
        self._patience_option = "patience" if name == "OPENAI" else f"{name.lower()}.patience"

    @property
    def told(self) -> str:
        """Where it is, and whether a key goes there, in words."""
        if not self._withheld:
            return self.shown
        return f"{self.shown}, which a file names: {self._key_variable} is not sent there unless you name it too"

    @property
    def never_served(self) -> bool:
        """Whether no request has had the answer it asked for yet."""
        return self._last_success is None

    async def post(
        self, route: str, body: dict[str, Any], *, at_root: bool = False, seconds: float = _ANSWER_SECONDS
    ) -> Any:
        """The parsed answer of a route. Tries again what may succeed later, within `patience`.

        `at_root`: the route lies beside /v1, not under it. `seconds` is how long an answer to this may take, unless
        `answer_seconds` says it for all.
        """
        payload = as_json(body).encode()
        first_failure: float | None = None
        tries = 0
        try:
            while True:
                try:
                    async with self._pace:
                        address = self._address(route, at_root=at_root)
                        document = await self._once(address, payload, self.answer_seconds or seconds)
                        self._compare(document)
                        return document
                except _Later as problem:
                    now = time.monotonic()
                    if first_failure is None:
                        first_failure, self._in_trouble = now, self._in_trouble + 1
                    tries += not problem.too_much  # being told to wait is no failure
                    self._refuse_silence(problem, now, tries)
                    # A server that answers others but never this one will not change its mind.
                    if tries >= _MOST_TRIES and self._last_success is not None and self._last_success > first_failure:
                        raise BackendError(f"gave up after {tries} tries: {problem}") from None
                    self.retries, self.trouble = self.retries + 1, str(problem)
                    if not problem.too_much:  # else the pace holds everybody off
                        wait = min(_LONGEST_WAIT, 0.25 * 2**tries) * CHANCE.uniform(0.5, 1.0)
                        await asyncio.sleep(max(wait, problem.retry_after))
        finally:
            self._in_trouble -= first_failure is not None

    def _compare(self, document: Any) -> None:
        name = model_named(document) if isinstance(document, dict) else None
        if self.reported is not None and name is not None:
            self.reported.add({name: 1})

    @property
    def _patience(self) -> float:
        if self.patience is not None:
            return self.patience
        return _PATIENCE if self.ever_answered else _FIRST_CONTACT

    def _refuse_silence(self, problem: _Later, now: float, tries: int) -> None:
        """Raise where nobody was answered for longer than the patience, or will be: that no request can change.

        One request that fails alone, after others did not, may itself be the reason: it fails first, by itself.
        """
        if problem.retry_after > self._patience:
            wait = math.ceil(problem.retry_after)
            silent = EndpointSilent(
                f"{problem}; it asks for a wait of {wait} s, longer than the patience of {self._patience:g} s",
                f"come back then, or have it waited for with {{{self._patience_option}={wait + 60}}}",
            )
            silent.retry_after = problem.retry_after
            raise silent from None
        self._silent_since = now if self._silent_since is None else self._silent_since
        if now - self._silent_since >= self._patience:
            alone = self._last_success is not None and self._in_trouble == 1 and not self._gave_up
            if not problem.is_silence and (alone or not self._patience):
                self._gave_up = True
                raise BackendError(f"gave up after {tries} tries: {problem}") from None
            self._gave_up = True
            ever = "" if self.ever_answered else ", and nothing ever has from there"
            raise EndpointSilent(
                f"{problem} (for {now - self._silent_since:.0f} s nothing came{ever})",
                f"check that it runs, or wait longer for it with {{{self._patience_option}=3600}}",
            ) from None

    async def get(self, route: str, *, seconds: float = _ANSWER_SECONDS) -> tuple[int, Any]:
        """Status and parsed body of a route, tried once: for probing. `seconds` is how long that may take."""
        session = self._open()
        try:
            asking = session.get(self._address(route), allow_redirects=False)
            async with self._trouble_told(min(seconds, self.answer_seconds or seconds)), asking as response:
                raw = self._secrets.out_of_body(await _body(response))
                return response.status, self._secrets.out_of_value(_parsed(raw), raw)
        except _Later as problem:
            silent = problem.is_silence or isinstance(problem, _Overdue)
            raise (EndpointSilent if silent else BackendError)(str(problem)) from None

    async def _once(self, address: str, payload: bytes, seconds: float) -> Any:
        session = self._open()
        asking = session.post(address, data=payload, headers=tracing.headers(), allow_redirects=False)
        async with self._trouble_told(seconds), asking as response:
            raw = self._secrets.out_of_body(await _body(response))
            status, retry_after = response.status, _seconds(response.headers.get("Retry-After"))
            elsewhere = response.headers.get("Location", "")
        self.ever_answered = True
        if status != 200 and status not in _LATER:  # a refusal is an answer too
            self._silent_since = None
        document = self._secrets.out_of_value(_parsed(raw), raw)
        if status == 200:
            if document is None:
                raise _Later("the endpoint's answer is not JSON")
            if isinstance(document, dict) and document.get("error") and not document.get("choices"):
                raise _Later(f"the endpoint answered with an error: {self._said(document, raw)}")
            if urlsplit(address).path.endswith("/completions") and not has_choices(document):
                raise _Later("the endpoint's answer holds no choices")
            self._last_success, self._silent_since, self._gave_up = time.monotonic(), None, False
            self._pace.succeeded()
            return document
        said = f"the endpoint answered {status}: {self._said(document, raw)}"
        if status in _LATER:
            if status in _TOO_MUCH:
                self._pace.pushed_back(retry_after if retry_after <= self._patience else 0.0)
            raise _Later(said, retry_after, too_much=status in _TOO_MUCH, away=status in _AWAY)
        if status in _NEVER:
            if status in (404, 405):
                raise NoSuchRoute(f"{said}; check the address ({self.shown}) and {self.serves}")
            if self._withheld:
                unsent = f"{said}; {self._key_variable} was not sent, because a file names the address"
                raise EndpointRefused(unsent, f"confirm it: {{trust_address={self.shown}}}")
            raise EndpointRefused(f"{said}; {'check' if self._key else 'set'} {self._key_variable}")
        if 300 <= status < 400:
            target = f" to {self._secrets.out_of(shown_address(elsewhere))[:200]}" if elsewhere else ""
            moved = f"the endpoint {self.shown} answered {status}, a redirect{target}; demur follows none, for the key"
            raise EndpointRefused(moved, "name the address where it ends as {base_url}")
        raise Refused(said)

    @asynccontextmanager
    async def _trouble_told(self, seconds: float) -> AsyncIterator[None]:
        """Within, an answer has so many seconds, and what goes wrong on the way is told in one line."""
        import aiohttp

        try:
            async with asyncio.timeout(seconds):
                yield
        except (aiohttp.InvalidURL, aiohttp.ClientSSLError, UnicodeError) as error:  # a name no host can have
            raise EndpointRefused(
                f"the endpoint {self.shown} cannot be used: {self._secrets.out_of(str(error))}"
            ) from None
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            away = isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError))
            if isinstance(error, TimeoutError) and not away:
                self._pace.pushed_back(0.0)  # fewer at once may each be done in time
                raise _Overdue(f"the endpoint {self.shown} did not end its answer within {seconds:g} s") from None
            reason = self._secrets.out_of(str(error) or type(error).__name__)
            raise _Later(f"the endpoint {self.shown} cannot be reached: {reason}", away=away) from None

    def _said(self, document: Any, raw: bytes) -> str:
        error = document.get("error", document) if isinstance(document, dict) else None
        message = error.get("message") or error.get("detail") if isinstance(error, dict) else error
        text = str(message) if message else raw[:10_000].decode("utf-8", "replace")
        return self._secrets.out_of(" ".join(text[:10_000].split()))[:300] or "nothing"

    def _address(self, route: str, *, at_root: bool = False) -> str:
        return _joined(self.base_url, route, at_root=at_root)

    def _open(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._session is not None and self._loop is not loop:  # connections belong to the loop that opened them
            if self._loop is not None and self._loop.is_running():
                asyncio.run_coroutine_threadsafe(self._session.close(), self._loop)
            self._session = None
        if self._session is None:
            self._loop = loop
            try:
                import aiohttp
            except ImportError:
                raise MissingExtra("a server needs aiohttp", "http") from None
            headers = {"Content-Type": "application/json"}
            if self._key or self._login:
                login = base64.b64encode(self._login.encode()).decode()
                headers["Authorization"] = f"Bearer {self._key}" if self._key else f"Basic {login}"
            self._session = aiohttp.ClientSession(
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_seconds),
                connector=aiohttp.TCPConnector(limit=0),  # the pace bounds requests
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


class UsesEndpoint:
    """Whatever asks an endpoint, tells of its trouble and closes it."""

    endpoint: Endpoint

    @property
    def retries(self) -> int:
        """Requests that had to be tried again."""
        return self.endpoint.retries

    @property
    def trouble(self) -> str:
        """Why the last of them had to."""
        return self.endpoint.trouble

    async def close(self) -> None:
        await self.endpoint.close()


class _Later(Exception):
    """A failure that may pass."""

    def __init__(self, message: str, retry_after: float = 0.0, *, too_much: bool = False, away: bool = False) -> None:
        super().__init__(message)
        self.retry_after, self.too_much = retry_after, too_much
        self.is_silence = too_much or away
        """Whether no other request would fare better."""


class _Overdue(_Later):
    """An answer that did not end in time."""


class Refused(Exception):
    """The server does not take the request as it is; it may take it put another way."""


@lru_cache(maxsize=256)
def _joined(base_url: str, route: str, *, at_root: bool) -> str:
    parts = urlsplit(base_url)
    under = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=(under.removesuffix("/v1") if at_root else under) + route))


async def _body(response: Any) -> bytes:
    """The whole body, unless it is beyond any sense."""
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) > _MOST_BYTES:
            raise BackendError(f"the endpoint sent more than {_MOST_BYTES} bytes in one answer")
    return bytes(body)


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode())  # UTF-8 alone: what is spelt otherwise could not be freed of secrets
    except (ValueError, RecursionError):
        return None


def _seconds(header: str | None) -> float:
    """Retry-After, in seconds from now: a number or a date; 0 where it is neither."""
    try:
        wait = float(header or 0)
    except ValueError:
        try:
            wait = parsedate_to_datetime(header or "").timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return 0.0
    return max(wait, 0.0) if math.isfinite(wait) else 0.0
