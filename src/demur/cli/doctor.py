"""`demur doctor`: what an endpoint can do."""

from __future__ import annotations

from typing import Any

import typer

from demur.cli import output
from demur.cli.options import Config, Json
from demur.cli.sampling_options import BaseUrl, Model

NAME = "doctor"
HELP = """Probe an endpoint with a dozen tiny requests, and say what works and what demur makes of it.

Exit code 0: it can be sampled from; 1: it cannot.

Example: `demur doctor --base-url http://localhost:8000/v1 --model Qwen/Qwen3-1.7B`
"""


def run(base_url: BaseUrl = None, model: Model = None, config: Config = None, json: Json = False) -> None:
    import asyncio

    from demur.backends.endpoint import without_secrets
    from demur.backends.openai import OpenAI
    from demur.description import read_description

    described = read_description(config).override(base_url=base_url, model=model)
    backend = OpenAI(described.base_url, described.model, patience=0.0, read_seconds=60.0, concurrency=4)
    found = asyncio.run(_probe(backend))
    works = bool(found["chat"]["works"] or found["completions"]["works"])
    if json:
        output.emit(
            {
                "endpoint": without_secrets(backend.endpoint.base_url),
                "model": backend.model,
                "usable": works,
                "probes": found,
            }
        )
    else:
        output.table(
            f"{without_secrets(backend.endpoint.base_url)}, model {output.visible(backend.model)}",
            ["probe", "works", "what it means"],
            [[name.replace("_", " "), _yes(probe["works"]), probe["means"]] for name, probe in found.items()],
        )
        output.say("It can be sampled from." if works else "It cannot be sampled from.")
    if not works:
        raise typer.Exit(1)


async def _probe(backend: Any) -> dict[str, dict[str, Any]]:
    """Each probe on its own: one that fails says so and spoils nothing."""
    from demur.backends.openai import OpenAI

    assert isinstance(backend, OpenAI)
    try:
        found = {"models": await _models(backend)}
        if backend.model == "default" and found["models"]["names"]:
            backend.model = found["models"]["names"][0]
        chat = {"model": backend.model, "messages": [{"role": "user", "content": "Say: 7"}], "max_tokens": 4}
        plain = {"model": backend.model, "prompt": "1, 2, 3,", "max_tokens": 4}
        found["chat"] = await _post(backend, "/chat/completions", chat, "chat prompts")
        if not found["chat"]["works"] and "max_completion_tokens" in found["chat"]["means"]:
            chat["max_completion_tokens"] = chat.pop("max_tokens")
            found["chat"] = await _post(backend, "/chat/completions", chat, "chat prompts")
        found["completions"] = await _post(backend, "/completions", plain, "few-shot prompts")
        route, body = ("/chat/completions", chat) if found["chat"]["works"] else ("/completions", plain)
        found["n"] = await _several(backend, route, body)
        found["logprobs"] = await _logprobs(backend, route, body)
        found["seeds"] = await _seeds(backend, route, body)
        found["judge"] = await _judge(backend, chat)
        found["prompt_logprobs"] = await _prompt_logprobs(backend, chat)
        for name in ("classify", "pooling"):
            found[f"reward_{name}"] = await _reward(backend, name)
        return found
    finally:
        await backend.close()


async def _models(backend: Any) -> dict[str, Any]:
    import aiohttp

    try:
        status, document = await backend.endpoint.get("/models")
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return {"works": False, "names": [], "means": f"cannot be reached: {type(error).__name__}"}
    held = document.get("data") if isinstance(document, dict) else None
    names = [str(each["id"]) for each in held or [] if isinstance(each, dict) and "id" in each]
    means = f"serves {', '.join(names[:4])}" if names else f"no list of models (status {status})"
    return {"works": bool(names), "names": names, "means": output.visible(means, 80)}


async def _ask(backend: Any, route: str, body: dict[str, Any], *, at_root: bool = False) -> tuple[Any, str]:
    """The answer, or None and why."""
    from demur.backends.endpoint import Refused
    from demur.errors import DemurError

    try:
        return await backend.endpoint.post(route, body, at_root=at_root), ""
    except (DemurError, Refused) as error:
        return None, output.visible(str(error), 80)


