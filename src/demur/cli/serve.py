"""`demur serve`: policies as models of an OpenAI-compatible endpoint."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import demur
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
    MixedModels,
    Model,
    Patience,
    ScorerSet,
    TrustAddress,
    Wave,
    backend_flags,
    scorer_flags,
    waves_of,
)
from demur.errors import DemurError, InvalidValue, MissingExtra, PipelineMismatch

if TYPE_CHECKING:
    from demur.store.service import ServiceStore

NAME = "serve"
HELP = """Serve policies as an OpenAI-compatible endpoint that answers or abstains.

Each policy is a model, named after its file or as you say (`--policy NAME=FILE`); `NAME@0.05` is one of its alphas. A
client changes its base URL and nothing else. At start each policy is compared with the model and the scorers that are
there; if they differ, nothing is served.

Examples:

`demur serve --policy policy.json`

`demur serve --policy policy.json --canaries run.db --on-alarm abstain`

`demur serve --policy policy.json --online-step 0.01`

`demur serve --policy sums=policy.json --alias gpt-4o=sums@0.05 --base-url http://localhost:8000/v1 --port 9000`
"""
_OF_POLICIES = ("base_url", "model")
_LONGEST_GRACE = 3600.0
_MODEL_SECONDS = 30.0
"""How long nothing may come from the models' server before requests abstain, unless --patience says it."""
_STORE_SECONDS = 10.0
"""How long a database that went away is waited for, request by request."""
_WITH_KEYS = "keys are asked for: `demur keys` makes, lists and revokes them"
_WITHOUT_KEYS = (
    "no keys are asked for, so only this machine is let in; `demur keys add NAME` makes the first key\n"
    "without keys, verdicts on the review page are labels, and what is sent to /v1/feedback is not"
)


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
    no_texts: Annotated[
        bool, typer.Option("--no-texts", help="Store and log nothing that people or models write.")
    ] = False,
    keep_days: Annotated[
        float | None, option("--keep-days", "DAYS", "Forget decisions that are older.  [default: never]")
    ] = None,
    keep_text_days: Annotated[
        float | None, option("--keep-text-days", "DAYS", "Forget texts that are older.  [default: with decisions]")
    ] = None,
    wave: Wave = None,
    first_wave: FirstWave = None,
    fan_out: Annotated[int | None, option("--fan-out", "PATHS", "Most paths under way at once.")] = None,
    seconds: Annotated[float | None, option("--request-seconds", "SECONDS", "Longest time for a request.")] = None,
    on_alarm: Annotated[
        str, option("--on-alarm", "warn|abstain|strictest", "What an alarm does, beside being told in every response.")
    ] = "warn",
    canaries: Annotated[
        list[str] | None, option("--canaries", "[NAME=]RUN", "Ask questions of this run again, to watch the model.")
    ] = None,
    canary_rate: Annotated[float, option("--canary-rate", "PER_DAY", "How many of them a day, each once.")] = 24.0,
    label_days: Annotated[
        float, option("--label-days", "DAYS", "So long alarms wait for the label of an audited answer.")
    ] = 7.0,
    online_step: Annotated[
        float | None,
        option("--online-step", "SHARE", "Have errors in audits raise the threshold, by such a share.  [default: no]"),
    ] = None,
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
    mixed_models: MixedModels = None,
    settings: ScorerSet = None,
    config: Config = None,
    json: Json = False,
) -> None:
    given: dict[str, Any] = {"base_url": base_url, "model": model, "concurrency": concurrency, "patience": patience}
    given |= backend_flags(backend, backend_set) | {"answer_seconds": answer_seconds, "mixed_models": mixed_models}
    how: dict[str, Any] = {"config": config, "trust": trust_address or (), "settings": scorer_flags(settings)}
    how |= {"seed": seed or 0, "score": None, "extract": None}
    told = {"show": show, "waves": waves_of(first_wave, wave), "audit_share": audit_share, "texts": not no_texts}
    told |= {"on_alarm": on_alarm, "canaries_per_day": canary_rate, "label_days": label_days}
    told["online_step"] = online_step
    told["second_opinions"] = second_opinions
    told |= {} if abstain_text is None else {"abstain_text": abstain_text}
    told |= {} if fan_out is None else {"fan_out": fan_out}
    told |= {} if seconds is None else {"seconds": seconds}
    files = _named(policy or [])
    if not 0 <= grace <= _LONGEST_GRACE:
        raise InvalidValue(f"--grace takes 0 to {_LONGEST_GRACE:g} seconds, got {grace:g}")
    loaded = {name: load_policy(file, key_file) for name, file in files.items()}
    serving = _Serving(
        loaded,
        _pairs(alias or [], "--alias"),
        stage_settings(at, list(files), _OF_POLICIES, "--at"),
        key_file,
        None if no_log else store,
        told,
        given,
        how,
        grace,
        {"keep_days": keep_days, "keep_text_days": keep_text_days},
        require_keys,
        _runs(canaries or [], files, no_log=no_log),
    )
    from demur.store.connection import shown

    try:
        from demur.server import running
        from demur.server.live import wait_for_models
    except ImportError as error:
        raise MissingExtra(f"the service needs packages that are not here ({error.name})", "serve") from None
    prepared = serving.prepared()  # what is wrong is said before anything listens, and before the store knows of it
    asks_for_keys = _asks_for_keys(prepared.store, host, require_keys=require_keys)
    with running.bound(host, port) as listening:  # closed, whatever is found wrong from here on
        address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}/v1"
        wait_for_models(prepared.models, listening, address, mention)
        app, service, kept = prepared.made()
        models = service.models
        pages = [] if no_log else [f"{address.removesuffix('/v1')}/{name}" for name in ("status", "review")]
        versions = {name: served.version for name, served in models.active.items()}
        if json:
            known = {"address": address, "models": list(models.ids()), "store": None if no_log else shown(store)}
            output.emit(known | {"pages": pages, "keys_asked_for": asks_for_keys, "versions": versions})
            sys.stdout.flush()
        else:
            output.say(*(f"model {name}" for name in models.ids()), f"listening on {address}")
            output.say(*(f"page {page}" for page in pages))
            for name in (name for name, one in loaded.items() if kept and not _same(models.active[name].policy, one)):
                output.say(f"{name} answers as version {versions[name]} of the store, not as the file that was given")
            output.say(_WITH_KEYS if asks_for_keys else _WITHOUT_KEYS)
        if workers == 1:
            serving.serve(app, service, kept, listening)
            return
        if kept is not None:
            kept.close()
        with tempfile.TemporaryDirectory(prefix="demur-metrics-") as folder:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
            running.serve_by_workers(serving.work, listening, workers)


