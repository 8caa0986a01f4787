"""`demur serve`: policies as models of an OpenAI-compatible endpoint."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import demur
from demur.cli import output, pipelines
from demur.cli.options import Config, KeyFile, Seed, Text, mention, option
from demur.cli.policy_files import load_policy, stage_settings
from demur.cli.sampling_options import (
    AnswerSeconds,
    BackendName,
    BackendSet,
    BaseUrl,
    Concurrency,
    Model,
    Patience,
    ScorerSet,
    TrustAddress,
    backend_flags,
    scorer_flags,
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
    store: Annotated[
        str, option("--store", "FILE|URL", "Where decisions are kept: a .db file or a postgresql:// address.")
    ] = "service.db",
    require_keys: Annotated[
        bool, typer.Option("--require-keys", help="Ask for keys even where the store has none yet.")
    ] = False,
    no_log: Annotated[bool, typer.Option("--no-log", help="Keep nothing: no audits, no reviews, no alarms.")] = False,
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
) -> None:
    try:
        import uvicorn

        from demur.server.app import make_app
    except ImportError as error:
        raise MissingExtra(f"the service needs packages that are not here ({error.name})", "serve") from None
    from demur.server.log import DecisionLog
    from demur.server.served import Models, Served
    from demur.server.service import Service
    from demur.server.settings import ABSTAIN_TEXT, ServiceSettings
    from demur.store.service import ServiceStore

    if show not in ("answer", "path"):
        raise InvalidValue(f"--show is answer or path, got {show!r}")
    told = ServiceSettings(show=show, abstain_text=abstain_text or ABSTAIN_TEXT)  # type: ignore[arg-type]
    files = _named(policy or [])
    own = stage_settings(at, list(files), _OF_POLICIES)
    given: dict[str, Any] = {"base_url": base_url, "model": model, "concurrency": concurrency, "patience": patience}
    given |= backend_flags(backend, backend_set) | {"answer_seconds": answer_seconds}
    how: dict[str, Any] = {"config": config, "trust": trust_address or (), "settings": scorer_flags(settings)}
    how |= {"seed": seed or 0, "score": None, "extract": None}
    loaded = {name: load_policy(file, key_file) for name, file in files.items()}
    pipelines.refuse_unused(how["settings"], *loaded.values())
    kept = None if no_log else ServiceStore(store, create=True)
    asks_for_keys = _asks_for_keys(kept, host, require_keys=require_keys)
    served = {}
    for name, one in loaded.items():
        pipeline = pipelines.pipeline_of(one, {**given, **own.get(name, {})}, **how)
        answerer = pipeline.answerer(one)
        answerer.check(demur.Problem("question", "?", extra={"task": one.upstream.answers.get("task")}))
        version, number = 1, None
        if kept is not None:
            row = kept.policies.register(name, one.document(), one.fingerprint, time.time_ns() // 1_000_000)
            version, number = row.version, row.policy
        served[name] = Served(name, one, answerer, version, number)
    models = Models(served, aliases=_pairs(alias or [], "--alias"))
    log = None if kept is None else DecisionLog(kept, texts=told.texts)
    app = make_app(
        Service(models, told, log=log, audit_secret=secrets.token_bytes(32)), kept, require_keys=require_keys
    )
    for name in models.ids():
        mention(f"model {name}")
    mention(f"listening on http://{host}:{port}/v1")
    mention(_WITH_KEYS if asks_for_keys else _WITHOUT_KEYS)
    uvicorn.run(app, host=host, port=port, log_level="warning", access_log=False)


def _asks_for_keys(store: ServiceStore | None, host: str, *, require_keys: bool) -> bool:
    """Whether keys are asked for; raises where none are and other machines could reach the service."""
    from demur.server.origins import is_loopback

    if store is None and require_keys:
        raise InvalidValue("--require-keys needs a store that has keys, and --no-log keeps none; leave one of them out")
    asked_for = require_keys or (store is not None and bool(store.keys.all()))
    if not asked_for and not is_loopback(host):
        way_out = "leave --no-log out, and make a key" if store is None else "make a key"
        raise InvalidValue(
            f"without keys the service listens on this machine alone, and --host {host} is more",
            f"{way_out} with `demur keys add NAME --store {output.visible(store.place if store else 'FILE', 200)}`",
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
