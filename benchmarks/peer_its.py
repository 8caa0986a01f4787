"""its-hub's self-consistency over all questions at once, in memory: run by sampling_speed.py in its own environment."""

import asyncio
import json
import sys
import time

from its_hub.core.algorithms.self_consistency import SelfConsistency, create_regex_projection_function
from its_hub.core.lms.openai_lm import OpenAICompatibleLanguageModel
from its_hub.core.orchestrator import LMOrchestrator


async def main() -> None:
    url, questions, paths, concurrency = sys.argv[1], *map(int, sys.argv[2:])
    model = OpenAICompatibleLanguageModel(endpoint=url, api_key="x", model_name="m")
    orchestrator = LMOrchestrator(max_concurrency=concurrency)
    algorithm = SelfConsistency(create_regex_projection_function(r"\\boxed\{([^}]+)\}"), orchestrator=orchestrator)
    start = time.perf_counter()
    await asyncio.gather(*(algorithm.ainfer(model, f"What is {k} + 1?", paths) for k in range(questions)))
    print(json.dumps({"seconds": time.perf_counter() - start}))


asyncio.run(main())
