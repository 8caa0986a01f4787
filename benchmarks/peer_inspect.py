"""inspect-ai with epochs, durable: run by sampling_speed.py in its own environment."""

import json
import sys
import time

from inspect_ai import Epochs, Task, eval  # noqa: A004
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

url, questions, paths, concurrency = sys.argv[1], *map(int, sys.argv[2:])
dataset = MemoryDataset([Sample(id=k, input=f"What is {k} + 1?", target=str(k + 1)) for k in range(questions)])
task = Task(dataset=dataset, solver=generate(), scorer=includes(), epochs=Epochs(paths, "mode"))
model = get_model("openai-api/bench/m", base_url=url, api_key="x", config=GenerateConfig(max_connections=concurrency))
start = time.perf_counter()
eval(task, model=model, display="none", log_dir="logs", max_samples=concurrency)
print(json.dumps({"seconds": time.perf_counter() - start}))