async def _post(backend: Any, route: str, body: dict[str, Any], what: str) -> dict[str, Any]:
    document, why = await _ask(backend, route, body)
    return {"works": document is not None, "means": what if document is not None else why}


async def _several(backend: Any, route: str, body: dict[str, Any]) -> dict[str, Any]:
    document, why = await _ask(backend, route, {**body, "n": 4})
    got = len(document.get("choices") or []) if isinstance(document, dict) else 0
    if got == 4:
        return {"works": True, "means": "all paths of a problem in one request"}
    return {
        "works": False,
        "means": f"paths are asked for {'one by one' if got <= 1 else f'{got} at a time'}; {why}".rstrip("; "),
    }


async def _logprobs(backend: Any, route: str, body: dict[str, Any]) -> dict[str, Any]:
    from demur.backends.protocol import Wanted, read_choices

    ways: list[dict[str, Any]] = [{"logprobs": 1}]
    if "messages" in body:
        ways = [{"logprobs": True, "top_logprobs": 0}, {"logprobs": True, "top_logprobs": 1}]
    found, why = False, ""
    for wanted in ways:
        document, why = await _ask(backend, route, {**body, **wanted})
        if document is not None and read_choices(document, [Wanted(0, 0)], 0.0)[0].logprobs is not None:
            found = True
            break
    return {
        "works": found,
        "means": "the perplexity score works" if found else f"no perplexity score; {why}".rstrip("; "),
    }


async def _seeds(backend: Any, route: str, body: dict[str, Any]) -> dict[str, Any]:
    """Whether a seed decides the text: the same twice, and not always the same."""
    from demur.backends.protocol import Wanted, read_choices

    texts = []
    for seed in (11, 11, 12, 13, 14):
        document, why = await _ask(backend, route, {**body, "seed": seed, "temperature": 1.5, "max_tokens": 12})
        if document is None:
            return {"works": False, "means": f"seeds are refused, so runs cannot be repeated; {why}"}
        texts.append(read_choices(document, [Wanted(0, seed)], 0.0)[0].text)
    if texts[0] != texts[1]:
        return {"works": False, "means": "seeds are ignored: runs cannot be repeated"}
    if len(set(texts)) == 1:
        return {"works": False, "means": "every seed gives the same text: is the temperature ignored?"}
    return {"works": True, "means": "the same seed gives the same path"}


async def _judge(backend: Any, chat: dict[str, Any]) -> dict[str, Any]:
    body = {**chat, "max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": 20}
    document, why = await _ask(backend, "/chat/completions", body)
    try:
        top = len(document["choices"][0]["logprobs"]["content"][0]["top_logprobs"])
    except (KeyError, IndexError, TypeError):
        return {"works": False, "means": f"cannot judge by log-probabilities; {why}".rstrip("; ")}
    return {"works": top >= 2, "means": f"can judge: {top} alternatives per token"}


async def _prompt_logprobs(backend: Any, chat: dict[str, Any]) -> dict[str, Any]:
    document, _ = await _ask(backend, "/chat/completions", {**chat, "prompt_logprobs": 0, "max_tokens": 1})
    works = isinstance(document, dict) and isinstance(document.get("prompt_logprobs"), list)
    return {"works": works, "means": "can re-score stored paths" if works else "stored paths cannot be re-scored here"}


async def _reward(backend: Any, name: str) -> dict[str, Any]:
    body = {"model": backend.model, "input": ["1 + 1 = 2"]}
    if name == "pooling":
        body["task"] = "classify"
    document, _ = await _ask(backend, f"/{name}", body, at_root=True)
    works = isinstance(document, dict) and isinstance(document.get("data"), list)
    return {"works": works, "means": f"serves a reward model at /{name}" if works else f"no reward model at /{name}"}


def _yes(works: bool) -> str:
    return "yes" if works else "no"
