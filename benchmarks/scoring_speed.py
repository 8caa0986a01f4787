"""Claims: self-consistency as arrays beats Python sets; judge and reward clients keep a server busy.

Self-consistency over 1300 × 16 paths of about 2 KB, tokeniser `words@1` (lower case, split at blanks) on both sides;
the straightforward way intersects and unites Python sets, each pair once. Clients are timed by the clock against a bare
aiohttp loop that sends the same number of requests to the same loopback server, 100 ms each, and forgets the answers;
ours read them, check them and save every path in an SQLite run.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from itertools import combinations
from pathlib import Path

import numpy as np
from claims import at_least, at_most, print_report
from loopback_model import serving
from stopwatch import alternate

from demur.descriptions import Description
from demur.engine.score import score_run
from demur.records import Path as ReasoningPath
from demur.records import Problem
from demur.scoring import ScorerSettings, make_scorer
from demur.scoring.self_consistency import TOKENISER, mean_jaccard, number_words, words
from demur.store import PlacedPath, Store

POOLS, PATHS = 1300, 16
SCORED, CONCURRENCY, MILLISECONDS, ROUNDS = 200, 64, 100, 3
HERE = Path(__file__).resolve().parent


def texts() -> list[list[str]]:
    """Paths that share a topic within a pool: some 340 words, 175 of them distinct, drawn with Zipf's frequencies."""
    rng = np.random.default_rng(0)
    vocabulary = np.array(["".join(map(chr, rng.integers(97, 123, rng.integers(2, 9)))) for _ in range(20_000)])
    frequency = 1 / np.arange(1, 20_001)
    made = []
    for _ in range(POOLS):
        topic = rng.choice(20_000, 600, p=frequency / frequency.sum())
        made.append([" ".join(vocabulary[topic[rng.integers(0, 600, 340)]]) for _ in range(PATHS)])
    return made


def with_sets(sets: list[set[str]]) -> list[float]:
    total = [0.0] * len(sets)
    for j, k in combinations(range(len(sets)), 2):
        similarity = len(sets[j] & sets[k]) / len(sets[j] | sets[k])
        total[j] += similarity
        total[k] += similarity
    return [each / (len(sets) - 1) for each in total]


def jaccard() -> tuple[list[dict[str, object]], dict[str, object]]:
    pools = texts()
    sets = [[set(words(text)) for text in pool] for pool in pools]
    numbered = [number_words(pool) for pool in pools]
    seconds = alternate(
        {
            "sets, end to end": lambda: [with_sets([set(words(text)) for text in pool]) for pool in pools],
            "arrays, end to end": lambda: [mean_jaccard(number_words(pool)) for pool in pools],
            "sets, pairs": lambda: [with_sets(pool) for pool in sets],
            "arrays, pairs": lambda: [mean_jaccard(pool) for pool in numbered],
        },
        rounds=3,
    )
    apart = max(
        float(np.abs(np.array(with_sets(pool)) - mean_jaccard(numbers)).max())
        for pool, numbers in zip(sets, numbered, strict=True)
    )
    whole = seconds["sets, end to end"].median / seconds["arrays, end to end"].median
    pairs = seconds["sets, pairs"].median / seconds["arrays, pairs"].median
    claims = [
        at_least(2, f"self-consistency with {TOKENISER}, times faster than Python sets, end to end", whole),
        at_least(10, "… in the pairwise stage alone", pairs),
        at_most(1e-12, "… largest difference between the two", apart),
    ]
    size = sum(len(text) for pool in pools for text in pool) / POOLS / PATHS
    return claims, {"bytes_per_path": size, "cpu_seconds": seconds}


def run_of(folder: str) -> Store:
    store = Store(Path(folder) / "run.db", create=True)
    run = store.open_run("run", Description(), None)
    run.add_problems([Problem(f"q{i}", f"What is {i} + 1?", extra={"task": "math"}) for i in range(SCORED)])
    text = "Step by step, it is some number. " * 20
    run.save([PlacedPath(i, j, ReasoningPath("1", f"{text}{i} {j}")) for i in range(SCORED) for j in range(PATHS)])
    return store


def ours(url: str, name: str) -> float:
    """Seconds to score a run; the run is there before the clock starts."""
    with tempfile.TemporaryDirectory() as folder, run_of(folder) as store:
        settings = ScorerSettings(
            model="m", base_url=url, concurrency=CONCURRENCY, route="chat" if name == "judge" else None
        )
        started = time.perf_counter()
        progress = asyncio.run(score_run(store.run(), make_scorer(name, settings)))
        taken = time.perf_counter() - started
        assert progress.saved == SCORED * PATHS, progress
    return taken


def bare(url: str, name: str) -> float:
    """The floor: as many requests of the same size, and nothing done with the answers."""
    import aiohttp

    text = "Step by step, it is some number. " * 20
    chat = [{"role": "user", "content": f"What is 1 + 1? {text} Y or N?"}]
    route, root = (
        ("/v1/chat/completions", {"logprobs": True, "top_logprobs": 20}) if name == "judge" else ("/classify", {})
    )

    async def main() -> None:
        gate = asyncio.Semaphore(CONCURRENCY)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

            async def ask() -> None:
                async with (
                    gate,
                    session.post(url.removesuffix("/v1") + route, json={"messages": chat, **root}) as answer,
                ):
                    await answer.json()

            await asyncio.gather(*(ask() for _ in range(SCORED * PATHS)))

    started = time.perf_counter()
    asyncio.run(main())
    return time.perf_counter() - started


def clients() -> tuple[list[dict[str, object]], dict[str, object]]:
    claims, figures = [], {}
    with serving(MILLISECONDS) as url:
        for name in ("judge", "reward"):
            rounds = [(bare(url, name), ours(url, name)) for _ in range(ROUNDS)]
            floor, own = (float(np.median(each)) for each in zip(*rounds, strict=True))
            figures[name] = {"bare_seconds": floor, "demur_seconds": own, "requests": SCORED * PATHS}
            claims.append(at_most(1.3, f"the {name} client, its run saved, over a bare aiohttp loop", own / floor))
    return claims, figures


def main() -> None:
    of_jaccard, jaccard_figures = jaccard()
    of_clients, client_figures = clients()
    print_report(
        "scores", [*of_jaccard, *of_clients], packages=["numpy", "aiohttp"], self_consistency=jaccard_figures,
        clients=client_figures,
    )  # fmt: skip


if __name__ == "__main__":
    main()
