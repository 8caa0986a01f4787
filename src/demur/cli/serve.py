"""`demur serve`: policies as models of an OpenAI-compatible endpoint."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demur.cli import output, pipelines
from demur.cli.options import Config, Json, KeyFile, Seed, ServicePlace, Text, mention, option
from demur.cli.policy_files import load_policy, stage_settings
from demur.cli.sampling_options import (
    AnswerSeconds,
    BackendName,
    BackendSet,
    BaseUrl,
    Concurrency,
    FirstWave,
    Model,
    Patience,
    ScorerSet,
    TrustAddress,
    Wave,
    backend_flags,
    scorer_flags,
    waves_of,
)
from demur.errors import InvalidValue, MissingExtra

if TYPE_CHECKING:
    from demur.store.service import ServiceStore

NAME = "serve"
HELP = """Serve policies as an OpenAI-compatible endpoint that answers or abstains.

Each policy is a model, named after its file or as you say (`--policy NAME=FILE`); `NAME@0.05` is one of its alphas. A
client changes its base URL and nothing else. At start each policy is compared with the model and the scorers that are
there; if they differ, nothing is served.

Examples:

`demur serve --policy policy.json`

`demur serve --policy sums=policy.json --alias gpt-4o=sums@0.05 --base-url http://localhost:8000/v1 --port 9000`
"""
_OF_POLICIES = ("base_url", "model")
_WITH_KEYS = "keys are asked for: `demur keys` makes, lists and revokes them"
_WITHOUT_KEYS = "no keys are asked for, so only this machine is let in; `demur keys add NAME` makes the first key"


def run(
    policy: Annotated[list[str] | None, option("--policy", "[NAME=]FILE", "A policy to serve; repeatable.")] = None,
    alias: Annotated[
        list[str] | None, option("--alias", "ALIAS=MODEL", "Another name of a policy, or of one of its alphas.")
    ] = None,
    at: Annotated[
        list[str] | None, option("--at", "NAME.KEY=VALUE", "base_url or model of one policy, where they differ.")
    ] = None,
    key_file: KeyFile = None,
    host: Annotated[str, option("--host", "ADDRESS", "Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0: any.")] = 8080,
    store: ServicePlace = "service.db",
    require_keys: Annotated[
        bool, typer.Option("--require-keys", help="Ask for keys even where the store has none yet.")
    ] = False,
    no_log: Annotated[bool, typer.Option("--no-log", help="Keep nothing: no audits, no reviews, no alarms.")] = False,
    workers: Annotated[int, typer.Option("--workers", min=1, max=256, help="Processes that serve.")] = 1,
    grace: Annotated[float, option("--grace", "SECONDS", "How long requests may finish when it is to end.")] = 20.0,
    audit_share: Annotated[
        float, option("--audit-share", "SHARE", "Share of all requests that people are to check.")
    ] = 0.05,
    second_opinions: Annotated[
        float, option("--second-opinions", "SHARE", "Share of reviews that a second person is to judge too.")
    ] = 0.0,
    no_texts: Annotated[bool, typer.Option("--no-texts", help="Keep no question, path or answer in the log.")] = False,
    wave: Wave = None,
    first_wave: FirstWave = None,
    fan_out: Annotated[int | None, option("--fan-out", "PATHS", "Most paths under way at once.")] = None,
    seconds: Annotated[float | None, option("--request-seconds", "SECONDS", "Longest time for a request.")] = None,
    show: Annotated[str, option("--show", "answer|path", "What an answered request gets as its text.")] = "answer",
    abstain_text: Annotated[Text, option("--abstain-text", "TEXT", "What an abstained request gets instead.")] = None,
    model: Model = None,
    base_url: BaseUrl = None,
    backend: BackendName = None,
    backend_set: BackendSet = None,
    trust_address: TrustAddress = None,
    seed: Seed = None,
    concurrency: Concurrency = None,
    patience: Patience = None,
    answer_seconds: AnswerSeconds = None,
    settings: ScorerSet = None,
    config: Config = None,
    json: Json = False,
) -> None:
    given: dict[str, Any] = {"base_url": base_url, "model": model, "concurrency": concurrency, "patience": patience}
    given |= backend_flags(backend, backend_set) | {"answer_seconds": answer_seconds}
    how: dict[str, Any] = {"config": config, "trust": trust_address or (), "settings": scorer_flags(settings)}
    how |= {"seed": seed or 0, "score": None, "extract": None}
    told = {"show": show, "waves": waves_of(first_wave, wave), "audit_share": audit_share, "texts": not no_texts}
    told["second_opinions"] = second_opinions
    told |= {} if abstain_text is None else {"abstain_text": abstain_text}
    told |= {} if fan_out is None else {"fan_out": fan_out}
    told |= {} if seconds is None else {"seconds": seconds}
    files = _named(policy or [])
    serving = _Serving(
        files,
        _pairs(alias or [], "--alias"),
        stage_settings(at, list(files), _OF_POLICIES),
        key_file,
        None if no_log else store,
        told,
        given,
        how,
        grace,
        require_keys,
    )
    from demur import event_loop
    from demur.store.connection import shown

    try:
        from demur.server import running
        from demur.server.live import check_live
    except ImportError as error:
        raise MissingExtra(f"the service needs packages that are not here ({error.name})", "serve") from None
    _, service, kept = serving.made()  # says what is wrong before anything listens
    for note in event_loop.run(check_live(service.models)):
        mention(note)
    asks_for_keys = _asks_for_keys(kept, host, require_keys=require_keys)
    listening = running.bound(host, port)
    address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}/v1"
    if json:
        known = {"address": address, "models": list(service.models.ids()), "store": None if no_log else shown(store)}
        output.emit(known | {"keys_asked_for": asks_for_keys})
        sys.stdout.flush()
    else:
        output.say(*(f"model {name}" for name in service.models.ids()), f"listening on {address}")
        output.say(_WITH_KEYS if asks_for_keys else _WITHOUT_KEYS)
    if kept is not None:
        kept.close()
    if workers == 1:
        serving.work(listening)
        return
    with tempfile.TemporaryDirectory(prefix="demur-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        running.serve_by_workers(serving.work, listening, workers)


@dataclass(frozen=True)
class _Serving:
    """What was asked for, as a process of its own can be told."""

    files: dict[str, Path]
    aliases: dict[str, str]
    own: dict[str, dict[str, str]]
    key_file: Path | None
    store: str | None
    told: dict[str, Any]
    given: dict[str, Any]
    how: dict[str, Any]
    grace: float
    require_keys: bool

    def made(self) -> tuple[Any, Any, Any]:
        """The application, its service and its store; each policy compared with the models that are there."""
        from demur.server.app import make_app
        from demur.server.log import DecisionLog
        from demur.server.logs import RequestLines, to_stderr
        from demur.server.served import Models, Served
        from demur.server.service import Service
        from demur.server.settings import ServiceSettings
        from demur.store.service import ServiceStore

        told = ServiceSettings(**self.told)
        loaded = {name: load_policy(file, self.key_file) for name, file in self.files.items()}
        pipelines.refuse_unused(self.how["settings"], *loaded.values())
        answerers = {}
        for name, one in loaded.items():
            answerer = pipelines.pipeline_of(one, {**self.given, **self.own.get(name, {})}, **self.how).answerer(one)
            answerer.check_pipeline()
            answerers[name] = answerer
        store = None if self.store is None else ServiceStore(self.store, create=True)
        served = {}
        for name, one in loaded.items():
            version, number = 1, None
            if store is not None:
                row = store.policies.register(name, one.document(), one.fingerprint, time.time_ns() // 1_000_000)
                version, number = row.version, row.policy
            served[name] = Served(name, one, answerers[name], version, number)
        to_stderr()
        if told.waves is not None:
            for name, answerer in answerers.items():
                if note := answerer.savings_note():
                    mention(f"{name}: {note}")
        log = None if store is None else DecisionLog(store, texts=told.texts, second_share=told.second_opinions)
        service = Service(
            Models(served, aliases=self.aliases),
            told,
            log=log,
            observers=[RequestLines()],
            audit_secret=secrets.token_bytes(32),
        )
        return make_app(service, store, require_keys=self.require_keys), service, store

    def work(self, listening: socket.socket) -> None:
        """Serve on a socket, in this process."""
        from demur.server.running import serve_here

        app, service, store = self.made()
        try:
            serve_here(app, service, listening, self.grace)
        finally:
            if store is not None:
                store.close()


def _asks_for_keys(store: ServiceStore | None, host: str, *, require_keys: bool) -> bool:
    """Whether keys are asked for; raises where none are and other machines could reach the service."""
    from demur.server.origins import is_loopback
    from demur.store.connection import pasted

    if store is None and require_keys:
        raise InvalidValue("--require-keys needs a store that has keys, and --no-log keeps none; leave one of them out")
    asked_for = require_keys or (store is not None and bool(store.keys.all()))
    if not asked_for and not is_loopback(host):
        way_out = "leave --no-log out, and make a key" if store is None else "make a key"
        raise InvalidValue(
            f"without keys the service listens on this machine alone, and --host {output.visible(host)} is more",
            f"{way_out} with `demur keys add NAME --store {pasted(store.place)[0] if store else 'FILE'}`",
        )
    return asked_for


def _named(given: list[str]) -> dict[str, Path]:
    """Policies by name: as it is said, or the file's."""
    if not given:
        raise InvalidValue("name at least one policy with --policy")
    files: dict[str, Path] = {}
    for one in given:
        name, equals, file = one.partition("=")
        path = Path(file if equals else one)
        name = name if equals else path.stem
        if name in files:
            raise InvalidValue(f"two policies are named {name!r}; name one of them otherwise: --policy NAME=FILE")
        files[name] = path
    return files


def _pairs(given: list[str], flag: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for one in given:
        left, equals, right = one.partition("=")
        if not (left and equals and right):
            raise InvalidValue(f"{flag} takes NAME=VALUE, got {output.visible(one, 80)!r}")
        if left in pairs:
            raise InvalidValue(f"{flag} names {left!r} twice")
        pairs[left] = right
    return pairs