@dataclass(frozen=True)
class _Serving:
    """What was asked for, as a process of its own can be told."""

    policies: dict[str, demur.Policy]
    """As their files were at start: a worker that is started again serves what the others do."""
    aliases: dict[str, str]
    own: dict[str, dict[str, str]]
    key_file: Path | None
    store: str | None
    told: dict[str, Any]
    given: dict[str, Any]
    how: dict[str, Any]
    grace: float
    keep: dict[str, float | None]
    require_keys: bool
    canaries: dict[str, str]
    """Runs by the names of policies."""

    def prepared(self) -> _Prepared:
        """Each policy compared with the models that are there; whatever is wrong raises, and the store is as it was."""
        from demur.server.alarms.online import refuse_nothing_to_move
        from demur.server.served import Models, Served
        from demur.server.settings import ServiceSettings
        from demur.server.versions.retention import Retention
        from demur.store.service import ServiceStore

        told, retention = ServiceSettings(**self.told), Retention(**self.keep)
        retention.refuse_within(told.label_days)
        pipelines.refuse_unused(self.how["settings"], *self.policies.values())
        made, served = {}, {}
        for name, one in self.policies.items():
            made[name] = pipelines.pipeline_of(one, {**self.given, **self.own.get(name, {})}, **self.how)
            served[name] = Served(name, one, made[name].answerer(one))
            served[name].answerer.check_pipeline()
        known = {alias: model for alias, model in self.aliases.items() if self.store is None or ":" not in model}
        models = Models(served, aliases=known)  # earlier versions are the store's to know
        refuse_nothing_to_move(models, told.online_step, logged=self.store is not None)
        questions = {name: _questions(run, self.policies[name]) for name, run in self.canaries.items()}
        store = None if self.store is None else ServiceStore(self.store, create=True, patience=_STORE_SECONDS)
        return _Prepared(self, told, retention, made, models, questions, store)

    def work(self, listening: socket.socket) -> None:
        """Serve on a socket, in a process of its own, as long as the first one lives."""
        from demur.server.running import end_with_parent

        end_with_parent()
        try:
            self.serve(*self.prepared().made(), listening)
        except DemurError as error:
            output.mention(f"error: a worker cannot serve, and is started again: {output.told(error)}")
            raise SystemExit(2) from None

    def serve(self, app: Any, service: Any, store: Any, listening: socket.socket) -> None:
        """Serve on a socket, in this process."""
        from demur.server.running import serve_here

        try:
            serve_here(app, service, listening, self.grace)
        finally:
            if store is not None:
                store.close()


