"""`demur doctor`: what an endpoint can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from demur.cli import output
from demur.cli.options import Config, Json, mention
from demur.cli.sampling_options import BaseUrl, Model, TrustAddress
from demur.errors import BackendError, DemurError, EndpointRefused, InvalidValue, NoSuchRoute, PluginError

if TYPE_CHECKING:
    from demur.backends.openai import OpenAI
    from demur.foreign_code import Plugin

NAME = "doctor"
HELP = """Probe an endpoint with a dozen tiny requests, and say what works and what demur makes of it.

Exit code 0: it can be sampled from; 1: it cannot.

Example: `demur doctor --base-url http://localhost:8000/v1 --model Qwen/Qwen3-1.7B`
"""


Told = dict[str, Any]
_CHAT, _COMPLETIONS = "/chat/completions", "/completions"


def run(
    base_url: BaseUrl = None,
    trust_address: TrustAddress = None,
    model: Model = None,
    plugins: Annotated[bool, typer.Option("--plugins", help="Say instead what installed packages bring.")] = False,
    config: Config = None,
    json: Json = False,
) -> None:
    if plugins:
        _say_plugins(json=json)
        return
    from demur import event_loop
    from demur.backends.openai import OpenAI
    from demur.pipeline.config import read_config

    chosen = read_config(config, trust_address or ()).override(base_url=base_url, model=model)
    if isinstance(chosen.base_url, list) and len(chosen.base_url) > 1:
        raise InvalidValue("doctor asks one endpoint at a time, and several are named", "name one as {base_url}")
    address = chosen.base_url[0] if isinstance(chosen.base_url, list) else chosen.base_url
    backend = OpenAI(address, chosen.model, patience=0.0, answer_seconds=60.0, concurrency=4)
    mention(f"asking {backend.endpoint.told}")
    endpoint, probes, why = backend.endpoint.shown, {}, None
    try:
        probes = event_loop.run(_Probes(backend).all())
    except EndpointRefused as error:  # nothing to probe: that is said once
        why = output.told(error)
    works = any(probes[route]["works"] for route in ("chat", "completions") if route in probes)
    if json:
        output.emit({"endpoint": endpoint, "model": backend.model, "usable": works, "why": why, "probes": probes})
    elif why is not None:
        output.say(f"It cannot be sampled from: {output.visible(why, 400)}")
    else:
        rows = [[name.replace("_", " "), "yes" if p["works"] else "no", p["means"]] for name, p in probes.items()]
        title = f"{endpoint}, model {output.visible(backend.model, 80)}"
        output.table(title, ["probe", "works", "what it means"], rows)
        output.say("It can be sampled from." if works else "It cannot be sampled from.")
    if not works:
        raise typer.Exit(1)


def _say_plugins(*, json: bool) -> None:
    """The backends, scorers and tasks that packages bring, each loaded to see whether it works."""
    from demur.foreign_code import KINDS, installed

    rows = []
    for plugin in (plugin for kind in KINDS for plugin in installed(kind)):
        why = None
        try:
            _try(plugin)
        except DemurError as error:
            why = output.told(error)
        known = {"kind": plugin.kind.removesuffix("s"), "name": plugin.name, "package": plugin.package}
        rows.append({**known, "works": why is None, "why": why})
    if json:
        output.emit({"plugins": rows})
        return
    if not rows:
        output.say("No installed package brings a backend, a scorer or a task.")
        return
    columns: output.Columns = {
        "kind": lambda row: row["kind"],
        "name": lambda row: output.visible(row["name"]),
        "package": lambda row: output.visible(row["package"]),
        "works": lambda row: "yes" if row["works"] else "no",
    }
    output.table_of("Plugins", rows, columns)
    output.say(*(f"  {output.visible(row['why'], 300)}" for row in rows if row["why"]))


def _try(plugin: Plugin) -> None:
    """Raise unless a plugin can be used by its name."""
    from demur import tasks
    from demur.backends.plugged import refuse_taken
    from demur.foreign_code import SCORERS, TASKS
    from demur.scoring.factory import KINDS, make_scorer

    taken = plugin.told("has a name of demur's own, which stays what it is")
    if plugin.kind == TASKS:
        if tasks.chosen(plugin.name).origin == "demur":
            raise PluginError(taken)
    elif plugin.kind == SCORERS:
        if plugin.name in KINDS:
            raise PluginError(taken)
        make_scorer(plugin.name)
    else:
        refuse_taken(plugin.name)
        plugin.load()


def _told(works: bool, means: str, why: str = "") -> Told:
    """What came of a probe, what that means and, where it does not work, why."""
    return {"works": works, "means": f"{means}; {why}".rstrip("; ")}


class _Probes:
    """Tiny requests to one endpoint, each on its own: one that fails says so and spoils nothing."""

    def __init__(self, backend: OpenAI) -> None:
        self.backend = backend

    async def all(self) -> dict[str, Told]:
        backend = self.backend
        try:
            told = {"models": await self._models()}
            if backend.model == "default" and told["models"]["names"]:
                backend.model = told["models"]["names"][0]
            chat = {"model": backend.model, "messages": [{"role": "user", "content": "Say: 7"}], "max_tokens": 4}
            plain = {"model": backend.model, "prompt": "1, 2, 3,", "max_tokens": 4}
            told["chat"] = await self._post(_CHAT, chat, "chat prompts")
            if not told["chat"]["works"] and "max_completion_tokens" in told["chat"]["means"]:
                chat["max_completion_tokens"] = chat.pop("max_tokens")
                told["chat"] = await self._post(_CHAT, chat, "chat prompts")
            told["completions"] = await self._post(_COMPLETIONS, plain, "few-shot prompts")
            route, body = (_CHAT, chat) if told["chat"]["works"] else (_COMPLETIONS, plain)
            if told["chat"]["works"] or told["completions"]["works"]:  # else nothing could be found out of these
                told["n"] = await self._several(route, body)
                told["logprobs"] = await self._logprobs(route, body)
                told["seeds"] = await self._seeds(route, body)
                told["judge"] = await self._judge(chat)
                told["prompt_logprobs"] = await self._prompt_logprobs(chat)
            told["reward_classify"] = await self._reward("classify", {})
            told["reward_pooling"] = await self._reward("pooling", {"task": "classify"})
            return told
        finally:
            await backend.close()

    async def _ask(self, route: str, body: Told, *, at_root: bool = False) -> tuple[Any, str]:
        """The answer, or None and why."""
        from demur.backends.endpoint import Refused

        try:
            return await self.backend.endpoint.post(route, body, at_root=at_root), ""
        except (DemurError, Refused) as error:
            refused = isinstance(error, EndpointRefused) and not isinstance(error, NoSuchRoute)
            if refused and self.backend.endpoint.never_served:  # nor will it answer anything else
                raise
            return None, output.visible(str(error), 80)

    async def _models(self) -> Told:
        try:
            status, document = await self.backend.endpoint.get("/models")
        except EndpointRefused:
            raise
        except BackendError as error:
            return {"works": False, "names": [], "means": output.visible(str(error), 80)}
        listed = document.get("data") if isinstance(document, dict) else None
        names = [str(model["id"]) for model in listed or [] if isinstance(model, dict) and "id" in model]
        means = f"serves {', '.join(names[:4])}" if names else f"no list of models (status {status})"
        return {"works": bool(names), "names": names, "means": output.visible(means, 80)}

    async def _post(self, route: str, body: Told, what: str) -> Told:
        document, why = await self._ask(route, body)
        return {"works": document is not None, "means": what if document is not None else why}

    async def _several(self, route: str, body: Told) -> Told:
        document, why = await self._ask(route, {**body, "n": 4})
        got = len(document.get("choices") or []) if isinstance(document, dict) else 0
        if got == 4:
            return _told(True, "all paths of a problem in one request")
        return _told(False, f"paths are asked for {'one by one' if got <= 1 else f'{got} at a time'}", why)

    async def _logprobs(self, route: str, body: Told) -> Told:
        from demur.backends.protocol import Wanted, read_choices

        ways: list[Told] = [{"logprobs": 1}]
        if "messages" in body:
            ways = [{"logprobs": True, "top_logprobs": 0}, {"logprobs": True, "top_logprobs": 1}]
        why = ""
        for wanted in ways:
            document, why = await self._ask(route, {**body, **wanted})
            if document is not None and read_choices(document, [Wanted(0, 0)], 0.0)[0].logprobs is not None:
                return _told(True, "the perplexity score works")
        return _told(False, "no perplexity score", why)

    async def _seeds(self, route: str, body: Told) -> Told:
        """Whether a seed decides the text: the same twice, and not always the same."""
        from demur.backends.protocol import Wanted, read_choices

        texts = []
        for seed in (11, 11, 12, 13, 14):
            document, why = await self._ask(route, {**body, "seed": seed, "temperature": 1.5, "max_tokens": 12})
            if document is None:
                return {"works": False, "means": f"seeds are refused, so runs cannot be repeated; {why}"}
            texts.append(read_choices(document, [Wanted(0, seed)], 0.0)[0].text)
        if texts[0] != texts[1]:
            return _told(False, "seeds are ignored: runs cannot be repeated")
        if len(set(texts)) == 1:
            return _told(False, "every seed gives the same text: is the temperature ignored?")
        return _told(True, "the same seed gives the same path")

    async def _judge(self, chat: Told) -> Told:
        wanted = {"max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": 20}
        document, why = await self._ask(_CHAT, {**chat, **wanted})
        try:
            top = len(document["choices"][0]["logprobs"]["content"][0]["top_logprobs"])
        except (KeyError, IndexError, TypeError):
            return _told(False, "cannot judge by log-probabilities", why)
        return _told(top >= 2, f"can judge: {top} alternatives per token")

    async def _prompt_logprobs(self, chat: Told) -> Told:
        document, _ = await self._ask(_CHAT, {**chat, "prompt_logprobs": 0, "max_tokens": 1})
        works = isinstance(document, dict) and isinstance(document.get("prompt_logprobs"), list)
        return _told(works, "can re-score stored paths" if works else "stored paths cannot be re-scored here")

    async def _reward(self, name: str, task: dict[str, str]) -> Told:
        body = {"model": self.backend.model, "input": ["1 + 1 = 2"], **task}
        document, _ = await self._ask(f"/{name}", body, at_root=True)
        works = isinstance(document, dict) and isinstance(document.get("data"), list)
        return _told(works, f"{'serves a' if works else 'no'} reward model at /{name}")
