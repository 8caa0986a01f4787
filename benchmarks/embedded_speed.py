"""Claim: all paths of a pool in one batched decode are far cheaper than one by one, and demur adds next to nothing.

Tokens per CPU-second of the embedded model: sixteen paths in one batch, sixteen single generations (alone, and with the
prompt kept by the runtime between them), and the runtime driven directly with the same requests.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from claims import at_least, print_report

from demur.backends import Embedded, Prompt, Settings, Wanted
from demur.datasets import load
from demur.prompts.templates import FEW_SHOT_MATHEMATICS

PATHS, QUESTIONS, TOKENS, ROUNDS = 16, 1, 32, 3
SETTINGS = Settings(max_tokens=TOKENS)


def batched(model: Embedded, prompts: list[Prompt]) -> int:
    wanted = [Wanted(k, 100 + k) for k in range(PATHS)]
    return sum(path.n_tokens or 0 for prompt in prompts for path in model.complete(prompt, SETTINGS, wanted))


def request(prompt: Prompt, n: int, seed: int, **more: object) -> dict[str, object]:
    return {
        "prompt": prompt.text, "n": n, "seed": seed, "temperature": SETTINGS.temperature, "top_k": 0, "top_p": 1.0,
        "min_p": 0.0, "max_tokens": TOKENS, "stop": [], "logprobs": 1, **more,
    }  # fmt: skip


def directly(model: Embedded, prompts: list[Prompt], n: int = PATHS, **more: object) -> int:
    server, count = model._open(), 0
    for prompt in prompts:
        for first in range(0, PATHS, n):
            answer = server.handle_completions(request(prompt, n, 100 + first, **more))
            count += sum(len(choice["logprobs"]["content"]) for choice in answer["choices"])
    return count


def one_by_one(model: Embedded, prompts: list[Prompt]) -> int:
    """Sixteen generations that know nothing of each other: each reads the prompt."""
    return directly(model, prompts, 1, cache_prompt=False)


def one_by_one_prompt_kept(model: Embedded, prompts: list[Prompt]) -> int:
    """Sixteen generations, the prompt's state kept by the runtime from one to the next."""
    return directly(model, prompts, 1)


def rate(work: Callable[[Embedded, list[Prompt]], int], model: Embedded, prompts: list[Prompt]) -> float:
    """Tokens per CPU-second, of all threads."""
    start = time.process_time()
    tokens = work(model, prompts)
    return tokens / (time.process_time() - start)


def main() -> None:
    model = Embedded(batch=PATHS, context=512)
    prompts = [FEW_SHOT_MATHEMATICS.render(problem) for problem in load("builtin:addition", limit=QUESTIONS)]
    batched(model, prompts[:1])
    ways = {
        "batched": batched,
        "runtime driven directly": directly,
        "one by one": one_by_one,
        "one by one, prompt kept": one_by_one_prompt_kept,
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, work in ways.items():
            rates[name].append(rate(work, model, prompts))
    median = {name: statistics.median(found) for name, found in rates.items()}
    print_report(
        "embedded model",
        [
            at_least(2, "16 paths in one batch / one by one", median["batched"] / median["one by one"]),
            at_least(
                0.9, "batched / the runtime driven directly", median["batched"] / median["runtime driven directly"]
            ),
        ],
        packages=["demur", "xllamacpp"],
        setting={
            "model": model.model,
            "paths": PATHS,
            "questions": QUESTIONS,
            "tokens": TOKENS,
            "threads": model.threads,
        },
        batched_over_one_by_one_with_the_prompt_kept=median["batched"] / median["one by one, prompt kept"],
        tokens_per_cpu_second=rates,
    )


if __name__ == "__main__":
    main()