@dataclass(frozen=True)
class _Prepared:
    """What can be served as it was asked for."""

    serving: _Serving
    told: Any
    retention: Any
    pipelines: dict[str, demur.Pipeline]
    models: Any
    """As the files have them."""
    questions: dict[str, Any]
    """Canaries by the names of policies."""
    store: ServiceStore | None

    def made(self) -> tuple[Any, Any, Any]:
        """The application, its service and its store; policies that the store does not know answer from now on."""
        from demur.server.app import make_app
        from demur.server.log import DecisionLog
        from demur.server.logs import RequestLines, to_stderr
        from demur.server.service import Service
        from demur.server.versions.versions import Versions

        for pipeline in self.pipelines.values():
            _hurry(pipeline.backend)
        told, store, models, serving = self.told, self.store, self.models, self.serving
        to_stderr(texts=told.texts)
        asked_again: dict[str, Any] = {}
        beside: dict[str, Any] = {
            "observers": [RequestLines(texts=told.texts)],
            "audit_secret": secrets.token_bytes(32),
        }
        if store is None:
            service, chores = Service(models, told, **beside), list[Any]()
        else:
            key = None if serving.key_file is None else demur.read_key(serving.key_file)
            versions = Versions(store, self.pipelines, key=key)
            for name, one in serving.policies.items():
                row = versions.enter(name, one, time.time_ns() // 1_000_000)
                if name in self.questions:
                    asked_again[f"{name}:v{row.version}"] = self.questions[name]
            models = versions.models(serving.aliases)
            log = DecisionLog(store, texts=told.texts, second_share=told.second_opinions)
            service = Service(models, told, log=log, **beside)
            chores = [partial(versions.follow, service), partial(self.retention.follow, store)]
        for name, active in models.active.items():
            if told.waves is not None and (note := active.answerer.savings_note()):
                mention(f"{name}: {note}")
        for name in asked_again.keys() - {active.full_name for active in models.active.values()}:
            mention(f"canaries of {name} are not asked: another version answers, which their run says nothing of")
        app = make_app(service, store, require_keys=serving.require_keys, chores=chores, canaries=asked_again)
        return app, service, store


def _hurry(backend: Any) -> None:
    """Somebody waits for a service, as nobody does for a run: have requests abstain where a server stays silent."""
    endpoint = getattr(backend, "endpoint", None)
    if endpoint is not None and endpoint.patience is None:
        endpoint.patience = _MODEL_SECONDS


def _same(one: demur.Policy, other: demur.Policy) -> bool:
    return one.document() == other.document()


def _asks_for_keys(store: ServiceStore | None, host: str, *, require_keys: bool) -> bool:
    """Whether keys are asked for; raises where none are and other machines could reach the service."""
    from demur.server.access.origins import is_loopback
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


def _runs(given: list[str], files: dict[str, Path], *, no_log: bool) -> dict[str, str]:
    """The runs whose questions are asked again, by policy; with one policy, its name may be left out."""
    if given and no_log:
        raise InvalidValue("--canaries needs a store, which says what was asked already; leave --no-log out")
    alone = next(iter(files)) if len(files) == 1 else None
    named = (one if alone is None or one.startswith(f"{alone}=") else f"{alone}={one}" for one in given)
    runs = _pairs(list(named), "--canaries")
    if unknown := next((name for name in runs if name not in files), None):
        raise InvalidValue(f"--canaries names {unknown!r}, and the policies are {', '.join(files)}")
    return runs


def _questions(run: str, policy: demur.Policy) -> Any:
    from demur.server.alarms.canary_questions import CanaryQuestions

    try:
        return CanaryQuestions.of(demur.read_pools(run, partial=True, say=output.mention), policy)
    except PipelineMismatch as error:
        raise InvalidValue(
            f"the questions of {output.visible(run, 200)} were not put as the policy's: {'; '.join(error.differences)}",
            "give as {canaries} the run that the policy was calibrated on",
        ) from None


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
